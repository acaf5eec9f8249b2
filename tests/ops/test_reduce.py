"""Extremes and where they are, along short and long dimensions: PyTorch's first index among equals and nans, for every kind of number."""

import pytest

from jtorch.ops import backend, reduce
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


FACTORS = {
    "no zero": [[2.0, -3.0, 0.5, 4.0], [1.0, 5.0, -1.0, 0.25]],
    "a zero": [[2.0, 0.0, 0.5, 4.0], [1.0, 5.0, -1.0, 0.25]],
    "zeros": [[0.0, -3.0, -0.0, 4.0], [0.0, 5.0, -1.0, 0.25]],
    "odd": [[NAN, 2.0, 3.0, 1.0], [INF, 2.0, -1.0, 3.0]],
    "beyond": [[1e-25, 1e-25, 1e-9, 1.0], [1e25, 1e25, 3.0, 2.0]],
    "turned": [[1 + 2j, 3j, -0.5 + 1j, 2.0], [1 - 1j, 0.0, 2j, 1 + 3j]],
}


@pytest.mark.parametrize(
    "name, dtype",
    [
        (name, dtype)
        for name in FACTORS
        for dtype in ("float32", "float64", "bfloat16", "complex128")
        if name != "turned" or dtype == "complex128"
    ],
)
def test_gradients_of_products(name, dtype):
    def program(t):
        x = t.tensor(FACTORS[name], dtype=getattr(t, dtype), requires_grad=True)
        found, wide = [], x.dtype if x.is_complex() else t.float64
        for y in (
            x.prod(),
            x.prod(0),
            x.prod(1, keepdim=True),
            x.prod(-1, dtype=wide),
            x[0, 0].prod(),
            x[:, :0].prod(1),
        ):
            weight = t.arange(1.0, y.numel() + 1).reshape(y.shape).to(y.dtype)
            (by_x,) = t.autograd.grad((y * weight).sum().abs(), x, create_graph=True)
            found.append(by_x)
            if name in ("no zero", "a zero", "zeros", "turned") and dtype != "bfloat16":
                found += t.autograd.grad((by_x * by_x.conj()).real.sum(), x, allow_unused=True)
        return found

    both(program)


@pytest.mark.parametrize("shape", [(64, 4096), (3, 8200), (2, 3, 4000), (5000,)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "bool"])
def test_long_products(shape, dtype):
    def program(t):
        x = 1 + t.arange(float(t.Size(shape).numel())).sin().reshape(shape) / 300
        x = (x if dtype.startswith("float") else (x * 100).round()).to(getattr(t, dtype))
        return [x.prod(), x.prod(-1), x.prod(-1, True), x.prod(0), x.prod(dtype=t.float64)]

    both(program)


MANY = backend.MANY_COLUMNS + 1  # columns, of which whole rows are combined


@pytest.mark.parametrize("rows", [1, 2, 8, 9, 19])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32", "complex64"])
def test_over_the_first_dimensions_of_many_columns(dtype, rows):
    def program(t):
        kind = getattr(t, dtype)
        x = (t.arange(rows * MANY) % 7 - 3).reshape(rows, MANY).to(kind)
        y = x[:, None].expand(rows, 2, MANY)
        found = [
            x.sum(0),
            x.sum(0, keepdim=True),
            y.sum((0, 1)),
            y.sum((0, 1), keepdim=True),
            y.sum(1),
            x.sum(0, dtype=kind),
        ]
        if not kind.is_complex:
            found += [x.amax(0), x.amin(0, keepdim=True), y.amax((0, 1)), *x.max(0), *x.min(0, keepdim=True)]
        return found + ([] if dtype == "int32" else [x.mean(0), y.mean((0, 1))])

    both(program)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64"])
@pytest.mark.parametrize("few", [2, 3, 8, 9, 16, 17])
def test_along_few_elements(few, dtype):
    """Slices combined with each other, of what is computed on the way too; nan among them, and where the dimension is the last."""
    from_ends = {"odd": [3.0, NAN, -0.0, INF], "usual": [3.0, -1.0, 0.5, 2.0]}

    def program(t):
        found, kind = [], getattr(t, dtype)
        for name, ends in from_ends.items():
            if name == "odd" and not kind.is_floating_point:
                continue
            x = (t.arange(few * 60 * 40) % 17 - 8.0).reshape(60, few, 40)
            x[0, :2, 0], x[1, 0, :4] = t.tensor(ends[:2]), t.tensor(ends)
            x = x.to(kind).repeat(1, 1, 9)
            w = t.arange(few).to(kind)
            for y, d in ((x, 1), (x.transpose(1, 2).contiguous(), -1), (x.transpose(0, 1).contiguous(), 0)):
                shape = [1, 1, 1]
                shape[d] = few
                y = y * w.reshape(shape)
                found += [y.sum(d), y.sum(d, keepdim=True), y.amax(d), y.amin(d, keepdim=True), *y.max(d)]
                found += [y.mean(d)] if kind.is_floating_point else []
        return found

    both(program)


