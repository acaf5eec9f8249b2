"""torch.nn.grad: the gradients of convolutions by their input and by their weight, as functions."""

from jtorch.autograd import entry, grad_mode
from jtorch.nn import functional as F

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _by_input(convolve, name):
    def gradient(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
        x = grad_output.new_zeros(tuple(input_size)).requires_grad_()
        return _gradient(convolve, (x, weight, None, stride, padding, dilation, groups), x, weight, grad_output)

    gradient.__name__ = gradient.__qualname__ = name
    gradient.__doc__ = f"""The gradient of F.{convolve.__name__} by its input, whose shape is `input_size`."""
    return gradient


def _by_weight(convolve, name):
    def gradient(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
        w = grad_output.new_zeros(tuple(weight_size)).requires_grad_()
        return _gradient(convolve, (input, w, None, stride, padding, dilation, groups), w, input, grad_output)

    gradient.__name__ = gradient.__qualname__ = name
    gradient.__doc__ = f"""The gradient of F.{convolve.__name__} by its weight, whose shape is `weight_size`."""
    return gradient


def _gradient(convolve, args, by, other, grad_output):
    """The gradient by one operand; it has a derivative itself where the other one or `grad_output` wants that."""
    with grad_mode.enable_grad():
        out = convolve(*args)
    return entry.grad(out, by, grad_output, create_graph=other.requires_grad or grad_output.requires_grad)[0]


conv1d_input, conv2d_input, conv3d_input = (_by_input(getattr(F, f"conv{n}d"), f"conv{n}d_input") for n in (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = (
    _by_weight(getattr(F, f"conv{n}d"), f"conv{n}d_weight") for n in (1, 2, 3)
)
