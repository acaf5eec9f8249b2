"""What lies at the address of a tensor: memory with a copy of the values, made when the address is asked for."""

import numpy as np

from . import dtype as dtypes


def as_memory(array, memory):
    """Numbers as they are written to memory of this numpy dtype."""
    return dtypes.to_memory(array) if memory == dtypes.complex32.memory else array


class Mirror:
    """Memory with the values that a storage had when its address was last asked for."""

    __slots__ = ("buffer", "order", "version")

    def __init__(self, spec):
        self.buffer = np.empty(spec.numel, spec.dtype.memory)
        self.order = sorted(range(spec.ndim), key=lambda d: -spec.strides[d])
        self.version = None

    def fill(self, array, version):
        """Copy the values, in the order of the storage's memory."""
        array = array.transpose(self.order)
        np.copyto(self.buffer.reshape(array.shape), as_memory(array, self.buffer.dtype))
        self.version = version
