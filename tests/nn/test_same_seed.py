"""The same seed gives the same start values as PyTorch's, bit for bit, in every module that its own tests build."""

import numpy as np
import pytest

import jtorch
from tests.oracle import from_torch, module_builds, to_torch, torch


def _bits(tensor):
    return np.ascontiguousarray(tensor.detach().numpy()).tobytes()


def _built():
    found = {}
    for name, cls, made, called in module_builds():
        found.setdefault(name, (cls, []))[1].append((made, called))
    return found


BUILT = _built()


def _counterpart(cls):
    path = ["nn"] if hasattr(torch.nn, cls.__name__) else cls.__module__.split(".")[1:]
    root = jtorch
    for part in path:
        root = getattr(root, part)
    return getattr(root, cls.__name__)


@pytest.mark.filterwarnings("ignore:dropout option", "ignore:enable_nested_tensor")
@pytest.mark.parametrize("name", BUILT)
def test_start_values(name):
    cls, calls = BUILT[name]
    mine = _counterpart(cls)
    for seed, ((args, kwargs), (inputs, named)) in enumerate(calls):
        torch.manual_seed(seed)
        expected = cls(*args, **kwargs)
        twins = from_torch(args), from_torch(kwargs)
        jtorch.manual_seed(seed)
        got = mine(*twins[0], **twins[1])
        if "Lazy" in name:  # the values come with the first input
            expected(*inputs, **named)
            got(*from_torch(inputs), **from_torch(named))
        want, have = expected.state_dict(), got.state_dict()
        assert list(want) == list(have)
        for key, value in want.items():
            assert _bits(to_torch(have[key])) == _bits(value), f"{key} of {name}(*{args}, **{kwargs})"
        # and the generators stand at the same place
        assert torch.rand(()).item() == jtorch.rand(()).item()
