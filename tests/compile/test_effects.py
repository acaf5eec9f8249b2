"""What the code of a region changes outside of its tensors: replays leave nothing out."""

import collections
import contextlib
import functools
import gc
import operator

import numpy as np
import pytest

import jtorch
from tests.oracle import both


def added(held):
    held += [1]


def united(held):
    held |= {len(held)}


def counted(held):
    held |= {len(held): 1}


def summed(held):
    held += 1


class Owner:
    k = 0

    def __init__(self):
        self.put = functools.partial(setattr, self, "k")

    def __len__(self):
        return self.k

    def __iter__(self):
        return iter(range(self.k))


class Stack(contextlib.ExitStack):
    def __iter__(self):
        return iter(range(len(self._exit_callbacks)))


# what is kept outside, and how a region changes it without an instruction that says so
IN_PLACE = {
    "+= of a list": (list, added), "|= of a set": (set, united), "|= of a dict": (dict, counted), "+= of a deque": (collections.deque, added),
    "+= of an array": (lambda: np.zeros(2), summed), "out=": (lambda: np.zeros(2), lambda a: np.add(a, 1, out=a)),
    "copyto": (lambda: np.zeros(2), lambda a: np.copyto(a, a + 1)), "map": (list, lambda held: list(map(held.append, [1]))),
    "partial": (list, lambda held: functools.partial(held.append, 1)()), "methodcaller": (list, lambda held: operator.methodcaller("append", 1)(held)),
    "setattr": (Owner, lambda o: list(map(setattr, [o], ["k"], [len(o) + 1]))), "partial of setattr": (Owner, lambda o: o.put(len(o) + 1)),
    "ExitStack": (Stack, lambda s: s.callback(len, ())),
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


@pytest.mark.parametrize("say", [functools.partial(print, "said"), lambda: list(map(print, ["said"]))])
def test_what_is_printed_without_a_call(say, capsys):
    def region(x):
        say()
        return x * 2

    compiled = jtorch.compile(region)
    for _ in range(5):
        compiled(jtorch.ones(3))
    assert capsys.readouterr().out == "said\n" * 5


def test_what_is_written_where_the_collector_does_not_look():
    written = jtorch.zeros(3)
    gc.freeze()
    try:
        compiled = jtorch.compile(lambda x: (written.copy_(x * 2), x + 1)[1])
        for k in range(4):
            compiled(jtorch.ones(3) * k)
            assert written.tolist() == [2.0 * k] * 3
    finally:
        gc.unfreeze()
