"""What a compiled function reads besides its arguments: a change to it is seen at the next call, and draws stay draws."""

import collections
import gc
import itertools
import os
import random
import time
import types
from random import uniform

import numpy as np
import pytest

import jtorch
from tests.oracle import torch


class Settings:
    scale = 2.0
    count = 1
    inner = types.SimpleNamespace(k=3.0)
    table = {"a": 1.0}


class Scaled:
    by = 1.0

    def of(this, x):
        return x * this.by

    @classmethod
    def of_class(cls, x):
        return x * cls.by


class Heir(Scaled):
    by = 5.0


class Derived(Scaled):
    pass


def doubled(x, k=2.0):
    return x * k


def tripled(x, *, k=3.0):
    return x * k


class Plain:
    def __init__(self):
        self._table, self.word = [1.0], "a"

    def run(self, x):
        return x * self._table[0] if self.word == "a" else x

    @property
    def twice(self):
        return 2.0


plain, nested, array = Plain(), {"a": {"b": [2.0]}}, np.array([2.0, 3.0])
tools = types.ModuleType("tools")
tools.scale = 1.0
scaled = Derived()
generator = np.random.default_rng(0)

# a function, and what is done to what it reads between two calls
READ = {
    "class": (lambda x: x * Settings.scale, lambda: setattr(Settings, "scale", 7.0)),
    "object of a class": (lambda x: x * Settings.inner.k, lambda: setattr(Settings.inner, "k", 7.0)),
    "dict of a class": (lambda x: x * Settings.table["a"], lambda: Settings.table.update(a=7.0)),
    "module": (lambda x: x * tools.scale, lambda: setattr(tools, "scale", 7.0)),
    "class of self": (lambda x: scaled.of(x), lambda: setattr(Scaled, "by", 7.0)),
    "class between": (lambda x: scaled.of(x), lambda: setattr(Derived, "by", 9.0)),
    "self": (lambda x: scaled.of(x), lambda: setattr(scaled, "by", 11.0)),
    "cls": (lambda x: Derived.of_class(x), lambda: setattr(Derived, "by", 13.0)),
    "defaults": (lambda x: doubled(x), lambda: setattr(doubled, "__defaults__", (7.0,))),
    "keyword defaults": (lambda x: tripled(x), lambda: tripled.__kwdefaults__.update(k=7.0)),
    "code": (lambda x: doubled(x), lambda: setattr(doubled, "__code__", (lambda x, k: x - k).__code__)),
    "private list": (lambda x: plain.run(x), lambda: plain._table.__setitem__(0, 7.0)),
    "method": (lambda x: plain.run(x), lambda: setattr(Plain, "run", lambda self, x: x - 1)),
    "property": (lambda x: x * plain.twice, lambda: setattr(Plain, "twice", 5.0)),
    "nested": (lambda x: x * nested["a"]["b"][0], lambda: nested["a"]["b"].__setitem__(0, 7.0)),
    "array": (lambda x: x * float(array[0]), lambda: array.__setitem__(0, 7.0)),
    "environment": (lambda x: x * len(os.environ.get("JTORCH_READ", "")), lambda: os.environ.update(JTORCH_READ="abc")),
    "another type": (lambda x: x * Settings.count, lambda: setattr(Settings, "count", 1.0)),
    "inherited no longer": (lambda x: x * Heir.by, lambda: delattr(Heir, "by")),
    "default dtype": (lambda x: x + jtorch.ones(3), lambda: jtorch.set_default_dtype(jtorch.float64)),
}


@pytest.mark.parametrize("name", READ)
def test_what_is_read_may_change(name):
    function, change = READ[name]
    rows = 2 + list(READ).index(name)  # a shape of its own: a number that another test has varied is an input anyway
    compiled, x = jtorch.compile(function), jtorch.ones(rows, 3)
    for _ in range(4):
        compiled(x)
    assert compiled._region.replays, compiled._region.why
    try:
        change()
        got, expected = compiled(x), function(x)
    finally:
        jtorch.set_default_dtype(jtorch.float32)
    assert got.dtype is expected.dtype and got.tolist() == expected.tolist()


DRAWN = {
    "random": lambda x: x * random.uniform(0, 1),
    "of a module": lambda x: x * uniform(0, 1),
    "chosen": lambda x: x * random.choice(range(1000)),
    "numpy": lambda x: x * float(np.random.rand()),
    "numpy's generator": lambda x: x * float(generator.random()),
}


