"""What does `import jtorch` cost on top of `import jax`? Fresh processes, in pairs.

Run: python benchmarks/import_time.py
"""

import os
import statistics
import subprocess
import sys
from pathlib import Path

ROUNDS = 11
TIMED = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def seconds(module: str) -> float:
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    done = subprocess.run([sys.executable, "-c", TIMED.format(module)], env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return float(done.stdout)


def main():
    seconds("jax"), seconds("jtorch")  # the file cache
    pairs = [(seconds("jtorch"), seconds("jax")) for _ in range(ROUNDS)]
    ours, its = (statistics.median(column) for column in zip(*pairs))
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"import jtorch {ours:.2f} s   import jax {its:.2f} s   ratio {ratio:.2f} (must 1.3, aim 1.1)")


if __name__ == "__main__":
    main()
