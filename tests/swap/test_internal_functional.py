"""swap/internal/functional.py and reduction.py: PyTorch's helpers of torch.nn.functional, by comparison with them."""

import functools
import inspect
import warnings

import pytest

import jtorch
from jtorch.dispatch import override
from jtorch.swap.internal import functional as ours
from jtorch.swap.internal import reduction

torch = pytest.importorskip("torch")
theirs = torch.nn.functional


def told(function, *args):
    """What a call returns or raises, and the warnings that it gives; tensors as (numbers, strides)."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            out = function(*args)
        except (AssertionError, ValueError) as error:
            out = type(error), str(error)
    if isinstance(out, (tuple, list)) and hasattr(out[0], "stride"):
        out = [(x.tolist(), x.stride()) for x in out]
    return out, [str(w.message) for w in said]


def both(name, make, *args):
    """The outcome of a helper with tensors made by either library."""
    left = told(getattr(theirs, name), *make(torch), *args)
    assert left == told(getattr(ours, name), *make(jtorch), *args), name
    return left


def test_projections():
    def make(lib, same="qkv", bias=True):
        def whole(*shape):  # whole numbers: sums are the same in any order
            return lib.arange(3.0 * lib.empty(shape).numel())[::3].reshape(shape) % 7

        q, other = whole(2, 3, 4), whole(5, 3, 4) + 1
        k = q if same == "qkv" else other
        return q, k, k if same in ("qkv", "kv") else other + 1, whole(12, 4), whole(12) if bias else None

    for same in ("qkv", "kv", ""):
        for bias in (True, False):
            both("_in_projection_packed", functools.partial(make, same=same, bias=bias))

    def separate(lib, weight, bias):
        return *[lib.ones(2, 4)] * 3, lib.ones(4, 4), *[lib.ones(weight)] * 2, None, lib.ones(bias)

    for weight, bias in (((4, 4), (4,)), ((3, 4), (4,)), ((4, 4), (3,))):
        both("_in_projection", functools.partial(separate, weight=weight, bias=bias))


def test_checks():
    ones = [lambda lib, shape=shape: (lib.ones(shape),) for shape in ((2, 3), (3, 2))]
    for make in ones:
        both("_check_key_padding_mask", make, 3, 2)
    for size in ([1, 5], [1, 5, 1], [2, 5], [1, 5, 2]):
        both("_verify_batch_size", lambda lib: (), size)
        both("_verify_spatial_size", lambda lib: (), size)
    for ndim in range(5):
        both("_get_softmax_dim", lambda lib: (), "softmax", ndim, 3)
    for wanted in (None, [5, 6], [1, 1, 5, 6], [5], [9, 6]):
        both("_unpool_output_size", lambda lib: (lib.ones(1, 1, 2, 3),), [2, 2], [2, 2], [0, 0], wanted)
    both("_mha_shape_check", lambda lib: [lib.ones(2, 3)] * 3, None, None, 1)


def test_reductions():
    for name in ("none", "mean", "elementwise_mean", "sum", "product"):
        assert told(theirs._Reduction.get_enum, name) == told(reduction.get_enum, name)
    for size_average in (None, True, False):
        for reduce in (None, True, False):
            for name in ("legacy_get_string", "legacy_get_enum"):
                wanted = told(getattr(theirs._Reduction, name), size_average, reduce)
                assert told(getattr(reduction, name), size_average, reduce) == wanted


def test_parameters_have_torchs_names():
    """Copies of attention in packages give them by name. Also once functions look for `__torch_function__`, under which all take anything."""
    override.arm()
    for name in ("_canonical_mask", "_none_or_dtype", "_mha_shape_check", "_in_projection", "_in_projection_packed"):
        assert list(inspect.signature(getattr(ours, name)).parameters) == list(
            inspect.signature(getattr(theirs, name)).parameters
        ), name
