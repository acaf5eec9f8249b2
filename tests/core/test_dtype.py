"""dtypes and promotion, every pair against torch."""

import itertools

import numpy as np
import pytest

import jtorch
from jtorch.core import dtype as dtypes
from tests import oracle
from tests.oracle import torch

NAMES = sorted(n for n in dtypes.ALL if hasattr(torch, n))
pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
COMMON = [n for n in NAMES if "float8" not in n]


def outcome(module, fn):
    result = oracle.run(fn, module)
    if result.error is None:
        return str(result.value)
    return type(result.error).__name__, oracle.first_line(result.error)


@pytest.mark.parametrize("a", NAMES)
def test_promote_types(a):
    for b in NAMES:

        def promote(module, b=b):
            return module.promote_types(getattr(module, a), getattr(module, b))

        assert outcome(torch, promote) == outcome(jtorch, promote), b


@pytest.mark.parametrize("a", COMMON)
def test_result_type_of_tensors(a):
    """A tensor with dimensions decides over one without."""
    for b, (m, n) in itertools.product(COMMON, [((2,), (2,)), ((2,), ()), ((), (2,)), ((), ())]):

        def result(module, b=b, m=m, n=n):
            x = module.zeros(m, dtype=getattr(module, a))
            return module.result_type(x, module.zeros(n, dtype=getattr(module, b)))

        assert outcome(torch, result) == outcome(jtorch, result), (b, m, n)


@pytest.mark.parametrize("a", COMMON)
def test_result_type_of_numbers(a):
    for number, shape in itertools.product([True, 3, 2.5, 1j], [(2,), ()]):

        def both_ways(module, number=number, shape=shape):
            x = module.zeros(shape, dtype=getattr(module, a))
            return module.result_type(x, number), module.result_type(number, x)

        assert outcome(torch, both_ways) == outcome(jtorch, both_ways), (number, shape)


@pytest.mark.parametrize("a", COMMON)
def test_can_cast(a):
    for b in COMMON:

        def cast(module, b=b):
            return module.can_cast(getattr(module, a), getattr(module, b))

        assert outcome(torch, cast) == outcome(jtorch, cast), b


@pytest.mark.parametrize("name", NAMES)
def test_attributes(name):
    want, got = getattr(torch, name), getattr(jtorch, name)
    assert repr(want) == repr(got)
    for attribute in ("itemsize", "is_floating_point", "is_complex", "is_signed"):
        assert getattr(want, attribute) == getattr(got, attribute), attribute
    assert str(want.to_real()) == str(got.to_real())


@pytest.mark.parametrize("name", [n for n in NAMES if getattr(torch, n).is_floating_point])
def test_finfo(name):
    want, got = torch.finfo(getattr(torch, name)), jtorch.finfo(getattr(jtorch, name))
    for attribute in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution"):
        assert getattr(want, attribute) == getattr(got, attribute), attribute


@pytest.mark.parametrize("name", [n for n in NAMES if "int" in n])
def test_iinfo(name):
    want, got = torch.iinfo(getattr(torch, name)), jtorch.iinfo(getattr(jtorch, name))
    assert (want.bits, want.min, want.max) == (got.bits, got.min, got.max)


def test_default_dtype():
    assert jtorch.get_default_dtype() is jtorch.float32
    jtorch.set_default_dtype(jtorch.float64)
    try:
        assert jtorch.tensor([1.0]).dtype is jtorch.float64
        assert (jtorch.tensor([1]) / 2).dtype is jtorch.float64
        assert jtorch.tensor(1j).dtype is jtorch.complex128
        assert jtorch.zeros(2).dtype is jtorch.float64
    finally:
        jtorch.set_default_dtype(jtorch.float32)
    assert (jtorch.tensor([1]) / 2).dtype is jtorch.float32
    with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
        jtorch.set_default_dtype(jtorch.int32)


def test_of_numpy():
    assert dtypes.of(np.float32) is jtorch.float32
    with pytest.raises(TypeError, match="can't convert np.ndarray of type"):
        dtypes.of(np.dtype("U3"))
