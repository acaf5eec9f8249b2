"""assert_close: whether two results are the same up to rounding, in containers too."""

import collections.abc
import numbers
import warnings

import numpy as np

from ..core import dtype as dtypes
from ..creation import as_tensor, strided
from ..tensor import Tensor

_DEFAULTS = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip


class _Options:
    """What assert_close was asked for."""

    def __init__(self, rtol, atol, equal_nan, **checks):
        if (rtol is None) ^ (atol is None):
            missing = "rtol" if rtol is None else "atol"
            raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
        self.rtol, self.atol, self.equal_nan = rtol, atol, equal_nan
        self.__dict__.update(checks)

    def tolerances(self, *kinds):
        """(rtol, atol) for these dtypes: the largest of their defaults where none was given."""
        if self.rtol is not None:
            return self.rtol, self.atol
        found = [_DEFAULTS.get(str(k).rpartition(".")[2], (0.0, 0.0)) for k in kinds]
        return max(r for r, _ in found), max(a for _, a in found)


class _Different(Exception):
    def __init__(self, kind, message, at=()):
        self.kind, self.message, self.at = kind, message, at


def assert_close(
    actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True, check_dtype=True,
    check_layout=True, check_stride=False, msg=None,
) -> None:  # fmt: skip
    """Raise AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere.

    Args:
        actual, expected: tensors, numbers, numpy arrays, or sequences and mappings of them
        rtol, atol: both or none. Default: by dtype, see the page below; integers must be equal
        equal_nan: NaN equals NaN
        msg: the words of the error, or a function of the usual ones

    Raises ValueError where only one tolerance is given, TypeError where something cannot be compared.
    Source: https://docs.pytorch.org/docs/stable/testing.html
    """
    options = _Options(
        rtol, atol, equal_nan, device=check_device, dtype=check_dtype, layout=check_layout, stride=check_stride,
        subclasses=allow_subclasses,
    )  # fmt: skip
    try:
        _compare(actual, expected, options, ())
    except _Different as found:
        words = found.message
        if found.at:
            words += "\n\nThe failure occurred for item " + "".join(f"[{a!r}]" for a in found.at)
        words = msg(words) if callable(msg) else words if msg is None else msg
        raise found.kind(words) from None


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg="") -> None:
    """Deprecated by PyTorch: assert_close without checks of device, dtype and stride."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. "
        "Please use `torch.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=2,
    )
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False, check_stride=False,
        msg=msg or None,
    )  # fmt: skip


def _compare(a, b, options, at):
    plain = (Tensor, np.ndarray, str, numbers.Number)
    if isinstance(b, collections.abc.Mapping) and isinstance(a, collections.abc.Mapping):
        _compare_mappings(a, b, options, at)
    elif (
        isinstance(a, collections.abc.Sequence) and isinstance(b, collections.abc.Sequence) and not isinstance(a, plain)
    ):
        if len(a) != len(b):
            raise _Different(AssertionError, f"The length of the sequences mismatch: {len(a)} != {len(b)}", at)
        for i, (x, y) in enumerate(zip(a, b)):
            _compare(x, y, options, (*at, i))
    elif a is None or b is None:
        if a is not b:
            raise _Different(AssertionError, f"None mismatch: {a} is not {b}", at)
    elif _is_number(a) and _is_number(b):
        _compare_numbers(a, b, options, at)
    elif isinstance(a, bool) and isinstance(b, bool):
        if a is not b:
            raise _Different(AssertionError, f"Booleans mismatch: {a} is not {b}", at)
    else:
        related = isinstance(a, type(b)) or isinstance(b, type(a))
        if type(a) is not type(b) and not (options.subclasses and related):
            _refuse(a, b, at)
        try:
            x, y = (t if isinstance(t, Tensor) else as_tensor(t) for t in (a, b))
        except Exception:
            _refuse(a, b, at)
        _compare_tensors(x, y, options, at)


def _is_number(x):
    return isinstance(x, (numbers.Number, np.number)) and not isinstance(x, (bool, np.bool_))


def _refuse(a, b, at):
    raise _Different(TypeError, f"No comparison pair was able to handle inputs of type {type(a)} and {type(b)}.", at)


def _compare_mappings(a, b, options, at):
    missing, extra = [k for k in b if k not in a], [k for k in a if k not in b]
    if missing or extra:
        words = "The keys of the mappings do not match:"
        if missing:
            words += f"\nMissing keys in the actual mapping: {sorted(missing, key=repr)}"
        if extra:
            words += f"\nAdditional keys in the actual mapping: {sorted(extra, key=repr)}"
        raise _Different(AssertionError, words, at)
    for key in sorted(a, key=repr):
        _compare(a[key], b[key], options, (*at, key))


def _compare_numbers(a, b, options, at):
    kinds = [
        dtypes.complex128 if isinstance(x, complex) else dtypes.int64 if isinstance(x, int) else dtypes.float64
        for x in (a, b)
    ]
    rtol, atol = options.tolerances(*kinds)
    if options.dtype and type(a) is not type(b) and kinds[0] is not kinds[1]:
        raise _Different(AssertionError, f"The (d)types do not match: {type(a)} != {type(b)}.", at)
    if a == b or (options.equal_nan and a != a and b != b):
        return
    distance = abs(a - b)
    if np.isfinite(distance) and distance <= atol + rtol * abs(b):
        return
    _raise_scalars(a, b, rtol, atol, at)


def _raise_scalars(a, b, rtol, atol, at):
    word, allowed = ("equal", (0, 0)) if rtol == atol == 0 else ("close", (rtol, atol))
    raise _Different(
        AssertionError,
        f"Scalars are not {word}!\n\nExpected {b} but got {a}." + _distances(abs(a - b), b, *allowed),
        at,
    )


def _distances(distance, b, rtol, atol):
    relative = distance / abs(b) if b else float("inf")
    allowed = lambda t: f" (up to {t} allowed)" if t else ""
    return f"\nAbsolute difference: {distance}{allowed(atol)}\nRelative difference: {relative}{allowed(rtol)}"


_ATTRIBUTES = ("layout", "device", "dtype")


def _compare_tensors(a, b, options, at):
    if a.shape != b.shape:
        raise _Different(AssertionError, _attribute("shape", a.shape, b.shape), at)
    for name in _ATTRIBUTES:
        if getattr(options, name) and getattr(a, name) != getattr(b, name):
            raise _Different(AssertionError, _attribute(name, getattr(a, name), getattr(b, name)), at)
    if options.stride and a.stride() != b.stride():
        raise _Different(AssertionError, _attribute("stride()", a.stride(), b.stride()), at)
    if a.is_meta or b.is_meta:  # no values
        return
    rtol, atol = options.tolerances(a.dtype, b.dtype)
    if a.layout is not strided or b.layout is not strided:
        if a.layout is b.layout:
            _compare_sparse(a, b, rtol, atol, options.equal_nan, at)
            return
        a, b = a.to_dense(), b.to_dense()
    _compare_values(a, b, rtol, atol, options.equal_nan, at)


# What a sparse tensor is made of, in the order in which it is compared.
_PARTS = {
    "coo": ("_indices", "_values"), "csr": ("crow_indices", "col_indices", "values"), "csc": ("ccol_indices", "row_indices", "values"),
    "bsr": ("crow_indices", "col_indices", "values"), "bsc": ("ccol_indices", "row_indices", "values"),
}  # fmt: skip


def _compare_sparse(a, b, rtol, atol, equal_nan, at):
    kind = a.layout.name.removeprefix("sparse_")
    name = f"parse {kind.upper()}"
    if a._nnz() != b._nnz():
        raise _Different(
            AssertionError,
            f"The number of specified values in s{name} tensors does not match: {a._nnz()} != {b._nnz()}",
            at,
        )
    for part in _PARTS[kind]:
        x, y = getattr(a, part)(), getattr(b, part)()
        _compare_values(
            x, y, *((rtol, atol) if "val" in part else (0.0, 0.0)), equal_nan, at, f"S{name} {part.strip('_')}"
        )


def _compare_values(a, b, rtol, atol, equal_nan, at, what="Tensor-likes"):
    x, y = _wide(a), _wide(b)
    with np.errstate(all="ignore"):
        distance = np.abs(x - y) if x.dtype != bool else (x != y).astype(np.int64)
        close = (x == y) | (np.isfinite(distance) & (distance <= atol + rtol * np.abs(y)) if rtol or atol else False)
        if equal_nan:
            close = close | ((x != x) & (y != y))
        if not np.all(close):
            if x.ndim == 0:
                _raise_scalars(x.item(), y.item(), rtol, atol, at)
            relative = distance / np.abs(y)
            if a.dtype is b.dtype and (a.dtype.is_floating_point or a.dtype.is_complex) and a.dtype.itemsize > 1:
                apart = (a.detach() - b.detach()).abs()  # rounded as their dtype does
                distance, relative = _wide(apart), _wide(apart / b.detach().abs())
            elif not a.dtype.is_floating_point:
                relative = relative.astype(np.float32)
            relative = np.where(close, 0, relative)
            words = _report(np.where(close, 0, distance), relative, ~close, rtol, atol, what)
            raise _Different(AssertionError, words, at)


def _wide(t):
    t = t.detach()
    if t.dtype.is_complex:
        return t.cpu().to(dtypes.complex128).numpy()
    if t.dtype.is_floating_point:
        return t.cpu().to(dtypes.float64).numpy()
    return t.cpu().numpy() if t.dtype is dtypes.bool_ else t.cpu().to(dtypes.int64).numpy()


def _attribute(name, x, y):
    return f"The values for attribute '{name}' do not match: {x} != {y}."


def _report(distance, relative, wrong, rtol, atol, what):
    total, bad = wrong.size, int(wrong.sum())
    equality = not (rtol or atol)
    lines = [
        f"{what} are not {'equal' if equality else 'close'}!",
        "",
        f"Mismatched elements: {bad} / {total} ({bad / total:.1%})",
    ]
    for word, values, bound in (("absolute", distance, atol), ("relative", relative, rtol)):
        values = np.where(wrong, values, -1)
        place = np.unravel_index(int(np.nanargmax(np.where(np.isnan(values), np.inf, values))), values.shape)
        where = f" at index {tuple(int(i) for i in place)}" if values.ndim else ""
        value = values[place].item()
        lines.append(f"Greatest {word} difference: {value}{where}" + ("" if equality else f" (up to {bound} allowed)"))
    return "\n".join(lines)
