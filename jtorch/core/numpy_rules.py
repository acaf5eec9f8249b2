"""What numpy does for jax's primitives, up to rounding: a rule takes an equation and gives a function of arrays.

Raises NotHere, from the rule or from the function, for what numpy does otherwise. The rules in `SAME` give the same bits as XLA, but for
sums, which every compiler adds up in its own order.
"""

import numpy as np

MULTIPLIED = (
    1 << 26
)  # multiplications of a convolution at most: numpy, which copies the windows, takes some 20 ms for so many
MOST_DIMENSIONS = 64  # of numpy's arrays
DTYPES = {np.dtype(t) for t in "?bBhHiIqQfd"}


class NotHere(Exception):
    """Something that numpy does not do, or not with the same numbers."""


def _plain(function):
    return lambda eqn: function


def _floats(function):
    """Of integers, a function that has another idea than numpy of what has no answer."""

    def rule(eqn):
        if eqn.invars[0].aval.dtype.kind != "f":
            raise NotHere
        return function

    return rule


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
    return lambda x: np.broadcast_to(x.reshape(sizes), shape)


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


def _convert(eqn):
    new, old = np.dtype(eqn.params["new_dtype"]), eqn.invars[0].aval.dtype
    if old.kind == "f" and new.kind != "f":  # of what is too large, each has its own idea
        raise NotHere
    return lambda x: x.astype(new)


def _reduce(function):
    def rule(eqn):
        axes = tuple(eqn.params["axes"])
        if 0 in eqn.invars[0].aval.shape and function.identity is None:
            raise NotHere
        return lambda x: function.reduce(x, axis=axes, dtype=x.dtype)

    return rule


