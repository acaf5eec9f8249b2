"""torch.ops.torchvision: results against loops over pixels, derivatives against autograd's, and which libraries load."""

import math

import numpy as np
import pytest

import jtorch
from jtorch import ops
from jtorch.nn import functional as F

ROIS = [[0, 1, 1, 9, 8], [1, -3, 2.5, 7.3, 20], [0, 5, 5, 5, 5], [1, 14, 11, 30, 30], [0, 3.2, 1.7, 2, 1]]
rois = np.array(ROIS, np.float32)


@pytest.fixture(scope="module")
def vision():
    jtorch.ops.load_library("/somewhere/torchvision/_C.so")
    return jtorch.ops.torchvision


@pytest.fixture
def image():
    return np.random.default_rng(0).normal(size=(2, 8, 12, 15)).astype(np.float32)


def pixel(plane, y, x):
    """The image between its pixels."""
    h, w = plane.shape
    if not (-1 <= y <= h and -1 <= x <= w):
        return 0.0
    y, x = max(y, 0), max(x, 0)
    y0, x0 = min(int(y), h - 1), min(int(x), w - 1)
    y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
    dy, dx = (0 if y0 == h - 1 else y - y0), (0 if x0 == w - 1 else x - x0)
    top = plane[y0, x0] * (1 - dx) + plane[y0, x1] * dx
    return top * (1 - dy) + (plane[y1, x0] * (1 - dx) + plane[y1, x1] * dx) * dy


def averaged(image, channel, scale, bins, ratio, least, shift):
    """Loops of roi_align; `channel(c, i, j)` is where a result reads."""
    ph, pw = bins
    out = np.zeros((len(rois), channel(None, 0, 0), ph, pw))
    for (r, c, i, j), _ in np.ndenumerate(out):
        n, (x1, y1, x2, y2) = int(rois[r, 0]), rois[r, 1:] * np.float32(scale) - np.float32(shift)
        high, wide = (max(y2 - y1, least), max(x2 - x1, least)) if least else (y2 - y1, x2 - x1)
        my, mx = (ratio, ratio) if ratio > 0 else (math.ceil(high / ph), math.ceil(wide / pw))
        found = [
            pixel(image[n, channel(c, i, j)], y1 + (i + (k + 0.5) / my) * high / ph, x1 + (j + (m + 0.5) / mx) * wide / pw)
            for k in range(my) for m in range(mx)
        ]  # fmt: skip
        out[r, c, i, j] = sum(found) / max(my * mx, 1)
    return out


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [-1, 2])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_roi_align(vision, image, aligned, ratio, scale):
    expected = averaged(
        image, lambda c, i, j: 8 if c is None else c, scale, (3, 4), ratio, 0 if aligned else 1, 0.5 if aligned else 0
    )
    got = vision.roi_align(jtorch.tensor(image), jtorch.tensor(rois), scale, 3, 4, ratio, aligned)
    np.testing.assert_allclose(got.numpy(), expected, atol=2e-5)


def test_roi_align_in_parts(vision, image, monkeypatch):
    x, r = jtorch.tensor(image), jtorch.tensor(rois)
    whole = vision.roi_align(x, r, 1.0, 3, 4, 2, True)
    monkeypatch.setattr("jtorch.vision._CHUNK", 2000)
    assert jtorch.allclose(vision.roi_align(x, r, 1.0, 3, 4, 2, True), whole)
    assert vision.roi_align(x, r[:0], 1.0, 3, 4, 2, True).shape == (0, 8, 3, 4)


def test_ps_roi_align(vision, image):
    expected = averaged(image, lambda c, i, j: 2 if c is None else (c * 2 + i) * 2 + j, 1.0, (2, 2), 3, 0, 0.5)
    got, channels = vision.ps_roi_align(jtorch.tensor(image), jtorch.tensor(rois), 1.0, 2, 2, 3)
    np.testing.assert_allclose(got.numpy(), expected, atol=2e-5)
    assert channels.dtype == jtorch.int32 and channels[4].tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]


