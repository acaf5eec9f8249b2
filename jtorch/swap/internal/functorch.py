"""torch._C._functorch and torch._functorch.vmap: questions about tensors inside torch.func's transforms, and the parts of vmap that programs replace."""

import enum

from ... import errors
from ...core.lanes import is_traced
from ...func import parts, vectorize
from ...func.parts import add as _add_batch_dim
from ...func.parts import remove as _remove_batch_dim
from ...func.parts import remove_checked as _maybe_remove_batch_dim
from ...func.vectorize import vmap
from ...tensor import Tensor
from ...utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten

__all__ = ["get_unwrapped", "is_batchedtensor", "is_functorch_wrapped_tensor", "is_gradtrackingtensor"]


def is_functorch_wrapped_tensor(tensor) -> bool:
    """Whether a transform of torch.func or of JAX is computing this tensor."""
    return is_traced(tensor._storage.value)


is_batchedtensor = is_gradtrackingtensor = is_functorch_wrapped_tensor


def is_legacy_batchedtensor(tensor) -> bool:
    """False."""
    return False


def get_unwrapped(tensor):
    """The tensor itself: it has no layers."""
    return tensor


class TransformType(enum.Enum):
    """Kinds of transforms."""

    Torch = 0
    Vmap = 1
    Grad = 2
    Jvp = 3
    Functionalize = 4


def get_interpreter_stack():
    """None: transforms are JAX's, and no layers of this process."""
    return None


def _unwrap_for_grad(tensor, level):
    """The tensor itself: it has no layers."""
    return tensor


_wrap_for_grad = _unwrap_for_grad


def retrieve_current_functorch_interpreter():
    """Raises, as outside of all transforms."""
    raise AssertionError("interpreter must not be None")


def _process_batched_inputs(in_dims, args, func):
    """Raises: a part of torch.func.vmap, there to be replaced."""
    raise errors.unsupported("taking the arguments of vmap apart by hand", instead="torch.func.vmap, which is jax.vmap")


_create_batched_inputs = _unwrap_batched = _process_batched_inputs


class _Parts:
    """The three parts as they are now."""

    def __getattr__(self, name):
        return globals()[name]


_parts, _own = _Parts(), _process_batched_inputs


def _in_parts(func, in_dims, out_dims, randomness, args, kwargs):
    """(results,) of a vmap all of whose parts a program has replaced; None where it has not."""
    if _own in (_process_batched_inputs, _create_batched_inputs, _unwrap_batched):
        return None
    return (parts.run(_parts, func, in_dims, out_dims, randomness, args, kwargs),)


vectorize.in_parts = _in_parts


def _get_name(func) -> str:
    """A function's name, or what it shows."""
    return getattr(func, "__name__", repr(func))


def _vmap(func, in_dims=0, out_dims=0, allow_none_pass_through=False):
    """torch.func.vmap, under its older name."""
    return vmap(func, in_dims, out_dims)


_ = (
    Tensor, tree_flatten, tree_unflatten, _broadcast_to_and_flatten, _add_batch_dim, _remove_batch_dim, _maybe_remove_batch_dim,
)  # fmt: skip
