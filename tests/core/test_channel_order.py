"""Norms and pooling between convolutions and by themselves: the channels lie elsewhere, the numbers are the same."""

import numpy as np
import pytest

import jtorch
from jtorch.core.channel_order import FOLLOWS, as_stored, lies_first, stored_order
from jtorch.core.spec import Spec
from jtorch.ops.pool import max_pool2d
from tests.oracle import both

DRAW = np.random.default_rng(0)
X = DRAW.standard_normal((3, 4, 9, 7))


def normed(t, x):
    w, b = t.arange(1.0, 5.0).to(x.dtype), t.arange(4.0).to(x.dtype)
    return t.nn.functional.batch_norm(x, None, None, w, b, True)


def evaluated(t, x):
    return t.nn.functional.batch_norm(x, t.arange(4.0).to(x.dtype), t.arange(1.0, 5.0).to(x.dtype))


KERNELS = {
    "batch_norm": normed,
    "batch_norm by given statistics": evaluated,
    "max_pool2d": lambda t, x: t.nn.functional.max_pool2d(x, 3, 2, 1),
    "max_pool2d dilated": lambda t, x: t.nn.functional.max_pool2d(x, (2, 3), (1, 2), (1, 0), (2, 1), True),
    "avg_pool2d": lambda t, x: t.nn.functional.avg_pool2d(x, 3, 2, 1),
    "adaptive_max_pool2d": lambda t, x: t.nn.functional.adaptive_max_pool2d(x, (3, 2)),
    "adaptive_avg_pool2d": lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, (3, 7)),
    "group_norm": lambda t, x: t.nn.functional.group_norm(
        x, 2, t.arange(1.0, 5.0).to(x.dtype), t.arange(4.0).to(x.dtype)
    ),
    "instance_norm": lambda t, x: t.nn.functional.instance_norm(x, weight=t.arange(1.0, 5.0).to(x.dtype)),
    "silu": lambda t, x: t.nn.functional.silu(x) * 2 + x,
    "prelu": lambda t, x: t.nn.functional.prelu(x, t.arange(4.0).to(x.dtype)),
    "a number for each channel": lambda t, x: t.sigmoid(x * x.mean((2, 3), True)) + x.sum(1, True).tanh(),
    "rows": lambda t, x: t.nn.functional.gelu(x + t.arange(7.0).to(x.dtype)).pow(3),
    "softmax of channels": lambda t, x: t.softmax(t.tanh(x), 1) * x.exp(),
    "running sum of channels": lambda t, x: t.cumsum(t.tanh(x), 1) - x.abs().clamp(max=1.5),
    "cat of channels": lambda t, x: t.cat([x, x * 2, x[:, 1:3]], 1),
    "cat of rows": lambda t, x: t.cat([x, x[:, :, 2:]], 2),
    "pad": lambda t, x: t.nn.functional.pad(x, (1, 2, -1, 3), value=0.5),
    "pad by reflection": lambda t, x: t.nn.functional.pad(x, (1, 2, 0, 3), "reflect"),
    "pad of channels": lambda t, x: t.nn.functional.pad(x, (0, 1, 2, 0, 1, 1)),
    "nearest, twice": lambda t, x: t.nn.functional.interpolate(x, scale_factor=2),
    "nearest": lambda t, x: t.nn.functional.interpolate(x, (5, 9)),
    "bilinear, twice": lambda t, x: t.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "bilinear, one side": lambda t, x: t.nn.functional.interpolate(x, (9, 10), mode="bilinear", align_corners=True),
    "bicubic": lambda t, x: t.nn.functional.interpolate(x, (6, 11), mode="bicubic"),
    "bilinear, antialiased": lambda t, x: t.nn.functional.interpolate(x, (4, 5), mode="bilinear", antialias=True),
}


@pytest.mark.parametrize("order", ["channels first", "channels last"])
@pytest.mark.parametrize("convolved", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_numbers(name, convolved, order):
    def program(t):
        x = t.tensor(X)
        if order == "channels last":
            x = x.contiguous(memory_format=t.channels_last)
        x.requires_grad_(True)
        y = t.nn.functional.conv2d(x, t.eye(4, dtype=x.dtype)[..., None, None] * 2) if convolved else x
        out = KERNELS[name](t, y)
        (first,) = t.autograd.grad((out**2 * out.detach().cos()).sum(), x, create_graph=True)
        return [out, first, t.autograd.grad((first * first).sum() + (out**2).sum(), x)[0]]

    both(program, layout=False)  # gradients here lie row-major


def test_only_programs_without_convolutions_keep_the_order():
    seen = []
    jtorch.nn.functional.max_pool2d(jtorch.zeros(1, 2, 6, 6), 2).sum().item()
    plan = next(iter(max_pool2d.plans.values()))

    def kernel(x):
        seen.append(as_stored())
        return x

    stored_order(kernel)(1)
    kernel(1)
    assert seen == [True, False] and plan.channels is FOLLOWS and plan.by_itself() is not plan.jit


def test_memory_with_the_channels_last():
    dense = lambda *strides: Spec.of((2, 4, 5, 5), strides, jtorch.float32, jtorch.zeros(1)._spec.device)
    assert lies_first([dense(100, 25, 5, 1)]) and not lies_first([dense(100, 1, 20, 4)])


@pytest.mark.parametrize("dilation", [1, 2])
def test_window_of_nothing_but_the_lowest(dilation):
    def program(t):
        x = t.full((1, 1, 6, 6), -float("inf"), dtype=t.float64, requires_grad=True)
        out, at = t.nn.functional.max_pool2d(x, 3, 2, 1, dilation, return_indices=True)
        return [at, t.autograd.grad(out, x, t.ones_like(out))[0]]

    both(program)
