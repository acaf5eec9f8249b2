"""core/parts.py: a network of layers alike is compiled layer by layer at first, and computes what it computes as a whole."""

import jax
import pytest

import jtorch
from jtorch.core import costs, parts, program
from jtorch.core.beside import compiled_beside
from tests.core.test_device import on_accelerator
from tests.memory import start_anew
from tests.oracle import torch

LAYERS = 6


@pytest.fixture
def cut(monkeypatch):
    """Small networks are run in parts; (how many, how many of them differ) for each program that has been, and all such programs."""
    monkeypatch.setattr(parts, "DEAR", 0.0)
    monkeypatch.setattr(parts, "SHARE", 1.0)
    monkeypatch.setattr(parts, "LENGTH", 24)
    monkeypatch.setattr(parts, "LEAST", 8)
    found, make = [], parts.Parts.make

    def made(self, prog):
        found.append((len(self.parts), len({part.program for part in self.parts}), prog))
        make(self, prog)

    monkeypatch.setattr(parts.Parts, "make", made)
    start_anew()
    with jtorch.execution_mode("auto"):
        yield found


def alphabet(*stretches):
    return [letter for stretch in stretches for letter in stretch]


LONG, OTHER = [f"a{k}" for k in range(30)], [f"b{k}" for k in range(40)]


@pytest.mark.parametrize(
    ("sequence", "cuts"),
    [
        (alphabet("xyz"), [0, 3]),
        (alphabet(LONG), [0, 30]),
        (alphabet(LONG, LONG), [0, 30, 60]),
        (alphabet("xy", LONG, LONG, LONG, "z"), [0, 2, 32, 62, 92, 93]),
        (alphabet(LONG, LONG, "xyz", OTHER, OTHER), [0, 30, 60, 63, 103, 143]),
        (alphabet(LONG * 2, LONG * 2, "x"), [0, 30, 60, 90, 120, 121]),
        (alphabet("abcdefghij" * 7, "z"), [*range(0, 71, 10), 71]),
        (alphabet("abc" * 14), [0, 9, 18, 27, 36, 42]),  # short ones, three in each
        (alphabet("abcdefghij" * 64), [*range(0, 641, 40)]),  # many, four in each
        (alphabet("ab" * 11), [0, 22]),  # too little
        ([], [0, 0]),
    ],
)
def test_where_a_sequence_is_cut(sequence, cuts):
    assert parts.cuts_of(sequence) == cuts


def network(t, layers=LAYERS):
    nn = t.nn
    make = lambda: nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 6), nn.LayerNorm(6))
    return nn.Sequential(nn.Linear(4, 6), *(make() for _ in range(layers)), nn.Linear(6, 3))


