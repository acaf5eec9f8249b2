"""Every setting and environment flag, with its default and the reason for it."""

import os


def _flag(name: str, default: bool) -> bool:
    value = os.environ.get(name)
    return default if value is None else value.strip().lower() not in ("", "0", "false", "no", "off")


def _int(name: str, default: int) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.strip().lstrip("-").isdigit() else default


def _choice(name: str, default: str, other: str) -> str:
    value = (os.environ.get(name) or default).strip().lower()
    if value not in (default, other):
        raise ValueError(f"{name} is {os.environ[name]!r}; it can be {default!r} or {other!r}")
    return value


mode = _choice("JTORCH_MODE", "auto", "eager")  # how ops run: auto (recorded, fused) or eager (one by one)
cache_dir = os.environ.get("JTORCH_CACHE_DIR")  # compiled programs on disk; default: the user's cache folder
use_cache = _flag("JTORCH_CACHE", True)  # 0: do not touch JAX's compilation cache settings
use_malloc = _flag("JTORCH_MALLOC", True)  # 0: leave glibc's allocator as it is
max_nodes = _int("JTORCH_MAX_NODES", 4096)  # a graph is flushed at this many nodes: XLA's compile time grows with it
max_bytes = _int("JTORCH_MAX_BYTES", 1 << 36)  # or when the results recorded in it would take this many bytes
cold_ops = _int("JTORCH_COLD_OPS", 6)  # first sight of a graph with more uncompiled ops than this compiles it whole
max_states = _int("JTORCH_MAX_STATES", 1 << 19)  # recorded paths kept; beyond it the memory of graphs is dropped
# where masks of dropout are drawn: device (fused into the step), or host: PyTorch's numbers for the same seed, to compare with it
host_dropout = _choice("JTORCH_DROPOUT", "device", "host") == "host"
# torch.use_deterministic_algorithms: what a program's first runs give equals its later runs' in every bit
deterministic = False
# torch.backends.cudnn.allow_tf32: accelerators may round the operands of convolutions, as PyTorch lets them
conv_tf32 = True
# 1: XLA tries out a GPU's kernels, which takes long and seldom finds a better one
tries_kernels = _flag("JTORCH_TRY_KERNELS", False)
# 1: errors of operators show jtorch's own frames below the line that called, to find what is wrong in jtorch
full_tracebacks = _flag("JTORCH_FULL_TRACEBACKS", False)
logs = frozenset(part.strip().lstrip("+") for part in os.environ.get("TORCH_LOGS", "").split(",") if part.strip())


def shared_bytes() -> int:
    """JTORCH_SHARED_BYTES: of all batches of one data worker; 0: what the system has. Read when a worker starts."""
    return _int("JTORCH_SHARED_BYTES", 0)
