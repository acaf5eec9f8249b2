"""What the code of a region changes outside of its tensors: replays leave nothing out."""

import collections
import contextlib
import functools
import gc
import operator
import threading

import numpy as np
import pytest

import jtorch
from tests.compile.test_noticed import chosen
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


def listed(x, held):
    found = []
    for k in held:
        found.append(chosen(x, k))
    found.insert(0, x)
    found.reverse()
    return jtorch.cat(found)


def in_a_set(x, held):
    found = set()
    for k in held:
        found.add(k)
    return chosen(x, len(found))


def yielded(x, held):
    def each(keys):
        for k in keys:
            yield chosen(x, k)

    return sum(each(held)) + sum(chosen(x, k) for k in held)


def delegated(x, held):
    def each(keys):
        yield from keys

    return sum(chosen(x, k) for k in each(held))


def managed(x, held):
    @contextlib.contextmanager
    def entered(k):
        yield k + 1

    with entered(len(held)) as k:
        return chosen(x, k)


def inside(x, held):
    y = x + 1

    def inner(z):
        return chosen(y * z, held[-1])

    return inner(x)


@pytest.mark.parametrize("function", [listed, in_a_set, yielded, delegated, managed, inside])
def test_what_a_region_makes_for_itself(function):
    """Lists, sets, generators and functions of its own leave nothing outside: it is replayed."""
    held, x = [1, 2], jtorch.ones(3) / 2
    compiled = jtorch.compile(lambda x: function(x, held))
    for k in range(2):
        for _ in range(4):
            assert compiled(x).tolist() == pytest.approx(function(x, held).tolist())
        assert len(compiled._region.replays) == k + 1, compiled._region.why
        held.append(5)


def a_generator():
    return (k % 9 for k in range(99))


def nested():
    return [[]]


OUTSIDE = {
    "a list": (list, lambda held: held.append(1) or len(held)), "a list in a new one": (nested, lambda held: [*held][0].append(1) or len(held[0])),
    "a set": (set, lambda held: held.add(len(held)) or len(held)), "a generator": (a_generator, next),
    "a method of one": (lambda: a_generator().__next__, lambda held: held()),
    "a generator in a list": (lambda: [a_generator()], lambda held: next(held[0])),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_was_there_before_the_region(name):
    make, change = OUTSIDE[name]
    held, plain, x = make(), make(), jtorch.ones(3) / 2
    by_name = jtorch.compile(lambda x: chosen(x, change(held)))
    for _ in range(6):
        assert by_name(x).tolist() == chosen(x, change(plain)).tolist()
    given = jtorch.compile(lambda x, one: chosen(x, change(one)))
    for _ in range(6):
        assert given(x, held).tolist() == chosen(x, change(plain)).tolist()


def test_what_another_thread_makes_meanwhile():
    """A list of all objects, with a tuple in it that a thread is making, would have that thread raise a SystemError."""
    kept, errors, done = [[] for _ in range(100_000)], [], []

    def make():
        while not done:
            try:
                tuple(k for k in range(200))
            except SystemError as error:
                errors.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    for size in range(1, 9):
        jtorch.compile(lambda x: x.sin())(jtorch.ones(size))
    done.append(kept)
    thread.join()
    assert not errors
