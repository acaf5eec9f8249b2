"""torch.fft: the functions of the op table, and the frequencies that belong to their results."""

from . import creation, functions
from .core import dtype as dtypes
from .tensor import Tensor as Tensor

__all__ = sorted({"fftfreq", "rfftfreq", *functions.names("fft")})


def _frequencies(record, n, d, dtype, device, requires_grad, out):
    if dtype is None:
        dtype = dtypes.default.dtype if out is None else out.dtype
    return creation.factory(record, (n, d), dtype, device, requires_grad, out)


def fftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of the n bins of `fft`, at sample spacing `d`."""
    return _frequencies("fft_fftfreq", n, d, dtype, device, requires_grad, out)


def rfftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of the bins of `rfft`, at sample spacing `d`."""
    return _frequencies("fft_rfftfreq", n, d, dtype, device, requires_grad, out)


__getattr__, __dir__ = functions.module_attributes("fft", globals())
