"""Convolution, pooling, batch norm, losses, recurrent layers and image ops against PyTorch: values, gradients, errors."""

import importlib
import math

import numpy as np
import pytest

import jtorch

torch = pytest.importorskip("torch")
importlib.import_module("jtorch.nn")

DRAW = np.random.default_rng(0)
N = None


def real(*shape):
    return DRAW.standard_normal(shape)


def unit(*shape):
    return DRAW.uniform(0.05, 0.95, shape)


def whole(high, *shape):
    return DRAW.integers(0, high, shape)


def sign(*shape):
    return np.where(DRAW.integers(0, 2, shape) == 1, 1.0, -1.0)


class Case:
    """One call of a function of both libraries; `order`: how many derivatives to compare."""

    def __init__(self, name, *args, order=1, only=None, tol=1e-8, **kw):
        self.name, self.args, self.kw, self.order, self.only, self.tol = name, args, kw, order, only, tol

    def __repr__(self):
        shapes = "x".join(str(a.shape[-2:]) for a in self.args[:1] if isinstance(a, np.ndarray))
        extra = ",".join(f"{k}={v}" for k, v in self.kw.items() if not isinstance(v, np.ndarray))
        return f"{self.name}{shapes}[{extra}]".replace(" ", "")


def function(lib, name):
    where = lib.nn.functional if hasattr(lib.nn.functional, name) else lib
    return getattr(where, name)


def run(lib, case):
    """The results of a case and its first and second derivatives, as numpy arrays."""
    leaves = []

    def enter(a):
        if isinstance(a, list):
            return [enter(x) for x in a]
        if not isinstance(a, np.ndarray):
            return a
        t = lib.tensor(a)
        if a.dtype.kind == "f" and case.order:
            if case.only is None or len(leaves) in case.only:
                t.requires_grad_(True)
            leaves.append(t)
        return t

    args = [enter(a) for a in case.args]
    kw = {k: enter(v) for k, v in case.kw.items()}
    out = function(lib, case.name)(*args, **kw)
    outs = list(out) if isinstance(out, tuple) else [out]
    results = list(outs)
    leaves = [t for t in leaves if t.requires_grad]
    if case.order:
        scalar = lambda ts: sum((t * (t + k + 1)).sum() for k, t in enumerate(ts))
        loss = scalar([o for o in outs if o.requires_grad])
        grads = lib.autograd.grad(loss, leaves, create_graph=case.order > 1)
        results += grads
        if case.order > 1:
            again = lib.autograd.grad(scalar(grads), leaves, allow_unused=True)
            results += [lib.zeros_like(t) if g is None else g for g, t in zip(again, leaves)]
    return [r.detach().numpy() for r in results]


