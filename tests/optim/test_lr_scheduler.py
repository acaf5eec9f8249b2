"""Every schedule: the rates, momenta and state dicts of a run, bit for bit, against torch."""

import math
import pickle

import pytest

import jtorch
from tests.oracle import both

SCHEDULES = {
    "lambda": lambda L, o: L.LambdaLR(o, lambda e: 0.9**e),
    "lambdas": lambda L, o: L.LambdaLR(o, [lambda e: 0.9**e, lambda e: 0.8**e]),
    "multiplicative": lambda L, o: L.MultiplicativeLR(o, lambda e: 0.95),
    "step": lambda L, o: L.StepLR(o, 3, 0.5),
    "multistep": lambda L, o: L.MultiStepLR(o, [2, 5, 5], 0.3),
    "constant": lambda L, o: L.ConstantLR(o, 0.3, 4),
    "linear": lambda L, o: L.LinearLR(o, 0.2, 0.9, 6),
    "exponential": lambda L, o: L.ExponentialLR(o, 0.9),
    "polynomial": lambda L, o: L.PolynomialLR(o, 8, 2.0),
    "cosine": lambda L, o: L.CosineAnnealingLR(o, 5, 0.01),
    "restarts": lambda L, o: L.CosineAnnealingWarmRestarts(o, 3, 2, 0.001),
    "cyclic": lambda L, o: L.CyclicLR(o, 0.01, 0.2, 3, 4),
    "cyclic 2": lambda L, o: L.CyclicLR(o, 0.01, [0.2, 0.3], 3, mode="triangular2"),
    "cyclic 3": lambda L, o: L.CyclicLR(o, 0.01, 0.2, 3, mode="exp_range", gamma=0.9, cycle_momentum=False),
    "cyclic 4": lambda L, o: L.CyclicLR(o, 0.01, 0.2, 3, scale_fn=lambda x: 0.5**x, scale_mode="iterations"),
    "one cycle": lambda L, o: L.OneCycleLR(o, 0.5, 14),
    "one cycle 3": lambda L, o: L.OneCycleLR(
        o, [0.5, 0.1], epochs=2, steps_per_epoch=7, three_phase=True, anneal_strategy="linear"
    ),
    "sequential": lambda L, o: L.SequentialLR(
        o, [L.ConstantLR(o, 0.1, 2), L.ExponentialLR(o, 0.9), L.CosineAnnealingLR(o, 5)], [3, 7]
    ),
    **{
        f"sequential from {milestones}": lambda L, o, m=milestones: L.SequentialLR(
            o, [L.ConstantLR(o, 0.1, 2), L.ExponentialLR(o, 0.9), L.LinearLR(o, 0.3, total_iters=4)], m
        )
        for milestones in ([0, 3], [0, 0])
    },
    "chained": lambda L, o: L.ChainedScheduler([L.ConstantLR(o, 0.1, 2), L.ExponentialLR(o, 0.9)], optimizer=o),
}
RESUMED = {
    "step": lambda L, o, e: L.StepLR(o, 3, 0.5, e),
    "multistep": lambda L, o, e: L.MultiStepLR(o, [2, 5, 5], 0.3, e),
    "constant": lambda L, o, e: L.ConstantLR(o, 0.3, 4, e),
    "linear": lambda L, o, e: L.LinearLR(o, 0.2, 0.9, 6, e),
    "exponential": lambda L, o, e: L.ExponentialLR(o, 0.9, e),
    "polynomial": lambda L, o, e: L.PolynomialLR(o, 8, 2.0, e),
    "cosine": lambda L, o, e: L.CosineAnnealingLR(o, 5, 0.01, e),
    "restarts": lambda L, o, e: L.CosineAnnealingWarmRestarts(o, 3, 2, 0.001, e),
    "multiplicative": lambda L, o, e: L.MultiplicativeLR(o, lambda k: 0.95, e),
}
ERRORS = {
    "optimizer": lambda L, o: L.StepLR(3, 3),
    "lambdas": lambda L, o: L.LambdaLR(o, [lambda e: 1]),
    "no function": lambda L, o: L.MultiplicativeLR(o, 0.9),
    "constant": lambda L, o: L.ConstantLR(o, 2),
    "linear": lambda L, o: L.LinearLR(o, 0),
    "linear end": lambda L, o: L.LinearLR(o, 0.5, 2),
    "restarts": lambda L, o: L.CosineAnnealingWarmRestarts(o, 0),
    "plateau": lambda L, o: L.ReduceLROnPlateau(o, factor=1),
    "plateau mode": lambda L, o: L.ReduceLROnPlateau(o, "mid"),
    "plateau min": lambda L, o: L.ReduceLROnPlateau(o, min_lr=[1]),
    "one cycle": lambda L, o: L.OneCycleLR(o, 0.1),
    "one cycle pct": lambda L, o: L.OneCycleLR(o, 0.1, 5, pct_start=2),
    "one cycle end": lambda L, o: [s := L.OneCycleLR(o, 0.1, 2), s.step(), s.step(), s.step()],
    "sequential": lambda L, o: L.SequentialLR(o, [], []),
    "milestones": lambda L, o: L.SequentialLR(o, [L.StepLR(o, 1)], [1]),
    **{
        f"a group more for {name}": lambda L, o, make=make: [s := make(L, o), add_group(o), s.step()]
        for name, make in {
            "lambdas": lambda L, o: L.LambdaLR(o, lambda e: 0.9**e),
            "factors": lambda L, o: L.MultiplicativeLR(o, lambda e: 0.9),
            "restarts": lambda L, o: L.CosineAnnealingWarmRestarts(o, 2),
            "cycles": lambda L, o: L.CyclicLR(o, 0.01, 0.1, cycle_momentum=False),
        }.items()
    },
    "cyclic mode": lambda L, o: L.CyclicLR(o, 0.1, 0.2, mode="x"),
    "no state of a cycle": lambda L, o: L.CyclicLR(o, 0.1, 0.2, cycle_momentum=False).load_state_dict({}),
    "no states of functions": lambda L, o: L.LambdaLR(o, lambda e: 1).load_state_dict({"last_epoch": 3}),
    "None for a state": lambda L, o: L.LambdaLR(o, lambda e: 1).load_state_dict(None),
    "more states than functions": lambda L, o: L.LambdaLR(o, lambda e: 1).load_state_dict(
        {"lr_lambdas": [None, {}, {}]}
    ),
    "more states than schedules": lambda L, o: L.ChainedScheduler([L.StepLR(o, 1)]).load_state_dict(
        {"_schedulers": [{}, {}]}
    ),
}


