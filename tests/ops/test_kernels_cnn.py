"""Convolution, pooling, batch norm, losses, recurrent and image ops against PyTorch: values, gradients, errors."""

import numpy as np
import pytest

import jtorch

torch = pytest.importorskip("torch")

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
    *(
        Case("interpolate", real(1, 2, 3, 4), scale_factor=f) for f in (2.3, (2.3, 1.2), (1.2, 2.4), (1.0, 2.0))
    ),  # to 6 of 3, 4 of 4
    Case("pixel_shuffle", real(2, 8, 3, 4), 2),
    Case("pixel_unshuffle", real(2, 4, 6), 2),
    Case("channel_shuffle", real(2, 6, 3), 3),
    Case("unfold", real(2, 3, 6, 7), (2, 3), dilation=2, padding=1, stride=2),
    Case("unfold", real(2, 3, 7, 8), (3, 2), padding=(1, 0), stride=(3, 2)),
    Case("unfold", real(1, 2, 9, 10), (7, 8), padding=1, stride=(1, 2)),
    Case("fold", real(2, 12, 12), (4, 5), (2, 2), order=2),
    Case("fold", real(2, 12, 12), (7, 9), (3, 2), padding=(1, 0), stride=(3, 2)),
    Case("fold", real(1, 112, 15), (9, 10), (7, 8), padding=1, stride=(1, 2)),
    Case("affine_grid", real(2, 2, 3), (2, 3, 4, 5)),
    Case("affine_grid", real(1, 3, 4), (1, 3, 2, 4, 5), align_corners=True),
    *(
        Case("grid_sample", real(2, 3, 5, 4), real(2, 3, 4, 2), mode=m, padding_mode=p, align_corners=a)
        for m, p, a in (
            ("bilinear", "zeros", False),
            ("bilinear", "border", True),
            ("bilinear", "reflection", False),
            ("nearest", "zeros", False),
            ("bicubic", "zeros", False),
            ("bicubic", "reflection", True),
        )
    ),
    *(
        Case("grid_sample", real(2, 3, 3, 4, 5), real(2, 2, 3, 2, 3), mode=m, padding_mode=p, align_corners=a)
        for m, p, a in (
            ("bilinear", "zeros", False),
            ("bilinear", "border", True),
            ("bilinear", "reflection", False),
            ("nearest", "border", False),
        )
    ),
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


def size(*shape, dtype="float32"):
    return (shape, dtype)


def longs(*values):
    return np.array(values)