SAME = {
    "transpose": lambda eqn: lambda x, order=eqn.params["permutation"]: x.transpose(order),
    "rev": lambda eqn: lambda x, dims=eqn.params["dimensions"]: np.flip(x, dims),
    "concatenate": lambda eqn: lambda *parts, dim=eqn.params["dimension"]: np.concatenate(parts, dim),
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
    "div": _floats(np.divide),
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


def _integer_pow(eqn):
    y = eqn.params["y"]
    return lambda x: np.power(x, np.asarray(y, x.dtype)) if y >= 0 else 1 / np.power(x, np.asarray(-y, x.dtype))


def _dot_general(eqn):
    (left, right), (left_batch, right_batch) = eqn.params["dimension_numbers"]
    a, b, made = eqn.invars[0].aval, eqn.invars[1].aval, eqn.outvars[0].aval
    if not a.dtype == b.dtype == made.dtype or a.dtype.kind == "b":
        raise NotHere
    free = [d for d in range(a.ndim) if d not in (*left, *left_batch)]
    others = [d for d in range(b.ndim) if d not in (*right, *right_batch)]
    batch = [a.shape[d] for d in left_batch]
    n = int(np.prod([a.shape[d] for d in left], dtype=int))
    order_a, shape_a = (*left_batch, *free, *left), (*batch, -1 if n * _size(batch) else _sizes(a, free), n)
    order_b, shape_b = (*right_batch, *right, *others), (*batch, n, -1 if n * _size(batch) else _sizes(b, others))
    shape = made.shape
    return lambda x, y: np.matmul(x.transpose(order_a).reshape(shape_a), y.transpose(order_b).reshape(shape_b)).reshape(
        shape
    )


def _size(sizes) -> int:
    return int(np.prod(sizes, dtype=int))


def _sizes(aval, dims) -> int:
    return _size([aval.shape[d] for d in dims])


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


def _sort(eqn):
    """A function of the operands that gives as many."""
    axis = eqn.params["dimension"]
    if eqn.params["num_keys"] != 1:
        raise NotHere

    def run(key, *others):
        order = np.argsort(key, axis, kind="stable")
        return [np.take_along_axis(x, order, axis) for x in (key, *others)]

    return run


def _mode(eqn) -> str:
    return getattr(eqn.params["mode"], "name", str(eqn.params["mode"]))


def _gather(eqn):
    p = eqn.params
    dims, sizes = p["dimension_numbers"], p["slice_sizes"]
    shape = eqn.invars[0].aval.shape
    fill, mode = p["fill_value"], _mode(eqn)
    if mode == "FILL_OR_DROP" and fill is None:
        dtype = eqn.outvars[0].aval.dtype
        fill = {"f": np.nan, "b": True, "u": np.iinfo(dtype).max if dtype.kind == "u" else 0}.get(dtype.kind)
        fill = np.iinfo(dtype).min if fill is None else fill
    gone = (*dims.collapsed_slice_dims, *dims.operand_batching_dims)
    places = _Places(
        shape, sizes, dims.start_index_map, dims.operand_batching_dims, dims.start_indices_batching_dims, gone
    )
    offsets = dims.offset_dims
    ndim = len(eqn.outvars[0].aval.shape)
    batch_at = [d for d in range(ndim) if d not in offsets]

    def run(x, indices):
        starts, inside = places.starts(indices)
        made = x[places.of(starts)]
        if mode == "FILL_OR_DROP" and not inside.all():
            made = np.where(
                inside.reshape(inside.shape + (1,) * (made.ndim - inside.ndim)), made, made.dtype.type(fill)
            )
        return np.moveaxis(made, range(ndim), [*batch_at, *offsets])

    return run


class _Places:
    """Where the windows of a gather or a scatter lie: for each dimension of the operand, indices that broadcast to (batch, window)."""

    def __init__(self, shape, sizes, index_map, batching, indices_batching, gone):
        self.shape = shape
        self.sizes = sizes
        self.index_map = index_map
        self.batching = dict(zip(batching, indices_batching))
        self.window = [d for d in range(len(shape)) if d not in gone]

    def starts(self, indices):
        """(the first index of each dimension, kept inside; whether each window was inside)."""
        batch = indices.shape[:-1]
        starts, inside = [], np.ones(batch, bool)
        for d, (n, size) in enumerate(zip(self.shape, self.sizes)):
            if d in self.index_map:
                start = indices[..., self.index_map.index(d)].astype(np.int64)
                inside &= (start >= 0) & (start <= n - size)
                start = np.clip(start, 0, n - size)
            elif d in self.batching:
                k = self.batching[d]
                start = np.arange(n).reshape([n if j == k else 1 for j in range(len(batch))])
            else:
                start = None  # all of it
            starts.append(start)
        return starts, inside

    def of(self, starts):
        """The index of the operand that gives (batch, window)."""
        first = len(self.shape) - len(self.window)
        rows = all(s is None for s in starts[first:]) and self.shape[first:] == tuple(self.sizes[first:])
        if rows and self.window == list(range(first, len(self.shape))):
            return tuple(starts[:first])
        batch_ndim = max((s.ndim for s in starts if s is not None), default=0)
        wide = len(self.window)
        index = []
        for d, start in enumerate(starts):
            within = np.arange(self.sizes[d])
            if d in self.window:
                within = within.reshape([-1 if w == d else 1 for w in self.window])
            else:
                within = within.reshape([1] * wide)
            if start is not None:
                within = start.reshape(start.shape + (1,) * wide) + within
            elif batch_ndim:
                within = within.reshape((1,) * batch_ndim + within.shape)
            index.append(within)
        # several dimensions of one element each would be one element without its window
        return tuple(np.broadcast_arrays(*index)) if index else ()


def _scatter(function):
    def rule(eqn):
        p = eqn.params
        dims, mode = p["dimension_numbers"], _mode(eqn)
        operand, _, updates = (v.aval for v in eqn.invars)
        gone = (*dims.inserted_window_dims, *dims.operand_batching_dims)
        window = [d for d in range(operand.ndim) if d not in gone]
        sizes = [1] * operand.ndim
        for d, u in zip(window, dims.update_window_dims):
            sizes[d] = updates.shape[u]
        places = _Places(
            operand.shape, sizes, dims.scatter_dims_to_operand_dims, dims.operand_batching_dims,
            dims.scatter_indices_batching_dims, gone,
        )  # fmt: skip
        batch_at = [d for d in range(updates.ndim) if d not in dims.update_window_dims]
        order = [*batch_at, *dims.update_window_dims]

        def run(x, indices, updates):
            starts, inside = places.starts(indices)
            index, updates = places.of(starts), updates.transpose(order)
            made = x.copy()
            if mode != "CLIP" and not inside.all():
                index = tuple(i[inside] for i in index)
                updates = updates[inside]
            function(made, index, updates)
            return made

        return run

    return rule


def _set(x, index, updates):
    x[index] = updates


def _windows(function, fill):
    """A reduction over windows."""

    def rule(eqn):
        p, aval = eqn.params, eqn.invars[0].aval
        if any(n != 1 for n in (*p["base_dilation"], *p["window_dilation"])) or aval.dtype.kind != "f":
            raise NotHere
        sizes, padding = tuple(p["window_dimensions"]), p["padding"]
        steps = tuple(slice(None, None, s) for s in p["window_strides"])
        axes = tuple(range(-len(sizes), 0))

        def run(x):
            x = np.pad(x, padding, constant_values=fill) if any(map(any, padding)) else x
            return function.reduce(np.lib.stride_tricks.sliding_window_view(x, sizes)[steps], axis=axes)

        return run

    return rule


def _conv(eqn):
    p, a, b = eqn.params, eqn.invars[0].aval, eqn.invars[1].aval
    features = b.shape[p["dimension_numbers"].rhs_spec[0]]
    if _size(eqn.outvars[0].aval.shape) * _size(b.shape) > MULTIPLIED * features:
        raise NotHere
    if not a.dtype == b.dtype == eqn.outvars[0].aval.dtype or p["batch_group_count"] != 1 or a.dtype.kind != "f":
        raise NotHere
    dims, groups, space = p["dimension_numbers"], p["feature_group_count"], a.ndim - 2
    sides = [(0, 0), (0, 0), *((max(low, 0), max(high, 0)) for low, high in p["padding"])]
    cut = tuple(slice(max(-low, 0), -max(-high, 0) or None) for low, high in [(0, 0), (0, 0), *p["padding"]])
    strides = tuple(slice(None, None, s) for s in p["window_strides"])
    every = [1, 1, *p["lhs_dilation"]]
    apart = [1, 1, *p["rhs_dilation"]]
    back = np.argsort(dims.out_spec)

    def run(x, w):
        x = _spread(x.transpose(dims.lhs_spec), every)[cut]
        w = _spread(w.transpose(dims.rhs_spec), apart)
        x = np.pad(x, sides) if any(map(any, sides)) else x
        seen = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=tuple(range(2, 2 + space)))
        seen = seen[(slice(None), slice(None), *strides)]  # N, C, out..., window...
        n, out = seen.shape[0], seen.shape[2 : 2 + space]
        seen = np.moveaxis(seen, 1, 1 + space)  # N, out..., C, window...
        made = []
        for g in range(groups):
            c, f = w.shape[1], w.shape[0] // groups
            part = seen[(slice(None), *[slice(None)] * space, slice(g * c, (g + 1) * c))].reshape(n * _size(out), -1)
            made.append(part @ w[g * f : (g + 1) * f].reshape(f, -1).T)
        made = np.concatenate(made, 1) if groups > 1 else made[0]
        return np.moveaxis(made.reshape(n, *out, -1), -1, 1).transpose(back)

    return run


