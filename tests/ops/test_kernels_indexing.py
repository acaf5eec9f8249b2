"""Kernels of indexing, joining and creating: values, dtypes, gradients and errors against PyTorch's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jtorch.core import dtype as dt
from jtorch.ops import create, indexing, join, masks, scatter, slices
from jtorch.ops.registry import COMPOSITES, OPS
from tests.ops.kernel_checks import Row, check, check_error, rand, row_id, torch

T = torch
I3 = np.array([2, 0, 2])
IDX = np.array([[0, 2, 1, 1], [2, 0, 0, 1]])
MASK = np.array([[1, 0, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0]], bool)
x, y, v = rand(3, 4), rand(3, 4, seed=1), rand(4, seed=2)
z = rand(2, 4, seed=5)
x3 = rand(2, 3, 4, seed=3)
tied = np.array([[1.0, 2, 2, 1], [0, 2, 1, 1], [3, 2, 2, 0]], np.float32)


def ix(*indices):
    """torch's x[...] below its parser, which takes 0-d tensors for numbers."""
    return lambda t, _=None: T.ops.aten.index(t, [None if i is None else T.as_tensor(i) for i in indices])


ROWS = [
    Row("_chunk_cat", ([rand(3, 2), rand(2)], 0, 2), grad=False),
    Row("_chunk_cat", ([rand(3, 4, 2), rand(3, 5)], 1, 2), grad=False),
    Row("nonzero_static", (MASK,), {"size": 8, "fill_value": -2}),
    Row("_unsafe_masked_index", (x, MASK[0], [np.array([0, 7, 1, 2]), np.array([3, 1, -9, 0])], 0.5)),
    Row("_unsafe_masked_index_put_accumulate", (x, MASK[0], [np.array([0, 7, 1, 2]), np.array([3, 1, -9, 0])], v)),
    *[
        Row("index", (a, list(ids)), ref=ix(*ids))
        for a, ids in [
            (x, (I3,)),
            (x, (np.array([-1, 0]),)),
            (x, (None, np.array([[1, -1], [0, 2]]))),
            (x3, (I3 % 2, None, np.array([1, 2, 3]))),
            (x3, (None, I3, np.array([1, 2, 3]))),
            (x3, (np.array(1), None, np.array([[1], [2]]))),
            (x3, (np.array([], np.int64),)),
            (rand(40, 16), (np.arange(64).reshape(4, 16) % 7,)),
        ]
    ],
    Row("index_put", (x, [I3[:2]], rand(2, 4)), ref=lambda t, i, s: T.index_put(t, (T.tensor(I3[:2]),), s)),
    Row("index_put", (x, [I3], v, True), ref=lambda t, i, s, a: T.index_put(t, (T.tensor(I3),), s, True)),
    Row("index_put", (x, [MASK], np.float32(2)), ref=lambda t, i, s: T.index_put(t, (T.tensor(MASK),), s)),
    Row("gather", (x, 1, IDX)),
    Row("gather", (x, 1, np.array([[1], [3], [0]]))),
    Row("gather", (x, -2, IDX[:, :2])),
    Row("gather", (v, 0, np.array([3, 3]))),
    Row("gather", (np.float32(3), 0, np.array([0, 0]))),
    Row("take_along_dim", (x, np.array([[1], [0], [2]]), 1)),
    Row("take_along_dim", (x, np.array([[1, 2]]), 1)),
    Row("take_along_dim", (x, np.array([11, 3]))),
    Row("scatter", (x, 0, IDX, z)),
    Row("scatter", (x, 0, IDX[:, :2], z[:, :2])),
    Row("scatter", (x, 0, IDX, 2.5)),
    Row("scatter", (x, 0, IDX, z), {"reduce": "add"}, grad=False),
    Row("scatter", (x, 0, IDX, z), {"reduce": "multiply"}, grad=False),
    Row("scatter_add", (x, 0, IDX, z)),
    Row("scatter_add", (x, 1, IDX[:, :2], z[:, :2])),
    Row("scatter_add", (x, 0, IDX[:, :2], y), grad=False),
    *[
        Row("scatter_reduce", (a, 0, IDX, b, r), {"include_self": s})
        for r in ("sum", "prod", "mean", "amax", "amin")
        for s in (True, False)
        for a, b in [(x, z)] + [(tied, tied[:2])] * (s and r != "prod")
    ],
    Row("scatter_reduce", (tied, 0, IDX, tied[:2], "prod")),
    *[
        Row("scatter_reduce", (x, 0, IDX, z, r), grad=False) for r in ("max", "min")
    ],  # torch's derivative refuses these names
    Row("index_select", (x, 0, I3)),
    Row("index_select", (x3, 1, I3)),
    Row("index_add", (x, 0, I3, y), {"alpha": 2.0}),
    Row("index_add", (x3, 1, I3, x3)),
    Row("index_copy", (x, 0, np.array([2, 0]), rand(2, 4))),
    Row("index_fill", (x, 1, np.array([2, -4]), 3.0)),
    *[
        Row("index_reduce", (x, 0, I3, y, r), {"include_self": s})
        for r in ("prod", "mean", "amax", "amin")
        for s in (True, False)
    ],
    Row("take", (x, np.array([[11, -1], [0, 0]]))),
    Row("put", (x, np.array([1, -1]), rand(2))),
    Row("put", (x, np.array([1, 1]), rand(2), True)),
    Row("masked_fill", (x, MASK, 2.0)),
    Row("masked_fill", (x, MASK[0], np.float32(1.5))),
    Row("masked_fill", (np.arange(3), MASK[:1, :3], 1.7)),
    Row("masked_scatter", (x, MASK, y)),
    Row("masked_select", (x, MASK)),
    Row("masked_select", (v, MASK)),
    Row("nonzero", (MASK,)),
    Row("nonzero", (MASK,), {"as_tuple": True}),
    Row("nonzero", (np.array(3),)),
    Row("nonzero", (np.array(0),)),
    Row("argwhere", (tied,)),
    Row("tril", (x3, 1)),
    Row("triu", (x3, -1)),
    Row("triu", (MASK,)),
    Row("diag", (x, 1)),
    Row("diag", (v, -1)),
    Row("diag_embed", (x, 1, 0, 2)),
    Row("diag_embed", (x, -2)),
    Row("diagflat", (x, 1)),
    Row("trace", (x,)),
    Row("trace", (np.arange(9, dtype=np.int32).reshape(3, 3),)),
    Row("diagonal_scatter", (x3, rand(2, 3), 0, 1, 2)),
    Row("diagonal_scatter", (x, rand(2), 2)),
    Row("select_scatter", (x, rand(3), 1, -1)),
    Row("slice_scatter", (x, rand(3, 2), 1, 0, 4, 2)),
    Row("slice_scatter", (x, rand(2, 4), 0, -2)),
    Row("one_hot", (IDX, 4), ref=T.nn.functional.one_hot),
    Row("one_hot", (IDX,), ref=T.nn.functional.one_hot),
    Row("bincount", (I3,)),
    Row("bincount", (I3, rand(3), 5), grad=False),
    Row("histc", (x, 5, -1.0, 1.0)),
    Row("histc", (x, 4)),
    # join
    Row("cat", ([x, y],)),
    Row("cat", ([x, np.ones((2, 4), np.int64)], -2)),
    Row("cat", ([np.zeros(0, np.float32), x], 1)),
    Row("stack", ([x, y], -1)),
    Row("hstack", ([v, v],)),
    Row("hstack", ([x, y],)),
    Row("vstack", ([v, x],)),
    Row("dstack", ([x, y],)),
    Row("column_stack", ([rand(3), x],)),
    Row("block_diag", (x, v, np.float32(2))),
    Row("atleast_1d", (np.float32(2),)),
    Row("atleast_2d", (v,)),
    Row("atleast_3d", (v, x)),
    Row("broadcast_tensors", (v, x3)),
    Row("meshgrid", (v, rand(3)), {"indexing": "ij"}),
    Row("meshgrid", (v, rand(3)), {"indexing": "xy"}),
    Row("cartesian_prod", (v, rand(3))),
    Row("combinations", (v,)),
    Row("combinations", (v, 3, True)),
    Row("flip", (x3, (0, -1))),
    Row("fliplr", (x,)),
    Row("flipud", (x,)),
    Row("roll", (x3, 5)),
    Row("roll", (x3, (1, -2), (0, 2))),
    Row("rot90", (x3, 3, (1, 2))),
    Row("repeat", (x, (2, 1, 3))),
    Row("tile", (x, (2,))),
    Row("repeat_interleave", (x, 2)),
    Row("repeat_interleave", (x, 3, 1)),
    Row("repeat_interleave", (x, np.array([1, 0, 2]), 0)),
    Row("repeat_interleave", (np.array([1, 0, 2]),)),
    Row("vander", (v,), grad=False),
    Row("vander", (np.arange(3), 2, True)),
]


