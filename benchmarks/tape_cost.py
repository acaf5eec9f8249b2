"""What does the tape cost beside the recording? A chain of ops, with and without gradients, a node at a time.

"alone": the chain's forward ops and as many ops as its backward pass records, recorded with nothing that needs a gradient.
"taped": the same forward with the tape, and backward. Both are only recorded: nothing is flushed within the time that counts.
This thread's CPU time is counted, in turns, so that a busy machine disturbs both alike; the best of the rounds is shown, and the
median of the ratios of neighbouring rounds.
Run: python benchmarks/tape_cost.py
"""

import gc
import statistics
import time

import jtorch

LINKS, ROUNDS = 60, 60
CHAINS = {
    "y * c": (lambda y, c: y * c, 1),
    "y + c": (lambda y, c: y + c, 0),
    "tanh(y)": (lambda y, c: jtorch.tanh(y), 1),
}


def forward(link, y, c, n):
    for _ in range(n):
        y = link(y, c)
    return y


def recorded(link, extra, x, c, seed):
    started = time.thread_time()
    forward(link, x, c, LINKS)
    forward(lambda g, c: g * c, seed, c, LINKS * extra)  # one recorded op for each that the backward pass records
    return time.thread_time() - started


def taped(link, x, c, seed):
    started = time.thread_time()
    forward(link, x, c, LINKS).backward(seed)
    return time.thread_time() - started


def main():
    c, seed = jtorch.full((8, 8), 0.5), jtorch.ones(8, 8)
    for name, (link, extra) in CHAINS.items():
        plain, leaf = jtorch.ones(8, 8), jtorch.ones(8, 8).requires_grad_()
        found = []
        gc.disable()
        for _ in range(ROUNDS):
            alone = recorded(link, extra, plain, c, seed)
            seed.sum().item()
            with_tape = taped(link, leaf, c, seed)
            leaf.grad.sum().item()
            leaf.grad = None
            found.append((alone, with_tape))
            gc.collect(0)
        gc.enable()
        per = 1e6 / LINKS
        best = [min(v) * per for v in zip(*found[10:])]
        ratio = statistics.median(b / a for a, b in found[10:])
        print(
            f"{name:8s} alone {best[0]:5.2f} µs/node   taped, forward and backward {best[1]:5.2f} µs/node   ratio {ratio:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