def spans(start, end, bins, plus, size, last):
    start, end = (math.floor(v + 0.5) if v >= 0 else -math.floor(0.5 - v) for v in (start, end))
    step = max(end - start + plus, 1) / bins
    return [
        [min(max(f(k * step) + start, 0), last) for f, k in ((math.floor, b), (math.ceil, b + 1))] for b in range(bins)
    ]


def test_pools(vision, image):
    x, r = jtorch.tensor(image), jtorch.tensor(rois)
    best, at = vision.roi_pool(x, r, 1.0, 3, 2)
    mean, _ = vision.ps_roi_pool(x, r, 1.0, 2, 2)
    for k, (n, x1, y1, x2, y2) in enumerate(ROIS):
        for i, (lo, hi) in enumerate(spans(y1, y2, 3, 1, 12, 12)):
            for j, (left, right) in enumerate(spans(x1, x2, 2, 1, 15, 15)):
                part = image[n, :, lo:hi, left:right].reshape(8, -1)
                filled = part.shape[1] > 0
                np.testing.assert_array_equal(best[k, :, i, j].numpy(), part.max(1) if filled else np.zeros(8))
                picked = at[k, :, i, j].numpy()
                assert (
                    (picked == -1).all()
                    if not filled
                    else (image[n].reshape(8, -1)[range(8), picked] == part.max(1)).all()
                )
        for i, (lo, hi) in enumerate(spans(y1, y2, 2, 0, 12, 11)):
            for j, (left, right) in enumerate(spans(x1, x2, 2, 0, 15, 14)):
                part = image[n, i * 2 + j :: 4, lo:hi, left:right].reshape(2, -1)
                expected = part.mean(1) if part.shape[1] else np.zeros(2)
                np.testing.assert_allclose(mean[k, :, i, j].numpy(), expected, atol=1e-5)


def test_deform_conv2d(vision, image):
    """Without offsets an ordinary convolution; offsets by whole pixels move the image."""
    rng = np.random.default_rng(1)
    x, weight, bias = (
        jtorch.tensor(image),
        jtorch.tensor(rng.normal(size=(6, 4, 3, 3)), dtype=jtorch.float32),
        jtorch.arange(6.0),
    )
    still, mask = jtorch.zeros(2, 2 * 2 * 9, 6, 15), jtorch.full((2, 2 * 9, 6, 15), 0.5)
    call = (2, 1, 1, 2, 1, 2, 2, 2)
    plain = F.conv2d(x, weight, bias, (2, 1), (1, 2), (1, 2), 2)
    assert jtorch.allclose(vision.deform_conv2d(x, weight, still, mask, bias, *call, False), plain, atol=1e-4)
    half = vision.deform_conv2d(x, weight, still, mask, bias, *call, True)
    assert jtorch.allclose(half - bias[:, None, None], (plain - bias[:, None, None]) / 2, atol=1e-4)
    between = vision.deform_conv2d(x, weight, still + 0.25, mask, bias, *call, False)
    corners = [
        vision.deform_conv2d(x, weight, still + jtorch.tensor([dy, dx] * 18)[:, None, None], mask, bias, *call, False)
        * w
        for dy, dx, w in ((0.0, 0.0, 9 / 16), (0.0, 1.0, 3 / 16), (1.0, 0.0, 3 / 16), (1.0, 1.0, 1 / 16))
    ]
    assert jtorch.allclose(between, sum(corners), atol=1e-4)


