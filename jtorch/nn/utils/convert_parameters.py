"""Parameters as one vector, and back."""

from jtorch import functions as torch
from jtorch.convert import typename
from jtorch.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _same_device(param, device):
    if device is None or param.device == device:
        return param.device
    raise TypeError("Found two parameters on different devices, this is currently not supported.")


def parameters_to_vector(parameters):
    """All parameters flattened into one vector."""
    device, parts = None, []
    for param in parameters:
        device = _same_device(param, device)
        parts.append(param.view(-1))
    return torch.cat(parts)


def vector_to_parameters(vec, parameters):
    """Make the parameters slices of one vector."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    device, at = None, 0
    for param in parameters:
        device = _same_device(param, device)
        n = param.numel()
        param.data = vec[at : at + n].view_as(param).data
        at += n
