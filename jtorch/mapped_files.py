"""torch.from_file: tensors over files mapped into memory."""

import os

from .core import buffers
from .core import device as devices
from .core import dtype as dtypes
from .core.spec import Spec
from .tensor import make


def from_file(
    filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """A 1-D CPU tensor over a file mapped into memory: nothing is read until it is used.

    Args:
        shared: writes to the tensor go to the file, which is made or grown when needed; else they stay in memory
        size: how many elements

    Raises RuntimeError when the file cannot be opened or, unless `shared`, is too short.
    """
    if device is not None and devices.resolve(device).type != "cpu":
        raise RuntimeError(f"from_file(): the device must be cpu, got {device}")
    dtype = dtypes.default.dtype if dtype is None else dtype
    made = make(buffers.mapped(os.fspath(filename), bool(shared), size, dtype), Spec.dense((size,), dtype, devices.cpu))
    return made.requires_grad_() if requires_grad else made
