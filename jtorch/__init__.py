"""PyTorch's API on JAX: `import jtorch as torch`."""

import gc as _gc

from . import quiet, startup  # noqa: F401  before jax is imported, and before it starts its client

# The import makes many long-lived objects; collecting among them finds nothing and costs a third of the time.
_collecting = _gc.isenabled()
_gc.disable()

# isort: split
from . import api as _api  # noqa: E402
from . import elsewhere as _elsewhere  # noqa: E402

if _collecting:
    if not _gc.get_freeze_count():
        _gc.freeze()
        _gc.unfreeze()  # into the oldest generation: the first collection of the young ones would go through all of it
    _gc.enable()

_elsewhere.install()
tensor = _api.find("tensor")  # the function, not the module that importing has put under this name

__version__ = "0.1.0"


def __getattr__(name):
    value = _api.find(name)
    globals()[name] = value
    return value


def __dir__():
    return _api.names()