OPTIMIZERS = {
    "sgd": lambda t, model: t.optim.SGD(model.parameters(), 0.05),
    "momentum": lambda t, model: t.optim.SGD(model.parameters(), 0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "amsgrad": lambda t, model: t.optim.AdamW(model.parameters(), 0.01, amsgrad=True),
    "groups": lambda t, model: t.optim.Adam(
        [{"params": model[k].parameters(), "lr": 0.002 * (k + 1)} for k in range(len(model))]
    ),
    "rprop": lambda t, model: t.optim.Rprop(model.parameters(), 0.01),
}


def train(t, make_optimizer, steps=8, look=(3,), layers=LAYERS, copies=True):
    t.manual_seed(0)
    model = network(t, layers)
    optimizer = make_optimizer(t, model)
    schedule = t.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    seen, kept = [], []
    for k in range(steps):
        inputs, targets = t.randn(5, 4), t.randint(0, 3, (5,))
        kept = [p.detach().clone() for p in model.parameters()] if copies else []
        loss = t.nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if k in look:
            seen += [loss.item(), *(p.grad.abs().sum().item() for p in model.parameters())]
    seen += [loss.item(), *(p.detach().abs().sum().item() for p in (*kept, *model.parameters()))]
    states = [v for state in optimizer.state_dict()["state"].values() for v in state.values()]
    return seen + [float(v.abs().sum()) for v in states if v is not None and hasattr(v, "abs")]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("look", [(), (3,), range(8)], ids=["never", "once", "always"])
def test_as_pytorch(cut, name, look):
    ours = train(jtorch, OPTIMIZERS[name], look=look)
    assert cut, "it was not run in parts"
    assert ours == pytest.approx(train(torch, OPTIMIZERS[name], look=look), rel=2e-3, abs=1e-4)


def test_layers_alike_are_compiled_once(cut):
    """Of twice as many layers there are as many different parts, and those of six have been compiled for them."""
    train(jtorch, OPTIMIZERS["sgd"], copies=False)
    count, different, prog = cut[0]
    assert count > 2 * LAYERS > different
    known = {part.program for part in prog.parts.parts}
    train(jtorch, OPTIMIZERS["sgd"], copies=False, layers=2 * LAYERS)
    more, still, other = cut[-1]
    assert more > count and still == different
    assert (
        len(known & {part.program for part in other.parts.parts}) >= different - 1
    )  # an end of the updates may differ


def steps_through(t, x, of, scales):
    """A loop over a sequence, whose operations come with the same shapes and other numbers."""
    x = x.clone().requires_grad_()
    state, w = t.zeros(4), t.eye(4) * 0.5 + 0.1
    for k in range(x.shape[0]):
        new = (of(x, k) * scales(k) @ w + state.softmax(0)).tanh()
        gate = (new - state).sigmoid()
        state = state * gate + new.sin() * (1 - gate)
    loss = state.square().sum() + x[0].sum()
    loss.backward()
    return [loss.item(), *x.grad.flatten().tolist()]


NUMBERS = {
    "rows": (lambda x, k: x[k], lambda k: 1.5),
    "columns": (lambda x, k: x[:, k % 4][:4], lambda k: 1.5),
    "scales": (lambda x, k: x[3], lambda k: 0.1 * k),
    "both": (lambda x, k: x[-1 - k], lambda k: 2.0 - 0.1 * k if k % 3 else -0.0),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_copies_that_differ_in_numbers_are_compiled_once(cut, name, monkeypatch):
    """`x[t]` reads elsewhere at each step, and another step may be scaled otherwise: these are inputs of the part."""
    monkeypatch.setattr(parts, "SHARE", 2.0)
    of, scales = NUMBERS[name]
    values = [[0.1 * (k + d) * (-1) ** k for d in range(4)] for k in range(7)]
    for _ in range(3):
        ours = steps_through(jtorch, jtorch.tensor(values), of, scales)
        assert ours == pytest.approx(steps_through(torch, torch.tensor(values), of, scales), rel=1e-4, abs=1e-6)
    count, different, _ = cut[0]
    assert different <= count // 2


def test_parameters_that_step_at_different_counts(cut):
    """Each has the count of its own, whatever the part that updates it."""

    def run(t):
        t.manual_seed(1)
        model = network(t)
        optimizer = t.optim.Adam(model.parameters(), 0.01)
        for k in range(7):
            for name, p in model.named_parameters():
                p.requires_grad_(k % 3 != 1 or int(name.split(".")[0]) % 2 == 0)
            optimizer.zero_grad()
            model(t.ones(2, 4)).square().sum().backward()
            optimizer.step()
        return [float(s["step"]) for s in optimizer.state.values()] + [p.abs().sum().item() for p in model.parameters()]

    ours = run(jtorch)
    assert cut
    assert ours == pytest.approx(run(torch), rel=1e-3, abs=1e-5)


def test_updates_take_the_memory_of_what_they_replace(cut):
    """And nothing that comes before them does."""
    train(jtorch, OPTIMIZERS["momentum"], copies=False)
    *_, prog = cut[-1]
    updates = [part for part in prog.parts.parts if "SGD" in part.program.nodes[0].plan.name]
    assert sum(len(part.program.donate) for part in updates) == len(prog.donate) > 2 * LAYERS
    assert not any(part.program.donate for part in prog.parts.parts if part not in updates)


def test_results_that_are_operands(cut):
    """jax gives back an argument that is a result: a copy of a parameter must outlive it."""
    model = network(jtorch)
    optimizer = jtorch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        before = [p.detach().clone() for p in model.parameters()]
        loss = model(jtorch.ones(2, 4)).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        moved = [(p.detach() - b).abs().sum().item() for p, b in zip(model.parameters(), before)]
        assert cut and sum(moved) > 0
    assert all(b.isfinite().all().item() for b in before)


def test_while_jax_traces_something_else(cut):
    seen = []
    jax.make_jaxpr(lambda x: (seen.extend(train(jtorch, OPTIMIZERS["sgd"])), x)[1])(1.0)
    assert cut
    assert seen == pytest.approx(train(torch, OPTIMIZERS["sgd"]), rel=2e-3, abs=1e-4)


def test_the_whole_takes_over(cut, monkeypatch):
    """Once it has come often, compiled beside the loop."""
    monkeypatch.setattr(costs, "AT_MOST_IN_PARTS", 4)
    monkeypatch.setattr(program, "LATE", 4)
    monkeypatch.setattr(costs, "_PARTS", (1.0, 0.0))
    train(jtorch, OPTIMIZERS["sgd"], look=range(20), steps=20)
    compiled_beside()
    *_, prog = cut[0]
    assert prog.call is not None and prog.settled and prog.runs >= 4
    runs = len(cut)
    assert train(jtorch, OPTIMIZERS["sgd"]) == pytest.approx(train(torch, OPTIMIZERS["sgd"]), rel=1e-3, abs=1e-4)
    assert len(cut) - runs < 2


@pytest.mark.parametrize(("each", "made"), [(1e-9, 0), (1.0, 1)], ids=["cheap", "dear"])
def test_a_program_with_fewer_results_waits_as_the_whole_does(cut, monkeypatch, each, made):
    """Gradients that nobody looks at are no reason to compile the whole of what is run in parts."""
    beside = []
    monkeypatch.setattr(program, "LATE", 4)
    monkeypatch.setattr(program, "beside", lambda *given: beside.append(given))
    monkeypatch.setattr(costs, "_PARTS", (each, 0.0))
    train(jtorch, OPTIMIZERS["sgd"], look=(), steps=20, copies=False)
    assert cut and len(beside) == made


def test_never_where_each_graph_has_one_program(cut):
    jtorch.use_deterministic_algorithms(True)
    try:
        train(jtorch, OPTIMIZERS["sgd"])
    finally:
        jtorch.use_deterministic_algorithms(False)
    assert not cut


def test_a_program_without_a_step(cut):
    """An evaluation; what is read of it twice, and a value that no other part takes."""
    model = network(jtorch, 8)
    theirs = network(torch, 8)
    theirs.load_state_dict({k: torch.tensor(v.tolist()) for k, v in model.state_dict().items()})

    def run(t, net):
        with t.no_grad():
            x, outs = t.linspace(-1, 1, 12).view(3, 4), []
            for layer in net:
                x = layer(x)
                outs.append(x)
            return [o.sum().item() for o in (*outs[:3], outs[-1], outs[-1] * 2)]

    assert run(jtorch, model) == pytest.approx(run(torch, theirs), rel=1e-4, abs=1e-5)
    assert cut


ACCELERATED = """
from jtorch.core import parts

parts.DEAR, parts.SHARE, parts.LENGTH, parts.LEAST, made = 0.0, 1.0, 24, 8, []
make = parts.Parts.make
parts.Parts.make = lambda self, prog: (made.append(prog.device.type), make(self, prog))


def run(device):
    torch.manual_seed(0)
    block = lambda: torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.Tanh(), torch.nn.Linear(12, 6), torch.nn.LayerNorm(6))
    model = torch.nn.Sequential(*(block() for _ in range(4))).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(3, 6).to(device)).square().mean().backward()
        optimizer.step()
    return [p.abs().sum().item() for p in model.parameters()]


print(all(abs(a - b) < 1e-3 for a, b in zip(run("cuda"), run("cpu"))), "cuda" in made)
"""


def test_on_an_accelerator():
    assert on_accelerator(ACCELERATED) == "True True\n"


def test_what_is_too_short_or_repeats_nothing():
    with jtorch.execution_mode("auto"):
        start_anew()
        x = jtorch.ones(4)
        for k in range(60):
            x = (x * 0.5).sin() if k % 7 else x.reshape(2, 2).t().reshape(4) + k
        assert jtorch.isfinite(x).all().item()
