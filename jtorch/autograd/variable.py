"""The old name of a tensor that autograd watches."""

from .function import Variable


def variable(*args, **kwargs):
    """Removed from PyTorch: a tensor is what a variable was. RuntimeError."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


__all__ = ["Variable", "variable"]
