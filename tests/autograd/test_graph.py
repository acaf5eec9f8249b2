"""torch.autograd.graph and anomaly detection."""

import warnings

import pytest

from tests.oracle import both

from .programs import run

PROGRAMS = {
    "draws_and_what_has_no_derivative": """
x, m = (torch.full((4,), 0.5) * 1).requires_grad_(), torch.eye(3).requires_grad_()
z = torch.special.zeta
for f in (
    lambda: torch.poisson(x), lambda: torch.bernoulli(x), lambda: x.bernoulli(0.5), lambda: torch.normal(x, x), lambda: torch.normal(x, 1.),
    lambda: torch.normal(0., x), lambda: torch.binomial(x, x), lambda: torch.multinomial(x, 2), lambda: torch.unique(x),
    lambda: torch.unique(x, return_inverse=True)[1], lambda: x.unique_consecutive(), lambda: torch.bincount(torch.arange(4), x),
    lambda: torch.geqrf(m)[1], lambda: torch.linalg.ldl_solve(*torch.linalg.ldl_factor(m.detach()), m), lambda: z(x + 1, x),
    lambda: z(x + 1, 2.), lambda: z(2., x), lambda: z(x.detach() + 1, x), lambda: torch.floor_divide(x, 2), lambda: torch.poisson(x.detach()),
):
    x.grad = m.grad = None
    r = f()
    print(name(r), r.requires_grad, r.is_leaf, r.shape)
    attempt(lambda: r.sum().backward())
    print(None if x.grad is None else [round(v, 4) for v in x.grad.tolist()], m.grad is None)
del r, z
""",
    "one_node_of_several_results": """
x = torch.arange(6., dtype=torch.float64, requires_grad=True)
y = x * 2
for parts in (y.unbind(), y.split(4), y.chunk(3), y.view(2, 3).unbind(1), y.tensor_split(4), y.split([1, 2, 3])):
    print(name(parts[0]), [p.output_nr for p in parts], all(p.grad_fn is parts[0].grad_fn for p in parts))
    edges = [torch.autograd.graph.get_gradient_edge(p) for p in parts]
    print([e.output_nr for e in edges], edges[0].node is edges[1].node, edges[0] == edges[1])
    parts[0].register_hook(lambda g: print("hook", None if g is None else g.tolist()))
    parts[0].grad_fn.register_hook(lambda a, b: print("node", [None if g is None else g.tolist() for g in (*a, *b)]))
    (parts[1] * 3).sum().backward(retain_graph=True)
    sum((p * k).sum() for k, p in enumerate(parts)).backward(retain_graph=True)
    g, = torch.autograd.grad((parts[0] ** 2).sum() + parts[1].sum(), x, create_graph=True)
    g.sum().backward(retain_graph=True)
a, b = torch.var_mean(x)
a.register_hook(lambda g: print(g))
b.backward()
a, b = torch.var_mean(x)
a.register_hook(lambda g: torch.ones(()))
attempt(b.backward)
g = x.grad
""",
    "saved_tensors_hooks": """
log = []
x = T(1., 2.)
def pack(t):
    log.append(("pack", t.tolist()))
    return t * 1
def unpack(t):
    log.append(("unpack", t.tolist()))
    return t
with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
    y = x.exp()
    z = y * x
z.sum().backward()
g = x.grad
log = sorted((a, [round(e, 5) for e in b]) for a, b in log)
""",
    "changed_by_unpack": """
x = T(1., 2.)
with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 10):
    y = x.exp()
y.sum().backward()
g = x.grad
with torch.autograd.graph.saved_tensors_hooks(lambda t: "text", lambda t: 3):
    y = x.exp()
attempt(y.sum().backward)
""",
    "numpy_round_trip": """
x = T(1., 2.)
with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy().copy(), lambda a: torch.tensor(a)):
    y = (x * x).sin().sum()
g, = torch.autograd.grad(y, x, create_graph=True)
h, = torch.autograd.grad(g.sum(), x)
""",
    "nested_hooks": """
log = []
x = T(2.)
def hooks(n):
    return torch.autograd.graph.saved_tensors_hooks(lambda t: (log.append(n), t)[1], lambda t: t)
with hooks("outer"):
    a = x.exp()
    with hooks("inner"):
        b = a.sin()
    c = b.cos()
c.backward()
""",
    "disable": """
with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
    attempt(lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__())
with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
    pass
""",
    "save_on_cpu": """
x = T(1., 2.)
with torch.autograd.graph.save_on_cpu():
    y = (x.exp() * x).sum()
y.backward()
g = x.grad
""",
    "function_with_hooks": """
log = []
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(x, y)
        return y
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y
x = T(1., 2.)
with torch.autograd.graph.saved_tensors_hooks(lambda t: (log.append(t.tolist()), t)[1], lambda t: t * 2):
    z = F.apply(x)
z.sum().backward()
g = x.grad
""",
    "mutation_allowed": """
x = T(1., 2.)
with torch.autograd.graph.allow_mutation_on_saved_tensors():
    y = x.exp()
    z = y * y
    y.mul_(2)
    z.sum().backward()
    z = (x * x).sum()
    attempt(torch.autograd.graph.allow_mutation_on_saved_tensors().__enter__)
g = x.grad
try:
    z.backward()
except AssertionError as e:
    print(str(e)[:70])
y = x * 3
attempt(torch.autograd.grad, y, x, is_grads_batched=True)
attempt(torch.autograd.grad, y.sum(), x, is_grads_batched=True)
""",
    "versions": """
x = T(1., 2., grad=False)
torch.autograd.graph.increment_version(x)
torch.autograd.graph.increment_version([x, x])
v = x._version
""",
    "nan": """
import warnings
x = T(-1., 4.)
with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter("always")
    with torch.autograd.detect_anomaly():
        y = (x.sqrt() * 0).sum()
        attempt(y.backward)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        y = (x.sqrt() * 0).sum()
        attempt(y.backward)
first = str(w[0].message)
second = str(w[1].message).split("\\n")[0]
line = any("y = (x.sqrt() * 0).sum()" in str(m.message) or "<module>" in str(m.message) for m in w)
""",
    "anomaly_other_errors": """
import warnings
class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1
    @staticmethod
    def backward(ctx, g):
        raise ValueError("here")
x = T(1., 2.)
with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter("always")
    with torch.autograd.set_detect_anomaly(True):
        y = Bad.apply(x)
        attempt(y.sum().backward)
        z = x.exp()
        z.add_(1)
        attempt(z.sum().backward)
texts = [str(m.message).split("\\n")[0] for m in w]
on = torch.is_anomaly_enabled()
with torch.autograd.set_detect_anomaly(True):
    on2 = (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
""",
    "queue_callback": """
log = []
x = T(1., 2.)
def hook(g):
    torch.autograd.Variable._execution_engine.queue_callback(lambda: log.append("done"))
    log.append("hook")
x.register_hook(hook)
x.register_post_accumulate_grad_hook(lambda p: log.append("acc"))
(x * 2).sum().backward()
""",
    "callbacks of callbacks, of nested passes and of one that failed": """
log = []
engine = torch.autograd.Variable._execution_engine
x = T(1., 2.)
def first():
    log.append(("first", torch.is_grad_enabled()))
    engine.queue_callback(lambda: log.append("from a callback"))
y = x * 2
y.register_hook(lambda g: engine.queue_callback(first))
y.sum().backward()
y.sum().item()
class Nested(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        engine.queue_callback(lambda: log.append("outer"))
        with torch.enable_grad():
            z = torch.ones(2, requires_grad=True) * 3
            z.register_hook(lambda g: engine.queue_callback(lambda: log.append("inner")))
            z.sum().backward()
        log.append("after the inner pass")
        return g * 2
Nested.apply(x).sum().backward()
def fails(g):
    engine.queue_callback(lambda: log.append("of a pass that failed"))
    raise ValueError("no")
y = x * 2
y.register_hook(fails)
try:
    y.sum().backward()
except ValueError:
    pass
(x * 2).sum().backward()
""",
    "is_checkpoint_valid": """
log = [torch.autograd._is_checkpoint_valid()]
x = T(1., 2.)
def made():
    y = x * 2
    y.register_hook(lambda g: log.append(torch.autograd._is_checkpoint_valid()))
    return y.sum()
made().backward()
made().backward(inputs=[x])
g = torch.autograd.grad(made(), x)
""",
    "variable": """
from torch.autograd import Variable
v = Variable(torch.ones(2), requires_grad=True)
r = (v.requires_grad, isinstance(v, Variable), isinstance(v, torch.Tensor))
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_graph(name):
    run(PROGRAMS[name])


def test_an_anomaly_is_told_with_the_line_of_the_call():
    """And with nothing of what lies below it."""

    def program(t):
        x = t.tensor([-1.0, 4.0], requires_grad=True)
        with warnings.catch_warnings(record=True) as w, t.autograd.detect_anomaly():
            warnings.simplefilter("always")
            try:
                (x.sqrt() * 0).sum().backward()
            except RuntimeError:
                pass
        return [
            str(m.message).rpartition("  File ")[2].strip().splitlines()[:2]
            for m in w
            if "forward call" in str(m.message)
        ]

    both(program)


def test_a_tensor_with_a_node_of_its_own():
    def program(t):
        class Own(t.Tensor):
            node = "mine"

        x = t.ones(2, requires_grad=True)
        y = (x * 3).as_subclass(Own)
        return t.autograd.grad([y], [x, y], [t.ones(2)])

    both(program)
