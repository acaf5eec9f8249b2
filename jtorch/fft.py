"""torch.fft: the functions of the op table, and the frequencies that belong to their results."""

from . import creation, errors, errors_nn, functions
from .core import dtype as dtypes
from .tensor import Tensor as Tensor

__all__ = sorted({"fftfreq", "rfftfreq", *functions.names("fft")})


def _frequencies(name, n, bins, d, dtype, device, requires_grad, out):
    if dtype is None:
        dtype = dtypes.default.dtype if out is None else out.dtype
    if bins is not None and bins < 0:
        raise errors_nn.negative_size((bins,), (bins,))
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    if dtype.is_complex:
        raise errors.not_implemented("arange_cpu", dtype)
    return creation.factory(f"fft_{name}", (n, d), dtype, device, requires_grad, out)


def fftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of the n bins of `fft`, at sample spacing `d`."""
    return _frequencies("fftfreq", n, n if isinstance(n, int) else None, d, dtype, device, requires_grad, out)


def rfftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of the bins of `rfft`, at sample spacing `d`."""
    return _frequencies(
        "rfftfreq", n, int(n / 2) + 1 if isinstance(n, int) else None, d, dtype, device, requires_grad, out
    )


__getattr__, __dir__ = functions.module_attributes("fft", globals())
