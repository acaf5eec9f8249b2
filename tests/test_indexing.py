"""Indexing and assignment against torch: basic, advanced, boolean, mixed, and the words of their errors."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jtorch
from jtorch.core import ledger
from tests.oracle import both, torch

SHAPES = [(5,), (3, 4), (2, 3, 4), (1, 3), (2, 0, 3)]


class Idx:
    """A tensor index by its values, made in either library."""

    def __init__(self, values, kind="tensor"):
        self.values = values
        self.kind = kind

    def make(self, module):
        if self.kind == "list":
            return self.values
        if self.kind == "numpy":
            return np.array(self.values)
        dtype = module.bool if np.array(self.values).dtype == bool else module.int64
        return module.tensor(self.values, dtype=dtype)

    def __repr__(self):
        return f"{self.kind}({self.values})"


@st.composite
def indices(draw):
    """A shape and an index of it: mostly right, sometimes out of range."""
    shape = draw(st.sampled_from(SHAPES))
    n_adv = draw(st.integers(1, 3))
    adv_shape = draw(st.sampled_from([(n_adv,), (2, n_adv), ()]))
    parts, dim, ellipsis = [], 0, False
    while dim < len(shape):
        size = shape[dim]
        kind = draw(
            st.sampled_from(["int", "slice", "slice", "none", "ellipsis", "adv", "adv", "mask", "full", "stop"])
        )
        if kind == "stop":
            break
        if kind == "none":
            parts.append(None)
            if len(parts) > 6:
                break
            continue
        if kind == "ellipsis":
            if not ellipsis:
                parts.append(Ellipsis)
                ellipsis = True
                dim = draw(st.integers(dim, len(shape)))
            continue
        if kind == "int":
            parts.append(draw(st.integers(-size - (size == 0), max(size - 1, 0))))
        elif kind == "slice":
            start, stop = draw(st.none() | st.integers(-6, 6)), draw(st.none() | st.integers(-6, 6))
            parts.append(slice(start, stop, draw(st.sampled_from([None, 1, 2, 3]))))
        elif kind == "full":
            parts.append(slice(None))
        elif kind == "adv":
            if size == 0:
                parts.append(slice(None))
            else:
                n = int(np.prod(adv_shape))
                flat = draw(st.lists(st.integers(-size, size - 1), min_size=n, max_size=n))
                how = draw(st.sampled_from(["tensor", "tensor", "list", "numpy"]))
                parts.append(Idx(np.array(flat).reshape(adv_shape).tolist(), how if adv_shape else "tensor"))
        elif kind == "mask":
            wide = draw(st.integers(1, min(2, len(shape) - dim)))
            n = int(np.prod(shape[dim : dim + wide]))
            flat = draw(st.lists(st.booleans(), min_size=n, max_size=n))
            parts.append(Idx(np.array(flat, bool).reshape(shape[dim : dim + wide]).tolist(), "mask"))
            parts[-1].shape = shape[dim : dim + wide]
            dim += wide - 1
        dim += 1
    return shape, parts


def build(module, parts):
    made = []
    for p in parts:
        if isinstance(p, Idx):
            if p.kind == "mask":
                made.append(module.tensor(p.values, dtype=module.bool).reshape(p.shape))
            else:
                made.append(p.make(module))
        else:
            made.append(p)
    return made[0] if len(made) == 1 else tuple(made)


def base(module, shape):
    n = int(np.prod(shape))
    return module.arange(n, dtype=module.float32).reshape(shape)


many = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@many
@given(indices())
def test_get(case):
    shape, parts = case
    both(lambda module: base(module, shape)[build(module, parts)])


@many
@given(indices(), st.sampled_from(["number", "same", "scalar", "row"]))
def test_set(case, what):
    shape, parts = case
    if not _unique(shape, parts):
        what = "number"

    def program(module):
        x = base(module, shape)
        index = build(module, parts)
        if what == "number":
            x[index] = -1
        elif what == "scalar":
            x[index] = module.tensor(-2)
        else:
            seen = x[index]
            value = -seen - 10 if what == "same" else module.full(seen.shape[-1:], -3.0)
            x[index] = value
        return x

    both(program)


def _unique(shape, parts):
    """Whether no element is written twice: which of two writes wins is not defined."""
    seen = torch.arange(int(np.prod(shape))).reshape(shape)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = seen[build(torch, parts)]
    except Exception:
        return True
    return got.unique().numel() == got.numel()


@many
@given(indices())
def test_gradient_of_get(case):
    shape, parts = case

    def program(module):
        x = base(module, shape).requires_grad_()
        out = x[build(module, parts)]
        (out * (out + 1)).sum().backward()
        return x.grad, type(out.grad_fn).__name__

    both(program, layout=False)


@many
@given(indices())
def test_in_place_through_an_index(case):
    shape, parts = case
    if not _unique(shape, parts):
        return

    def program(module):
        x = base(module, shape)
        x[build(module, parts)] += 100
        x[build(module, parts)] *= 2
        return x, x._version

    both(program)


ERRORS = {
    "out of range": lambda t: t.zeros(3)[5],
    "out of range below": lambda t: t.zeros(3)[-4],
    "dim 1": lambda t: t.zeros(3, 4)[1, 9],
    "too many": lambda t: t.zeros(3)[0, 0],
    "too many slices": lambda t: t.zeros(3)[:, :, 1],
    "0-d": lambda t: t.tensor(1.0)[0],
    "negative step": lambda t: t.zeros(4)[::-1],
    "zero step": lambda t: t.zeros(4)[::0],
    "float": lambda t: t.zeros(4)[1.5],
    "string": lambda t: t.zeros(4)["a"],
    "string, no characters": lambda t: t.zeros(4)[""],
    "string, more characters than dimensions": lambda t: t.zeros(4, 3)["data"],
    "string, one set": lambda t: t.zeros(4, 3).__setitem__("data", 1.0),
    "string among others": lambda t: t.zeros(4, 3)[0, ""],
    "float tensor": lambda t: t.zeros(4)[t.tensor([0.5])],
    "list of nan": lambda t: t.zeros(4)[[float("nan")]],
    "list of complex": lambda t: t.zeros(4)[[1 + 2j]],
    "list of floats out of range": lambda t: t.zeros(4)[[4.5]],
    "list of floats beyond int64": lambda t: t.zeros(4)[[1e20]],
    "tensor out of range": lambda t: t.zeros(4)[t.tensor([4])],
    "tensor out of range, dim 1": lambda t: t.zeros(2, 4)[:, t.tensor([1, -5])],
    "mask of the wrong size": lambda t: t.zeros(4)[t.tensor([True, False])],
    "mask of the wrong size, dim 1": lambda t: t.zeros(2, 4)[:, t.tensor([True, False])],
    "indices do not broadcast": lambda t: t.zeros(4, 4)[t.tensor([0, 1]), t.tensor([0, 1, 2])],
    "too many tensors": lambda t: t.zeros(4)[t.tensor([0]), t.tensor([0])],
    "set: shape": lambda t: t.zeros(3, 4).__setitem__(0, t.zeros(3)),
    "set: shape of a slice": lambda t: t.zeros(5).__setitem__(slice(0, 2), t.zeros(3)),
    "set: mask": lambda t: t.zeros(4).__setitem__(t.zeros(4) > -1, t.zeros(3)),
    "set: indices": lambda t: t.zeros(4).__setitem__(t.tensor([0, 1]), t.zeros(3)),
    "set: out of range": lambda t: t.zeros(4).__setitem__(7, 1),
    "set: leaf": lambda t: t.zeros(4, requires_grad=True).__setitem__(0, 1),
    "set: expanded": lambda t: t.zeros(1).expand(4).__setitem__(0, 1),
    "two ellipses": lambda t: t.zeros(2, 3)[..., ..., 0],
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    both(ERRORS[name])


CASES = {
    "rows": lambda t: t.arange(12).view(3, 4)[[0, 2]],
    "pairs": lambda t: t.arange(12).view(3, 4)[[0, 2], [1, 3]],
    "separated": lambda t: t.arange(24).view(2, 3, 4)[[0, 1], :, [1, 3]],
    "adjacent": lambda t: t.arange(24).view(2, 3, 4)[:, [0, 1], [1, 3]],
    "with None": lambda t: t.arange(24).view(2, 3, 4)[None, [0, 1], None, [1, 2]],
    "int and list": lambda t: t.arange(24).view(2, 3, 4)[0, :, [1, 3]],
    "True": lambda t: t.arange(3)[True],
    "False": lambda t: t.arange(3)[False],
    "True and list": lambda t: t.arange(12).view(3, 4)[True, [0, 1]],
    "0-d mask": lambda t: t.arange(3)[t.tensor(True)],
    "0-d index": lambda t: t.arange(12).view(3, 4)[t.tensor(1)],
    "0-d index is a view": lambda t: t.arange(12).view(3, 4)[t.tensor(1)].storage_offset(),
    "uint8 mask": lambda t: t.arange(3)[t.tensor([1, 0, 1], dtype=t.uint8)],
    "int32": lambda t: t.arange(3)[t.tensor([1, 0, 1], dtype=t.int32)],
    "empty list": lambda t: t.arange(3)[[]],
    "nested list": lambda t: t.arange(12).view(3, 4)[[[0, 1], [1, 2]]],
    "tuple of nothing": lambda t: t.arange(3)[()],
    "range": lambda t: t.arange(5)[range(1, 4)],
    "numpy int": lambda t: t.arange(5)[np.int64(3)],
    "numpy int in an array is a view": lambda t: [
        (y, y.storage_offset()) for y in [t.arange(6).view(3, 2)[np.array(1)], t.arange(6).view(3, 2)[:, np.array(1)]]
    ],
    **{
        f"setitem of {value} in {kind}, {name}": lambda t, i=i, value=value, kind=kind: _small(t, kind, i, value)
        for kind in ("float16", "bfloat16", "float32", "int8", "bool")
        for value in (70000, -1e40, 300, 2.5, 1j, float("nan"))
        for name, i in (("an element", 0), ("all", ...), ("at a mask", [True, False]), ("at positions", [0]))
    },
    **{
        f"setitem of {value!r} in {kind}, {name}": lambda t, i=i, value=value, kind=kind: _small(t, kind, i, value)
        for kind in ("float32", "int64", "complex64", "bool")
        for value in (np.int64(3), np.uint8(3), np.float32(3), np.float64(2.5), np.bool_(True), np.complex128(3j))
        for name, i in (("an element", 0), ("all", ...), ("at a mask", [True, False]), ("at positions", [0]))
    },
    "iteration": lambda t: list(t.arange(6).view(3, 2)),
    "unpacking": lambda t: [*t.arange(3)],
    "in": lambda t: [2 in t.arange(3), 7 in t.arange(3)],
    "len": lambda t: len(t.zeros(4, 2)),
    "setitem broadcast": lambda t: _set(t, (slice(None), 1), [5, 6, 7]),
    "setitem bool list": lambda t: _set(t, [True, False, True], -1),
    "setitem dtype": lambda t: _set(t, (0, 0), 2.9),
    "accumulate": lambda t: t.zeros(3).index_put_((t.tensor([0, 0, 2]),), t.ones(3), accumulate=True),
    "mask of float": lambda t: _mask(t),
    **{
        f"beyond what is not computed yet, {name}": lambda t, call=call: call(t, t.arange(6).view(2, 3) * 2)
        for name, call in (
            ("gather", lambda t, x: x.gather(0, t.tensor([[2, 0, 1]]))),
            ("gather below", lambda t, x: x.gather(0, t.tensor([[-1, 0, 1]]))),
            ("scatter", lambda t, x: x.scatter(0, t.tensor([[2, 0, 1]]), 1)),
            ("scatter nowhere", lambda t, x: x.scatter(0, t.zeros(0, 3, dtype=t.int64), t.ones(2, 3))),
            ("index", lambda t, x: x[t.tensor([0, 2])]),
            ("index_add", lambda t, x: x.index_add(0, t.tensor([2]), x[:1])),
            ("index_copy", lambda t, x: x.index_copy(0, t.tensor([2]), x[:1])),
            ("index_fill", lambda t, x: x.index_fill(0, t.tensor([2]), 1)),
            ("take", lambda t, x: x.take(t.tensor([6]))),
            ("put", lambda t, x: x.put(t.tensor([6]), t.tensor([1]))),
            ("flat", lambda t, x: t.take_along_dim(x, t.tensor([-1]))),
            ("along", lambda t, x: t.take_along_dim(x, t.tensor([[-3, 2, 1]]), 0)),
        )
    },
    **{
        f"put at masks, {name}": lambda t, made=made, values=values, add=add: [
            t.zeros(3, 2).index_put_(made(t), t.arange(1.0, 1 + values), accumulate=add),
            t.index_put(t.ones(3, 2), made(t), t.arange(1.0, 1 + values), accumulate=add),
        ]
        for add in (False, True)
        for name, made, values in (
            (f"whole {add}", lambda t: (t.tensor([[True, False], [True, True], [False, False]]),), 3),
            (f"rows {add}", lambda t: [t.tensor([True, False, True])], 2),
            (f"with positions {add}", lambda t: (t.tensor([True, False, True]), t.tensor([0, 1])), 2),
            (f"bytes {add}", lambda t: (t.tensor([1, 0, 1], dtype=t.uint8), t.tensor([0, 1])), 2),
            (f"another size {add}", lambda t: (t.tensor([True, False]), t.tensor([0])), 1),
            (f"too few values {add}", lambda t: (t.tensor([[True, True]] * 3),), 2),
        )
    },
    "del": lambda t: t.zeros(2).__delitem__(0),
}


def _set(t, index, value):
    x = t.arange(12).view(3, 4)
    x[index] = t.tensor(value) if isinstance(value, list) else value
    return x


def _small(t, kind, index, value):
    x = t.ones(2, dtype=getattr(t, kind))
    x[index] = value
    return x


def _mask(t):
    x = t.linspace(-1, 1, 6)
    x[x < 0] = 0
    x[~(x > 0.5)] += 10
    return x, x[x > 5].sum()


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    both(CASES[name])


def test_set_keeps_gradients():
    def program(t):
        x = t.ones(3, 4, requires_grad=True)
        v = t.full((4,), 2.0, requires_grad=True)
        y = x * 3
        y[1] = v * 5
        y[:, 0] = 0
        (y * y).sum().backward()
        return x.grad, v.grad, y.detach()

    both(program)


def test_offsets_share_one_program():
    """x[0], x[1], ... compile once."""
    x = jtorch.arange(1000.0)
    for i in range(3):
        x[i].item()
    before = jtorch.core.ledger.counters.compiles
    for i in range(3, 60):
        assert x[i].item() == i
    assert jtorch.core.ledger.counters.compiles == before


_UNDER_MASKS = {
    "mask": lambda t: (0, -2, t.tensor([True, False, True, True])), "list": lambda t: (0, [True, False, True]),
    "rows": lambda t: (t.tensor([True, False]),), "bytes": lambda t: (0, t.tensor([1, 0, 1], dtype=t.uint8)),
    "and a number": lambda t: (t.tensor([True, False]), t.tensor(0)), "and numpy's": lambda t: ([True, False], np.array(0)),
    "flag": lambda t: (slice(0, 1, 3), t.tensor(True)), "only a flag": lambda t: True, "0-d": lambda t: t.tensor(True),
    "flag and mask": lambda t: (True, t.tensor([True, False])), "two": lambda t: (t.tensor([True, False]), t.tensor([0])),
    "numpy's flag": lambda t: (0, np.bool_(True)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("where", _UNDER_MASKS)
def test_one_value_under_a_mask(where, dtype):
    """It is a number: of any dtype, and it may lie in what is written to."""
    for value in (lambda t, x: t.tensor(2), lambda t, x: t.tensor([2.5]), lambda t, x: x.flatten()[5]):

        def program(t, value=value):
            x = t.arange(24).reshape(2, 3, 4).to(getattr(t, dtype))
            x[_UNDER_MASKS[where](t)] = value(t, x)
            return x

        both(program)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "bool"])
def test_adding_to_elements_that_share_memory(dtype):
    def program(t):
        got = []
        for shape, size in (((1, 3), (4, 3)), ((3, 1), (3, 4)), ((1, 1), (2, 2)), ((1,), (3,))):
            for index in ((t.tensor([0, 1]),), (t.tensor([0, 1, 1]), t.tensor([0, 0, 1])), (t.tensor([[0], [1]]),)):
                for values in (t.tensor(1), t.tensor([[1], [3]])):
                    x = t.zeros(shape, dtype=getattr(t, dtype)).expand(size)
                    if len(index) > x.ndim:
                        continue
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        try:
                            got.append(x.index_put_(index, values.to(x.dtype), accumulate=True))
                        except RuntimeError:
                            got.append(None)
        return got

    both(program)


def test_masks_of_values_at_hand_record_nothing():
    """By numpy, with PyTorch's values, strides and dtypes; a new pair of counts makes no operator. With a gradient it is one."""

    def program(t):
        x, mask = t.arange(24.0).reshape(4, 3, 2), t.tensor([True, False, True, True])
        deep = x > 7
        found = [x[mask], x[deep], x[:, 1][mask], x.long()[deep], x.bfloat16()[mask], x[mask & False]]
        found += [x.transpose(0, 1)[mask[:3]], x.bool()[deep], x.to(t.complex64)[mask], x[mask][:, 0] + 1]
        y = x[mask]
        y[0] = 7  # a copy
        return [*found, [f.stride() for f in found], x, y, x.clone().requires_grad_()[mask].grad_fn is not None]

    both(program)
    x = jtorch.arange(24.0).reshape(4, 6)
    x.sum().item()
    flushes = ledger.counters.flushes
    for k in range(1, 5):
        picked = x[jtorch.tensor([n < k for n in range(4)])]
        assert picked.shape == (k, 6) and picked.numpy()[0, 0] == 0
    assert ledger.counters.flushes == flushes


