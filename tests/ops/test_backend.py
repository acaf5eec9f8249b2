"""The forms that XLA's CPU compiler wants give what the plain ones give."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jtorch.core import rng
from jtorch.ops import backend


def _draw(dtype, *shape):
    return jnp.asarray(np.random.default_rng(0).standard_normal(shape), dtype)


ROWS, COLUMNS, WIDTH = 0, 1, 2
PRODUCTS = [
    (3, 4, 5),
    (64, 130, 140),  # few rows, a large result
    (64, 300, 60),  # few rows, many more columns: the left operand is transposed
    (300, 200, 100),  # the left operand is transposed, which has fewer elements than the other and the result
    (500, 90, 10),  # the right one is, and the result
    (1, 20, 30),
    (0, 4, 5),
]


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64, jnp.bfloat16, jnp.complex64])
@pytest.mark.parametrize("sizes", PRODUCTS, ids=str)
def test_products_of_a_transposed_matrix(sizes, dtype):
    a, b = _draw(dtype, sizes[ROWS], sizes[COLUMNS]), _draw(dtype, sizes[ROWS], sizes[WIDTH])
    got = jax.jit(backend.matmul_tn)(a, b)
    want = np.asarray(a, np.complex128).T @ np.asarray(b, np.complex128)
    assert got.shape == want.shape and got.dtype == a.dtype
    loose = 0.02 * sizes[ROWS] ** 0.5 if dtype is jnp.bfloat16 else 1e-4
    np.testing.assert_allclose(np.asarray(got, np.complex128), want, rtol=loose, atol=loose)


def test_of_few_outputs_the_result_is_not_left_lying_the_other_way():
    """Each loop of an optimizer that reads it would go against its order: the program turns it once."""
    a, b = _draw(jnp.float32, 500, 90), _draw(jnp.float32, 500, 10)

    def read_twice(a, b):
        g = backend.matmul_tn(a, b)
        return g + 1, jnp.where(g > 0, g, 2)

    text = jax.jit(read_twice).lower(a, b).compile().as_text()
    assert text.count("f32[90,10]{0,1} transpose(") + text.count("f32[90,10]{1,0} transpose(") == 1


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64, jnp.bfloat16])
@pytest.mark.parametrize("sizes", [(1, 8, 9), (4, 8, 9), (32, 100, 20), (64, 300, 300), (200, 30, 40)], ids=str)
def test_products_with_a_transposed_matrix(sizes, dtype):
    rows, inner, outer = sizes
    a, b = _draw(dtype, rows, inner), _draw(dtype, outer, inner)
    got = jax.jit(backend.matmul_nt)(a, b)
    want = np.asarray(a, np.float64) @ np.asarray(b, np.float64).T
    assert got.shape == want.shape and got.dtype == backend.accumulator(a.dtype)
    loose = 1e-4 if dtype is not jnp.float64 else 1e-10
    np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=loose, atol=loose)


@pytest.mark.parametrize("chance", [0.0, 0.3, 1.0])
def test_a_mask_is_what_is_drawn(chance):
    key = jnp.asarray([1, 2], jnp.uint32)
    mask = jax.jit(lambda key: backend.keep_mask(key, chance, (40, 50)))(key)
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, rng.bernoulli(key, chance, (40, 50)))
