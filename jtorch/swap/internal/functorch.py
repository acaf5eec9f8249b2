"""torch._C._functorch: questions about the tensors inside torch.func's transforms, whose values are JAX's."""

import jax

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