def test_derivatives_by_name(vision, image):
    """What torchvision registers as derivatives gives what the operators give on the tape."""
    x, r = jtorch.tensor(image, requires_grad=True), jtorch.tensor(rois)
    size = (2, 8, 12, 15)
    out = vision.roi_align(x, r, 1.0, 3, 4, 2, True)
    g = jtorch.linspace(-1, 1, out.numel()).view(out.shape)
    (expected,) = jtorch.autograd.grad(out, x, g)
    assert jtorch.allclose(vision._roi_align_backward(g, r, 1.0, 3, 4, *size, 2, True), expected)
    best, at = vision.roi_pool(x, r, 1.0, 3, 2)
    g = jtorch.linspace(-1, 1, best.numel()).view(best.shape)
    (expected,) = jtorch.autograd.grad(best, x, g)
    assert jtorch.allclose(vision._roi_pool_backward(g, r, at, 1.0, 3, 2, *size), expected)
    mean, channels = vision.ps_roi_align(x, r, 1.0, 2, 2, -1)
    g = jtorch.linspace(-1, 1, mean.numel()).view(mean.shape)
    (expected,) = jtorch.autograd.grad(mean, x, g)
    assert jtorch.allclose(vision._ps_roi_align_backward(g, r, channels, 1.0, 2, 2, -1, *size), expected)
    assert mean[2].isnan().any() and not expected.isnan().any()  # a region without an extent has no samples


def test_nms(vision):
    rng = np.random.default_rng(0)
    boxes = rng.random((60, 4), np.float32) * 20
    boxes[:, 2:] += boxes[:, :2]
    scores = rng.random(60, np.float32)
    scores[5] = scores[9]
    for threshold in (0.2, 0.5, 0.7):
        kept = []
        for k in np.argsort(-scores, kind="stable"):
            for m in kept:
                sides = np.minimum(boxes[k, 2:], boxes[m, 2:]) - np.maximum(boxes[k, :2], boxes[m, :2])
                shared = max(sides[0], 0) * max(sides[1], 0)
                both = sum((boxes[q, 2] - boxes[q, 0]) * (boxes[q, 3] - boxes[q, 1]) for q in (k, m))
                if shared / (both - shared) > threshold:
                    break
            else:
                kept.append(int(k))
        assert vision.nms(jtorch.tensor(boxes), jtorch.tensor(scores), threshold).tolist() == kept
    assert vision.nms(jtorch.zeros(0, 4), jtorch.zeros(0), 0.5).shape == (0,)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda v: v.nms(jtorch.zeros(4), jtorch.zeros(1), 0.5), "boxes should be a 2d tensor, got 1D"),
        (lambda v: v.nms(jtorch.zeros(2, 3), jtorch.zeros(2), 0.5), "boxes should have 4 elements in dimension 1, got 3"),
        (lambda v: v.nms(jtorch.zeros(2, 4), jtorch.zeros(2, 1), 0.5), "scores should be a 1d tensor, got 2D"),
        (lambda v: v.nms(jtorch.zeros(2, 4), jtorch.zeros(3), 0.5), "same number of elements in dimension 0, got 2 and 3"),
        (lambda v: v.roi_pool(jtorch.zeros(1, 4, 5, 5), jtorch.zeros(2, 4), 1.0, 2, 2), "rois must have shape"),
        (lambda v: v.roi_pool(jtorch.zeros(1, 4, 5, 5), jtorch.zeros(2, 5).double(), 1.0, 2, 2), "input should have the same type"),
        (lambda v: v.ps_roi_pool(jtorch.zeros(1, 4, 5, 5), jtorch.zeros(2, 5), 1.0, 3, 3), "input channels must be a multiple"),
        (lambda v: v.qnms(jtorch.zeros(2, 4), jtorch.zeros(2), 0.5), "quantized"),
    ],
)  # fmt: skip
def test_refused(vision, call, words):
    with pytest.raises(RuntimeError, match=words):
        call(vision)


@pytest.mark.parametrize("path", ["/somewhere/torchvision/image.so", "/somewhere/other/_C.so"])
def test_other_libraries_do_not_load(monkeypatch, path):
    monkeypatch.setattr(ops, "refused", set())
    with pytest.raises(OSError, match="could not load"):
        jtorch.ops.load_library(path)
    assert ops.refused == {path}
