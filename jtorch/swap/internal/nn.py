"""torch._C._nn: functions of the op table that PyTorch keeps there."""

from ... import functions


def __getattr__(name):
    found = functions.lookup("_C._nn", name) or functions.lookup("nn.functional", name)
    if found is None:
        raise AttributeError(f"module 'torch._C._nn' has no attribute {name!r}")
    globals()[name] = found
    return found
