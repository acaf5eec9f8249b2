"""core/strided.py against numpy: reads and writes of any layout, and no needless gather."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jtorch.core import shapes
from jtorch.core.layout import Layout
from jtorch.core.strided import plan, reinterpret

torch = pytest.importorskip("torch")


@st.composite
def bases(draw):
    """A shape and dense strides in a random order of dimensions."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 4, 6]), max_size=4)))
    order = draw(st.permutations(range(len(shape)))) if draw(st.booleans()) else list(range(len(shape)))[::-1]
    strides, step = [0] * len(shape), 1
    for d in order:
        strides[d], step = step, step * shape[d]
    return shape, tuple(strides)


@st.composite
def views(draw, shape, strides):
    """A layout reached by a chain of random view ops, or any strides that stay inside the storage."""
    out = Layout(shape, strides, 0)
    if draw(st.integers(0, 4)) == 0:
        left = out.numel - 1
        offset = draw(st.integers(0, left))
        left -= offset
        dims = []
        for _ in range(draw(st.integers(0, 3))):
            n = draw(st.integers(0, 4))
            s = draw(st.integers(0, left // (n - 1) if n > 1 else 5))
            left -= max(n - 1, 0) * s
            dims.append((n, s))
        return Layout(tuple(n for n, _ in dims), tuple(s for _, s in dims), offset)
    for _ in range(draw(st.integers(0, 5))):
        out = draw(one_view(out))
    return out


@st.composite
def one_view(draw, x):
    kind = draw(
        st.sampled_from(["permute", "slice", "slice", "select", "unsqueeze", "expand", "view", "unfold", "diagonal"])
    )
    if kind == "permute":
        return x.permute(draw(st.permutations(range(x.ndim))))
    if kind == "unsqueeze":
        return x.unsqueeze(draw(st.integers(0, x.ndim)))
    if kind == "expand":
        lead = draw(st.lists(st.just(2), max_size=1))
        return x.expand((*lead, *(draw(st.sampled_from([2, -1])) if n == 1 else -1 for n in x.shape)))
    if not x.ndim:
        return x
    d = draw(st.integers(0, x.ndim - 1))
    n = x.shape[d]
    if kind == "slice":
        return x.slice(
            d,
            draw(st.integers(0, max(n - 1, 0))),
            draw(st.none() | st.integers(0, n)),
            draw(st.integers(1, 3)),
        )
    if kind == "select" and n:
        return x.select(d, draw(st.integers(0, n - 1)))
    if kind == "unfold":
        return x.unfold(d, draw(st.integers(1, n)) if n else 0, draw(st.integers(1, 4)))
    if kind == "diagonal" and x.ndim > 1:
        return x.diagonal(draw(st.integers(-2, 2)), d, (d + 1) % x.ndim)
    if kind == "view":
        target = draw(st.sampled_from([(-1,), (2, -1), (-1, 3), (3, -1, 2), (*x.shape[:d], -1, *x.shape[d + 2 :])]))
        try:
            return x.view(target)
        except RuntimeError:
            return x
    return x


def flat_index(layout):
    index = np.full(layout.shape, layout.offset, int)
    for d, (n, s) in enumerate(zip(layout.shape, layout.strides)):
        index += (np.arange(n) * s).reshape([-1 if e == d else 1 for e in range(layout.ndim)])
    return index


def check(shape, strides, layout):
    place = flat_index(Layout(shape, strides, 0))
    memory = np.arange(place.size, dtype=np.float32)
    base = memory[place]
    index = flat_index(layout)
    recipe, starts = plan(shape, strides, layout.shape, layout.strides, layout.offset)
    value = -1 - np.arange(index.size, dtype=np.float32).reshape(index.shape)

    def known_and_given(base, value, one_by_one, in_one):
        reads = [recipe.read(base, at) for at in (starts, one_by_one, in_one)]
        return reads, [recipe.write(base, at, value) for at in (starts, in_one)]

    given = base, value, tuple(map(np.int32, starts)), np.asarray(starts, np.int32)
    reads, writes = jax.jit(known_and_given)(*given)
    for read in reads:
        np.testing.assert_array_equal(read, memory[index])
    memory = memory.copy()
    order = np.argsort([-s for s in layout.strides], kind="stable")  # PyTorch's: the largest stride outermost
    # of those that share an element the last stays
    memory[index.transpose(order).reshape(-1)] = value.transpose(order).reshape(-1)
    for written in writes:
        np.testing.assert_array_equal(written, memory[place])
    return recipe


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_read_write(data):
    shape, strides = data.draw(bases())
    check(shape, strides, data.draw(views(shape, strides)))


def contiguous(shape):
    return Layout.contiguous(shape)


# name, base shape, the view of it, and the primitives that reading it may use
COMMON = [
    ("identity", (4, 5), lambda x: x, ""),
    ("unsqueeze", (4, 5), lambda x: x.unsqueeze(1), "reshape"),
    ("transpose", (4, 5), lambda x: x.permute((1, 0)), "transpose"),
    ("permute", (2, 3, 4), lambda x: x.permute((2, 0, 1)), "transpose"),
    ("view", (4, 6), lambda x: x.view((2, 2, 6)), "reshape"),
    ("flatten", (4, 6), lambda x: x.view((-1,)), "reshape"),
    ("heads", (2, 5, 12), lambda x: x.view((2, 5, 3, 4)).permute((0, 2, 1, 3)), "reshape transpose"),
    ("row", (4, 5), lambda x: x.select(0, 2), "slice reshape"),
    ("column", (4, 5), lambda x: x.select(1, 2), "slice reshape"),
    ("rows", (4, 5), lambda x: x.slice(0, 1, 3), "slice"),
    ("block", (4, 5), lambda x: x.slice(0, 1, 3).slice(1, 2, 4), "slice"),
    ("stepped", (7, 6), lambda x: x.slice(0, 1, 7, 2).slice(1, 0, 6, 3), "slice"),
    ("row.T", (4, 5, 6), lambda x: x.select(0, 1).permute((1, 0)), "slice reshape transpose"),
    ("T.row", (4, 5, 6), lambda x: x.permute((2, 1, 0)).select(0, 1), "slice reshape transpose"),
    ("rows.view", (4, 5, 6), lambda x: x.slice(0, 1, 3).view((10, 6)), "slice reshape"),
    ("qkv", (2, 5, 36), lambda x: x.slice(2, 12, 24).view((2, 5, 3, 4)), "slice reshape"),
    ("half", (2, 5, 8), lambda x: x.view((2, 5, 4, 2)).select(3, 1), "slice reshape"),
    ("expand", (4, 1), lambda x: x.expand((2, 4, 5)), "reshape broadcast_in_dim"),
    ("diagonal", (4, 4), lambda x: x.diagonal(0, 0, 1), "slice reshape"),
    ("diagonals", (3, 4, 5), lambda x: x.diagonal(1, 1, 2), "slice reshape"),
    ("patches", (2, 3, 8, 8), lambda x: x.unfold(2, 4, 4).unfold(3, 4, 4), "reshape transpose"),
    ("windows", (2, 9), lambda x: x.unfold(1, 2, 3), "slice reshape"),
    ("gaps", (20,), lambda x: x.as_strided((3, 4), (6, 1), 2), "slice reshape pad"),
]


@pytest.mark.parametrize("name,shape,make,allowed", COMMON, ids=[c[0] for c in COMMON])
def test_common_views(name, shape, make, allowed):
    layout = make(contiguous(shape))
    recipe = check(shape, shapes.contiguous_strides(shape), layout)
    _, starts = plan(shape, shapes.contiguous_strides(shape), layout.shape, layout.strides, layout.offset)
    x = jnp.zeros(shape, jnp.float32)
    read = {e.primitive.name for e in jax.make_jaxpr(lambda a: recipe.read(a, starts))(x).eqns}
    assert read <= set(allowed.split()), read
    text = str(jax.make_jaxpr(lambda a, s: recipe.read(a, s))(x, np.asarray(starts, np.int32)))
    assert "gather" not in text
    if not layout.has_overlap():
        value = jnp.zeros(layout.shape, jnp.float32)
        text = str(jax.make_jaxpr(recipe.write)(x, np.asarray(starts, np.int32), value))
        assert "scatter" not in text and "gather" not in text
        if layout.numel == x.size:
            assert recipe.is_full and "update" not in text


def test_channels_last_base_keeps_axes():
    shape, strides = (2, 3, 4, 5), shapes.channels_last_strides((2, 3, 4, 5))
    assert check(shape, strides, Layout(shape, strides, 0)).steps == ()
    recipe = check(shape, strides, Layout(shape, strides, 0).select(0, 1))
    assert [type(s).__name__ for s in recipe.steps] == ["Slice", "Reshape"]
    recipe = check(shape, strides, Layout(shape, strides, 0).permute((0, 2, 3, 1)).view((2, 20, 3)).permute((0, 2, 1)))
    assert [type(s).__name__ for s in recipe.steps] == ["Permute", "Reshape", "Permute"]


def test_overlapping_windows_gather_slices():
    x = contiguous((2, 8, 8, 3))
    recipe = check((2, 8, 8, 3), x.strides, x.unfold(1, 3, 1).unfold(2, 3, 1))
    assert [type(s).__name__ for s in recipe.steps] == ["Gather", "Gather", "Permute"]


@pytest.mark.parametrize(
    "pick",
    [
        lambda x, i: x.select(0, i),
        lambda x, i: x.select(1, i),
        lambda x, i: x.slice(0, i, i + 3),
        lambda x, i: x.slice(0, i, i + 4, 2),
        lambda x, i: x.slice(0, i, i + 3).view((-1,)),
        lambda x, i: x.select(0, i).permute((1, 0)),
        lambda x, i: x.select(1, i).unfold(1, 2, 1),
    ],
)
def test_offsets_share_a_recipe(pick):
    x = contiguous((6, 6, 4))
    seen = set()
    for i in range(3):
        layout = pick(x, i)
        recipe, starts = plan(x.shape, x.strides, layout.shape, layout.strides, layout.offset)
        seen.add(recipe)
        check(x.shape, x.strides, layout)
    assert len(seen) == 1


def test_empty():
    assert check((0, 3), (3, 1), contiguous((0, 3))).steps == ()
    check((0, 3), (3, 1), Layout((3, 0), (1, 3), 0))
    check((4,), (1,), Layout((0, 2), (7, 1), 100))


TYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("old", TYPES)
@pytest.mark.parametrize("new", TYPES)
def test_reinterpret(old, new):
    data = torch.arange(16 * 4, dtype=torch.uint8) % 2 if "bool" in (old, new) else torch.arange(64, dtype=torch.uint8)
    source, want = (data.view(getattr(torch, t)) for t in (old, new))
    as_np = lambda t: np.frombuffer(data.numpy().tobytes(), dtype=jnp.dtype(t))
    got = jax.jit(reinterpret, static_argnums=1)(jnp.asarray(as_np(old)), jnp.dtype(new))
    assert got.shape == tuple(want.shape) and got.dtype == jnp.dtype(new) and source.dtype is not None
    assert np.asarray(got).tobytes() == bytes(data.tolist())
