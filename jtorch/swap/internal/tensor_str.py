"""torch._tensor_str: how tensors are printed."""

from ...printing import format_values, get_printoptions, printoptions, set_printoptions
from ...printing import options as PRINT_OPTS

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]


def _tensor_str(self, indent) -> str:
    """The values of a tensor as text, without what is around them."""
    return format_values(self.detach().numpy(), tuple(self.shape), indent)
