"""What numpy does for jax's primitives, up to rounding: a rule takes an equation and gives a function of arrays.

Raises NotHere, from the rule or from the function, for what numpy does otherwise. The rules in `SAME` give the same bits as XLA, but for
sums, which every compiler adds up in its own order.
"""

import ml_dtypes
import numpy as np

from .numpy_windows import NotHere, conv, gather, put, scatter, size, windows

FEW = 1024  # elements that are copied in the time that numpy takes to broadcast without a copy
MOST_DIMENSIONS = 64  # of numpy's arrays
COMPLEX = {np.dtype(np.complex64), np.dtype(np.complex128)}
SHORT = {np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)}
DTYPES = {np.dtype(t) for t in "?bBhHiIqQfd"} | COMPLEX | SHORT


def _plain(function):
    return lambda eqn: function


def _floats(function):
    """Of integers, a function that has another idea than numpy of what has no answer."""

    def rule(eqn):
        if eqn.invars[0].aval.dtype.kind != "f":
            raise NotHere
        return function

    return rule


def _quotient(x, y):
    """Of integers, towards zero."""
    made = np.floor_divide(x, y)
    return made if x.dtype.kind == "u" else made + ((x < 0) != (y < 0)) * (made * y != x)


def _quotients(whole, function=None):
    """Of integers `whole`, unless they are divided by 0; of floats `function`."""

    def run(x, y):
        if not y.all():
            raise NotHere
        return whole(x, y).astype(x.dtype)

    return lambda eqn: run if eqn.invars[0].aval.dtype.kind in "iu" else _floats(function or whole)(eqn)


def _filled_with_zeros(x, n):
    return np.right_shift(x.view(f"u{x.dtype.itemsize}"), n.view(f"u{n.dtype.itemsize}")).view(x.dtype)


def _shift(function):
    def run(x, n):
        if ((n < 0) | (n >= 8 * x.dtype.itemsize)).any():  # of whose results each has its own idea
            raise NotHere
        return function(x, n)

    return lambda eqn: run


# --- moving elements ---------------------------------------------------------------------------------------------------


def _slice(eqn):
    p = eqn.params
    where = tuple(map(slice, p["start_indices"], p["limit_indices"], p["strides"] or [1] * len(p["start_indices"])))
    return lambda x: x[where]


def _begin(x, sizes, starts):
    """Slices of these sizes, moved where they would leave the array."""
    begins = [min(max(int(s), 0), n - m) for s, n, m in zip(starts, x.shape, sizes)]
    return tuple(slice(b, b + m) for b, m in zip(begins, sizes))


def _dynamic_slice(eqn):
    sizes = eqn.params["slice_sizes"]
    return lambda x, *starts: x[_begin(x, sizes, starts)]


def _dynamic_update_slice(eqn):
    def run(x, value, *starts):
        x = x.copy()
        x[_begin(x, value.shape, starts)] = value
        return x

    return run


def _pad(eqn):
    shape = eqn.outvars[0].aval.shape
    sides = eqn.params["padding_config"]
    if any(low < 0 or high < 0 for low, high, _ in sides):
        raise NotHere

    def run(x, value):
        made = np.full(shape, value, x.dtype)
        made[tuple(slice(low, n - high, between + 1) for n, (low, high, between) in zip(shape, sides))] = x
        return made

    return run


def _broadcast_in_dim(eqn):
    shape, dims = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    sizes = [1] * len(shape)
    for d, n in zip(dims, eqn.invars[0].aval.shape):
        sizes[d] = n
    count = size(shape)
    if count == size(sizes):
        return lambda x: x.reshape(shape)
    if count > FEW:
        return lambda x: np.broadcast_to(x.reshape(sizes), shape)

    def run(x):
        made = np.empty(shape, x.dtype)
        made[...] = x.reshape(sizes)
        return made

    return run


def _iota(eqn):
    shape, dim = eqn.params["shape"], eqn.params["dimension"]
    along = [n if d == dim else 1 for d, n in enumerate(shape)]
    made = np.broadcast_to(np.arange(shape[dim], dtype=eqn.params["dtype"]).reshape(along), shape)
    return lambda: made


def _select_n(eqn):
    if len(eqn.invars) != 3 or eqn.invars[0].aval.dtype != bool:
        raise NotHere
    return lambda which, no, yes: np.where(which, yes, no)


