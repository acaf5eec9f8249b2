"""What a region writes to outside: replays do it too, and go by nothing that has changed since."""

import collections
import dataclasses
import functools
import sys
import threading
import types
import typing

import pytest

import jtorch
from jtorch import nn

Box = types.SimpleNamespace
TOTAL = 0


class Owner:
    n = 0

    def __init__(self, **kept):
        self.table, self.l = {}, [0]
        self.h, self.g = jtorch.zeros(3), jtorch.ones(3)
        self.flag, self.last = False, None
        for name, value in kept.items():
            setattr(self, name, value)

    @property
    def level(self):
        return self.m

    @level.setter
    def level(self, value):
        self.m = value

    @functools.cached_property
    def elsewhere(self):
        return Box(n=0)


class Slotted:
    __slots__ = ("n",)

    def __init__(self):
        self.n = 0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.n, self.flag, self.h = 0, False, jtorch.zeros(3)
        self.register_buffer("b", jtorch.zeros(3))


@dataclasses.dataclass
class Pair:
    a: typing.Any
    b: typing.Any = None


def adds(o, x):
    o.n += 1
    o.n += len(x)
    return x.sin()


def adds_further_in(o, x):
    o.inner.n += 1
    return x.sin()


def adds_by_name(o, x):
    o.n = o.n + 1
    return x.sin()


def goes_by_it(o, x):
    o.n += 1
    return x.sin() if o.n < 4 else x.cos()


def asks_for_it(o, x):
    o.n += 1
    return x.sin() if getattr(o, "".join("n")) < 4 else x.cos()


def uses_the_sum(o, x):
    k = o.n = o.n + 1
    return x.sin() if k < 4 else x.cos()


def doubles(o, x):
    o.n = o.n * 2 + 1
    return x.sin()


def counts_to_three(o, x):
    o.n = (o.n + 1) % 3
    return x.sin() if o.n else x.cos()


def inner(o, x):
    def add():
        o.n += 1

    add()
    add()
    return x.sin()


def everywhere(o, x):
    global TOTAL
    TOTAL += 1
    o.n = TOTAL
    return x.sin()


def everywhere_unread(o, x):
    global TOTAL
    TOTAL += 1
    return x.sin()


def sets_a_property(o, x):
    o.level = 7
    return x.sin()


def keeps(o, x):
    o.last = x * 2
    return o.last.sin()


def keeps_what_it_is_given(o, x):
    o.last = x
    return x.sin()


def goes_on(o, x):
    o.h = o.h * 0.5 + x
    return o.h.sin()


def starts(o, x):
    o.last = x * 2 if o.last is None else o.last + x
    return o.last.sum()


def hands_back_the_old(o, x):
    old = o.h
    o.h = o.h + x
    return old


def moves(o, x):
    o.g = o.h
    o.h = o.h + x
    return o.g * x


def swaps(o, x):
    o.g, o.h = o.h, o.g
    return o.g * x


def makes_two_of_it(o, x):
    o.g = o.h = o.g + o.h + x
    return x.sin()


def writes_first(o, x):
    o.h.add_(x)
    o.h = o.h * 1.5
    return x.sin()


def writes_elsewhere(o, x):
    o.g.add_(x)
    o.h = o.h + o.g
    return x.sin()


def writes_to_its_argument(o, x):
    x.add_(1)
    o.h = o.h + x
    return x.sin()


def compares(o, x):
    y = x.sin() if o.h is x else x.cos()
    o.h = x * 1
    return y


def sets(o, x):
    y = x.sin() if o.flag else x.cos()
    o.flag = True
    return y


def toggles(o, x):
    y = x.sin() if o.flag else x.cos()
    o.flag = not o.flag
    return y


def puts(o, x):
    o.table["a"] = x * 2
    o.table["k"] = 3
    return x.sin()


def puts_and_asks(o, x):
    o.table["a"] = x * 2
    return x.sin() if len(o.table) < 2 else x.cos()


def counts_items(o, x):
    o.table["a"] = o.table.get("a", 0) + 1
    return x.sin()


def puts_into_a_list(o, x):
    o.l[0] = x * 2
    return x.sin()


def keeps_a_list(o, x):
    o.last = [x * 2]
    return x.sin()


def by_its_dict(o, x):
    held = o.__dict__
    held["n"] = held.get("n", 0) + 1
    return x.sin()