@pytest.mark.filterwarnings("ignore:The reduce argument", "ignore:index_reduce", "ignore:torch.meshgrid")
@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_like_torch(row):
    check(row)


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_extremum_without_self(reduce):
    # places that are written to owe `input` no gradient, even where they hold the extremum by chance
    args = (jnp.asarray(tied), 0, jnp.asarray(IDX), jnp.asarray(tied[:2]))
    _, pull = jax.vjp(lambda a: scatter.scatter_reduce(a, *args[1:], reduce, include_self=False), args[0])
    hit = np.zeros((3, 4), bool)
    np.put_along_axis(hit, IDX, True, 0)
    np.testing.assert_array_equal(np.asarray(pull(jnp.ones((3, 4), jnp.float32))[0])[hit], 0)


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


ERRORS = [
    ("index", (x, [np.array([0, 1]), I3]), ix(np.array([0, 1]), I3)),
    ("index", (x, [np.array([5])]), ix(np.array([5]))),
    ("index", (x, [None, np.array([-5])]), ix(None, np.array([-5]))),
    ("index_put", (x, [I3[:1]], ones(2)), lambda t, i, s: T.index_put(t, (T.tensor(I3[:1]),), s)),
    (
        "index_put",
        (x, [I3[:1]], ones(4).astype(float)),
        lambda t, i, s: T.index_put(t, (T.tensor(I3[:1]),), s),
    ),
    *[
        (name, args, None)
        for name, args in [
            ("gather", (x, 0, np.array([[5]]))),
            ("gather", (x, 0, np.array([[-1]]))),
            ("gather", (x, 0, np.array([0]))),
            ("gather", (x, 2, np.array([[0]]))),
            ("gather", (x, 0, ones(1, 1))),
            ("gather", (x, 0, np.zeros((2, 5), int))),
            ("scatter", (x, 0, np.array([[5]]), y)),
            ("scatter", (x, 0, np.array([0]), y)),
            ("scatter", (x, 0, np.zeros((2, 5), int), y)),
            ("scatter", (x, 0, np.array([[0]]), y.astype(float))),
            ("scatter_add", (x, 0, np.array([[0]]), y.astype(float))),
            ("scatter_reduce", (x, 0, np.array([[0]]), y, "foo")),
            ("index_select", (x, 0, np.array([5]))),
            ("index_select", (x, 0, np.array([-1]))),
            ("index_select", (x, 0, np.array([[1]]))),
            ("index_select", (x, 0, ones(1))),
            ("index_select", (x, 2, np.array([1]))),
            ("index_add", (x, 0, np.array([5]), ones(1, 4))),
            ("index_add", (x, 0, np.array([0]), ones(2, 4))),
            ("index_add", (x, 0, np.array([0]), ones(1, 3))),
            ("index_add", (x, 0, np.array([0]), ones(1, 4).astype(float))),
            ("index_copy", (x, 0, np.array([5]), ones(1, 4))),
            ("index_copy", (x, 0, np.array([0]), ones(2, 4))),
            ("index_fill", (x, 0, np.array([5]), 1.0)),
            ("index_fill", (x, 0, ones(1), 1.0)),
            ("index_reduce", (x, 0, np.array([0]), ones(1, 4), "foo")),
            ("take", (x, np.array([50]))),
            ("put", (x, np.array([0]), ones(2))),
            ("put", (x, np.array([0]), ones(1).astype(float))),
            ("masked_fill", (x, np.array([1]), 1.0)),
            ("masked_select", (x, np.array([1]))),
            ("masked_scatter", (x, MASK, ones(2))),
            ("masked_scatter", (x, MASK, ones(12).astype(float))),
            ("tril", (v,)),
            ("flip", (x, (3,))),
            ("flip", (x, (0, 0))),
            ("roll", (x, (1, 2), (0,))),
            ("rot90", (x, 1, (0, 0))),
            ("repeat", (x, (2,))),
            ("repeat_interleave", (x, np.array([1, 2]), 0)),
            ("repeat_interleave", (x, np.array([1, -2, 1]), 0)),
            ("diag", (x3,)),
            ("diag_embed", (x, 0, 1, 1)),
            ("trace", (x3,)),
            ("bincount", (np.array([-1]),)),
            ("bincount", (ones(1),)),
            ("bincount", (I3, ones(2))),
            ("histc", (I3,)),
            ("histc", (x, 0)),
            ("take_along_dim", (x, np.array([0]), 0)),
            ("take_along_dim", (x, ones(1, 1), 0)),
            ("select_scatter", (x, ones(3), 0, 0)),
            ("slice_scatter", (x, ones(3), 0, 0)),
            ("diagonal_scatter", (x, ones(4))),
            ("cat", ([],)),
            ("cat", ([ones(2, 3), ones(2, 4)],)),
            ("cat", ([ones(2), ones(2, 4)],)),
            ("cat", ([ones(2), ones(2)], 1)),
            ("cat", ([ones(), ones()],)),
            ("stack", ([ones(2), ones(3)],)),
            ("stack", ([],)),
            ("stack", ([ones(2)], 3)),
            ("hstack", ([ones(2, 3), ones(3, 3)],)),
            ("vstack", ([ones(2), ones(3)],)),
            ("block_diag", (ones(2, 2, 2),)),
            ("cartesian_prod", (ones(2, 2),)),
            ("combinations", (ones(2, 2),)),
            ("broadcast_tensors", (ones(2), ones(3))),
            ("vander", (ones(2, 2),)),
        ]
    ],
]


