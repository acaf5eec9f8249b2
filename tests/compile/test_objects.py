"""Objects that hold what a region reads in ways of their own: replays notice when it is another thing."""

import ctypes
import enum
import types
import typing

import pytest

import jtorch
from tests.compile.test_noticed import chosen


class Point(typing.NamedTuple):
    x: int

    def asked(self):
        return self.x


class Few(list):
    __slots__ = ()
    k = 1


class Colour(enum.Enum):
    RED = 1

    def asked(self):
        return self.value


class Plain:
    def __init__(self):
        self.k = 1


class Descent(jtorch.optim.Optimizer):
    k = 1

    def __init__(self):
        super().__init__([jtorch.ones(1, requires_grad=True)], {"lr": 0.1})
        self.own, self.table = 1, [1]

    def asked(self):
        return self.own + self.table[0] + self.k


def descent():
    made = jtorch.optim.SGD([jtorch.ones(1, requires_grad=True)], lr=0.1)
    made.own = 1
    return made


def programmed(words):
    made = types.ModuleType("made")
    exec(compile(words, "<made>", "exec"), vars(made))
    return made


def or_else(module):
    try:
        return module.k
    except AttributeError:
        return 3


def twins():
    """Two functions of the same words, in modules of their own."""
    return [programmed("k = 1\ndef asked(): return k") for _ in range(2)]


def wrapped():
    return ctypes.c_int(1)


# what is read, what of it a region asks, and what is done to it between two calls
READ = {
    "a class of named tuples": (lambda: Point(1), lambda p: p.asked(), lambda p: setattr(Point, "asked", lambda self: 2)),
    "a class of lists": (lambda: Few([1]), lambda held: held.k, lambda held: setattr(Few, "k", 2)),
    "a class of an enum's members": (lambda: Colour.RED, lambda c: c.asked(), lambda c: setattr(Colour, "asked", lambda self: 2)),
    "other attributes": (Plain, lambda o: o.k, lambda o: setattr(o, "__dict__", {"k": 2})),
    "an attribute of an optimizer": (descent, lambda o: o.own, lambda o: setattr(o, "own", 2)),
    "an optimizer's attribute": (Descent, lambda o: o.asked(), lambda o: setattr(o, "own", 2)),
    "an optimizer's list": (Descent, lambda o: o.asked(), lambda o: o.table.insert(0, 2)),
    "an attribute of an optimizer's class": (Descent, lambda o: o.asked(), lambda o: setattr(Descent, "k", 2)),
    "a module's attribute to come": (lambda: types.ModuleType("made"), or_else, lambda m: setattr(m, "k", 2)),
    "a module's __getattr__": (lambda: programmed("def __getattr__(name): return 1"), lambda m: m.k, lambda m: setattr(m, "k", 2)),
    "one of two functions": (twins, lambda two: two[0].asked() + two[1].asked(), lambda two: setattr(two[1], "k", 3)),
    "an object of C": (wrapped, lambda v: v.value, lambda v: setattr(v, "value", 2)),
    "an exception": (lambda: ValueError(1), lambda e: e.args[0], lambda e: setattr(e, "args", (2,))),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_what_an_object_holds_may_change(name):
    make, ask, change = READ[name]
    read, x = make(), jtorch.ones(3) / 2
    compiled = jtorch.compile(lambda x: chosen(x, ask(read)))
    for _ in range(2):
        for _ in range(4):
            assert compiled(x).tolist() == chosen(x, ask(read)).tolist()
        change(read)


def test_swapped_tensors():
    """They can be swapped although a replay knows one of them, and the replay notices it."""
    read, other = jtorch.ones(3), jtorch.ones(3) * 4
    compiled = jtorch.compile(lambda x: x * read)
    for k in (1, 1, 1, 4, 4, 1):
        if read[0].item() != k:
            jtorch.utils.swap_tensors(read, other)
        assert compiled(jtorch.ones(3)).tolist() == [k] * 3
    assert compiled._region.replays, compiled._region.why


class Unbound:
    """As a proxy of what is not there."""

    def __getattribute__(self, name):
        if name == "asked":
            return 1
        raise RuntimeError(f"nothing to take {name} from")


def test_an_object_that_answers_with_errors():
    read, x = Unbound(), jtorch.ones(3)
    compiled = jtorch.compile(lambda x: chosen(x, read.asked))
    for _ in range(3):
        assert compiled(x).tolist() == chosen(x, 1).tolist()


class Ticking(jtorch.nn.Module):
    kind = 1

    def __init__(self):
        super().__init__()
        self.inner = jtorch.nn.Sequential(jtorch.nn.Linear(3, 3), jtorch.nn.Dropout(1.0))
        self.kept = [1]
        self.ticks = 0

    def forward(self, x):
        return self.inner(x) + chosen(self.inner[0](x), len(self.kept)) if self.kind == 1 else x.sin()


def test_attributes_that_are_set_back_or_read_by_nobody():
    """train() and eval() in turns, and a counter: two replays, which go on."""
    model, x = Ticking(), jtorch.ones(2, 3)
    compiled = jtorch.compile(lambda x: model(x).detach())
    for k in range(40):
        model.train(k % 4 < 2)
        model.ticks += 1
        assert compiled(x).tolist() == model(x).tolist()
    assert len(compiled._region.replays) == 2, compiled._region.why


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m, "kind", 2), lambda m: setattr(m, "kept", [1, 2]), lambda m: m.kept.append(2),
        lambda m: setattr(m.inner[1], "p", 0.0), lambda m: m.inner[1].eval(), lambda m: setattr(m.inner[0], "bias", None),
        lambda m: setattr(m, "inner", jtorch.nn.Sequential(jtorch.nn.Tanh(), jtorch.nn.Tanh())), lambda m: m.register_forward_hook(lambda m, args, out: out + 5),
        lambda m: setattr(m, "forward", lambda x: x.cos()),
    ],
)  # fmt: skip
def test_attributes_that_are_set_beside_others(change):
    model, x = Ticking(), jtorch.ones(2, 3)
    compiled = jtorch.compile(lambda x: model(x).detach())
    for k in range(12):
        model.ticks += 1
        if k == 6:
            before = model(x).tolist()
            change(model)
            assert model(x).tolist() != before
        assert compiled(x).tolist() == model(x).tolist()
    assert len(compiled._region.replays) == 2, compiled._region.why
