"""torch.autograd.functional, gradcheck and forward mode."""

import pytest

from .programs import run

HEAD = """
from torch.autograd.functional import *
from torch.autograd.functional import jvp, vjp
x, y = T(0.5, 1.), T(2., 3.)
f = lambda x, y: (x.sin() * y, (x * x).sum())
s = lambda x, y: (x ** 3 * y).sum() + (x * y).prod()
"""

PROGRAMS = {
    "strict_and_refused": """
F = torch.autograd.functional
x = T(1., 2., grad=False)
for f in (F.hessian, F.vhp, F.hvp):
    for wrong in (lambda a: 3, lambda a: (a.sum(), 3), lambda a: (a.sum(),), lambda a: a.detach().sum(), lambda a: a.detach()):
        for strict in (True, False):
            attempt(f, wrong, x, strict=strict, **({} if f is F.hessian else {"v": x}))
for f in (F.hessian, F.vhp, F.hvp):
    attempt(f, lambda a: a.sum(), x, strict=True, **({} if f is F.hessian else {"v": x}))
attempt(F.jacobian, lambda a: a, [x])
attempt(F.jacobian, lambda a: a, x, strategy="foo")
attempt(F.hessian, lambda a: (a ** 3).sum(), x, outer_jacobian_strategy="foo")
attempt(F.hessian, lambda a: (a ** 3).sum(), x, strict=True, vectorize=True)
attempt(F.jacobian, lambda a: a, [x], strategy="forward-mode")
for f in (F.jacobian, F.vjp, F.jvp):
    for linear in (lambda a: a.clone(), lambda a: a * 2, lambda a: a ** 2):
        attempt(f, linear, x, strict=True, create_graph=True, **({} if f is F.jacobian else {"v": x}))
r = F.hvp(lambda a: (a ** 3).sum().reshape(1), x, x)
""",
    "what_gradcheck_checks": """
from torch.autograd import gradcheck, gradgradcheck
x = T(1., 2.)
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 1, x * 2
    @staticmethod
    def backward(ctx, g, h):
        return g + 2 * h
    @staticmethod
    def jvp(ctx, t):
        return t, t * 3
print(gradcheck(F.apply, x, check_undefined_grad=False))
attempt(gradcheck, F.apply, x)
attempt(gradcheck, F.apply, x, check_forward_ad=True)
print(gradcheck(F.apply, x, check_forward_ad=True, raise_exception=False))
attempt(gradcheck, torch.sin, x, check_forward_ad=False, check_backward_ad=False)
attempt(gradcheck, torch.sin, x, check_batched_forward_grad=True)
attempt(gradcheck, torch.sin, x.detach()[:1].requires_grad_().expand(3))
class Drawn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2 + torch.rand(g.shape, dtype=g.dtype)
try:
    gradcheck(Drawn.apply, x)
except RuntimeError as e:
    print(str(e)[:80])
attempt(torch.autograd.functional.hessian, lambda a: a.pow(3).sum(), x, outer_jacobian_strategy="forward-mode")
print(gradcheck(lambda a: (a.sin(), a.argmax()), x, check_forward_ad=True), gradgradcheck(torch.sin, x, check_fwd_over_rev=True))
""",
    "vjp_jvp": """
a = vjp(f, (x, y), (y.detach(), torch.tensor(2., dtype=torch.float64)))
b = jvp(f, (x, y), (y.detach(), x.detach()))
c = vjp(lambda x: x.sum(), x)
d = jvp(lambda x: x * x, x, y.detach())
e = vjp(lambda x: x.exp(), x, y.detach(), create_graph=True)
print(e[0].requires_grad, e[1].requires_grad, a[0][0].requires_grad)
attempt(vjp, lambda x: x * 2, x)
attempt(vjp, lambda x: x * 2, x, torch.ones(3))
attempt(vjp, lambda x: 3, x)
attempt(vjp, lambda x: x, 3)
attempt(vjp, lambda x: torch.ones(2), x, torch.ones(2), strict=True)
""",
    "jacobian": """
a = jacobian(lambda x: x.exp(), x)
b = jacobian(f, (x, y))
c = jacobian(lambda x: (x * 2).sum(), x, create_graph=True)
d = jacobian(lambda x: x.exp(), x, vectorize=True)
e = jacobian(lambda x: x.exp(), x, vectorize=True, strategy="forward-mode").detach()
m = torch.arange(4., dtype=torch.float64).reshape(2, 2)
g = jacobian(lambda m: m @ m, m)
h = jacobian(lambda x, y: x * 2, (x, y))
attempt(jacobian, lambda x, y: x * 2, (x, y), strict=True)
attempt(jacobian, lambda x: x, x, strategy="forward-mode")
print(c.requires_grad, a.requires_grad)
""",
    "hessian": """
a = hessian(s, (x, y))
b = hessian(lambda x: (x ** 3).sum(), x)
c = vhp(s, (x, y), (y.detach(), x.detach()))
d = hvp(s, (x, y), (y.detach(), x.detach()))
e = hvp(lambda x: (x ** 3).sum(), x, y.detach())
g = hessian(lambda x: (x ** 3).sum(), x, vectorize=True)
h = hessian(lambda x, y: (x * 2).sum() + (y ** 2).sum(), (x, y))
attempt(hessian, lambda x: x, x)
attempt(vhp, lambda x: x, x, y)
""",
    "gradcheck_along_one_direction": """
from torch.autograd import gradcheck, gradgradcheck
torch.manual_seed(0)
class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * torch.tensor([2.0, 2.0, 1.9])
given = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
complex_one = torch.randn(3, dtype=torch.complex128, requires_grad=True)
f = lambda a, b: (a.sin() @ a.t(), (b * b.conj()).real.exp(), b * a.sum())
print(gradcheck(f, (given, complex_one), fast_mode=True), gradgradcheck(f, (given, complex_one), fast_mode=True))
print(gradcheck(Wrong.apply, given, fast_mode=True, raise_exception=False))
""",
    "gradcheck_of_what_is_read_elsewhere": """
from torch.autograd import gradcheck, gradgradcheck
torch.manual_seed(0)
layer, given = torch.nn.Linear(3, 2).double(), torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
before = [p.tolist() for p in layer.parameters()]
print(gradcheck(lambda x, *_: layer(x), (given, *layer.parameters())), gradgradcheck(lambda x, *_: layer(x), (given, *layer.parameters())))
print(before == [p.tolist() for p in layer.parameters()], [p._version for p in layer.parameters()])
wide = torch.randn(3, 4, dtype=torch.float64)
attempt(gradcheck, lambda x: x.t().sin(), (wide.t().requires_grad_(),))
print(gradcheck(lambda x: x.exp(), (wide[:0].requires_grad_(),)), gradcheck(lambda x: (x[:0].exp(), x), (wide[:1].detach().requires_grad_(),)))
print(gradcheck(lambda x: torch.nn.functional.conv1d(given[None], x), (torch.randn(2, 2, 1, dtype=torch.float64, requires_grad=True),)))
""",
    "gradcheck": """
from torch.autograd import gradcheck, gradgradcheck
r = gradcheck(lambda x, y: (x * y).sin(), (x, y))
r2 = gradgradcheck(lambda x, y: (x * y).sin(), (x, y))
class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x
    @staticmethod
    def backward(ctx, g):
        return g * 3
attempt(gradcheck, Wrong.apply, (x,))
r3 = gradcheck(Wrong.apply, (x,), raise_exception=False)
attempt(gradcheck, lambda x: x, (torch.ones(2),))
r4 = gradcheck(lambda x: (x.exp(), x.cos()), x)
r5 = gradcheck(lambda a, b: torch.nn.functional.linear(a, b), (T(1., 2.).view(1, 2).detach().requires_grad_(), T(1., 2.).view(1, 2).detach().requires_grad_()))
z = torch.tensor([1 + 2j, 0.5j], dtype=torch.complex128, requires_grad=True)
r6 = gradcheck(lambda z: z * z, (z,))
""",
    "gradcheck_by_forward_mode": """
from torch.autograd import gradcheck, gradgradcheck
class Exp(torch.autograd.Function):
    factor = 1
    @staticmethod
    def forward(ctx, x):
        ctx.out = x.exp()
        return ctx.out
    @staticmethod
    def jvp(ctx, t):
        return t * ctx.out
class Wrong(Exp):
    @staticmethod
    def jvp(ctx, t):
        return t * 3
p, only = T(1., 2.), {"check_forward_ad": True, "check_backward_ad": False}
print(gradcheck(Exp.apply, (p,), **only))
attempt(gradcheck, Wrong.apply, (p,), **only)
attempt(gradcheck, torch.sin, (p,), check_backward_ad=False)
attempt(gradcheck, torch.sin, (p,), check_batched_forward_grad=True)
attempt(gradgradcheck, torch.sin, (p,), check_rev_over_rev=False)
z = torch.tensor([1 + 2j], dtype=torch.complex128, requires_grad=True)
print(gradcheck(lambda z, q: (z * z.conj() * z, z * q), (z, p), check_forward_ad=True))
torch.manual_seed(0)
print(gradgradcheck(lambda x: x.sin() * x, (p,), check_fwd_over_rev=True), gradgradcheck(lambda z: z * z, (z,)))
drawn_after = torch.rand(2)
""",
    "forward_ad": """
import torch.autograd.forward_ad as fwAD
p, t = T(0.5, 1., grad=False), T(2., 3., grad=False)
with fwAD.dual_level():
    d = fwAD.make_dual(p, t)
    out = (d.sin() * d).sum() + (d[0] * 3)
    u = fwAD.unpack_dual(out)
    print(u.primal.tolist(), u.tangent.tolist())
    v = fwAD.unpack_dual(d.view(2, 1).t() * 2)
    print(v.tangent.tolist())
    n = fwAD.unpack_dual(p * 2)
    print(n.tangent)
    c = d.clone(); c.mul_(2)
    print(fwAD.unpack_dual(c).tangent.tolist())
    q = torch.nn.functional.linear(d, torch.eye(2, dtype=torch.float64))
    print(fwAD.unpack_dual(q).tangent.tolist())
print(fwAD.unpack_dual(d).tangent)
attempt(fwAD.make_dual, p, t)
with fwAD.dual_level():
    attempt(fwAD.make_dual, p, t[:1])
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return x ** 2
        @staticmethod
        def jvp(ctx, t):
            x, = ctx.saved_tensors
            return 20 * x * t
    print(fwAD.unpack_dual(F.apply(fwAD.make_dual(p, t))).tangent.tolist())
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_functional(name):
    run(HEAD + PROGRAMS[name])