@pytest.mark.filterwarnings("ignore:torch.meshgrid")
@pytest.mark.parametrize("name,args,ref", ERRORS, ids=lambda a: a if isinstance(a, str) else "")
def test_error_like_torch(name, args, ref):
    check_error(name, args, ref)


NEW = [
    ("arange", (0, 10, 1), dict(dtype=T.int64)),
    ("arange", (0, 1, 0.1), dict(dtype=T.float32)),
    ("arange", (5, -3, -2), dict(dtype=T.float32)),
    ("arange", (0.5, 7.3, 0.7), dict(dtype=T.float64)),
    ("arange", (1, 3, 0.3), dict(dtype=T.bfloat16)),
    ("linspace", (-1.0, 2.5, 7), dict(dtype=T.float32)),
    ("linspace", (0, 10, 4), dict(dtype=T.int64)),
    ("linspace", (0.0, 1.0, 1), dict(dtype=T.float64)),
    ("linspace", (0.0, 1.0, 0), dict(dtype=T.float32)),
    ("logspace", (-1.0, 2.0, 5), dict(dtype=T.float32)),
    ("logspace", (0, 3, 4, 2.0), dict(dtype=T.float64)),
    ("eye", (3, 4), dict(dtype=T.float32)),
    ("full", ((2, 3), 1.5), dict(dtype=T.float16)),
    ("full", ((2,), 3), dict(dtype=T.int32)),
    ("tril_indices", (3, 4, 1), dict(dtype=T.int64)),
    ("triu_indices", (3, 4, -1), dict(dtype=T.int32)),
]


