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
crowd.forgetters += (_views.clear, _recipes.clear)


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
