"""torch.testing: comparing tensors in tests, and making them."""

from .comparison import assert_allclose, assert_close
from .creation import make_tensor
from .file_check import FileCheck as FileCheck

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
