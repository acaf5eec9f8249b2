"""How long until the first training step is done? train_digits.py from process start, cold and warm cache.

Beside it the same text under PyTorch, with the import swapped back. Run: python benchmarks/first_step.py
"""

import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "train_digits.py"
WARM_RUNS = 5


def seconds(script: Path, model: str, cache: str) -> float:
    """From starting the process to its line about the first step; the epoch is then run to its end."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {"JTORCH_CACHE_DIR": cache, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, str(script), "--model", model, "--epochs", "1", "--no-table"]
    start = time.perf_counter()
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        first = None
        for line in process.stdout:
            if first is None and "first step" in line:
                first = time.perf_counter() - start
    if process.returncode or first is None:
        sys.exit(f"{script.name} failed")
    return first


def main():
    with tempfile.TemporaryDirectory() as folder:
        swapped = Path(folder) / "train_digits_torch.py"
        text = EXAMPLE.read_text().replace("import jtorch as torch", "import torch")
        swapped.write_text(text.replace("from jtorch", "from torch"))
        for model in ("mlp", "cnn"):
            cache = str(Path(folder) / model)
            cold = seconds(EXAMPLE, model, cache)
            warm = statistics.median(seconds(EXAMPLE, model, cache) for _ in range(WARM_RUNS))
            peer = ""
            if importlib.util.find_spec("torch"):
                its = statistics.median(seconds(swapped, model, cache) for _ in range(WARM_RUNS))
                peer = f"   PyTorch {its:.2f} s, ratio {warm / its:.2f}"
            print(f"{model}: first run {cold:.2f} s   second run {warm:.2f} s (must 6, aim 3){peer}", flush=True)


if __name__ == "__main__":
    main()
