"""Numbers and nested sequences of Python as numpy arrays, in the dtype that PyTorch gives them."""

import operator

import jax
import numpy as np

from . import deprecations, errors_arguments
from .core import dtype as dtypes
from .core import storage as storages
from .tensor import Tensor

_WIDE = {dtypes.BOOL: np.bool_, dtypes.INT: np.int64, dtypes.FLOAT: np.float64, dtypes.COMPLEX: np.complex128}
_TOO_DEEP = 128


def read(data, dtype=None):
    """(numpy array, dtype, whether it came from Python numbers) of whatever `torch.tensor` takes.

    `dtype` is what the numbers will be turned to: ints past int64 are read only where it holds such.
    """
    if isinstance(data, (bool, int, float, complex, np.generic)):
        made, d, python = _numbers((type(data),), [data], dtype)
        return made.reshape(()), d, python
    if isinstance(data, np.ndarray):
        return data, dtypes.of(data.dtype), False
    if isinstance(data, jax.Array):
        return np.asarray(data), dtypes.of(data.dtype), False
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if _is_sequence(data) and not hasattr(data, "__array__"):
        return _read_sequence(data, dtype)
    if hasattr(data, "__array__"):
        array = np.asarray(data)
        return array, dtypes.of(array.dtype), False
    if hasattr(data, "__index__"):
        return np.array(operator.index(data)), dtypes.int64, True
    raise _no_number(type(data), dtype)


def _no_number(kind, dtype):
    """Of what is no number: what Python says where the dtype is known."""
    dtype = dtypes.PYTHON.get(dtype) if type(dtype) is type else dtype
    if dtype is None:
        return RuntimeError(f"Could not infer dtype of {kind.__name__}")
    if dtype.category <= dtypes.INT:
        return TypeError(f"'{kind.__name__}' object cannot be interpreted as an integer")
    return TypeError(f"must be real number, not {kind.__name__}")


def _is_sequence(x):
    if isinstance(x, (list, tuple)):
        return True
    return hasattr(x, "__len__") and hasattr(x, "__getitem__") and not isinstance(x, (dict, Tensor, np.generic))


def _read_sequence(data, dtype):
    size, first = [], data
    while _is_sequence(first) and not (isinstance(first, np.ndarray) and first.ndim == 0):
        size.append(len(first))
        if not size[-1]:
            break
        if len(size) > _TOO_DEEP or isinstance(first, str):
            raise ValueError(f"too many dimensions '{type(first).__name__}'")
        first = first[0]
        if isinstance(first, np.ndarray) and len(size) == 1:
            deprecations.say("arrays")
    flat, kinds = [], set()
    _flatten(data, 0, size, flat, kinds)
    made, d, python = _numbers(kinds, flat, dtype)
    return made.reshape(size), d, python


def _flatten(data, dim, size, flat, kinds):
    """Append the leaves of `data`, and the kinds of numbers among them: types, and dtypes of arrays."""
    if not _is_sequence(data):
        raise TypeError("not a sequence")
    if len(data) != size[dim]:
        raise ValueError(f"expected sequence of length {size[dim]} at dim {dim} (got {len(data)})")
    if isinstance(data, np.ndarray):
        kinds.add(dtypes.of(data.dtype))
        if list(data.shape) != size[dim:]:
            raise ValueError(f"expected sequence of length {size[-1]} at dim {len(size) - 1} (got {data.shape[-1]})")
        flat.extend(data.reshape(-1).tolist())
    elif dim == len(size) - 1:
        items = list(data)
        found = set(map(type, items))
        if any(issubclass(t, (Tensor, np.ndarray, jax.Array)) for t in found):
            items = [_leaf(x, kinds) for x in items]
            found = {t for t in found if not issubclass(t, (Tensor, np.ndarray, jax.Array))}
        kinds |= found
        flat.extend(items)
    else:
        for x in data:
            _flatten(x, dim + 1, size, flat, kinds)


