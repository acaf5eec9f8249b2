"""Numbers as parts of keys: what they give back, and which are equal."""

import pytest

import jtorch
from jtorch.core import packing
from jtorch.core.keys import number_key


@pytest.mark.parametrize("x", [1, 1.0, True, -0.0, 0.0, 2**40, 1j, float("inf")])
def test_keys_give_the_number_back(x):
    key = number_key(x)
    back = packing.plain(key)
    assert type(back) is type(x) and repr(back) == repr(x)


def test_keys_of_nan():
    assert number_key(float("nan")) is number_key(-float("nan"))
    assert number_key(complex("nan+1j")) == number_key(complex("nan+1j"))
    assert number_key(-0.0) != number_key(0.0)


def test_int_and_float_keys_differ_through_the_plan():
    """1, 1.0 and True are equal, so their types are part of the plan."""
    x = jtorch.ones(2, dtype=jtorch.int64)
    assert [(x * k).dtype for k in (1, 1.0, True)] == [jtorch.int64, jtorch.float32, jtorch.int64]
