"""Tensors as text, the way PyTorch prints them. Knows numpy arrays and names; never Tensor."""

import contextlib
import dataclasses
import math
from collections.abc import Callable

import numpy as np

from .core import dtype as dtypes


@dataclasses.dataclass
class Options:
    """The settings of `set_printoptions`."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


options = Options()

_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Change how tensors are printed; what is None stays as it is, but for `sci_mode`.

    Args:
        precision: digits after the point of a float. Default: 4
        threshold: tensors of more elements than this are summarised. Default: 1000
        edgeitems: elements kept at each end of a summarised dimension. Default: 3
        linewidth: characters on a line. Default: 80
        profile: "default", "short" or "full", settings to start from
        sci_mode: scientific notation: True, False, or None to decide by the values. Default: None
    """
    changes = dict(_PROFILES.get(profile, {}))
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes.update({name: value for name, value in given.items() if value is not None})
    for name, value in changes.items():
        setattr(options, name, value)
    options.sci_mode = sci_mode


def get_printoptions() -> dict:
    """The settings in force, as arguments for `set_printoptions`."""
    return dataclasses.asdict(options)


@contextlib.contextmanager
def printoptions(**changes):
    """`set_printoptions` inside a `with` block."""
    before = get_printoptions()
    set_printoptions(**changes)
    try:
        yield
    finally:
        set_printoptions(**before)


def summary(shape) -> tuple[np.ndarray, ...] | None:
    """The indices that a summarised print shows, for each dimension; None when all is shown.

    A caller that holds a large array elsewhere fetches `array[np.ix_(*summary(shape))]` and prints that.
    """
    if math.prod(shape) <= options.threshold:
        return None
    n = options.edgeitems
    return tuple(np.r_[0:n, size - n : size].astype(np.intp) if size > 2 * n else np.arange(size) for size in shape)


def format_tensor(
    array: np.ndarray | None,
    *,
    dtype: dtypes.dtype,
    shape: tuple[int, ...] | None = None,
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    device: str | None = None,
    class_name: str = "tensor",
    tangent: str | None = None,
    contents: str | None = None,
) -> str:
    """The repr of a tensor.

    Args:
        array: the values, or those that `summary(shape)` picks; None for a tensor without any (meta)
        dtype: the tensor's dtype
        shape: the tensor's shape. Default: the array's
        requires_grad: whether it does, for a leaf
        grad_fn_name: the name of the node that computed it
        device: the device's name if it is not the default one
        class_name: another name for a subclass of Tensor
        tangent: the printed tangent of a dual tensor
        contents: what to print for the values
    """
    shape = tuple(array.shape if shape is None else shape)
    indent = len(class_name) + 1
    empty = array is None or math.prod(shape) == 0
    notes = [f"device='{device}'"] if device is not None else []
    if array is None or (empty and len(shape) != 1) or (not empty and not options.edgeitems):
        notes.append(f"size={shape}")
    if dtype is not dtypes.default.dtype and (empty or not is_usual(dtype)):
        notes.append(f"dtype={dtype}")
    if grad_fn_name is not None:
        notes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        notes.append("requires_grad=True")
    if tangent is not None:
        notes.append(f"tangent={tangent}")
    body = contents if contents is not None else "..." if array is None else format_values(array, shape, indent)
    return with_notes(f"{class_name}({body}", notes, indent)


def is_usual(dtype) -> bool:
    """Whether literals of this kind give this dtype, so that printing it tells nothing."""
    wide = dtypes.default.dtype is dtypes.float64
    return dtype in (dtypes.int64, dtypes.bool_, dtypes.complex128 if wide else dtypes.complex64)


def with_notes(text: str, notes: list[str], indent: int, apart: bool = False) -> str:
    """`text` and the notes after it, on a new line where one would reach past the line's width, or with `apart`."""
    column = len(text) - text.rfind("\n") + 1
    for note in notes:
        if apart or column + len(note) + 2 > options.linewidth:
            text += ",\n" + " " * indent + note
            column = indent + len(note)
            apart = False
        else:
            text += ", " + note
            column += len(note) + 2
    return text + ")"


def format_values(array: np.ndarray, shape: tuple[int, ...], indent: int = 0) -> str:
    """The nested brackets of a tensor, as they stand after `indent` characters."""
    if math.prod(shape) == 0:
        return "[]"
    shown = summary(shape)
    if shown and not options.edgeitems:
        return "[...]"
    if shown is not None and array.shape == shape:
        array = array[np.ix_(*shown)]
    cut = tuple(shown is not None and size > 2 * options.edgeitems for size in shape)
    if array.dtype.kind == "c":
        cell, width = _complex_cell(array)
    else:
        array = _plain(array)
        cell, width = _cell(array)
    if not shape:
        return cell(array.item())
    per_line = max(1, math.floor((options.linewidth - indent - len(shape) + 1) / (width + 2)))
    return _brackets(array, cell, cut, per_line, indent)


def _plain(array: np.ndarray) -> np.ndarray:
    """The same values in a type that numpy knows by itself."""
    return array if array.dtype.kind in "biuf" else array.astype(np.float32)


def _brackets(array, cell: Callable, cut: tuple[bool, ...], per_line: int, indent: int) -> str:
    indent += 1
    if array.ndim == 1:
        items = [cell(x) for x in array.tolist()]
        if cut[0]:
            items.insert(options.edgeitems, " ...")
        lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * indent).join(lines) + "]"
    items = [_brackets(part, cell, cut[1:], per_line, indent) for part in array]
    if cut[0]:
        items.insert(options.edgeitems, "...")
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * indent).join(items) + "]"


def _cell(array: np.ndarray) -> tuple[Callable, int]:
    """How to print one element so that all have one width, and that width."""
    if array.dtype.kind != "f":
        width = max(len(str(x)) for x in array.ravel().tolist())
        return lambda x: str(x).rjust(width), width
    values = array[np.isfinite(array) & (array != 0)].astype(np.float64)
    precision = options.precision
    if not values.size:
        return _whole(1), 1
    if _is_scientific(np.abs(values)):
        spec, whole = f".{precision}e", False
    else:
        whole = bool((values == np.ceil(values)).all())
        spec = ".0f" if whole else f".{precision}f"
    width = max(1, whole + max(len(format(x, spec)) for x in values.tolist()))
    return _whole(width) if whole else lambda x: format(x, spec).rjust(width), width


def _is_scientific(magnitudes: np.ndarray) -> bool:
    if options.sci_mode is not None:
        return options.sci_mode
    low, high = magnitudes.min(), magnitudes.max()
    with np.errstate(over="ignore"):
        return bool(high / low > 1000.0 or high > 1e8 or low < 1e-4)


def _whole(width: int) -> Callable:
    """Floats without a fraction: a point stands for it."""
    return lambda x: (f"{x:.0f}." if math.isfinite(x) else f"{x:.0f}").rjust(width)


def _complex_cell(array: np.ndarray) -> tuple[Callable, int]:
    real, real_width = _cell(np.ascontiguousarray(array.real))
    imag, imag_width = _cell(np.ascontiguousarray(array.imag))

    def cell(x: complex) -> str:
        second = imag(x.imag).lstrip() + "j"
        return real(x.real) + ("" if second[0] == "-" else "+") + second

    return cell, real_width + imag_width + 1