def _squeeze(eqn):
    shape = eqn.outvars[0].aval.shape
    return lambda x: x.reshape(shape)


def _reshape(eqn):
    if eqn.params["dimensions"] is not None:
        raise NotHere
    return _squeeze(eqn)


def cuts(sizes, axis):
    """The functions that take each part of what is split into these sizes."""
    ends = np.cumsum(sizes)
    for end, n in zip(ends, sizes):
        where = (*[slice(None)] * axis, slice(int(end) - n, int(end)))
        yield lambda x, where=where: x[where]


def planes(eqn):
    """The functions that take each part of what is unstacked."""
    axis = eqn.params["axis"]
    for k in range(len(eqn.outvars)):
        where = (*[slice(None)] * axis, k)
        yield lambda x, where=where: x[where]


def _convert(eqn):
    new, old = np.dtype(eqn.params["new_dtype"]), eqn.invars[0].aval.dtype
    if old.kind == "f" and new.kind != "f":  # of what is too large, each has its own idea
        raise NotHere
    return lambda x: x.astype(new)


def _bitcast(eqn):
    new, old = np.dtype(eqn.params["new_dtype"]), eqn.invars[0].aval.dtype
    if new.itemsize != old.itemsize or "b" in (new.kind, old.kind):
        raise NotHere
    return lambda x: np.ascontiguousarray(x).view(new).reshape(x.shape)


def _reduce(function):
    def rule(eqn):
        axes = tuple(eqn.params["axes"])
        if 0 in eqn.invars[0].aval.shape and function.identity is None:
            raise NotHere
        return lambda x: function.reduce(x, axis=axes, dtype=x.dtype)

    return rule


def _complex(eqn):
    shape, dtype = eqn.outvars[0].aval.shape, eqn.outvars[0].aval.dtype

    def run(real, imag):  # a part that is the same everywhere may come without dimensions
        made = np.empty(shape, dtype)
        made.real, made.imag = real, imag
        return made

    return run


SAME = {
    "transpose": lambda eqn: lambda x, order=eqn.params["permutation"]: x.transpose(order),
    "rev": lambda eqn: lambda x, dims=eqn.params["dimensions"]: np.flip(x, dims),
    "concatenate": lambda eqn: lambda *parts, dim=eqn.params["dimension"]: np.concatenate(parts, dim),
    "stack": lambda eqn: lambda *parts, axis=eqn.params["axis"]: np.stack(parts, axis),
    "tile": lambda eqn: lambda x, reps=eqn.params["reps"]: np.tile(x, reps),
    "reshape": _reshape,
    "squeeze": _squeeze,
    "expand_dims": _squeeze,
    "slice": _slice,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "pad": _pad,
    "broadcast_in_dim": _broadcast_in_dim,
    "iota": _iota,
    "select_n": _select_n,
    "convert_element_type": _convert,
    "bitcast_convert_type": _bitcast,
    "real": _plain(np.real),
    "imag": _plain(np.imag),
    "complex": _complex,
    "conj": lambda eqn: lambda x, dtype=eqn.outvars[0].aval.dtype: np.conjugate(x).astype(dtype),
    "div": _quotients(_quotient, np.divide),
    "sqrt": _floats(np.sqrt),
    "reduce_sum": _reduce(np.add),
    "reduce_max": _reduce(np.maximum),
    "reduce_min": _reduce(np.minimum),
    "reduce_and": _reduce(np.bitwise_and),
    "reduce_or": _reduce(np.bitwise_or),
    **{name: _plain(getattr(np, numpys)) for name, numpys in {
        "add": "add", "add_any": "add", "sub": "subtract", "mul": "multiply", "neg": "negative", "max": "maximum", "min": "minimum",
        "abs": "abs", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
        "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "not": "invert", "copy": "asarray", "copy_p": "asarray",
        "square": "square",
    }.items()},
}  # fmt: skip


# --- with other roundings ----------------------------------------------------------------------------------------------


def _to_whole(eqn):
    """Conversions of floats to integers, of those that fit."""
    new, old = np.dtype(eqn.params["new_dtype"]), eqn.invars[0].aval.dtype
    if old.kind != "f" or new.kind == "f":
        return _convert(eqn)
    if new.kind == "b":
        return lambda x: x != 0
    most = float(2 ** (8 * new.itemsize - 1 - (new.itemsize == 8)))

    def run(x):
        if not (np.abs(x) < most).all() or new.kind == "u" and (x < 0).any():
            raise NotHere
        return x.astype(new)

    return run


