"""autograd.Function in all its forms."""

import pytest

from tests.oracle import both

from .programs import HEAD, run

DEFS = """
from torch.autograd import Function
from torch.autograd.function import once_differentiable

class SiLU(Function):
    @staticmethod
    def forward(ctx, x):
        s = torch.sigmoid(x)
        ctx.save_for_backward(x, s)
        return x * s
    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return g * s * (1 + x * (1 - s))

class Scale(Function):
    @staticmethod
    def forward(x, k, flag=True):
        return x * k
    @staticmethod
    def setup_context(ctx, inputs, output):
        x, k, flag = inputs
        ctx.k = k
        ctx.flag = flag
    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, None, None

class Two(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        print("needs", ctx.needs_input_grad)
        return a * b, a + b
    @staticmethod
    def backward(ctx, g, h):
        a, b = ctx.saved_tensors
        print("grads", None if g is None else g.tolist(), None if h is None else h.tolist())
        g = 0 if g is None else g
        h = 0 if h is None else h
        return g * b + h, g * a + h
"""

PROGRAMS = {
    "arguments_by_name": """
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y=None, *, k=1):
        return x * k
    @staticmethod
    def backward(ctx, g):
        return g, None
x = T(1., 2.)
attempt(Scaled.apply, x, None, k=3)
attempt(Scaled.apply, x, z=3)
out = Scaled.apply(x, y=None)
""",
    "silu": """
x = T(-1., 0.5, 2.)
y = SiLU.apply(x)
print(name(y), type(y.grad_fn).__name__, y.requires_grad, y.is_leaf, len(y.grad_fn.next_functions))
y.sum().backward(retain_graph=True)
g = x.grad
g1, = torch.autograd.grad(y.sum(), x, create_graph=True)
g2, = torch.autograd.grad(g1.sum(), x)
with torch.no_grad():
    print(SiLU.apply(x).requires_grad)
print(SiLU.apply(x.detach()).requires_grad)
saved = [t.tolist() for t in y.grad_fn.saved_tensors]
y.sum().backward()
attempt(lambda: y.grad_fn.saved_tensors)
attempt(y.sum().backward)
""",
    "setup_context": """
x = T(1., 2.)
y = Scale.apply(x, 3.)
z = Scale.apply(x, 2., False)
(y + z).sum().backward()
g = x.grad
print(name(y), y.grad_fn.k, z.grad_fn.flag)
attempt(Scale.apply, x)
attempt(Scale.apply, x, 2., True, 4)
w = Scale.apply(x, k=5.)
attempt(SiLU.apply, x=x)
""",
    "two_outputs": """
a, b = T(1., 2.), T(3., 4.)
p, q = Two.apply(a, b)
p.sum().backward()
ga, gb = a.grad, b.grad
p, q = Two.apply(a, b.detach())
q.sum().backward()
print(p.grad_fn is q.grad_fn, p.output_nr, q.output_nr)
c = T(5., 6., grad=False)
p, q = Two.apply(c, b)
(p * q).sum().backward()
gb2 = b.grad
""",
    "no_materialize": """
class F(Two):
    @staticmethod
    def forward(ctx, a, b):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(a, b)
        return a * b, a + b
a, b = T(1., 2.), T(3., 4.)
p, q = F.apply(a, b)
q.sum().backward()
g = a.grad
""",
    "dirty": """
class Inc(Function):
    @staticmethod
    def forward(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        return x
    @staticmethod
    def backward(ctx, g):
        return g * 3
x = T(1., 2.)
y = x * 1
z = Inc.apply(y)
print(z is y, name(y), y._version)
z.sum().backward()
g = x.grad
attempt(Inc.apply, x)
with torch.no_grad():
    print(state(Inc.apply(T(1., grad=False))))
v = (x * 2)
r = Inc.apply(v[:1])
print(name(r), name(v))
v.sum().backward()
g2 = x.grad
class Lies(Inc):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x * 2
attempt(Lies.apply, x * 1)
""",
    "non_differentiable": """
class Sorted(Function):
    @staticmethod
    def forward(ctx, x):
        s, i = x.sort()
        m = x > 1
        half = x * 0.5
        ctx.mark_non_differentiable(half)
        ctx.save_for_backward(i)
        return s, i, half, m
    @staticmethod
    def backward(ctx, g, gi, gh, gm):
        i, = ctx.saved_tensors
        print(None if gi is None else gi.tolist(), None if gh is None else gh.tolist(), gm is None)
        r = torch.zeros_like(g)
        r[i] = g
        return r
x = T(3., 1., 2.)
s, i, h, m = Sorted.apply(x)
print(s.requires_grad, i.requires_grad, h.requires_grad, m.requires_grad, h.is_leaf, name(s))
(s * torch.arange(3.)).sum().backward()
g = x.grad
""",
    "returns_input": """
class Same(Function):
    @staticmethod
    def forward(ctx, x):
        return x
    @staticmethod
    def backward(ctx, g):
        return g * 2
x = T(1., 2.)
y = Same.apply(x)
print(y is x, name(y), y.data_ptr() == x.data_ptr(), y.requires_grad)
y.sum().backward()
g = x.grad
p = T(1., grad=False)
q = Same.apply(p)
print(q is p, q.requires_grad)
class View(Same):
    @staticmethod
    def forward(ctx, x):
        return x.view(2, 1)
    @staticmethod
    def backward(ctx, g):
        return g.view(2)
z = View.apply(x * 1)
print(name(z), z._base is not None)
z.sum().backward()
attempt(View.apply(x * 1).add_, 1)
""",
    "input_without_gradient": """
class F(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_non_differentiable(x)
        return x
    @staticmethod
    def backward(ctx, g):
        return g
x = T(1., 2.)
z = x * 2
for t in (x, z):
    y = F.apply(t)
    print(y.requires_grad, y._is_view(), name(y), y is t, t.requires_grad)
z.sum().backward()
g = x.grad
""",
    "both_rules": """
class F(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 9
    vjp = backward
x = T(1., 2.)
attempt(F.apply(x).sum().backward)
""",
    "errors": """
class F(Function):
    n = 1
    @staticmethod
    def forward(ctx, x, y, k=None):
        return x + y
    @staticmethod
    def backward(ctx, g):
        return F.result(g)
x, y = T(1., 2.), T(3., 4.)
for r in (lambda g: g, lambda g: (g, g, g), lambda g: (g[:1], g), lambda g: (torch.ones(3, dtype=torch.float64), g), lambda g: (g, 3),
          lambda g: (g, None), lambda g: [g, g], lambda g: (g.float(), g), lambda g: (g, g, None), lambda g: (None, None),
          lambda g: (g, g, None, None), lambda g: (g.expand(3, 2), g)):
    F.result = r
    x.grad = y.grad = None
    attempt(F.apply(x, y).sum().backward)
    print(None if x.grad is None else x.grad.tolist(), None if y.grad is None else (y.grad.tolist(), str(y.grad.dtype)))
F.result = lambda g: (g, g, g)
attempt(F.apply(x, y, 3).sum().backward)
class G(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(3)
        return x * 1
    backward = SiLU.backward
attempt(G.apply, x)
class H(Function):
    @staticmethod
    def forward(ctx, x):
        return 3
attempt(H.apply, x)
class I(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1
attempt(I.apply(x).sum().backward)
class J(Function):
    pass
attempt(J.apply, x)
class K(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1, 7, None
    @staticmethod
    def backward(ctx, g, a, b):
        print(a, b)
        return g
attempt(lambda: K.apply(x)[0].sum().backward())
class L(Function):
    @staticmethod
    def forward(x):
        return x * 1
    @staticmethod
    def backward(ctx, g):
        return g
attempt(L.apply, x)
attempt(lambda: SiLU.apply(x).grad_fn.no_such_thing)
attempt(lambda: SiLU())
attempt(SiLU.forward)
""",
    "saved_modified": """
x = T(1., 2.)
w = T(3., 4., grad=False)
class M(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, None
y = M.apply(x, w)
w.add_(1)
attempt(y.sum().backward)
z = x * 1
y = M.apply(z, w)
z.mul_(2)
attempt(y.sum().backward)
""",
    "saves_output": """
class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y
    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        print(y.requires_grad, name(y))
        return g * y
x = T(0.5, 1.)
y = Exp.apply(x)
g, = torch.autograd.grad(y.sum(), x, create_graph=True)
h, = torch.autograd.grad(g.sum(), x, create_graph=True)
i, = torch.autograd.grad(h.sum(), x)
y = Exp.apply(x)
y.mul_(2)
attempt(y.sum().backward)
""",
    "once": """
class O(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * 2 * x
x = T(1., 2.)
g, = torch.autograd.grad(O.apply(x).sum(), x, create_graph=True)
print(g.requires_grad, g.tolist())
attempt(g.sum().backward)
O.apply(x).sum().backward()
gx = x.grad
""",
    "grad_mode_inside": """
log = []
class P(Function):
    @staticmethod
    def forward(ctx, x):
        log.append(torch.is_grad_enabled())
        ctx.extra = [1, 2]
        y = x * 2
        log.append(y.requires_grad)
        return y
    @staticmethod
    def backward(ctx, g):
        log.append((torch.is_grad_enabled(), g.requires_grad, ctx.extra))
        return g
x = T(1., 2.)
P.apply(x).sum().backward()
P.apply(x).sum().backward(create_graph=True)
x.grad = None
""",
    "undefined_gradients": """
class Drop(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1
    @staticmethod
    def backward(ctx, g):
        return None
class Show(Drop):
    @staticmethod
    def backward(ctx, g):
        print("shown", g.tolist())
        return g
x = T(1., 2.)
Drop.apply(Show.apply(x)).sum().backward()
gx = x.grad
Drop.apply(x * 2).sum().backward()
""",
    "hooks": """
log = []
x = T(1., 2.)
y = SiLU.apply(x)
y.grad_fn.register_hook(lambda gi, go: log.append(("post", len(gi), len(go))))
y.grad_fn.register_prehook(lambda go: log.append(("pre", len(go))))
y.register_hook(lambda g: log.append("tensor"))
y.grad_fn.metadata["a"] = 1
y.sum().backward()
""",
    "nested": """
class Outer(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return SiLU.apply(x) * 2
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        with torch.enable_grad():
            y = x.detach().requires_grad_()
            out = SiLU.apply(y) * 2
        return torch.autograd.grad(out, y, g)[0]
x = T(1., 2.)
Outer.apply(x).sum().backward()
g = x.grad
""",
    "gradients_of_another_kind": """
class Other(Function):
    @staticmethod
    def forward(ctx, x, to):
        ctx.to = to
        return x * 1
    @staticmethod
    def backward(ctx, g):
        return ctx.to(g), None
for to in (lambda g: g * 1j, lambda g: g.long(), lambda g: g.double(), lambda g: g.half()):
    for x in (T(1., 2.), torch.ones(2, dtype=torch.complex64, requires_grad=True)):
        attempt(lambda: Other.apply(x, to).abs().sum().backward())
        print(x.grad)
""",
    "list_and_none_arguments": """
class Sum(Function):
    @staticmethod
    def forward(ctx, items, x, none, *rest):
        ctx.n = len(rest)
        return sum(rest) + x + sum(items)
    @staticmethod
    def backward(ctx, g):
        return (None, g, None) + (g,) * ctx.n
x, a, b = T(1.), T(2.), T(3.)
y = Sum.apply([1, 2], x, None, a, b)
y.backward()
gs = (x.grad, a.grad, b.grad)
print(y.grad_fn.needs_input_grad, len(y.grad_fn.next_functions))
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_function(name):
    run(DEFS + PROGRAMS[name])


assert HEAD


def test_arguments_that_forward_does_not_take():
    def program(t):
        class Old(t.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                return x * y

        class New(t.autograd.Function):
            @staticmethod
            def forward(x, y):
                return x * y

            @staticmethod
            def setup_context(ctx, inputs, output):
                pass

        found = []
        for call in (lambda: Old.apply(x=1), lambda: Old.apply(1), lambda: Old.apply(1, 2, z=3), lambda: New.apply(1)):
            with pytest.raises(TypeError) as caught:
                call()
            found.append(str(caught.value).rpartition(".")[2])
        return found

    both(program)
