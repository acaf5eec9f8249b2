"""What torch._C answers about the tape and the running pass, and the nodes that it names."""

import pytest

import jtorch
from jtorch.swap.internal import c
from tests import oracle

SIDES = ((oracle.torch, oracle.torch._C), (jtorch, c))


def said(f, *args):
    try:
        return f(*args)
    except (RuntimeError, TypeError) as error:
        return type(error).__name__, str(error)


def passing(t, back):
    """A function that changes nothing and calls back(gradient) in its backward."""

    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            back(g)
            return g

    return F.apply


def whole(t, C):
    asked = []
    x = t.ones(2, requires_grad=True)
    y = passing(
        t, lambda g: asked.append((C._autograd._get_current_graph_task_keep_graph(), C._current_graph_task_id() != -1))
    )(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return asked, C._current_graph_task_id()


def hooks(t, C):
    enabled = C._autograd._saved_tensors_hooks_is_enabled
    with t.autograd.graph.disable_saved_tensors_hooks("no"):
        inside = enabled()
    C._set_fwd_grad_enabled(False)
    without = C._is_fwd_grad_enabled()
    C._set_fwd_grad_enabled(True)
    return inside, enabled(), without, C._is_fwd_grad_enabled()


def coming(t, C):
    a, b = (t.ones(1, requires_grad=True) for _ in range(2))
    p = a * b
    q, r = p.cos(), p.sin()
    nodes = [x.clone().grad_fn.next_functions[0][0] for x in (a, b)] + [x.grad_fn for x in (p, q, r)]
    found = []
    r.register_hook(lambda g: found.append([said(C._will_engine_execute_node, n) for n in nodes]))
    out = r.sum()
    t.autograd.backward(out, inputs=(a, p), retain_graph=True)
    t.autograd.backward(out, retain_graph=True)
    t.autograd.grad(out, a, retain_graph=True)
    return found, said(C._will_engine_execute_node, p.grad_fn)[0], said(C._will_engine_execute_node, p)[0]


def nodes(t, C):
    x = t.ones(1, requires_grad=True)
    acc = x.clone().grad_fn.next_functions[0][0]
    came = []
    C._functions.UndefinedGrad()(passing(t, came.append)(x)).backward()
    late = C._functions.DelayedError("late", 1)(x * 2)
    Node = t.autograd.graph.Node
    return (
        isinstance(acc, C._functions.AccumulateGrad),
        issubclass(C._functions.DelayedError, Node),
        came,
        said(late.backward),
    )


@pytest.mark.parametrize("facts", [whole, hooks, coming, nodes])
def test_names(facts):
    expected, got = (facts(t, C) for t, C in SIDES)
    assert expected == got
