"""ops/views.py against torch: strides, errors and grad_fn names of every view op."""

import jax.numpy as jnp
import numpy as np
import pytest

from jtorch.core.layout import Layout
from jtorch.ops import registry, views
from tests.oracle import both

torch = pytest.importorskip("torch")

# (op, shape, arguments); torch is called by the method of the same name, or as an aten op
CASES = [
    ("view", (2, 3, 4), ((6, 4),)), ("view", (2, 3, 4), ((-1,),)), ("view", (2, 3, 4), ((2, -1, 2),)),
    ("view", (2, 3, 4), ((5, -1),)), ("view", (2, 3, 4), ((-1, -1),)), ("view", (2, 3, 4), ((-2, 3),)),
    ("view", (0, 2), ((-1, 0),)), ("view", (0, 2), ((-1, 2),)), ("view", (), ((),)),
    ("view", (), ((1, 1),)),
    ("transpose", (2, 3, 4), (0, 2)), ("transpose", (2, 3, 4), (-1, 1)), ("transpose", (2, 3, 4), (0, 3)),
    ("transpose", (), (0, -1)), ("transpose", (), (0, 1)),
    ("swapdims", (2, 3), (0, 1)),
    ("swapaxes", (2, 3), (0, 1)),
    ("t", (2, 3), ()), ("t", (3,), ()), ("t", (), ()), ("t", (2, 3, 4), ()),
    ("adjoint", (2, 3, 4), ()), ("adjoint", (3,), ()),
    ("permute", (2, 3, 4), ((2, 0, -2),)), ("permute", (2, 3, 4), ((0, 1),)),
    ("permute", (2, 3, 4), ((0, 1, 1),)), ("permute", (2, 3, 4), ((0, 1, 5),)), ("permute", (), ((),)),
    ("movedim", (2, 3, 4), (0, 2)), ("movedim", (2, 3, 4), ((0, 1), (-1, 0))),
    ("movedim", (2, 3, 4), ((0, 1), (1,))), ("movedim", (2, 3, 4), ((0, -3), (1, 2))),
    ("movedim", (2, 3, 4), ((0, 1), (1, -2))), ("movedim", (2, 3), (0, 5)),
    ("moveaxis", (2, 3, 4), (2, 0)),
    ("expand", (2, 1, 4), ((5, 2, 3, 4),)), ("expand", (2, 1, 4), ((-1, 3, -1),)),
    ("expand", (2, 3, 4), ((2,),)), ("expand", (2, 3, 4), ((2, 3, 5),)), ("expand", (2, 3), ((-1, 2, 3),)),
    ("expand", (1,), ((-2,),)), ("expand", (), ((2, 3),)), ("expand", (), ((1,),)),
    ("expand", (3,), ((0, 1, 3),)), ("expand", (1, 3), ((0, 3),)),
    ("squeeze", (1, 3, 1), ()), ("squeeze", (1, 3, 1), (0,)), ("squeeze", (1, 3, 1), (1,)),
    ("squeeze", (1, 3, 1), ((0, -1),)), ("squeeze", (1, 3, 1), ((),)), ("squeeze", (1, 3), (5,)),
    ("squeeze", (1, 3), ((0, 0),)), ("squeeze", (), (0,)),
    ("unsqueeze", (2, 3), (0,)), ("unsqueeze", (2, 3), (1,)), ("unsqueeze", (2, 3), (-1,)),
    ("unsqueeze", (), (0,)), ("unsqueeze", (2, 3), (3,)),
    ("unflatten", (4, 6), (1, (2, -1))), ("unflatten", (4, 6), (-2, (2, 2, 1))),
    ("unflatten", (4, 6), (0, (3, 2))), ("unflatten", (4, 6), (0, ())),
    ("unflatten", (4, 6), (0, (-1, -1))), ("unflatten", (4, 6), (0, (2, -2))),
    ("unflatten", (4, 6), (5, (2, 2))), ("unflatten", (), (0, (1, 1))), ("unflatten", (0, 2), (0, (3, -1))),
    ("unflatten", (0, 2), (0, (0, -1))), ("unflatten", (2, 2), (0, (3, -1))),
    ("narrow", (4, 3), (0, 1, 2)), ("narrow", (4, 3), (0, -1, 1)), ("narrow", (4, 3), (0, 4, 0)),
    ("narrow", (4, 3), (0, 3, 2)), ("narrow", (4, 3), (0, 5, 0)), ("narrow", (4, 3), (0, 0, -1)),
    ("narrow", (4, 3), (3, 0, 1)), ("narrow", (), (0, 0, 1)),
    ("select", (4, 3), (0, 2)), ("select", (4, 3), (1, -1)), ("select", (4, 3), (0, 4)),
    ("select", (4, 3), (0, -5)), ("select", (4, 3), (2, 0)), ("select", (), (0, 0)),
    ("slice", (6, 3), (0, 1, 5, 2)), ("slice", (6, 3), (0, -2, None, 1)), ("slice", (6, 3), (1, 2, 1, 1)),
    ("slice", (6, 3), (1, 9, 12, 1)), ("slice", (6, 3), (0, 0, 2, 0)), ("slice", (6, 3), (3, 0, 1, 1)),
    ("slice", (), (0, 0, 1, 1)),
    ("diagonal", (3, 4), ()), ("diagonal", (3, 4, 5), (1, 2, 0)), ("diagonal", (3, 4, 5), (-2, 0, -1)),
    ("diagonal", (3, 4), (9, 0, 1)), ("diagonal", (3, 4), (0, 1, -1)), ("diagonal", (3,), ()),
    ("diagonal", (), ()),
    ("unfold", (7, 3), (0, 3, 2)), ("unfold", (7, 3), (-1, 2, 1)), ("unfold", (7, 3), (0, 0, 1)),
    ("unfold", (7, 3), (0, 8, 1)), ("unfold", (7, 3), (0, 2, 0)), ("unfold", (7, 3), (0, -1, 1)),
    ("unfold", (7, 3), (2, 1, 1)), ("unfold", (), (0, 1, 1)), ("unfold", (), (0, 0, 1)),
    ("unfold", (), (0, 2, 1)),
    ("as_strided", (4, 3), ((2, 2), (3, 1), 1)), ("as_strided", (4, 3), ((2,), (5,))),
    ("as_strided", (4,), ((2,), (-1,))), ("as_strided", (4,), ((2,), (1, 2))),
    ("as_strided", (4,), ((2,), (1,), -1)), ("as_strided", (4,), ((-2,), (1,))),
    ("chunk", (5, 3), (2,)), ("chunk", (5, 3), (4, 0)), ("chunk", (5, 3), (9, -1)), ("chunk", (0, 3), (4,)),
    ("chunk", (5,), (0,)), ("chunk", (), (1,)), ("chunk", (5,), (2, 3)),
    ("unsafe_chunk", (5,), (2,)),
    ("split", (5, 3), (2,)), ("split", (5, 3), ((1, 4),)), ("split", (5, 3), (7, 1)),
    ("split", (0, 3), (0,)), ("split", (0, 3), (2,)), ("split", (5,), (0,)), ("split", (5,), (-1,)),
    ("split", (5,), ((1, 2),)), ("split", (5,), ((-1, 6),)), ("split", (5,), (1, 4)), ("split", (), (1,)),
    ("split", (), ((1,),)),
    ("unsafe_split", (5, 3), (2, 1)), ("unsafe_split", (5,), (-1,)),
    ("split_with_sizes", (5, 3), ((2, 3),)), ("split_with_sizes", (5, 3), ((2, 2),)),
    ("unsafe_split_with_sizes", (5, 3), ((2, 3),)), ("unsafe_split_with_sizes", (5, 3), ((2, 2), 1)),
    ("unbind", (3, 2), ()), ("unbind", (3, 2), (-1,)), ("unbind", (0, 2), ()), ("unbind", (), ()),
    ("unbind", (3,), (2,)),
    ("tensor_split", (7, 3), (3,)), ("tensor_split", (7, 3), ((1, 4),)),
    ("tensor_split", (7, 3), ((5, 1, 9), 0)), ("tensor_split", (7, 3), ((1, -1), 1)),
    ("tensor_split", (7,), (0,)), ("tensor_split", (), (2,)), ("tensor_split", (7,), (2, 4)),
    ("hsplit", (4, 6), (3,)), ("hsplit", (6,), (2,)), ("hsplit", (4, 6), (4,)),
    ("hsplit", (4, 6), ((1, 2),)), ("hsplit", (), (2,)), ("hsplit", (4, 6), (0,)),
    ("hsplit", (4, 6), (-3,)),
    ("vsplit", (4, 6), (2,)), ("vsplit", (4,), (2,)), ("vsplit", (4, 6), (3,)),
    ("dsplit", (2, 2, 4), (2,)), ("dsplit", (2, 2), (2,)),
    ("alias", (2, 3), ()),
]  # fmt: skip