@pytest.mark.parametrize("name,args,kw", NEW, ids=lambda a: a if isinstance(a, str) else "")
def test_create(name, args, kw):
    want = getattr(T, name)(*args, **kw)
    kind = getattr(dt, str(kw["dtype"]).removeprefix("torch."))
    got = jax.jit(lambda: getattr(create, name).fn(*args, dtype=kind))()
    assert got.dtype == kind.np
    tol = 1e-2 if kind.itemsize == 2 else 2e-7 if kind is dt.float32 else 1e-15
    np.testing.assert_allclose(
        np.asarray(got).astype(float), want.double().numpy(), rtol=tol, atol=tol if want.numel() else 0
    )


def test_arange_sizes():
    for args in [(0, 1, -1), (0, 1, 0), (3, 0, 1)]:
        with pytest.raises(RuntimeError) as want:
            T.arange(*args)
        with pytest.raises(RuntimeError, match=str(want.value)):
            create.arange(*args, dtype=dt.int64)


def test_every_op_is_tested():
    tested = {r.name for r in ROWS} | {n for n, *_ in NEW} | {n for n, *_ in ERRORS}
    homes = [m.__name__ for m in (indexing, scatter, slices, masks, join, create)]
    public = {r.name for r in (*OPS.values(), *COMPOSITES.values()) if r.__module__ in homes and r.targets}
    assert public - tested <= {"as_strided_scatter", "broadcast_to", "unravel_index"}  # these need a Tensor
