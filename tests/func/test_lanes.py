"""vmap by lanes and what goes with it: gradients through it, in it, for what it shares, in each other."""

import pytest

import jtorch
from jtorch.func import by_lanes
from tests.autograd.programs import run

pytest.importorskip("torch")

HEAD = """
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
w = T(1., -2., .5)
m = torch.arange(12., dtype=torch.float64).view(4, 3).sin() + 2
def gradient(loss):
    w.grad = None
    loss.backward()
    return w.grad
def shared(r):
    return (r * w).sin().sum()
"""

PROGRAMS = {
    "shared_and_given": """
a = gradient(vmap(shared)(m).pow(2).sum())
b = gradient(vmap(grad(shared))(m).pow(2).sum())
c = gradient(vmap(lambda r, w: (r * w).sin().sum(), (0, None))(m, w).pow(2).sum())
d = gradient(vmap(grad(lambda w, r: (r * w).sin().sum()), (None, 0))(w, m).pow(2).sum())
e = gradient(sum(x.pow(2).sum() for x in vmap(lambda r, w: (r * (w * 2), w.exp()), (0, None))(m, w)))
f = gradient(vmap(lambda r: r.sum() * w[:1])(m).pow(2).sum())
u = w * 2
g = gradient(vmap(lambda r: (r * u[1:]  [:1]).sum())(m).pow(2).sum())
x = m.clone().requires_grad_()
vmap(lambda q: q * x.sum())(x).sum().backward()
""",
    "in_each_other": """
b = m.expand(2, 4, 3) + torch.arange(2.).view(2, 1, 1)
a = gradient(vmap(vmap(lambda r, w: (r * w).sin().sum(), (0, None)), (0, None))(b, w).pow(2).sum())
c = gradient(vmap(lambda x, w: vmap(lambda y: (x * y * w).sin().sum())(m), (0, None))(m, w).pow(2).sum())
d = vmap(lambda x: vmap(lambda y: x.sum() * 2)(m))(m)
e = vmap(lambda r, v: vjp(lambda r: r.sin() * r.sum(), r)[1](v)[0])(m, m)
pull = vjp(lambda r: r.sin() * r.sum(), m[0])[1]
f = vmap(pull)(torch.eye(3, dtype=torch.float64))
g = grad(lambda v: pull(v)[0].pow(2).sum())(m[1])
""",
    "jacobians": """
def f(r):
    return (r * w).sin().prod()
def rows(x):
    return vmap(shared)(x)
a = [jacrev(jacrev(f))(m[0]), jacrev(jacfwd(f))(m[0]), jacfwd(jacfwd(f))(m[0]), hessian(f)(m[0])]
b = jacrev(lambda a, b: a * b.sum(), argnums=(0, 1))(m[0], m[1])
c = jacfwd(lambda p: {"y": p["a"] * p["b"].sum()})({"a": m[0], "b": m[1]})
d = jacrev(lambda a: (a.sin(), a * 2), has_aux=True)(m[0]), jacfwd(lambda a: (a.sin(), a * 2), has_aux=True)(m[0])
e = gradient(vmap(hessian(f))(m).pow(2).sum() + vmap(jacfwd(f))(m).sum())
g = gradient(vmap(lambda w, r: torch.trace(jacrev(jacrev(lambda w, r: (r * w).sin().prod(), 1), 1)(w, r)), (None, 0))(w, m).sum())
h = gradient(jacrev(rows)(m).pow(2).sum()), gradient(jacrev(jacrev(rows))(m).pow(2).sum())
i = vmap(vjp(rows, m)[1])(torch.eye(4, dtype=torch.float64))
def through(w, r):
    return vmap(lambda a: (a * r * w).sin().prod())(m).sum()
j = gradient(vmap(jacrev(jacrev(through)), (None, 0))(w, m).pow(2).sum())
k = vmap(jacfwd(jacrev(through)), (None, 0))(w.detach(), m)
""",
    "forward_mode": """
def f(r):
    return (r * w).sin().prod()
a = jvp(grad(f), (m[0],), (m[1],))
b = gradient(a[1].sum())
c = jvp(lambda y: jvp(f, (y,), (m[1],))[1], (m[0],), (m[2],))
d = grad(lambda y: jvp(f, (y,), (m[1],))[1])(m[0])
e = vmap(lambda v: jvp(grad(f), (m[0],), (v,))[1])(m)
g = jvp(vmap(torch.sin), (m,), (m,))
""",
    "twice": """
x = m.clone().requires_grad_()
y = vmap(lambda r: (r * w).sin().sum())(x)
(g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
a = gradient(g.pow(2).sum()), x.grad
y = vmap(grad(lambda r, w: (r * w).sin().sum()), (0, None))(x, w)
(h,) = torch.autograd.grad(y.pow(2).sum(), w, create_graph=True)
x.grad = None
b = gradient(h.pow(2).sum()), x.grad
""",
    "writes_and_views": """
def put(r):
    out = torch.zeros_like(r)
    out[1] = r[0]
    return out
def update(x):
    y = x.clone()
    y[0] = y[1] * 2
    y.mul_(2)
    return (y ** 2).sum()
a = vmap(put)(m), vmap(grad(update))(m), hessian(update)(m[0])
b = vmap(grad(lambda r: r.view(3, 1).expand(3, 2).T.reshape(-1)[::2].pow(2).sum()))(m)
c = vmap(lambda r, i: r[i])(m, torch.tensor([0, 2, 1, 0]))
d = vmap(lambda r: (r * 2, r.sum()), in_dims=1, out_dims=(1, 0))(m)
e = vmap(lambda r: (r, w.detach() * 2), out_dims=(0, None))(m)
f = vmap(lambda r: r.new_zeros(r.shape[0]) + r.numel() + r.dim())(m)
k = m.clone()
g = vmap(lambda r: r.mul_(2).sum())(k)
""",
    "drawn_and_counted_once": """
n = torch.zeros(())
def counted(r):
    n.add_(1)
    return r * w + torch.randn(3, dtype=torch.float64)
torch.manual_seed(0)
a = vmap(counted, randomness="different")(m), torch.randn(2), n.item()
torch.manual_seed(0)
b = vmap(counted, randomness="same")(m), torch.randn(2), n.item()
""",
    "solved_by_a_library": """
A = m[:3] + m[:3].T
found = torch.linalg.ldl_factor(A)
B = torch.stack([m.T, m.T * 2])
a = vmap(lambda b: torch.linalg.ldl_solve(found.LD, found.pivots, b))(B)
b = vmap(lambda k: torch.linalg.ldl_solve(found.LD * k, found.pivots, B[0]))(torch.tensor([1., 2.], dtype=torch.float64))
found = None
""",
    "selected_by_a_mask": """
mask = torch.tensor([True, False, True])
a = vmap(lambda r: r.masked_select(mask))(m), vmap(lambda r: torch.masked_select(w.detach(), mask) * r.sum())(m)
b = vmap(grad(lambda r: torch.masked_select(r, mask).pow(2).sum()))(m)
c = vmap(lambda r: r.masked_select(mask[:, None]))(m), vmap(lambda r: vmap(lambda q: q.masked_select(mask[:1]))(r))(m)
""",
    "values_that_are_looked_at": """
one = torch.ones(3, 4, dtype=torch.float64)
def kind(f, *args):
    try:
        print(f(*args))
    except (IndexError, RuntimeError):  # a vmap of PyTorch's names another dimension, or is of another class
        print("refused")
for last in (3, -4, 5, -5):
    i = torch.tensor([0, 1, last])
    kind(vmap(lambda r, i: r[i]), one, i)
    kind(vmap(vmap(lambda r, i: r[i], (0, None)), (None, 0)), one, i)
    kind(vmap(lambda i: torch.nn.functional.embedding(i, one.T)), i)
    kind(vmap(lambda r, i: r.gather(0, i[None])), one, i)
    kind(vmap(grad(lambda r, i: r[i[None]].sin().sum())), one, i)
flat = one[:, :3].expand(2, 3, 3)
for f in (torch.linalg.inv, torch.linalg.cholesky, lambda a: torch.linalg.solve(a, a[0]), grad(lambda a: torch.linalg.inv(a).sum())):
    for a in (flat, flat - 2, flat[:, None], flat + torch.eye(3, dtype=torch.float64)):
        attempt(lambda: vmap(vmap(f) if a.ndim == 4 else f)(a))
with torch.autograd.set_detect_anomaly(True):
    attempt(lambda: vmap(grad(lambda r: r.sqrt().sum()))(-one))
    attempt(lambda: vmap(grad(lambda r: r.sum()))(-one))
""",
    "turned_in_place": """
k = torch.arange(24., dtype=torch.float64).view(2, 3, 4)
for turn in (
    lambda r: r.t_(), lambda r: r.unsqueeze_(0), lambda r: r.transpose_(0, 1).add_(1), lambda r: r.mul_(2).t_(), lambda r: r.swapaxes_(0, 1).sum(),
):
    q = k.clone()
    print(vmap(turn)(q), q.sum())
a = vmap(lambda r: r.squeeze_())(k[:, :1].clone())
q = None  # PyTorch's has been turned as well
""",
    "results_that_are_no_slices": """
one = torch.ones(3, dtype=torch.float64)
print(
    vmap(lambda r: one, out_dims=None)(m) is one, vmap(lambda r, o: o, (0, None), None)(m, one) is one,
    vmap(lambda r: (r, w), out_dims=(0, None))(m)[1] is w, vmap(lambda r: w * 2, out_dims=None)(m).requires_grad,
)
attempt(lambda: vmap(lambda r: r, out_dims=None)(m))
k = m.clone()
r = vmap(lambda r: r)(k), vmap(torch.Tensor.exp_)(k), vmap(torch.Tensor.exp_, 1, 1)(k), vmap(torch.Tensor.neg_, out_dims=1)(k)
print([t is k for t in r], r[3].data_ptr() == k.data_ptr(), r[3].stride(), k._version, vmap(vmap(lambda r: r))(k) is k)
b = vmap(lambda r: r, 1)(k), vmap(lambda r: r, 1, -1)(k) is k
q = m.clone().requires_grad_()
u = q * 1
s = vmap(lambda r: r.mul_(2))(u)
print(s is u, vmap(lambda r: r)(q) is q)
(s ** 2).sum().backward()
attempt(lambda: vmap(lambda r: r, out_dims=3)(k))
a = gradient((vmap(lambda r: (r.sum(), w), out_dims=(0, None))(m)[1] ** 2).sum())
""",
    "writes_to_what_numpy_shares": """
n = torch.zeros(3)
seen = n.numpy()
a = vmap(lambda r: n.add_(2) * r[0].float())(m), n, seen.tolist()
b = vmap(lambda r: n.add_(torch.randint(5, (3,))) * r[0].float(), randomness="same")(m), n, seen.tolist()
""",
    "layers": """
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).double()
def gradients(loss):
    net.zero_grad()
    loss.backward()
    return [p.grad for p in net.parameters()]
a = gradients(vmap(lambda r: jacrev(net)(r))(m).pow(2).sum())
b = gradients(vmap(lambda r: jvp(net, (r,), (torch.ones_like(r),))[1])(m).pow(2).sum())
parameters = dict(net.named_parameters())
loss = lambda p: torch.func.functional_call(net, p, (m,)).pow(2).sum()
c = gradients(sum(v.pow(2).sum() for v in grad(loss)(parameters).values()))
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_lanes(name):
    run(HEAD + PROGRAMS[name])


def test_a_vmap_of_gradients_goes_by_lanes(monkeypatch):
    """And is recorded: the same nodes at the second call, no operation traced again."""
    seen, made = [], by_lanes.run
    monkeypatch.setattr(by_lanes, "run", lambda *a: seen.append(made(*a)) or seen[-1])
    x = jtorch.arange(12.0).view(4, 3)
    with jtorch.execution_mode("auto"):
        step = jtorch.func.vmap(jtorch.func.grad(lambda r: r.sin().sum()))
        jtorch.testing.assert_close(step(x), x.cos())
        jtorch.testing.assert_close(step(x + 1), (x + 1).cos())
    assert len(seen) == 2


def test_a_result_shows_a_node_of_pytorchs():
    with jtorch.execution_mode("auto"):
        made = jtorch.vmap(jtorch.sin)(jtorch.ones(2, requires_grad=True))
    assert "<_" not in repr(made)


def test_what_escapes_from_vmap_has_no_value():
    kept = []

    def f(r):
        kept.append(r.sin())
        return r.sum()

    jtorch.func.vmap(f)(jtorch.ones(2, 3))
    with pytest.raises(RuntimeError, match="may have escaped from inside a function being vmapped"):
        (kept[0] + 1).tolist()