def by_vars(o, x):
    vars(o).update(n=len(x))
    return x.sin()


def counts_elsewhere(o, x):
    o.elsewhere.n += 1
    return x.sin()


def own_things(o, x):
    pair, made, few = Pair(x), {}, [1, 2]
    pair.b = pair.a.sin()
    made["pair"] = pair
    made.update(k=x.cos())
    few[0] = 5
    few += [3]
    return pair.b * made.pop("k") + sum(few)


def writes_rows(o, x):
    o.cache[2] = x
    o.cache[:1] = x * 2
    return o.cache.sum()


def of_a_module(net, x):
    net.n += 1
    return x.sin() if net.flag else x.cos()


def state_of_a_module(net, x):
    net.h = net.h * 0.5 + x
    net.b = net.b + x
    return net.h + net.b


def shares(o, k):
    if k in (5, 7):
        o.h = o.g


def given_again(o, k):
    return o.h if k in (4, 6) else None


def at(calls):
    """What is set before which call: {number of the call: (name, value)}."""

    def between(o, k):
        for name, value in calls.get(k, ()):
            setattr(o, name, value() if callable(value) else value)

    return between


ONES = {5: [("h", lambda: jtorch.ones(3))]}
VIEWS = {4: [("h", lambda: jtorch.arange(6.0)[::2])], 6: [("h", lambda: jtorch.ones(6)[1:4])]}
KINDS = {4: [("h", lambda: jtorch.ones(3).double())], 6: [("h", lambda: jtorch.ones(2, 3))], 8: [("h", lambda: jtorch.ones(3, requires_grad=True))]}  # fmt: skip
NUMBERS = {3: [("n", 10)], 5: [("n", 1.5)], 7: [("n", True)]}
TABLES = {4: [("table", dict)], 6: [("table", lambda: {"z": 1})]}
# (what is written to, how, what happens between the calls, whether a replay comes to stand for calls)
CASES = {
    "a counter": (Owner, adds, at(NUMBERS), True),
    "a counter by name": (Owner, adds_by_name, None, True),
    "a counter that decides": (Owner, goes_by_it, None, None),
    "a counter asked for by its name": (Owner, asks_for_it, None, None),
    "a sum that is used": (Owner, uses_the_sum, None, None),
    "a number that doubles": (Owner, doubles, None, False),
    "a number that comes again": (lambda: Owner(n=0), counts_to_three, None, True),
    "a counter of an inner function's": (Owner, inner, None, None),
    "a global counter": (Owner, everywhere_unread, None, True),
    "a global that is read": (Owner, everywhere, None, False),
    "a slot": (Slotted, adds, None, False),
    "a class": (lambda: type("Made", (), {"n": 0}), adds, None, False),
    "a namespace": (lambda: Box(n=0), adds, None, True),
    "a property": (Owner, sets_a_property, None, True),
    "a tensor": (Owner, keeps, None, True),
    "an argument": (Owner, keeps_what_it_is_given, None, True),
    "a state": (Owner, goes_on, at(ONES), True),
    "a state that is a view": (Owner, goes_on, at(VIEWS), True),
    "a state of other kinds": (Owner, goes_on, at(KINDS), True),
    "a state that is written to": (Owner, goes_on, lambda o, k: [o.h.detach().add_(k)].clear(), True),
    "a state that starts": (Owner, starts, at({4: [("last", None)]}), True),
    "the old state": (Owner, hands_back_the_old, None, None),
    "a state that moves": (Owner, moves, None, None),
    "states that change places": (Owner, swaps, None, None),
    "a state in two places": (Owner, makes_two_of_it, None, None),
    "a state that is written to first": (Owner, writes_first, None, None),
    "a state that is somebody else's too": (Owner, writes_elsewhere, shares, True),
    "a state that is the argument": (Owner, writes_to_its_argument, given_again, True),
    "a state that is compared": (Owner, compares, given_again, True),
    "a flag": (Owner, sets, at({6: [("flag", False)]}), True),
    "a flag that turns": (Owner, toggles, None, True),
    "items": (Owner, puts, at(TABLES), True),
    "items of an ordered dict": (lambda: Owner(table=collections.OrderedDict()), puts, None, True),
    "items that are asked for": (Owner, puts_and_asks, at(TABLES), True),
    "items that count": (Owner, counts_items, None, None),
    "a list": (Owner, puts_into_a_list, None, False),
    "a list that is kept": (Owner, keeps_a_list, None, False),
    "things of its own": (Owner, own_things, None, True),
    "its attributes as a dict": (Owner, by_its_dict, None, False),
    "its attributes by vars": (Owner, by_vars, None, False),
    "a property that is kept": (Owner, counts_elsewhere, None, True),
    "a counter further in": (lambda: Owner(inner=Box(n=0)), adds_further_in, lambda o, k: setattr(o, "inner", Box(n=5)) if k == 5 else None, True),
    "rows": (lambda: Box(cache=jtorch.zeros(4, 3)), writes_rows, None, True),
    "a module's counter": (Net, of_a_module, at({3: [("n", 9)], 5: [("flag", True)]}), True),
    "a module's state": (Net, state_of_a_module, at({4: [("b", lambda: jtorch.ones(3))], 6: [("h", lambda: jtorch.ones(3))]}), True),
}  # fmt: skip


