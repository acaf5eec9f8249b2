"""`python -m jtorch doctor`: what is installed, what is set, and what to fix.

Every check stands alone and imports what it needs when it runs, so that a broken installation is described
and not merely failed on. Where `python -m jtorch` itself cannot start, run this file by its path.
"""

import argparse
import importlib
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

OLDEST = {"jax": (0, 7, 2), "jaxlib": (0, 7, 2), "numpy": (1, 26), "optax": (0, 2, 4)}
ALSO = ("ml_dtypes", "opt_einsum")
FLAGS = (
    "JTORCH_",
    "TORCH_LOGS",
    "JAX_",
    "XLA_",
    "CUDA_VISIBLE",
    "TPU_",
    "LD_PRELOAD",
    "MALLOC_",
    "GLIBC_TUNABLES",
)

# A check yields (text, what to fix or None).
Finding = tuple[str, str | None]


def version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: (0, 10, 2) of "0.10.2.dev1"."""
    parts = []
    for part in version.split("."):
        if not part.isdigit():
            break
        parts.append(int(part))
    return tuple(parts)


def versions() -> Iterator[Finding]:
    old = sys.version_info < (3, 11)
    yield f"python {platform.python_version()}", "jtorch needs Python 3.11 or newer" if old else None
    yield f"jtorch {version_of('jtorch-xla') or 'run from a source tree'}", None
    for package in (*OLDEST, *ALSO):
        found, oldest = version_of(package), OLDEST.get(package, ())
        fix = None
        if found is None:
            fix = f"{package} is missing: pip install {package}"
        elif numbers(found) < oldest:
            least = ".".join(map(str, oldest))
            fix = f"{package} {found} is too old: pip install -U '{package}>={least}'"
        yield f"{package} {found or 'missing'}", fix
    jax, jaxlib = version_of("jax"), version_of("jaxlib")
    if jax and jaxlib and numbers(jaxlib) > numbers(jax):
        yield "jaxlib is newer than jax", "jax refuses a newer jaxlib: pip install -U jax jaxlib"
    peer = version_of("torch")
    yield f"torch {peer}: a peer of the benchmark" if peer else "torch not installed (not needed)", None


def package() -> Iterator[Finding]:
    jtorch = importlib.import_module("jtorch")
    yield f"import jtorch from {Path(str(jtorch.__file__)).parent}", None
    total = (jtorch.tensor([1.0, 2.0]) * 2).sum().item()
    fix = None if total == 6.0 else f"(tensor([1., 2.]) * 2).sum() gave {total}, not 6.0: the installation is broken"
    yield "a first computation gives what it should" if fix is None else "a first computation is wrong", fix


def devices() -> Iterator[Finding]:
    jax = importlib.import_module("jax")
    wanted = os.environ.get("JAX_PLATFORMS")
    try:
        found = jax.devices()
    except Exception:
        if not wanted:
            raise
        fix = "unset JAX_PLATFORMS, or install what it asks for: pip install 'jtorch-xla[cuda13]' (or cuda12, tpu)"
        yield f"jax finds no device of JAX_PLATFORMS={wanted}", fix
        return
    for device in found:
        limit = (device.memory_stats() or {}).get("bytes_limit")
        memory = f", {limit / 2**30:.1f} GiB" if limit else ""
        yield f"{device} ({device.device_kind}{memory})", None
    yield f"{len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} cpus", None
    if jax.default_backend() != "cpu":
        return
    if shutil.which("nvidia-smi"):
        yield (
            "an NVIDIA driver is there, and jax uses the CPU",
            "for the GPU: pip install 'jtorch-xla[cuda13]' (or cuda12, for an older driver)",
        )
    if list(Path("/dev").glob("accel*")):
        yield "a TPU is there, and jax uses the CPU", "for the TPU: pip install 'jtorch-xla[tpu]'"


def cache() -> Iterator[Finding]:
    jax = importlib.import_module("jax")
    importlib.import_module("jtorch")  # switches the cache on
    folder = jax.config.jax_compilation_cache_dir
    if not folder:
        if importlib.import_module("jtorch.config").use_cache:
            wanted = importlib.import_module("jtorch.startup").cache_folder()
            yield f"off: {wanted} cannot be made", "set JTORCH_CACHE_DIR to a folder that can be written"
        else:
            yield "off: every process compiles anew", "unset JTORCH_CACHE=0"
        return
    path = Path(folder)
    if "://" in folder:
        yield f"{folder} (remote)", None
        return
    files = [p for p in path.rglob("*") if p.is_file()] if path.exists() else []
    yield f"{path}: {len(files)} files, {sum(p.stat().st_size for p in files) / 2**20:.1f} MB", None
    there = next(p for p in (path, *path.parents) if p.exists())
    if not os.access(there, os.W_OK):
        yield f"{there} cannot be written", "set JTORCH_CACHE_DIR to a folder that can be written"


def settings() -> Iterator[Finding]:
    for name in sorted(os.environ):
        if name.startswith(FLAGS):
            yield f"{name}={os.environ[name]}", None
    config = importlib.import_module("jtorch.config")
    shown = {k: v for k, v in vars(config).items() if not k.startswith("_") and not callable(v)}
    for name, value in shown.items():
        if not isinstance(value, type(os)):
            yield f"config.{name} = {sorted(value) if isinstance(value, frozenset) else value!r}", None
    x64 = importlib.import_module("jax").config.jax_enable_x64
    fix = None if x64 else "something switched off jax_enable_x64: int64 and float64 would be 32 bits wide"
    yield f"jax_enable_x64 {x64}", fix


def allocator() -> Iterator[Finding]:
    libc = platform.libc_ver()[0]
    if libc != "glibc":
        yield f"not glibc ({platform.system()} {libc}): nothing to set", None
        return
    importlib.import_module("jtorch")
    if freed_memory_is_kept():
        yield "glibc keeps freed memory: XLA's temporary buffers cost no page faults", None
        return
    jax = importlib.import_module("jax")
    slow = jax.default_backend() == "cpu"
    yield (
        "glibc gives freed memory back to the system: XLA's temporary buffers fault in at every step",
        "import jtorch before jax starts, and leave JTORCH_MALLOC unset: up to 1.5x on the CPU" if slow else None,
    )


def freed_memory_is_kept(block: int = 24 << 20, count: int = 8) -> bool:
    """Whether large blocks, freed and taken again, are still mapped: asked of the allocator itself.

    In the third round and below 32 MB a block: by then glibc alone has adapted as far as it ever does.
    """
    resource = importlib.import_module("resource")
    np = importlib.import_module("numpy")
    before = 0
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        blocks = [np.ones(block, np.uint8) for _ in range(count)]
        del blocks
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    huge = 2 << 20  # the fewest faults that mapping the blocks anew could cost, with transparent huge pages
    return faults < count * block // huge // 2


CHECKS: dict[str, Callable[[], Iterator[Finding]]] = {
    "Versions": versions,
    "Package": package,
    "Devices": devices,
    "Compilation cache": cache,
    "Settings": settings,
    "Memory allocator": allocator,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command takes none."""


def run(args: argparse.Namespace | None = None) -> int:
    """Print every finding, then what to fix. 1 when there is something to fix."""
    fixes = []
    for title, check in CHECKS.items():
        print(title)
        try:
            for text, fix in check():
                print(f"  {text}")
                if fix:
                    fixes.append(fix)
        except Exception as error:
            line = f"{type(error).__name__}: {error}".splitlines()[0]
            print(f"  could not be checked: {line}")
            fixes.append(f"{title.lower()}: {line}")
    fixes = list(dict.fromkeys(fixes))
    print("\nTo fix" if fixes else "\nNothing to fix.")
    for fix in fixes:
        print(f"  {fix}")
    return 1 if fixes else 0


if __name__ == "__main__":
    sys.exit(run())