# (function, arguments): PyTorch's exception and its first line
ERRORS = [
    ("conv2d", size(1, 2, 8, 8), size(4, 3, 3, 3)),
    ("conv2d", size(8, 8), size(4, 3, 3, 3)),
    ("conv1d", size(3), size(4, 3, 3)),
    ("conv3d", size(3, 4), size(4, 3, 3, 3, 3)),
    ("conv2d", size(1, 3, 2, 2), size(4, 3, 3, 3)),
    ("conv2d", size(1, 3, 8, 8), size(4, 3, 3, 3), size(5)),
    ("conv2d", size(1, 3, 8, 8), size(4, 3, 3, 3), None, 2, "same"),
    ("conv2d", size(1, 3, 8, 8), size(4, 3, 3, 3), None, 1, "foo"),
    ("conv2d", size(1, 3, 8, 8), size(4, 3, 3, 3), None, 0),
    ("conv2d", size(1, 3, 8, 8), size(4, 3, 3, 3), None, 1, -1),
    ("conv2d", size(1, 3, 8, 8), size(4, 3, 3, 3), None, 1, 0, 0),
    ("conv2d", size(1, 3, 8, 8), size(4, 3, 3, 3), None, (1, 2, 3)),
    ("conv2d", size(1, 3, 8, 8), size(4, 3, 3)),
    ("conv2d", size(1, 4, 8, 8), size(3, 2, 3, 3), None, 1, 0, 1, 2),
    ("conv2d", size(1, 4, 8, 8), size(1, 2, 3, 3), None, 1, 0, 1, 2),
    ("conv2d", size(1, 4, 8, 8), size(4, 2, 3, 3), None, 1, 0, 1, 0),
    ("conv2d", size(1, 3, 8, 8, dtype="float64"), size(4, 3, 3, 3)),
    ("conv2d", size(1, 3, 8, 8), size(4, 3, 3, 3), size(4, dtype="float64")),
    ("conv_transpose2d", size(1, 3, 8, 8), size(4, 3, 3, 3)),
    ("conv_transpose2d", size(1, 3, 8, 8), size(3, 3, 3, 3), None, 1, 0, 1),
    ("conv_transpose2d", size(8, 8), size(3, 3, 3, 3)),
    ("conv_transpose2d", size(1, 3, 8, 8), size(3, 2, 3, 3), size(3)),
    ("conv_transpose2d", size(1, 3, 8, 8), size(3, 2, 3, 3), None, 1, 20),
    ("max_pool2d", size(1, 3, 8, 8), 3, None, 2),
    ("max_pool2d", size(1, 3, 2, 2), 3),
    ("max_pool2d", size(8, 8), 3),
    ("max_pool2d", size(1, 3, 8, 8), 2, 0),
    ("max_pool2d", size(1, 3, 8, 8), 2, None, 0, 0),
    ("max_pool1d", size(8), 2),
    ("max_pool1d", size(2, 3, 8), 2, None, 2),
    ("max_pool3d", size(2, 3, 8), 2),
    ("avg_pool2d", size(1, 3, 8, 8), 3, None, 2),
    ("avg_pool2d", size(8, 8), 3),
    ("avg_pool1d", size(8), 3),
    ("avg_pool2d", size(1, 3, 8, 8), 3, None, 0, False, True, 0),
    ("adaptive_avg_pool2d", size(8, 8), 3),
    ("adaptive_max_pool2d", size(8, 8), 3),
    ("adaptive_avg_pool1d", size(8), 3),
    ("adaptive_avg_pool2d", size(1, 3, 8, 8, dtype="int64"), 2),
    ("max_unpool2d", size(1, 1, 2, 2), np.full((1, 1, 2, 2), 99), 2),
    ("batch_norm", size(1, 3), None, None, None, None, True),
    ("batch_norm", size(2, 3), size(4), size(4)),
    ("batch_norm", size(2, 3), None, None),
    ("batch_norm", size(2, 3), None, None, size(4), None, True),
    ("instance_norm", size(2, 3, 1)),
    ("cross_entropy", size(2, 3), longs(1, 5)),
    ("cross_entropy", size(2, 3), longs(1, -1)),
    ("cross_entropy", size(2, 3), longs(1)),
    ("cross_entropy", size(2, 3), size(2, dtype="int32")),
    ("cross_entropy", size(2, 3), size(2)),
    ("cross_entropy", size(2, 3), size(2, 3, dtype="int64")),
    ("cross_entropy", size(2, 3), longs(1, 1), size(2)),
    ("cross_entropy", size(2, 3), longs(1, 1), None, None, -100, None, "mean", 2.0),
    ("cross_entropy", size(2, 3), size(2, 3), None, None, 1),
    ("cross_entropy", size(2, 3, 4), size(2, 5, dtype="int64")),
    ("cross_entropy", size(2, 3), longs(1, 1), None, None, -100, None, "foo"),
    ("nll_loss", size(2, 3), longs(1, 5)),
    ("nll_loss", size(2, 3, 4, 4), size(2, 5, 4, dtype="int64")),
    ("nll_loss", size(), longs(1)),
    ("mse_loss", size(2, 3), size(2)),
    ("mse_loss", size(2, 3, dtype="int64"), size(2, 3, dtype="int64")),
    ("binary_cross_entropy", size(2, 3), size(2)),
    ("binary_cross_entropy_with_logits", size(2, 3), size(2)),
    ("huber_loss", size(2), size(2), "mean", 0),
    ("smooth_l1_loss", size(2), size(2), None, None, "mean", -1.0),
    ("margin_ranking_loss", size(2), size(2), size(2, 2)),
    ("multi_margin_loss", size(2, 3), longs(1, 4)),
    ("multi_margin_loss", size(2, 3), longs(1, 1), 3),
    ("soft_margin_loss", size(2, 3), size(2)),
    ("pad", size(1, 3, 8, 8), (1,)),
    ("pad", size(1, 3, 8, 8), (1,) * 10),
    ("pad", size(1, 3, 8, 8), (-5, -5)),
    ("pad", size(1, 3, 8, 8), (8, 8, 1, 1), "reflect"),
    ("pad", size(1, 3, 8, 8), (9, 9, 1, 1), "circular"),
    ("pad", size(1, 3, 8, 8), (1, 1), "reflect"),
    ("pad", size(1, 3, 8, 8), (1, 1, 1, 1), "foo"),
    ("pad", size(1, 3, 8, 8), (1, 1, 1, 1), "reflect", 2.0),
    ("interpolate", size(1, 3, 8, 8)),
    ("interpolate", size(1, 3, 8, 8), 3, 2),
    ("interpolate", size(1, 3, 8, 8), (3,)),
    ("interpolate", size(1, 3, 8, 8), None, (3,)),
    ("interpolate", size(1, 3, 8, 8), None, 2, "linear"),
    ("interpolate", size(1, 3, 8, 8), None, 2, "foo"),
    ("interpolate", size(1, 3, 8, 8), None, 2, "nearest", True),
    ("interpolate", size(1, 3, 8, 8), None, 2, "nearest", None, None, True),
    ("interpolate", size(8, 8), None, 2),
    ("interpolate", size(1, 3, 8, 8), 4, None, "nearest", None, True),
    ("interpolate", size(1, 3, 8, 8), 0),
    ("pixel_shuffle", size(1, 3, 8, 8), 2),
    ("pixel_shuffle", size(8, 8), 2),
    ("pixel_unshuffle", size(1, 3, 8, 8), 3),
    ("channel_shuffle", size(1, 3, 8, 8), 2),
    ("unfold", size(1, 3, 8, 8), 9),
    ("fold", size(1, 12, 8), (4, 4), 2),
    ("grid_sample", size(1, 3, 8, 8), size(1, 2, 2, 3)),
    ("grid_sample", size(1, 3, 8, 8), size(2, 2, 2, 2)),
    ("grid_sample", size(1, 3, 8, 8), size(1, 2, 2, 2), "foo"),
    ("affine_grid", size(1, 3, 3), (1, 1, 2, 2)),
    ("affine_grid", size(1, 2, 3), (1, 1, 2)),
]


