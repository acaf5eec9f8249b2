"""Products of many integers: exact, and wrapped where they do not fit, as PyTorch's."""

import jax.numpy as jnp
import numpy as np
import pytest

from jtorch.ops import products
from tests.oracle import both

DRAW = np.random.default_rng(0)
RANGES = {"int8": [127], "uint8": [255], "int16": [32767], "int32": [1 << 30], "int64": [9, 1 << 24, 1 << 62]}


@pytest.mark.parametrize("dtype, high", [(d, high) for d, all in RANGES.items() for high in all])
def test_products(dtype, high):
    low = 0 if dtype[0] == "u" else -high - 1
    draw = lambda *shape: DRAW.integers(low, high, shape, endpoint=True).astype(dtype)
    a, b, c, v = draw(70, 60), draw(60, 50), draw(2, 60, 50), draw(60)
    big = draw(300, 600)

    def program(t):
        x, y, z, w = map(t.tensor, (a, b, c, v))
        return [
            x @ y,
            x @ z,
            t.bmm(z.mT.contiguous(), z),
            t.tensor(big) @ t.tensor(big.T.copy()),
            x @ w,
            t.mv(y.T.contiguous(), w),
            t.addbmm(y[:50], z.mT, z, beta=2, alpha=3),
            t.addbmm(y[:50], z.mT[:, :, :0], z[:, :0]),
            t.addbmm(y[:50], z.mT[:0], z[:0]),
            t.addbmm(y[:0], z.mT[:, :0], z),
        ]

    both(program)


@pytest.mark.parametrize(
    "left, right",
    [((5, 4), (4, 3)), ((4,), (4, 3)), ((5, 4), (4,)), ((4,), (4,)), ((2, 1, 5, 4), (3, 4, 2)), ((4,), (3, 4, 2)), ((3, 5, 4), (4,)), ((3, 5, 4), (4, 2)), ((5, 0), (0, 3))],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_tpus_multiply_term_by_term(monkeypatch, left, right, dtype):
    """XLA has no products of 64-bit integers for them."""
    monkeypatch.setattr(products, "on_tpu", lambda: True)
    a, b = (DRAW.integers(0, 1 << 62, shape).astype(dtype) for shape in (left, right))
    got = products.product_of(jnp.asarray(a), jnp.asarray(b))
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, a @ b)
