"""`_version` after each in-place method of a tensor, against torch: one sample a method, and those that change a layout or memory."""

import pytest

pytest.importorskip("torch")

import jtorch
from jtorch.ops import registry
from tests.oracle import from_torch, op_db, torch

# In-place forms of the op table come from one function: two stand for them all.
FROM_TABLE = {name + "_" for name, op in registry.OPS.items() if op.inplace} - {"add_", "masked_fill_"}
METHODS = {name for name in dir(torch.Tensor) if name.endswith("_") and not name.startswith("_")} - FROM_TABLE


def _samples():
    """name of an in-place method -> (tensor, args, kwargs) that torch takes, a small one."""
    found = {}
    for op in op_db:
        names = {getattr(op.inplace_variant, "__name__", ""), op.name.rpartition(".")[2] + "_"} & METHODS
        if not names - found.keys() or torch.float64 not in op.dtypes or op.name.startswith("sparse"):
            continue
        for sample in op.sample_inputs("cpu", torch.float64):
            if not isinstance(sample.input, torch.Tensor):
                continue
            for name in names - found.keys():
                try:
                    getattr(sample.input.clone(), name)(*sample.args, **sample.kwargs)
                except Exception:  # this sample is not for the method: the next one may be
                    continue
                found[name] = (sample.input, sample.args, sample.kwargs)
            if names <= found.keys():
                break
    return found


def test_methods():
    samples = _samples()
    assert len(samples) > 15
    differ = {}
    for name, (t, args, kwargs) in samples.items():
        mine, my_args, my_kwargs = from_torch((t.clone(), args, kwargs))
        t, before, mine_before = t.clone(), 0, mine._version
        getattr(t, name)(*args, **kwargs)
        getattr(mine, name)(*my_args, **my_kwargs)
        if t._version - before != mine._version - mine_before:
            differ[name] = (t._version, mine._version - mine_before)
    assert not differ


CALLS = [
    "t.resize_(6)", "t.resize_(3, 2)", "t.resize_(9)", "t.resize_as_(M.zeros(3, 2))", "t.set_()", "t.detach_()",
    "t.requires_grad_()", "t.apply_(lambda v: v)", "t.map_(M.ones(3, 2), lambda a, b: a)", "t.fill_diagonal_(1)",
    "t.data.add_(1)", "t.detach().add_(1)", "t.t().add_(1)", "t.swapaxes_(0, 1)", "t.__iadd__(1)", "t.random_()",
    "M.add(t, 1, out=t)", "M.zeros(1)[0:1].addbmm_(M.ones(2, 3, 4), M.ones(2, 4, 5))._version",
    "t.add_(1).__setattr__('data', M.ones(2)) or t.add_(1)[0]._version",
    "t.unsafe_split(1)[0].add_(1).squeeze_(0)._version", "t.unsafe_chunk(3)[0].detach().add_(1)._version",
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_calls(call):
    seen = []
    for module in (torch, jtorch):
        t = module.zeros(3, 2)
        got = eval(call, {"t": t, "M": module})
        seen.append((t._version, got if isinstance(got, int) else None))
    assert seen[0] == seen[1]
