"""grad, vjp and jvp outside of other transformations: values are known inside, and what escapes has them too."""

import pytest

import jtorch
from tests.autograd.programs import run

pytest.importorskip("torch")

PROGRAMS = {
    "values_are_known": """
from torch.func import grad, jacrev, jvp, vjp
x = torch.tensor([1., -2., 3.], dtype=torch.float64)
def branch(x):
    return (x ** 2).sum() if x.sum() > 0 else x.sum()
def chosen(x):
    return x[x > 1].sum() * len(x.nonzero()) + x.sum() * x.max().item() * x.tolist()[0]
a = [grad(branch)(x), grad(branch)(-x), jacrev(branch)(x), vjp(branch, x)[1](torch.ones((), dtype=torch.float64))]
b = grad(chosen)(x)
c = jvp(branch, (x,), (x,))
""",
    "what_escapes": """
from torch.func import grad, jvp, vjp
kept = {}
def f(x):
    kept["h"] = x.sin()
    kept["d"] = x.detach()
    return (kept["h"] * 2).sum()
x = torch.tensor([1., 2., 3.], dtype=torch.float64)
seen = []
for tf in (grad(f), lambda x: jvp(f, (x,), (x,)), lambda x: vjp(f, x)[0]):
    got = tf(x)
    seen.append((kept["h"].detach() + 1, kept["d"] + 1))
kept = None
""",
    "outside_and_inside": """
from torch.func import grad, grad_and_value, vjp
w = T(1., 2.)
x = torch.tensor([3., 4.], dtype=torch.float64)
with torch.no_grad():
    a = grad(lambda x: (x * w).sin().sum())(x)
b, (v, aux) = grad_and_value(lambda x: ((x * w).sum(), x * w), has_aux=True)(x)
flags = a.requires_grad, b.requires_grad, v.requires_grad, aux.requires_grad
c = grad(lambda x: (x * torch.no_grad()(lambda: x * 2)()).sum())(x)
d = grad(lambda z: (z * w).sum())(w)
d.sum().backward()
gw, w.grad = w.grad, None
attempt(grad(lambda x: x.requires_grad_().sum()), x)
attempt(grad(lambda x: x.add_(1).sum()), x)
out, pull = vjp(lambda x: (x * w).sin(), x)
e = pull(x)[0]
e.sum().backward()
pulled, w.grad = w.grad, None
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_by_tape(name):
    run(PROGRAMS[name])


def test_random_numbers_are_drawn_once():
    """A function that has to be traced after all draws what it drew before it turned out."""

    def f(x):
        y = x * jtorch.rand(3)
        (w + 0).register_hook(lambda g: g)
        return (y * w).sum()

    w = jtorch.ones(3, requires_grad=True)
    x = jtorch.ones(3)
    jtorch.manual_seed(3)
    expected = jtorch.rand(3)
    jtorch.manual_seed(3)
    with pytest.raises((RuntimeError, NotImplementedError)):
        jtorch.func.grad(f)(x)
    jtorch.manual_seed(3)
    got = jtorch.func.grad(lambda x: (x * jtorch.rand(3)).sum())(x)
    jtorch.testing.assert_close(got, expected)