CASES = [
    Case("conv1d", real(2, 3, 9), real(4, 3, 3), real(4), padding=1, order=2),
    Case("conv1d", real(3, 9), real(4, 3, 2), N, stride=2),
    Case("conv2d", real(2, 3, 7, 6), real(4, 3, 3, 2), real(4), stride=2, padding=1, order=2),
    Case("conv2d", real(2, 4, 7, 6), real(6, 2, 3, 3), real(6), groups=2, padding="same", dilation=2),
    Case("conv2d", real(2, 4, 7, 6), real(4, 1, 3, 3), real(4), groups=4, stride=2, order=2),
    Case("conv2d", real(4, 16, 4, 4), real(8, 16, 3, 3), N, padding=1, order=2),
    Case("conv2d", real(2, 20, 8, 8), real(5, 20, 1, 1), real(5), stride=2),
    Case("conv2d", real(8, 16, 17, 17), real(8, 16, 3, 3), N, padding=1),
    Case("conv3d", real(2, 2, 5, 4, 6), real(3, 2, 2, 3, 2), real(3), padding=1, stride=(1, 2, 1)),
    Case("conv_transpose1d", real(2, 3, 5), real(3, 2, 3), real(2), stride=2, output_padding=1),
    Case("conv_transpose2d", real(2, 4, 5, 4), real(4, 3, 3, 3), real(6), groups=2, stride=2, padding=1, order=2),
    Case("conv_transpose2d", real(2, 3, 5, 4), real(3, 2, 2, 2), N, dilation=2, output_padding=1),
    Case("conv_transpose3d", real(1, 2, 3, 3, 2), real(2, 3, 2, 2, 2), real(3), stride=2),
    Case("max_pool1d", real(2, 3, 9), 3, stride=2, padding=1),
    Case("max_pool2d", real(2, 3, 8, 8), 2, order=2),
    Case("max_pool2d", whole(3, 2, 3, 9, 8) * 1.0, 3, stride=2, padding=1),
    Case("max_pool2d", whole(3, 2, 3, 9, 8) * 1.0, 3, stride=2, ceil_mode=True, dilation=2),
    Case("max_pool2d", whole(3, 3, 9, 8) * 1.0, (3, 2), stride=(1, 3), return_indices=True),
    Case("max_pool2d", real(1, 2, 14, 14), 7, stride=3, padding=2),
    Case("max_pool2d", real(1, 2, 14, 14), 7, stride=3, return_indices=True),
    Case("max_pool3d", real(1, 2, 4, 5, 6), 2, return_indices=True),
    Case("avg_pool1d", real(2, 3, 9), 3, stride=2, padding=1),
    Case("avg_pool2d", real(2, 3, 8, 9), 3, stride=2, padding=1, count_include_pad=False, order=2),
    Case("avg_pool2d", real(2, 3, 8, 9), 3, stride=2, padding=1, ceil_mode=True),
    Case("avg_pool2d", real(2, 3, 14, 14), 7, divisor_override=5),
    Case("avg_pool3d", real(2, 4, 5, 6), 2),
    Case("adaptive_avg_pool1d", real(2, 3, 9), 4),
    Case("adaptive_avg_pool2d", real(2, 3, 8, 8), 1),
    Case("adaptive_avg_pool2d", real(2, 3, 8, 8), (4, 2), order=2),
    Case("adaptive_avg_pool2d", real(2, 3, 7, 8), (3, None)),
    Case("adaptive_max_pool1d", real(2, 3, 9), 4),
    Case("adaptive_max_pool2d", real(2, 3, 8, 8), 4, return_indices=True),
    Case("adaptive_max_pool2d", real(2, 3, 7, 8), (3, 5), return_indices=True),
    Case("adaptive_max_pool3d", real(2, 5, 4, 6), 2),
    Case("lp_pool2d", real(2, 3, 8, 8), 3, 2),
    Case("lp_pool1d", unit(2, 3, 8), 2, 3, stride=2),
    Case("fractional_max_pool2d", real(2, 3, 9, 9), 2, output_size=4, _random_samples=unit(2, 3, 2), only=(0,)),
    Case("fractional_max_pool3d", real(2, 3, 6, 7, 8), 2, output_size=3, _random_samples=unit(2, 3, 3), only=(0,)),
    Case("max_unpool2d", real(1, 2, 2, 2), np.array([[[[0, 3], [9, 14]], [[5, 2], [8, 11]]]]), 2),
    Case("batch_norm", real(4, 3, 5, 4), real(3), unit(3), real(3), real(3), training=True, only=(0, 3, 4), order=2),
    Case("batch_norm", real(4, 3) + 1000, N, N, real(3), real(3), training=True, only=(0, 1), tol=1e-6),
    Case("batch_norm", real(4, 3, 6), N, N, N, N, training=True, order=2),
    Case("batch_norm", real(4, 3, 5), real(3), unit(3), real(3), real(3), only=(0, 3, 4), order=2),
    Case("instance_norm", real(2, 3, 4, 4), N, N, real(3), real(3)),
    Case("nll_loss", real(5, 4), whole(4, 5), unit(4), only=(0,)),
    Case("nll_loss", real(2, 4, 3), whole(4, 2, 3), reduction="sum", ignore_index=2),
    Case("nll_loss", real(2, 4, 3, 2), whole(4, 2, 3, 2), reduction="none"),
    Case("cross_entropy", real(5, 4), whole(4, 5), order=2),
    Case("cross_entropy", real(5, 4), whole(4, 5), unit(4), label_smoothing=0.2, ignore_index=1, only=(0,), order=2),
    Case("cross_entropy", real(2, 4, 3, 2), whole(4, 2, 3, 2), reduction="none"),
    Case("cross_entropy", real(4), np.array(2)),
    Case("cross_entropy", real(3, 200), whole(200, 3), reduction="sum"),
    Case("cross_entropy", real(5, 4), unit(5, 4), unit(4), label_smoothing=0.2, only=(0, 1), order=2),
    Case("cross_entropy", real(2, 4, 3), unit(2, 4, 3), reduction="sum"),
    Case("mse_loss", real(3, 4), real(3, 4), order=2),
    Case("l1_loss", real(3, 4), real(3, 4), reduction="sum"),
    Case("smooth_l1_loss", real(9), real(9), beta=0.5),
    Case("huber_loss", real(9), real(9), delta=0.7, reduction="none"),
    Case("binary_cross_entropy", unit(3, 4), unit(3, 4), unit(4), only=(0, 1), order=2),
    Case("binary_cross_entropy", np.array([0.0, 1.0, 0.3]), np.array([0.0, 0.0, 1.0])),
    Case("binary_cross_entropy_with_logits", real(3, 4), unit(3, 4), unit(4), pos_weight=unit(4), only=(0, 1)),
    Case("kl_div", real(3, 4), unit(3, 4), reduction="batchmean"),
    Case("kl_div", real(3, 4), real(3, 4), reduction="sum", log_target=True),
    Case("poisson_nll_loss", real(3, 4), whole(5, 3, 4) * 1.0, full=True, only=(0,)),
    Case("poisson_nll_loss", unit(3, 4), unit(3, 4), log_input=False),
    Case("gaussian_nll_loss", real(3, 4), real(3, 4), unit(3, 1), full=True),
    Case("hinge_embedding_loss", real(9), sign(9), only=(0,)),
    Case("margin_ranking_loss", real(9), real(9), sign(9), margin=0.3, only=(0, 1)),
    Case("cosine_embedding_loss", real(5, 3), real(5, 3), sign(5), margin=0.1, only=(0, 1)),
    Case("triplet_margin_loss", real(5, 3), real(5, 3), real(5, 3), swap=True),
    Case("triplet_margin_loss", real(5, 3), real(5, 3), real(5, 3), p=3, reduction="none"),
    Case("triplet_margin_with_distance_loss", real(5, 3), real(5, 3), real(5, 3), swap=True),
    Case("multi_margin_loss", real(5, 4), whole(4, 5), 2, 0.8, unit(4), only=(0,)),
    Case("multi_margin_loss", real(4), np.array(1)),
    Case("multilabel_margin_loss", real(2, 4), np.array([[3, 0, -1, 1], [1, -1, 0, 2]])),
    Case("multilabel_soft_margin_loss", real(3, 4), whole(2, 3, 4) * 1.0, unit(4), only=(0,)),
    Case("soft_margin_loss", real(3, 4), sign(3, 4), only=(0,)),
    Case("ctc_loss", np.log(unit(8, 2, 5)), whole(4, 2, 3) + 1, (8, 7), (3, 2)),
    Case("ctc_loss", np.log(unit(6, 2, 5)), whole(4, 4) + 1, (6, 6), (3, 1), reduction="sum", blank=0),
    Case("pad", real(2, 3, 4, 5), (1, 2, -1, 3), value=1.5),
    Case("pad", real(2, 3, 4, 5), (2, 3, 1, 0), mode="reflect", order=2),
    Case("pad", real(3, 4, 5), (2, 3, 1, 4), mode="replicate"),
    Case("pad", real(2, 3, 4, 5), (5, 2, 1, 4), mode="circular"),
    Case("pad", real(2, 3, 4), (-1, 2), mode="circular"),
    Case("pad", real(2, 4, 3, 3, 4), (1, 2, 1, 2, 2, 0), mode="reflect"),
    Case("pixel_shuffle", real(2, 8, 3, 4), 2),
    Case("pixel_unshuffle", real(2, 4, 6), 2),
    Case("channel_shuffle", real(2, 6, 3), 3),
    Case("unfold", real(2, 3, 6, 7), (2, 3), dilation=2, padding=1, stride=2),
    Case("fold", real(2, 12, 12), (4, 5), (2, 2), order=2),
    Case("affine_grid", real(2, 2, 3), (2, 3, 4, 5)),
    Case("affine_grid", real(1, 3, 4), (1, 3, 2, 4, 5), align_corners=True),
    *(
        Case("grid_sample", real(2, 3, 5, 4), real(2, 3, 4, 2), mode=m, padding_mode=p, align_corners=a)
        for m, p, a in (
            ("bilinear", "zeros", False), ("bilinear", "border", True), ("bilinear", "reflection", False),
            ("nearest", "zeros", False), ("bicubic", "zeros", False), ("bicubic", "reflection", True),
        )
    ),
    Case("grid_sample", real(1, 2, 3, 4, 5), real(1, 2, 3, 2, 3), align_corners=False),
    Case("interpolate", real(1, 2, 4, 5), scale_factor=2),
    Case("interpolate", real(1, 2, 4, 5), size=(7, 3)),
    Case("interpolate", real(1, 2, 7), scale_factor=1.7, mode="nearest-exact"),
    Case("interpolate", real(1, 2, 7), scale_factor=1.7, mode="linear"),
    Case("interpolate", real(1, 2, 4, 5), scale_factor=(2.3, 0.7), mode="bilinear"),
    Case("interpolate", real(1, 2, 4, 5), size=(9, 8), mode="bilinear", align_corners=True),
    Case("interpolate", real(1, 2, 4, 5), scale_factor=2.2, mode="bilinear", recompute_scale_factor=True),
    Case("interpolate", real(1, 1, 4, 130), size=(3, 200), mode="bilinear"),
    Case("interpolate", real(1, 2, 4, 5), size=(9, 3), mode="bicubic"),
    Case("interpolate", real(1, 2, 4, 5), size=(9, 8), mode="bicubic", align_corners=True),
    Case("interpolate", real(1, 1, 3, 4, 5), scale_factor=1.5, mode="trilinear"),
    Case("interpolate", real(1, 2, 7, 8), size=(3, 11), mode="bilinear", antialias=True),
    Case("interpolate", real(1, 2, 9, 8), size=(3, 5), mode="bicubic", antialias=True),
    Case("interpolate", real(1, 2, 7, 8), size=(3, 5), mode="area"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=repr)
def test_agrees_with_torch(case):
    for k, (want, got) in enumerate(zip(run(torch, case), run(jtorch, case))):
        assert got.shape == want.shape and got.dtype == want.dtype, f"result {k}: {got.dtype}{got.shape}"
        np.testing.assert_allclose(got, want, rtol=case.tol, atol=case.tol, err_msg=f"result {k}")
