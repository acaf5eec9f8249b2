"""What the code of a region asks and changes: replays notice it, and leave nothing out."""

import argparse
import collections
import dataclasses
import functools
import operator
import sys
import threading
import types
import weakref

import numpy as np
import pytest

import jtorch
from tests.oracle import both

CHOICES = (
    jtorch.sin, jtorch.cos, jtorch.exp, jtorch.tanh, jtorch.sigmoid, jtorch.neg, jtorch.abs, jtorch.square, jtorch.atan, jtorch.erf,
)  # fmt: skip


def chosen(x, k):
    """Another function for each number: a number in the program would be an input of it."""
    return CHOICES[int(k) % len(CHOICES)](x)


@dataclasses.dataclass(order=True)
class Config:
    scale: int = 1


class Point:
    __match_args__ = ("x",)

    def __init__(self):
        self.x, self.y, self.table = 1, 1, {"k": 1}

    def asked(self):
        return self.x

    again = property(operator.attrgetter("x"))


class Other(Point):
    def asked(self):
        return 5


class Described:
    class Descriptor:
        k = 1

        def __get__(this, instance, owner):
            return this.k

    d = Descriptor()


class Hidden(list):
    def __iter__(self):
        return iter(())


def optimizer(lr):
    return jtorch.optim.SGD([jtorch.ones(1, requires_grad=True)], lr=lr)


def by_keyword(point):
    match point:
        case Point(y=1):
            return 1
        case Point(y=k):
            return k


def by_place(point):
    match point:
        case Point(1):
            return 1
    return 2


class Keyed:
    """An object that is only known by a weak reference."""


@functools.singledispatch
def dispatched(value):
    return 1


def hooked(module):
    module.register_forward_hook(lambda module, args, out: out[None])
    return module


