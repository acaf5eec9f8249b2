"""torch.ops.aten: operators whose arguments have another order than the public function's, and those that exist only there."""

import pytest

import jtorch
from tests.oracle import torch
from tests.test_aten_backward import run
from tests.test_outer import check

pytestmark = pytest.mark.filterwarnings("ignore")

# g, x of 3 by 4, i of 1, 2, 4, 4, h of 1, 3, 3, 3, all with gradients; o is torch.ops.aten.
ACTIVATIONS = [
    *(f"o.elu({a})" for a in ("x", "x, 2", "x, 1.5, 2.5", "x, 1.5, 2.5, 0.3", "x, alpha=2, scale=3, input_scale=0.5", "x, 1.0, 1")),
    "o.elu.default(x, 1.0, 2)", "o.elu_(x * 2, 1.5, 2.0, 0.5)", "o.leaky_relu_(x * 2, 0.2)", "o.hardtanh_(x * 2, -0.5, 0.5)", "o.gelu_(x.detach() * 1) + x",
    *(f"o.{n}_(x * 3)" for n in ("hardsigmoid", "hardswish", "mish", "relu6", "silu", "elu")),
    "o._softmax(x, 1, False)", "o._log_softmax(x, 0, False)", "o._log_softmax_backward_data(g, x.log_softmax(1), 1, t.float32)",
    "t._softmax(x, -1, False)", "t._log_softmax(x, -1, False)", "t._softmax_backward_data(g, x.softmax(0), 0, t.float32)",
]  # fmt: skip
POOLS = [
    "o.adaptive_max_pool2d(i, [2, 3])", "o.adaptive_max_pool1d(i[0], [2])[0]", "o.adaptive_max_pool3d(i, [1, 2, 2])[1].float() * i[0, 0, 0, 0]",
    "o.fractional_max_pool2d(i, [2, 2], [2, 3], t.full((1, 2, 2), 0.4))[0]", "o.max_unpool2d(h[:, :, :2, :2], t.tensor([0, 2, 8, 15]).view(1, 1, 2, 2).expand(1, 3, 2, 2), [4, 4])",
    "o.max_unpool2d(h[:, :, :2, :2], t.tensor([0, 2, 8, 15]).view(1, 1, 2, 2).expand(1, 3, 2, 2), [5, 5])", "o.max_unpool3d(h[:, :, :2, :2, None], t.tensor([0, 2, 8, 15]).view(1, 1, 2, 2, 1).expand(1, 3, 2, 2, 1), [4, 4, 1], [2, 2, 1], [0, 0, 0])",
]  # fmt: skip
IMAGES = [
    *(f"o.{n}2d(i, {out}{more})" for n in ("upsample_nearest", "_upsample_nearest_exact") for out, more in (("[7, 9]", ""), ("[6, 8]", ", 1.5, 2.0"), ("[8, 6]", ", scales_h=2.0, scales_w=1.5"))),
    *(f"o.{n}2d(i, {out}{more})" for n in ("upsample_bilinear", "upsample_bicubic") for out, more in (("[7, 9]", ", True"), ("[7, 9]", ", False, None, None"), ("[6, 8]", ", align_corners=False, scales_h=1.6, scales_w=2.0"))),
    *(f"o.upsample_{n}2d.vec(i, {more})" for n, more in (("nearest", "None, [2.0, 1.5]"), ("nearest", "[5, 5], None"), ("bilinear", "None, False, [2.0, 1.3]"), ("bicubic", "[3, 3], True, None"))),
    "o.upsample_linear1d(i[0], [7], False)", "o.upsample_nearest1d(i[0], [7], None)", "o.upsample_trilinear3d(i[None], [3, 5, 5], False)", "o.upsample_nearest3d(i[None], [3, 5, 5])",
]  # fmt: skip
BACKWARDS = [
    "o.upsample_nearest2d_backward(i, [4, 4], [1, 2, 3, 2])", "o.upsample_bilinear2d_backward(i, output_size=[4, 4], input_size=[1, 2, 3, 2], align_corners=True)",
    "o.upsample_bicubic2d_backward(i, [4, 4], [1, 2, 3, 2], False)", "o._upsample_nearest_exact2d_backward(i, [4, 4], [1, 2, 2, 3])", "o.reflection_pad2d_backward(i, h[:, :2, :2, :2], [1, 1, 1, 1])",
    "o.replication_pad2d_backward(i, h[:, :2, :, :], [-1, 2, 1, 0])", "o.avg_pool2d_backward(h[:, :2, :2, :2], i, [2, 2], [2, 2], [0, 0], False, True, None)", "o.glu_backward(g[:, :2], x, 1)", "o.hardshrink_backward(g, x, 0.5)", "o.softshrink_backward(g, x, 0.5)",
    "o._adaptive_avg_pool2d_backward(h[:, :2], i)", "o.log_sigmoid_backward(g, x, (-x.detach().abs()).exp())", "o.huber_loss_backward(g, x, x.detach() * 2, 0, 1.5)", "o.smooth_l1_loss_backward(g[0, 0], x, x.detach() * 2, 1, 0.7)",
    "o.soft_margin_loss_backward(g, x, x.detach().sign(), 0)", "o.binary_cross_entropy_backward(g, x.sigmoid(), x.detach().sigmoid(), None, 0)",
]  # fmt: skip
OTHERS = [
    "(o.slice(x, 0, 1), o.index(x, [None, t.tensor([1, 2])]))", "o._unsafe_index(x, [t.tensor([1, 2])])", "o._unsafe_index_put(x, [None, t.tensor([1, 2])], g[:, :2])",
    "o._unsafe_index_put(x, [t.tensor([1, 1])], g[:2], True)", "o.tensordot(x, g, [0, 1], [0, 1])", "tuple(o._foreach_add([x, g], [g, x]))", "tuple(o._foreach_mul.Scalar([x, g], 2.0))",
    "o.hann_window(4) * x", "o.fill(x, 2.0)", "o.fill.Tensor(x, x[0, 0])", "(o.resolve_conj(x), o.ravel(x), o.sum_to_size(x, [1, 4]), o.reshape_as(x, t.ones(4, 3)))",
    "(lambda y, z: (y, z * 1, x))(o.resize(x.detach(), [2, 2]), o.resize_as(x.detach(), t.ones(1, 2, 2, 3).to(memory_format=t.channels_last), memory_format=t.preserve_format))",
    "o.embedding_bag(x, t.tensor([0, 2, 1]), t.tensor([0, 2]), False, 1)[0]", "o._embedding_bag(x, t.tensor([0, 2, 1]), t.tensor([0, 2]))[0]",
]  # fmt: skip


@pytest.mark.parametrize("code", ACTIVATIONS + POOLS + IMAGES + BACKWARDS + OTHERS)
def test_values_and_gradients(code):
    check(list(run(jtorch, code)), list(run(torch, code)))


@pytest.mark.parametrize("size", ["None, None", "[4], [2.0]"])
def test_either_size_or_scales(size):
    for t in (jtorch, torch):
        with pytest.raises(RuntimeError, match="Must specify exactly one of output_size and scale_factors"):
            eval(f"t.ops.aten.upsample_nearest1d.vec(t.ones(1, 2, 3), {size})", {"t": t})
