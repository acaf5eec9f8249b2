"""torch.func against torch's: values, structures, nesting, history, errors."""

import pytest

import jtorch
from tests.autograd.programs import run
from tests.func.functions import CUBE

HEAD = """
from torch.func import *
from torch.func import grad, vmap, vjp, jvp, functional_call
def f(x, y):
    return (x.sin() * y).sum() + (x * x).prod()
def D(*v):
    return torch.tensor(v, dtype=torch.float64)
x, y = D(0.5, 1., 1.5), D(2., 3., -1.)
m = torch.arange(12., dtype=torch.float64).reshape(3, 4) / 7
def shapes(t):
    if isinstance(t, torch.Tensor):
        return tuple(t.shape)
    if isinstance(t, dict):
        return {k: shapes(v) for k, v in t.items()}
    return [shapes(v) for v in t]
"""

PROGRAMS = {
    "results that are no tensors": """
a = vmap(lambda x: "a", out_dims=None)(x)
print(a)
for dims, made in ((None, (3, torch.ones(2).double())), ((None, None), ("a", None)), (0, (3,)), (None, ())):
    attempt(vmap(lambda x: made, out_dims=dims), x)
b = vmap(lambda x: (None, x * 2), out_dims=(None, 0))(x)[1]
c = vmap(lambda x: {"a": "b", "c": x}, out_dims={"a": None, "c": 0})(x)["c"]
d = vmap(lambda r: vmap(lambda x: (x, "q"), out_dims=(0, None))(r), out_dims=(0, None))(m)[0]
attempt(vmap(lambda x: (3, x), out_dims=None), x)
""",
    "what_is_asked_of_arguments_and_results": """
import torch.autograd.forward_ad as fwd
x, y = torch.ones(2), torch.full((2,), 3.)
for argnums in (("0",), (0, -2), (1, 0.0), ((0, 1), 2), 2, -3, ()):
    for transform in (grad, jacrev, jacfwd):
        attempt(lambda: transform(lambda a, b: (a * b).sum(), argnums=argnums)(x, y))
for result in (None, (), [], {}, 1, "abc", [None, None]):
    for f in (lambda: vjp(lambda _: result, x), lambda: jvp(lambda _: result, (x,), (x,)), lambda: jacrev(lambda _: result)(x),
              lambda: jacfwd(lambda _: result)(x)):
        attempt(f)
out, pull = vjp(lambda x: (x, [x, {"a": x}]), x)
for given in (x, ((x, [x, {"a": x}]),), (x, (x, {"a": x}))):
    attempt(pull, given)
with fwd._set_fwd_grad_enabled(False):
    print(jvp(torch.sin, (x,), (y,)), fwd._is_fwd_grad_enabled())
for own in (True, False):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x if own else x.clone()
        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])
        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]
    attempt(lambda: print(F.apply(x.clone().requires_grad_()).detach()))
    attempt(lambda: print(grad(lambda x: F.apply(x).sum())(x)))
del F, f, result, own, given, argnums, out, pull, transform
""",
    "grad": """
a = grad(f)(x, y)
b = grad(f, argnums=1)(x, y)
c = grad(f, argnums=(0, 1))(x, y)
d = grad(f, argnums=(1,))(x, y)
e = grad(lambda x: (f(x, y), {"aux": x * 2}), has_aux=True)(x)
g, v = grad_and_value(f)(x, y)
h = grad_and_value(lambda x: (f(x, y), x + 1), has_aux=True)(x)
i = grad(lambda d: (d["a"] * d["b"][0]).sum())({"a": x, "b": [y]})
j = grad(lambda x, *, k: (x * k).sum())(x, k=y)
k = grad(grad(lambda x: x.sin()))(x[0])
rg = a.requires_grad
""",
    "grad_errors": """
attempt(grad(lambda x: x * 2), x)
attempt(grad(lambda x: 3), x)
attempt(grad(lambda x: x.sum(), argnums=1), x)
attempt(grad(lambda x: x.sum(), argnums=(0, 0)), x)
attempt(grad(lambda x: x.sum(), has_aux=True), x)
attempt(grad(lambda x: (x.sum(), 3), has_aux=True), x)
attempt(grad_and_value(lambda x: (x.sum(), {"a": x, "b": None}), has_aux=True), x)
attempt(vjp, lambda x: (x.sum(), "a"), x, has_aux=True)
attempt(jvp, lambda x: (x.sum(), 3), (x,), (x,), has_aux=True)
attempt(jacrev(lambda x: (x * 2, 3), has_aux=True), x)
attempt(jacfwd(lambda x: (x * 2, 3), has_aux=True), x)
attempt(grad(lambda x: x.sum()), 3)
attempt(grad(lambda x: x.sum(), argnums="a"), x)
""",
    "vjp": """
v, pull = vjp(f, x, y)
a = pull(torch.tensor(2., dtype=torch.float64))
v2, pull2 = vjp(lambda x: (x.sin(), {"c": x.cos()}), x)
b = pull2((y, {"c": x}))
v3, pull3, aux = vjp(lambda x: (x * 2, x + 1), x, has_aux=True)
c = pull3(y)
attempt(vjp, lambda x: 3, x)
attempt(pull3, torch.ones(2, dtype=torch.float64))
""",
    "jvp": """
a = jvp(f, (x, y), (y, x))
b = jvp(lambda x: (x.sin(), [x * 2]), (x,), (y,))
c = jvp(lambda x: (x * 2, x + 1), (x,), (y,), has_aux=True)
attempt(jvp, lambda x: x, x, x)
v, push = linearize(lambda x: x.sin() * y, x)
d = push(y)
""",
    "vmap": """
a = vmap(lambda r: r.sum())(m)
b = vmap(lambda r, s: r * s, in_dims=(0, None))(m, m[0])
c = vmap(lambda r: r * 2, in_dims=1, out_dims=1)(m)
d = vmap(torch.dot)(m, m)
e = vmap(vmap(lambda s: s.sin()))(m)
g = vmap(lambda d: {"s": d["a"] + d["b"], "c": torch.ones(2)}, in_dims=({"a": 0, "b": None},))({"a": m, "b": m[0]})
h = vmap(lambda r: (r, r.sum()), out_dims=(1, 0))(m)
i = vmap(lambda r: r.view(2, 2).t() @ torch.ones(2, 2, dtype=torch.float64))(m)
j = vmap(lambda r, k: r * k, in_dims=(-1, None))(m, 3)
k = [vmap(lambda r: r.cumsum(0), chunk_size=c)(m) for c in (1, 2, 3, 5)]
l = vmap(lambda r: torch.zeros(3).to(r) + r[:3].relu())(m)
n = torch.vmap(lambda r: r.max(0)[0])(m)
def inplace(r):
    s = r.clone()
    s[0] = 5.
    s.add_(1)
    return s
o = vmap(inplace)(m)
p = vmap(lambda r, i: r[i])(m, torch.tensor([0, 1, 3]))
q = vmap(lambda r: torch.nn.functional.linear(r, m))(m)
""",
    "vmap_errors": """
one = torch.ones(3)
attempt(vmap(lambda x: x), 3)
attempt(vmap(lambda x: x, in_dims=1), one)
attempt(vmap(lambda x, y: x), one, torch.ones(2))
attempt(vmap(lambda x: 3), one)
attempt(vmap(lambda x: x, in_dims="a"), one)
attempt(vmap(lambda x: x, in_dims=(None,)), one)
attempt(vmap(lambda x: torch.nn.functional.dropout(x)), one)
attempt(vmap(lambda x: torch.rand(2)), one)
attempt(vmap(lambda x: x, out_dims=3), one)
attempt(lambda: vmap(lambda x: x, randomness="foo")(one))
attempt(lambda: vmap(lambda x: x, chunk_size=0)(one))
attempt(vmap(lambda: 3))
attempt(vmap(lambda x: x.item()), one)
""",
    "jacobians": """
F = lambda x: torch.stack([x.sin().sum(), (x ** 2).prod(), x[0] * x[1]])
a, b = jacrev(F)(x), jacfwd(F)(x)
c = hessian(lambda x: (x ** 3).sum() * x[0])(x)
d = jacrev(lambda x, y: x * y, argnums=(0, 1))(x, y)
e = jacfwd(lambda x: {"a": x.sin(), "b": (x * 2, x.sum())})(x)
g = jacrev(lambda x: (x * 2, x + 1), has_aux=True)(x)
h = jacrev(lambda d: d["u"] * d["v"])({"u": x, "v": y})
i = jacfwd(jacfwd(lambda x: x.prod()))(x)
j = vmap(jacrev(lambda r: r.sin()))(m)
attempt(jacrev(lambda x: 3), x)
attempt(jacrev(lambda x: x, argnums=2), x)
""",
    "nested": """
a = vmap(grad(lambda r: (r ** 3).sum()))(m)
b = grad(lambda x: vmap(lambda r: (r * x[:1]).sum())(m).sum())(x)
c = jvp(grad(lambda x: (x ** 3).sum()), (x,), (y,))
d = vmap(lambda v: vjp(lambda x: x ** 2, x)[1](v)[0])(torch.eye(3, dtype=torch.float64))
e = grad(lambda x: grad(lambda y: (x * y * y).sum())(y).sum())(x)
g = vmap(vmap(grad(lambda s: s.sin())))(m)
h = jacfwd(jacrev(lambda x: (x.exp() * x).sum()))(x)
i = vmap(lambda r: jvp(torch.sin, (r,), (r,))[1])(m)
""",
    "with_the_tape": """
w = D(1., 2., 3.).requires_grad_()
g = grad(lambda x: (x * w * w).sum())(x)
print(g.requires_grad, g.tolist())
g.sum().backward()
gw = w.grad
z = x.clone().requires_grad_()
h = grad(lambda x: (x ** 3).sum())(z)
print(h.requires_grad)
(h * y).sum().backward()
gz = z.grad
w.grad = None
v = vmap(lambda r: (r[:3] * w).sum())(m)
v.sum().backward()
gv = w.grad
p = jvp(lambda x: x * w, (x,), (y,))
w.grad = None
p[1].sum().backward()
gp = w.grad
s = w * 2
w.grad = None
q = vmap(lambda r: (r[:3] * s).sum())(m)
q.sum().backward()
gq = w.grad
w.grad = None
val, pull = vjp(lambda x: x * w, x)
pull(y)[0].sum().backward()
gr = w.grad
t = D(1., 2., 3.).requires_grad_()
k, = torch.autograd.grad(grad(lambda x: (x ** 4).sum())(t).sum(), t, create_graph=True)
l, = torch.autograd.grad(k.sum(), t)
with torch.no_grad():
    print(grad(lambda x: (x * w).sum())(x).requires_grad)
""",
    "autograd_inside": """
def per_row(r):
    r = r.detach().requires_grad_() if False else r
    return (r * r).sum()
a = vmap(lambda r: torch.autograd.grad((lambda q: (q ** 3).sum())(r2 := r.clone().requires_grad_()), r2)[0])(m) if False else None
b = grad(lambda x: (x.detach() * x).sum())(x)
def no(x):
    with torch.no_grad():
        y = x * 2
    return (x * y).sum()
c = grad(lambda x: (x * x.data).sum())(x)
""",
    "functional_call": """
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()
params = dict(net.named_parameters())
out = functional_call(net, params, (x,))
same = torch.equal(out, net(x))
zero = {k: torch.zeros_like(v) for k, v in params.items()}
a = functional_call(net, zero, x)
g = grad(lambda p: functional_call(net, p, (x,)).sum())({k: v.detach() for k, v in params.items()})
per = vmap(grad(lambda p, r: functional_call(net, p, (r[:3],)).pow(2).sum()), in_dims=(None, 0))({k: v.detach() for k, v in params.items()}, m)
attempt(functional_call, net, {"0.weight": zero["0.weight"], "foo": x}, (x,))
attempt(functional_call, net, {"0.weight": zero["0.weight"]}, (x,), strict=True)
attempt(functional_call, net, ({"0.weight": x}, {"0.weight": x}), (x,))
attempt(functional_call, net, 3, ())
bn = torch.nn.BatchNorm1d(3).double()
buffers = {k: v.clone() for k, v in bn.named_buffers()}
functional_call(bn, (dict(bn.named_parameters()), buffers), (m[:, :3],))
print(bn.num_batches_tracked.item(), buffers["num_batches_tracked"].item(), bn.running_mean.tolist())
del net, bn, params
""",
    "functional_call_names": """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(2, 1, dtype=torch.float64)
        self.b = self.a
        self.scale = torch.ones(1, dtype=torch.float64)
        self.number = 3
    def forward(self, x):
        return self.a(x) * self.scale
net = Net()
w, x2 = torch.ones(1, 2, dtype=torch.float64), x[:2]
for values in (
    {"a.weight": w, "b.weight": w.clone()}, {"a.weight": w, "b.weight": w}, {"a.weight": 3}, {"a.bias": None}, {"scale": w[0, :1] * 5},
    {"a": w}, {"": w}, {"a.weight.c": w}, {"c.d": w}, {"a.c": w}, {"number": w}, {"number.x": w}, {"new": w},
):
    for tie in (True, False):
        attempt(functional_call, net, values, (x2,), tie_weights=tie)
print(functional_call(net, {"scale": w[0, :1] * 5}, (x2,)).item(), net.scale, hasattr(net, "new"), net(x2).item())
del net, w, x2
""",
    "vmap_out_dims": """
y = m * 2
def pair(a):
    return a, [a, one]
for f, dims in (
    (torch.sin, None), (lambda a: one, None), (lambda a: (a, one), (0, None)), (lambda a: (a, one), (None, 0)), (torch.sin, "a"),
    (lambda a: (a,), [0]), (lambda a: [a, a], (0, 1)), (lambda a: [a, a], [0, 1]), (pair, (0, [1, None])), (pair, (0, (1, None))),
    (lambda a: {"k": a}, {"k": 1}), (lambda a: {"k": a}, {"j": 1}),
):
    for size in (None, 1):
        attempt(lambda: vmap(f, out_dims=dims, chunk_size=size)(y))
""",
    "draws_for_what_is_no_slice": """
p, rows = torch.full((2, 3), 0.4), torch.tensor([[1., 2., 3.], [3., 2., 1.]])
ways = (
    lambda: torch.bernoulli(p), lambda: torch.bernoulli(p, 0.3), lambda: torch.multinomial(rows, 2), lambda: torch.poisson(rows),
    lambda: torch.multinomial(rows[0], 4, True), lambda: torch.normal(rows, 1.), lambda: torch.bernoulli(p.double()),
)
for how in ("error", "same", "different"):
    for way in ways:
        torch.manual_seed(0)
        attempt(lambda: vmap(lambda a: way(), randomness=how)(m))
        print(torch.rand(1))
for way in (torch.bernoulli, lambda r: torch.zeros_like(r).bernoulli_(r), lambda r: torch.bernoulli(r.double())):
    torch.manual_seed(0)
    attempt(lambda: vmap(way, randomness="different")(p))
for how in ("same", "different"):
    torch.manual_seed(0)
    attempt(lambda: vmap(lambda a: a + torch.rand(4), randomness=how, chunk_size=2)(m))
    print(torch.rand(1))
""",
    "by_keyword_alone": """
class F(torch.autograd.Function):
    @staticmethod
    def forward(x, *, y=2):
        return x * y
    @staticmethod
    def setup_context(ctx, inputs, output):
        pass
    @staticmethod
    def backward(ctx, g):
        return g
    @staticmethod
    def vmap(info, in_dims, x, *, y=2):
        return x * y, 0
for call in (
    lambda: F.apply(x, y=y), lambda: F.apply(x), lambda: F.apply(x, y=3), lambda: grad(lambda a: F.apply(a, y=y).sum())(x),
    lambda: vjp(lambda a: F.apply(a), x),
):
    attempt(call)
try:
    vmap(F.apply)(x, y=y)
except NotImplementedError:
    print("refused")
""",
    "functionalized": """
def added(x):
    x.view(-1).add_(1)
    return x
def row(x):
    return x[0]
for f in (added, row, lambda x: x.detach(), lambda x: (x.sum(), x.t())):
    for remove in ("mutations", "mutations_and_views"):
        z = m.clone()
        out = functionalize(f, remove=remove)(z)
        out = out if isinstance(out, torch.Tensor) else out[1]
        out.mul_(3)
        print(out, z, out is z)
w = torch.ones(2, requires_grad=True)
functionalize(lambda x: (x * 2).add_(1))(w).sum().backward()
print(w.grad)
""",
    "what_was_made_in_inference_mode": """
with torch.inference_mode():
    kept = torch.ones(3, dtype=torch.float64) * 3
print(grad(lambda x: (x * kept).sum())(x), vjp(lambda x: x * kept, x)[1](y), jacrev(lambda x: x * kept)(x), grad(lambda x: (x * x).sum())(kept))
attempt(lambda: x.clone().requires_grad_() * kept)
""",
    "pullbacks": """
w = torch.ones(3, dtype=torch.float64, requires_grad=True)
with torch.no_grad():
    out, pull = vjp(lambda a: a ** 2, w)
(g,) = pull(x)
print(out.requires_grad, torch.autograd.grad(g.sum(), w))
with torch.no_grad():
    print(pull(x)[0].requires_grad, jacrev(lambda a: a ** 2)(w).requires_grad)
pull = vjp(lambda a: (a * 2, a.sum()), x)[1]
for given in ((x, None), (None, one), (x, 3.), (x, x), ("a", one)):
    attempt(pull, given)
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x ** 3
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return g * 3 * ctx.saved_tensors[0] ** 2
(g,) = vjp(Cube.apply, w)[1](y.clone().requires_grad_())
print(g, g.requires_grad)
attempt(g.sum().backward)
attempt(lambda: grad(grad(lambda x: Cube.apply(x).sum()))(one))
attempt(lambda: grad(lambda v: vjp(Cube.apply, x)[1](v)[0].sum())(y))
""",
    "pullbacks_of_trees": """
attempt(lambda: vjp(lambda a: {"k": a}, one)[1]({"j": one}))
attempt(lambda: jacrev(lambda a: a, has_aux=True)(x))
attempt(lambda: jacfwd(lambda a: a, has_aux=True)(x))
attempt(lambda: vjp(lambda a: {"k": a}, one)[1]({"k": one}))
attempt(lambda: vjp(lambda a: [], one))
attempt(lambda: vjp(lambda a: a * 2, one)[1](one.float()))
attempt(lambda: vjp(lambda a: a.float() * 2, one)[1](one))
attempt(lambda: grad(lambda a: (a * 2j).sum())(one))
""",
    "ensembles": """
torch.manual_seed(0)
nets = [torch.nn.Linear(3, 2).double() for _ in range(4)]
params, buffers = stack_module_state(nets)
print({k: (tuple(v.shape), v.requires_grad, v.is_leaf) for k, v in params.items()}, buffers)
base = nets[0]
out = vmap(lambda p, b, x: functional_call(base, (p, b), (x,)), in_dims=(0, 0, None))(params, buffers, x)
each = torch.stack([n(x) for n in nets])
same = torch.allclose(out, each)
out.sum().backward()
gs = {k: v.grad for k, v in params.items()}
attempt(stack_module_state, [])
attempt(stack_module_state, [nets[0], torch.nn.ReLU()])
nets[0].bias.requires_grad_(False)
attempt(stack_module_state, nets)
del nets, base
""",
    "functions": CUBE
    + """
a = grad(lambda x: Cube.apply(x).sum())(x)
b = vmap(Cube.apply)(m)
c = vmap(grad(lambda r: Cube.apply(r).sum()))(m)
d = grad(lambda x: grad(lambda x: Cube.apply(x).sum())(x).sum())(x)
e = jvp(Cube.apply, (x,), (y,))
g = jacrev(Cube.apply)(x)
""",
    "complex": """
z = torch.tensor([1 + 2j, 0.5 - 1j], dtype=torch.complex128)
a = grad(lambda z: (z * z.conj()).real.sum())(z)
v, pull = vjp(lambda z: z ** 2, z)
b = pull(z)
c = jvp(lambda z: z ** 2, (z,), (z,))
""",
    "exponentials of matrices": """
g = lambda a: torch.matrix_exp(a).sin().sum()
for scale in (0.1, 3.):
    a = m[:, :3] * scale
    h = hessian(g)(a)
    b = jacfwd(jacrev(g))(a)
    c = vmap(hessian(g))(torch.stack([a, a.t()]))
    d = jacrev(jacrev(g))(a)
""",
    "mixed_types": """
i = torch.tensor([0, 2])
a = grad(lambda x, i: x[i].sum())(x, i)
b = vmap(lambda r, k: r[:2] * k, in_dims=(0, 0))(m, torch.tensor([1, 2, 3]))
c = vmap(lambda r: r > 0.5)(m)
d = functionalize(lambda x: x.clone().add_(1))(x)
e = grad(lambda x: (x.float() * 2).sum())(x)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_func(name):
    run(HEAD + PROGRAMS[name])


def test_randomness_of_vmap():
    x = jtorch.ones(4, 1000)
    drop = jtorch.nn.functional.dropout
    same = jtorch.func.vmap(lambda r: drop(r, 0.5), randomness="same")(x)
    assert (same == same[0]).all().item()
    other = jtorch.func.vmap(lambda r: drop(r, 0.5), randomness="different")(x)
    for a in range(4):
        assert 0.4 < (other[a] != 0).float().mean().item() < 0.6
        for b in range(a):
            assert 0.4 < (other[a] == other[b]).float().mean().item() < 0.6


DRAWS = {
    "randn": lambda a: jtorch.randn(50),
    "rand_like": lambda a: jtorch.rand_like(a),
    "randperm": lambda a: jtorch.randperm(50),
    "randint": lambda a: jtorch.randint(1000, (50,)),
    "normal": lambda a: jtorch.normal(a * 0, 1.0),
    "normal of deviations": lambda a: jtorch.normal(a * 0, a),
    "normal_": lambda a: a.clone().normal_(),
    "into a new tensor": lambda a: jtorch.empty(50).uniform_(),
    "exponential_": lambda a: jtorch.empty_like(a).exponential_(),
    "bernoulli_": lambda a: a.clone().bernoulli_(0.5),
    "bernoulli": lambda a: jtorch.bernoulli(a * 0 + 0.5),
    "bernoulli of a number": lambda a: jtorch.bernoulli(a, 0.5),
    "multinomial": lambda a: jtorch.multinomial(a, 50),
    "multinomial with replacement": lambda a: jtorch.multinomial(a, 60, True),
    "gumbel_softmax": lambda a: jtorch.nn.functional.gumbel_softmax(a),
    "nested": lambda a: jtorch.vmap(lambda b: jtorch.randn(2), randomness="different")(a),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_inside_vmap(name):
    x = jtorch.ones(3, 50)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        jtorch.vmap(DRAWS[name])(x)
    a, b, c = (y.tolist() for y in jtorch.vmap(DRAWS[name], randomness="same")(x))
    assert a == b == c
    a, b, c = (y.tolist() for y in jtorch.vmap(DRAWS[name], randomness="different")(x))
    assert a != b and b != c and a != c
    if "multi" in name or name == "randperm":
        assert all(0 <= i < 50 for i in a) and (len(set(a)) == 50 or len(a) > 50)


def test_draws_from_probabilities_of_slices():
    weights = jtorch.tensor([[0.0, 1.0, 0.0], [0.25, 0.25, 0.5]]).expand(2, 3)
    drawn = jtorch.vmap(lambda w: jtorch.multinomial(w, 4000, True), randomness="different")(weights)
    assert (drawn[0] == 1).all() and 0.47 < (drawn[1] == 2).float().mean() < 0.53
    drawn = jtorch.vmap(jtorch.bernoulli, randomness="different")(
        jtorch.tensor([0.0, 1.0, 0.3])[:, None].expand(3, 4000)
    )
    assert (
        drawn[0].sum() == 0
        and drawn[1].sum() == 4000
        and 0.27 < drawn[2].mean() < 0.33
        and drawn.dtype is jtorch.float32
    )
