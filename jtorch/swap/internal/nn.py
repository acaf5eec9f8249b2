"""torch._C._nn: functions of the op table that PyTorch keeps there."""

from ... import functions
from ...nn.modules.conversion import arguments_of_to


def _parse_to(*args, **kwargs):
    """The arguments of `Module.to` as (device, dtype, non_blocking, memory_format)."""
    device, dtype, options, memory_format = arguments_of_to(*args, **kwargs)
    return device, dtype, options.get("non_blocking", False), memory_format


def __getattr__(name):
    found = functions.lookup("_C._nn", name) or functions.lookup("nn.functional", name)
    if found is None:
        raise AttributeError(f"module 'torch._C._nn' has no attribute {name!r}")
    globals()[name] = found
    return found
