"""Plans that read or write what lies in a storage under a layout: one for each kind of place, the place itself in numbers."""

import jax.numpy as jnp

from .. import errors
from . import crowd, halves, strided
from .families import of_parts
from .program import Plan
from .somewhere import Unasked
from .spec import Spec, extent

_views: dict[tuple, tuple] = {}
_VIEWS_MAX = 1 << 16


def view_plan(base, spec, offset, writing):
    """A plan that reads, or writes, what a spec at an offset sees of a base, and its numbers; (None, ()) where that is all of it."""
    key = (base, spec, offset, writing)
    try:
        found = _views.get(key)
    except Unasked:
        if writing:
            return view_plan(base, spec, int(offset), writing)
        raise
    if found is None:
        if len(_views) > _VIEWS_MAX:
            _views.clear()
        found = _views[key] = _make(base, spec, offset, writing)
    return found


def inside(base, spec, offset):
    """Raise for a tensor that shows more than there is: its storage has shrunk."""
    size = spec.dtype.itemsize
    if spec.numel and (offset + extent(spec)) * size > base.nbytes:
        raise errors.storage_bounds(
            tuple(spec.shape), spec.strides, offset, size, offset + extent(spec), base.nbytes // size
        )


_recipes: dict[tuple, Plan] = {}
_by_values: dict[tuple, Plan | None] = {}
_UNKNOWN = object()
crowd.forgetters += (_views.clear, _recipes.clear, _by_values.clear)


def _make(base, spec, offset, writing):
    inside(base, spec, offset)
    same_type = base.dtype is spec.dtype
    if same_type:
        shape, strides = tuple(base.shape), base.strides
    else:
        shape, strides = (base.nbytes // spec.dtype.itemsize,), (1,)
    recipe, starts = strided.plan(shape, strides, tuple(spec.shape), spec.strides, offset)
    key = (base, spec, recipe, writing)
    plan = _recipes.get(key)
    if plan is None:
        plan = _recipes[key] = _recipe_plan(base, spec, recipe, len(starts), writing, same_type)
    return plan, tuple(starts)


def _recipe_plan(base, spec, recipe, n, writing, same_type):
    if same_type:

        def get(array):
            return array

        def put(value, array):
            return value
    else:
        memory, _ = strided.plan(tuple(base.shape), base.strides, (base.numel,), (1,), 0)
        # a last element of the tensor may have room for a part of it only
        count = base.nbytes // spec.dtype.itemsize * spec.dtype.itemsize // base.dtype.itemsize

        def get(array):
            return halves.reinterpret(memory.read(array, ())[:count], base.dtype, spec.dtype)

        def put(flat, array):
            whole = strided.plan((base.numel,), (1,), tuple(base.shape), base.strides, 0)[0]
            flat = halves.reinterpret(flat, spec.dtype, base.dtype)
            if count < base.numel:
                flat = jnp.concatenate([flat, memory.read(array, ())[count:]])
            return whole.read(flat, ())

    if writing:

        def kernel(array, value, *starts):
            return put(recipe.write(get(array), starts, value.astype(spec.dtype.np)), array)

        out, operands = base, (base, Spec.dense(spec.shape, spec.dtype, spec.device))
    else:

        def kernel(array, *starts):
            return recipe.read(get(array), starts)

        out, operands = Spec.dense(spec.shape, spec.dtype, spec.device), (base,)
    kernel.__name__ = "write" if writing else "read"
    plan = Plan(None, kernel.__name__, kernel, operands, (int,) * n, specs=(out,))
    plan.recipe = recipe
    if same_type:
        plan.kin = of_parts(kernel.__name__, base.dtype, base.device, spec.dtype, recipe)
    return plan


def within(i, n):
    """The index of one of n rows, counted from the first; the nearest one for what is out of bounds."""
    i = i.astype(jnp.int64)
    return jnp.clip(jnp.where(i < 0, i + n, i), 0, n - 1)


def plan_by_values(base, spec, where):
    """The plan that reads what a spec sees of a base at a Somewhere, by the values of its indices; None where none can be."""
    key = (base, spec, where.start, *[(i.spec, i.size, i.stride) for i in where.indices])
    plan = _by_values.get(key, _UNKNOWN)
    if plan is _UNKNOWN:
        plan = _by_values[key] = _make_by_values(base, spec, where)
    return plan


def _make_by_values(base, spec, where):
    """The plan that reads by values, where each index adds as much to each number that the known one takes, up to the last row of all."""
    sizes, strides = [i.size for i in where.indices], [i.stride for i in where.indices]
    first, starts = view_plan(base, spec, where.start, 0)
    if first is None:
        return None
    steps = []
    for size, stride in zip(sizes, strides):
        plan, others = view_plan(base, spec, where.start + (stride if size > 1 else 0), 0)
        if plan is not first:
            return None
        steps.append([b - a for a, b in zip(starts, others)])
        if min(steps[-1], default=0) < 0:  # a carry, as of rows that begin in the middle of the storage's own
            return None
    plan, last = view_plan(base, spec, where.start + sum((n - 1) * s for n, s in zip(sizes, strides)), 0)
    if plan is not first or list(last) != [
        a + sum((n - 1) * d[k] for n, d in zip(sizes, steps)) for k, a in enumerate(starts)
    ]:
        return None

    def kernel(array, *indices):
        whole = [within(i, n) for i, n in zip(indices, sizes)]
        return first.fn(array, *[a + sum(i * d[k] for i, d in zip(whole, steps)) for k, a in enumerate(starts)])

    return Plan(None, "read", kernel, (base, *[i.spec for i in where.indices]), specs=first.specs)
