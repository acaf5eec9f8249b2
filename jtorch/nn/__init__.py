"""torch.nn: modules, functional, init and utils."""

# ruff: noqa: F403

from jtorch.nn import functional as functional
from jtorch.nn import init as init
from jtorch.nn import modules as modules
from jtorch.nn import parameter as parameter
from jtorch.nn import utils as utils
from jtorch.nn.modules import *
from jtorch.nn.parallel import DataParallel as DataParallel
from jtorch.nn.parameter import Buffer as Buffer
from jtorch.nn.parameter import Parameter as Parameter
from jtorch.nn.parameter import UninitializedBuffer as UninitializedBuffer
from jtorch.nn.parameter import UninitializedParameter as UninitializedParameter


def factory_kwargs(kwargs):
    """The arguments of a factory (device, dtype, memory_format) among those of a module, `factory_kwargs=` included.

    TypeError: another argument, or one given twice.
    """
    if kwargs is None:
        return {}
    names = {"device", "dtype", "memory_format"}
    unknown = kwargs.keys() - {*names, "factory_kwargs"}
    if unknown:
        raise TypeError(f"unexpected kwargs {unknown}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in names & kwargs.keys():
        if name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = kwargs[name]
    return found