def failure(lib, name, args):
    def enter(a):
        if isinstance(a, np.ndarray):
            return lib.tensor(a)
        if isinstance(a, tuple) and len(a) == 2 and isinstance(a[1], str):
            return lib.zeros(a[0], dtype=getattr(lib, a[1]))
        return a

    with pytest.raises((RuntimeError, ValueError, IndexError)) as caught:
        function(lib, name)(*map(enter, args))
    return caught.type, str(caught.value).split("\n")[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", ERRORS, ids=lambda r: r[0])
def test_errors_are_torchs(row):
    assert failure(jtorch, row[0], row[1:]) == failure(torch, row[0], row[1:])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name, args",
    [
        ("conv2d", (size(2, 3, 8, 8), size(4, 3, 3, 3))),
        ("conv_transpose1d", (size(2, 3, 8), size(3, 4, 3))),
        ("max_pool2d", (size(2, 3, 8, 8), 2)),
        ("adaptive_avg_pool2d", (size(2, 3, 8, 8), 1)),
        ("adaptive_avg_pool2d", (size(2, 3, 8, 8), 2)),
        ("batch_norm", (size(2, 3, 4), None, None, None, None, True)),
        ("cross_entropy", (size(2, 3), longs(1, 2))),
        ("cross_entropy", (size(2, 3, 4), size(2, 4, dtype="int64"))),
        ("cross_entropy", (size(2, 3), np.ones((2, 3)))),
        ("mse_loss", (size(2, 3), np.ones((2, 3)))),
        ("l1_loss", (size(2, 3), np.ones((2, 3)))),
        ("pad", (size(2, 3), (1, 1))),
        ("interpolate", (size(1, 2, 3, 3), 4, None, "bilinear")),
        ("unfold", (size(1, 2, 3, 3), 2)),
    ],
)
def test_names_of_nodes(name, args):
    def node(lib):
        first, *rest = (
            lib.tensor(a) if isinstance(a, np.ndarray) else
            lib.zeros(a[0], dtype=getattr(lib, a[1])) if isinstance(a, tuple) and isinstance(a[1], str) else a
            for a in args
        )  # fmt: skip
        return function(lib, name)(first.requires_grad_(True), *rest).grad_fn.name()

    assert node(jtorch) == node(torch)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int64", "complex128"])