@pytest.mark.parametrize("name", DRAWN)
def test_numbers_are_drawn_at_each_call(name):
    compiled, x = jtorch.compile(DRAWN[name]), jtorch.ones(20 + list(DRAWN).index(name), 3)
    assert len({compiled(x)[0, 0].item() for _ in range(6)}) > 3


def test_arguments_that_change_in_place():
    class Settings:
        k = 2.0

    given = {"object": Settings(), "array": np.array([2.0]), "dict": collections.OrderedDict(k=2.0), "set": {2.0}}
    read = {"object": lambda a: a.k, "array": lambda a: float(a[0]), "dict": lambda a: a["k"], "set": sum}
    change = {
        "object": lambda a: setattr(a, "k", 5.0), "array": lambda a: a.fill(5.0), "dict": lambda a: a.update(k=5.0),
        "set": lambda a: a.add(3.0),
    }  # fmt: skip
    for rows, (name, value) in enumerate(given.items(), 50):
        of, x = read[name], jtorch.ones(rows)
        compiled = jtorch.compile(lambda x, a, of=of: x * of(a))
        assert [compiled(x, value)[0].item() for _ in range(4)] == [2.0] * 4, name
        assert compiled._region.replays, name
        change[name](value)
        assert [compiled(x, value)[0].item() for _ in range(4)] == [5.0] * 4, name


def test_a_tensor_of_an_object_is_exchanged():
    class Holder:
        def run(self, x):
            return x * self.tensor

    holder = Holder()
    holder.tensor, x = jtorch.ones(66), jtorch.ones(66)
    compiled = jtorch.compile(holder.run)
    assert [compiled(x)[0].item() for _ in range(4)] == [1.0] * 4 and compiled._region.replays
    holder.tensor = jtorch.zeros(66)
    assert compiled(x)[0].item() == 0.0


def test_what_gives_something_else_each_time_is_asked_at_each_call():
    counter, given = itertools.count(), iter(range(100))
    compiled, x = jtorch.compile(lambda x, it: x * next(it) + next(counter)), jtorch.ones(60)
    assert [compiled(x, given)[0].item() for _ in range(6)] == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]


def test_memory_that_arguments_share_is_seen():
    def step(a, b):
        a.add_(1)
        return a * b

    compiled = jtorch.compile(step)
    for _ in range(2):
        for _ in range(3):
            assert compiled(jtorch.ones(61), jtorch.ones(61))[0].item() == 2.0
        for _ in range(3):
            x = jtorch.ones(61)
            assert compiled(x, x)[0].item() == 4.0


def test_results_of_one_memory_share_it():
    def step(x):
        y = x * 2
        return y, y, y.detach()

    compiled = jtorch.compile(step)
    for _ in range(4):
        a, b, c = compiled(jtorch.ones(62))
        a.add_(1)
        assert a is b and c[0].item() == 3.0
    assert compiled._region.replays, compiled._region.why


def test_a_value_from_outside_that_is_copied_into_a_tensor():
    kept, other = jtorch.zeros(63), jtorch.ones(63)

    def step(x):
        kept.copy_(other)
        return x * 2

    compiled = jtorch.compile(step)
    for k in range(5):
        other.fill_(k)
        compiled(jtorch.ones(63))
        assert kept[0].item() == k


def test_a_history_from_outside_is_seen():
    scale, weight = jtorch.ones(64), jtorch.ones(64, requires_grad=True)
    p = jtorch.ones(64, requires_grad=True)

    def step():
        p.grad = None
        loss = (p * scale).sum()
        loss.backward()
        return loss.detach()

    compiled = jtorch.compile(step)
    for _ in range(4):
        compiled()
    scale.mul_(weight * 2)
    assert compiled().item() == 128.0 and weight.grad[0].item() == 2.0


VALUES = {
    "an argument's": lambda x, t, kept: x * t.item(),
    "a decision": lambda x, t, kept: x * 2 if t > 2 else x * 3,
    "of a tensor from outside": lambda x, t, kept: x * kept.tolist()[0],
    "numpy's": lambda x, t, kept: x * float(t.numpy()),
    "the shape of a result": lambda x, t, kept: x[kept > 2].sum() + x,
    "a place": lambda x, t, kept: x + x[int(t)],
}


@pytest.mark.parametrize("name", VALUES)
def test_values_are_read_at_each_call(name):
    function, x, kept = VALUES[name], jtorch.arange(4.0) + 1, jtorch.tensor([1.0, 2.0, 3.0, 4.0])
    compiled = jtorch.compile(lambda x, t: function(x, t, kept))
    for k in (0, 0, 0, 1, 2, 3, 0):
        t = jtorch.tensor(k)
        kept[0] = k
        assert compiled(x, t).tolist() == function(x, t, kept).tolist()


