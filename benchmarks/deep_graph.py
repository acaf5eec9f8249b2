"""Is backward linear? Time a node of a chain of 1 000, 10 000 and 100 000 nodes, and of letting the chain go.

`y + 1` is the tape alone (its derivative records nothing); `y * c` records one node for each and runs what it recorded.
A pass that comes again is not run but recorded at once (`autograd/recurrence.py`), where its graph is not flushed in between: the
longest chain never is. So passes are run here, each of them; `--again` leaves that as users have it.
The sizes take turns, and this thread's CPU time is counted, so that a busy machine disturbs all of them alike.
Run: python benchmarks/deep_graph.py
"""

import statistics
import sys
import time

import jtorch
from jtorch.autograd import recurrence

SIZES = (1_000, 10_000, 100_000)
ROUNDS = 7
CHAINS = {"y + 1": lambda y: y + 1, "y * c": lambda y: y * 0.999}


def one(link, n):
    """Seconds a node of one backward pass, and of letting the chain go."""
    x = jtorch.ones(4).requires_grad_()
    y = x
    for _ in range(n):
        y = link(y)
    started = time.thread_time()
    y.backward(jtorch.ones(4))
    x.grad.tolist()
    middle = time.thread_time()
    del y
    return (middle - started) / n, (time.thread_time() - middle) / n


def measure(link):
    for n in SIZES:
        one(link, n), one(link, n), one(link, n)
    found = {n: [] for n in SIZES}
    for _ in range(ROUNDS):
        for n in SIZES:
            runs = [one(link, n) for _ in range(max(1, 20_000 // n))]
            found[n].append([statistics.median(part) for part in zip(*runs)])
    return found


def main():
    if "--again" not in sys.argv:
        recurrence.MOST = 0
    for name, link in CHAINS.items():
        found = measure(link)
        for n, rounds in found.items():
            back, gone = (statistics.median(part) * 1e6 for part in zip(*rounds))
            print(f"{name}  {n:7d} nodes  backward {back:5.2f} µs/node   deletion {gone:5.2f} µs/node", flush=True)
        ratio = statistics.median(b[0] / a[0] for a, b in zip(found[SIZES[0]], found[SIZES[-1]]))
        print(f"{name}  a node of {SIZES[-1]} against one of {SIZES[0]}: {ratio:.2f} (must < 1.20)", flush=True)


if __name__ == "__main__":
    main()