def test_conv_in_other_types(dtype):
    x, w = whole(5, 2, 3, 5, 5), whole(5, 4, 3, 3, 3)

    def call(lib):
        cast = lambda a: lib.tensor(a).to(getattr(lib, dtype))
        out = lib.nn.functional.conv2d(cast(x), cast(w))
        assert out.dtype is getattr(lib, dtype)
        return (out.to(lib.float64) if "float" in dtype else out).numpy()

    np.testing.assert_allclose(call(jtorch), call(torch), rtol=1e-2 if dtype == "bfloat16" else 1e-3)


def test_batch_norm_updates_running_statistics():
    x = real(4, 3, 5)

    def call(lib):
        mean, var = lib.zeros(3, dtype=lib.float64), lib.ones(3, dtype=lib.float64)
        for momentum in (0.1, 0.3):
            lib.nn.functional.batch_norm(lib.tensor(x), mean, var, training=True, momentum=momentum)
        return np.stack([mean.numpy(), var.numpy()])

    np.testing.assert_allclose(call(jtorch), call(torch), rtol=1e-12)


def recurrent(lib, kind, x, states, weights, bias, layers, two_ways, batch_first):
    leaf = lambda a: lib.tensor(a).requires_grad_(True)
    x, states, weights = leaf(x), [leaf(s) for s in states], [leaf(w) for w in weights]
    hx = states if kind == "lstm" else states[0]
    outs = getattr(lib, kind)(x, hx, weights, bias, layers, 0.0, True, two_ways, batch_first)
    loss = sum((o * o).sum() * (k + 1) for k, o in enumerate(outs))
    twice = layers == 1 and not two_ways
    grads = lib.autograd.grad(loss, [x, *states, *weights], create_graph=twice)
    again = lib.autograd.grad(sum((g * g).sum() for g in grads), [x, *states, *weights]) if twice else ()
    return [t.detach().numpy() for t in (*outs, *grads, *again)]


@pytest.mark.parametrize(
    "kind, layers, two_ways, batch_first, bias, projected",
    [
        ("lstm", 2, True, False, True, 0), ("lstm", 1, False, True, False, 2), ("gru", 1, True, True, True, 0),
        ("gru", 1, False, False, False, 0), ("rnn_tanh", 1, False, False, True, 0),
        ("rnn_relu", 1, True, False, False, 0), ("lstm", 1, False, False, True, 0),
    ],
)  # fmt: skip
def test_recurrent_layers(kind, layers, two_ways, batch_first, bias, projected):
    inputs, hidden, ways = 3, 4, 2 if two_ways else 1
    gates = {"lstm": 4, "gru": 3}.get(kind, 1) * hidden
    shown = projected or hidden
    weights = []
    for layer in range(layers):
        for _ in range(ways):
            width = inputs if layer == 0 else shown * ways
            weights += [real(gates, width), real(gates, shown)]
            weights += [real(gates), real(gates)] if bias else []
            weights += [real(projected, hidden)] if projected else []
    states = [real(layers * ways, 2, shown), real(layers * ways, 2, hidden)][: 2 if kind == "lstm" else 1]
    x = real(2, 5, inputs) if batch_first else real(5, 2, inputs)
    args = (kind, x, states, weights, bias, layers, two_ways, batch_first)
    for want, got in zip(recurrent(torch, *args), recurrent(jtorch, *args)):
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", ["lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"])
def test_recurrent_cells(kind):
    gates = {"lstm_cell": 4, "gru_cell": 3}.get(kind, 1) * 4
    x, h, c = real(2, 3), real(2, 4), real(2, 4)
    weights = [real(gates, 3), real(gates, 4), real(gates), real(gates)]

    def call(lib):
        t = lib.tensor
        hx = [t(h), t(c)] if kind == "lstm_cell" else t(h)
        out = getattr(lib, kind)(t(x), hx, *map(t, weights))
        return np.stack([o.numpy() for o in (out if isinstance(out, tuple) else (out,))])

    np.testing.assert_allclose(call(jtorch), call(torch), rtol=1e-10)


def test_torch_level_forms():
    x, v, mean, var = real(4, 3, 6), real(3), real(3), unit(3)

    def call(lib):
        t = lib.tensor
        normal = lib.batch_norm(t(x), t(v), t(v), t(mean), t(var), False, 0.1, 1e-5, False)
        largest, index = lib.adaptive_max_pool1d(t(x), 2)
        return [normal.numpy(), largest.numpy(), index.numpy()]

    for want, got in zip(call(torch), call(jtorch)):
        np.testing.assert_allclose(got, want, rtol=1e-10)
