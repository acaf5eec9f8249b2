"""Elementwise operations between convolutions are computed with the channels last; what is not elementwise is not turned."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jtorch
from jtorch.core import maps
from tests.oracle import both

F = jtorch.nn.functional


def last_node(out):
    """The node that the recorder noted last for this result."""
    return out._storage.value.graph.state


def fresh(*shape):
    x = jtorch.ones(*shape)
    jtorch.synchronize()
    return x


TURNED = {
    "silu": lambda x: F.silu(x),
    "a sum of two": lambda x: x + x * 2,
    "a number for each channel": lambda x: x * jtorch.ones(2, 4, 1, 1),
    "a comparison": lambda x: x > 0.5,
    "a conversion": lambda x: x.double(),
}
WHOLE = {
    "prelu, a number for each channel": lambda x: F.prelu(x, jtorch.ones(4)),
    "rows": lambda x: x + jtorch.ones(7),
    "softmax": lambda x: jtorch.softmax(x, 1),
    "running sums": lambda x: x.cumsum(1),
    "flipped": lambda x: x.flip(1),
    "dropout": lambda x: F.dropout(x),
    "a product of matrices": lambda x: x @ jtorch.ones(7, 7),
}


@pytest.mark.parametrize("name", [*TURNED, *WHOLE])
def test_what_is_pointwise(name):
    plan = last_node((TURNED | WHOLE)[name](fresh(2, 4, 5, 7))).plan
    assert bool(maps.pointwise(plan)) is (name in TURNED)


def test_the_function_sees_the_channels_last():
    node = last_node(F.silu(fresh(2, 4, 5, 7)))
    seen = []

    def run(x):
        seen.append(x.shape)
        return x * 2

    x = jnp.asarray(np.arange(280.0).reshape(2, 4, 5, 7))
    between = maps.Maps()
    assert between.result(node, run, [x]).shape == x.shape and seen == [(2, 4, 5, 7)]
    between.known.update(node.ids)
    np.testing.assert_array_equal(between.result(node, run, [x]), x * 2)
    assert seen[1:] == [(2, 5, 7, 4)] and node.first in between.known


def test_a_derivative_is_its_jaxpr():
    """Its function knows the shapes of what it derives."""
    function = lambda x, g: jax.vjp(lambda x: jnp.broadcast_to(jax.nn.silu(x), (2, 3, 4, 5)), x)[1](g)[0]
    x, g = np.random.default_rng(0).standard_normal((2, 2, 3, 4, 5))
    jaxpr = jax.make_jaxpr(function)(x, g).jaxpr
    turned = [np.moveaxis(a, 1, -1) for a in (x, g)]
    assert maps._is_pointwise(jaxpr, (2, 3, 4, 5))
    [got] = maps.evaluated(jaxpr, turned, (2, 4, 5, 3))
    np.testing.assert_allclose(np.moveaxis(got, -1, 1), function(x, g), rtol=1e-12)


def test_a_network_trains_as_in_pytorch():
    """Dear functions, numbers for each channel and sums that several layers read, in one compiled program."""

    def program(t):
        t.manual_seed(0)
        nn = t.nn

        class Block(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.norm = nn.GroupNorm(2, width)
                self.first, self.second = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 1)
                self.act = nn.PReLU(width)

            def forward(self, x):
                y = self.first(t.nn.functional.silu(self.norm(x)))
                return x + self.second(self.act(y) * t.sigmoid(y.mean((2, 3), keepdim=True)))

        net = nn.Sequential(nn.Conv2d(3, 6, 3), Block(6), Block(6), nn.Upsample(scale_factor=2), Block(6)).double()
        optimizer = t.optim.SGD(net.parameters(), lr=0.05)
        x = t.arange(2 * 3 * 9 * 8.0, dtype=t.float64).reshape(2, 3, 9, 8).sin()

        def step():
            optimizer.zero_grad()
            loss = (net(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        call = jtorch.compile(step) if t is jtorch else step
        return [call().detach() for _ in range(4)] + [p.detach() for p in net.parameters()]

    both(program)
