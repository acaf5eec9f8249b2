"""Regions given views, or memory shared with numpy: what they return, keep, change and ask of these is what it is without compiling."""

import numpy as np
import pytest

import jtorch
import jtorch.nn.functional as F

_MEMORY = np.zeros((6, 4))
KEPT = {}


def _numbers(k):
    return np.random.default_rng(k).normal(size=(6, 4))


def _shared(k):
    _MEMORY[...] = _numbers(k)
    return jtorch.from_numpy(_MEMORY)


VIEWS = {
    "rows": lambda k: jtorch.tensor(_numbers(k))[1:5],
    "columns": lambda k: jtorch.tensor(_numbers(k))[:, 1:3],
    "turned": lambda k: jtorch.tensor(_numbers(k)).t(),
    "element": lambda k: jtorch.tensor(_numbers(k))[2],
    "numpy": _shared,
}


def _keep(name, x, result):
    KEPT[name] = x
    return result


def _written_view(x):
    x.add_(1)
    return x[0], x.sum()


def _pop(d):
    return d.pop("x") * 2


def _insert(d):
    d["y"] = d["x"] * 2
    return d["y"]


def _append(values):
    values.append(values[0] * 2)
    return len(values)


def _attribute(x):
    x.noted = 3
    return x * 2


def _needs_grad(x):
    (x.requires_grad_() ** 2).sum().backward()
    return x.grad


def _data(x):
    x.data = x.data * 2
    return x.sum()


def _raises(x):
    x.add_(1)
    if x.shape[0]:
        raise KeyError("x")


WEIGHT = jtorch.ones((), dtype=jtorch.float64, requires_grad=True)
# each a function of a view, or of a container with one, and what to look at
FUNCTIONS = {
    "itself": (lambda x: x, lambda x, r: r is x),
    "itself and more": (lambda x: (x * 2, x), lambda x, r: r[1] is x),
    "written to": (lambda x: x.mul_(2), lambda x, r: (r is x, r.add_(1).tolist())),
    "a view of it": (lambda x: x[0], lambda x, r: r.add_(3).tolist()),
    "a view of what was written": (_written_view, lambda x, r: r[0].add_(3).tolist()),
    "detached": (lambda x: x.detach(), lambda x, r: r.add_(3).tolist()),
    "flat": (lambda x: x.reshape(-1).t(), lambda x, r: r.add_(3).tolist()),
    "where it lies": (lambda x: (x.storage_offset(), x.stride(), x._is_view(), x.untyped_storage().nbytes()), lambda x, r: r),
    "its base": (lambda x: x._base is None, lambda x, r: r),
    "kept": (lambda x: _keep("x", x, x * 2), lambda x, r: KEPT.pop("x") is x),
    "attribute": (_attribute, lambda x, r: x.noted),
    "requires grad": (_needs_grad, lambda x, r: (x.requires_grad, x.grad is r)),
    "data": (_data, lambda x, r: x.tolist()),
    "on the tape": (lambda x: x.mul_(WEIGHT).sum(), lambda x, r: (x.requires_grad, r.requires_grad, round(jtorch.autograd.grad(r, WEIGHT)[0].item(), 9))),
}  # fmt: skip
CONTAINERS = {
    "dict": (lambda d: d, lambda d, r: (r is d, sorted(d))),
    "kept": (lambda d: _keep("d", d, d["x"] * 2), lambda d, r: KEPT.pop("d") is d),
    "inserted": (_insert, lambda d, r: (sorted(d), d["y"] is r)),
    "popped": (_pop, lambda d, r: sorted(d)),
    "copied": (lambda d: {**d, "y": d["x"] * 2}, lambda d, r: (r["x"] is d["x"], r["y"].tolist())),
}


@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_view(kind, name):
    function, look = FUNCTIONS[name]
    compiled = jtorch.compile(function)
    for k in range(4):
        seen = []
        for call in (function, compiled):
            x = VIEWS[kind](k)
            base = x if x._base is None else x._base
            result = call(x)
            seen.append([look(x, result), x.tolist(), base.tolist(), kind == "numpy" and _MEMORY.tolist()])
            del x, base, result
        assert seen[0] == seen[1]


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_view_in_a_dict(name):
    function, look = CONTAINERS[name]
    compiled = jtorch.compile(function)
    for k in range(4):
        seen = []
        for call in (function, compiled):
            d = {"x": VIEWS["rows"](k)}
            seen.append(look(d, call(d)))
        assert seen[0] == seen[1]


def test_a_view_in_a_list_that_grows():
    compiled, values = jtorch.compile(_append), [VIEWS["rows"](0)]
    assert [compiled(values) for _ in range(3)] == [2, 3, 4] and len(values) == 4


def test_an_error_after_a_write():
    compiled = jtorch.compile(_raises)
    for k in range(3):
        x, plain = VIEWS["rows"](k), VIEWS["rows"](k)
        with pytest.raises(KeyError):
            compiled(x)
        assert x.tolist() == plain.add_(1).tolist() and x._base is not None and x.storage_offset() == 4


@pytest.mark.parametrize("first", [True, False])
def test_memory_that_the_region_knows_by_another_way(first):
    """The base is written to before or after the view is read."""
    base = jtorch.zeros(6, 4)

    @jtorch.compile
    def run(x):
        if first:
            base.add_(1)
        y = x * 2
        if not first:
            base.add_(1)
        return y, x + 0

    for k in range(4):
        y, x = run(base[1:5])
        assert y[0, 0].item() == 2 * (k + first) and x[0, 0].item() == k + 1 and base[0, 0].item() == k + 1


INDEXED = {
    "index": lambda x, i: x[i],
    "embedding": lambda x, i: F.embedding(i, x),
    "gather": lambda x, i: x.gather(0, i[:, None]),
    "class": lambda x, i: F.cross_entropy(x, i),
}


@pytest.mark.parametrize("name", INDEXED)
def test_indices_that_are_views_are_checked(name):
    x, indices = jtorch.ones(3, 3), jtorch.tensor([9, 0, 1, 2, 1, 0, 2, 9])
    compiled = jtorch.compile(INDEXED[name])
    for start in (1, 2, 3, 1):
        compiled(x, indices[start : start + 3])
    assert compiled._region.replays, compiled._region.why
    for start in (0, 5, 5, 0):
        with pytest.raises((IndexError, RuntimeError), match="out of (bounds|range)"):
            compiled(x, indices[start : start + 3])
    assert jtorch.equal(compiled(x, indices[4:7]), INDEXED[name](x, indices[4:7]))


def test_a_step_on_slices_of_a_dataset_is_replayed():
    inputs, targets = jtorch.ones(12, 5), jtorch.zeros(12, dtype=jtorch.int64)
    net = jtorch.nn.Linear(5, 3)
    run = jtorch.compile(lambda x, y: F.cross_entropy(net(x.flatten(1)), y))
    for k in range(0, 12, 4):
        run(inputs[k : k + 4], targets[k : k + 4]).backward()
    run = jtorch.compile(lambda x, y: F.cross_entropy(net(x.flatten(1)), y).detach())
    for k in range(0, 12, 4):
        run(inputs[k : k + 4], targets[k : k + 4])
    assert len(run._region.replays) == 1, run._region.why
