"""Inside transformed functions: torch.autograd.grad, writes in place to arguments and to captured tensors, running statistics."""

import pytest

import jtorch

pytest.importorskip("torch")

from tests.autograd.programs import run

PROGRAMS = {
    "autograd_grad": """
from torch.func import grad, vjp, vmap
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * x
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
    @staticmethod
    def backward(ctx, g):
        return 3 * g * ctx.saved_tensors[0]
def constant(x):
    g, = torch.autograd.grad(x.sin(), x)
    return g * x
def captured(x):
    h = grad(lambda q: (q * x).sin())(x)
    return torch.autograd.grad(h, x, create_graph=True)[0] * x
def captured_result(x):
    h = x.exp()
    k = grad(lambda q: (q * h).sin())(x)
    return torch.autograd.grad(k, x, create_graph=True)[0] * x
def pulled(x):
    y, pull = vjp(lambda q: (q * x).sin(), x)
    return torch.autograd.grad(pull(x)[0], x, create_graph=True)[0] * x
def own_rule(x):
    return torch.autograd.grad(Twice.apply(x.sin()), x, create_graph=True)[0] * x
def own_leaf(x):
    z = torch.ones((), dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(x * z * z, z, create_graph=True)[0] * x
def says(x):
    y = x * 2
    print(x.requires_grad, x.is_leaf, y.requires_grad, name(y))
    return y
x = torch.tensor(0.5, dtype=torch.float64)
got = [grad(f)(x) for f in (constant, captured, captured_result, pulled, own_rule, own_leaf, says)]
attempt(vmap(lambda x: torch.autograd.grad(x.sin(), x)[0]), torch.ones(2))
attempt(grad(lambda x: x.sin().backward()), x)
""",
    "values_unknown": """
from torch.func import vmap
x = torch.ones(2, 3)
for f in (
    lambda x: x if x.sum() > 0 else -x, lambda x: float(x.sum()) * x, lambda x: x.sum().item(), lambda x: x.nonzero(), lambda x: x.unique_consecutive(),
):
    attempt(vmap(f), x)
""",
    "captured_argument": """
from torch.func import grad, vmap
x = T(1., 2.)
vmap(lambda q: q * x.sum())(x).sum().backward()
g1, x.grad = x.grad, None
grad(lambda q: (q * q * x).sum())(x).sum().backward()
g2 = x.grad
""",
    "written_arguments": """
from torch.func import grad, jacrev, jvp, vmap
def f(x):
    x.mul_(2)
    x[0] = 1.
    return x.sum()
def with_state(x, b):
    b.mul_(x.detach())
    return (b * x).sum()
for tf in (
    vmap(f, 1), lambda a: vmap(f)(a.t()), lambda a: jvp(f, (a,), (a.clone(),)), grad(f), jacrev(f),
    lambda a: grad(with_state)(a.clone(), a), lambda a: vmap(grad(with_state))(a.clone(), a),
):
    a = torch.arange(4.).view(2, 2) + 1
    got = attempt(tf, a)
    print(got if got is None else got[0].tolist(), a.tolist(), a._version)
w = T(1., 2.)
u = w * 2
y = vmap(lambda x: x.mul_(3).sin())(u)
(y.sum() + u.sum()).backward()
attempt(vmap(lambda x: x.mul_(2)), w)
""",
    "captured_writes": """
from torch.func import grad, jvp, vmap
v = torch.ones(2)
def set_first(x):
    v[0] = x[0]
    return x.sum()
attempt(vmap(lambda x: v.add_(1).sum() + x), torch.ones(2))
attempt(vmap(lambda x: v.mul_(x).sum()), torch.ones(2, 2))
attempt(grad(lambda x: (v.add_(1) * x).sum()), torch.ones(2))
attempt(grad(lambda x: (v.exp_() * x).sum()), torch.ones(2))
attempt(lambda: jvp(lambda x: v.fill_(1) * x, (torch.ones(2),), (torch.ones(2),)))
attempt(grad(set_first), torch.ones(2))
print(v.tolist(), v._version)
""",
    "running_statistics": """
from torch.func import functional_call, grad, stack_module_state, vmap
models = [torch.nn.BatchNorm1d(2, dtype=torch.float64) for _ in range(2)]
parameters, buffers = stack_module_state(models)
x = torch.arange(6., dtype=torch.float64).view(3, 2).sin()
def loss(p, b):
    return (functional_call(models[0], (p, b), (x,)) ** 3).sum()
grads = vmap(grad(loss))(parameters, buffers)
seen = {k: (b.tolist(), b.requires_grad) for k, b in buffers.items()}
attempt(grad(lambda x: models[0](x).sum()), x)
kept = models[0].running_mean
""",
    "what_layers_keep": """
from torch.func import functional_call, grad, jacfwd, jacrev, jvp, vmap
torch.manual_seed(0)
x = torch.arange(12.0).reshape(2, 2, 3).sin()
def shown(made):
    made = made.values() if isinstance(made, dict) else made if isinstance(made, (tuple, list)) else [made]
    print([[round(v, 2) + 0.0 for v in t.detach().flatten().tolist()] for t in made])
for build in (
    lambda: torch.nn.InstanceNorm1d(2, affine=True, track_running_stats=True),
    lambda: torch.nn.utils.parametrizations.spectral_norm(torch.nn.Conv1d(2, 3, 1), n_power_iterations=2),
    lambda: torch.nn.utils.spectral_norm(torch.nn.Conv1d(2, 3, 1)),
    lambda: torch.nn.BatchNorm1d(2),
):
    m = build()
    kept = dict(m.named_parameters())
    for call in (
        lambda: jvp(m, (x,), (x.cos(),)),
        lambda: grad(lambda x: m(x).pow(3).sum())(x),
        lambda: grad(lambda p: functional_call(m, p, (x,)).pow(3).sum())(kept),
        lambda: (jacrev(m)(x), jacfwd(m)(x)),
    ):
        attempt(lambda: shown(call()))
        shown(list(m.buffers()))
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_inside(name):
    run(PROGRAMS[name])


def test_a_hook_around_a_transformation():
    outside = jtorch.ones(2, requires_grad=True)
    seen = []
    outside.register_hook(lambda g: seen.append(g))
    (outside * jtorch.func.grad(lambda x: x.sin().sum())(jtorch.ones(2))).sum().backward()
    assert len(seen) == 1
