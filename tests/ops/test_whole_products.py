"""Products of many integers: exact, and wrapped where they do not fit, as PyTorch's."""

import numpy as np
import pytest

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
