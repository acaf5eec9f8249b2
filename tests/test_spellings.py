"""numpy's spellings of arguments: where PyTorch takes axis=, keepdims=, x=, a=, x1= or x2=, jtorch does. The table is generated from
PyTorch's samples; tensors are on the meta device, since it is only asked whether a call is taken."""

import itertools

import pytest

import jtorch
from jtorch.ops import registry
from tests.oracle import from_torch, op_db, torch

SPELLINGS = {"dim": "axis", "keepdim": "keepdims", "dim0": "axis0", "dim1": "axis1", "input": "x a x1", "other": "x2"}
DIMS = {"dim", "keepdim", "dim0", "dim1"}
EXTRA = {"dim": 0, "keepdim": True}

RECORDS = {
    target: record
    for table in (registry.OPS, registry.VIEWS, registry.COMPOSITES)
    for record in table.values()
    for target in record.targets
    if DIMS & {p.name for p in record.params}
}


def taken(fn, args, named):
    """None, or the words with which arguments are refused."""
    try:
        fn(*args, **named)
    except TypeError as error:
        return str(error)
    except Exception:
        pass  # the values do not fit, or need data: not what is asked
    return None


def works(fn, args, named):
    try:
        fn(*args, **named)
    except Exception:
        return False
    return True


def on_meta(x):
    if isinstance(x, jtorch.Tensor):
        return x.to("meta")
    if isinstance(x, (list, tuple)):
        return type(x)(map(on_meta, x))
    return {k: on_meta(v) for k, v in x.items()} if isinstance(x, dict) else x


def calls():
    """(name, arguments by position, by name) of what PyTorch takes in its own spelling."""
    seen = set()
    for info in op_db:
        for target in (info.name if "." in info.name else f"torch.{info.name}", f"Tensor.{info.name}"):
            record = RECORDS.get(target)
            if record is None or target in seen:
                continue
            seen.add(target)
            names = [p.name for p in record.params]
            for sample in itertools.islice(info.sample_inputs("cpu", torch.float32), 3):
                args = (sample.input, *sample.args)
                if len(args) > len(names) or not isinstance(sample.input, torch.Tensor):
                    continue
                named = {**dict(zip(names, args)), **sample.kwargs}
                named |= {k: v for k, v in EXTRA.items() if k in names and k not in named and len(sample.input.shape)}
                given = (named.pop(names[0]),) if target.startswith("Tensor.") else ()
                yield target, given, named


@pytest.mark.filterwarnings("ignore")
def test_every_spelling_that_pytorch_takes():
    wrong, asked = {}, set()
    for target, given, named in calls():
        path = target.removeprefix("torch.").split(".")
        its, mine = torch, jtorch
        for part in path:
            its, mine = getattr(its, part, None), getattr(mine, part, None)
        if its is None or not works(its, given, named):
            continue
        for name, spelling in ((n, s) for n in named for s in SPELLINGS.get(n, "").split()):
            other = {(spelling if k == name else k): v for k, v in named.items()}
            if (target, spelling) in asked or not works(its, given, other):
                continue
            asked.add((target, spelling))
            words = taken(mine, *map(on_meta, from_torch((given, other))))
            if words is not None:
                wrong[target, spelling] = words
    assert not wrong, wrong
    assert len(asked) > 200, "PyTorch was hardly asked"


def test_values_and_refusals():
    x = jtorch.arange(6.0).view(2, 3)
    assert jtorch.median(x, axis=1, keepdims=True).values.tolist() == [[1], [4]]
    assert jtorch.sum(a=x, axis=0).tolist() == [3, 5, 7] and x.diff(axis=0).tolist() == [[3, 3, 3]]
    assert x.narrow(axis=1, start=1, length=1).tolist() == [[1], [4]]
    for call in (
        lambda: x.sum(a=x),
        lambda: jtorch.narrow(x),
        lambda: jtorch.narrow(x, axes=1),
        lambda: jtorch.sum(axis=0),
    ):
        with pytest.raises(TypeError):
            call()
