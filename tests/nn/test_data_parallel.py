"""DataParallel: with one device the module itself; with several the same numbers, from slices of the batch."""

import os
import subprocess
import sys

import pytest

import jtorch
from jtorch.core import device
from tests.oracle import both

PROGRAM = """
import jax
import jtorch as torch
assert len(jax.local_devices()) == 4

def build():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))

def train(model, rows):
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    torch.manual_seed(1)
    losses = []
    for _ in range(4):
        x, y = torch.randn(rows, 3), torch.randn(rows, 2)
        optimizer.zero_grad()
        out = model(x)
        loss = ((out - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, out

for rows in (8, 6):
    plain, _ = train(build(), rows)
    wrapped = torch.nn.DataParallel(build())
    spread, out = train(wrapped, rows)
    assert max(abs(a - b) for a, b in zip(plain, spread)) < 1e-5, (plain, spread)
    assert wrapped.device_ids == [0, 1, 2, 3]
    array = jax.numpy.asarray(out.detach().__jax_array__())
    assert len(array.sharding.device_set) == 4
    shapes = {s.data.shape for s in array.addressable_shards}
    assert shapes == ({(2, 2)} if rows == 8 else {(6, 2)}), shapes
    x = torch.randn(rows, 3)
    assert torch.allclose(wrapped(x), wrapped.module(x), atol=1e-6)
    leaf = torch.randn(rows, 3, requires_grad=True)
    wrapped(leaf).sum().backward()
    other = leaf.detach().requires_grad_()
    wrapped.module(other).sum().backward()
    assert torch.allclose(leaf.grad, other.grad, atol=1e-6)
two = torch.nn.DataParallel(build(), device_ids=[0, 1])
assert two.device_ids == [0, 1] and two(torch.ones(4, 3)).shape == (4, 2)
assert torch.nn.parallel.data_parallel(build(), torch.ones(4, 3), [2, 3]).shape == (4, 2)
print("done")
"""


def test_several_devices():
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.stdout.strip() == "done", ran.stderr[-3000:]


def test_one_device_is_a_plain_call():
    def program(torch):
        torch.manual_seed(0)
        model = torch.nn.DataParallel(torch.nn.Linear(3, 2))
        x = torch.ones(4, 3, requires_grad=True)
        out = model(x)
        out.sum().backward()
        return out, x.grad, list(model.state_dict()), model.device_ids, repr(model)

    both(program)


def test_numbers_of_devices_without_an_accelerator():
    """Scripts name them for the machine they were written on: PyTorch looks at none where there is no accelerator."""

    def program(torch):
        model = torch.nn.DataParallel(torch.nn.Identity(), device_ids=[0, 7])
        return model(torch.ones(2)), model.device_ids

    if device.accelerator() is None:
        both(program)
    else:
        with pytest.raises(RuntimeError, match="Invalid device id 7"):
            program(jtorch)
