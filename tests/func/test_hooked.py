"""Hooks on tensors and nodes inside transformed functions, compared with torch line by line."""

import pytest

import jtorch

pytest.importorskip("torch")

from tests.autograd.programs import run

PREPARED = """
from torch.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
x = torch.tensor([1., 2., 3.], dtype=torch.float64)
both = torch.stack([x, x + 1])
one = torch.ones((), dtype=torch.float64)
found = []
def everywhere(f):
    found.extend([grad(f)(x), vmap(grad(f))(both), vjp(f, x)[1](2 * one)[0], jacrev(f)(x)])
    found.extend([grad(lambda x: grad(f)(x).sum())(x), hessian(f)(x), jacrev(jacrev(f))(x)])
"""

PROGRAMS = {
    "uses_before_count_too": """
def f(x):
    y = x * 2
    z = y * 3
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: g + 1)
    return (y * y * y).sum() + (z * z).sum()
everywhere(f)
""",
    "on_an_argument": """
def f(x):
    x.register_hook(lambda g: g * x)
    return (x * x * x).sum()
everywhere(f)
""",
    "removed": """
def f(x):
    y = x * x
    y.register_hook(lambda g: g * 10).remove()
    return (y * y).sum()
everywhere(f)
""",
    "not_linear": """
def f(x):
    y = x * 2
    y.register_hook(lambda g: g.clamp(max=3.))
    return (y * y).sum()
everywhere(f)
""",
    "writes_and_views": """
def f(x):
    y = x * 3
    y[0] = 5.
    y[1:].mul_(x[1:])
    y.register_hook(lambda g: g * 10)
    y.add_(x)
    z = y.view(3, 1)
    z.register_hook(lambda g: g + 1)
    a, b = torch.split(x * y, [1, 2])
    b.register_hook(lambda g: g * 3)
    return (z * y).sum() + a.sum() * b.sum()
everywhere(f)
""",
    "own_rules": """
class Square(torch.autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(x):
        return x ** 2
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
    @staticmethod
    def backward(ctx, g):
        return g * 20 * ctx.saved_tensors[0]
def f(x):
    y = Square.apply(x * 3)
    y.register_hook(lambda g: g * 10)
    return Square.apply(y).sum()
everywhere(f)
""",
    "nodes": """
def f(x):
    y = x.sin()
    y.grad_fn.register_hook(lambda given, got: (given[0] * 5,))
    y.grad_fn.register_prehook(lambda got: (got[0] + 1,))
    torch.autograd.graph.register_multi_grad_hook((y,), lambda gs: print([g.shape for g in gs]))
    return (y * y).sum()
everywhere(f)
""",
    "several_results": """
def f(x):
    y = x * 3
    y.register_hook(lambda g: g * 10)
    return torch.stack([y * y, y.sin()]), x.cos() * y
j = jacrev(f)(x)
k = jacfwd(jacrev(lambda x: f(x)[1]))(x)
m = vmap(jacrev(f))(both)
a = jacrev(lambda x: (f(x)[1], x * 2), has_aux=True)(x)
""",
    "aux_and_dicts": """
def f(p, x):
    y = x @ p["w"]
    y.register_hook(lambda g: g * 10)
    p["b"].register_hook(lambda g: g * 3)
    return (torch.tanh(y) + p["b"]).sum(), {"y": y.detach()}
p = {"w": torch.arange(6., dtype=torch.float64).view(3, 2) / 8, "b": torch.ones(2, dtype=torch.float64)}
g, aux = grad(f, has_aux=True)(p, x)
h, (v, aux2) = grad_and_value(f, argnums=(0, 1), has_aux=True)(p, x)
b, baux = vmap(grad(f, has_aux=True), in_dims=(None, 0))(p, both)
out, pull, aux3 = vjp(f, p, x, has_aux=True)
got = pull(one)
""",
    "levels_in_each_other": """
def f(x):
    y = x * 3
    y.register_hook(lambda g: g * 10)
    def inner(z):
        w = z * y
        w.register_hook(lambda g: g * 5)
        return (w * w).sum()
    return grad(inner)(x).sum()
g = grad(f)(x)
def f(x):
    y = x * 2
    y.register_hook(lambda g: g * 10)
    (gx,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    return (gx * y).sum()
h = grad(f)(x)
""",
    "the_tape_around": """
w = x.clone().requires_grad_()
def f(z):
    y = w * z
    y.register_hook(lambda g: g * 5)
    return (y * y).sum()
g = grad(f)(x)
g.sum().backward()
first, w.grad = w.grad, None
o, pull = vjp(f, x)
pull(one)[0].sum().backward()
""",
    "kept_gradients": """
kept = []
def f(x):
    y = x * 2
    y.register_hook(kept.append)
    return (y * y).sum()
w = x.clone().requires_grad_()
r = grad(f)(x), grad(f)(w).detach()
seen = [(k.detach() + 1).tolist() for k in kept]
kept.clear()
o, pull = vjp(lambda x: f(x) * 1, x)
print(len(kept))
pull(one), pull(one)
print(len(kept))
kept.clear()
""",
    "refused": """
def doubled(x):
    y = x * 2
    y.register_hook(lambda g: g * 10)
    return (y * y).sum()
w = T(1., 2., 3.)
def captured(z):
    y = w * 3
    y.register_hook(lambda g: g)
    return (y * z).sum()
def outer(x):
    def inner(z):
        y = x * 2
        y.register_hook(lambda g: g)
        return (y * z).sum()
    return grad(inner)(x * 1).sum()
def returning(value):
    def f(x):
        y = x * 2
        y.register_hook(lambda g: value(g))
        return y.sum()
    return f
def retained(x):
    y = x * 2
    y.retain_grad()
    return y.sum()
attempt(vmap(doubled), both)
attempt(vmap(doubled), w)
attempt(jvp, doubled, (x,), (x,))
attempt(jacfwd(doubled), x)
attempt(linearize, doubled, x)
attempt(grad(lambda x: vmap(doubled)(x).sum()), both)
attempt(grad(captured), x)
attempt(grad(outer), x)
attempt(grad(returning(lambda g: "word")), x)
attempt(grad(returning(lambda g: g.float())), x)
attempt(grad(returning(lambda g: g[:1])), x)
attempt(grad(retained), x)
attempt(vmap(retained), both)
""",
    "saved_tensors_hooks": """
def hooks():
    return torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
def f(x):
    with hooks():
        return (x * x).sum()
def plain(x):
    return (x * x).sum()
for tf in (grad(f), lambda x: vjp(f, x), jacrev(f), hessian(f), vmap(grad(f), 0)):
    attempt(tf, both)
r = vmap(f)(both), jvp(f, (x,), (x,)), jacfwd(f)(x)
def around():
    with hooks():
        return grad(plain)(x)
attempt(around)
def disabled():
    with torch.autograd.graph.disable_saved_tensors_hooks("no"):
        found.append(grad(plain)(x))
        attempt(vmap(f), both)
disabled()
from torch.utils.checkpoint import checkpoint
c = vmap(lambda x: checkpoint(lambda x: x.sin() * x, x, use_reentrant=False))(both)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_hooked(name):
    run(PREPARED + PROGRAMS[name])


def test_random_numbers_of_a_pullback():
    """A pullback with hooks runs the function again, with the numbers of the first time."""

    def f(x):
        y = jtorch.nn.functional.dropout(x, 0.5)
        y.register_hook(lambda g: g * 10)
        return y * x

    x = jtorch.arange(1.0, 33.0)
    out, pull = jtorch.func.vjp(f, x)
    state = jtorch.get_rng_state()
    (got,) = pull(jtorch.ones(32))
    jtorch.testing.assert_close(got, out / x * 11)
    assert state.equal(jtorch.get_rng_state())


def test_hooks_of_other_levels_are_refused():
    def f(x):
        y = x * 3

        def inner(z):
            y.register_hook(lambda g: g * 5)
            return (y * z).sum()

        return jtorch.func.grad(inner)(x * 1).sum()

    with pytest.raises(NotImplementedError, match="made outside of the innermost of torch.func's transformations"):
        jtorch.func.grad(f)(jtorch.ones(2))
