"""Random training loops: ways to make a step, and to look at things between steps; what is seen is PyTorch's, chains or not."""

import copy
import io
import random

import pytest

import jtorch
from jtorch.core.beside import compiled_beside
from tests.oracle import torch

SEEDS = 8
ABSENT = float("nan")
MODELS = {
    "mlp": lambda nn: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)),
    "norm": lambda nn: nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 3)),
    "conv": lambda nn: nn.Sequential(
        nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 2, 3, padding=1), nn.Flatten(), nn.Linear(8, 3)
    ),
}
OPTIMIZERS = {
    "plain": lambda t, p: t.optim.SGD(p, lr=0.05),
    "momentum": lambda t, p: t.optim.SGD(p, lr=0.05, momentum=0.9),
    "Adam": lambda t, p: t.optim.Adam(p, lr=0.01),
    "AdamW": lambda t, p: t.optim.AdamW(p, lr=0.01, weight_decay=0.1),
}


def usual_step(t):
    """A step that depends on nothing but its arguments, so that a compiled one is replayed."""

    def usual(model, optimizer, x, y):
        optimizer.zero_grad()
        loss = t.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return usual


class Loop:
    """A loop in one of the libraries. Methods step_* make a step, methods look_* do what people do between steps."""

    def __init__(self, t, model, optimizer, seed):
        self.t, self.kind = t, optimizer
        t.manual_seed(seed)
        self.model, self.other = (MODELS[model](t.nn).double() for _ in range(2))
        self.average = copy.deepcopy(self.model)
        self.optimizer, self.second = (OPTIMIZERS[optimizer](t, m.parameters()) for m in (self.model, self.other))
        self.schedule = t.optim.lr_scheduler.StepLR(self.optimizer, 3, 0.7)
        self.batches = list(zip(t.randn(4, 5, 4, dtype=t.float64).split(1), t.randint(0, 3, (4, 5)).split(1)))
        self.batches = [(x[0].clone(), y[0].clone()) for x, y in self.batches]
        self.usual = usual_step(t)
        self.compiled = t.compile(self.usual) if t is jtorch else self.usual
        self.rows, self.at, self.hook, self.alias = 5, 0, None, None
        self.kept, self.seen = [], []

    def batch(self):
        x, y = self.batches[self.at % 4]
        return (x, y) if self.rows == len(x) else (x[: self.rows], y[: self.rows])

    def error(self, model=None):
        x, y = self.batch()
        return self.t.nn.functional.cross_entropy((model or self.model)(x), y)

    def first(self):
        return next(self.model.parameters())

    def step_usual(self):
        self.loss = self.usual(self.model, self.optimizer, *self.batch())

    def step_compiled(self):
        self.loss = self.compiled(self.model, self.optimizer, *self.batch())

    def step_zero_between(self):
        self.loss = self.error()
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()

    def step_zero_last(self):
        self.loss = self.error()
        self.loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def step_zero_in_place(self):
        self.optimizer.zero_grad(set_to_none=False)
        self.loss = self.error()
        self.loss.backward()
        self.optimizer.step()

    def step_never_zero(self):
        self.loss = self.error()
        self.loss.backward()
        self.optimizer.step()

    def step_accumulate(self):
        self.optimizer.zero_grad()
        for _ in range(2):
            self.loss = self.error() / 2
            self.loss.backward()
            self.at += 1
        self.optimizer.step()

    def step_clip(self):
        self.optimizer.zero_grad()
        self.loss = self.error()
        self.loss.backward()
        self.kept.append(self.t.nn.utils.clip_grad_norm_(self.model.parameters(), 0.5))
        self.optimizer.step()

    def step_two_optimizers(self):
        self.optimizer.zero_grad()
        self.error().backward()
        self.optimizer.step()
        self.second.zero_grad()
        self.loss = self.error(self.other) + self.error().detach()
        self.loss.backward()
        self.second.step()

    def step_by_hand(self):
        self.loss = self.error()
        grads = self.t.autograd.grad(self.loss, list(self.model.parameters()))
        with self.t.no_grad():
            for p, g in zip(self.model.parameters(), grads):
                p -= 0.02 * g

    def step_on_data(self):
        self.model.zero_grad()
        self.loss = self.error()
        self.loss.backward()
        for p in self.model.parameters():
            if p.grad is not None:
                p.data.add_(p.grad.data, alpha=-0.02)

    def step_closure(self):
        def closure():
            self.optimizer.zero_grad()
            loss = self.error()
            loss.backward()
            return loss

        self.loss = self.optimizer.step(closure)

    def step_gradient_penalty(self):
        self.optimizer.zero_grad()
        loss = self.error()
        grads = self.t.autograd.grad(loss, list(self.model.parameters()), create_graph=True)
        self.loss = loss + 0.1 * sum((g * g).sum() for g in grads)
        self.loss.backward()
        self.optimizer.step()

    def look_item(self):
        self.seen.append(self.loss.item())

    def look_keep(self):
        self.kept.append(self.loss.detach())

    def look_keep_with_graph(self):
        self.kept.append(self.loss)

    def look_derived(self):
        self.kept.append((self.loss.detach() * 2 + 1).sqrt())

    def look_stack(self):
        if self.kept:
            self.seen += self.t.stack([k.detach() for k in self.kept]).tolist()
            self.kept = []

    def look_running_sum(self):
        if self.kept:
            self.seen.append(sum(self.kept[1:], self.kept[0]).item())

    def look_weight(self):
        self.seen.append(self.first().sum().item())

    def look_weight_later(self):
        self.kept.append(self.first().sum())

    def look_gradient(self):
        grad = self.first().grad
        self.seen.append(ABSENT if grad is None else grad.abs().sum().item())

    def look_take_gradient(self):
        self.alias = self.first().grad

    def look_take_view(self):
        self.alias = self.first().detach()[0]

    def look_taken(self):
        if self.alias is not None:
            self.seen.append(self.alias.sum().item())

    def look_write_weight(self):
        with self.t.no_grad():
            self.first()[0].mul_(0.5)

    def look_new_data(self):
        self.first().data = self.first().data.clone() * 0.9

    def look_learning_rate(self):
        self.optimizer.param_groups[0]["lr"] *= 0.9

    def look_evaluate(self):
        self.model.eval()
        with self.t.no_grad():
            self.kept.append(self.error())
        self.model.train()

    def look_average(self):
        with self.t.no_grad():
            for a, p in zip(self.average.parameters(), self.model.parameters()):
                a.mul_(0.9).add_(p, alpha=0.1)

    def look_copy(self):
        self.average = copy.deepcopy(self.model)

    def look_load(self):
        self.model.load_state_dict(self.average.state_dict())

    def look_file(self):
        file = io.BytesIO()
        self.t.save((self.model.state_dict(), self.optimizer.state_dict()), file)
        file.seek(0)
        model, optimizer = self.t.load(file)
        self.model.load_state_dict(model)
        self.optimizer.load_state_dict(optimizer)

    def look_smaller_batch(self):
        self.rows = 8 - self.rows

    def look_new_optimizer(self):
        self.optimizer = OPTIMIZERS[self.kind](self.t, self.model.parameters())

    def look_hook(self):
        if self.hook is None:
            self.hook = self.first().register_hook(lambda g: g * 0.5)
        else:
            self.hook.remove()
            self.hook = None

    def look_freeze(self):
        last = list(self.model.parameters())[-1]
        last.requires_grad_(not last.requires_grad)
        last.grad = None

    def look_schedule(self):
        self.schedule.step()


