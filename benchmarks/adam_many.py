"""What does an Adam step over 150 parameters cost the host? jtorch's one recorded node against PyTorch's foreach Adam.

`recorded`: the call of `step()` and of what ends it, until Python goes on. `whole`: with the program that it becomes, run to its end.
Run: python benchmarks/adam_many.py
"""

import importlib
import statistics
import time

import jtorch  # isort: skip  first: its allocator settings must be there before jax starts
from jtorch.core import record

PARAMETERS, ROUNDS, BLOCK = 150, 21, 10


def parameters(torch, size):
    torch.manual_seed(0)
    made = [torch.nn.Parameter(torch.randn(size)) for _ in range(PARAMETERS)]
    for p in made:
        p.grad = torch.randn(size)
    return made


def stepper(torch, size, **options):
    """One step, with gradients that stay."""
    return torch.optim.Adam(parameters(torch, size), **options).step


def nodes(size):
    """Nodes that one step records."""
    step = stepper(jtorch, size)
    step()
    jtorch.synchronize()
    step()
    graph = record.tls.me.deferred
    return len(graph.state.nodes())


def timed(step, finish=None):
    """(microseconds until the call has returned, and until its results are there), means over a block."""
    called = 0.0
    started = time.perf_counter()
    for _ in range(BLOCK):
        before = time.perf_counter()
        step()
        called += time.perf_counter() - before
        if finish is not None:
            finish()
    return called / BLOCK * 1e6, (time.perf_counter() - started) / BLOCK * 1e6


def main():
    torch = importlib.import_module("torch")
    print(f"nodes of a step over {PARAMETERS} parameters: {nodes((8,))}")
    for size in ((8,), (64, 64), (128, 128)):
        mine, theirs = stepper(jtorch, size), stepper(torch, size, foreach=True)
        for _ in range(5):
            timed(mine, jtorch.synchronize), timed(theirs)
        found = [(timed(mine, jtorch.synchronize), timed(theirs)) for _ in range(ROUNDS)]
        recorded = statistics.median(m[0] / t[0] for m, t in found)
        whole = statistics.median(m[1] / t[1] for m, t in found)
        us = statistics.median(t[1] for _, t in found)
        print(f"{'x'.join(map(str, size)):>8}: PyTorch {us:7.0f} us, recorded {recorded:.2f} of it, whole {whole:.2f}")


if __name__ == "__main__":
    main()