@pytest.mark.parametrize("few", [3, 16])
def test_gradients_along_few_elements(few):
    def program(t):
        x = t.linspace(-2, 2, 50 * few * 30, dtype=t.float64).reshape(50, few, 30).repeat(1, 1, 20)
        x[0, :2, 3] = 5.0
        x.requires_grad_()
        w = t.linspace(0, 1, few, dtype=t.float64)[:, None].requires_grad_()
        found = []
        for y in ((x * w).sum(1), (x * w).mean(1, keepdim=True), x.amax(1), x.transpose(1, 2).amin(2), x * w):
            found += t.autograd.grad((y * y).sum(), (x, w), allow_unused=True, create_graph=True)
        found += t.autograd.grad(found[-1].pow(2).sum(), (x, w))
        return [g.contiguous() for g in found if g is not None]

    both(program)


@pytest.mark.parametrize("shape", [(48, 128), (6144,), (3, 2048), (2, 3, 1024), (7, 1031)])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "int8", "bool"])
def test_sums_of_whole_numbers(dtype, shape):
    """All elements, or those along the last dimensions, in pieces; beyond what the shorter types hold."""

    def program(t):
        x = t.full(shape, 1 if dtype == "bool" else 127, dtype=getattr(t, dtype))
        x.view(-1)[::5] = 0
        found = [x.sum(), x.sum(-1), x.sum(0, keepdim=True), x.count_nonzero(), x.count_nonzero(-1), x.prod(-1)]
        found += [x.sum(tuple(range(1, x.ndim)), keepdim=True), (x != 0).sum(-1, keepdim=True), (x == 3).sum()]
        return [*found, x.sum(dtype=t.uint8), x.sum(-1, dtype=t.float32), (x * 2**60).sum() if dtype == "int64" else 0]

    both(program)


SIGHTED = {
    "all": lambda t, x: [x.max(), x.min(), *x.aminmax(), x.norm(float("inf")), t.linalg.vector_norm(x, -float("inf"))],
    "rows": lambda t, x: [x.amax(1), x.amin(1, keepdim=True), x.max(1)[0], *x.aminmax(dim=1), (x * 2).amax(1)],
    "columns": lambda t, x: [x.amax(0), x.min(0)[0], x.norm(float("inf"), 0), t.linalg.norm(x, 1)],
    "others": lambda t, x: [
        t.nn.functional.pairwise_distance(x, x * 2, float("inf")),
        t.nn.functional.adaptive_max_pool2d(x[None], 1),
        x.renorm(float("inf"), 0, 1.0),
        t.dist(x, x * 3, float("inf")),
    ],
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", SIGHTED)
def test_extremes_of_many_elements_see_nan(name, dtype):
    """Programs made with everything on, of which XLA leaves reductions to its library; infinities of both signs are no nan."""

    def program(t):
        found, compiled = [], t.compile(lambda x: SIGHTED[name](t, x)) if t.__name__ == "jtorch" else None
        for odd in (NAN, -NAN, INF):
            x = (t.arange(70.0 * 96) % 31 - 15).reshape(70, 96).to(getattr(t, dtype))
            x[3, 5] = odd
            if odd == INF:
                x[3, 6] = -odd
            found += compiled(x) if compiled else SIGHTED[name](t, x)
        return found

    both(program)


@pytest.mark.parametrize("rows", [3, 17])
def test_gradients_over_the_first_dimension_of_many_columns(rows):
    def program(t):
        x = t.linspace(-2, 2, rows * MANY, dtype=t.float64).reshape(rows, MANY)
        x[1, 3] = x[2, 3] = 5.0
        x.requires_grad_()
        w = t.linspace(0, 1, MANY, dtype=t.float64).requires_grad_()
        found = []
        for y in (x.sum(0), x.mean(0), x.amax(0), x.min(0)[0], x * w, w.repeat(rows, 1), x[None, :2].repeat(3, 2, 1)):
            found += t.autograd.grad((y * y).sum(), (x, w), allow_unused=True, create_graph=True)
        found += t.autograd.grad(found[-1].pow(2).sum(), (x, w))
        tangent = t.func.jvp(lambda x: x.sum(0) + x.amax(0), (x.detach(),), (t.ones_like(x),))
        return [*[g.contiguous() for g in found if g is not None], *tangent]

    both(program)
