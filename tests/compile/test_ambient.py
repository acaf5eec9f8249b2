"""What a region asks its surroundings: loggers, variables of the context, modules that it imports."""

import argparse
import contextvars
import logging
import sys
import types

import jtorch
from tests.compile.test_noticed import CHOICES, chosen

LOG = logging.getLogger("jtorch.tests.compile.asked")
CHOSEN = contextvars.ContextVar("chosen", default=1)


class Table(dict):
    """Says by itself how its things are set."""

    def __setitem__(self, key, value):
        super().__setitem__(key, value)


def logs(x):
    LOG.debug("of %s", x.shape)
    return chosen(x, LOG.isEnabledFor(logging.DEBUG))


def asks_the_context(x):
    return chosen(x, CHOSEN.get())


def imports(x):
    import argparse  # noqa: PLC0415  what the test is of

    return chosen(x, argparse.ONE)


def imports_a_name(x):
    from tests.compile.test_noticed import CHOICES as choices  # noqa: PLC0415

    return choices[len(choices) - 1](x)


class Hearing(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)


def test_what_is_logged_and_by_whom_it_is_heard():
    compiled = jtorch.compile(logs)
    x, hearing = jtorch.tensor([0.5]), Hearing()
    LOG.addHandler(hearing)
    LOG.setLevel(logging.WARNING)
    for level, said in (
        (None, 0),
        (None, 0),
        (None, 0),
        (logging.DEBUG, 1),
        (None, 2),
        (logging.WARNING, 2),
        (None, 2),
    ):
        if level is not None:
            LOG.setLevel(level)
        assert compiled(x).tolist() == logs(x).tolist()
        assert len(hearing.records) == 2 * said  # the function itself says it too
    assert compiled._region.used
    LOG.removeHandler(hearing)


def test_a_variable_of_the_context():
    compiled, x = jtorch.compile(asks_the_context), jtorch.tensor([0.5])
    for k in (1, 1, 1, 2, 2, 1, 3):
        token = CHOSEN.set(k)
        assert compiled(x).tolist() == asks_the_context(x).tolist()
        CHOSEN.reset(token)
    assert compiled._region.used


def test_imports_of_what_is_there(monkeypatch):
    monkeypatch.setattr(argparse, "ONE", 1, raising=False)
    compiled, again, x = jtorch.compile(imports), jtorch.compile(imports_a_name), jtorch.tensor([0.5])
    other = types.ModuleType("argparse")
    other.ONE = 2
    for k in range(8):
        if k == 5:
            monkeypatch.setitem(sys.modules, "argparse", other)
        if k == 6:
            monkeypatch.setattr("tests.compile.test_noticed.CHOICES", CHOICES[:3])
        assert compiled(x).tolist() == imports(x).tolist()
        assert again(x).tolist() == imports_a_name(x).tolist()
    assert compiled._region.used
    assert again._region.used


def test_methods_that_change_what_the_run_has_made():
    def fill(x):
        table = Table()
        table["a"] = x.sin()
        table.__setitem__("b", 3)
        return table["a"]

    compiled, x = jtorch.compile(fill), jtorch.tensor([0.5])
    assert [compiled(x).tolist() for _ in range(3)] == [x.sin().tolist()] * 3
    assert compiled._region.used