def _spread(x, factors):
    """Zeros between the elements."""
    if all(f == 1 for f in factors):
        return x
    made = np.zeros([max((n - 1) * f + 1, 0) for n, f in zip(x.shape, factors)], x.dtype)
    made[tuple(slice(None, None, f) for f in factors)] = x
    return made


ALIKE = SAME | {
    "convert_element_type": _to_whole,
    "dot_general": _dot_general,
    "integer_pow": _integer_pow,
    "pow": _floats(np.power),
    "rem": _floats(np.fmod),
    "exp": _wide(np.exp), "exp2": _wide(np.exp2), "log": _wide(np.log), "log1p": _wide(np.log1p),
    "expm1": _wide(np.expm1), "tanh": _wide(np.tanh), "sin": _wide(np.sin), "cos": _wide(np.cos),
    "tan": _floats(np.tan), "atan2": _floats(np.arctan2), "sign": _plain(np.sign), "floor": _plain(np.floor),
    "ceil": _plain(np.ceil), "cbrt": _floats(np.cbrt), "is_finite": _plain(np.isfinite), "round": _round,
    "rsqrt": _floats(lambda x: 1 / np.sqrt(x)),
    "logistic": _floats(_logistic),
    "erf": _scipys("erf"), "erfc": _scipys("erfc"), "lgamma": _scipys("gammaln"),
    "clamp": _plain(lambda low, x, high: np.minimum(np.maximum(x, low), high)),
    "reduce_prod": _reduce(np.multiply),
    "argmax": _arg(np.argmax),
    "argmin": _arg(np.argmin),
    "cumsum": _cumulative(np.add),
    "cumprod": _cumulative(np.multiply),
    "cummax": _cumulative(np.maximum),
    "cummin": _cumulative(np.minimum),
    "gather": _gather,
    "scatter": _scatter(_set),
    "scatter-add": _scatter(np.add.at),
    "scatter_add": _scatter(np.add.at),
    "reduce_window_max": _windows(np.maximum, -np.inf),
    "reduce_window_sum": _windows(np.add, 0),
    "conv_general_dilated": _conv,
    "stop_gradient": _plain(np.asarray),
}  # fmt: skip
MANY_RESULTS = {"sort": _sort}


# --- the same bits, whatever a compiler puts together --------------------------------------------------------------------


def _whole(rule):
    """Not of floats, whose products a compiler adds up without rounding them, and whose sums in an order of its own."""

    def of(eqn):
        if eqn.outvars[0].aval.dtype.kind == "f":
            raise NotHere
        return rule(eqn)

    return of


EXACT = SAME | {
    **{name: _whole(SAME[name]) for name in ("mul", "square", "reduce_sum")},
    **{name: ALIKE[name] for name in (
        "argmax", "argmin", "ceil", "clamp", "cummax", "cummin", "floor", "gather", "is_finite", "sign", "stop_gradient",
    )},
}  # fmt: skip