def _leaf(x, kinds):
    """A tensor or array among numbers counts as its one element."""
    if isinstance(x, Tensor):
        kinds.add(x._spec.dtype)
        x = storages.numpy_of(x._storage, x._spec, x._offset)
    elif isinstance(x, (np.ndarray, jax.Array)):
        kinds.add(dtypes.of(x.dtype))
    else:
        return x
    if x.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return x.item()


def _numbers(kinds, flat, dtype):
    """(1-D array, dtype, whether all are numbers that must fit) of numbers of these kinds (types, and dtypes of arrays)."""
    found = None
    for kind in kinds:
        d = kind if isinstance(kind, dtypes.dtype) else _dtype_of_type(kind, dtype)
        found = d if found is None else dtypes.promote(found, d)
    if found is None:
        found = dtypes.default.dtype
    dtype = dtypes.PYTHON.get(dtype) if type(dtype) is type else dtype
    python = np.complex64 not in kinds  # which numpy turns to a real number, with a warning
    if isinstance(dtype, dtypes.dtype) and dtype.category <= dtypes.INT:
        for kind in kinds:
            if not isinstance(kind, dtypes.dtype) and _no_integer(kind, dtype):
                raise TypeError(f"'{kind.__module__}.{kind.__name__}' object cannot be interpreted as an integer")
    wide = np.uint64 if found is dtypes.uint64 else _WIDE[found.category]
    try:
        return np.array(flat, wide), found, python
    except OverflowError:
        if dtype is dtypes.bool_:
            return np.array([bool(x) for x in flat]), found, python
        if dtype is None or (dtype.category <= dtypes.INT and dtype is not dtypes.uint64):
            raise errors_arguments.overflow() from None
    return np.array(flat, np.uint64 if dtype is dtypes.uint64 else _WIDE[dtype.category]), found, python


def _no_integer(kind, dtype):
    """Whether a type is one of numpy's numbers that are neither integers nor Python's own."""
    if not issubclass(kind, np.generic) or issubclass(kind, (np.integer, float, complex)):
        return False
    return dtype is not dtypes.bool_ or not issubclass(kind, np.bool_)


def _dtype_of_type(kind, dtype):
    if issubclass(kind, np.generic):
        return dtypes.of(kind)
    for base, d in (
        (bool, dtypes.bool_),
        (int, dtypes.int64),
        (float, dtypes.default.dtype),
        (complex, dtypes.default.complex),
    ):
        if issubclass(kind, base):
            return d
    if issubclass(kind, (list, tuple)):
        raise TypeError(f"'{kind.__name__}' object cannot be interpreted as an integer")
    if hasattr(kind, "__index__"):
        return dtypes.int64
    if issubclass(kind, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'")
    raise _no_number(kind, dtype)


def convert(array, d, python):
    """A private copy of a numpy array in a dtype; `python`: of numbers, which must fit."""
    if array.dtype == d.memory:
        return np.array(array, copy=True, order="C")
    if python and array.size:
        _check_fits(array, d)
    with np.errstate(all="ignore"):
        if d is dtypes.float8_e4m3fn and array.dtype.kind != "b":  # no infinity: PyTorch takes the largest number
            array = np.clip(array, -448, 448)
        if d is dtypes.float8_e8m0fnu:
            return dtypes.power_codes(array.astype(np.float32).view(np.uint32)).astype(np.uint8).view(d.np)
        return dtypes.held(array, d)


def _check_fits(array, d):
    kind = array.dtype.kind
    if kind == "c" and not d.is_complex and d is not dtypes.bool_:
        raise TypeError("must be real number, not complex")
    if d.category != dtypes.INT or kind not in "if":
        return
    info = np.iinfo(d.np)
    low = info.min if d.is_signed else -int(info.max)  # a negative number wraps around, as in C
    if kind == "f":
        fits = bool(((array >= low) & (array <= info.max)).all())
    else:
        fits = int(array.min()) >= low and int(array.max()) <= info.max
    if not fits:
        raise RuntimeError(f"value cannot be converted to type {d.name} without overflow")