def _wide(function):
    """Of float32 by way of float64: numpy's own are off by a bit in up to four of ten numbers, PyTorch's in one of a hundred."""
    return _floats(lambda x: function(x, dtype=np.float64).astype(x.dtype))


def _logistic(x):
    return 1 / (1 + np.exp(-x, dtype=np.float64).astype(x.dtype))


def _round(eqn):
    if int(eqn.params["rounding_method"]) == 1:
        return np.rint

    def away(x):
        whole = np.trunc(x)
        return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)

    return away


def _scipys(name):
    def rule(eqn):
        if eqn.invars[0].aval.dtype.kind != "f":
            raise NotHere
        from scipy import special  # noqa: PLC0415  jax needs scipy, but its import takes 0.1 s

        return getattr(special, name)

    return rule


def _lgamma(eqn):
    """scipy's, but for -inf, where it has -inf and XLA inf."""
    fn = _scipys("gammaln")(eqn)
    return lambda x: np.where(x == -np.inf, np.asarray(np.inf, x.dtype), fn(x))


def _integer_pow(eqn):
    y = eqn.params["y"]
    return lambda x: np.power(x, np.asarray(y, x.dtype)) if y >= 0 else 1 / np.power(x, np.asarray(-y, x.dtype))


def _dot_general(eqn):
    (left, right), (left_batch, right_batch) = eqn.params["dimension_numbers"]
    a, b, made = eqn.invars[0].aval, eqn.invars[1].aval, eqn.outvars[0].aval
    if not a.dtype == b.dtype == made.dtype or a.dtype.kind == "b":
        raise NotHere
    if a.ndim == b.ndim == 2 and len(left) == 1 and not left_batch:
        if left == (1,):
            return (lambda x, y: x.dot(y)) if right == (0,) else (lambda x, y: x.dot(y.T))
        return (lambda x, y: x.T.dot(y)) if right == (0,) else (lambda x, y: x.T.dot(y.T))
    free = [d for d in range(a.ndim) if d not in (*left, *left_batch)]
    others = [d for d in range(b.ndim) if d not in (*right, *right_batch)]
    batch = [a.shape[d] for d in left_batch]
    n = int(np.prod([a.shape[d] for d in left], dtype=int))
    order_a, shape_a = (*left_batch, *free, *left), (*batch, -1 if n * size(batch) else _sizes(a, free), n)
    order_b, shape_b = (*right_batch, *right, *others), (*batch, n, -1 if n * size(batch) else _sizes(b, others))
    shape = made.shape
    return lambda x, y: np.matmul(x.transpose(order_a).reshape(shape_a), y.transpose(order_b).reshape(shape_b)).reshape(
        shape
    )


def _sizes(aval, dims) -> int:
    return size([aval.shape[d] for d in dims])


def _arg(function):
    def rule(eqn):
        [axis] = eqn.params["axes"]
        dtype = eqn.params["index_dtype"]
        return lambda x: function(x, axis).astype(dtype)

    return rule


def _cumulative(function):
    def rule(eqn):
        axis, reverse = eqn.params["axis"], eqn.params["reverse"]
        turned = (*[slice(None)] * axis, slice(None, None, -1))
        if reverse:
            return lambda x: function.accumulate(x[turned], axis, x.dtype)[turned]
        return lambda x: function.accumulate(x, axis, x.dtype)

    return rule


def _fft(eqn):
    name = ("fftn", "ifftn", "rfftn", "irfftn")[int(eqn.params["fft_type"])]
    lengths, dtype = eqn.params["fft_lengths"], eqn.outvars[0].aval.dtype
    transform, axes = getattr(np.fft, name), tuple(range(-len(lengths), 0))
    return lambda x: transform(x, lengths, axes).astype(dtype)


def _sort(eqn):
    """A function of the operands that gives as many."""
    axis = eqn.params["dimension"]
    if eqn.params["num_keys"] != 1 or eqn.invars[0].aval.dtype in COMPLEX | SHORT:
        raise NotHere

    def run(key, *others):
        order = np.argsort(key, axis, kind="stable")
        return [np.take_along_axis(x, order, axis) for x in (key, *others)]

    return run


