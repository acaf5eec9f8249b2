"""Hooks on tensors and nodes: when they run, in which order, what they may change, and their removal."""

import pytest

from .programs import run

PROGRAMS = {
    "backward_hooks": """
x = T(1., 2.)
y = x * 2
h = lambda g: g * 2
for t in (x, y):
    print(t._backward_hooks)
    a, b = t.register_hook(h), t.register_hook(h)
    print(type(t._backward_hooks).__name__, [k == n.id for k, n in zip(t._backward_hooks, (a, b))], [v is h for v in t._backward_hooks.values()])
    a.remove()
    print(len(t._backward_hooks), b.id in t._backward_hooks)
    b.remove()
    print(t._backward_hooks)
del a, b, h
print(x._post_accumulate_grad_hooks)
a = x.register_post_accumulate_grad_hook(lambda p: None)
print(type(x._post_accumulate_grad_hooks).__name__, [k == a.id for k in x._post_accumulate_grad_hooks])
a.remove()
print(x._post_accumulate_grad_hooks)
del a
""",
    "what_node_hooks_return": """
x = T(1., 2.)
for got in (3, [None, None], (None,), (None, None, None), (torch.ones(3), None), (None, torch.ones(2)), (T(5., 5., grad=False), None)):
    y = x * 2
    y.grad_fn.register_hook(lambda a, b: got)
    attempt(y.sum().backward)
for got in (3, (None, None), (torch.ones(2),), (T(7., 7., grad=False),)):
    y = x * 2
    y.grad_fn.register_prehook(lambda a: got)
    attempt(y.sum().backward)
    acc = (x * 1).grad_fn.next_functions[0][0]
    h = acc.register_prehook(lambda a: got)
    attempt((x * 1).sum().backward)
    h.remove()
g = x.grad
""",
    "pack_hooks_see_the_tensor": """
x = T(1., 2.)
def pack(t):
    print(t is x, t.requires_grad, t.is_leaf, name(t), torch.is_grad_enabled(), (t * 2).requires_grad)
    return t
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(x, y)
        return y
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]
with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
    y = x.relu().sin()
    z = F.apply(y.pow(2))
    v = x[:1] * y[1:]
(z.sum() + v.sum()).backward()
g = x.grad
w = x * x
print(w.grad_fn._saved_self is x, w.grad_fn._saved_other is x)
""",
    "one_saved_tensor": """
a = T(1., 2.)
r = a.exp()
saved = r.grad_fn._raw_saved_result
saved.register_hooks(lambda t: t * 0 + 5, lambda t: t)
attempt(saved.register_hooks, lambda t: t, lambda t: t)
r.sum().backward()
attempt(saved.unpack)
attempt(saved.register_hooks, lambda t: t, lambda t: t)
m = a * torch.tensor([3., 4.])
u = m.grad_fn._raw_saved_other.unpack()
n = (m.grad_fn._raw_saved_self.unpack(), m.grad_fn._saved_self)
m.grad_fn._raw_saved_other.register_hooks(lambda t: tuple(t.shape), lambda p: torch.full(p, 2., dtype=torch.float64))
m.sum().backward()
attempt(a.exp().grad_fn._raw_saved_result.register_hooks, 3, 4)
attempt(getattr, a.exp().grad_fn, "_raw_saved_nothing")
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, x * 2)
        return x * 3
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[1]
o = F.apply(a)
o.grad_fn._raw_saved_tensors[1].register_hooks(lambda t: 1, lambda p: torch.full((2,), 9., dtype=torch.float64))
o.sum().backward()
g = a.grad
print(m.grad_fn._saved_self is None, (a * a).grad_fn._saved_self is a)
with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
    s = a.pow(2).grad_fn._saved_self
print(s is a, s.is_leaf, s.requires_grad, s.grad_fn)
""",
    "order_of_linear": """
log = []
def order(shape, biased):
    ts = [torch.ones(shape), torch.ones(2, 3)] + [torch.ones(2)] * biased
    ts = [t.requires_grad_() for t in ts]
    for n, t in zip("xwb", ts):
        t.register_hook(lambda g, n=n: log.append(n))
    torch.nn.functional.linear(*ts).sum().backward()
for shape in ((3,), (2, 3), (2, 2, 3)):
    for biased in (False, True):
        order(shape, biased)
""",
    "tensor": """
x = T(1., 2., 3.)
log = []
h1 = x.register_hook(lambda g: log.append(("a", g.tolist())))
h2 = x.register_hook(lambda g: g * 2)
h3 = x.register_hook(lambda g: log.append(("c", g.tolist())))
(x * x).sum().backward()
h2.remove()
(x * x).sum().backward()
gx = x.grad
""",
    "tensor_nonleaf": """
x = T(1., 2.)
y = x * 3
log = []
y.register_hook(lambda g: log.append(("y1", g.tolist())))
y.retain_grad()
y.register_hook(lambda g: g + 1)
(y * y).sum().backward()
gy, gx = y.grad, x.grad
r = (y.retains_grad, x.retains_grad)
""",
    "retained_before_another_layout": """
x = T(1., 2.)
for name in ("t_", "squeeze_", "unsqueeze_"):
    for again in (False, True):
        for part in (lambda y: y, lambda y: y[:, :]):
            y = part((x * torch.tensor([[2.], [3.], [4.]])))
            y.retain_grad()
            getattr(y, name)(*(() if name == "t_" else (0,)))
            print(y.retains_grad)
            if again:
                y.retain_grad()
            (y * y.sum()).sum().backward()
            print(y.grad.shape, y.grad.tolist(), y.retains_grad)
gx = x.grad
""",
    "node_order": """
x = T(1., 2.)
log = []
a = x * 2
b = a + 1
a.grad_fn.register_hook(lambda gi, go: log.append(("post a", [None if g is None else g.tolist() for g in gi], [g.tolist() for g in go])))
a.grad_fn.register_prehook(lambda go: log.append(("pre a", [g.tolist() for g in go])))
a.register_hook(lambda g: log.append(("tensor a", g.tolist())))
b.register_hook(lambda g: log.append(("tensor b", g.tolist())))
b.grad_fn.register_prehook(lambda go: tuple(g * 10 for g in go))
x.register_hook(lambda g: log.append(("x", g.tolist())))
x.register_post_accumulate_grad_hook(lambda p: log.append(("acc", p.grad.tolist())))
b.sum().backward()
""",
    "node_post_replaces": """
x = T(1., 2.)
a = x.exp()
h = a.grad_fn.register_hook(lambda gi, go: (gi[0] * 5,))
a.sum().backward(retain_graph=True)
g1 = x.grad.clone()
h.remove()
a.sum().backward()
g2 = x.grad
""",
    "order_of_leaves": """
log = []
w, b, x = T(1., 2.), T(3., 4.), T(5., 6.)
for n, t in (("w", w), ("b", b), ("x", x)):
    t.register_hook(lambda g, n=n: log.append(n))
    t.register_post_accumulate_grad_hook(lambda p, n=n: log.append("acc " + n))
y = x * w + b
z = (y * x).sum()
z.backward()
""",
    "what_hooks_after_accumulation_return": """
for got in ("p", "p.grad.mul_(2) and None", "None", "p.detach()"):
    x = T(1., 2.)
    hook = eval("lambda p: (log.append(p is x), " + got + ")[1]")
    x.register_post_accumulate_grad_hook(lambda p: hook(p))
    x.register_post_accumulate_grad_hook(lambda p: log.append(("then", p is x)))
    attempt((x * 2).sum().backward)
    print(x.grad, log)
""",
    "hook_errors": """
x = T(1., 2.)
attempt(T(1., grad=False).register_hook, lambda g: g)
attempt((x * 2).register_post_accumulate_grad_hook, lambda g: g)
attempt(T(1., grad=False).register_post_accumulate_grad_hook, lambda g: g)
attempt(T(1., grad=False).retain_grad)
x.retain_grad()
y = x * 2
y.register_hook(lambda g: g[:1])
attempt(y.sum().backward)
y = x * 2
y.register_hook(lambda g: 3)
attempt(y.sum().backward)
x.register_post_accumulate_grad_hook(lambda p: 3)
attempt((x * 2).sum().backward)
""",
    "hooks_twice_and_handles": """
x = T(2.)
log = []
with x.register_hook(lambda g: log.append(1)):
    (x * x).sum().backward()
(x * x).sum().backward()
h = x.register_hook(lambda g: log.append(2))
h.remove(); h.remove()
(x * x).sum().backward()
y = x * 1
y.register_hook(lambda g: log.append(3))
y.register_hook(lambda g: log.append(4))
y.sum().backward(retain_graph=True)
y.sum().backward()
""",
    "hook_added_while_running": """
x = T(2.)
log = []
def first(g):
    log.append("first")
    x.register_hook(lambda g: log.append("late"))
x.register_hook(first)
(x * x).sum().backward()
(x * x).sum().backward()
""",
    "capture_and_hooks": """
x = T(1., 2.)
y = x * 3
y.register_hook(lambda g: g * 100)
z = (y * y).sum()
g = torch.autograd.grad(z, y, retain_graph=True)
gg = torch.autograd.grad(z, (y, x), retain_graph=True)
x.register_hook(lambda g: g + 7)
g3 = torch.autograd.grad(z, (x,), retain_graph=True)
z.backward(inputs=[y])
gy = y.grad
gx = x.grad is None
""",
    "multi_grad": """
log = []
x, y, u = T(1., 2.), T(3., 4.), T(5., 6.)
h = torch.autograd.graph.register_multi_grad_hook((x, y, u), lambda gs: log.append([None if g is None else g.tolist() for g in gs]))
(x * y).sum().backward()
(x * y * u).sum().backward()
h.remove()
(x * y * u).sum().backward()
a, b = x * 2, y * 2
torch.autograd.graph.register_multi_grad_hook((a, b), lambda g: log.append(g.tolist()), mode="any")
(a * b).sum().backward()
attempt(torch.autograd.graph.register_multi_grad_hook, (a, b), lambda g: None, mode="some")
""",
    "retain_grad_inplace": """
x = T(1., 2.)
a = x * 2
a.retain_grad()
b = a * 1
a.register_hook(lambda g: print("before", g.tolist()))
a.mul_(3)
a.register_hook(lambda g: print("after", g.tolist()))
(a * b).sum().backward()
ga, gx = a.grad, x.grad
""",
    "retain_grad_of_a_view_whose_base_is_written": """
x = T(1., 2., 3., 4.).view(2, 2)
y = x * 1
v, w, u = y[0], y[0], y[1]
for t in (v, w, u):
    t.retain_grad()
w.mul_(2)
y.mul_(3)
(v.sum() * 2 + w.sum()).backward()
gv, gw, gu, kept = v.grad, w.grad, u.grad, [t.retains_grad for t in (v, w, u)]
""",
    "next_functions": """
x, w = T(1., 2.), T(3., 4.)
y = (x * w).exp() + 3
def walk(f, depth=0):
    print("  " * depth, None if f is None else f.name())
    for g, k in ([] if f is None else f.next_functions):
        walk(g, depth + 1)
walk(y.sum().grad_fn)
walk((x ** 2).grad_fn)
walk(torch.stack([x, w]).sum(0).grad_fn)
acc = y.grad_fn.next_functions[0][0].next_functions[0][0].next_functions[0][0]
same = acc.variable is x
same2 = acc is (x * 1).grad_fn.next_functions[0][0]
meta = y.grad_fn.metadata
y.grad_fn.metadata["k"] = 1
m2 = dict(y.grad_fn.metadata)
n = y.sum().grad_fn.__class__.__name__
is_node = isinstance(y.grad_fn, torch.autograd.graph.Node)
""",
    "accumulator_hooks": """
log = []
x = T(1., 2.)
acc = (x * 1).grad_fn.next_functions[0][0]
acc.register_hook(lambda gi, go: log.append(("post", len(gi), [g.tolist() for g in go])))
acc.register_prehook(lambda go: log.append(("pre", [g.tolist() for g in go])))
x.register_hook(lambda g: log.append(("tensor", g.tolist())))
(x * 4).sum().backward()
""",
    "without_a_gradient": """
def shown(g):
    return [shown(x) for x in g] if isinstance(g, (tuple, list)) else None if g is None else g.tolist()
def tell(what):
    return lambda *g: print(what, *map(shown, g))
class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a * 1, b * 1
    @staticmethod
    def backward(ctx, ga, gb):
        return None, gb
def loss(a, b):
    a, b = Half.apply(a, b)
    return (a + b).sum()
def watched(a, name):
    a.register_hook(tell(name + " tensor"))
    a.grad_fn.register_prehook(tell(name + " before"))
    a.grad_fn.register_hook(tell(name + " after"))
    return a
def watched_leaf(a):
    acc = a.expand_as(a).grad_fn.next_functions[0][0]
    a.register_hook(tell("leaf tensor"))
    acc.register_prehook(tell("leaf before"))
    acc.register_hook(tell("leaf after"))
    a.register_post_accumulate_grad_hook(lambda p: print("accumulated", shown(p.grad)))
    return a, acc
a, b = T(1., 2.), T(3., 4.)
loss(watched(watched(a * b, "product").sin(), "sin"), b).backward()
(u, v) = torch.split(a * 1, 1)
loss(watched(u, "piece"), b).backward()
print(torch.autograd.grad(loss(watched(a.sin(), "sin"), b), [a, b], allow_unused=True))
w, acc = watched_leaf(T(1., 2.))
loss(w, b).backward()
(loss(w, b) + w.sum()).backward()
class Layer(torch.nn.Module):
    def forward(self, x):
        return x * 2
m = Layer()
m.register_full_backward_hook(lambda m, *g: tell("layer")(*g))
m.register_full_backward_pre_hook(lambda m, *g: tell("layer before")(*g))
loss(m(a), b).backward()
torch.autograd.graph.register_multi_grad_hook((w, b), tell("several"))
loss(w, b).backward()
for put in (lambda y: y.register_hook(lambda g: T(1., 1.)), lambda y: y.grad_fn.register_prehook(lambda g: (T(1., 1.),))):
    y = a * 1
    put(y)
    attempt(loss(y, b).backward)
c = T(1., 2.)
c.register_hook(lambda g: T(1., 1.))
attempt(loss(c, b).backward)
ga, gb, gw = a.grad, b.grad, w.grad
del acc
""",
    "exceptions_pass": """
x = T(1., 2.)
def bad(g):
    raise ValueError("from the hook")
h = x.register_hook(bad)
attempt((x * x).sum().backward)
h.remove()
(x * x).sum().backward()
g = x.grad
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_hooks(name):
    run(PROGRAMS[name])
