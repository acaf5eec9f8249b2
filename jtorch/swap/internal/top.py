"""Private names of `torch` itself that packages call: assertions, and operations on lists of tensors."""

from ... import functions
from ... import functions as torch
from ...tensor import Tensor

__all__ = ["foreach"]


# --- assertions ----------------------------------------------------------------------------------------------------


def _assert(condition, message) -> None:
    """assert condition, message."""
    assert condition, message


def _fail(kind, cond, message):
    if isinstance(cond, Tensor):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        words = message() if callable(message) else message
        raise kind(
            "Expected cond to be True, but got False. (Could this error message be improved?)"
            if words is None
            else str(words)
        )


def _check(cond, message=None) -> None:
    """Raise RuntimeError(message()) unless cond."""
    _fail(RuntimeError, cond, message)


def _check_index(cond, message=None) -> None:
    """Raise IndexError(message()) unless cond."""
    _fail(IndexError, cond, message)


def _check_value(cond, message=None) -> None:
    """Raise ValueError(message()) unless cond."""
    _fail(ValueError, cond, message)


def _check_type(cond, message=None) -> None:
    """Raise TypeError(message()) unless cond."""
    _fail(TypeError, cond, message)


def _check_not_implemented(cond, message=None) -> None:
    """Raise NotImplementedError(message()) unless cond."""
    _fail(NotImplementedError, cond, message)


def _check_with(error_type, cond, message=None) -> None:
    """Raise error_type(message()) unless cond."""
    _fail(error_type, cond, message)


def _check_tensor_all_with(error_type, cond, message=None) -> None:
    """Raise error_type(message()) unless all elements are true."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    _fail(error_type, cond.all().item(), message)


def _check_tensor_all(cond, message=None) -> None:
    """Raise RuntimeError(message()) unless all elements are true."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_is_size(i, message=None, *, max=None) -> None:
    """Raise RuntimeError unless 0 <= i, and i <= max where that is given."""
    _check(i >= 0 and (max is None or i <= max), message)


def _shape_as_tensor(input):
    """The shape as an int64 tensor."""
    return torch.tensor(tuple(input.shape))


def _assert_async(input, assert_msg="") -> None:
    """Raise RuntimeError unless the one element is not zero. At once: the value is waited for."""
    if not input.item():
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


# --- lists of tensors ----------------------------------------------------------------------------------------------


def _bound(method, side):
    return lambda t, other: method(t, other) if isinstance(other, Tensor) else t.clamp(**{side: other})


def _written(compute):
    return lambda t, other: t.copy_(compute(t, other))


_SCALARS_TOO = {"maximum": _bound(Tensor.maximum, "min"), "minimum": _bound(Tensor.minimum, "max")}
_SCALARS_TOO |= {f"{name}_": _written(compute) for name, compute in _SCALARS_TOO.items()}


def foreach(name):
    """The function `_foreach_NAME`: a method of every tensor of a list; arguments that are lists give each its own.

    What is recorded for a list is one graph, so it costs no more than PyTorch's one kernel for many tensors.
    """
    method = _SCALARS_TOO.get(name) or getattr(Tensor, name, None)
    if name == "norm":
        method = functions.lookup("linalg", "vector_norm")
    if method is None:
        return None
    scaled = name.removesuffix("_") in ("addcmul", "addcdiv")

    def call(self, *args, **kwargs):
        if isinstance(self, (int, float)):  # _foreach_pow(2.0, exponents)
            return tuple(self**e for e in args[0])
        if scaled and (len(args) == 3 or "scalars" in kwargs):
            value = args[2] if len(args) == 3 else kwargs.pop("scalars")
            args, kwargs = args[:2], {**kwargs, "value": value.tolist() if isinstance(value, Tensor) else value}
        result = [
            method(t, *[_part(a, i) for a in args], **{k: _part(v, i) for k, v in kwargs.items()})
            for i, t in enumerate(self)
        ]
        return None if name.endswith("_") else tuple(result)

    call.__name__ = call.__qualname__ = f"_foreach_{name}"
    return call


def _part(argument, i):
    return argument[i] if isinstance(argument, (list, tuple)) else argument


def __getattr__(name):
    made = foreach(name.removeprefix("_foreach_")) if name.startswith("_foreach_") else None
    if made is None:
        raise AttributeError(f"module 'torch' has no attribute {name!r}")
    globals()[name] = made
    return made
