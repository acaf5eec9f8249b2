"""Spec: interned metadata; Size."""

import pickle

import pytest

from jtorch.core import device, dtype
from jtorch.core.spec import Size, Spec
from tests.oracle import both


def test_equal_specs_are_one_object():
    a = Spec.of((2, 3), (3, 1), dtype.float32, device.cpu)
    assert a is Spec.of((2, 3), (3, 1), dtype.float32, device.cpu) is Spec.dense((2, 3), dtype.float32, device.cpu)
    assert a is not Spec.of((2, 3), (1, 2), dtype.float32, device.cpu)
    assert a is not a.with_dtype(dtype.int32)
    assert a.with_dtype(dtype.int32).with_dtype(dtype.float32) is a


def test_contiguity():
    def spec(shape, strides):
        return Spec.of(shape, strides, dtype.float32, device.cpu).contiguous

    assert spec((2, 3), (3, 1)) and not spec((2, 3), (1, 2))
    assert spec((1, 3), (77, 1)), "the stride of a dimension of 1 does not matter"
    assert spec((0, 3), (5, 5)) and spec((), ())


def test_tpus_have_no_complex128():
    """XLA's compiler for them ends the process."""
    tpu = device.Device("tpu")
    Spec.dense((2,), dtype.complex64, tpu)
    Spec.dense((2,), dtype.complex128, device.cpu)
    for make in (Spec.dense, lambda *a: Spec.dense((2,), dtype.float64, tpu).with_dtype(dtype.complex128)):
        with pytest.raises(TypeError, match="complex128 is not supported on TPUs"):
            make((2,), dtype.complex128, tpu)


def test_size_is_a_tuple():
    def program(torch):
        s = torch.Size([2, 3, 4])
        return [
            repr(s), s.numel(), s[0], type(s[1:]).__name__, repr(s[1:]), s == (2, 3, 4), repr(s + (5,)), repr(s * 2),
            list(s), repr(torch.Size()), torch.Size().numel(), hash(s) == hash((2, 3, 4)), s.index(3), s.count(9),
        ]  # fmt: skip

    both(program)


@pytest.mark.parametrize("items", [[2.0, 3], "ab", 3, [None], [True], (1, 2.5), range(3)], ids=str)
def test_sizes_are_ints(items):
    both(lambda torch: repr(torch.Size(items)))
    both(lambda torch: repr(torch.Size([torch.tensor(2), 3])))


@pytest.mark.parametrize("ndim, dim", [(0, 0), (0, -1), (1, 1), (2, -3)])
def test_a_dimension_that_is_not_there(ndim, dim):
    both(lambda torch: torch.ones((2,) * ndim).size(dim))
    both(lambda torch: torch.ones((2,) * ndim).stride(dim=dim))


def test_size_pickles():
    assert type(pickle.loads(pickle.dumps(Size((2, 3))))) is Size
