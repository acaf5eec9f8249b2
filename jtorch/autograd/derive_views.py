"""Derivatives of views, and of writes through them: from a way of reading a storage to the plan and its transpose."""

import jax
import jax.numpy as jnp
import numpy as np

from ..core import folds, shapes, strided
from ..core.families import of_parts
from ..core.program import Plan
from ..core.spec import Spec, extent
from ..core.view_plans import within
from ..ops.backend import on_cpu


def _spread(recipe, starts, aval, g):
    """A gradient of what a recipe shows, as that of what it is read from. On the CPU a scatter is a loop."""
    if on_cpu() and isinstance(recipe, strided.Recipe):
        return folds.spread(recipe, starts, aval, g)
    return jax.linear_transpose(lambda x: recipe.read(x, starts), aval)(g)[0]


class ViewMap:
    """A view as a linear map of the viewed tensor's logical values; its derivative is the transpose.

    call: (operation, its arguments behind the tensor) that made it first, or None; where no offset hangs on the call only.
    """

    __slots__ = ("recipe", "aval", "call")

    def __init__(self, recipe, aval):
        self.recipe = recipe
        self.aval = aval
        self.call = None

    def build(self, positions):
        recipe, aval = self.recipe, self.aval

        def kernel(g, *starts):
            if not positions:  # a view of what has been detached since
                return []
            if aval.dtype.itemsize > 2 or g.size <= aval.size:
                return [_spread(recipe, starts, aval, g)]
            # elements shown more than once: 16-bit floats are added up in float32
            wide = jax.ShapeDtypeStruct(aval.shape, np.float32)
            return [_spread(recipe, starts, wide, g.astype(np.float32)).astype(aval.dtype)]

        return lambda present: kernel


class ViewsMap:
    """Several views of one tensor, as `ViewMap`. parts: recipe and starts of each."""

    __slots__ = ("parts", "aval")

    def __init__(self, parts, aval):
        self.parts = parts
        self.aval = aval

    def build(self, positions):
        parts, aval = self.parts, self.aval
        tiles = tiles_of(parts, aval.shape) if on_cpu() else None

        def build(present):
            chosen = [part for part, there in zip(parts, present) if there]

            def kernel(*grads):
                if not positions:
                    return []
                if tiles is not None and 4 * len(grads) > len(parts):
                    return [joined(tiles, present, grads)]
                read = jax.linear_transpose(lambda x: [recipe.read(x, starts) for recipe, starts in chosen], aval)
                return [read(list(grads))[0]]

            return kernel

        return build


def tiles_of(parts, shape):
    """(axis, shape of each part before it was reshaped) where parts are slices that make up the whole one after the other; None.

    The transpose of so many slices is a sum of as many padded arrays, of which XLA's loop on the CPU adds all up at each element."""
    sizes, ends = [], [0] * len(shape)
    for recipe, starts in parts:
        first, *rest = recipe.steps or (None,)
        if type(first) is not strided.Slice or any(type(s) is not strided.Reshape for s in rest):
            return None
        if any(n > 1 and s != 1 for n, s in zip(first.sizes, first.steps)) or sum(k >= 0 for k in first.slots) != 1:
            return None
        axis = max(range(len(shape)), key=first.slots.__getitem__)
        if ends[axis] != starts[first.slots[axis]]:
            return None
        ends[axis] += first.sizes[axis]
        sizes.append(first.sizes)
    return (axis, sizes) if sizes and ends[axis] == shape[axis] and sum(map(bool, ends)) == 1 else None


def joined(tiles, present, grads):
    """The gradients of the parts that have one, and zeros for the others, one after the other."""
    (axis, sizes), given = tiles, iter(grads)
    zero = np.zeros((), grads[0].dtype)
    parts = [next(given).reshape(n) if there else jnp.broadcast_to(zero, n) for there, n in zip(present, sizes)]
    return jax.lax.concatenate(parts, axis)


class SlicesMap:
    """Writing a view into its base, as a linear map of both: no value needs to be kept for its derivative."""

    __slots__ = ("recipe", "operands")

    def __init__(self, recipe, operands):
        self.recipe = recipe
        self.operands = operands

    def build(self, positions):
        recipe, operands = self.recipe, self.operands

        def kernel(g, *starts):
            zero = jnp.zeros(tuple(operands[1].shape), operands[1].dtype.np)
            parts = (recipe.write(g, starts, zero), recipe.read(g, starts))
            return [parts[i] for i in positions]

        return lambda present: kernel


def _same(x):
    return x


def _pairs(x):
    return jnp.stack([x.real, x.imag], -1)


