"""Forward mode in company: with the tape, with func's transformations, through views and writes, on torch's numbers."""

import pytest

from tests.autograd.programs import run

HEAD = """
import torch.autograd.forward_ad as fw
from torch.func import grad, jvp, vjp, vmap, jacfwd, jacrev, hessian
def f(x, y):
    return (x.sin() * y).cumsum(0).exp().sum()
def data():
    return T(0.3, -1.2, 0.7), T(1.0, 0.5, -0.25), T(0.2, 0.4, -0.6, grad=False)
def dual(p, t):
    return fw.make_dual(p, t)
def tangent(x):
    t = fw.unpack_dual(x).tangent
    return None if t is None else t.detach().clone()
"""

PROGRAMS = {
    "a_function's_own_tangents": """
def made(fw, tangents):
    class F(torch.autograd.Function):
        forward = staticmethod(fw)
        jvp = staticmethod(tangents)
    return F.apply
def double(ctx, x):
    ctx.mark_dirty(x)
    return x.mul_(2)
def narrowed(ctx, x):
    return x.narrow(0, 0, 1)
def saved(ctx, x):
    ctx.save_for_backward(x)
    return x * 2
def told(ctx, t):
    print(len(ctx.saved_tensors))
    return t * 2
with fwAD.dual_level():
    x, t = torch.ones(2, 2), torch.full((2, 2), 3.)
    attempt(lambda: made(double, lambda ctx, t: t)(fwAD.make_dual(x, t)))
    d = fwAD.make_dual(x, t)
    print(made(double, lambda ctx, t: t.mul_(2))(d) is d, fwAD.unpack_dual(d).tangent is t, t)
    for f in (lambda t: t.narrow(0, 0, 1), lambda t: t.narrow(0, 0, 1).clone(), lambda t: (t * 2).narrow(0, 0, 1)):
        for g in (lambda d: d, lambda d: d.view_as(d)):
            attempt(lambda: print(fwAD.unpack_dual(made(narrowed, lambda ctx, t: f(t))(g(fwAD.make_dual(x, t)))).tangent))
    made(saved, told)(fwAD.make_dual(x, t))
    attempt(fwAD.make_dual, torch.ones(2, 2), fwAD.make_dual(x, t))
    d = fwAD.make_dual(torch.ones(2), torch.ones(2))
    d.eq_(torch.zeros(2))
    print(fwAD.unpack_dual(d).tangent, fwAD._current_level)
print(fwAD._current_level)
del d, f, g, x, t
""",
    "turned_in_place": """
x, v = torch.arange(4.).view(2, 2) / 3, torch.arange(4.).view(2, 2).sin()
def turned(change):
    def f(x):
        y = x * 2
        change(y)
        return y * y, y[0] * y.shape[0]
    return f
def added(y):
    z = y.view(1, 4).squeeze_().unsqueeze_(1)
    z[1:].add_(z[:-1].clone())
    y.t_()
for change in (lambda y: y.t_(), lambda y: y.transpose_(0, 1).mul_(3), lambda y: y.unsqueeze_(1).squeeze_(1).swapaxes_(0, 1),
               lambda y: y.unsqueeze_(0), added):
    print(jvp(turned(change), (x,), (v,)), jacfwd(lambda x: turned(change)(x)[1])(x))
print(jvp(turned(lambda y: y.as_strided_((2, 2), (1, 2))), (x,), (v,)))
with fw.dual_level():
    for change in (lambda y: y.t_(), lambda y: y.unsqueeze_(1)):
        d = dual(x.clone(), v.clone())
        change(d)
        print(fw.unpack_dual(d * d), tangent(d))
""",
    "shown": """
x, y, v = data()
with fw.dual_level():
    print(dual(x.detach(), v), dual(x.detach(), v) * 2)
    attempt(fw.make_dual, x, v, level=1)
    attempt(fw.unpack_dual, dual(x.detach(), v), level=1)
    kept = dual(y.detach(), v)
print(kept)
""",
    "matrix_exp": """
from torch.func import grad, jacfwd, jvp
A = torch.tensor([[0.5, 1.], [0., -0.3]])
print(jvp(torch.matrix_exp, (A,), (torch.ones(2, 2),)), jvp(torch.matrix_exp, (A * 0,), (torch.ones(2, 2),)))
print(jacfwd(torch.matrix_exp)(A), grad(lambda x: jvp(torch.matrix_exp, (x,), (torch.ones(2, 2),))[1].sum())(A))
""",
    "losses": """
F = torch.nn.functional
x, y = (torch.tensor(v, dtype=torch.float64) for v in ([0.2, 0.5, 1.0, 0.0], [0.2, 0.4, 0.1, 0.0]))
for loss in (F.binary_cross_entropy, F.kl_div, F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.poisson_nll_loss):
    for reduction in ("mean", "sum", "none"):
        print(jvp(lambda a: loss(a, y, reduction=reduction), (x,), (x + 1,)))
print(jvp(lambda a: F.binary_cross_entropy(a, y, y + 1), (x,), (x + 1,)))
""",
    "views_of_turned_results": """
x = torch.arange(24.).reshape(2, 3, 4) / 7
w = torch.arange(8.).reshape(2, 4) / 9
turned = lambda a: (a.transpose(0, 2) * w.t()[:, None]).transpose(0, 2).transpose(0, 2).view(12, 2)
print(jvp(lambda a: turned(a.sin()), (x,), (x + 1,)))
print(jvp(lambda a: a.mT.view(2, 12), (x.mT.contiguous().mT,), (x + 1,)))
layer = torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
layer.load_state_dict({k: torch.linspace(-0.5, 0.5, v.numel()).reshape(v.shape) for k, v in layer.state_dict().items()})
with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
    print(jvp(layer, (x,), (x.cos(),)))
""",
    "powers_of_negative_numbers": """
x = torch.tensor([-18.0, 2.0, -0.5, 0.0], dtype=torch.float64)
n = torch.tensor([2.0, 3.0, 4.0, 5.0], dtype=torch.float64)
got = []
for f in (lambda x: x ** 2, lambda x: x ** 3, lambda x: x ** 4.0, lambda x: x[:3] ** -3, lambda x: torch.pow(x, n), lambda x: x.prod() ** 5):
    total = lambda x: f(x).sum()
    got.append((jvp(f, (x,), (x + 1,)), jvp(grad(total), (x,), (x + 1,)),))
    got.append((hessian(total)(x), jacrev(jacrev(total))(x), jacfwd(jacfwd(total))(x),))
    got.append(vmap(hessian(total))(torch.stack([x, -x])))
got.append((jvp(lambda x, n: x ** n, (n, n), (n, x)), jvp(grad(lambda x, n: (x ** n).sum(), (0, 1)), (n, n), (n, x)),))
del f, total
""",
    "detached_in_place": """
x, y, v = data()
with fw.dual_level():
    d = dual(x, v) * y
    e = d * 2
    d.detach_()
    got = [fw.unpack_dual(d).tangent, d.requires_grad, tangent(d * e), tangent(e)]
del d, e
""",
    "assigned_by_index": """
x, y, v = (torch.tensor(u, dtype=torch.float64) for u in ([-1.0, 2.0, 3.0], [0.5, -2.0, 4.0], [10.0, 20.0, 30.0]))
got = []
with fw.dual_level():
    for index in (x > 0, torch.tensor([0, 2]), torch.tensor([True, False, True]), torch.tensor(1), [2, 0], (torch.tensor([1]),), slice(1, 2), 0):
        for value in (0.5, torch.tensor(7.0, dtype=torch.float64), dual(y, v + 1)[1]):
            for t in (dual(x.clone(), v.clone()), x.clone(), dual(x.clone(), v.clone())[:]):
                t[index] = value
                got.append([tangent(u) for u in (t, t * t)])
    d = dual(x.clone(), v.clone())
    part = d[1:]
    part[part > 2] = 0.0
    d[torch.tensor([True, False, True])] = dual(y[:2], v[:2])
    got.append([tangent(d), tangent(part)])
def f(a):
    b = a * 1
    b[b > 0] = a.sum()
    b[torch.tensor([0])] = 3.0
    return b * b
got.append([jvp(f, (x,), (v,)), jacfwd(f)(x), jacrev(jacfwd(f))(x)])
del f, d, part, t, value, index
""",
    "powers_of_zero": """
x = torch.tensor([0.0, 1.5], dtype=torch.float64)
J = lambda f: lambda x: jvp(f, (x,), (torch.ones_like(x),))[1]
G = lambda f: grad(lambda x: f(x).sum())
got = []
for n in (1, 2, 3.0):
    f = lambda x: x ** n
    got.append([k(x) for k in (J(J(f)), J(J(J(f))), G(J(J(f))), J(G(J(f))), J(J(G(f))), J(G(J(J(f)))))])
del f
""",
    "forward_over_reverse": """
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x ** 3
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)
        ctx.save_for_forward(inputs[0])
    @staticmethod
    def backward(ctx, g):
        x, out = ctx.saved_tensors
        return g * 3 * out / x
    @staticmethod
    def jvp(ctx, t):
        return 3 * ctx.saved_tensors[0] ** 2 * t
x, _, v = data()
w = T(2., 3., 4.)
def both(t):
    u = fw.unpack_dual(t)
    return u.primal.detach().clone(), tangent(t), u.primal.requires_grad
got = []
with fw.dual_level():
    d = dual(x, v)
    g, = torch.autograd.grad((d.sin() * d ** 2).sum(), d, create_graph=True)
    h, = torch.autograd.grad((g * g).sum(), x, create_graph=True)
    got += [both(g), both(h)]
    y = d * 1
    y.mul_(d)
    y[0] = 2.
    y[1:].exp_()
    got.append(both(torch.autograd.grad(y.sum(), x)[0]))
    got.append(both(torch.autograd.grad(d * d, x, dual(torch.ones_like(v), v))[0]))
    got.append(both(torch.autograd.grad((w * d.detach() * d).sum(), w)[0]))
    z = d * 2
    z.register_hook(lambda g: g * d)
    got.append(both(torch.autograd.grad(z.sum(), x)[0]))
    got.append(both(torch.autograd.grad(Cube.apply(d).sum(), x)[0]))
    got.append(both(torch.autograd.grad(vmap(lambda q: q.sin() * q)(d).sum(), x)[0]))
    for _ in range(2):
        (d * d).sum().backward()
        got.append((x.grad.clone(), tangent(x.grad)))
    m = torch.nn.Linear(3, 1, dtype=torch.float64)
    p = dual(torch.ones(1, 3, dtype=torch.float64), v[None])
    print(fw.unpack_dual(torch.nn.functional.linear(x[None], p, m.bias)).tangent.requires_grad)
    print(fw.unpack_dual(torch.nn.functional.linear(x.detach()[None], p, m.bias)).tangent.requires_grad)
""",
    "reverse_over_forward": """
x, y, v = data()
with fw.dual_level():
    out = f(dual(x, v), y)
    t = fw.unpack_dual(out).tangent
    print(t.requires_grad, name(t) is not None)
    gx, gy = torch.autograd.grad(t, (x, y))
""",
    "views": """
x, y, v = data()
m, w = torch.arange(6., dtype=torch.float64).reshape(2, 3), torch.arange(6., dtype=torch.float64).reshape(2, 3).cos()
with fw.dual_level():
    d = dual(m, w)
    ts = [tangent(q) for q in (d.t(), d[1], d[:, 1:], d.view(3, 2), d.transpose(0, 1).reshape(-1), d.expand(2, 2, 3),
          d.diagonal(), d.unsqueeze(0).squeeze(0), d.permute(1, 0)[::2], d.unfold(1, 2, 1), d.flatten())]
    a, b = d.unbind(0)
    ts += [tangent(a * b), tangent(torch.cat([a, b])), tangent(torch.stack([b, a]))]
    ts += [tangent(q) for q in d.split(2, 1)]
    none = tangent(d.detach()) is None, tangent(d > 1) is None
""",
    "writes": """
x, y, v = data()
x, y = x.detach(), y.detach()
with fw.dual_level():
    d = dual(x.clone(), v)
    d.mul_(y)
    a = tangent(d)
    d.add_(1)
    b = tangent(d)
    d[0] = 5.
    c = tangent(d)
    e = y.clone()
    e.copy_(dual(x, v))
    g = tangent(e)
    e[1:].mul_(2)
    h = tangent(e)
    z = torch.zeros(3, dtype=torch.float64)
    z[1] = dual(x, v)[0] * 2
    i = tangent(z)
    w = torch.zeros(2, 3, dtype=torch.float64)
    w[1].add_(dual(x, v))
    j = tangent(w)
    d.zero_()
    k = tangent(d)
del d, e, z, w
""",
    "views_and_writes": """
x, y, v = data()
x, y = x.detach(), y.detach()
got = []
with fw.dual_level():
    a = torch.zeros(3, dtype=torch.float64)
    early = a.view(3, 1)
    a.copy_(dual(x, v))
    late = a[1:]
    b = a * a
    got += [tangent(early), tangent(late), tangent(b)]
    a.mul_(2)
    got += [tangent(q) for q in (a, early, late, b)]
    late.add_(dual(x, v)[1:])
    early[0] = dual(y, v)[2]
    got += [tangent(q) for q in (a, early, late)]
    p = fw.unpack_dual(a).primal
    got += [tangent(p), tangent(p.view(3, 1)), tangent(p[1:] * 2), [tangent(q) for q in p.split(2)]]
del a, early, late, b, p
""",
    "jvp_of_what_is_kept": """
_, _, v = data()
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_forward(x)
        return x ** 2
    @staticmethod
    def jvp(ctx, t):
        return 2 * ctx.saved_tensors[0] * t
with fw.dual_level():
    made = Square.apply(dual(v, v))
    t = fw.unpack_dual(made).tangent
    print(t, tangent(t), tangent(made * 2))
del made, t
""",
    "switched_off": """
_, _, v = data()
print(fw._is_fwd_grad_enabled())
with fw._set_fwd_grad_enabled(False):
    print(fw._is_fwd_grad_enabled())
    with fw.dual_level():
        d = dual(v, v)
        got = [tangent(d * 2), tangent(torch.sin(d))]
with fw.dual_level():
    d = dual(v, v)
    with fw._set_fwd_grad_enabled(False):
        got.append(tangent(d * 2))
        with fw._set_fwd_grad_enabled(True):
            got.append(tangent(d * 2))
    got.append(tangent(d * 2))
del d
""",
    "ops": """
x, y, v = data()
x, y = x.detach(), y.detach()
with fw.dual_level():
    d = dual(x, v)
    m = d.outer(d)
    ts = [tangent(q) for q in (d.norm(), d.softmax(0), d.max(), d.sort().values, (d @ d), m @ m, torch.linalg.det(m + torch.eye(3)),
          torch.where(d > 0, d, y), d.clamp(-1, 0.5), d.prod(), d.std(), d.abs(), d.relu(), torch.nn.functional.gelu(d), d ** 3,
          torch.nn.functional.mse_loss(d, y), torch.nn.functional.layer_norm(d, (3,)), d.to(torch.float32), d.index_select(0, torch.tensor([2, 0])))]
    ts.append(tangent(torch.einsum("i,j->ij", d, y)))
    kinds = [str(t.dtype) for t in ts]
""",
    "prelu_at_zero": """
x, t = torch.tensor([[-1., 0., 1., -0.]]), torch.tensor([[1., 2., 3., 4.]])
for w in (torch.tensor([.25]), torch.tensor([.25, .5, 2., 3.])):
    for moving in (w * 3, w * 0):
        print(jvp(torch.nn.functional.prelu, (x, w), (t, moving)))
    print(jvp(lambda x: torch.nn.functional.prelu(x, w), (x,), (t,)), grad(lambda x: torch.nn.functional.prelu(x, w).sum())(x))
    print(jacfwd(torch.nn.functional.prelu)(x, w), jacrev(torch.nn.functional.prelu)(x, w))
print(jvp(torch.nn.functional.prelu, (torch.tensor(0.), torch.tensor([2.])), (torch.tensor(1.), torch.tensor([1.]))))
""",
    "in_jvp_and_grad": """
x, y, v = data()
x, y = x.detach(), y.detach()
out, t = jvp(lambda x: grad(f)(x, y), (x,), (v,))
t2 = jvp(lambda x: jvp(lambda z: f(z, y), (x,), (v,))[1], (x,), (v,))[1]
g = grad(lambda x: jvp(lambda z: f(z, y), (x,), (v,))[1])(x)
h = jacfwd(jacrev(f))(x, y)
k = jacrev(jacfwd(f))(x, y)
hh = hessian(f)(x, y)
vm = vmap(lambda t: jvp(lambda z: f(z, y), (x,), (t,))[1])(torch.eye(3, dtype=torch.float64))
vg = vmap(jacfwd(f), (0, None))(torch.stack([x, y]), y)
out, pull = vjp(lambda x: jvp(lambda z: f(z, y), (x,), (v,))[1], x)
back = pull(torch.ones_like(out))
aux = jvp(lambda x: (x.sin(), x.cos()), (x,), (v,), has_aux=True)
""",
    "jvp_with_the_tape": """
x, y, v = data()
out, t = jvp(lambda z: f(z, y), (x,), (v,))
print(out.requires_grad, t.requires_grad)
gx, gy = torch.autograd.grad(t, (x, y), allow_unused=True)
""",
    "functional_api": """
x, y, v = data()
x, y = x.detach(), y.detach()
F = torch.autograd.functional
a = F.jacobian(lambda z: z.sin() * y, x, strategy="forward-mode", vectorize=True)
b = F.hessian(lambda z: f(z, y), x, outer_jacobian_strategy="forward-mode", vectorize=True).detach()
c = F.jvp(lambda z: z.sin() * y, x, v)
d = F.hvp(lambda z: f(z, y), x, v)
e = torch.autograd.gradcheck(lambda z: f(z, y), x.clone().requires_grad_(), check_forward_ad=True, check_batched_forward_grad=True)
g = torch.autograd.gradgradcheck(lambda z: f(z, y), x.clone().requires_grad_(), check_fwd_over_rev=True, check_rev_over_rev=True)
""",
    "modules": """
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).double()
x, y, v = data()
with fw.dual_level():
    out = net(dual(x.detach(), v))
    t = fw.unpack_dual(out).tangent
    gs = torch.autograd.grad(t.sum(), [net[0].weight, net[0].bias, net[2].weight])
params = {k: p.detach() for k, p in net.named_parameters()}
from torch.func import functional_call
ts = {k: torch.full_like(p, 0.1) for k, p in params.items()}
o, to = jvp(lambda p: functional_call(net, p, (x.detach(),)), (params,), (ts,))
del net
""",
    "out": """
x, y, v = (t.detach() for t in data())
i = torch.tensor([0, 2])
for mode in (torch.enable_grad, torch.no_grad):
    with fw.dual_level(), mode():
        d, o, od = dual(x, v), torch.zeros_like(x), dual(torch.zeros_like(x), v)
        for f in (
            lambda: torch.sin(d, out=o), lambda: torch.add(y, d, out=o), lambda: torch.mul(y, y, out=od), lambda: torch.gt(d, y, out=o > 0),
            lambda: torch.cat([d, y], out=torch.zeros(6, dtype=o.dtype)), lambda: torch.sum(d, 0, out=o[0]), lambda: torch.sin(y, out=o),
            lambda: torch.sort(d, out=(o, torch.zeros(3, dtype=torch.long))), lambda: torch.masked_select(d, y > 0, out=o[:2].clone()),
            lambda: torch.index_select(d, 0, i, out=o[:2]),
        ):
            attempt(f)
        print(tangent(o), tangent(od))
        del d, o, od  # which PyTorch has written to before it refuses
""",
    "what_jvp_returns": """
def made(ret, fwd=lambda x: x * 2, setup=lambda ctx, x: None):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, *others):
            setup(ctx, x)
            return fwd(x)
        @staticmethod
        def jvp(ctx, *ts):
            return ret(*ts)
    return F
def applied(F, *args):
    out = F.apply(*args)
    print([t for t in map(tangent, out if isinstance(out, tuple) else (out,))])
two = lambda x: (x * 2, x + 1)
whole = lambda x: (x * 2, x.long())
dirty = lambda ctx, x: ctx.mark_dirty(x)
_, _, v = data()
with fw.dual_level():
    for F in (
        made(lambda t: t * 2), made(lambda t: v[:2]), made(lambda t: v[:1]), made(lambda t: (t, t)), made(lambda t: (t,)), made(lambda t: ()),
        made(lambda t: 3), made(lambda t: [t]), made(lambda t: (t, t), two), made(lambda t: t, two), made(lambda t: (t, t, t), two),
        made(lambda t: (t, t[:2]), two), made(lambda t: (t, None), whole), made(lambda t: (t, t), whole), made(lambda t: t, lambda x: x),
        made(lambda t: t.view_as(t), lambda x: x), made(lambda t: t[:2], lambda x: x[:2]), made(lambda t: t[:2] * 1, lambda x: x[:2]),
        made(lambda t: t.mul_(3), lambda x: x.mul_(2), dirty), made(lambda t: t * 3, lambda x: x.mul_(2), dirty),
    ):
        attempt(applied, F, dual(v.clone(), v.clone()))
    attempt(applied, made(lambda t, u, k: t + u), dual(v, v), v, 5)
    attempt(applied, made(lambda t, u: t * 1j, lambda x: x * 1), dual(v + 0j, v + 1j), v + 0j)
class G(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * 2
    @staticmethod
    def setup_context(ctx, inputs, output):
        pass
    @staticmethod
    def jvp(ctx, t):
        return given(t)
for given in (lambda t: t * 3, lambda t: v[:2], lambda t: (t, t), lambda t: 3, lambda t: [t], lambda t: v[:1]):
    attempt(lambda: print(jvp(G.apply, (v,), (v,))[1].tolist()))
del given
""",
    "levels_and_errors": """
x, y, v = data()
attempt(fw.exit_dual_level)
with fw.dual_level():
    d = dual(x, v)
    attempt(fw.make_dual, d, v)
    attempt(fw.make_dual, x.detach(), v.float())
    attempt(fw.make_dual, torch.arange(3), torch.arange(3))
    attempt(fw.enter_dual_level)
    print(fw.unpack_dual(x).tangent is None, fw.unpack_dual(d).primal.requires_grad)
    with torch.no_grad():
        a = tangent(d * 2)
    with fw.set_fwd_grad_enabled(False) if hasattr(fw, "set_fwd_grad_enabled") else torch.enable_grad():
        b = tangent(d * 2)
print(fw.unpack_dual(d).tangent is None)
del d
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_forward_mode(name):
    run(HEAD + PROGRAMS[name])
