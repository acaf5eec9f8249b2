"""Checkpoints where backward goes more than once: within a region, in groups, through what a policy kept."""

import pytest

from tests.autograd.programs import run
from tests.utils.test_checkpoint import HEAD

PROGRAMS = {
    "selective_once_more": """
import functools
asked = []
def policy(ctx, op, *args, **kwargs):
    asked.append((ctx.is_recompute, str(op)))
    return CheckpointPolicy.MUST_SAVE if op is torch.ops.aten.sin.default else CheckpointPolicy.PREFER_RECOMPUTE
def made(**k):
    return functools.partial(create_selective_checkpoint_contexts, policy, **k)
x, w = data()
checkpoint(lambda x: x.sin().cos().exp(), x, use_reentrant=False, context_fn=made()).sum().backward()
print(asked)
for k in ({}, {"allow_cache_entry_mutation": True}):
    y = checkpoint(lambda x: x.sin().mul_(2).cos().exp(), x, use_reentrant=False, context_fn=made(**k))
    attempt(y.sum().backward)
y = checkpoint(lambda x: x.sin().cos().exp(), x, use_reentrant=False, context_fn=made())
y.sum().backward(retain_graph=True)
attempt(y.sum().backward, retain_graph=True)
n = []
def more(x):
    n.append(1)
    return x.sin().cos().exp() if len(n) == 1 else x.tan().sin().cos().exp()
y = checkpoint(more, x, use_reentrant=False, context_fn=made())
attempt(y.sum().backward)
x.grad = None
asked = []
del y, made, policy
""",
    "backward_within": """
def c(f):
    return lambda x: checkpoint(f, x, use_reentrant=False)
def grad(f):
    def inner(x):
        with torch.enable_grad():
            return torch.autograd.grad(f(x).sum(), (x,), create_graph=True)[0]
    return inner
def g(x):
    return x.sin().exp().sin()
def h(x):
    return c(lambda x: x.cos().sin().exp())(c(g)(x))
got = []
for stop in (True, False):
    with set_checkpoint_early_stop(stop):
        x = torch.linspace(0., 1., 3, dtype=torch.float64).requires_grad_()
        for f in (grad(c(g)), grad(c(c(g))), grad(c(grad(g))), c(grad(grad(c(g)))), grad(c(grad(c(g)))), grad(c(grad(grad(c(g))))),
                  grad(grad(c(h))), grad(c(grad(c(h))))):
            got.append(f(x).detach())
del f
""",
    "early_stop_by_context": """
counts = []
for contexts, given in (((), {}), ((), {"early_stop": False}), ((False,), {}), ((True,), {}), ((False, True), {"early_stop": False}),
                        ((False,), {"early_stop": True}), ((True,), {"early_stop": False})):
    n = []
    def g(x):
        y = x.sin().cos()
        n.append(1)
        return y.clone()
    x, w = data()
    outer = set_checkpoint_early_stop(contexts[0]) if contexts else torch.enable_grad()
    with outer, set_checkpoint_early_stop(contexts[1]) if contexts[1:] else torch.enable_grad():
        y = checkpoint(g, x, use_reentrant=False, **given)
    y.sum().backward()
    counts.append(len(n))
del outer
""",
    "exec_group": """
from torch.utils.checkpoint import GraphExecGroup
n = []
def g(x):
    n.append(1)
    y = x.sin().cos()
    return y, y.sin().cos()
x, w = data()
for group in (GraphExecGroup(), torch.enable_grad()):
    y, z = checkpoint(g, x, use_reentrant=False)
    with group:
        gy, = torch.autograd.grad(z, y, torch.ones_like(z))
        gx, = torch.autograd.grad(y, x, gy)
    print(len(n), gx.shape)
y = checkpoint(lambda x: x.sin().cos(), x, use_reentrant=False)
with GraphExecGroup():
    y.sum().backward(retain_graph=True)
    attempt(y.sum().backward)
del group
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_checkpoint(name):
    run(HEAD + PROGRAMS[name])
