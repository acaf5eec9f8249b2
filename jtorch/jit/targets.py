"""The functions that nodes of a scripted graph call, by the names that a file has of them: torch's operators, Python's and math's, no others."""

import builtins
import importlib
import math
import operator
import re

from .. import errors
from ..core.device import Device
from ..core.dtype import dtype
from ..limits import finfo, iinfo
from ..tensor import Tensor
from .raised import failed

__all__ = ["Call", "named", "target_of"]

_BUILTINS = "abs bool complex dict divmod enumerate float int isinstance len list max min pow print range round slice sorted str sum tuple zip".split()
_MATH = [n for n in dir(math) if callable(getattr(math, n)) and not n.startswith("_")]
_MAKERS = ("attrgetter", "call", "itemgetter", "methodcaller")  # what these are given, or make, is called
_OPERATORS = [
    n for n in dir(operator) if n.strip("_").isalpha() and callable(getattr(operator, n)) and n not in _MAKERS
]
# Functions of tensors: what else is in these modules reads files, or sets things.
_SPACES = ("", "nn.functional", "linalg", "fft", "special", "nn.init")
_REFUSED = re.compile(
    "(set|use|get|import|parse|prepare|autocast|install|as_torch|to_jax|from_jax|from_dlpack|to_dlpack|init_num|manual_seed|seed"
    "|load|save|compile|hub|from_file|fork|wait|flush|synchronize|profiler|thread_safe)(_|$)"
)
# What values in a graph may be: with a module, a class or a function a file could get hold of anything.
_VALUES = (Tensor, str, list, tuple, dict, int, float, complex, range, dtype, Device, finfo, iinfo, type(None))


class Method:
    """The method of a name, called on its first argument."""

    def __init__(self, name):
        self.__name__ = name

    def __call__(self, it, *args, **kwargs):
        return of_value(it, self.__name__)(*args, **kwargs)


def of_value(it, name):
    """An attribute of a value. NotImplementedError: of something else, or a private one."""
    if not isinstance(it, _VALUES) or name.startswith("_"):
        raise _refused(it, name)
    return getattr(it, name)


def get(it, name):
    """An attribute that is a value; the shape as a list."""
    found = list(it.shape) if name == "shape" else of_value(it, name)
    if not isinstance(found, _VALUES):
        raise _refused(it, name)
    return found


def _refused(it, name):
    return errors.unsupported(f"{type(it).__name__}.{name} in a graph", "the Python code")


def select(x, dim, at):
    """One slice."""
    return x.select(dim, at)


def joined(*parts):
    """The parts of a formatted string."""
    return "".join(map(str, parts))


def ellipsis():
    """`...`"""
    return Ellipsis


def asserted(test, words):
    """torch.jit.Error with `words` unless `test`."""
    if not test:
        raise failed("RuntimeError: AssertionError", words)


def range_length(*bounds):
    """How many numbers a range has."""
    return len(range(*bounds))


def range_at(n, *bounds):
    """The n-th number of a range."""
    return range(*bounds)[n]


# What graphs call besides torch's functions, Python's and math's.
OWN = {fn.__name__: fn for fn in (get, select, joined, ellipsis, asserted, range_length, range_at)}


class Call:
    """A node's call: the function, how many of the inputs are positional, and the names of those after them."""

    def __init__(self, fn, positional, names):
        self.fn, self.positional, self.names = fn, positional, names

    def __call__(self, given):
        last = self.positional + len(self.names)
        return self.fn(*given[: self.positional], **dict(zip(self.names, given[self.positional : last])))


def target_of(fn):
    """The name of a function, "space:name"; None: no graph calls it."""
    if isinstance(fn, Method):
        return f"method:{fn.__name__}"
    name = getattr(fn, "__name__", "")
    for space, (holder, names) in {
        "python": (builtins, _BUILTINS),
        "math": (math, _MATH),
        "operator": (operator, _OPERATORS),
    }.items():
        if name in names and getattr(holder, name) is fn:
            return f"{space}:{name}"
    if OWN.get(name) is fn:
        return f"own:{name}"
    return _torch_name(fn, name)


def _torch_name(fn, name):
    if _REFUSED.match(name) or name.startswith("_") or not callable(fn) or isinstance(fn, type):
        return None
    for space in _SPACES:
        holder = _holder(space)
        for each in (name, getattr(fn, "__qualname__", ""), name.partition("_")[2]):
            if each and "." not in each and getattr(holder, each, None) is fn:
                return f"torch.{space}:{each}" if space else f"torch:{each}"
    return f"method:{name}" if getattr(Tensor, name, None) is fn else None


def _holder(space):
    found = importlib.import_module("jtorch")
    for part in space.split(".") if space else ():
        found = getattr(found, part)
    return found


def named(name):
    """The function of a name that target_of gave. RuntimeError: a file has another."""
    space, _, each = name.partition(":")
    if space == "method" and not each.startswith("_"):
        return Method(each)
    if space == "own" and each in OWN:
        return OWN[each]
    known = {"python": (builtins, _BUILTINS), "math": (math, _MATH), "operator": (operator, _OPERATORS)}.get(space)
    if known is not None and each in known[1]:
        return getattr(known[0], each)
    if space.partition(".")[0] == "torch" and space.partition(".")[2] in _SPACES:
        found = getattr(_holder(space.partition(".")[2]), each, None)
        if found is not None and _torch_name(found, getattr(found, "__name__", "")) is not None:
            return found
    raise errors.unsupported(f"the function {name} in a saved graph", "a file that jtorch has written")