def _whole(x):
    return jax.lax.complex(x[..., 0], x[..., 1])


class PairsMap:
    """A linear map of complex numbers as pairs of real ones: `inner`, with the complex operands and the complex result taken apart.

    taken: makes pairs of the cotangent. joined: of each operand, makes complex numbers of the pairs that are its gradient.
    """

    __slots__ = ("inner", "taken", "joined")

    def __init__(self, inner, taken, joined):
        self.inner = inner
        self.taken = taken
        self.joined = joined

    def build(self, positions):
        inner, taken, joined = self.inner.build(positions), self.taken, self.joined

        def build(present):
            kernel = inner(present)
            return lambda g, *starts: [joined[i](part) for i, part in zip(positions, kernel(taken(g), *starts))]

        return build


def _as_pairs(spec, other):
    """(spec, elements that were one, pairs of, whole of) of a complex tensor whose memory `other` sees as real numbers; of others themselves."""
    if not spec.dtype.is_complex or other.dtype.is_complex:
        return spec, 1, _same, _same
    strides = (*(2 * s for s in spec.strides), 1)
    return Spec.of((*spec.shape, 2), strides, spec.dtype.to_real(), spec.device), 2, _pairs, _whole


def _dense(spec):
    return Spec.dense(tuple(spec.shape), spec.dtype, spec.device)


def _of_pairs(inner, operands, out, taking, whole, joined):
    """`inner`, a plan of real numbers, as a plan of operands and a result of which one kind is complex."""
    key = (inner, *operands, out)
    plan = _pairs_plans.get(key)
    if plan is None:
        n = len(operands)

        def run(*values):
            return whole(inner.fn(*[take(v) for take, v in zip(taking, values)], *values[n:]))

        plan = Plan(None, inner.name, run, tuple(map(_dense, operands)), inner.kinds, specs=(_dense(out),))
        plan.grad_name = inner.grad_name
        plan.extra = PairsMap(inner.extra, _pairs if whole is _whole else _same, joined)
        _pairs_plans[key] = plan
    return plan


_pairs_plans: dict = {}


def read_plan(spec, offset, out, out_offset, name):
    """(plan, starts) of a view, perhaps of the parts of complex numbers, of a tensor; both given by their place in the storage."""
    if spec.dtype is out.dtype:
        return memory_plan(spec, out, out_offset - offset, name)
    a, n, taking, joined = _as_pairs(spec, out)
    b, m, _, whole = _as_pairs(out, spec)
    inner, starts = memory_plan(a, b, m * out_offset - n * offset, name)
    return _of_pairs(inner, (spec,), out, (taking,), whole, (joined,)), starts


def write_plan(spec, offset, view, view_offset):
    """(plan, starts) of a tensor in which a view, perhaps of the parts of complex numbers, is overwritten; None where it shows more than
    the tensor."""
    if spec.dtype is view.dtype:
        return _slices_plan(spec, view, view_offset - offset)
    a, n, taking, joined = _as_pairs(spec, view)
    b, m, parting, rejoined = _as_pairs(view, spec)
    made = _slices_plan(a, b, m * view_offset - n * offset)
    if made is None:
        return None
    inner, starts = made
    return _of_pairs(inner, (spec, view), spec, (taking, parting), joined, (joined, rejoined)), starts


def _slices_plan(spec, view, at):
    """`write_plan` of one dtype, of a view `at` so many elements from where the tensor begins."""
    if at < 0 or at + extent(view) > extent(spec):
        return None
    recipe, starts = strided.between(tuple(spec.shape), spec.strides, tuple(view.shape), view.strides, at)
    key = (spec, view, recipe)
    plan = _slices.get(key)
    if plan is None:

        def put(array, value, *starts):
            return recipe.write(array, starts, value)

        operands = (_dense(spec), _dense(view))
        plan = Plan(None, "CopySlices", put, operands, (int,) * len(starts), specs=operands[:1])
        plan.grad_name = "CopySlices"
        plan.extra = SlicesMap(recipe, operands)
        plan.kin = of_parts("slices", spec.dtype, view.dtype, spec.device, recipe)
        _slices[key] = plan
    return plan, tuple(starts)


_slices: dict = {}


