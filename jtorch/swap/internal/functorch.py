"""torch._C._functorch and torch._functorch.vmap: questions about the tensors inside torch.func's transforms, whose values are JAX's."""

import jax

from ... import errors
from ...func.vectorize import broadcast_prefix, vmap
from ...tensor import Tensor
from ...utils._pytree import tree_flatten, tree_unflatten

__all__ = ["get_unwrapped", "is_batchedtensor", "is_functorch_wrapped_tensor", "is_gradtrackingtensor"]


def is_functorch_wrapped_tensor(tensor) -> bool:
    """Whether a transform of torch.func or of JAX is computing this tensor."""
    return isinstance(tensor._storage.value, jax.core.Tracer)


is_batchedtensor = is_gradtrackingtensor = is_functorch_wrapped_tensor


def is_legacy_batchedtensor(tensor) -> bool:
    """False."""
    return False


def get_unwrapped(tensor):
    """The tensor itself: it has no layers."""
    return tensor


def _add_batch_dim(tensor, in_dim, level):
    """Raises: batching by torch.func.vmap is JAX's, without layers that could be added by hand."""
    raise errors.unsupported("adding a batch dimension by hand", instead="torch.func.vmap, which is jax.vmap")


_remove_batch_dim = _maybe_remove_batch_dim = _add_batch_dim


def _get_name(func) -> str:
    """A function's name, or what it shows."""
    return getattr(func, "__name__", repr(func))


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """The leaves of a tree that is a beginning of another, given by its spec, one for each of its leaves; None where it is not."""
    return broadcast_prefix(tree, tree_unflatten([0] * treespec.num_leaves, treespec))


def _vmap(func, in_dims=0, out_dims=0, allow_none_pass_through=False):
    """torch.func.vmap, under its older name."""
    return vmap(func, in_dims, out_dims)


_ = Tensor, tree_flatten
