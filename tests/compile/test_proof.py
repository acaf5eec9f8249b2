"""What a compiled function reads besides its arguments: a change to it is seen at the next call, and draws stay draws."""

import random
import types
from random import uniform

import numpy as np
import pytest

import jtorch


class Settings:
    scale = 2.0
    inner = types.SimpleNamespace(k=3.0)
    table = {"a": 1.0}


class Scaled:
    by = 1.0

    def of(this, x):
        return x * this.by

    @classmethod
    def of_class(cls, x):
        return x * cls.by


class Derived(Scaled):
    pass


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
    "inherited no longer": (lambda x: x * Derived.by, lambda: delattr(Derived, "by")),
    "default dtype": (lambda x: x + jtorch.ones(3), lambda: jtorch.set_default_dtype(jtorch.float64)),
}


@pytest.mark.parametrize("name", READ)
def test_what_is_read_may_change(name):
    function, change = READ[name]
    rows = 2 + list(READ).index(name)  # a shape of its own: a number that another test has varied is an input anyway
    compiled, x = jtorch.compile(function), jtorch.ones(rows, 3)
    for _ in range(4):
        compiled(x)
    assert compiled._region.replays
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
