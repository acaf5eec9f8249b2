"""What numpy does for gathers, scatters, windows and convolutions; raises NotHere for what it does otherwise."""

import numpy as np

# multiplications of a convolution at most: numpy, which copies the windows, takes some 20 ms for so many
MULTIPLIED = 1 << 26


class NotHere(Exception):
    """Something that numpy does not do, or not with the same numbers."""


def size(sizes) -> int:
    return int(np.prod(sizes, dtype=int))


def _mode(eqn) -> str:
    return getattr(eqn.params["mode"], "name", str(eqn.params["mode"]))


def gather(eqn):
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
    if mode != "FILL_OR_DROP" and _along_one(dims, sizes, shape):
        return _taken(dims.start_index_map[0], batch_at, offsets)
    if mode == "PROMISE_IN_BOUNDS" and not offsets and size(shape):
        return _elements(dims, shape, eqn.invars[1].aval.shape[:-1])

    def run(x, indices):
        starts, inside = places.starts(indices)
        made = x[places.of(starts)]
        if mode == "FILL_OR_DROP" and not inside.all():
            made = np.where(
                inside.reshape(inside.shape + (1,) * (made.ndim - inside.ndim)), made, made.dtype.type(fill)
            )
        return np.moveaxis(made, range(ndim), [*batch_at, *offsets])

    return run


def _along_one(dims, sizes, shape) -> bool:
    """Whether whole slices are picked, by their numbers in one dimension."""
    mapped = tuple(dims.start_index_map)
    if len(mapped) != 1 or tuple(dims.collapsed_slice_dims) != mapped or dims.operand_batching_dims:
        return False
    return all(size == (1 if d == mapped[0] else n) for d, (n, size) in enumerate(zip(shape, sizes)))


def _elements(dims, shape, batch):
    """Single elements, taken by where they lie in all of the operand: a quarter of the time of what any gather takes."""
    strides = [size(shape[d + 1 :]) for d in range(len(shape))]
    at = np.zeros(batch, np.intp)
    for d, k in zip(dims.operand_batching_dims, dims.start_indices_batching_dims):
        at += np.arange(shape[d]).reshape([-1 if j == k else 1 for j in range(len(batch))]) * strides[d]
    steps = [strides[d] for d in dims.start_index_map]
    if steps == [1]:
        return lambda x, indices: x.reshape(-1).take(at + indices[..., 0], mode="clip")
    steps = np.array(steps, np.intp)
    return lambda x, indices: x.reshape(-1).take(at + indices @ steps, mode="clip")


def _taken(d, batch_at, offsets):
    """Slices picked by numpy's own function, a fifth of the time of what any gather takes."""
    there = [*offsets[:d], *batch_at, *offsets[d:]]  # where its dimensions belong
    order = [there.index(k) for k in range(len(there))]
    picked = lambda x, indices: x.take(indices[..., 0].astype(np.intp, copy=False), d, mode="clip")
    return picked if order == sorted(order) else lambda x, indices: picked(x, indices).transpose(order)


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


def scatter(function):
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


def put(x, index, updates):
    x[index] = updates


def windows(function, fill):
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


def conv(eqn):
    p, a, b = eqn.params, eqn.invars[0].aval, eqn.invars[1].aval
    features = b.shape[p["dimension_numbers"].rhs_spec[0]]
    if size(eqn.outvars[0].aval.shape) * size(b.shape) > MULTIPLIED * features:
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
            part = seen[(slice(None), *[slice(None)] * space, slice(g * c, (g + 1) * c))].reshape(n * size(out), -1)
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
