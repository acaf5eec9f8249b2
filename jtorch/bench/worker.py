"""One model run one way in a process of its own; prints its measurements as one line of JSON.

Started by path and not with `-m`, so that hand-written JAX and PyTorch are measured without importing jtorch:
without its allocator settings and without 64-bit types switched on.
"""

import importlib
import json
import resource
import sys
import types
from pathlib import Path


def peak_memory() -> float:
    """Peak resident memory in MB.

    VmHWM where there is one: `ru_maxrss` starts at the size of the parent that started this process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024


def device_peak(way: str) -> float | None:
    """Peak memory in MB on the accelerator, where its library counts it."""
    if way.startswith("torch"):
        cuda = importlib.import_module("torch").cuda
        return cuda.max_memory_allocated() / 2**20 if cuda.is_available() else None
    stats = importlib.import_module("jax").devices()[0].memory_stats() or {}
    return stats["peak_bytes_in_use"] / 2**20 if "peak_bytes_in_use" in stats else None


def main(name: str, way: str, started: str, seconds: str) -> None:
    package = types.ModuleType("jtorch_bench")
    package.__path__ = [str(Path(__file__).parent)]
    sys.modules["jtorch_bench"] = package
    clock = importlib.import_module("jtorch_bench.clock")
    found = clock.lone(name, way, float(started), float(seconds))
    found |= {"peak_memory_mb": peak_memory(), "device_peak_mb": device_peak(way)}
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