def shown(o, seen):
    if isinstance(o, jtorch.Tensor):
        seen.append(o)
        first = next(k for k, t in enumerate(seen) if t is o)  # which of them are one
        return first, o.tolist(), o.requires_grad, o.dtype
    if isinstance(o, dict):
        return [(k, shown(v, seen)) for k, v in o.items() if not str(k).startswith("_") or k == "_buffers"]
    if isinstance(o, list):
        return [shown(v, seen) for v in o]
    if isinstance(o, Box):
        return shown(dict(vars(o)), seen)
    if isinstance(o, Slotted):
        return o.n
    return shown(dict(vars(o)), seen) if hasattr(o, "__dict__") else o


@pytest.mark.parametrize("case", CASES)
def test_replays_write_what_the_function_writes(case, monkeypatch):
    make, fn, between, replayed = CASES[case]
    compiled = jtorch.compile(fn)
    traces = []
    for call in (fn, compiled):
        monkeypatch.setattr(sys.modules[__name__], "TOTAL", 0)
        o, trace, kept = make(), [], []
        for k in range(10):
            x = jtorch.tensor([0.5, -1.0, 2.0]) * (k + 1)
            given = between(o, k) if between is not None else None
            x = x if given is None else given
            kept.append(call(o, x))
            trace.append(shown([kept, o, x], []) + [TOTAL])
        traces.append(trace)
    assert traces[1] == traces[0]
    if replayed is not None:
        assert (compiled._region.used > 0) == replayed, compiled._region.why


def property_of(cls):
    cls.last = property(lambda self: 0, lambda self, value: vars(self).update(seen=1))


def setter_of(cls):
    cls.__setattr__ = lambda self, name, value: object.__setattr__(self, name + "_", value)


@pytest.mark.parametrize("given", [property_of, setter_of])
def test_a_class_that_comes_to_set_its_attributes_otherwise(given):
    class Plain:
        def __init__(self):
            self.last = None

    compiled, plain, other, x = jtorch.compile(keeps_what_it_is_given), Plain(), Plain(), jtorch.ones(2)
    for k in range(6):
        if k == 4:
            given(Plain)
        compiled(plain, x)
        keeps_what_it_is_given(other, x)
        assert vars(plain).keys() == vars(other).keys()
    assert compiled._region.used


def test_counters_of_several_threads_are_not_counted_twice():
    owner, other = Owner(), threading.Event()

    def count(x):
        owner.n += 1
        if not other.is_set():  # as if another thread had counted at this moment
            between()
        owner.n -= 3
        return x.sin()

    def between():
        other.set()
        thread = threading.Thread(target=lambda: setattr(owner, "n", owner.n + 100))
        thread.start()
        thread.join()

    compiled = jtorch.compile(count)
    for _ in range(6):
        compiled(jtorch.ones(2))
    assert owner.n == 100 - 12


def test_a_dict_that_is_an_argument_is_another_one_at_each_call():
    def put(d, x):
        d["y"] = x * 2
        return x.sin()

    compiled = jtorch.compile(put)
    for k in range(4):
        d = {"x": 1}
        compiled(d, jtorch.full((3,), float(k)))
        assert d["y"].tolist() == [2.0 * k] * 3


def test_what_a_debugger_traces_is_recorded():
    owner, compiled = Owner(), jtorch.compile(adds)
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        for _ in range(3):
            compiled(owner, jtorch.ones(3))
    finally:
        sys.settrace(before)
    assert owner.n == 12
    assert not compiled._region.replays
