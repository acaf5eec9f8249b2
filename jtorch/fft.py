"""torch.fft: the functions of the op table, and the frequencies that belong to their results."""

from . import creation, errors, errors_nn, functions
from .tensor import Tensor as Tensor

__all__ = sorted({"fftfreq", "rfftfreq", *functions.names("fft")})


def _frequencies(name, n, bins_of, d, dtype, device, requires_grad, out):
    if isinstance(n, (bool, float)):
        raise errors.argument(f"fft_{name}", "n", "int", n, 1)
    if isinstance(d, complex):
        raise errors.argument(f"fft_{name}", "d", "float", d, 2)
    creation.check_out(f"fft_{name}", dtype, out)
    dtype = creation.dtype_or_default(dtype, None if out is None else out.dtype, f"fft_{name}")
    bins = bins_of(n) if isinstance(n, int) else 0
    if bins < 0:
        raise errors_nn.negative_size((bins,), (bins,))
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    if dtype.is_complex:
        raise errors.not_implemented("arange_cpu", dtype)
    return creation.factory(f"fft_{name}", (n, d), dtype, device, requires_grad, out)


def fftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """The frequencies of the n bins of `fft`, at sample spacing `d`."""
    return _frequencies("fftfreq", n, int, d, dtype, device, requires_grad, out)


def rfftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """The frequencies of the bins of `rfft`, at sample spacing `d`."""
    return _frequencies("rfftfreq", n, lambda n: int(n / 2) + 1, d, dtype, device, requires_grad, out)


__getattr__, __dir__ = functions.module_attributes("fft", globals())
