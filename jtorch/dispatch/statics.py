"""Static arguments: their canonical form, and what may stand for an int, a flag, a number or a word."""

import typing

import numpy as np

from .. import errors, errors_arguments
from ..core import dtype as dtypes
from ..ops import registry
from ..ops.registry import STATIC
from ..tensor import Tensor

_PLAIN = {bool: bool, int: int, str: str, bool | None: bool, int | None: int, str | None: str}
_INT64 = range(-(2**63), 2**63)


class Elements(tuple):
    """What a tensor of several elements holds, where something else is wanted."""

    __slots__ = ()
    _shown = "Tensor"


def check_statics(record, statics, *, method=False, name=None, given=None):
    """Raise where a bool, a number, an int or a string is wanted and something else is given: asked for each plan, not each call.

    statics: pairs (position in the signature, value); given: the arguments as they came, whose types the errors name. PyTorch counts
    a method's arguments without the tensor itself, and says no position of what comes by keyword, as flags mostly do.
    """
    if not record.strict:
        return
    for at, a in statics:
        p, came = record.params[at], a if given is None else given[at]
        position = at + 1 - method if p.default is p.empty or p.name == "dim" else None
        if p.annotation in _INTS and not (type(a) is str and str in typing.get_args(p.annotation)):
            _check_ints(name or record.shown, p, a, at + 1 - method, came)
        if p.annotation is float and a is not p.default and isinstance(a, (str, complex, tuple, type(None))):
            raise errors.argument(name or record.shown, p.name, "float", came, position)
        if p.name == "dtype" and not (a is None or isinstance(a, dtypes.dtype)):
            raise errors.argument(name or record.shown, "dtype", "torch.dtype", a)
        kind = _PLAIN.get(p.annotation)
        if kind is None or a is p.default or (a is None and p.annotation is not kind):
            continue
        if type(a) is int and kind is int and a not in _INT64:
            raise errors_arguments.overflow()
        if type(a) is not kind and (not isinstance(a, kind) or isinstance(a, bool)):
            raise errors.argument(name or record.shown, p.name, kind.__name__, came, position)


_INTS = {registry.VarInts, tuple, list[int], int | tuple, int | tuple | None, int | tuple | str}


def _check_ints(function, p, a, position, came):
    """Raise where ints are wanted and there is anything else, or a bool in the first place, which is where PyTorch looks."""
    missing = a is None and p.default is not None and type(None) not in typing.get_args(p.annotation)
    alone = p.annotation == list[int] and not isinstance(a, tuple)
    kinds = a is None or isinstance(a, (tuple, np.generic)) or hasattr(a, "__index__")
    if isinstance(a, bool) or missing or alone or not kinds:
        raise errors.argument(function, p.name, "tuple of ints", came, position)
    if type(a) is int and a not in _INT64:
        raise errors_arguments.overflow()
    if type(a) is Elements:
        raise errors.argument(function, p.name, "tuple of ints", a, position)
    for at, x in enumerate(a if isinstance(a, tuple) else ()):
        nested = isinstance(x, tuple) and p.annotation is not registry.VarInts  # two tuples of dimensions, of tensordot
        if not (nested or hasattr(x, "__index__") or isinstance(x, np.generic)) or not at and isinstance(x, bool):
            raise errors_arguments.int_element(
                function, p.name, position, at, came[at] if isinstance(came, (list, tuple)) else x
            )
        if type(x) is int and x not in _INT64:
            raise errors_arguments.overflow(function, p.name, at)


_KINDS = {
    kind: name
    for one, name in ((int, "int"), (bool, "bool"), (float, "float"), (str, "str"))
    for kind in (one, one | None)
}


def unhashable(op, statics, tensor, *, method=False, name=None) -> TypeError:
    """The error for a static argument that is no key: a tensor of several dimensions, whose rows are lists then, or a dict."""
    for at, a in statics:
        try:
            hash(a)
        except TypeError:
            p = op.params[at]
            kind = "tuple of ints" if p.annotation in _INTS else _KINDS.get(p.annotation)
            if kind is not None:
                got = next((x for x in a if not isinstance(x, int)), a) if isinstance(a, tuple) else a
                got = tensor if isinstance(got, (list, tuple)) else got
                return errors.argument(name or op.shown, p.name, kind, got, at + 1 - method)
    return errors.unhashable(name or op.shown)


def is_method(frame) -> bool:
    """Whether the generated function that runs in this frame is a method: PyTorch's count its arguments without the tensor."""
    public = frame.f_globals.get("public")
    return public is not None and public.__qualname__.startswith("Tensor.")


def statics_of(op, call):
    """The static arguments of a call, with their positions."""
    return [(k, s[1]) for k, (r, s) in enumerate(zip(op.roles, call.slots)) if r == STATIC]


def numpy_number(a):
    """A number of numpy's as the Python number that it is to PyTorch: an int, or a float, even of a bool and of a complex64."""
    return a.item() if isinstance(a, (np.integer, np.complex128)) else float(a.real)


def _member(a):
    """A member of a list in this form: for an int a tensor of one element stands too, whatever its dimensions."""
    if isinstance(a, Tensor) and a._spec.ndim and a._spec.numel == 1:
        return a.item()
    return static(a)


def static_of(param, a):
    """A static argument in this form; for an int a tensor of one element stands too, whatever its dimensions."""
    return (
        a.item() if isinstance(a, Tensor) and a._spec.numel == 1 and _PLAIN.get(param.annotation) is int else static(a)
    )


def static(a):
    """A static argument in hashable, canonical form."""
    if isinstance(a, (list, tuple)):
        return tuple(_member(x) for x in a)
    if isinstance(a, Tensor):
        return a.item() if a._spec.ndim == 0 else (tuple if a._spec.numel == 1 else Elements)(a.tolist())
    if isinstance(a, np.generic):  # a bool of numpy's is no flag
        return a if a.dtype.kind == "b" else a.item()
    if isinstance(a, np.ndarray):
        return tuple(static(x) for x in a.tolist()) if a.ndim else a.item()
    if type(a) is type:  # dtype=float
        return dtypes.PYTHON.get(a, a)
    return a


def real_of(function, name, value, position=None):
    """A float argument of a function written by hand: a number, or a tensor without dimensions that holds one."""
    if type(value) in (int, float):
        return value
    if isinstance(value, Tensor) and not value._spec.ndim or isinstance(value, (int, float, np.floating, np.integer)):
        return float(value)
    raise errors.argument(function, name, "float", value, position)


def whole_of(function, name, value, position=None):
    """An int argument of a function written by hand: no bool, and no float even if it is whole."""
    if type(value) is int:
        if value not in _INT64:
            raise errors_arguments.overflow()
        return value
    one = isinstance(value, Tensor) and value._spec.numel == 1 and value._spec.dtype.category == dtypes.INT
    if one or isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    raise errors.argument(function, name, "int", value, position)
