"""What must not be written to between forward and backward: `y = op(x)`, a write to x or y, backward. As PyTorch for each operator
whose derivative keeps other tensors here than there, and for some whose are the same."""

import pytest

import jtorch
from tests.oracle import torch

# name -> the call; x and w are (3, 3), symmetric and well conditioned, v is (3,)
CALLS = {
    "mul": lambda t, x, w: x * w,
    "exp": lambda t, x, w: x.exp(),
    "prod": lambda t, x, w: x.prod(),
    "cumprod": lambda t, x, w: x.cumprod(0),
    "cummax": lambda t, x, w: x.cummax(0),
    "erfinv": lambda t, x, w: t.erfinv(x / 9),
    "sgn": lambda t, x, w: x.sgn(),
    "gather": lambda t, x, w: x.gather(0, t.zeros(1, 3, dtype=t.long)),
    "masked_select": lambda t, x, w: x.masked_select(t.eye(3) > 0),
    "trace": lambda t, x, w: x.trace(),
    "kron": lambda t, x, w: t.kron(x, w),
    "fft2": lambda t, x, w: t.fft.fft2(x),
    "cdist": lambda t, x, w: t.cdist(x, w),
    "quantile": lambda t, x, w: x.quantile(0.5),
    "complex": lambda t, x, w: t.complex(x, w),
    "prelu": lambda t, x, w: t.nn.functional.prelu(x, w[0]),
    "tanhshrink": lambda t, x, w: t.nn.functional.tanhshrink(x),
    "softplus": lambda t, x, w: t.nn.functional.softplus(x),
    "layer_norm": lambda t, x, w: t.nn.functional.layer_norm(x, (3,), w[0].clone()),
    "avg_pool1d": lambda t, x, w: t.nn.functional.avg_pool1d(x, 2),
    "cross_entropy": lambda t, x, w: t.nn.functional.cross_entropy(x, t.zeros(3, dtype=t.long)),
    "l1_loss": lambda t, x, w: t.nn.functional.l1_loss(x, w),
    "qr": lambda t, x, w: t.linalg.qr(x),
    "inv": lambda t, x, w: t.linalg.inv(x),
    "det": lambda t, x, w: t.linalg.det(x),
    "svdvals": lambda t, x, w: t.linalg.svdvals(x),
    "cholesky": lambda t, x, w: t.linalg.cholesky(x),
    "eigh": lambda t, x, w: t.linalg.eigh(x),
    "solve": lambda t, x, w: t.linalg.solve(x, w),
    "lu": lambda t, x, w: t.linalg.lu_factor(x),
    "div floor": lambda t, x, w: t.div(x, w, rounding_mode="floor"),
    "div": lambda t, x, w: x.div(w),
    "pad": lambda t, x, w: t.nn.functional.pad(x, (1, 1)),
    "pad reflect": lambda t, x, w: t.nn.functional.pad(x[None], (1, 1), mode="reflect"),
    "adaptive_avg_pool2d": lambda t, x, w: t.nn.functional.adaptive_avg_pool2d(x[None], 2),
    "adaptive_avg_pool2d to 1": lambda t, x, w: t.nn.functional.adaptive_avg_pool2d(x[None], 1),
    "rfft": lambda t, x, w: t.fft.rfft(x),
    "rfft of other length": lambda t, x, w: t.fft.rfft(x, n=5),
    "rfft2": lambda t, x, w: t.fft.rfft2(x),
    "rfftn of some dimensions": lambda t, x, w: t.fft.rfftn(x, dim=(0,)),
    "rfftn of other lengths": lambda t, x, w: t.fft.rfftn(x, (5, 5)),
    "fft of complex": lambda t, x, w: t.fft.fft(t.complex(x, w)),
    "trapezoid": lambda t, x, w: t.trapezoid(x, w),
    "pairwise_distance": lambda t, x, w: t.nn.functional.pairwise_distance(x, w),
    "norm nuc": lambda t, x, w: t.norm(x, "nuc"),
    "vector_norm 0": lambda t, x, w: t.linalg.vector_norm(x, 0),
    "pinv": lambda t, x, w: t.linalg.pinv(x),
    "lstsq": lambda t, x, w: t.linalg.lstsq(x, w)[0],
    "matrix_norm fro": lambda t, x, w: t.linalg.matrix_norm(x),
    "matrix_norm nuc": lambda t, x, w: t.linalg.matrix_norm(x, "nuc"),
    "matrix_norm 2": lambda t, x, w: t.linalg.matrix_norm(x, 2),
    "eigvalsh": lambda t, x, w: t.linalg.eigvalsh(x),
    "conv1d by what is fixed": lambda t, x, w: t.nn.functional.conv1d(x[None], w.detach()[None]),
    "conv2d of what is fixed": lambda t, x, w: t.nn.functional.conv2d(x.detach()[None, None], w[None, None]),
    "conv_transpose1d": lambda t, x, w: t.nn.functional.conv_transpose1d(x.detach()[None], w[:, None]),
    "complex of one": lambda t, x, w: t.complex(x.detach(), w),
    "attention": lambda t, x, w: t.nn.functional.scaled_dot_product_attention(x, w, w + x),
    "attention of what is fixed": lambda t, x, w: t.nn.functional.scaled_dot_product_attention(x.detach(), w.detach(), w + x),
    "attention of four dimensions": lambda t, x, w: t.nn.functional.scaled_dot_product_attention(x[None, None], w[None, None], w[None, None]),
    "instance_norm": lambda t, x, w: t.nn.functional.instance_norm(x[None], weight=w[0].clone()),
    "gru_cell of what is fixed": lambda t, x, w: t.gru_cell(x, w, t.ones(9, 3), t.ones(9, 3)),
    "rnn_tanh_cell": lambda t, x, w: t.rnn_tanh_cell(x.detach(), x[:] * 2, w, t.ones(3, 3)),
    "rnn_relu_cell": lambda t, x, w: t.rnn_relu_cell(x, x * 2, t.ones(3, 3), w),
    "poisson_nll_loss": lambda t, x, w: t.nn.functional.poisson_nll_loss(x, w),
    "poisson_nll_loss of rates": lambda t, x, w: t.nn.functional.poisson_nll_loss(x, w, log_input=False),
    "pow of tensors": lambda t, x, w: x.abs() ** w,
    "pow by what is fixed": lambda t, x, w: x.pow(w.detach()),
    "ldexp": lambda t, x, w: x.ldexp(w.detach()),
    "elu_": lambda t, x, w: t.nn.functional.elu_(x * 1),
    "celu_": lambda t, x, w: t.celu_(x * 1),
    "selu_": lambda t, x, w: t.selu_(x * 1),
    "leaky_relu in place": lambda t, x, w: t.nn.functional.leaky_relu(x * 1, inplace=True),
    "leaky_relu": lambda t, x, w: t.nn.functional.leaky_relu(x * 1),
    "rrelu in place": lambda t, x, w: t.nn.functional.rrelu(x * 1, inplace=True),
    "threshold_": lambda t, x, w: t.threshold_(x * 1, 0.1, 0.2),
    "hardtanh in place": lambda t, x, w: t.nn.functional.hardtanh(x * 1, inplace=True),
    "silu in place": lambda t, x, w: t.nn.functional.silu(x * 1, inplace=True),
} | {
    f"{name} {reduce}": lambda t, x, w, name=name, n=n, reduce=reduce: getattr(x, name)(0, t.zeros(*(3,) * n, dtype=t.long), w, reduce)
    for name, n, reductions in (("scatter_reduce", 2, ("sum", "mean", "prod", "amax")), ("index_reduce", 1, ("mean", "prod", "amin")))
    for reduce in reductions
}  # fmt: skip


def verdicts(t, call):
    """For a write to each operand and to each result: whether backward raises. None: there is nothing to write to."""
    found = []
    for target in ("x", "w", 0, 1):
        x = (t.eye(3) * 2 + 0.5).requires_grad_().clone()
        w = (t.eye(3) + 1.5).requires_grad_().clone()
        made = call(t, x, w)
        results = tuple(made) if isinstance(made, tuple) else (made,)
        targets = {"x": x, "w": w, **dict(enumerate(results))}
        if target not in targets:
            continue
        loss = sum((r.abs() if r.is_complex() else r).sum() for r in results if r.requires_grad)
        with t.no_grad():
            targets[target].add_(1)
        try:
            loss.backward()
            found.append("fine")
        except RuntimeError as error:
            found.append("raises" if "modified by an inplace operation" in str(error) else str(error))
    return found


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("name", CALLS)
def test_as_pytorch(name):
    assert verdicts(jtorch, CALLS[name]) == verdicts(torch, CALLS[name])
