"""Initial values of parameters: every function fills the tensor it is given, in place, and returns it."""

import functools
import math
import warnings

from jtorch import functions as torch
from jtorch.autograd.mode import no_grad

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_LINEAR = frozenset(
    ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid")
)  # fmt: skip


def calculate_gain(nonlinearity, param=None):
    """The factor that keeps the variance of activations through `nonlinearity`.

    Args:
        nonlinearity: the name of the function in nn.functional
        param: the negative slope of leaky_relu. Default: 0.01
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Draw from the uniform distribution on [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Draw from the normal distribution."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _normal_cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Draw from the normal distribution, rejecting what falls outside [a, b]."""
    if tensor.is_meta:
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )
    with no_grad():
        inside = _normal_cdf((b - mean) / std) - _normal_cdf((a - mean) / std)
        if inside > 0.3:
            return _reject_normal(tensor, mean, std, a, b, generator)
        return _reject_uniform(tensor, mean, std, a, b, generator)


def _reject_normal(tensor, mean, std, a, b, generator):
    """Most draws fall inside: redraw the whole tensor until each place has had a good one."""
    # The bounds are rounded to the tensor's dtype, in which the draws are compared with them.
    low, high = tensor.new_tensor(a).item(), tensor.new_tensor(b).item()
    values = tensor.normal_(mean, std, generator=generator)
    while True:
        bad = (values < low) | (values > high)
        if not bad.any():
            break
        values = torch.where(bad, torch.empty_like(values).normal_(mean, std, generator=generator), values)
    if values is not tensor:
        tensor.copy_(values)
    return tensor


def _reject_uniform(tensor, mean, std, a, b, generator):
    """Few draws of the normal would fall inside: draw uniformly and accept by the density."""
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2

    def rejected(draws):
        # in place and in this order, so that the rounding is PyTorch's
        log_density = draws.clone().sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
        return torch.empty_like(tensor).uniform_(generator=generator).log_().gt(log_density)

    tensor.uniform_(a, b, generator=generator)
    pending = rejected(tensor)
    values = tensor
    while pending.any():
        draws = torch.empty_like(tensor).uniform_(a, b, generator=generator)
        values = torch.where(pending, draws, values)
        pending = torch.where(pending, rejected(draws), pending)
    if values is not tensor:
        tensor.copy_(values)
    return tensor


def constant_(tensor, val):
    """Fill with one value."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    """Fill with one."""
    return constant_(tensor, 1.0)


def zeros_(tensor):
    """Fill with zero."""
    with no_grad():
        return tensor.zero_()


def eye_(tensor):
    """Make a 2-dimensional tensor the identity matrix."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.copy_(torch.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))
    return tensor


def dirac_(tensor, groups=1):
    """Make a convolution kernel the identity on as many channels as possible."""
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tuple(tensor.size())
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    if tensor.is_meta:
        return tensor
    per_group = sizes[0] // groups
    centre = tuple(n // 2 for n in sizes[2:])
    with no_grad():
        tensor.zero_()
        for g in range(groups):
            for d in range(min(per_group, sizes[1])):
                tensor[(g * per_group + d, d, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    out, in_, *window = tensor.shape
    area = math.prod(window)
    return in_ * area, out * area


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of {['fan_in', 'fan_out']}")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform with variance 2 gain^2 / (fan_in + fan_out) (Glorot and Bengio, 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normal with variance 2 gain^2 / (fan_in + fan_out) (Glorot and Bengio, 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return normal_(tensor, 0.0, std, generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Uniform with variance gain^2 / fan (He et al., 2015).

    Args:
        a: the negative slope of the leaky_relu that follows
        mode: "fan_in" keeps the variance forward, "fan_out" backward
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    with no_grad():
        return tensor.uniform_(-bound, bound, generator=generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Normal with variance gain^2 / fan (He et al., 2015).

    Args:
        a: the negative slope of the leaky_relu that follows
        mode: "fan_in" keeps the variance forward, "fan_out" backward
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    with no_grad():
        return tensor.normal_(0, std, generator=generator)


def orthogonal_(tensor, gain=1, generator=None):
    """Make the tensor, flattened to a matrix after its first dimension, (semi-)orthogonal."""
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    with no_grad():
        draws = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
        q, r = torch.lookup("linalg", "qr")(draws.t() if rows < cols else draws)
        q = q * torch.diag(r, 0).sign()  # unique, hence uniformly distributed (Mezzadri, 2007)
        if rows < cols:
            q = q.t()
        tensor.copy_(q.reshape(tensor.shape))
        tensor.mul_(gain)
    return tensor


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Normal values, of which the fraction `sparsity` of each column is zero (Martens, 2010)."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if tensor.is_meta:
        return tensor
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            tensor[torch.randperm(rows)[:zeros], col] = 0
    return tensor


def _deprecated(function):
    new = function.__name__
    old = new[:-1]

    @functools.wraps(function)
    def call(*args, **kwargs):
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    call.__name__ = old
    call.__doc__ = f"Deprecated: use {new}."
    return call


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
