"""16-bit floats: what is added up is added up in float32, and a number beside them is taken as it is, as PyTorch does."""

import pytest

import jtorch

torch = pytest.importorskip("torch")
LIBS = (torch, jtorch)
DTYPES = ("bfloat16", "float16")
NUMBER = 0.30718  # no 16-bit float

# Each gives the same bits as PyTorch, of 2000 numbers.
NUMBERS = {
    "mul": lambda T, a, s: a * s,
    "mul from the left": lambda T, a, s: s * a,
    "mul_": lambda T, a, s: a.mul_(s),
    "mul by a tensor without dimensions": lambda T, a, s: a * T.tensor(s),
    "mul by a double without dimensions": lambda T, a, s: T.mul(a, T.tensor(s, dtype=T.float64)),
    "div": lambda T, a, s: a / s,
    "div_": lambda T, a, s: a.div_(s),
    "true_divide": lambda T, a, s: T.true_divide(a, s),
    "floor_divide": lambda T, a, s: (a * 50) // s,
    "div floor": lambda T, a, s: T.div(a * 50, s, rounding_mode="floor"),
    "div trunc": lambda T, a, s: T.div(a * 50, s, rounding_mode="trunc"),
    "div trunc by a tensor": lambda T, a, s: T.div(a * 50, a.flip(0), rounding_mode="trunc"),
    "lerp": lambda T, a, s: T.lerp(a, a.flip(0), s),
    "lerp_ from the end": lambda T, a, s: a.lerp_(a.flip(0), 1 - s),
    "add": lambda T, a, s: a + s,
    "sub": lambda T, a, s: a - s,
    "decay": lambda T, a, s: a.mul_(0.999),
    "_foreach_mul": lambda T, a, s: T._foreach_mul([a], s)[0],
    "_foreach_lerp": lambda T, a, s: T._foreach_lerp([a], [a.flip(0)], s)[0],
    "addmm": lambda T, a, s: T.addmm(a.view(50, 40), a.view(50, 40), a[:1600].view(40, 40), beta=s, alpha=0.7),
    "addmm of a row": lambda T, a, s: T.addmm(a[:40], a.view(50, 40), a[:1600].view(40, 40), alpha=s),
    "baddbmm": lambda T, a, s: T.baddbmm(a.view(2, 20, 50), a.view(2, 20, 50), a.expand(2, 2000)[:, :1000].reshape(2, 20, 50).mT @ a.view(2, 20, 50), beta=s, alpha=0.01),
}  # fmt: skip


def values(lib, dtype):
    torch.manual_seed(0)
    return lib.tensor(torch.randn(2000).tolist()).to(getattr(lib, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_not_rounded_first(name, dtype):
    theirs, ours = (NUMBERS[name](lib, values(lib, dtype), NUMBER).float().tolist() for lib in LIBS)
    wrong = sum(a != b for a, b in zip(_flat(ours), _flat(theirs)))
    # a product of many terms is summed in another order: one in a hundred may be rounded the other way
    assert wrong <= (0.01 * len(list(_flat(theirs))) if "mm" in name else 0)


def _flat(x):
    return [v for row in x for v in _flat(row)] if isinstance(x, list) else [x]


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_of_products_with_numbers(dtype):
    found = []
    for lib in LIBS:
        x = values(lib, dtype).requires_grad_()
        s = lib.tensor(NUMBER, requires_grad=True)
        ((x * NUMBER) / 1.003 + x * s).backward(values(lib, dtype).flip(0))
        found.append(
            (x.grad.float().tolist(), x.grad.dtype == getattr(lib, dtype), s.grad.dtype == lib.float32, s.grad)
        )
    assert found[0][0] == found[1][0] and found[1][1:3] == (True, True)
    assert float(found[1][3]) == pytest.approx(float(found[0][3]), rel=2e-2)


SUMS = {
    "sum": lambda T, a: a.sum(),
    "sum of columns": lambda T, a: a.view(500, 4).sum(0),
    "nansum": lambda T, a: a.nansum(),
    "prod": lambda T, a: a[:60].clamp(0.75, 1.25).prod(),
    "mean": lambda T, a: a.mean(),
    "trace": lambda T, a: a[:1936].view(44, 44).trace(),
    "scatter_add": lambda T, a: T.zeros(2, dtype=a.dtype).scatter_add(0, T.arange(2000) % 2, a),
    "scatter_reduce": lambda T, a: T.ones(2, dtype=a.dtype).scatter_reduce(0, T.arange(2000) % 2, a, "sum"),
    "scatter_reduce mean": lambda T, a: T.ones(2, dtype=a.dtype).scatter_reduce(0, T.arange(2000) % 2, a, "mean"),
    "gradient of expand": lambda T, a: _expanded(T, a),
}


def _expanded(T, a):
    x = T.zeros(4, dtype=a.dtype, requires_grad=True)
    x.expand(500, 4).backward(a.view(500, 4))
    return x.grad


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SUMS)
def test_sums_are_rounded_once(name, dtype):
    ours = SUMS[name](jtorch, values(jtorch, dtype))
    exact = SUMS[name](torch, values(torch, dtype).double())
    assert ours.dtype == getattr(jtorch, dtype)
    # one rounding, or the neighbour: float32 has a rounding of its own
    eps = torch.finfo(getattr(torch, dtype)).eps
    for x, y in zip(_flat(ours.tolist()), _flat(exact.tolist())):
        assert abs(x - y) <= eps * abs(y) * 0.51 + 1e-5