STEPS = sorted(n for n in vars(Loop) if n.startswith("step_"))
LOOKS = sorted(n for n in vars(Loop) if n.startswith("look_"))


def script(draw):
    """The methods that a loop calls: mostly one way to make a step, now and then another, few kinds of looks, some at each step."""
    usual, other, rare = draw.choice(STEPS), draw.choice(STEPS), draw.sample(LOOKS, draw.randint(1, 6))
    always = draw.sample(
        ["look_keep", "look_derived", "look_average", "look_evaluate", "look_schedule"], draw.randint(0, 2)
    )
    share = draw.choice([0.02, 0.1, 0.3])
    for _ in range(draw.choice([30, 60])):
        yield other if draw.random() < share / 2 else usual
        yield from always
        if draw.random() < share:
            yield draw.choice(rare)
    yield "look_stack"


def played(t, calls, *args):
    loop = Loop(t, *args)
    for k, name in enumerate(calls):
        getattr(loop, name)()
        if name.startswith("step_"):
            loop.at += 1
            if k % 3 == 0:
                compiled_beside()
    for model in (loop.model, loop.other, loop.average):
        for p in [*model.parameters(), *model.buffers()]:
            loop.seen += p.detach().double().flatten().tolist()
            loop.seen.append(ABSENT if p.grad is None else p.grad.sum().item())
    return loop.seen


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_loops(seed, runs):
    draw = random.Random(seed)
    args = draw.choice(sorted(MODELS)), draw.choice(sorted(OPTIMIZERS)), seed
    calls = list(script(draw))
    assert played(jtorch, calls, *args) == pytest.approx(played(torch, calls, *args), rel=1e-6, abs=1e-8, nan_ok=True)