def test_a_collection_while_a_region_is_watched_is_not_the_regions():
    """Hypothesis has one timed, for instance, by a function in gc.callbacks."""

    def note(phase, info):
        time.perf_counter()

    def region(x):
        made = [[i] for i in range(3000)]
        return x * len(made)

    compiled = jtorch.compile(region)
    before = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(50)
    try:
        compiled(jtorch.ones(61, 7))  # a shape of its own, as above
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(note)
    assert gc.isenabled()
    assert compiled._region.why is None


def step_of(model, optimizer):
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def no_step(self, closure=None):
    pass


def halved(grads):
    return (grads[0] / 2,)


def accumulation(p):
    return p.view_as(p).grad_fn.next_functions[0][0]


# what is done to a training step's model (two layers) and optimizer between two calls, and undone
CHANGED = {
    "a group less": lambda m, o: o.param_groups.pop(),
    "a parameter less": lambda m, o: o.param_groups[0]["params"].pop(),
    "other parameters": lambda m, o: o.param_groups[1].update(params=[m[1].weight]),
    "the step of the class": lambda m, o: setattr(type(o), "step", no_step),
    "a hook before accumulation": lambda m, o: accumulation(m[0].weight).register_prehook(halved),
    "a hook after accumulation": lambda m, o: accumulation(m[0].weight).register_hook(lambda *_: m[0].bias.data.zero_()),
    "another shape of a buffer": lambda m, o: m[2].scale.t_(),
    "another shape in the same memory": lambda m, o: setattr(m[2].scale, "data", m[2].scale.data.t()),
}  # fmt: skip


