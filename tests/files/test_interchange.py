"""Parameters as pytrees, and modules inside the user's own jax transformations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jtorch
from jtorch.func import functional_call


@pytest.fixture(scope="module")
def net():
    return jtorch.nn.Sequential(jtorch.nn.Linear(3, 4), jtorch.nn.ReLU(), jtorch.nn.Linear(4, 1))


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_there_and_back(net):
    tree = jtorch.to_jax(net)
    assert {k: v.shape for k, v in tree.items()} == {k: tuple(v.shape) for k, v in net.state_dict().items()}
    assert all(isinstance(v, jax.Array) for v in tree.values())
    other = jtorch.nn.Sequential(jtorch.nn.Linear(3, 4), jtorch.nn.ReLU(), jtorch.nn.Linear(4, 1))
    nested = {
        "0": {"weight": tree["0.weight"], "bias": tree["0.bias"]},
        "2": {"weight": tree["2.weight"], "bias": tree["2.bias"]},
    }
    assert jtorch.from_jax(nested, into=other) is other
    assert jtorch.equal(other(jtorch.tensor(X)), net(jtorch.tensor(X)))
    back = jtorch.from_jax({"a": [tree["0.bias"], 3]})
    assert isinstance(back["a"][0], jtorch.Tensor) and back["a"][1] == 3
    assert jtorch.to_jax({"x": jtorch.ones(2), "n": 1})["n"] == 1 and jtorch.to_jax(jtorch.ones(2)).shape == (2,)


def test_grad_and_jit_agree_with_the_tape(net):
    def loss(p, x):
        return functional_call(net, p, x).sum()

    tree = jtorch.to_jax(net)
    got = jax.jit(jax.grad(loss))(tree, jnp.asarray(X))
    net.zero_grad()
    net(jtorch.tensor(X)).sum().backward()
    for name, p in net.named_parameters():
        np.testing.assert_allclose(np.asarray(got[name]), p.grad.numpy(), rtol=1e-5)


def test_shard_map(net):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("i",))
    spec = jax.sharding.PartitionSpec
    call = jax.shard_map(
        lambda p, x: functional_call(net, p, x), mesh=mesh, in_specs=(spec(), spec("i")), out_specs=spec("i")
    )
    got = jax.jit(call)(jtorch.to_jax(net), jnp.asarray(X))
    np.testing.assert_allclose(np.asarray(got), net(jtorch.tensor(X)).detach().numpy(), rtol=1e-5)


def test_tensors_stay_tensors(net):
    got = functional_call(net, dict(net.named_parameters()), (jtorch.tensor(X),))
    assert isinstance(got, jtorch.Tensor) and got.requires_grad
