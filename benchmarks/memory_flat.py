"""Does a long training run keep memory? Resident memory after 10 000 steps against after 1 000, mlp.

Run: python benchmarks/memory_flat.py [eager|auto|compile|jax|torch] [model] [steps]
"""

import os
import sys
from pathlib import Path

import jtorch.bench.runners as runners


def resident() -> float:
    """Resident memory of this process in MB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main(way: str = "auto", model: str = "mlp", steps: str = "10000") -> None:
    runner = runners.open_runner(model, way)
    total = int(steps)
    marks = [total // 10, *(total * i // 5 for i in range(1, 6))]
    found, done = [], 0
    for mark in marks:
        runner.run(mark - done)
        done = mark
        found.append(resident())
        print(f"{model} {way}  {done:6d} steps  {found[-1]:8.1f} MB", flush=True)
    print(f"after {marks[-1]} steps against after {marks[0]}: {found[-1] / found[0] - 1:+.1%} (must +2%, aim 0)")


if __name__ == "__main__":
    main(*sys.argv[1:])
