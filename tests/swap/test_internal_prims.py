"""Private modules of PyTorch that packages build on, against PyTorch's: shapes and dtypes, collectives, states, wider products."""

import pytest

import jtorch
from jtorch.distributed import _functional_collectives as mine_collectives
from jtorch.swap.internal import higher_order, inductor, prims_common, top, triton_ops, utils
from tests.oracle import torch
from tests.swap import programs

torchs = pytest.importorskip("torch._prims_common")

SHAPES = [(), (3,), (2, 3, 4), (2, 0, 4), (2, 3, 4, 5), (2, 1, 4, 5), (2, 3, 1, 1), (2, 3, 4, 5, 6), (0, 3, 4, 5)]


def outcome(fn, *args, **kwargs):
    """What a call gives, or the kind and the first line of its error."""
    try:
        return fn(*args, **kwargs)
    except Exception as error:
        return type(error), str(error).partition("\n")[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_strides(shape):
    for name in (
        "make_contiguous_strides_for", "make_channels_last_strides_for", "make_channels_last_2d_strides_for",
        "make_channels_last_3d_strides_for",
    ):  # fmt: skip
        assert outcome(getattr(prims_common, name), shape) == outcome(getattr(torchs, name), shape), name
    mine = prims_common.make_contiguous_strides_for(shape, row_major=False)
    assert mine == torchs.make_contiguous_strides_for(shape, row_major=False)


VIEWS = {
    "dense": lambda t: t.ones(2, 3, 4, 5),
    "last": lambda t: t.ones(2, 3, 4, 5).to(memory_format=t.channels_last),
    "one channel": lambda t: t.ones(2, 1, 4, 5),
    "one channel, last": lambda t: t.ones(2, 1, 4, 5).to(memory_format=t.channels_last),
    "one pixel": lambda t: t.ones(2, 3, 1, 1),
    "gaps": lambda t: t.ones(2, 3, 4, 6).to(memory_format=t.channels_last)[:, :, ::2],
    "expanded": lambda t: t.ones(4, 3, 2)[:, :, None].expand(4, 3, 5, 2),
    "empty": lambda t: t.ones(0, 3, 4, 5),
    "volume": lambda t: t.ones(2, 3, 4, 5, 6).to(memory_format=t.channels_last_3d),
    "matrix": lambda t: t.ones(4, 5).t(),
}


@pytest.mark.parametrize("name", VIEWS)
def test_memory_formats(name):
    mine, its = VIEWS[name](jtorch), VIEWS[name](torch)
    assert str(prims_common.suggest_memory_format(mine)) == str(torchs.suggest_memory_format(its))


def test_dtypes():
    names = ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")
    for question in (
        "is_boolean_dtype", "is_integer_dtype", "is_float_dtype", "is_complex_dtype", "dtype_to_type", "corresponding_real_dtype",
        "corresponding_complex_dtype",
    ):  # fmt: skip
        for name in names:
            mine = outcome(getattr(prims_common, question), getattr(jtorch, name))
            assert str(mine) == str(outcome(getattr(torchs, question), getattr(torch, name))), (question, name)
    for kind in (bool, int, float, complex, str):
        assert str(outcome(prims_common.type_to_dtype, kind)) == str(outcome(torchs.type_to_dtype, kind))
    for args in ((3, -1), (3, 5), (0, 0), (0, 0, False), (0, -1)):
        mine, its = outcome(prims_common.canonicalize_dim, *args), outcome(torchs.canonicalize_dim, *args)
        assert mine == its, args


def widened(t, out_dtype):
    """What out_dtype says of operators and dtypes."""
    aten = t.ops.aten
    a, f = t.arange(-6, 6, dtype=t.int8).reshape(3, 4) * 20, t.ones(3, 4) / 2
    calls = [
        (aten.mm.default, t.int32, a, a.t()), (aten.mul.Tensor, t.float64, a, f), (aten.mul.Scalar, t.int32, a, 3),
        (aten.add.Tensor, t.int32, a, a), (t.mm, t.int32, a, a),
    ]  # fmt: skip
    found = [outcome(out_dtype, *call) for call in calls]
    return [x if isinstance(x, tuple) else (str(x.dtype), x.tolist()) for x in found]


def test_out_dtype():
    its = pytest.importorskip("torch._higher_order_ops.out_dtype").out_dtype
    assert widened(jtorch, higher_order.out_dtype) == widened(torch, its)


def test_shallow_copies():
    def asked(t, compatible):
        x = t.ones(2)
        return [
            compatible(x, y) for y in (t.ones(3, 4), t.ones(3).int(), t.ones(3, device="meta"), t.ones(3).to_sparse())
        ]

    assert asked(jtorch, top._has_compatible_shallow_copy_type) == asked(torch, torch._has_compatible_shallow_copy_type)


def test_collectives_of_one_process():
    x = jtorch.arange(6.0).reshape(2, 3).requires_grad_()
    group = jtorch.distributed.GroupMember.WORLD
    for made in (
        mine_collectives.all_reduce(x, "sum", group), mine_collectives.all_gather_tensor(x, 0, group),
        mine_collectives.reduce_scatter_tensor(x, "avg", 1, group), mine_collectives.broadcast(x, 0, group),
        mine_collectives.all_to_all_single(x, None, [2], group), jtorch.ops._c10d_functional.wait_tensor.default(x.clone()),
    ):  # fmt: skip
        assert made is not x and jtorch.equal(made, x) and made.requires_grad
    for wrong in (
        lambda: mine_collectives.all_reduce(x, "median", group), lambda: mine_collectives.broadcast(x, 1, group),
        lambda: mine_collectives.all_to_all_single(x, [1, 1], None, group), lambda: mine_collectives.permute_tensor(x, [1], group),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(IndexError):
        mine_collectives.all_gather_tensor(x, 2, group)
    with pytest.raises(NotImplementedError, match="process groups"):
        jtorch.ops.c10d.scatter_.default([x], [[x]])


def test_states():
    class Plain:
        pass

    class Slots:
        __slots__ = ("y",)

    class Both(Plain):
        __slots__ = ("z",)

    its = pytest.importorskip("torch._utils")
    for cls, state in ((Plain, {"x": 1}), (Slots, (None, {"y": 2})), (Both, ({"x": 1}, {"z": 3}))):
        mine = utils._set_obj_state(cls(), state)
        assert utils._get_obj_state(mine) == its._get_obj_state(its._set_obj_state(cls(), state)) == state
    for wrong in ((1,), (1, 2, 3), 3):
        assert outcome(utils._set_obj_state, Plain(), wrong) == outcome(its._set_obj_state, Plain(), wrong)


def test_operators_by_name():
    x = jtorch.ones(2, 3)
    aten = jtorch.ops.aten
    assert aten.dim.default(x) == 2 and aten.is_contiguous.default(x) and not aten.is_pinned.default(x)
    assert aten.transpose_.default(x, 0, 1) is x and x.shape == (3, 2)
    assert aten.view_as_real.default(x + 1j).shape == (3, 2, 2)
    with pytest.raises(AttributeError, match="no attribute 'numpy'"):
        _ = aten.numpy


def test_what_is_noted_or_refused():
    op = jtorch.ops.aten.relu.default
    fn = inductor.register_decomposition([op])(lambda x: x)
    assert inductor.decompositions.pop(op) is fn
    with pytest.raises(NotImplementedError, match="Triton"):
        triton_ops.get_meta("op", (1,))


NAMES = """
    import jtorch
    jtorch.install_as_torch()
    import torch
    import torch._library.infer_schema, torch.distributed._functional_collectives as collectives
    from torch._higher_order_ops.out_dtype import out_dtype
    from torch._inductor.decomposition import register_decomposition
    from torch._library.infer_schema import infer_schema
    from torch._prims_common import make_contiguous_strides_for
    from torch.sparse._triton_ops import broadcast_batch_dims
    from torch.sparse._triton_ops_meta import get_meta, minimize, update
    def f(x: torch.Tensor) -> torch.Tensor: ...
    assert infer_schema(f, mutates_args={}) == "(Tensor x) -> Tensor" == torch.library.infer_schema(f, mutates_args={})
    assert torch._C.Tag is torch.Tag and not torch.cpu._is_vnni_supported() and not torch._C._cpu._init_amx()
    assert torch._has_compatible_shallow_copy_type(torch.ones(1), torch.ones(2))
    assert not isinstance(torch.ones(1), collectives.AsyncCollectiveTensor)
"""


def test_names(tmp_path):
    programs.run(NAMES, tmp_path)