def _top_k(eqn):
    """A function that gives the largest elements, of equal ones the first, and their indices."""
    k, axis, dtype = eqn.params["k"], eqn.params.get("axis", -1), eqn.outvars[1].aval.dtype
    if eqn.invars[0].aval.dtype in COMPLEX | SHORT:
        raise NotHere

    def run(x):
        n, key = x.shape[axis], x
        if x.dtype.kind == "f" and (x != x).any():  # numpy has every nan last, XLA one with a sign first
            bits = x.view(f"i{x.itemsize}")
            greatest = np.iinfo(bits.dtype).max
            key = np.where(x == 0, 0, np.where(bits < 0, bits ^ greatest, bits))
        order = n - 1 - np.flip(np.argsort(np.flip(key, axis), axis, kind="stable"), axis)
        first = np.take(order, np.arange(k), axis)
        return [np.take_along_axis(x, first, axis), first.astype(dtype)]

    return run


ALIKE = SAME | {
    "convert_element_type": _to_whole,
    "dot_general": _dot_general,
    "integer_pow": _integer_pow,
    "pow": _floats(np.power),
    "rem": _quotients(np.fmod),
    "exp": _wide(np.exp), "exp2": _wide(np.exp2), "log": _wide(np.log), "log1p": _wide(np.log1p),
    "expm1": _wide(np.expm1), "tanh": _wide(np.tanh), "sin": _wide(np.sin), "cos": _wide(np.cos),
    "sinh": _wide(np.sinh), "cosh": _wide(np.cosh), "asinh": _wide(np.arcsinh), "acosh": _wide(np.arccosh), "atanh": _wide(np.arctanh),
    "asin": _wide(np.arcsin), "acos": _wide(np.arccos), "atan": _wide(np.arctan),
    "tan": _floats(np.tan), "atan2": _floats(np.arctan2), "sign": _plain(np.sign), "floor": _plain(np.floor),
    "ceil": _plain(np.ceil), "cbrt": _floats(np.cbrt), "is_finite": _plain(np.isfinite), "round": _round,
    "rsqrt": _floats(lambda x: 1 / np.sqrt(x)),
    "logistic": _floats(_logistic),
    "erf": _scipys("erf"), "erfc": _scipys("erfc"), "lgamma": _lgamma, "digamma": _scipys("psi"), "erf_inv": _scipys("erfinv"),
    "clamp": _plain(lambda low, x, high: np.minimum(np.maximum(x, low), high)),
    "reduce_prod": _reduce(np.multiply),
    "argmax": _arg(np.argmax),
    "argmin": _arg(np.argmin),
    "fft": _fft,
    "cumsum": _cumulative(np.add),
    "cumprod": _cumulative(np.multiply),
    "cummax": _cumulative(np.maximum),
    "cummin": _cumulative(np.minimum),
    "gather": gather,
    "scatter": scatter(put),
    "scatter-add": scatter(np.add.at),
    "scatter_add": scatter(np.add.at),
    **{f"scatter{sign}{name}": scatter(function.at) for sign in "-_" for name, function in (
        ("max", np.maximum), ("min", np.minimum), ("mul", np.multiply),
    )},
    "reduce_window_max": windows(np.maximum, -np.inf),
    "reduce_window_sum": windows(np.add, 0),
    "conv_general_dilated": conv,
    "stop_gradient": _plain(np.asarray),
    "shift_left": _shift(np.left_shift),
    "shift_right_arithmetic": _shift(np.right_shift),
    "shift_right_logical": _shift(_filled_with_zeros),
}  # fmt: skip
MANY_RESULTS = {"sort": _sort, "top_k": _top_k}


# --- the same bits, whatever a compiler puts together --------------------------------------------------------------------


def _whole(rule):
    """Not of floats, whose products a compiler adds up without rounding them, and whose sums in an order of its own."""

    def of(eqn):
        if eqn.outvars[0].aval.dtype.kind not in "biu":
            raise NotHere
        return rule(eqn)

    return of


EXACT = SAME | {
    **{name: _whole(SAME[name]) for name in ("mul", "square", "reduce_sum")},
    **{name: ALIKE[name] for name in (
        "argmax", "argmin", "ceil", "clamp", "cummax", "cummin", "floor", "gather", "is_finite", "sign", "stop_gradient",
    )},
}  # fmt: skip
