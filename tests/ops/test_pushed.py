"""Forward derivatives at kinks, and derivatives of derivatives there: PyTorch's, which are its stated ones, not those of a formula."""

import pytest

from tests.oracle import both

INF = float("inf")
X = [0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, -3.0, 6.0, 0.25]
Y = [0.0, 0.0, 0.0, 1.0, 2.0, -1.0, -0.5, 3.0, 0.5, 0.25]

# of one tensor; forward, and backward twice
ONE = {
    "relu": lambda t, x: x.relu(),
    "relu6": lambda t, x: t.nn.functional.relu6(x),
    "hardtanh": lambda t, x: t.nn.functional.hardtanh(x),
    "hardswish": lambda t, x: t.nn.functional.hardswish(x),
    "elu": lambda t, x: t.nn.functional.elu(x, 2.0),
    "celu": lambda t, x: t.nn.functional.celu(x, 0.5),
    "selu": lambda t, x: t.nn.functional.selu(x),
    "logsigmoid": lambda t, x: t.nn.functional.logsigmoid(x),
    "abs": lambda t, x: x.abs() * x,
    "clamp": lambda t, x: x.clamp(-1, 2) * x,
    "power of 1": lambda t, x: x**1.0 * 2,
    "power of one number after another": lambda t, x: sum(x**p for p in (5.0, 3.0, 2.0, 1.0)),
    "largest": lambda t, x: t.stack([x, x, x + 1, x + 1]).max(0)[0] * x,
}
# forward alone, or backward once: where PyTorch's second derivative is nan, or there is none
FIRST = {
    "norm at 0": lambda t, x: x.view(-1, 1).norm(2, dim=1),
    "norms of order 1": lambda t, x: t.linalg.vector_norm(x.view(-1, 1), 1, dim=1),
    "largest size": lambda t, x: t.linalg.vector_norm(t.stack([x, -x]), INF, dim=0),
    "renorm": lambda t, x: t.renorm(x[:, None], 2, 0, 1.0)[:, 0] * x,
    "deviation of equals": lambda t, x: t.stack([x, x]).std(0),
    "entropy": lambda t, x: t.special.entr(x),
    "hardsigmoid": lambda t, x: t.nn.functional.hardsigmoid(x),
    "logit between": lambda t, x: t.logit(x, 0.25),
    "acosh outside": lambda t, x: t.acosh(x),
    "elements under a mask": lambda t, x: t.masked_select(x * x, x > 0),
    "largest scattered": lambda t, x: x.scatter_reduce(0, t.arange(10) // 2, x * 2, "amax"),
    "smallest scattered": lambda t, x: x.scatter_reduce(0, t.arange(10) // 3, x.round(), "amin", include_self=False),
    "smooth_l1_loss without a middle": lambda t, x: t.nn.functional.smooth_l1_loss(
        x, x * 2, beta=0.0, reduction="none"
    ),
    "huber_loss far away": lambda t, x: t.nn.functional.huber_loss(x, t.full_like(x, INF), reduction="none") / INF + x,
}
TWO = {
    "ldexp": lambda t, x, y: t.ldexp(x, y),
    "copysign": lambda t, x, y: t.copysign(x, y),
    "xlogy": lambda t, x, y: t.xlogy(x, y.abs()),
    "maximum": lambda t, x, y: t.maximum(x, y) * x,
    "pow": lambda t, x, y: t.pow(x.abs(), y.abs()),
    "remainder": lambda t, x, y: t.remainder(x, y + 4),
}


def leaf(t, values):
    return t.tensor(values, dtype=t.float64, requires_grad=True)


def forward(t, fn, *values):
    primals = tuple(t.tensor(v, dtype=t.float64) for v in values)
    tangents = tuple(t.linspace(0.5, 2.0, len(X), dtype=t.float64) for _ in values)
    return t.func.jvp(lambda *a: fn(t, *a), primals, tangents)


@pytest.mark.parametrize("name", [*ONE, *FIRST])
def test_forward(name):
    both(lambda t: forward(t, {**ONE, **FIRST}[name], X))


@pytest.mark.parametrize("name", TWO)
def test_forward_of_two(name):
    both(lambda t: forward(t, TWO[name], X, Y))


QUADRANTS = [0.3 + 0.7j, -0.3 + 0.7j, -0.3 - 0.7j, 0.3 - 0.7j, 2 + 1j, -2 + 1j, -2 - 1j, 2 - 1j]


@pytest.mark.parametrize(
    "name", "acosh acos asin asinh atan atanh sqrt rsqrt log log1p tan tanh sigmoid sgn abs".split()
)
def test_forward_of_complex_numbers(name):
    """Either side of every branch cut."""

    def program(t):
        z = t.tensor(QUADRANTS, dtype=t.complex128)
        return t.func.jvp(getattr(t, name), (z,), (t.full_like(z, 1 + 0.5j),))

    both(program)


@pytest.mark.parametrize("name", FIRST)
def test_backward(name):
    def program(t):
        x = leaf(t, X)
        return t.autograd.grad(FIRST[name](t, x).sum(), x)

    both(program)


@pytest.mark.parametrize("name", ONE)
def test_backward_twice(name):
    def program(t):
        x = leaf(t, X)
        (g,) = t.autograd.grad(ONE[name](t, x).sum(), x, create_graph=True)
        return g.detach(), t.autograd.grad((g * g).sum(), x)

    both(program)


@pytest.mark.parametrize("name", ["pow", "xlogy", "copysign"])
def test_derivative_by_the_cotangent(name):
    def program(t):
        x, y, w = leaf(t, [abs(v) for v in X]), leaf(t, [abs(v) + 0.5 for v in Y]), leaf(t, [1.0] * len(X))
        g = t.autograd.grad(TWO[name](t, x, y), (x, y), w, create_graph=True, allow_unused=True, materialize_grads=True)
        return t.autograd.grad(sum(v.sum() for v in g), w)

    both(program)


def test_size_of_complex_parts_twice():
    def program(t):
        x, y = leaf(t, [1.0, 2.0]), leaf(t, [3.0, 4.0])
        g = t.autograd.grad(t.complex(x, y).abs().sum(), (x, y), create_graph=True)
        return t.autograd.grad(sum(v.sum() for v in g), (x, y))

    both(program, layout=False)


def test_weights_without_end():
    def program(t):
        x, w = leaf(t, [1.0, -2.0]), leaf(t, [INF, 0.5])
        return t.autograd.grad(t.nn.functional.prelu(x[None], w).sum(), (x, w))

    both(program)


def test_refused_forward():
    both(lambda t: forward(t, lambda t, x: t.unique_consecutive(x), X))
