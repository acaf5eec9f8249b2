"""Window functions as torch spells them: torch.hann_window and its like, and those of torch.signal.windows."""

import functools

from . import errors
from .core import dtype as dtypes
from .creation import dtype_or_default, factory
from .ops import windows as table

# torch.<name>_window -> (op, its parameters beside the length and the period, with defaults)
_PERIODIC = {
    "bartlett": {},
    "blackman": {},
    "hamming": {"alpha": 0.54, "beta": 0.46},
    "hann": {},
    "kaiser": {"beta": 12.0},
}


def _old_style(name, shape):
    def window(window_length, periodic=True, *args, dtype=None, layout=None, device=None, requires_grad=False, **given):
        if isinstance(window_length, (bool, float)):
            raise errors.argument(f"{name}_window", "window_length", "int", window_length, 1)
        if window_length < 0:
            raise RuntimeError(f"{name}_window requires non-negative window_length, got window_length={window_length}")
        kind = dtype_or_default(dtype, name=f"{name}_window")
        if not kind.is_floating_point and not kind.is_complex:
            raise RuntimeError(f"{name}_window expects floating point dtypes, got: {dtypes.scalar_name(kind)}")
        if kind.is_complex and window_length > 1:
            raise errors.not_implemented("arange_cpu", kind)
        values = shape | dict(zip(shape, args)) | given
        values.pop("pin_memory", None)
        wide = kind if kind.is_floating_point else dtypes.float64
        sym = not periodic
        made = factory(table.WINDOWS[name].name, (window_length,), wide, device, False, None, sym=sym, **values)
        return (made if wide is kind else made.to(kind)).requires_grad_(requires_grad)

    window.__name__ = window.__qualname__ = f"{name}_window"
    window.__doc__ = f"The {name.capitalize()} window of a length; periodic: as one longer, its last value left out."
    return window


PERIODIC = {f"{name}_window": _old_style(name, shape) for name, shape in _PERIODIC.items()}


def _signal(name, record):
    @functools.wraps(record.fn)
    def window(M, *args, dtype=None, layout=None, device=None, requires_grad=False, **given):
        if layout is not None and str(layout) != "torch.strided":
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        kind = dtypes.default.dtype if dtype is None else dtype
        if kind not in (dtypes.float32, dtypes.float64):
            raise ValueError(f"{table.FAMILY.get(name, name)} expects float32 or float64 dtypes, got: {kind}")
        return factory(record.name, (M, *args), kind, device, requires_grad, None, **given)

    window.__name__ = window.__qualname__ = name
    del window.__wrapped__
    return window


SIGNAL = {name: _signal(name, record) for name, record in table.WINDOWS.items()}
