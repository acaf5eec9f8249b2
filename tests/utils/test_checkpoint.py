"""Checkpointing: the same numbers as torch, the same errors, and memory that really is not used."""

import jax
import pytest

import jtorch
from jtorch.core import costs, program
from jtorch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
from tests.autograd.programs import run
from tests.memory import start_anew

HEAD = """
from torch.utils.checkpoint import *
from torch.utils.checkpoint import checkpoint, checkpoint_sequential, set_checkpoint_early_stop, set_checkpoint_debug_enabled, CheckpointError
calls = []
def f(x, w, k=2.):
    calls.append(torch.is_grad_enabled())
    y = (x @ w).tanh()
    z = (y @ w).sin() * k
    return z.exp()
def data():
    g = torch.arange(4., dtype=torch.float64).reshape(2, 2) / 7
    return (g + 0.1).requires_grad_(), (g.t() - 0.2).requires_grad_()
"""

PROGRAMS = {
    "autocast": """
layer = torch.nn.Linear(4, 4)
torch.nn.init.constant_(layer.weight, 0.3)
torch.nn.init.constant_(layer.bias, 0.1)
dtypes = []
def region(a):
    y = layer(a)
    dtypes.append(y.dtype)
    return y.float().sin()
for reentrant in (True, False):
    for forward, backward in [(True, False), (False, True), (True, True)]:
        x = (torch.arange(8.).view(2, 4) / 7).requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=forward):
            y = checkpoint(region, x, use_reentrant=reentrant)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=backward):
            y.sum().backward()
            print(torch.is_autocast_enabled("cpu"))
        print(dtypes, x.grad.tolist() if forward else x.grad.dtype, torch.is_autocast_enabled("cpu"))
        dtypes.clear()
""",
    "both_forms": """
for reentrant in (True, False):
    x, w = data()
    y = checkpoint(f, x * 1, w, use_reentrant=reentrant)
    y.sum().backward()
    print(len(calls), calls)
    calls.clear()
    gx, gw = x.grad, w.grad
    ref = data()
    f(ref[0] * 1, ref[1]).sum().backward()
    print(torch.allclose(gx, ref[0].grad), torch.allclose(gw, ref[1].grad))
    calls.clear()
""",
    "kwargs_and_others": """
x, w = data()
y = checkpoint(f, x, w=w, k=3., use_reentrant=False)
y.sum().backward()
a = (x.grad, w.grad)
x, w = data()
y = checkpoint(f, x, w, 3., use_reentrant=True)
y.sum().backward()
b = (x.grad, w.grad)
attempt(checkpoint, f, x, w=w, use_reentrant=True)
attempt(checkpoint, f, x, w, use_reentrant=True, context_fn=lambda: 1)
attempt(checkpoint, f, x, w, use_reentrant=False, determinism_check="foo")
def g(d, x, none, text):
    return d["k"] * x if none is None and text == "t" else None
y = checkpoint(g, {"k": 2}, x, None, "t", use_reentrant=False)
y.sum().backward()
""",
    "debug": """
import re
turns = []
def g(x):
    turns.append(1)
    y = x.sin()
    y = torch.cat([y, y]) if len(turns) % 2 else y
    return torch.add(y, 3, alpha=2).exp()[0:2].view(2, 1).add_(1)
def both_logs(early_stop=True, **kw):
    x = torch.ones(3, requires_grad=True)
    try:
        checkpoint(g, x, use_reentrant=False, early_stop=early_stop, **kw).sum().backward()
    except CheckpointError as e:
        text = str(e)
        log = re.split("Operations executed .*:", text)[1:]
        ops = [re.findall(r"aten[.](\\w+[.]\\w+)[(]([^\\n]*)", part) for part in log]
        # detach is PyTorch's own, in the second log alone, and shifts the numbers of the tensors there
        print([(op, re.sub("['\\"]", "", args) if k == 0 else None) for k, part in enumerate(ops) for op, args in part if "detach" not in op])
        print(text.split(chr(10))[:2], type(e.__cause__).__name__, len(re.findall("of 7 in original", text)), "test_checkpoint" in text or "g\\n" in text)
    turns.clear()
both_logs(debug=True)
both_logs()
with set_checkpoint_debug_enabled(True):
    both_logs()
with set_checkpoint_debug_enabled(False):
    both_logs(debug=True)
checkpoint(torch.sin, torch.ones(2, requires_grad=True), use_reentrant=False, debug=True).sum().backward()
attempt(checkpoint, g, torch.ones(3), use_reentrant=False, debug=True, context_fn=lambda: (1, 2))
""",
    "nested": """
x, w = data()
def outer(x):
    y = checkpoint(f, x, w, use_reentrant=False)
    return checkpoint(f, y * 0.1, w, use_reentrant=False).cos()
y = checkpoint(outer, x, use_reentrant=False)
y.sum().backward()
gx, gw = x.grad, w.grad
x, w = data()
def outer2(x):
    y = checkpoint(f, x, w, use_reentrant=True)
    return checkpoint(f, y * 0.1, w, use_reentrant=True).cos()
y = checkpoint(outer2, x, use_reentrant=True)
y.sum().backward()
gx2, gw2 = x.grad, w.grad
calls = []
""",
    "grad_and_inputs": """
x, w = data()
y = checkpoint(f, x, w, use_reentrant=False)
g = torch.autograd.grad(y.sum(), (x, w), retain_graph=True)
y.sum().backward(inputs=[w], retain_graph=True)
gw, none = w.grad, x.grad is None
gg, = torch.autograd.grad(y.sum(), x, create_graph=True)
y = checkpoint(f, x, w, use_reentrant=True)
attempt(torch.autograd.grad, y.sum(), x)
attempt(y.sum().backward, inputs=[x])
""",
    "double": """
x, w = data()
y = checkpoint(f, x, w, use_reentrant=False)
g, = torch.autograd.grad(y.sum(), x, create_graph=True)
h, = torch.autograd.grad(g.sum(), x, retain_graph=True)
attempt(lambda: torch.autograd.grad(g.sum(), x, retain_graph=True) and None)
""",
    "freed": """
x, w = data()
y = checkpoint(f, x, w, use_reentrant=False)
y.sum().backward()
attempt(y.sum().backward)
y = checkpoint(f, x, w, use_reentrant=False)
y.sum().backward(retain_graph=True)
y.sum().backward()
g = x.grad
y = checkpoint(f, x, w, use_reentrant=True)
y.sum().backward()
attempt(y.sum().backward)
""",
    "errors": """
x, w = data()
n = [0]
def fewer(x):
    n[0] += 1
    y = x.sin()
    return y if n[0] > 1 else y.exp().cos()
y = checkpoint(fewer, x, use_reentrant=False)
attempt(y.sum().backward)
def other(x):
    n[0] += 1
    y = x.sin() if n[0] == 1 else x.repeat(2, 1).sin()
    return y.sin()
n[0] = 0
y = checkpoint(other, x, use_reentrant=False)
attempt(y.sum().backward)
y = checkpoint(lambda x: x.detach(), x, use_reentrant=True)
attempt(y.sum().backward)
def fails(x):
    n[0] += 1
    if n[0] > 1:
        raise ValueError("second time")
    return x.sin().cos()
n[0] = 0
y = checkpoint(fails, x, use_reentrant=False)
attempt(y.sum().backward)
""",
    "warnings": """
import warnings
def warned(fn, *a, **k):
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")
        fn(*a, **k)
    return [str(i.message)[:90] for i in w]
x, w = data()
a = warned(checkpoint, f, x, w)
b = warned(checkpoint, f, x.detach(), w.detach(), use_reentrant=True)
c = warned(checkpoint, f, x.detach(), w.detach(), use_reentrant=False)
""",
    "early_stop": """
log = []
def g(x):
    y = x.sin()
    log.append(1)
    z = y.exp()
    log.append(2)
    q = z + 1
    log.append(3)
    return q
for stop in (True, False):
    x, w = data()
    with set_checkpoint_early_stop(stop):
        y = checkpoint(g, x, use_reentrant=False)
        y.sum().backward()
    log.append("end")
x, w = data()
y = checkpoint(g, x, use_reentrant=False, early_stop=False)
y.sum().backward()
""",
    "statistics": """
got = []
for block in (torch.nn.BatchNorm1d(3), torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.ReLU()), torch.nn.InstanceNorm1d(3, track_running_stats=True)):
    for reentrant in (True, False):
        x = torch.arange(24.).reshape(2, 3, 4).requires_grad_()
        checkpoint(block, x, use_reentrant=reentrant).pow(2).sum().backward()
        got.append((dict(block.named_buffers()), x.grad))
del block
""",
    "sequential": """
torch.manual_seed(0)
m = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
for k in (1, 2, 3, 5):
    for reentrant in (True, False):
        m.zero_grad()
        x = torch.arange(6.).reshape(2, 3).requires_grad_()
        checkpoint_sequential(m, k, x, use_reentrant=reentrant).sum().backward()
        print(k, reentrant, [round(v, 4) for v in x.grad.flatten().tolist()], [round(p.grad.sum().item(), 4) for p in m.parameters()])
attempt(checkpoint_sequential, m, 2, x, use_reentrant=False, foo=1)
del m
""",
    "selective": """
import functools
print([p.name for p in CheckpointPolicy], CheckpointPolicy.MUST_SAVE.value)
def policy(answer, ctx, op, *args, **kwargs):
    return answer
for answer in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE, CheckpointPolicy.MUST_RECOMPUTE,
               CheckpointPolicy.PREFER_RECOMPUTE, True, False):
    x, w = data()
    made = functools.partial(create_selective_checkpoint_contexts, functools.partial(policy, answer))
    y = checkpoint(f, x, w=w, k=3., use_reentrant=False, context_fn=made)
    y.sum().backward()
    ref = data()
    f(*ref, 3.).sum().backward()
    print(torch.allclose(x.grad, ref[0].grad), torch.allclose(w.grad, ref[1].grad))
for wrong in (3, [3], [torch.ops.aten.sin]):
    attempt(create_selective_checkpoint_contexts, wrong)
seen = set()
def asked(ctx, op, *args, **kwargs):
    seen.add((str(op), op is torch.ops.aten.sin.default, op == torch.ops.aten.exp.default, ctx.is_recompute))
    return CheckpointPolicy.MUST_SAVE if op is torch.ops.aten.sin.default else CheckpointPolicy.PREFER_RECOMPUTE
checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(asked))
print(sorted(seen))
del asked, wrong
again = []
def some(ctx, op, *args, **kwargs):
    again.append(ctx.is_recompute)
    return CheckpointPolicy.MUST_SAVE if "mm" in str(op) or "matmul" in str(op) else CheckpointPolicy.PREFER_RECOMPUTE
x, w = data()
def outer(x):
    return checkpoint(f, x, w, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(some)).sin()
y = checkpoint(outer, x, use_reentrant=False)
y.sum().backward()
gx, gw = x.grad, w.grad
print(False in again)
again = []
calls = []
""",
    "selective_twice": """
x, w = data()
made = lambda: create_selective_checkpoint_contexts(lambda ctx, op, *a, **k: CheckpointPolicy.PREFER_RECOMPUTE)
y = checkpoint(f, x, w, use_reentrant=False, context_fn=made)
g, = torch.autograd.grad(y.sum(), x, retain_graph=True)
h, = torch.autograd.grad(y.sum(), x)
calls = []
""",
    "hooks_and_modules": """
torch.manual_seed(0)
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    def forward(self, x, scale=1.):
        return x + self.b(torch.relu(self.a(x))) * scale
b = Block()
log = []
x = torch.ones(2, 3, requires_grad=True)
y = checkpoint(b, x, scale=2., use_reentrant=False)
y.register_hook(lambda g: log.append("y"))
b.a.weight.register_hook(lambda g: log.append("w"))
y.sum().backward()
gs = [p.grad for p in b.parameters()] + [x.grad]
del b
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_checkpoint(name):
    run(HEAD + PROGRAMS[name])


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("mode", ["auto", "eager"])
def test_dropout_is_repeated(reentrant, mode):
    """The mask of the second time is that of the first, also after other numbers have been drawn."""
    with jtorch.execution_mode(mode):
        for seed in range(3):
            x = jtorch.ones(1000, requires_grad=True)
            jtorch.manual_seed(seed)
            y = checkpoint(lambda x: jtorch.nn.functional.dropout(x * 1, 0.5, True) * x, x, use_reentrant=reentrant)
            after = jtorch.rand(1).item()
            jtorch.nn.functional.dropout(x, 0.5, True).sum().item()
            y.sum().backward()
            assert (x.grad * 0.5 == y.detach()).all().item()
            jtorch.manual_seed(seed)
            jtorch.nn.functional.dropout(x.detach(), 0.5, True)
            assert jtorch.rand(1).item() == after


def test_random_state_can_be_left_alone():
    x = jtorch.ones(1000, requires_grad=True)
    y = checkpoint(
        lambda x: jtorch.nn.functional.dropout(x.sin(), 0.5, True).sin(),
        x,
        use_reentrant=False,
        preserve_rng_state=False,
    )
    y.sum().backward()
    assert not ((x.grad != 0) == (y.detach() != 0)).all().item()


def _model(layers, width):
    jtorch.manual_seed(0)

    class Block(jtorch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = jtorch.nn.LayerNorm(width)
            self.up, self.down = jtorch.nn.Linear(width, 4 * width), jtorch.nn.Linear(4 * width, width)

        def forward(self, x):
            return x + self.down(jtorch.nn.functional.gelu(self.up(self.norm(x))))

    return jtorch.nn.ModuleList([Block() for _ in range(layers)])


def _peak_of_trace(blocks, batch, width, how):
    """Peak bytes of one step, forward and backward, as one jax program."""
    parameters = list(blocks.parameters())

    def step(values, x):
        x = jtorch.from_jax(x).requires_grad_()
        held = [p._storage.value for p in parameters]
        for p, v in zip(parameters, values):
            p._storage.value = v
        try:
            for block in blocks:
                x = how(block, x)
            (x * x).mean().backward()
            return [p.grad.__jax_array__() for p in parameters]
        finally:
            for p, v in zip(parameters, held):
                p._storage.value = v
                p.grad = None

    values = [p.detach().__jax_array__() for p in parameters]
    compiled = jax.jit(step).lower(values, jax.numpy.ones((batch, width), jax.numpy.float32)).compile()
    memory = compiled.memory_analysis()
    return memory.temp_size_in_bytes, compiled(values, jax.numpy.ones((batch, width), jax.numpy.float32))


@pytest.mark.parametrize("reentrant", [False, True])
def test_memory_drops(reentrant):
    """In a model of 6 layers, by at least 40% of what is needed beside parameters and gradients."""
    width, batch = 32, 256
    blocks = _model(6, width)

    def plain(block, x):
        return block(x)

    def saving(block, x):
        return checkpoint(block, x, use_reentrant=reentrant)

    full, expected = _peak_of_trace(blocks, batch, width, plain)
    less, got = _peak_of_trace(blocks, batch, width, saving)
    print(less, full)
    assert less < 0.6 * full, (less, full)
    for a, b in zip(expected, got):
        assert jax.numpy.allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.fixture
def last_program(monkeypatch):
    """A function: memory_analysis of the program that was compiled last."""
    start_anew()  # a program of another test would not be compiled
    seen = []

    def noting(self, *_):
        made = []

        def call(*args):
            if not made:
                made.append(self.traced().lower(*args).compile())
                seen.append(made[0].memory_analysis())
            return made[0](*args)

        self.settled, self.call = True, call

    monkeypatch.setattr(program.Program, "compile", noting)
    monkeypatch.setattr(costs, "AT_MOST_OFTEN", 2)
    return lambda: seen[-1]


def _keep_products(ctx, op, *args, **kwargs):
    save = "linear" in op.__name__
    return CheckpointPolicy.MUST_SAVE if save else CheckpointPolicy.PREFER_RECOMPUTE


def _selective():
    return create_selective_checkpoint_contexts(_keep_products)


HOW = {
    "kept": lambda block, x: block(x),
    "reentrant": lambda block, x: checkpoint(block, x, use_reentrant=True),
    "hooks": lambda block, x: checkpoint(block, x, use_reentrant=False),
    "selective": lambda block, x: checkpoint(block, x, use_reentrant=False, context_fn=_selective),
}


@pytest.mark.parametrize("way", ["auto", "compile"])
def test_training_programs_need_less(way, last_program):
    """The one program of a whole step, recorded or compiled, in a model of 4 layers: its peak drops by 40% and more."""
    need, losses = {}, {}
    for name in HOW if way == "auto" else ("kept", "hooks"):
        blocks = _model(4, 32)
        optimizer = jtorch.optim.SGD(blocks.parameters(), 1e-3)
        start = jtorch.ones(256, 32).requires_grad_(name == "reentrant")

        def step(x, blocks=blocks, optimizer=optimizer, how=HOW[name]):
            optimizer.zero_grad()
            for block in blocks:
                x = how(block, x)
            loss = (x * x).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        if way == "compile":
            step = jtorch.compile(step)
        losses[name] = [step(start).item() for _ in range(5)]
        memory = last_program()
        need[name] = memory.temp_size_in_bytes + memory.argument_size_in_bytes + memory.output_size_in_bytes
    print(need)
    assert need["hooks"] < 0.6 * need["kept"]
    if way == "auto":
        assert need["reentrant"] < 0.6 * need["kept"]
        assert need["hooks"] < need["selective"] < need["kept"]
    for found in losses.values():
        assert found == pytest.approx(losses["kept"], rel=1e-5)
