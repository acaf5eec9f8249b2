"""What does one op cost? A chain of 90 adds, multiplications and tanhs on 8x8.

auto mode against PyTorch eager, forward and with backward, all from the first op to the number on the host
included; eager mode against the same chain of bare cached `jax.jit` calls.
Run: python benchmarks/op_overhead.py
"""

import importlib
import importlib.util
import statistics
import time

import jtorch  # isort: skip  first: its allocator settings must be there before jax starts
import jax
import jax.numpy as jnp
import numpy as np

LINKS, OPS, ROUNDS, BLOCK = 30, 90, 41, 20


def operands():
    rng = np.random.default_rng(0)
    return [rng.uniform(0.5, 1, (8, 8)).astype(np.float32) for _ in range(3)]


def chain(torch, x, a, b):
    for _ in range(LINKS):
        x = torch.tanh((x + a) * b)
    return x


def forward(torch):
    x, a, b = (torch.from_numpy(v) for v in operands())
    return lambda: chain(torch, x, a, b).sum().item()


def backward(torch):
    x, a, b = (torch.from_numpy(v).requires_grad_() for v in operands())

    def run():
        x.grad = a.grad = b.grad = None
        chain(torch, x, a, b).sum().backward()
        return a.grad.sum().item()

    return run


def eager_forward():
    run = forward(jtorch)

    def scoped():
        with jtorch.execution_mode("eager"):
            return run()

    return scoped


def bare_jit():
    x, a, b = (jnp.asarray(v) for v in operands())
    add, mul, tanh, total = (jax.jit(f) for f in (jnp.add, jnp.multiply, jnp.tanh, jnp.sum))

    def run():
        y = x
        for _ in range(LINKS):
            y = tanh(mul(add(y, a), b))
        return total(y).item()

    return run


def compare(title, ours, other, other_name, must):
    """Print µs per op of both and the median of the ratios of neighbouring blocks."""
    assert np.isclose(ours(), other(), rtol=1e-4), (ours(), other())
    times = ([], [])
    for _ in range(ROUNDS):
        for run, found in zip((ours, other), times):
            run()
            start = time.perf_counter()
            for _ in range(BLOCK):
                run()
            found.append((time.perf_counter() - start) / BLOCK / OPS * 1e6)
    ratio = statistics.median(a / b for a, b in zip(*times))
    mine, its = (statistics.median(found) for found in times)
    print(f"{title:24} {mine:6.2f} µs/op   {other_name} {its:6.2f} µs/op   ratio {ratio:.2f} (must {must})")


def main():
    if importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed: auto mode has nothing to be compared with")
    else:
        torch = importlib.import_module("torch")
        compare("auto, forward", forward(jtorch), forward(torch), "PyTorch eager", 2.5)
        compare("auto, with backward", backward(jtorch), backward(torch), "PyTorch eager", 2.5)
    compare("eager, forward", eager_forward(), bare_jit(), "bare jax.jit ", 2)


if __name__ == "__main__":
    main()
