"""What distributions are made with: broadcasting of parameters, probabilities and logits, lazy attributes."""

import functools
import math
import numbers
import operator

from jtorch import functions as torch
from jtorch.autograd.mode import enable_grad
from jtorch.distributions import errors
from jtorch.tensor import Tensor

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060  # Euler-Mascheroni

one_hot = torch.lookup("nn.functional", "one_hot")
bce_with_logits = functools.partial(torch.lookup("nn.functional", "binary_cross_entropy_with_logits"), reduction="none")


def broadcast_all(*values):
    """Tensors of a common shape from tensors and numbers; numbers take the first tensor's dtype and device.

    Raises ValueError for an argument that is neither.
    """
    if not all(isinstance(v, (Tensor, numbers.Number)) or hasattr(type(v), "__torch_function__") for v in values):
        raise errors.not_broadcast_arguments()
    if all(isinstance(v, Tensor) for v in values):
        return torch.broadcast_tensors(*values)
    like = next((v for v in values if not isinstance(v, numbers.Number)), None)
    options = {"dtype": torch.get_default_dtype()} if like is None else {"dtype": like.dtype, "device": like.device}
    return torch.broadcast_tensors(
        *[torch.tensor(v, **options) if isinstance(v, numbers.Number) else v for v in values]
    )


def standard_normal(shape, like):
    """Normal numbers of a shape, with the dtype and device of a tensor."""
    return torch.normal(torch.zeros(shape, dtype=like.dtype, device=like.device), 1.0)


def rand(shape, like):
    """Uniform numbers in [0, 1) of a shape, with the dtype and device of a tensor."""
    return torch.rand(shape, dtype=like.dtype, device=like.device)


def sum_rightmost(value, dim: int):
    """`value` summed over its last `dim` dimensions."""
    return value if dim == 0 else value.reshape((*value.shape[: value.dim() - dim], -1)).sum(-1)


def filled(like, number, shape=None):
    """A constant of a shape (default: `like`'s), with the dtype and device of `like`."""
    return torch.full(like.shape if shape is None else shape, number, dtype=like.dtype, device=like.device)


def outer_value(x, dims: int):
    """`x` as the first dimension of `dims` more."""
    return x.view((-1,) + (1,) * dims)


def logits_to_probs(logits, is_binary=False):
    """Probabilities from log-odds (`is_binary`), or from unnormalised log-probabilities of the last dimension."""
    return torch.sigmoid(logits) if is_binary else torch.softmax(logits, dim=-1)


def clamp_probs(probs):
    """Probabilities moved off 0 and 1 by the dtype's eps."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary=False):
    """Log-odds (`is_binary`), or log-probabilities, finite at 0 and 1."""
    clamped = clamp_probs(probs)
    if is_binary:
        return torch.log(clamped) - torch.log1p(-clamped)
    return torch.log(clamped)


class lazy_property:
    """An attribute computed at its first use, with gradients enabled, and kept in the instance."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)

    def __get__(self, instance, owner=None):
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """What a lazy property is on the class."""

    def __init__(self, wrapped):
        property.__init__(self, wrapped)


def probs_and_logits(is_binary: bool):
    """The lazy attributes `probs` and `logits` of a distribution that was given one of them."""

    def probs(self):
        return logits_to_probs(self.logits, is_binary=is_binary)

    def logits(self):
        return probs_to_logits(self.probs, is_binary=is_binary)

    return lazy_property(probs), lazy_property(logits)


def through(path: str):
    """A property that reads a dotted path of attributes."""
    return property(operator.attrgetter(path))


def either(probs, logits):
    """Raise unless exactly one of the two is given."""
    if (probs is None) == (logits is None):
        raise errors.probs_or_logits()


class ProbsOrLogits:
    """The parameter of a binary outcome, given as its probability or as its log-odds."""

    probs, logits = probs_and_logits(is_binary=True)
    param_shape = through("_param.shape")

    def _take(self, probs, logits, *others):
        """Set the one given, broadcast with `others`, which are returned."""
        either(probs, logits)
        name, given = ("probs", probs) if probs is not None else ("logits", logits)
        *others, given = broadcast_all(*others, given)
        setattr(self, name, given)
        return others

    @property
    def _param(self):
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.logits

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)


def tril_matrix_to_vec(mat, diag=0):
    """The entries on and below diagonal `diag` of square matrices (..., n, n), row by row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows = torch.arange(n, device=mat.device)
    return mat[..., rows < rows.view(n, 1) + (diag + 1)]


def vec_to_tril_matrix(vec, diag=0):
    """Lower triangular matrices (..., n, n) from their entries on and below diagonal `diag`."""
    odd = 1 + 2 * diag
    exact = (-odd + math.sqrt(odd**2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1))) / 2
    if round(exact) - exact > torch.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    n = round(exact)
    mat = torch.zeros((*vec.shape[:-1], n, n), dtype=vec.dtype, device=vec.device)
    rows = torch.arange(n, device=vec.device)
    mat[..., rows < rows.view(n, 1) + (diag + 1)] = vec
    return mat


def _standard_normal(shape, dtype, device):
    """A draw from the standard normal distribution."""
    return torch.normal(torch.zeros(shape, dtype=dtype, device=device), torch.ones(shape, dtype=dtype, device=device))


_sum_rightmost = sum_rightmost  # the name that packages import
