"""Convolutions with one channel a group on the CPU: PyTorch's numbers at every order, and loops that run along stored channels."""

import jax
import numpy as np
import pytest

import jtorch
from jtorch.ops import conv

torch = pytest.importorskip("torch")

DRAW = np.random.default_rng(0)

# (images, channels, *size), features, kernel, options
CASES = [
    ((3, 6, 9, 8), 6, (3, 3), {"padding": 1}),
    ((8, 4, 6, 5), 12, (3, 3), {"stride": 2, "padding": 1}),  # three features a channel
    ((2, 6, 9, 8), 6, (3, 2), {"stride": (2, 3), "padding": (0, 1)}),
    ((1, 5, 9, 9), 5, (3, 3), {"dilation": 2, "stride": 2, "padding": 3}),  # taps for one phase in four
    ((4, 3, 7, 8), 3, (5, 4), {"padding": 2}),  # the weight's gradient in a loop
    ((2, 6, 7, 7), 6, (7, 7), {}),  # covers both dimensions
    ((2, 6, 6, 7), 6, (1, 1), {"stride": 3}),
    ((2, 4, 13), 8, (4,), {"padding": 3}),
    ((2, 3, 15), 3, (11,), {"stride": 2, "dilation": (1,), "padding": "valid"}),
    ((2, 3, 5, 4, 6), 3, (3, 2, 3), {"stride": (1, 2, 2), "padding": 1}),
]

# the same with (channels, features) of a group, for seven groups
NARROW = [
    ((2, 14, 5, 4), 14, (3, 3), {"padding": 1}),
    ((1, 21, 5, 5), 14, (2, 3), {"stride": 2, "dilation": (1, 2), "padding": (0, 1)}),
    ((2, 7 * 5, 9), 7, (3,), {"padding": 2}),  # the weight's gradient by groups
]


def gradients(lib, groups, kernel, options, x, w):
    x, w = lib.tensor(x, requires_grad=True), lib.tensor(w, requires_grad=True)
    out = getattr(lib.nn.functional, f"conv{len(kernel)}d")(x, w, groups=groups, **options)
    first = lib.autograd.grad((out * out.detach()).sum(), (x, w), create_graph=True)
    second = lib.autograd.grad(sum((g * g).sum() for g in first), (x, w))
    return [t.detach().numpy() for t in (out, *first, *second)]


@pytest.mark.parametrize("size, features, kernel, options", CASES, ids=str)
def test_gradients(size, features, kernel, options):
    x, w = DRAW.standard_normal(size), DRAW.standard_normal((features, 1, *kernel))
    got, want = (gradients(lib, size[1], kernel, options, x, w) for lib in (jtorch, torch))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size, features, kernel, options", NARROW, ids=str)
def test_narrow_groups(size, features, kernel, options):
    x, w = DRAW.standard_normal(size), DRAW.standard_normal((features, size[1] // 7, *kernel))
    got, want = (gradients(lib, 7, kernel, options, x, w) for lib in (jtorch, torch))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_transposed():
    x, w = DRAW.standard_normal((2, 6, 5, 4)), DRAW.standard_normal((6, 1, 4, 3))

    def run(lib):
        a, b = lib.tensor(x, requires_grad=True), lib.tensor(w, requires_grad=True)
        out = lib.nn.functional.conv_transpose2d(a, b, stride=2, padding=1, output_padding=1, groups=6)
        return [t.detach().numpy() for t in (out, *lib.autograd.grad((out * out.detach()).sum(), (a, b)))]

    for a, b in zip(run(jtorch), run(torch), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_short_floats_and_no_images():
    x, w = DRAW.standard_normal((2, 4, 6, 6)), DRAW.standard_normal((4, 1, 3, 3))

    def run(lib, n):
        a, b = (lib.tensor(v).to(lib.bfloat16).requires_grad_() for v in (x[:n], w))
        out = lib.nn.functional.conv2d(a, b, padding=1, groups=4)
        return [t.detach().double().numpy() for t in (out, *lib.autograd.grad(out.sum(), (a, b)))]

    for n in (0, 2):
        for a, b in zip(run(jtorch, n), run(torch, n), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-2, atol=2e-2)


def test_each_example():
    x, w = jtorch.tensor(DRAW.standard_normal((3, 2, 4, 5, 5))), jtorch.tensor(DRAW.standard_normal((3, 4, 1, 3, 3)))
    loss = lambda x, w: jtorch.nn.functional.conv2d(x, w, padding=1, groups=4).square().sum()
    got = jtorch.func.vmap(jtorch.func.grad(loss, (0, 1)))(x, w)
    for i in range(3):
        for a, b in zip(got, jtorch.func.grad(loss, (0, 1))(x[i], w[i])):
            np.testing.assert_allclose(a[i].numpy(), b.numpy(), rtol=1e-9)


def test_no_convolution_is_left():
    """XLA's CPU runtime has none that is quick for one channel."""
    geo = conv.geometry((7, 7), 1, 3, 1, 8)
    x, w = np.zeros((2, 8, 9, 9), np.float32), np.zeros((8, 1, 7, 7), np.float32)
    maps = (
        lambda: conv._forward(x, w, None, geo),
        lambda: conv._input_grad(x, w, x.shape, geo),
        lambda: conv._weight_grad(x, x, w.shape, geo),
    )
    for one in maps:
        assert "conv_general_dilated" not in str(jax.make_jaxpr(one)())