class Twisted(jtorch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", jtorch.arange(9.0).view(3, 3).clone() / 9)

    def forward(self, x):
        return x @ self.scale


@pytest.mark.parametrize("name", CHANGED)
def test_a_step_sees_what_is_done_to_its_optimizer_and_tensors(name):
    class Own(jtorch.optim.SGD):
        step = jtorch.optim.SGD.step

    made = []
    for compiler in (jtorch.compile, lambda f: f):
        jtorch.manual_seed(0)
        model = jtorch.nn.Sequential(jtorch.nn.Linear(5, 3), jtorch.nn.Linear(3, 3), Twisted())
        own = type("Own", (Own,), {"step": Own.step})
        optimizer = own([{"params": list(m.parameters())} for m in model[:2]], lr=0.1)
        step = compiler(step_of(model, optimizer))
        x = jtorch.linspace(-1, 1, 20).view(4, 5).clone()
        for _ in range(4):
            step(x)
        assert compiler is not jtorch.compile or step._region.replays, step._region.why
        CHANGED[name](model, optimizer)
        made.append([step(x).item() for _ in range(3)] + model[0].bias.tolist())
    assert made[0] == pytest.approx(made[1], rel=1e-5)


def test_an_index_out_of_range_is_refused_by_a_replay():
    rows, n = jtorch.nn.Embedding(5, 3), jtorch.nn.functional
    functions = {
        "embedding": (lambda i: rows(i).detach(), IndexError),
        "of a view": (lambda i: rows.weight.detach()[i.view(-1)], IndexError),
        "classes": (lambda i: n.cross_entropy(jtorch.ones(2, 5), i), IndexError),
        "gather": (lambda i: jtorch.ones(5).gather(0, i), RuntimeError),
    }
    taking = jtorch.compile(lambda i: i + 1)
    with jtorch.no_grad():
        for function, error in functions.values():
            compiled = jtorch.compile(function)
            for _ in range(2):
                for pair in ([0, 1], [4, 2], [3, 3]):
                    i = jtorch.tensor(pair)
                    taking(i)  # has them become an array, which dies with them
                    assert compiled(i).tolist() == function(i).tolist()
                assert compiled._region.replays, compiled._region.why
                del i
                with pytest.raises(error):
                    compiled(jtorch.tensor([1, 5]))


def test_an_index_from_outside_that_is_written_between_calls():
    rows, kept, taken = jtorch.nn.Embedding(5, 3), jtorch.tensor([0, 4, 2]), jtorch.tensor([1, 3])
    functions = {
        "embedding": (lambda x: rows(kept).detach() * x, kept, IndexError),
        "a view of it": (lambda x: (rows.weight.detach() * x)[kept[1:]], kept, IndexError),
        "gather": (lambda x: (jtorch.ones(5) * x).gather(0, taken), taken, RuntimeError),
    }
    with jtorch.no_grad():
        for function, index, error in functions.values():
            compiled, x = jtorch.compile(function), jtorch.ones(1)
            for number in (0, 3, 1, 3):
                index[1] = number
                for _ in range(4):
                    assert compiled(x).tolist() == function(x).tolist()
            assert compiled._region.replays, compiled._region.why
            index[1] = 5
            with pytest.raises(error):
                compiled(x)
            index[1] = 4
            assert compiled(x).tolist() == function(x).tolist()


def test_views_of_one_memory_as_arguments():
    def step(a, b):
        b.add_(1)
        return a * b

    compiled, base = jtorch.compile(step), jtorch.zeros(6)
    for _ in range(3):
        compiled(jtorch.ones(4)[1:], jtorch.ones(4)[1:])
    assert compiled._region.replays, compiled._region.why
    assert compiled(base[:3], base[:3]).tolist() == [1.0] * 3
    assert compiled(base[:3], base[1:4]).tolist() == [2.0, 4.0, 2.0]
    assert base.tolist() == [1.0, 2.0, 2.0, 1.0, 0.0, 0.0]


def test_a_view_of_what_the_region_reads_as_an_argument():
    base = jtorch.zeros(6)

    def step(a):
        a.add_(1)
        return base * 2

    compiled = jtorch.compile(step)
    for _ in range(4):
        compiled(jtorch.ones(4)[1:])
    assert compiled._region.replays, compiled._region.why
    assert compiled(base[:3]).tolist() == [2.0, 2.0, 2.0, 0.0, 0.0, 0.0]


def test_values_of_a_vmap_that_live_on_do_not_matter():
    kept = []
    jtorch.vmap(lambda x: kept.append(x) or x * 2)(jtorch.ones(2, 3))
    assert jtorch.compile(lambda x: x + 1)(jtorch.ones(65))[0].item() == 2.0


@pytest.mark.parametrize("inside", [False, True])
def test_the_step_of_an_optimizer_with_a_schedule(inside):
    """It is proven, and takes the rates of now; a schedule's own step is not."""

    def losses(t):
        weight = t.nn.Parameter(t.ones(3))
        optimizer = t.optim.SGD([weight], lr=0.1)
        schedule = t.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

        def step(x):
            optimizer.zero_grad()
            loss = (weight * x).square().sum()
            loss.backward()
            optimizer.step()
            if inside:
                schedule.step()
            return loss

        call = t.compile(step) if t is jtorch else step
        made = []
        for _ in range(6):
            made.append(call(t.ones(3)).item())
            if not inside:
                schedule.step()
        return made, call

    got, compiled = losses(jtorch)
    assert got == pytest.approx(losses(torch)[0])
    assert bool(compiled._region.replays) is not inside, compiled._region.why


def test_functions_made_by_the_run_read_what_cannot_change():
    """A comprehension's free variables, in the Python that makes a function of it, and those of an inner function."""
    scale = [2.0]

    @jtorch.compile
    def heads(x):
        n, k, factor = *x.shape, scale[0]

        def turned(t):
            return t.reshape(k, n) * factor

        return sum(turned(t.view(n, k)) for t in [x.reshape(n, k) + i for i in range(k)])

    @jtorch.compile
    def listed(x):
        n, k, factor = *x.shape, scale[0]
        parts = [t.view(k, n) * factor for t in (x, x + 1)]
        return parts[0] + parts[1]

    @jtorch.compile
    def inner(x):
        n, k, factor = *x.shape, scale[0]

        def turned(t):
            return t.reshape(k, n) * factor

        return turned(x) + turned(x + 1)

    x = jtorch.arange(6.0).view(2, 3)
    for run in (listed, inner):
        for factor in (2.0, 2.0, 2.0, 2.0, 3.0, 3.0, 2.0):
            scale[0] = factor
            want = (x.reshape(3, 2) + (x + 1).reshape(3, 2)) * factor
            assert run(x).tolist() == want.tolist()
            y = jtorch.arange(8.0).view(4, 2)
            assert run(y).tolist() == ((y + y + 1).reshape(2, 4) * factor).tolist()
        assert run._region.replays
    for factor in (2.0, 2.0, 2.0, 5.0):
        scale[0] = factor
        assert heads(x).tolist() == (sum((x + i).reshape(3, 2) for i in range(3)) * factor).tolist()