# what is read, what of it a region asks, and what is done to it between two calls
READ = {
    "an object's class": (Point, lambda p: p.asked(), lambda p: setattr(p, "__class__", Other)),
    "a pattern by keyword": (Point, by_keyword, lambda p: setattr(p, "y", 3)),
    "a pattern by place": (Point, by_place, lambda p: setattr(p, "x", 3)),
    "two dataclasses": (Config, lambda c: 1 if c == Config() else 2, lambda c: setattr(c, "scale", 3)),
    "their order": (Config, lambda c: 1 if c < Config(2) else 2, lambda c: setattr(c, "scale", 3)),
    "the words of one": (Config, lambda c: len(f"{c}"), lambda c: setattr(c, "scale", 300)),
    "in a list": (Config, lambda c: 1 if c in (Config(),) else 2, lambda c: setattr(c, "scale", 3)),
    "a namespace": (lambda: types.SimpleNamespace(q=1), lambda n: len(str(n)), lambda n: setattr(n, "q", 123)),
    "another namespace": (lambda: argparse.Namespace(q=1), lambda n: n.q, lambda n: setattr(n, "q", 2)),
    "UserDict": (lambda: collections.UserDict(a=1), lambda d: d["a"], lambda d: d.update(a=2)),
    "UserList": (lambda: collections.UserList([1]), lambda d: d[0], lambda d: d.insert(0, 2)),
    "ChainMap": (lambda: collections.ChainMap({}, {"a": 1}), lambda d: d["a"], lambda d: d.maps[1].update(a=2)),
    "attrgetter": (Point, operator.attrgetter("x"), lambda p: setattr(p, "x", 2)),
    "methodcaller": (Point, operator.methodcaller("asked"), lambda p: setattr(p, "x", 2)),
    "a property of attrgetter": (Point, lambda p: p.again, lambda p: setattr(p, "x", 2)),
    "a descriptor": (Described, lambda o: o.d, lambda o: setattr(type(o).__dict__["d"], "k", 2)),
    "a module's list": (lambda: sys.argv, lambda _: len(sys.argv), lambda _: sys.argv.append("a")),
    "a tensor's attribute": (lambda: jtorch.ones(2), lambda t: 2 if hasattr(t, "own") else 1, lambda t: setattr(t, "own", 1)),
    "whether it has a gradient": (lambda: jtorch.ones(2), lambda t: 1 if t.grad is None else 2, lambda t: setattr(t, "grad", jtorch.ones(2))),
    "singledispatch": (lambda: dispatched, lambda _: dispatched(1), lambda _: dispatched.register(int, lambda value: 2)),
    "hooks dropped by hand": (lambda: hooked(jtorch.nn.Identity()), lambda m: int(m(jtorch.ones(1)).ndim), lambda m: m._forward_hooks.clear()),
    "a setting of an optimizer": (lambda: optimizer(1.0), lambda o: o.param_groups[0]["lr"], lambda o: o.param_groups[0].update(lr=2.0)),
    "any setting": (lambda: optimizer(1.0), lambda o: sum(v == 0 for v in o.param_groups[0].values()), lambda o: o.param_groups[0].update(momentum=2)),
    "groups": (lambda: optimizer(1.0), lambda o: len(o.param_groups), lambda o: o.param_groups.append({"params": []})),
    "a schedule": (lambda: jtorch.optim.lr_scheduler.StepLR(optimizer(1.0), 1), lambda s: s.last_epoch, lambda s: vars(s).update(last_epoch=2)),
    "a dataset": (lambda: jtorch.utils.data.TensorDataset(jtorch.ones(2)), lambda d: d.tensors[0].ndim, lambda d: vars(d).update(tensors=(jtorch.ones(1, 1),))),
    "a list of its own class": (lambda: Hidden([1]), lambda held: held[0], lambda held: held.insert(0, 2)),
    "precision": (lambda: jtorch, lambda _: 1 if jtorch.backends.cuda.matmul.allow_tf32 else 2, lambda _: jtorch.set_float32_matmul_precision("high")),
    "autocast's dtype": (lambda: jtorch, lambda _: 1 if jtorch.get_autocast_dtype("cpu") == jtorch.bfloat16 else 2, lambda _: jtorch.set_autocast_dtype("cpu", jtorch.float16)),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_what_is_asked_of_things_may_change(name):
    make, ask, change = READ[name]
    read, x, argv = make(), jtorch.ones(3) / 2, list(sys.argv)
    compiled = jtorch.compile(lambda x: chosen(x, ask(read)))
    try:
        for _ in range(2):
            for _ in range(4):
                assert compiled(x).tolist() == chosen(x, ask(read)).tolist()
            change(read)
    finally:
        sys.argv[:] = argv
        jtorch.set_float32_matmul_precision("highest")
        jtorch.set_autocast_dtype("cpu", jtorch.bfloat16)


def test_a_view_of_a_dict():
    kept = {"a": 1}
    view = types.MappingProxyType(kept)
    compiled, x = jtorch.compile(lambda x: chosen(x, view["a"])), jtorch.ones(3) / 2
    for k in (1, 1, 1, 1, 2, 2):
        kept["a"] = k
        assert compiled(x).tolist() == chosen(x, k).tolist()
    assert compiled._region.replays, compiled._region.why


def test_a_distribution_that_is_given_another_parameter():
    made = jtorch.distributions.Normal(jtorch.zeros(3), jtorch.ones(3))
    compiled, x = jtorch.compile(lambda x: made.log_prob(x)), jtorch.ones(3)
    for _ in range(2):
        for _ in range(4):
            assert compiled(x).tolist() == pytest.approx(made.log_prob(x).tolist())
        made.loc = jtorch.ones(3) * 3


def test_weak_references():
    held = Keyed()
    held.k = 1
    reference = weakref.ref(held)
    compiled = jtorch.compile(lambda x: chosen(x, 3 if reference() is None else reference().k))
    x = jtorch.ones(3) / 2
    for k in (1, 1, 1, 1, 2, 2):
        held.k = k
        assert compiled(x).tolist() == chosen(x, k).tolist()
    del held
    assert compiled(x).tolist() == chosen(x, 3).tolist()


def test_what_each_thread_has_for_itself():
    own = threading.local()
    own.k, found, x = 1, [], jtorch.ones(3) / 2
    compiled = jtorch.compile(lambda x: chosen(x, own.k))

    def run():
        own.k = 2
        found.append(compiled(x).tolist())

    for _ in range(4):
        compiled(x)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [chosen(x, 2).tolist()]


def test_attributes_and_gradients_of_arguments():
    attributes = jtorch.compile(lambda x: chosen(x, x.scale if hasattr(x, "scale") else 3))
    named = jtorch.compile(lambda x: chosen(x, x.scale))
    gradients = jtorch.compile(lambda x: chosen(x, 1 if x.grad is None else 2))
    for k in (None, None, None, None, 1, 1, 2, None):
        x = jtorch.ones(3) / 2
        if k is not None:
            x.scale, x.grad = k, jtorch.ones(3)
            assert named(x).tolist() == chosen(x, k).tolist()
        assert attributes(x).tolist() == chosen(x, 3 if k is None else k).tolist()
        assert gradients(x).tolist() == chosen(x, 1 if k is None else 2).tolist()
    assert attributes._region.replays and gradients._region.replays


def test_which_tensor_an_argument_is():
    kept = jtorch.ones(3) / 2
    pair = jtorch.compile(lambda x, y: chosen(x, 1 if x is y else 2))
    known = jtorch.compile(lambda x: chosen(x, 1 if x is kept else 2))
    for _ in range(4):
        assert pair(kept, kept).tolist() == chosen(kept, 1).tolist()
        assert known(jtorch.ones(3) / 2).tolist() == chosen(kept, 2).tolist()
    assert pair._region.replays and known._region.replays
    assert pair(kept, kept.detach()).tolist() == chosen(kept, 2).tolist()
    for _ in range(3):
        assert known(kept).tolist() == chosen(kept, 1).tolist()
        assert known(kept.detach()).tolist() == chosen(kept, 2).tolist()


def added(held):
    held += [1]


def united(held):
    held |= {len(held)}


def counted(held):
    held |= {len(held): 1}


def summed(held):
    held += 1


# what is kept outside, and how a region changes it without an instruction that says so
IN_PLACE = {
    "+= of a list": (list, added), "|= of a set": (set, united), "|= of a dict": (dict, counted), "+= of a deque": (collections.deque, added),
    "+= of an array": (lambda: np.zeros(2), summed), "out=": (lambda: np.zeros(2), lambda a: np.add(a, 1, out=a)),
    "copyto": (lambda: np.zeros(2), lambda a: np.copyto(a, a + 1)), "map": (list, lambda held: list(map(held.append, [1]))),
    "partial": (list, lambda held: functools.partial(held.append, 1)()), "methodcaller": (list, lambda held: operator.methodcaller("append", 1)(held)),
    "__init__": (list, lambda held: held.__init__([0] * (len(held) + 1))), "key": (list, lambda held: sorted([1], key=held.append)),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_PLACE)
def test_what_a_region_changes_in_place(name):
    make, change = IN_PLACE[name]
    held, plain = make(), make()

    def region(x):
        change(held)
        return x * 2

    compiled = jtorch.compile(region)
    for _ in range(5):
        change(plain)
        compiled(jtorch.ones(3))
        assert list(held) == list(plain)


def test_arguments_changed_in_place():
    def region(x, numbers, table):
        numbers += [len(numbers)]
        table |= {"b": x}
        return x * 2

    compiled = jtorch.compile(region)
    for _ in range(4):
        numbers, table, x = [1], {"a": 1}, jtorch.ones(3)
        compiled(x, numbers, table)
        assert numbers == [1, 1] and list(table) == ["a", "b"] and table["b"] is x


def other_names(t):
    kept, options = [1], {} if t is jtorch else {"backend": "eager"}
    given = t.compile(lambda x, y: (x * 2, y), **options)
    outside = t.compile(lambda x: (x * 2, kept), **options)
    twice = t.compile(lambda x: (lambda made: (made, {"a": made}))([x * 2]), **options)
    found = []
    for _ in range(4):
        argument = [t.ones(3), 3]
        one, other = twice(t.ones(3))
        found.append((given(t.ones(3), argument)[1] is argument, outside(t.ones(3))[1] is kept, one is other["a"]))
    return found


def test_lists_that_have_another_name():
    both(other_names)


# what a region leaves changed in the thread, how that is asked, and how it is undone
LEFT = {
    "the gradient mode": (lambda: jtorch.set_grad_enabled(False), jtorch.is_grad_enabled, lambda: jtorch.set_grad_enabled(True)),
    "autocast": (lambda: jtorch.set_autocast_enabled("cpu", True), lambda: jtorch.is_autocast_enabled("cpu"), lambda: jtorch.set_autocast_enabled("cpu", False)),
    "how tensors are printed": (lambda: jtorch.set_printoptions(precision=2), lambda: str(jtorch.tensor(1.2345)), lambda: jtorch.set_printoptions(profile="default")),
    "anomaly mode": (lambda: jtorch.autograd.set_detect_anomaly(True), jtorch.is_anomaly_enabled, lambda: jtorch.autograd.set_detect_anomaly(False)),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_what_a_region_leaves_changed(name):
    change, ask, undo = LEFT[name]

    def region(x):
        change()
        return x * 2

    before, compiled = ask(), jtorch.compile(region)
    for _ in range(4):
        try:
            compiled(jtorch.ones(3))
            assert ask() != before
        finally:
            undo()
        assert ask() == before


def test_hooks_that_a_region_registers():
    weight = jtorch.ones(3, requires_grad=True)

    def region(x):
        weight.register_hook(lambda grad: grad * 2)
        return x * 2

    compiled = jtorch.compile(region)
    for _ in range(4):
        compiled(jtorch.ones(3))
    weight.sum().backward()
    assert weight.grad[0].item() == 16.0
