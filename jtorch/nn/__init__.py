"""torch.nn: modules, functional, init and utils."""

# ruff: noqa: F403

import importlib

from jtorch.nn import functional as functional
from jtorch.nn import grad as grad
from jtorch.nn import init as init
from jtorch.nn import modules as modules
from jtorch.nn import parallel as parallel
from jtorch.nn import parameter as parameter
from jtorch.nn import utils as utils
from jtorch.nn.factory import factory_kwargs as factory_kwargs
from jtorch.nn.modules import *
from jtorch.nn.parallel import DataParallel as DataParallel
from jtorch.nn.parameter import Buffer as Buffer
from jtorch.nn.parameter import Parameter as Parameter
from jtorch.nn.parameter import UninitializedBuffer as UninitializedBuffer
from jtorch.nn.parameter import UninitializedParameter as UninitializedParameter


def __getattr__(name):
    if name == "attention":
        return importlib.import_module("jtorch.nn.attention")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
