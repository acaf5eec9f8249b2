"""printing.py against PyTorch's own repr, over values, shapes, dtypes and options."""

import contextlib

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jtorch
from jtorch import printing
from jtorch.core import dtype as dtypes

torch = pytest.importorskip("torch")

NAMES = [
    "float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int64", "int32", "int16",
    "int8", "uint8", "bool", "complex64", "complex128",
]  # fmt: skip
NARROW = {
    "bfloat16": (torch.int16, ml_dtypes.bfloat16),
    "float8_e4m3fn": (torch.uint8, ml_dtypes.float8_e4m3fn),
    "float8_e5m2": (torch.uint8, ml_dtypes.float8_e5m2),
}


def to_numpy(t):
    name = str(t.dtype)[6:]
    t = t.detach()
    if name in NARROW:
        integer, real = NARROW[name]
        return t.contiguous().view(integer).numpy().view(real)
    return t.numpy()


def ours(t, **kw):
    return printing.format_tensor(to_numpy(t), dtype=dtypes.ALL[str(t.dtype)[6:]], **kw)


@contextlib.contextmanager
def both(**kw):
    with torch._tensor_str.printoptions(**kw), printing.printoptions(**kw):
        yield


def check(t, **kw):
    assert ours(t, **kw) == repr(t)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-4, 9e-5, 1e8, 1.1e8, 1e10, 1e-30, 1234.5678, 999.99, 0.1, 3.0, 100.0,
           float("inf"), -float("inf"), float("nan"), 1e300, 2.5e-310]  # fmt: skip
numbers = st.one_of(
    st.sampled_from(SPECIAL), st.floats(width=32), st.integers(-5, 5).map(float), st.floats(-2, 2, width=32)
)
shapes = st.one_of(
    st.just(()),
    st.lists(st.integers(0, 5), min_size=1, max_size=4).map(tuple),
    st.tuples(st.integers(0, 40)),
    st.tuples(st.integers(1, 3), st.integers(10, 30)),
)
option_sets = st.fixed_dictionaries(
    {},
    optional={
        "precision": st.integers(0, 8),
        "threshold": st.sampled_from([0, 3, 10, 50, 1000]),
        "edgeitems": st.integers(0, 4),
        "linewidth": st.sampled_from([1, 20, 40, 80, 120]),
        "profile": st.sampled_from(["default", "short", "full"]),
        "sci_mode": st.sampled_from([None, True, False]),
    },
)


@st.composite
def tensors(draw):
    dtype = getattr(torch, draw(st.sampled_from(NAMES)))
    shape = draw(shapes)
    size = int(np.prod(shape))
    pool = draw(st.lists(numbers, min_size=1, max_size=6))
    picks = draw(st.lists(st.integers(0, len(pool) - 1), min_size=1, max_size=20))
    values = [pool[i] for i in picks]
    flat = torch.tensor([values[i % len(values)] for i in range(size)], dtype=torch.float64)
    if dtype.is_complex:
        flat = torch.complex(flat, flat.flip(0))
    elif not dtype.is_floating_point:
        flat = flat.nan_to_num(0, 100, 0).clamp(0 if dtype in (torch.uint8, torch.bool) else -100, 100)
    return flat.to(dtype).reshape(shape)


@settings(max_examples=300, deadline=None)
@given(tensors(), option_sets)
def test_like_torch(t, changes):
    with both(**changes):
        check(t)


@pytest.mark.parametrize("name", NAMES)
def test_summarised(name):
    dtype = getattr(torch, name)
    for shape in ((2000,), (10, 300), (300, 10), (11, 11, 11), (2, 3, 4, 50), (5, 400)):
        n = int(np.prod(shape))
        t = (torch.arange(n, dtype=torch.float64) / 7 % 90).to(dtype).reshape(shape)
        check(t)
        picked = to_numpy(t)[np.ix_(*printing.summary(shape))]
        assert printing.format_tensor(picked, dtype=dtypes.ALL[name], shape=shape) == repr(t)


def test_notes():
    x = torch.ones(3, requires_grad=True)
    check(x, requires_grad=True)
    check(x + 1, grad_fn_name="AddBackward0", requires_grad=True)
    for n in range(1, 20):  # every place at which the note may have to go to the next line
        y = torch.rand(n, dtype=torch.float64, requires_grad=True)
        check(y * 2, grad_fn_name="MulBackward0")
        check(torch.zeros(0, n, requires_grad=True), requires_grad=True)
    text = printing.format_tensor(np.ones(2, np.float32), dtype=dtypes.float32, device="cuda:0")
    assert text == "tensor([1., 1.], device='cuda:0')"
    for t in (torch.zeros(2, 3, device="meta"), torch.zeros(2, device="meta", dtype=torch.int64)):
        args = {"dtype": dtypes.ALL[str(t.dtype)[6:]], "shape": tuple(t.shape), "device": "meta"}
        assert printing.format_tensor(None, **args) == repr(t)


def test_contents():
    for kind in (jtorch, torch):
        t = kind.ones(2, dtype=kind.float64, requires_grad=True)
        assert (t * 2).__repr__(tensor_contents="as it is") == (
            "tensor(as it is, dtype=torch.float64, grad_fn=<MulBackward0>)"
        )


def test_subclass_name():
    class Long(torch.Tensor):
        pass

    t = torch.arange(60.0).as_subclass(Long)
    assert ours(t, class_name="Long") == repr(t)


@pytest.mark.parametrize("default", ["float64", "float16"])
def test_default_dtype(default):
    cases = [torch.ones(2, dtype=getattr(torch, n)) for n in NAMES] + [torch.zeros(0, dtype=torch.float64)]
    try:
        torch.set_default_dtype(getattr(torch, default))
        dtypes.default.dtype = dtypes.ALL[default]
        for t in cases:
            check(t)
    finally:
        torch.set_default_dtype(torch.float32)
        dtypes.default.dtype = dtypes.float32


def test_options():
    for changes in ({}, {"profile": "short"}, {"profile": "full", "precision": 2}, {"sci_mode": True}):
        with both(**changes):
            assert printing.get_printoptions() == torch._tensor_str.get_printoptions()
    assert printing.get_printoptions() == torch._tensor_str.get_printoptions()
