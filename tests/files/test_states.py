"""Training goes on where the other library's file left it: models, optimizers, schedulers."""

import io
import pickle

import numpy as np
import pytest

import jtorch
from tests.oracle import torch

OPTIMIZERS = {
    "SGD": lambda m, p: m.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "SGD plain": lambda m, p: m.optim.SGD(p, lr=0.1),
    "Adam": lambda m, p: m.optim.Adam(p, lr=0.01, amsgrad=True),
    "AdamW": lambda m, p: m.optim.AdamW([{"params": p[:1]}, {"params": p[1:], "weight_decay": 0.0}], lr=0.01),
    "LBFGS": lambda m, p: m.optim.LBFGS(p, lr=0.1, max_iter=3),
    "RMSprop": lambda m, p: m.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "Adagrad": lambda m, p: m.optim.Adagrad(p, lr=0.1),
}
SCHEDULERS = {
    "StepLR": lambda m, o: m.optim.lr_scheduler.StepLR(o, 2, 0.5),
    "CosineAnnealingLR": lambda m, o: m.optim.lr_scheduler.CosineAnnealingLR(o, 10),
    "OneCycleLR": lambda m, o: m.optim.lr_scheduler.OneCycleLR(o, 0.2, total_steps=12),
    "LambdaLR": lambda m, o: m.optim.lr_scheduler.LambdaLR(o, lambda n: 0.9**n),
    "SequentialLR": lambda m, o: m.optim.lr_scheduler.SequentialLR(
        o, [m.optim.lr_scheduler.ConstantLR(o, 0.1, 2), m.optim.lr_scheduler.ExponentialLR(o, 0.9)], [2]
    ),
    "ReduceLROnPlateau": lambda m, o: m.optim.lr_scheduler.ReduceLROnPlateau(o, patience=1),
}
DATA = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)


def made(m, optimizer, scheduler="StepLR"):
    net = m.nn.Sequential(m.nn.Linear(3, 4), m.nn.Tanh(), m.nn.BatchNorm1d(4), m.nn.Linear(4, 1))
    opt = OPTIMIZERS[optimizer](m, list(net.parameters()))
    return net, opt, SCHEDULERS[scheduler](m, opt)


def train(m, net, opt, sched, steps):
    x, losses = m.tensor(DATA), []
    for _ in range(steps):

        def closure():
            opt.zero_grad()
            loss = (net(x) ** 2 + net(x)).mean()
            loss.backward()
            return loss

        loss = opt.step(closure)
        losses.append(float(loss.detach()))
        sched.step(losses[-1]) if "Plateau" in type(sched).__name__ else sched.step()
    return losses


def pack(net, opt, sched):
    return {"net": net.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict(), "epoch": 3}


def unpack(state, net, opt, sched):
    net.load_state_dict(state["net"])
    opt.load_state_dict(state["opt"])
    sched.load_state_dict(state["sched"])


def resumed(writer, reader, optimizer, scheduler):
    """Losses of a run that goes on in the library it began in, and in the other one."""
    torch.manual_seed(0)
    start = io.BytesIO()
    torch.save(made(torch, optimizer, scheduler)[0].state_dict(), start)
    start.seek(0)
    first = made(writer, optimizer, scheduler)
    first[0].load_state_dict(writer.load(start))
    train(writer, *first, 3)
    f = io.BytesIO()
    writer.save(pack(*first), f)
    f.seek(0)
    second = made(reader, optimizer, scheduler)
    unpack(reader.load(f), *second)
    return train(writer, *first, 3), train(reader, *second, 3), first[1], second[1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["torch to jtorch", "jtorch to torch"])
@pytest.mark.parametrize(
    "optimizer, scheduler",
    [(o, "StepLR") for o in OPTIMIZERS] + [("SGD", s) for s in SCHEDULERS if s != "StepLR"],
)
def test_resuming(way, optimizer, scheduler):
    writer, reader = ({"torch": torch, "jtorch": jtorch}[name] for name in way.split(" to "))
    there, here, before, after = resumed(writer, reader, optimizer, scheduler)
    np.testing.assert_allclose(here, there, rtol=2e-4, atol=1e-6)
    for a, b in zip(before.state_dict()["param_groups"], after.state_dict()["param_groups"]):
        assert a["lr"] == pytest.approx(b["lr"])
        assert set(a) == set(b)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizer_states_have_the_same_entries(optimizer):
    def entries(m):
        net, opt, sched = made(m, optimizer)
        train(m, net, opt, sched, 1)
        state = opt.state_dict()
        return {k: sorted(map(str, v)) for k, v in state["state"].items()}, [sorted(g) for g in state["param_groups"]]

    assert entries(jtorch) == entries(torch)


def test_a_state_dict_holds_no_class_of_ours():
    net, opt, sched = made(jtorch, "AdamW")
    train(jtorch, net, opt, sched, 1)
    f = io.BytesIO()
    jtorch.save(pack(net, opt, sched), f)
    assert b"jtorch" not in f.getvalue()
    assert jtorch.serialization.get_unsafe_globals_in_checkpoint(f_at_start(f)) == []


def f_at_start(f):
    f.seek(0)
    return f


def test_scaler_and_averaged_models():
    net = jtorch.nn.Linear(2, 2)
    averaged = jtorch.optim.swa_utils.AveragedModel(net)
    averaged.update_parameters(net)
    f = io.BytesIO()
    jtorch.save(averaged.state_dict(), f)
    got = torch.load(f_at_start(f))
    assert list(got) == list(averaged.state_dict()) and int(got["n_averaged"]) == 1


def test_generators():
    f = io.BytesIO()
    g = torch.Generator().manual_seed(7)
    torch.rand(3, generator=g)
    torch.save(g, f)
    f.seek(0)
    mine = jtorch.load(f, weights_only=False)
    back = pickle.loads(pickle.dumps(mine))
    assert type(mine) is type(back) is jtorch.Generator and mine.initial_seed() == back.initial_seed() == 7
    want = torch.rand(3, generator=g).tolist()
    assert jtorch.rand(3, generator=mine).tolist() == jtorch.rand(3, generator=back).tolist() == want
    f = io.BytesIO()
    jtorch.save(mine, f)
    f.seek(0)
    theirs = torch.load(f, weights_only=False)
    assert torch.rand(3, generator=theirs).tolist() == jtorch.rand(3, generator=mine).tolist()