def torch_call(name, x, args):
    if name in ("slice", "alias"):
        return getattr(torch.ops.aten, name)(x, *args)
    return getattr(x, name)(*args)


def record_of(name):
    name = registry.ALIASES.get(name, name)
    return registry.VIEWS.get(name) or registry.COMPOSITES[name]


def listed(got):
    return list(got) if isinstance(got, tuple | list) else [got]


def raises_alike(ours, error):
    with pytest.raises(type(error)) as got:
        ours()
    assert str(got.value).splitlines()[0] == str(error).splitlines()[0]


@pytest.mark.parametrize("name,shape,args", CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_against_torch(name, shape, args):
    x = torch.arange(float(np.prod(shape, dtype=int))).reshape(shape).requires_grad_()
    record = record_of(name)
    array = jnp.asarray(x.detach().numpy())
    try:
        want = listed(torch_call(name, x, args))
    except (RuntimeError, IndexError, ValueError) as error:
        return raises_alike(lambda: record(array, *args), error)
    for got, w in zip(listed(record(array, *args)), want, strict=True):
        np.testing.assert_array_equal(got, w.detach().numpy())
    if record.kind != "view":
        return
    layout = Layout(shape, x.stride(), 0)
    for got, w in zip(listed(record.fn(layout, *args)), want, strict=True):
        assert got == Layout(tuple(w.shape), w.stride(), w.storage_offset())
        label = record.grad_name if isinstance(record.grad_name, str) else record.grad_name(layout, *args)
        assert w.grad_fn.name() == label


@pytest.mark.parametrize("name,shape,args", CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_of_permuted(name, shape, args):
    record = record_of(name)
    if record.kind != "view" or name == "as_strided":
        return
    x = torch.empty(tuple(n + 1 for n in shape[::-1])).permute(tuple(range(len(shape))[::-1]))
    x = x[tuple(slice(1, None) for _ in shape)]
    layout = Layout(shape, x.stride(), x.storage_offset())
    try:
        want = listed(torch_call(name, x, args))
    except (RuntimeError, IndexError, ValueError) as error:
        return raises_alike(lambda: record.fn(layout, *args), error)
    for got, w in zip(listed(record.fn(layout, *args)), want, strict=True):
        assert got == Layout(tuple(w.shape), w.stride(), w.storage_offset())


def test_every_view_has_a_case():
    seen = {record_of(c[0]).name for c in CASES}
    # the function and the method of split are two records; the rest is tried through reshape and narrow
    apart = {"_unsafe_view", "_reshape_alias", "_narrow", "_split", "split"}
    ours = {v.name for v in registry.VIEWS.values() if v.fn.__module__ == views.__name__}
    assert ours - seen - apart == set()


def test_by_the_shape_of_another():
    x = jnp.arange(6.0).reshape(2, 3)
    assert views.view_as(x, jnp.zeros((3, 2))).shape == (3, 2)
    assert views.expand_as(x, jnp.zeros((4, 2, 3))).shape == (4, 2, 3)
    assert views.reshape(x, (3, -1)).shape == (3, 2)


def test_keywords():
    x = jnp.arange(6.0)
    assert len(views.tensor_split(x, sections=3)) == 3
    assert len(views.hsplit(x, indices=(1, 2))) == 3
    with pytest.raises(TypeError, match="tensor_split"):
        views.tensor_split(x)


# what gives a view of the tensor, or the tensor itself
SAME_MEMORY = {
    "a diagonal": lambda t, x: t.einsum("ii->i", x),
    "turned": lambda t, x: t.einsum("ij->ji", x),
    "turned without saying so": lambda t, x: t.einsum("ba", x),
    "as it is": lambda t, x: t.einsum("ij->ij", x),
    "behind dots": lambda t, x: t.einsum("...i->i...", x),
    "diagonals of diagonals": lambda t, x: t.einsum("iiij->ji", x.view(2, 2, 2, 2)),
    "two diagonals": lambda t, x: t.einsum("ijij->ji", x.view(2, 2, 2, 2)),
    "one that is summed": lambda t, x: t.einsum("ij->j", x),
    "a trace": lambda t, x: t.einsum("ii", x),
    "by numbers": lambda t, x: t.einsum(x, [0, 1], [1, 0]),
    "in its own format": lambda t, x: x.contiguous(memory_format=t.preserve_format),
    "in its own format, turned": lambda t, x: x.t().contiguous(memory_format=t.preserve_format),
    "whether it is in its own format": lambda t, x: [y.is_contiguous(memory_format=t.preserve_format) for y in (x, x.t())],
    "H": lambda t, x: x.H,
    **{f"{name} of a number": lambda t, x, name=name: [getattr(x[0, 0], name), getattr(y := x[0, 0], name) is y] for name in ("mT", "H", "mH")},
    "adjoint of a number": lambda t, x: x[0, 0].adjoint(),
}  # fmt: skip


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", SAME_MEMORY)
def test_same_memory(name, grad):
    def program(t):
        x = t.arange(16.0).view(4, 4).requires_grad_(grad)
        y = SAME_MEMORY[name](t, x)
        seen = [y]
        if isinstance(y, t.Tensor):
            seen += [y is x, y._is_view(), y.stride(), y._base is x._base, y._is_view() and type(y.grad_fn).__name__]
            if not grad:
                y.fill_(7)
        return seen, x

    both(program)


MISUSED = {
    "movedim": lambda t: t.zeros(2, 3).movedim(0, (1,)),
    "movedim of two": lambda t: t.zeros(2, 3).movedim((0, 1), 2),
    "unflatten": lambda t: t.zeros(4, 2).unflatten(0, 4),
    "promote_types": lambda t: t.promote_types(t.float32, 1),
    "can_cast": lambda t: t.can_cast(1, t.float32),
    "can_cast from a type": lambda t: t.can_cast(int, t.float32),
    "the imaginary part": lambda t: setattr(t.zeros(2, dtype=t.complex64), "imag", 1j),
    "the real part": lambda t: setattr(t.zeros(2, dtype=t.complex64), "real", "a"),
    "fill": lambda t: t.lerp(t.zeros(2), t.zeros(2, dtype=t.int16), 0.5),
}


@pytest.mark.parametrize("name", MISUSED)
def test_misused(name):
    both(lambda t: MISUSED[name](t))
