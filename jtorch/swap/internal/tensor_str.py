"""torch._tensor_str: how tensors are printed."""

from ...printing import format_values, get_printoptions, printoptions, set_printoptions
from ...printing import options as PRINT_OPTS
from ...tensor import Tensor

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]


_repr = Tensor.__repr__  # also where a program puts another in its place


def _str(self, *, tensor_contents=None) -> str:
    """A tensor as it is printed."""
    return _repr(self, tensor_contents=tensor_contents)


def _tensor_str(self, indent) -> str:
    """The values of a tensor as text, without what is around them."""
    return format_values(self.detach().numpy(), tuple(self.shape), indent)
