"""backward and grad: arguments, accumulation, errors, higher orders, re-entrance, threads, depth."""

import gc
import threading
import time

import pytest

import jtorch

from .programs import run

PROGRAMS = {
    "nodes_are_called": """
x = T(1., 2.)
y = x * 3
attempt(lambda: print(y.grad_fn(torch.ones(2, dtype=torch.float64))))
attempt(y.grad_fn, torch.ones(2), torch.ones(2))
r = x.exp()
print(r.grad_fn(torch.ones(2, dtype=torch.float64)).requires_grad)
x.expand(2).grad_fn.next_functions[0][0](torch.full((2,), 5., dtype=torch.float64))
g = x.grad
""",
    "edges_of_nodes": """
x = T(1., 2., 3., 4.)
b = x.clone()
b[:2].mul_(2)
b[1:] = x[1:]
i = torch.tensor([0, 1])
m = x.view(2, 2)
for t in (b, m.gather(0, i[None]), x[i], x.masked_fill(x > 2, 0), torch.where(x > 2, x, 0), x % 2, x.clamp(1, 2), x.lerp(x, 0.5),
          x.index_add(0, i, x[:2]), x * 2, x.copysign(x), x.log1p()):
    print(name(t), [(None if n is None else n.name(), k) for n, k in t.grad_fn.next_functions])
""",
    "no_derivative": """
x = T(1., 2.)
for f in (lambda: x // 2, lambda: x.heaviside(x)):
    y = f()
    print(name(y), y.requires_grad)
    attempt(y.sum().backward)
""",
    "another_shape_through_data": """
x = T(1., 2., 3., 4.)
y = x.exp()
y.data = torch.zeros(3, dtype=torch.float64)
print(name(y))
attempt((y.sum() * 2).backward)
y = x.exp()
y.data = torch.zeros(2, 4, dtype=torch.float64)
y.sum().backward()
g = x.grad
""",
    "gradient_that_has_a_history": """
x = T(1., 2.)
(x ** 3).sum().backward(create_graph=True)
h = x.grad
(h ** 2).sum().backward()
print(x.grad is h, h.requires_grad, h.tolist())
""",
    "refused_calls": """
x = T(1., 2.)
attempt(torch.autograd.grad, x.sum(), ())
attempt(torch.autograd.grad, x * 2, x, torch.ones(3, 3, 3), is_grads_batched=True)
attempt(torch.autograd.grad, (x * 2, x * 3), x, (torch.ones(3, *x.shape), torch.ones(2, *x.shape)), is_grads_batched=True)
attempt(torch.autograd.grad, x * 2, (x, x.detach().requires_grad_()), torch.ones(3, *x.shape), is_grads_batched=True, materialize_grads=True)
attempt(torch.autograd.backward, x.sum(), torch.tensor(1.), grad_variables=torch.tensor(1.))
attempt(x.map_, x, lambda a, b: a)
attempt(x.detach().map_, x, lambda a, b: a)
attempt((x * 1).apply_, lambda a: a)
print(x.detach().apply_(lambda a: a + 1))
""",
    "arguments_of_grad": """
x = T(1., 2.)
attempt(x.set_, torch.ones(1, dtype=torch.float64))
attempt((x * 2).backward, [1, 2, 3])
attempt(torch.autograd.grad, [x.sum(), x.sum()], [x], [None])
more = torch.autograd.grad([x.sum()], [x], [None, None])
""",
    "nothing": """
none = torch.autograd.backward([]), torch.autograd.backward(())
x = T(1., 2.)
attempt(torch.autograd.grad, [], [x])
unused = torch.autograd.grad([], [x], allow_unused=True)[0] is None
""",
    "inputs": """
x, w = T(1., 2.), T(3., 4.)
y = x * w
z = (y * x).sum()
z.backward(inputs=[w], retain_graph=True)
gw, none = w.grad, x.grad is None
z.backward(inputs=x, retain_graph=True)
gx = x.grad
z.backward(inputs=[y, x], retain_graph=True)
gy, gx2 = y.grad, x.grad
attempt(z.backward, inputs=[])
v = T(1., 2., 3.)[:-1].sin()
with torch.no_grad():
    part = v[1:]
attempt((part * v).sum().backward, inputs=[part])
gp = part.grad
attempt(z.backward, inputs=[T(1., grad=False)])
""",
    "grad": """
x, w, u = T(1., 2.), T(3., 4.), T(1.)
y = (x * w).sum()
a = torch.autograd.grad(y, [x, w], retain_graph=True)
b = torch.autograd.grad(y, [x, u], retain_graph=True, allow_unused=True)
n = b[1] is None
c = torch.autograd.grad(y, [x, u], retain_graph=True, materialize_grads=True)
attempt(torch.autograd.grad, y, [x, u], retain_graph=True)
attempt(torch.autograd.grad, y, [T(1., grad=False)], retain_graph=True)
attempt(torch.autograd.grad, y, [x], allow_unused=False, materialize_grads=True)
attempt(torch.autograd.grad, x * w, [x])
attempt(torch.autograd.grad, x * w, [x], T(1., grad=False))
attempt(torch.autograd.grad, [y, y], [x], [None])
attempt(torch.autograd.grad, T(1., grad=False), [x])
attempt(torch.autograd.grad, y, [x], 3)
d = torch.autograd.grad(y, x, torch.tensor(2.), retain_graph=True)
leaf = torch.autograd.grad(x.sum() * 0 + y, y, retain_graph=True)
self_grad = torch.autograd.grad(x, x, torch.ones(2, dtype=torch.float64))
""",
    "batched": """
x = T(1., 2., 3.)
y = x ** 2
j = torch.autograd.grad(y, x, torch.eye(3, dtype=torch.float64), is_grads_batched=True)
""",
    "writes to views are passed once": """
x = T(1., 2.)
for write in (lambda y: y[0].fill_(3), lambda y: y[:1].add_(1), lambda y: y.view(-1)[0].copy_(x[1]), lambda y: y.zero_(), lambda y: y.add_(1)):
    y = x.clone()
    write(y)
    for _ in range(3):
        attempt(lambda: torch.autograd.grad(y.sum(), x))
    attempt(lambda: torch.autograd.grad(y[0], x, retain_graph=True))
""",
    "numbers that nothing saves": """
x, y = T(1., 2.), T(3., 4.)
m = torch.ones(2, 2, dtype=torch.float64)
for z in (
    torch.add(x, y, alpha=2), torch.sub(x, y, alpha=2), torch.rsub(x, y, alpha=3), torch.lerp(x, y, 0.25), torch.add(x, 2, alpha=3),
    torch.addmv(x, m, m[0], beta=2), torch.addr(x, m[0], m[0], beta=2), torch.addmm(x, m, m, beta=2), torch.trapezoid(x, dx=2.0),
    (x + 0).add_(y, alpha=2), (x + 0).lerp_(y, 0.5), torch.baddbmm(x, m[None], m[None], beta=2), x * 2, x / 2, 2 - x, x.clamp(0, 1.5),
    x * torch.tensor(2.0, dtype=torch.float64), torch.where(y > 3, x, 2.0), x.masked_fill(y > 3, 1.5), x.fmod(2), x.remainder(2), torch.add(2, x, alpha=2),
):
    for _ in range(3):
        attempt(lambda: torch.autograd.grad(z.sum(), x))
""",
    "freed": """
x = T(1., 2.)
y = (x * x).sum()
y.backward()
attempt(y.backward)
y = x.exp()
torch.autograd.grad(y.sum(), x)
attempt(torch.autograd.grad, y.sum(), x)
y = (x + 1).sum()
y.backward(); y.backward()
g = x.grad
attempt(T(1.).detach().backward)
attempt((x * 2).backward)
attempt((x * 2).backward, torch.ones(3, dtype=torch.float64))
attempt((x * 2).backward, 1.0)
""",
    "accumulation": """
x = T(1., 2.)
(x * x).sum().backward()
g = x.grad
_v0 = g._version
(x * x).sum().backward()
same = x.grad is g
v1 = g._version > _v0
p = x.grad.data_ptr() == g.data_ptr()
x.grad = None
(x * x).sum().backward(create_graph=True)
h = x.grad
rg = h.requires_grad
(x * x).sum().backward(create_graph=True)
same2 = x.grad is h
x.grad = None
x.grad = T(1., 1., grad=False)
k = x.grad
(x * 2).sum().backward()
same3 = x.grad is k
total = k.clone()
attempt(setattr, x, "grad", 3)
attempt(setattr, x, "grad", torch.ones(3, dtype=torch.float64))
attempt(setattr, x, "grad", torch.ones(2))
attempt(setattr, x, "grad", x)
a = T(1., 2.)
b = a * 1
gout = torch.ones(2, dtype=torch.float64)
b.backward(gout)
alias = a.grad.data_ptr() == gout.data_ptr()
a2 = a.grad.clone()
""",
    "double": """
x = T(0.5, 1.5)
y = (x ** 3).sum()
g, = torch.autograd.grad(y, x, create_graph=True)
h, = torch.autograd.grad(g.sum(), x, create_graph=True)
t, = torch.autograd.grad(h.sum(), x)
names = (name(g) is not None, g.requires_grad, t.requires_grad)
z = (x.tanh() * x.exp()).sum()
g, = torch.autograd.grad(z, x, create_graph=True)
(g * g).sum().backward()
gx = x.grad
""",
    "penalty": """
w = T(1., -2., 3.)
x = T(0.5, 0.25, -1., grad=False).requires_grad_()
out = (w * x).sigmoid().sum()
g, = torch.autograd.grad(out, x, create_graph=True)
loss = ((g.norm() - 1) ** 2) + out
loss.backward()
gw, gx = w.grad, x.grad
""",
    "reentrant": """
log = []
x = T(1., 2.)
u = T(3.)
def hook(g):
    with torch.enable_grad():
        v = u * u
        v.backward(torch.ones(1, dtype=torch.float64))
    log.append(u.grad.item())
    return g * u.grad
y = x * 2
y.register_hook(hook)
y.sum().backward()
gx = x.grad
""",
    "multiple_roots": """
x = T(1., 2.)
y = x * 2
z = x.exp()
torch.autograd.backward([y.sum(), z.sum()])
g1 = x.grad.clone()
torch.autograd.backward([x * 2, x * x], [torch.ones(2, dtype=torch.float64), T(5., 6., grad=False)])
g2 = x.grad.clone()
torch.autograd.backward([x.sum(), x.sum()])
g3 = x.grad
attempt(torch.autograd.backward, [])
attempt(torch.autograd.backward, [x * 2, x.sum()], [None, None])
r = torch.autograd.grad([y.sum(), (y * y).sum()], [y, x])
""",
    "unused_outputs": """
x = torch.arange(6., dtype=torch.float64).reshape(2, 3).requires_grad_()
v, i = x.max(dim=1)
a, b = x.split([1, 2], dim=1)
(v * 2).sum().backward(retain_graph=True)
b.sum().backward()
g = x.grad
rg = (i.requires_grad, v.requires_grad, name(v), name(b), b.output_nr if hasattr(b, "output_nr") else None)
""",
    "leaf_rules": """
x = T(1., 2.)
i = torch.tensor([1, 2])
attempt(i.requires_grad_)
attempt(torch.tensor, [1, 2], requires_grad=True)
y = x * 2
attempt(y.requires_grad_, False)
attempt(setattr, y, "requires_grad", False)
y.requires_grad_()
attempt(x.numpy)
attempt(y.numpy)
d = y.detach()
r = (d.requires_grad, d.is_leaf, d._version, d.data_ptr() == y.data_ptr())
y.detach_()
r2 = (y.requires_grad, y.is_leaf)
z = (x * 3)
z.requires_grad_(True)
with torch.no_grad():
    q = x * 2
r3 = (q.requires_grad, q.is_leaf)
q.requires_grad = True
r4 = (q.requires_grad, q.is_leaf)
c = x.clone()
r5 = (c.is_leaf, name(c))
s = (x > 1)
r6 = (s.requires_grad, s.is_leaf)
n = (x * 1).new_zeros(2).requires_grad
attempt(x.__deepcopy__, {})
attempt((x * 2).__deepcopy__, {})
""",
    "complex": """
z = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)
w = (z * z.conj()).real.sum()
w.backward()
g = z.grad
attempt((z * 2).sum().backward)
(z ** 2).sum().backward(torch.tensor(1 + 0j, dtype=torch.complex128))
g2 = z.grad
attempt((z * 2).sum().backward, torch.tensor(1., dtype=torch.float64))
""",
    "edges": """
x = T(1., 2.)
y = x.exp()
z = (y * y).sum()
e = torch.autograd.graph.get_gradient_edge(y)
r = (e.output_nr, e.node.name())
g = torch.autograd.grad(z, e, retain_graph=True)
e2 = torch.autograd.graph.get_gradient_edge(x)
n2 = e2.node.name()
g2 = torch.autograd.grad(z, e2, retain_graph=True)
attempt(torch.autograd.graph.get_gradient_edge, T(1., grad=False))
g3 = torch.autograd.grad(torch.autograd.graph.get_gradient_edge(z), x)
""",
    "saved_of_nodes": """
x = T(1., 2.)
y = x * x
z = y.exp()
s = z.grad_fn._saved_result.tolist()
a = y.grad_fn._saved_self.tolist()
""",
    "arguments": """
x = T(1., 2.)
y = x * 2
attempt(torch.autograd.grad, y.sum(), [x, 3])
attempt(torch.autograd.grad, y.sum(), x, is_grads_batched=True)
attempt(torch.autograd.graph.increment_version, 3)
attempt(torch.autograd.graph.register_multi_grad_hook, (x, torch.ones(1)), print)
with torch.inference_mode():
    data = torch.ones(2)
attempt(torch.nn.Parameter, data)
""",
    "warnings": """
import warnings
x = T(1., 2.)
y = x * 2
y.sum().backward()
with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter("always")
    y.grad
texts = [str(i.message)[:120] for i in w]
kinds = [i.category.__name__ for i in w]
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_engine(name):
    run(PROGRAMS[name])


def _chain(n):
    x = jtorch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(n):
        y = y + 1
    return x, y


@pytest.mark.parametrize("n", [100_000])
def test_deep_graphs(n):
    """No recursion: neither in backward nor when the graph is let go."""
    x, y = _chain(n)
    y.backward()
    assert x.grad.item() == 1
    del y
    gc.collect()
    x, y = _chain(n)
    del y
    gc.collect()


def _per_node(n):
    x, y = _chain(n)
    started = time.perf_counter()
    y.backward()
    return (time.perf_counter() - started) / n


def test_backward_is_linear():
    _per_node(1000)
    small = min(_per_node(1000) for _ in range(20))
    large = min(_per_node(50_000) for _ in range(2))
    assert large < 8 * small  # more than the caches of a busy machine explain would be quadratic


def test_threads():
    x = jtorch.ones(3, requires_grad=True)
    errors = []

    def work():
        try:
            for _ in range(20):
                (x * x).sum().backward()
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not errors
    assert x.grad.tolist() == [160.0] * 3


def test_deep_function_graph():
    """The same of nodes that users wrote."""

    class Add(jtorch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x + 1

        @staticmethod
        def backward(ctx, g):
            return g

    x = jtorch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(5000):
        y = Add.apply(y)
    y.backward()
    assert x.grad.item() == 1
