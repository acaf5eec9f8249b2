"""core/folds.py: what a view of windows shows, added up where it lies, against the transpose that JAX derives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jtorch.core import folds
from jtorch.core.strided import Gather, plan

LAYOUTS = {  # of a dense base: its shape, then shape and strides and offset of the view
    "windows side by side": ((3, 16), (3, 4, 4), (16, 4, 1), 0),
    "windows that overlap": ((5, 32), (5, 7, 8), (32, 4, 1), 0),
    "a part of a block more": ((5, 32), (5, 8, 7), (32, 3, 1), 2),
    "gaps between elements": ((2, 40), (2, 5, 3), (40, 6, 3), 4),
    "windows two ways": ((16, 16), (4, 5, 6, 5), (48, 2, 16, 1), 0),
    "windows of windows": ((60,), (5, 4, 6), (9, 3, 1), 3),
    "strides that share nothing": ((31,), (5, 4), (3, 2), 1),
    "long windows": ((200,), (101, 100), (1, 1), 0),
    "long windows, a part of a block more": ((3, 205), (3, 51, 101), (205, 2, 1), 3),
    "few long windows": ((2, 300), (2, 3, 200), (300, 50, 1), 0),
    "the same element": ((7,), (4, 3), (0, 2), 1),
    "empty": ((7,), (0, 3), (1, 2), 1),
}


def _base_strides(shape):
    return tuple(int(np.prod(shape[d + 1 :])) for d in range(len(shape)))


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("traced", [False, True])
def test_what_is_shown_is_added_where_it_lies(name, traced):
    base, shape, strides, offset = LAYOUTS[name]
    recipe, starts = plan(base, _base_strides(base), shape, strides, offset)
    aval = jax.ShapeDtypeStruct(base, np.float64)
    value = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    want = jax.linear_transpose(lambda x: recipe.read(x, starts), aval)(jnp.asarray(value))[0]
    begin = tuple(jnp.int64(s) for s in starts) if traced else starts
    have = folds.spread(recipe, begin, aval, jnp.asarray(value))
    np.testing.assert_array_equal(have, want)


def test_windows_that_overlap_need_no_scatter():
    recipe, starts = plan((5, 32), (32, 1), (5, 7, 8), (32, 4, 1), 0)
    assert any(type(step) is Gather for step in recipe.steps)
    aval = jax.ShapeDtypeStruct((5, 32), np.float32)
    text = str(jax.make_jaxpr(lambda g: folds.spread(recipe, starts, aval, g))(jnp.zeros((5, 7, 8), np.float32)))
    assert "scatter" not in text
