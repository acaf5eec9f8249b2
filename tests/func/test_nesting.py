"""Transformations nested in each other, in every order, and users' Functions and grad modes inside them: on torch's numbers."""

import pytest

import jtorch
from tests.autograd.programs import run
from tests.func.functions import CUBE

HEAD = """
from torch.func import *
from torch.func import grad, vmap, vjp, jvp, jacfwd, jacrev, hessian, linearize, grad_and_value
import torch.autograd.forward_ad as fw
F = torch.autograd.functional
def f(x, y):
    return (x.sin() * y * x).sum()
def h(x):
    return torch.stack([(x.sin() * x).sum(), x[0] * x[1] * x[2]])
def D(*v):
    return torch.tensor(v, dtype=torch.float64)
x, y, v = D(0.5, 1., 1.5), D(2., 3., -1.), D(0.2, -0.4, 0.6)
m = torch.arange(12., dtype=torch.float64).reshape(4, 3) / 7
"""

FUNCTIONS = f"""
{CUBE}class Mul(torch.autograd.Function):
    @staticmethod
    def forward(a, b, k):
        return a * b * k, a + b
    @staticmethod
    def setup_context(ctx, inputs, output):
        a, b, ctx.k = inputs
        ctx.save_for_backward(a, b)
        ctx.save_for_forward(a, b)
    @staticmethod
    def backward(ctx, g, g2):
        a, b = ctx.saved_tensors
        return g * b * ctx.k * 10 + g2, g * a * ctx.k * 10 + g2, None
    @staticmethod
    def jvp(ctx, ta, tb, _):
        a, b = ctx.saved_tensors
        return 7 * ctx.k * (ta * b + tb * a), ta + tb
    @staticmethod
    def vmap(info, in_dims, a, b, k):
        print(info.batch_size, info.randomness, in_dims, tuple(a.shape), tuple(b.shape), k)
        da, db, _ = in_dims
        a = a if da is None else a.movedim(da, 0)
        b = b if db is None else b.movedim(db, 0)
        return Mul.apply(a, b, k), (0, 0)
class NoVmap(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * 2
    @staticmethod
    def setup_context(ctx, inputs, output):
        pass
    @staticmethod
    def backward(ctx, g):
        return g * 2
"""