def add_group(optimizer):
    first = optimizer.param_groups[0]["params"][0]
    optimizer.add_param_group({"params": [first.detach().clone().requires_grad_()]})


def optimizer_of(torch, name="SGD"):
    a, b = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))
    return getattr(torch.optim, name)([{"params": [a], "lr": 0.3}, {"params": [b]}], lr=0.1)


def visible(x):
    """What can be compared: no parameters, no functions."""
    if isinstance(x, dict):
        return {k: visible(v) for k, v in x.items() if k not in ("params", "lr_lambdas")}
    return [visible(v) for v in x] if isinstance(x, (list, tuple)) else x


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_run(name, optimizer):
    def run(torch):
        L = torch.optim.lr_scheduler
        o = optimizer_of(torch, optimizer)
        schedule = SCHEDULES[name](L, o)
        log = [visible(o.param_groups), schedule.get_last_lr()]
        for step in range(13):
            o.step()
            schedule.step()
            log.append((visible(o.param_groups), schedule.get_last_lr()))
            if step == 6:
                other = SCHEDULES[name](L, optimizer_of(torch, optimizer))
                other.load_state_dict(dict(schedule.state_dict()))
        return str([log, visible(schedule.state_dict())])

    both(run)


@pytest.mark.parametrize("epoch", [0, 1, 2, 4, 5, 7])
@pytest.mark.parametrize("name", RESUMED)
def test_resumed(name, epoch):
    def run(torch):
        o = optimizer_of(torch)
        for group in o.param_groups:
            group["initial_lr"] = 0.2
        schedule = RESUMED[name](torch.optim.lr_scheduler, o, epoch)
        log = [schedule.get_last_lr()]
        for _ in range(6):
            o.step()
            schedule.step()
            log.append(schedule.get_last_lr())
        if name != "multiplicative":
            schedule.step(3)
        return str([log, schedule.get_last_lr()])

    both(run)


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
def test_plateau(mode, threshold_mode):
    def run(torch):
        o = optimizer_of(torch)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
            o, mode, 0.5, 2, threshold_mode=threshold_mode, cooldown=1, min_lr=[0.01, 0.02]
        )
        log = []
        for i in range(25):
            schedule.step(math.sin(i * 0.7))
            log.append((schedule.get_last_lr(), visible(schedule.state_dict())))
        return str(log)

    both(run)


@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    got = both(lambda torch: ERRORS[name](torch.optim.lr_scheduler, optimizer_of(torch)))
    assert got.error is not None


def test_resuming_needs_the_initial_rate():
    with pytest.raises(KeyError, match="param 'initial_lr' is not specified in param_groups"):
        jtorch.optim.lr_scheduler.StepLR(optimizer_of(jtorch), 3, last_epoch=2)


@pytest.mark.parametrize("name", [*jtorch.optim.lr_scheduler.__all__, "_LRScheduler"])
def test_home(name):
    """Each is where PyTorch has it, whichever file it is written in: pickles and printed classes say so."""
    cls = getattr(jtorch.optim.lr_scheduler, name)
    assert f"{cls.__module__}.{cls.__qualname__}" == f"jtorch.optim.lr_scheduler.{name}"
    assert pickle.loads(pickle.dumps(cls)) is cls