@pytest.mark.parametrize("index", [[1.5], [[1.7, 2.2]], [1, 2.9], [-1.5], [True, 1.5], np.array([1.5, 0])], ids=str)
def test_numbers_that_are_not_whole_are_cut(index):
    def program(t):
        x = t.arange(24.0).reshape(6, 4)
        taken = x[index]
        x[index] = 0
        return taken, x

    both(program)


def _written(t, index, value, dtype="float32"):
    x = t.ones(3, dtype=getattr(t, dtype))
    x[index(t)] = value(t)
    return x


MISUSES = {
    "a number that is not whole bounds a slice": lambda t: t.ones(3)[t.tensor(1.0) :],
    "several numbers bound a slice": lambda t: t.ones(3)[t.tensor([1, 2]) :],
    "no index": lambda t: t.ops.aten.index.Tensor(t.ones(2, 2), []),
    "more indices than dimensions": lambda t: t.zeros(3).index_put([t.tensor([0]), t.tensor([0])], t.ones(1)),
    "a value with a dimension too many": lambda t: t.zeros(5).index_put([t.tensor([0, 1])], t.ones(1, 2)),
    "a vector for a number": lambda t: t.zeros(()).index_put([], t.ones(1), True),
    "a word written to nothing": lambda t: _written(t, lambda t: False, lambda t: "a"),
    "nothing written to nothing": lambda t: _written(t, lambda t: False, lambda t: None),
    "a complex number written to nothing": lambda t: _written(t, lambda t: False, lambda t: 1j),
    "a complex tensor under a mask": lambda t: _written(t, lambda t: t.ones(3).bool(), lambda t: t.tensor(1j)),
    "one that is real under a mask": lambda t: _written(t, lambda t: t.ones(3).bool(), lambda t: t.tensor(1 + 0j)),
    "one that is complex, of complex": lambda t: _written(t, lambda t: t.ones(3).bool(), lambda t: t.tensor(1j), "complex64"),
    "positions of 32 bits of slices to fill": lambda t: t.ones(2, 3).index_fill(1, t.tensor([0]).int(), 1),
    "positions of 32 bits along a dimension": lambda t: t.take_along_dim(t.ones(2, 3), t.zeros(2, 3).int(), 1),
    "a slice beyond columns": lambda t: t.ones(3, 3).index_select(1, t.tensor([5])),
    "a slice beyond rows": lambda t: t.ones(3, 3).index_select(0, t.tensor([5])),
    "a slice beyond a number": lambda t: t.tensor(1.0).index_select(0, t.tensor([1])),
    "an element of nothing": lambda t: t.zeros(0).take(t.tensor([0])),
    "an element put into nothing": lambda t: t.zeros(0).put_(t.tensor([0]), t.ones(1)),
    "slices of complex numbers reduced": lambda t: t.ones(3, dtype=t.complex64).index_reduce(0, t.tensor([0]), t.ones(1, dtype=t.complex64), "mean"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSES)
def test_what_is_refused(name):
    both(MISUSES[name])


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint16", "uint32", "uint64"])
def test_a_narrow_number_is_an_index(dtype):
    """One that is not computed yet, and alone, too."""

    def program(t):
        x, place = t.arange(6.0).view(2, 3), t.tensor(1).to(getattr(t, dtype))
        late = (t.ones(()).cos() * 0 + 1).to(getattr(t, dtype))
        y = x.clone()
        y[late] = 9
        return x[place], x[late], x[0, place], y

    both(program)


class Asked:
    """Neither a tensor nor a number."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, types, [type(a).__name__ for a in args]


@pytest.mark.parametrize(
    "index", [lambda a: a, lambda a: (5, a), lambda a: [a], lambda a: (9, [a]), lambda a: (0, 0, 0, a)]
)
def test_objects_among_indices_are_asked(index):
    def items(t):
        x, a = t.zeros(6, 6), Asked()
        x[index(a)], x[0] = 1, a  # asked too; what it gives is of no interest
        return x[index(a)], x.tolist()

    assert items(jtorch) == items(torch)
    with jtorch._C.DisableTorchFunctionSubclass(), pytest.raises((IndexError, RuntimeError, TypeError)):
        jtorch.zeros(6, 6)[index(Asked())]


@pytest.mark.parametrize("index", ["i, j", "i, None, j", "i, 1", "0, j, ...", "..., i, j", "i, j, 1:"])
def test_numbers_of_two_vmaps(index):
    def program(t):
        x = t.arange(24.0).reshape(2, 3, 4)
        pick = eval(f"lambda i, j: x[{index}]", {"x": x})
        return t.vmap(t.vmap(pick, (None, 0)), (0, None))(t.arange(2), t.tensor([2, 0]))

    both(program, layout=False)


def test_assignment_through_a_row_that_is_repeated():
    """At an index that is not known yet: what is one element in memory is written once."""

    def program(t):
        x = t.arange(4.0).expand(3, 4)
        x[(t.tensor([0.5]) * 2).long()[0]] = t.tensor([4.0, 5.0, 6.0, 7.0])
        return x

    both(program)
