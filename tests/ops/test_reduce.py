"""Extremes and where they are, along short and long dimensions: PyTorch's first index among equals and nans, for every kind of number."""

import pytest

from jtorch.ops import reduce
from tests.oracle import both

NAN, INF = float("nan"), float("inf")
ODD = [3.0, NAN, -0.0, 0.0, INF, -1.0, -INF, 3.0, 0.0, -0.0]
ROWS = {
    "nan": ODD,
    "ends": [x for x in ODD if x == x],
    "equal": [-2.0, 5.0, 5.0, -2.0, 1.0, 0.0],
    "endless": [-INF, -INF, -INF],
    "zeros": [-0.0, 0.0],
    "nans": [NAN, NAN],
}


@pytest.mark.parametrize("size", [7, reduce.LONG, 3 * reduce.LONG + 5])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "uint8"])
def test_places(dtype, size):
    def program(t):
        kind = getattr(t, dtype)
        names = ROWS if kind.is_floating_point else ["equal"]
        x = t.stack([t.tensor((ROWS[name] * size)[:size], dtype=t.float64) for name in names])
        x = t.cat([x, x.flip(1), x.roll(2, 1)]).to(kind)
        found = [x.argmax(), x.argmin(None, True), x[0].argmax(0), x[0].argmin(0, keepdim=True), x[:0].argmax(1)]
        for y, dim in ((x, 1), (x.t().contiguous(), 0), (x, -2), (x[:, None].expand(-1, 2, -1), 2)):
            for keepdim in (False, True):
                found += [y.argmax(dim, keepdim), y.argmin(dim, keepdim)]
                found += [*y.max(dim, keepdim), *y.min(dim, keepdim)]
        return found

    both(program)
