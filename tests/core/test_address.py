"""data_ptr on the CPU: an address that can be read, and that stays."""

import ctypes

import numpy as np

import jtorch


def read(t):
    count = t.numel()
    pointer = ctypes.cast(t.data_ptr(), ctypes.POINTER(ctypes.c_float * count))
    return np.array(pointer.contents)


def test_memory_can_be_read():
    x = jtorch.arange(6.0).reshape(2, 3) * 2
    before = x.data_ptr()
    assert read(x).tolist() == [0, 2, 4, 6, 8, 10]
    x.add_(1)
    assert x.data_ptr() == before and read(x).tolist() == [1, 3, 5, 7, 9, 11]
    assert read(x[1]).tolist() == [7, 9, 11] and x[1].data_ptr() == before + 12
    turned = (jtorch.arange(6.0).reshape(2, 3).t() + 0).t()  # computed in the order of its memory
    assert read(turned.contiguous()).tolist() == [0, 1, 2, 3, 4, 5]


def test_apart():
    a = jtorch.ones(4)
    b = a.clone()
    assert a.data_ptr() != b.data_ptr() and jtorch.empty(0).data_ptr() == 0
    assert jtorch.ones(2, device="meta").data_ptr() == 0