def view_plan(spec, strides, out_shape, out_strides, offset, grad_name):
    """(plan, starts) of the view (out_shape, out_strides, offset) of a dense value with `spec`'s shape and `strides`."""
    recipe, starts = strided.between(tuple(spec.shape), strides, out_shape, out_strides, offset)
    key = (spec.shape, spec.dtype, spec.device, out_shape, recipe, grad_name)
    plan = _view_plans.get(key)
    if plan is None:

        def read(array, *starts):
            return recipe.read(array, starts)

        source = _dense(spec)
        out = Spec.dense(out_shape, spec.dtype, spec.device)
        plan = Plan(None, grad_name, read, (source,), (int,) * len(starts), specs=(out,))
        plan.grad_name = grad_name
        plan.extra = ViewMap(recipe, spec.aval)
        plan.kin = of_parts("view", spec.dtype, spec.device, recipe)
        _view_plans[key] = plan
    return plan, tuple(starts)


def row_plan(spec, dim, index):
    """The plan of a row of a dense value with `spec`'s shape by the value of its index, a spec of 0 dimensions."""
    key = (spec.shape, spec.dtype, spec.device, dim, index)
    plan = _row_plans.get(key)
    if plan is None:
        shape = tuple(spec.shape)

        def read(array, i):
            return jax.lax.dynamic_index_in_dim(array, within(i, shape[dim]), dim, keepdims=False)

        out = Spec.dense(shape[:dim] + shape[dim + 1 :], spec.dtype, spec.device)
        plan = _row_plans[key] = Plan(None, "SelectBackward0", read, (_dense(spec), index), specs=(out,))
        plan.grad_name = "SelectBackward0"
    return plan


_row_plans: dict = {}


def views_plan(spec, strides, outs, grad_name):
    """The plan of several views of a dense value: (spec, offset, strides and offset of the canonical form) of each."""
    parts = [strided.between(tuple(spec.shape), strides, tuple(o.shape), s, at) for o, _, s, at in outs]

    def read(array):
        return tuple(recipe.read(array, starts) for recipe, starts in parts)

    source = _dense(spec)
    results = tuple(Spec.dense(tuple(o.shape), spec.dtype, spec.device) for o, *_ in outs)
    plan = Plan(None, grad_name, read, (source,), specs=results)
    plan.grad_name = grad_name
    plan.extra = ViewsMap(parts, spec.aval)
    plan.kin = of_parts("views", spec.dtype, spec.device, parts)
    return plan


_view_plans: dict = {}


def _inside(spec, out, offset):
    """Whether a view at `offset` shows nothing but elements of a dense tensor."""
    return offset >= 0 and offset + extent(out) <= spec.numel and shapes.is_dense(tuple(spec.shape), spec.strides)


def _through_storage(spec, out, offset, name):
    """(plan, starts) of a view that also shows elements of the storage outside the tensor: to them goes no gradient."""
    low = min(offset, 0)
    size = max(extent(spec), offset + extent(out)) - low
    key = (spec, out, offset, name)
    plan = _wide_plans.get(key)
    if plan is None:
        put, put_at = strided.plan((size,), (1,), tuple(spec.shape), spec.strides, -low)
        get, get_at = strided.plan((size,), (1,), tuple(out.shape), out.strides, offset - low)

        def read(array):
            return get.read(put.write(jnp.zeros((size,), array.dtype), put_at, array), get_at)

        operand = _dense(spec)
        plan = _wide_plans[key] = Plan(None, name, read, (operand,), specs=(_dense(out),))
        plan.grad_name = name
        plan.extra = WideMap(put, put_at, get, get_at, size, _times_shown(spec, size))
    return plan, ()


_wide_plans: dict = {}


def _times_shown(spec, size):
    """How many elements of a tensor lie where each of its elements lies; None where that is one for all."""
    strides, step = spec.strides, np.dtype(np.intp).itemsize
    places = np.lib.stride_tricks.as_strided(np.arange(size), tuple(spec.shape), tuple(s * step for s in strides))
    times = np.bincount(places.ravel(), minlength=size)[places]
    return times if times.size and times.max() > 1 else None


class WideMap:
    """The derivative of `_through_storage`: the gradient laid out in the storage, then read as the tensor lies there.

    Elements of the tensor that share memory get equal shares of the gradient.
    """

    __slots__ = ("parts",)

    def __init__(self, *parts):
        self.parts = parts

    def build(self, positions):
        put, put_at, get, get_at, size, times = self.parts

        def kernel(g):
            line = jax.ShapeDtypeStruct((size,), g.dtype)
            shown = put.read(_spread(get, get_at, line, g), put_at)
            return [shown if times is None else shown / times.astype(g.dtype)]

        return lambda present: kernel


def memory_plan(spec, out, offset, name):
    """(plan, starts) of the view `out` at `offset` of a tensor that lies in memory as `spec` says."""
    if _inside(spec, out, offset):
        return view_plan(spec, spec.strides, tuple(out.shape), out.strides, offset, name)
    return _through_storage(spec, out, offset, name)