PROGRAMS = {
    "orders": """
a = jvp(grad(f), (x, y), (v, x))
b = grad(lambda x: jvp(lambda z: f(z, y), (x,), (v,))[1])(x)
c = jacfwd(jacrev(h))(x), jacrev(jacfwd(h))(x)
d = hessian(f, argnums=(0, 1))(x, y)
e = vmap(grad(lambda r: jvp(lambda z: (z**3).sum(), (r,), (v,))[1]))(m)
g = vmap(lambda t: jvp(h, (x,), (t,))[1])(m), vmap(jacrev(jacfwd(h)))(m)
i = jvp(vmap(h), (m,), (m,))
o, p = vjp(lambda x: jvp(h, (x,), (v,))[1], x)
j = vmap(p)(m)
k = vmap(grad_and_value(lambda r: ((r ** 3).sum(), {"k": r}), has_aux=True))(m)
l = jacrev(jacrev(lambda x: (x.sin(), x), has_aux=True), has_aux=True)(x)
""",
    "closures": """
def outer(x):
    s = x.sin()
    def inner(y):
        t = y * s
        return grad(lambda z: (z * t * x).sum())(y).sum()
    return grad(inner)(x).sum() + jvp(inner, (x,), (s,))[1]
a = grad(outer)(x), jvp(outer, (x,), (v,)), vmap(outer)(m), hessian(outer)(x)
w = m.clone().requires_grad_()
u = w.t()[:, 0]  # a view that the functions use though it is no argument
b = vmap(lambda r: (r * u).sum())(m)
b.sum().backward()
c = w.grad
w.grad = None
""",
    "linearize": """
o, p = linearize(h, x)
a, b = p(v), vmap(p)(m)
o2, p2 = linearize(lambda x, y: (x * y, {"a": x.sum()}), x, y)
c = p2(v, v)
attempt(p, v, v)
attempt(p, v[:2])
attempt(p2, v)
attempt(p, v.float())
w = x.clone().requires_grad_()
o, p = linearize(lambda z: z * w, y)
t = p(v)
print(o.requires_grad, t.requires_grad)
""",
    "no_grad": """
def q(x):
    with torch.no_grad():
        s = x * 2
    return (s * x).sum()
a = grad(q)(x), jvp(q, (x,), (v,)), jvp(grad(q), (x,), (v,)), hessian(q)(x), jacrev(jacrev(q))(x)
with torch.no_grad():
    b = hessian(h)(x)
def r(x):
    with torch.no_grad():
        s = grad(lambda z: (z ** 3).sum())(x)
    return (s * x).sum()
c = grad(r)(x), jvp(r, (x,), (v,))
""",
    "functions": """
a = jvp(grad(lambda x: Cube.apply(x).sum()), (x,), (v,)), grad(lambda x: jvp(Cube.apply, (x,), (v,))[1].sum())(x)
b = jacfwd(jacrev(Cube.apply))(x), jacrev(jacfwd(Cube.apply))(x)
c = vmap(grad(lambda r: jvp(Cube.apply, (r,), (v,))[1].sum()))(m), vmap(jacrev(Cube.apply))(m)
d = jacrev(vmap(Cube.apply))(m), jvp(vmap(Cube.apply), (m,), (m,)), vmap(vmap(Cube.apply))(m)
w = x.clone().requires_grad_()
with fw.dual_level():
    fw.unpack_dual(Cube.apply(fw.make_dual(w, v))).tangent.sum().backward()
e = w.grad
w.grad = None
vmap(Cube.apply)(w).sum().backward()
g = w.grad
w.grad = None
""",
    "functions_own_vmap": """
a = vmap(lambda r: Mul.apply(r, y, 3)[0])(m)
b = vmap(lambda r, s: Mul.apply(r, s, 3)[0], in_dims=(1, 0))(m.t(), m)
c = vmap(lambda q: vmap(lambda r: Mul.apply(r, y[0], 3)[0])(q))(m)
d = vmap(grad(lambda r: Mul.apply(r, y, 2)[0].sum()))(m), jvp(lambda m: vmap(lambda r: Mul.apply(r, y, 2)[0])(m), (m,), (m,))
e = vmap(lambda r: jvp(lambda z: Mul.apply(z, y, 2), (r,), (v,)))(m)
w = m.clone().requires_grad_()
vmap(lambda r: Mul.apply(r, y, 2)[0])(w).sum().backward()
g = w.grad
w.grad = None
""",
    "functions_context": """
class Scale(torch.autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(x, k, flag):
        i = x.argsort()
        return x * k if flag else x, i
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.x, ctx.k, ctx.flag = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)
    @staticmethod
    def backward(ctx, g, _):
        print("needs", ctx.needs_input_grad)
        return g * ctx.k, (g * ctx.x).sum() if ctx.needs_input_grad[1] else None, None
    @staticmethod
    def jvp(ctx, t, tk, _):
        return (0 if t is None else t * ctx.k) + (0 if tk is None else ctx.x * tk), None
k = D(2.)[0]
a = grad(lambda x: Scale.apply(x, k, True)[0].sum())(x), grad(lambda k: Scale.apply(x, k, True)[0].sum())(k)
b = jvp(lambda x: Scale.apply(x, k, True)[0], (x,), (v,)), jvp(lambda k: Scale.apply(x, k, True)[0], (k,), (k,))
c = vmap(grad(lambda x: Scale.apply(x, 3., True)[0].sum()))(m)
z = torch.tensor([1 + 2j, 0.5 - 1j], dtype=torch.complex128)
d = grad(lambda z: Cube.apply(z).abs().sum())(z)
""",
    "functions_refused": """
class Old(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
class Both(NoVmap):
    generate_vmap_rule = True
    @staticmethod
    def vmap(info, in_dims, x):
        return x, 0
class Wrong(NoVmap):
    @staticmethod
    def vmap(info, in_dims, x):
        return 3
class Wrong2(NoVmap):
    @staticmethod
    def vmap(info, in_dims, x):
        return x * 2, (0, 0)
attempt(jvp, Old.apply, (x,), (v,))
attempt(jvp, NoVmap.apply, (x,), (v,))
attempt(vmap(grad(lambda r: NoVmap.apply(r).sum())), m)
for cls in (NoVmap, Old, Both, Wrong, Wrong2):
    attempt(vmap(cls.apply), m)
""",
    "functions_through_numpy": """
import numpy
class Product(torch.autograd.Function):
    @staticmethod
    def forward(a, b):
        return torch.tensor(a.numpy() * b.numpy())
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return Product.apply(g, b), Product.apply(g, a)
    @staticmethod
    def vmap(info, in_dims, a, b):
        a, b = (t.unsqueeze(-1) if d is None else t.movedim(d, -1) for t, d in zip((a, b), in_dims))
        return Product.apply(a, b).movedim(-1, 0), 0
a = jacrev(lambda x: Product.apply(x, y))(x), jacrev(lambda x, y: Product.apply(x, y), (0, 1))(x, y)
b = jacrev(jacrev(lambda x: Product.apply(x, Product.apply(x, y))))(x)
""",
    "functions_of_integers": """
class Take(torch.autograd.Function):
    @staticmethod
    def forward(x, i):
        return x[i]
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(inputs[1])
    @staticmethod
    def jvp(ctx, t, ti):
        print(ti is None)
        return t[ctx.saved_tensors[0]]
i = torch.tensor([2, 0])
a = jvp(lambda x: Take.apply(x, i), (x,), (v,))
""",
    "functions_that_write": """
import numpy
class Exp(torch.autograd.Function):
    @staticmethod
    def forward(x):
        numpy.exp(x.numpy(), out=x.numpy())
        return x
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(inputs[0])
        ctx.save_for_backward(output)
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]
    @staticmethod
    def vmap(info, in_dims, x):
        Exp.apply(x)
        return x, in_dims[0]
def written(x):
    x = x * 1
    y = Exp.apply(x)
    print(y is x)
    return x * y
a = written(x), vmap(written)(m), vmap(vmap(written))(torch.stack([m, m / 2]))
b = grad(lambda m: vmap(written)(m).sum())(m), vmap(grad(lambda x: written(x).sum()))(m)
""",
    "with_forward_ad": """
with fw.dual_level():
    d = fw.make_dual(x, v)
    a = [t.detach() for t in fw.unpack_dual(grad(lambda z: (z**3).sum())(d))]
    b = [t.detach() for t in fw.unpack_dual(vmap(lambda r: r * d.sum())(y))]
    c = [t.detach() for t in fw.unpack_dual(jacrev(h)(d))]
    for q in (lambda: jvp(h, (d,), (v,)), lambda: jacfwd(h)(d)):
        attempt(q)
def q(x):
    with fw.dual_level():
        return fw.unpack_dual(h(fw.make_dual(x, v))).tangent
e = grad(lambda x: q(x).sum())(x)
attempt(jvp, q, (x,), (v,))
""",
    "with_functional": """
a = F.jacobian(grad(lambda z: f(z, y)), x), F.vjp(lambda z: jvp(h, (z,), (v,))[1], x, v), F.jacobian(jacfwd(h), x)
attempt(vmap(lambda r: F.jacobian(h, r)), m)
attempt(vmap(lambda r: r.detach().requires_grad_()), m)
w = x.clone().requires_grad_()
t = hessian(lambda z: (z ** 4).sum())(w)
b, = torch.autograd.grad(t.sum(), w, create_graph=True)
c, = torch.autograd.grad(b.sum(), w)
""",
    "refused": """
i = torch.arange(3)
attempt(jacrev(lambda x: x.argmax()), x)
a = jacfwd(lambda x: x.argmax())(x), jvp(lambda x: x.argmax(), (x,), (v,))
for transform in (grad(lambda i: i.sum()), jacrev(lambda i: i * 2), jacfwd(lambda i: i * 2), lambda i: vjp(lambda i: i * 2, i)):
    attempt(transform, i)
for primals, tangents in (((i,), (i,)), ((), ()), ((x,), ([v],)), ((x,), v), ((3,), (v,)), ((x,), (3,))):
    attempt(jvp, h, primals, tangents)
attempt(jvp, lambda x: torch.ones(2), (x,), (v,), strict=True)
z = torch.tensor([1 + 2j, 0.5 - 1j], dtype=torch.complex128)
attempt(jacrev(lambda z: z), z)
attempt(jacfwd(lambda x: x * z[0]), x)
attempt(jacfwd(lambda x: x * torch.rand(3)), x)
attempt(lambda: jacfwd(lambda x: x, randomness="foo")(x))
b = jacfwd(lambda x: x * torch.rand(3).numel(), randomness="same")(x)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nesting(name):
    run(HEAD + (FUNCTIONS if name.startswith("functions") else "") + PROGRAMS[name])


@pytest.mark.parametrize("n", [3, 5000])
def test_what_numpy_has_let_go_of_is_no_tracer_afterwards(n):
    """The first use of such a tensor takes it from host memory: in a function that jax traces, too."""

    class Scaled(jtorch.autograd.Function):
        @staticmethod
        def forward(y):
            return y * held

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * held

    def let_go():
        t = jtorch.ones(n)
        t.numpy()
        return t

    ones, held = jtorch.ones(n), None

    def drawn(i):
        return held * jtorch.rand(n) * i

    def scaled(y):
        return y * held

    for use in (
        lambda: jtorch.vmap(drawn, randomness="different")(jtorch.ones(2)),
        lambda: jtorch.func.grad(lambda y: Scaled.apply(y).sum())(ones),
        lambda: jtorch.func.linearize(scaled, ones)[1](ones),
    ):
        held = let_go()
        use()
        assert held.sum().item() == n
    held = let_go()
    with pytest.raises(RuntimeError, match="inplace arithmetic"):
        jtorch.vmap(lambda i: held.mul_(i * jtorch.rand(n)), randomness="different")(jtorch.ones(2))
    assert held.sum().item() == n


def test_a_parameter_written_in_a_traced_function_stays_written():
    w = jtorch.nn.Parameter(jtorch.zeros(3))

    def counted(row):
        with jtorch.no_grad():
            w.fill_(1)
        return w * row + jtorch.rand(()) * 0

    out = jtorch.vmap(counted, randomness="different")(jtorch.ones(2, 3))
    assert w.tolist() == [1, 1, 1] and out.tolist() == [[1, 1, 1]] * 2 and w._version == 1
