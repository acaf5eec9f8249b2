"""torch.ops.aten's derivatives and losses: values, gradients of them, and PyTorch's numbers for reductions."""

import pytest

import jtorch
from tests.oracle import torch
from tests.test_outer import check, plain

pytestmark = pytest.mark.filterwarnings("ignore")

# g, x of 3 by 4, both with gradients; i of 1, 2, 4, 4, w of 3, 2, 2, 2, h of 1, 3, 3, 3; o is torch.ops.aten.
DERIVATIVES = [
    "o.gelu_backward(g, x)", "o.gelu_backward(g, x, approximate='tanh')", "o.softplus_backward(g, x, 1, 20)",
    "o.hardswish_backward(g, x)", "o.tanh_backward(g, x)", "o.sigmoid_backward(g, x)", "o.threshold_backward(g, x, 0.0)", "o.threshold_backward(g, x * float('nan'), 0.0)", "o.leaky_relu_backward(g, x, 0.1, False)",
    "o.elu_backward(g, 1.5, 1.0, 1.0, False, x)", "o.hardtanh_backward(g, x, -1.0, 1.0)", "o.mse_loss_backward(g, x, x * 2, 0)",
    "o.mse_loss_backward(g[0, 0], x, x * 2, 1)", "o._log_softmax_backward_data(g, x, 1, t.float32)", "o.embedding_dense_backward(g, t.tensor([1, 0, 1]), 4, -1, False)",
    "o.select_backward(g[0], [3, 4], 0, 1)", "o.slice_backward(g[:2], [3, 4], 0, 1, 3, 1)",
    "o.convolution_backward(h, i, w, [3], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, True])",
    "o.native_layer_norm_backward(g, x, [4], *o.native_layer_norm(x, [4], w[0, 0].view(4), None, 1e-5)[1:], w[0, 0].view(4), None, [True, True, False])[:2]",
    "o.nll_loss_backward(g[0, 0], x, t.tensor([0, 3, 1]), None, 1, -100, t.tensor(3.0))", "o.nll_loss_forward(x, t.tensor([0, -100, 1]), None, 1, -100)",
    "o.nll_loss_forward(x, t.tensor([0, 3, 1]), x[0].detach().abs(), 2, -100)",
]  # fmt: skip
LOSSES = [
    *(f"o.{n}(x, g.detach(), {r})" for n in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss") for r in (0, 1, 2)),
    "o.smooth_l1_loss(x, g, 2, 0.5)", "o.huber_loss(x, g, 1, 0.5)", "o.binary_cross_entropy(x.sigmoid(), g.sigmoid(), None, 2)",
    "o.binary_cross_entropy_with_logits(x, g)", "o.binary_cross_entropy_with_logits(x, g, None, g.abs()[0].detach(), 2)", "o.kl_div(x, g.abs())", "o.kl_div(x, g, 2, log_target=True)",
    "o.nll_loss(x, t.tensor([0, 3, 1]), None, 2)", "o.cross_entropy_loss(x, t.tensor([0, 3, 1]), None, 1, -100, 0.1)", "o.hinge_embedding_loss(x, g.sign())",
    "o.multi_margin_loss(x, t.tensor([0, 3, 1]), 2, 0.5, None, 2)", "o.poisson_nll_loss(x, g.abs(), True, False, 1e-8, 1)", "o.cosine_embedding_loss(x, g, t.ones(3), 0.1, 2)",
    "o.margin_ranking_loss(x, g, t.ones(3, 4))", "o.triplet_margin_loss(x, g, x + g, 0.5, 2.0, 1e-6, False, 0)", "o.mse_loss(self=x, target=g, reduction=2)",
]  # fmt: skip


def run(t, code):
    t.manual_seed(0)
    shapes = {"g": (3, 4), "x": (3, 4), "i": (1, 2, 4, 4), "w": (3, 2, 2, 2), "h": (1, 3, 3, 3)}
    given = {n: t.randn(*shape).requires_grad_() for n, shape in shapes.items()}
    outs = eval(code, {"t": t, "o": t.ops.aten, **given})
    outs = [o for o in (outs if isinstance(outs, tuple) else (outs,)) if o is not None]
    loss = sum((o * o).sum() for o in outs if o.requires_grad)
    grads = t.autograd.grad(loss, list(given.values()), allow_unused=True, materialize_grads=True)
    return plain([o.detach() for o in outs]), plain(grads)


@pytest.mark.parametrize("code", DERIVATIVES + LOSSES)
def test_values_and_gradients(code):
    check(list(run(jtorch, code)), list(run(torch, code)))
