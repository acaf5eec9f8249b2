"""torch.finfo and torch.iinfo: what a dtype can hold."""

import math

import jax
import numpy as np

from . import errors
from .core import dtype as dtypes
from .core.dtype import dtype as DType

__all__ = ["finfo", "iinfo"]


def _of_python(kind):
    """float, int, bool and complex as dtypes; anything else as it is."""
    return dtypes.PYTHON.get(kind, kind) if isinstance(kind, type) else kind


_DEFAULT = object()


class _Limits:
    """What a dtype can hold: constants, equal where the dtypes are."""

    def __eq__(self, other):
        return self.dtype == other.dtype if type(self) is type(other) else NotImplemented

    def __hash__(self):
        raise TypeError(f"unhashable type: 'torch.{type(self).__name__}'")

    def __setattr__(self, name, value):
        if name not in self.__dict__:
            raise AttributeError(f"'torch.{type(self).__name__}' object has no attribute '{name}'")
        raise AttributeError(f"attribute '{name}' of 'torch.{type(self).__name__}' objects is not writable")


class finfo(_Limits):
    """Limits of a float dtype: bits, eps, max, min, tiny, smallest_normal, resolution."""

    def __init__(self, type=_DEFAULT):
        d = dtypes.default.dtype if type is _DEFAULT else _of_python(type)
        if not isinstance(d, DType):
            raise errors.argument("finfo", "type", "torch.dtype", d, 1)
        if not (d.is_floating_point or d.is_complex):
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        d = d.to_real()
        import_info = _float_info(d)
        eps = 0.125 if d.name == "float8_e5m2fnuz" else float(import_info.eps)  # PyTorch's own number there
        tiny = float(import_info.smallest_normal)
        self.__dict__.update(
            bits=d.itemsize * 8,
            eps=eps,
            max=float(import_info.max),
            min=float(import_info.min),
            tiny=tiny,
            smallest_normal=tiny,
            resolution=float(10 ** -int(-math.log10(eps))) if d.itemsize > 1 else 1.0,
            dtype=d.name,
        )

    def __repr__(self):
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


def _float_info(d):
    return jax.numpy.finfo(d.np)


class iinfo(_Limits):
    """Limits of an integer dtype: bits, max, min."""

    def __init__(self, type):
        type = _of_python(type)
        if not isinstance(type, DType):
            raise errors.argument("iinfo", "type", "torch.dtype", type, 1)
        if type is dtypes.bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if type.category != dtypes.INT:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        info = np.iinfo(type.np)
        self.__dict__.update(bits=info.bits, max=int(info.max), min=int(info.min), dtype=type.name)

    def __repr__(self):
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
