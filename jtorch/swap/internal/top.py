"""Private names of `torch` itself that packages call: assertions, and what the package has without a public name."""

from ... import foreach
from ... import functions as torch
from ...compiler import disable as _disable_dynamo  # noqa: F401  under its older name
from ...tensor import Tensor

# --- assertions ----------------------------------------------------------------------------------------------------


def _fail(kind, cond, message):
    if isinstance(cond, Tensor):
        raise TypeError(
            "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert that all elements are true."
        )
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        if message is not None and not callable(message):
            raise TypeError("message must be a callable")
        raise kind(
            "Expected cond to be True, but got False. (Could this error message be improved?)"
            if message is None
            else str(message())
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


def _has_compatible_shallow_copy_type(input, from_) -> bool:
    """Whether `x.data = other` may put the memory of one in the place of the other's: both of one kind, device and layout."""
    return input.layout == from_.layout and input.device.type == from_.device.type


def __getattr__(name):
    made = foreach.function(name.removeprefix("_foreach_")) if name.startswith("_foreach_") else None
    if made is None:
        raise AttributeError(f"module 'torch' has no attribute {name!r}")
    globals()[name] = made
    return made
