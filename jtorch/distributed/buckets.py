"""Tensors that travel together: all of one dtype as one array."""

from .. import functions as torch
from ..autograd.mode import no_grad

__all__ = ["GradBucket", "packed", "unpack"]


class GradBucket:
    """Gradients that travel together, as a hook of DistributedDataParallel gets them."""

    def __init__(self, index, buffer, parameters, is_last):
        self._index, self._buffer, self._parameters, self._last = index, buffer, parameters, is_last

    def index(self) -> int:
        """The number of the bucket in its backward pass."""
        return self._index

    def buffer(self):
        """The gradients, one after the other in one dimension."""
        return self._buffer

    def set_buffer(self, buffer) -> None:
        """Put other gradients into their place."""
        self._buffer = buffer

    def gradients(self) -> list:
        """The gradients in their shapes, as parts of the buffer."""
        return parts(self._buffer, self._parameters)

    def parameters(self) -> list:
        """The parameters that they belong to."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Whether no other follows in this backward pass."""
        return self._last


def by_dtype(tensors) -> list[list]:
    """The tensors of each dtype and device."""
    found = {}
    for t in tensors:
        found.setdefault((t.dtype, t.device), []).append(t)
    return list(found.values())


def packed(tensors):
    """The elements of several tensors of one dtype, one after the other."""
    with no_grad():
        return torch.cat([t.detach().reshape(-1) for t in tensors])


def parts(flat, like) -> list:
    """The parts of one dimension, in the shapes of these tensors."""
    return [part.view(t.shape) for part, t in zip(flat.split([t.numel() for t in like]), like)]


def unpack(flat, targets) -> None:
    """Write the parts of `packed` into tensors of the same shapes."""
    with no_grad():
        for target, part in zip(targets, parts(flat, targets)):
            target.detach().copy_(part)
