"""States of the tape that programs look at: saved tensors, dirty inputs, edges, the running pass, gradcheck's verdicts."""

import pytest

from .programs import run

PROGRAMS = {
    "what_save_for_backward_got": """
def made(back, clear=False):
    class F(torch.autograd.Function):
        clear_saved_tensors_on_access = clear
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * 2
        backward = staticmethod(back)
    return F.apply
x = T(1., 2.)
y = made(lambda ctx, g: g)(x)
raw = y.grad_fn._raw_saved_tensors
print(len(raw), y.grad_fn.saved_tensors)
attempt(raw[1].register_hooks, lambda t: t, lambda t: t)
raw[0].register_hooks(lambda t: t, lambda t: t)
attempt(raw[0].register_hooks, lambda t: t, lambda t: t)
y.sum().backward()
attempt(lambda: y.grad_fn._raw_saved_tensors)
attempt(lambda: y.grad_fn.saved_tensors)
def twice(ctx, g):
    print(ctx.saved_tensors[1], ctx.saved_tensors[1])
    return g
y = made(twice)(x)
y.sum().backward()
y = made(twice, True)(x)
attempt(y.sum().backward)
y = made(lambda ctx, g: g * ctx.saved_tensors[0], True)(x)
y.sum().backward(retain_graph=True)
attempt(y.sum().backward)
import warnings
with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter("always")
    made(lambda ctx, g: g * ctx.saved_variables[0])(x).sum().backward()
print([(i.category.__name__, str(i.message)) for i in w], issubclass(torch.autograd.function.BackwardCFunction, torch.autograd.graph.Node))
other = x.detach().clone()
def write(ctx, g):
    t, none = ctx.saved_tensors
    print(t.is_leaf, t.grad_fn, t.requires_grad, t.add_(1))
    return g
with torch.autograd.graph.saved_tensors_hooks(lambda t: other, lambda t: t):
    y = made(write)(x)
y.sum().backward()
del y, w, raw, other
""",
    "what_mark_dirty_may_be_given": """
import warnings
def made(fw):
    class F(torch.autograd.Function):
        forward = staticmethod(fw)
        @staticmethod
        def backward(ctx, *g):
            return (g[0],) * 2
    return F.apply
def both(ctx, a, b):
    a.add_(b)
    ctx.mark_dirty(a)
    return a, a + b
def other(ctx, a, b):
    c = 3 * a
    ctx.mark_dirty(c)
    return c
def view(ctx, a, b):
    c = a.clone().view_as(a)
    ctx.mark_dirty(c)
    return c
x, y = T(1., 2.), T(3., 4.)
made(both)(x.clone(), y)
attempt(made(both), x.clone().view_as(x), y)
attempt(made(view), x.clone(), y)
with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter("always")
    made(other)(x.clone(), y)
print([str(i.message)[:130] for i in w])
del w
""",
    "gradcheck_and_what_it_finds": """
from torch.autograd import gradcheck
def off(x):
    y = x.clone()
    y.register_hook(lambda g: g + 1e-2)
    return y
class Sparse(torch.autograd.Function):
    forward = staticmethod(lambda ctx, x: x * 1)
    backward = staticmethod(lambda ctx, g: g.to_sparse())
def more(x):
    return torch.cat([x, x]) if torch.all(x >= 1) else x
def other(x):
    return x.float() if torch.all(x >= 1) else x
def undefined(x):
    def hook(g):
        if g is None:
            raise RuntimeError("x is undefined")
    y = x.clone()
    y.register_hook(hook)
    return y
x = torch.ones(1, dtype=torch.float64, requires_grad=True)
for f, k in ((off, {"atol": 0.1}), (off, {}), (Sparse.apply, {}), (more, {}), (other, {}), (undefined, {})):
    attempt(gradcheck, f, (x,), **k)
    attempt(lambda: print(gradcheck(f, (x,), raise_exception=False, **k)))
del f
""",
    "threads_of_the_pass": """
with torch.autograd.set_multithreading_enabled(False):
    print(torch.autograd.is_multithreading_enabled())
print(torch.autograd.is_multithreading_enabled())
""",
    "edges_steps_and_unused": """
GE = torch.autograd.graph.GradientEdge
x, y = T(1., 2.).clone(), T(3., 4.).clone()
ex, ey = GE(x.grad_fn, x.output_nr), GE(y.grad_fn, y.output_nr)
o = x.clone().sum()
for inputs in ((ex, y), (x, y), (x, ey)):
    attempt(lambda: print(torch.autograd.grad(o, inputs, allow_unused=True, materialize_grads=True, retain_graph=True)))
    attempt(lambda: print([g.requires_grad for g in torch.autograd.grad(o, inputs, materialize_grads=True, create_graph=True)]))
f = (T(1., 2.) ** 2).grad_fn
attempt(f, 3)
print(f(None))
with torch.autograd.graph.allow_mutation_on_saved_tensors():
    z = (T(1.) ** 2).sum()
with torch.autograd.graph.allow_mutation_on_saved_tensors():
    try:
        z.backward()
    except AssertionError as e:
        print("refused")
s = torch.sparse_coo_tensor(torch.tensor([[1, 1]]), torch.tensor([1., 1.], dtype=torch.float64), (2,))
for create in (False, True):
    p = T(1.5, 1.5)
    p.grad = s
    p.backward(torch.ones(2, dtype=torch.float64), create_graph=create)
    print(p.grad.layout, p.grad.detach())
attempt(setattr, p, "data", s)
del GE, ex, ey, f, s, p
""",
    "an_anomaly_where_warnings_are_errors": """
import contextlib, io, warnings
with warnings.catch_warnings(), torch.autograd.set_detect_anomaly(True), contextlib.redirect_stderr(io.StringIO()) as said:
    warnings.simplefilter("error")
    a = T(1., 2.)
    d = a + 1
    e = d ** 2
    d += 1
    attempt(torch.autograd.grad, e.sum(), a)
print("Error detected in PowBackward0" in said.getvalue())
del said
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_state(name):
    run(PROGRAMS[name])
