"""torch._C._functorch: questions about the tensors inside torch.func's transforms, whose values are JAX's."""

import jax

from ... import errors

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


_remove_batch_dim = _add_batch_dim
