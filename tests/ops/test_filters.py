"""Convolutions that multiply little for each result: where the channels lie first, PyTorch's numbers; and which programs these are."""

import jax
import numpy as np
import pytest

import jtorch
from jtorch.core.channel_order import convolves, is_light, stays, stored_order
from jtorch.ops import conv
from jtorch.ops.conv_shapes import geometry
from tests.oracle import both

DRAW = np.random.default_rng(0)
CASES = {  # shapes of the input and of the weight, options
    "blur": ((2, 1, 9, 8), (1, 1, 5, 5), {"padding": 2}),
    "each channel's": ((2, 3, 9, 8), (3, 1, 3, 3), {"padding": 1, "groups": 3}),
    "steps": ((2, 3, 9, 8), (3, 1, 3, 2), {"stride": (2, 3), "padding": (1, 0), "groups": 3}),
    "gaps": ((2, 2, 9, 8), (5, 2, 2, 3), {"dilation": (2, 1)}),
    "same": ((2, 2, 9, 8), (3, 2, 4, 3), {"padding": "same"}),
    "more padding than kernel": ((1, 2, 5, 4), (3, 2, 1, 2), {"padding": 3, "stride": 2}),
    "signal": ((2, 2, 30), (4, 2, 7), {"padding": 3}),
    "without a batch": ((2, 30), (4, 2, 7), {"stride": 3}),
    "volume": ((2, 1, 5, 4, 6), (2, 1, 3, 1, 2), {"padding": (1, 0, 1)}),
}


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("name", CASES)
def test_numbers(name, dtype, last):
    x, w, options = CASES[name]
    if last and len(x) != 4:
        return
    x, w = (DRAW.standard_normal(shape).astype(np.float32) for shape in (x, w))

    def program(t):
        kind, found = getattr(t, dtype), []
        ours = [t.tensor(v).to(kind) for v in (x, w, w.reshape(len(w), -1)[:, 0])]
        if last:
            ours[0] = ours[0].contiguous(memory_format=t.channels_last)
        f = getattr(t.nn.functional, f"conv{w.ndim - 2}d")
        for bias in (None, ours[2]):
            y = f(*ours[:2], bias, **options)
            found += [y, y * 2]
        if dtype == "float64":
            leaves = [v.detach().requires_grad_() for v in ours]
            y = f(*leaves, **options)
            found += t.autograd.grad((y * y).sum(), leaves, create_graph=True)
            found += t.autograd.grad(sum((g * g).sum() for g in found[-3:]), leaves)
        return found

    both(program, layout=False)


@pytest.mark.parametrize("name", CASES)
def test_by_taps_where_the_channels_stay(name):
    x, w, options = CASES[name]
    if len(x) < len(w):
        return
    kernel = w[2:]
    geo = geometry(
        kernel,
        options.get("stride", 1),
        options.get("padding", 0),
        options.get("dilation", 1),
        options.get("groups", 1),
    )
    x, w = DRAW.standard_normal(x), DRAW.standard_normal(w)
    run = lambda x, w: conv._forward(x, w, None, geo)
    stayed = jax.make_jaxpr(stored_order(run))(x, w)
    assert "transpose" not in str(stayed) and "conv_general" not in str(stayed) and "dot_general" not in str(stayed)
    np.testing.assert_allclose(stored_order(run)(x, w), run(x, w), rtol=1e-12, atol=1e-12)


def test_which_are_light():
    assert (
        is_light((1, 1, 9, 9), (1, 1, 7, 7)) and is_light((64, 9, 9), (64, 1, 3, 3)) and is_light((1, 3, 9), (16, 3, 3))
    )
    assert not is_light((1, 3, 9, 9), (64, 3, 7, 7)) and not is_light((1, 16, 9, 9), (8, 16, 3, 3))
    assert not is_light((1, 3, 9, 9), (64, 3, 3, 3)) and not is_light((1, 8, 9, 9), (8, 2, 3, 3))


def test_gradients_and_other_convolutions_have_the_channels_last():
    x, w = jtorch.ones(1, 2, 8, 8), jtorch.ones(2, 2, 3, 3, requires_grad=True)

    def plans(made):
        return [node.plan for node in made._storage.value.graph.state.nodes()]

    jtorch.synchronize()
    y = jtorch.nn.functional.conv2d(x, w.detach()) * 2
    assert not convolves(plans(y)) and stays(next(p for p in plans(y) if p.channels))
    z = jtorch.nn.functional.conv2d(y.repeat(1, 20, 1, 1), jtorch.ones(3, 40, 2, 2))
    assert convolves(plans(z))
    jtorch.synchronize()
    (grad,) = jtorch.autograd.grad(jtorch.nn.functional.conv2d(x, w).sum(), w)
    assert convolves(plans(grad))
