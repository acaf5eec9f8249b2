"""torch.cuda: the accelerator under the name that old scripts use. Without one, is_available() is False and asking for a device raises."""

import contextlib
import importlib
import types

from . import accelerator, errors, random, random_tensors
from .core import device as devices
from .errors_storage import OutOfMemoryError
from .legacy import CUDA_CLASSES
from .streams import Event, Stream, StreamContext, current_stream, default_stream, set_stream
from .sundries import AcceleratorError

__all__ = [
    "AcceleratorError", "CUDAGraph", "CudaError", "Event", "ExternalStream", "OutOfMemoryError", "Stream", "StreamContext", "can_device_access_peer", "clock_rate", "current_device",
    "current_stream", "default_generators", "default_stream", "device", "device_count", "device_memory_used", "device_of", "empty_cache",
    "get_allocator_backend", "get_arch_list", "get_device_capability", "get_device_name", "get_device_properties",
    "get_gencode_flags", "get_rng_state", "get_rng_state_all", "get_sync_debug_mode", "graph", "init", "initial_seed", "ipc_collect",
    "is_available", "is_bf16_supported", "is_current_stream_capturing", "is_initialized", "is_tf32_supported",
    "list_gpu_processes", "memory_snapshot", "memory_stats_as_nested_dict", "memory_usage", "power_draw", "temperature", "utilization",
    "make_graphed_callables", "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_cached", "max_memory_reserved",
    "mem_get_info", "memory", "memory_allocated", "memory_cached", "memory_reserved", "memory_stats", "memory_summary", "nvtx",
    "reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_memory_stats", "seed",
    "seed_all", "set_device", "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream",
    "set_sync_debug_mode", "stream", "synchronize",
]  # fmt: skip

__path__: list = []  # so that `import jtorch.cuda.amp` asks jtorch/elsewhere.py
has_half, has_magma = True, False
default_generators: tuple = ()

is_available = accelerator.is_available
device_count = accelerator.device_count
empty_cache = accelerator.empty_cache
memory_stats = accelerator.memory_stats
memory_allocated = accelerator.memory_allocated
max_memory_allocated = accelerator.max_memory_allocated
memory_reserved = memory_cached = accelerator.memory_reserved
max_memory_reserved = max_memory_cached = accelerator.max_memory_reserved
reset_peak_memory_stats = reset_max_memory_allocated = reset_max_memory_cached = accelerator.reset_peak_memory_stats
reset_accumulated_memory_stats = accelerator.reset_accumulated_memory_stats
device_memory_used = accelerator.memory_allocated


def _need() -> None:
    if not is_available():
        raise AssertionError("Torch not compiled with CUDA enabled")


def init() -> None:
    """Nothing is to do. Raises AssertionError without an accelerator."""
    _need()


_lazy_init = init


def is_initialized() -> bool:
    """Whether there is an accelerator: jax starts it at once."""
    return is_available()


def _lazy_call(callable, **kwargs):
    """Call when CUDA starts: at once with an accelerator, never without."""
    if is_available():
        callable()


def _is_in_bad_fork() -> bool:
    return False


def current_device() -> int:
    """The index of the current accelerator. Raises AssertionError when there is none."""
    _need()
    return accelerator.current_device_index()


def set_device(device) -> None:
    """Make another accelerator the current one. Raises AssertionError when there is none."""
    _need()
    accelerator.set_device_index(device)


def synchronize(device=None) -> None:
    """Wait for all work. Raises AssertionError without an accelerator."""
    _need()
    accelerator.synchronize()


class device(accelerator.device_index):
    """Context: another accelerator is the current one; None, a negative index or the CPU changes nothing."""

    def __init__(self, device):
        index = device if device is None or isinstance(device, int) else devices.Device(device).index
        super().__init__(index if is_available() else None)


class device_of(device):
    """Context: the accelerator of a tensor is the current one."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def stream(stream) -> StreamContext:
    """Context: a stream is the current one."""
    return StreamContext(stream)


ExternalStream = Stream


# --- what a device is ----------------------------------------------------------------------------------------------


def get_device_name(device=None) -> str:
    """The accelerator's name, as jax gives it."""
    return _jax_device(device).device_kind


def get_device_capability(device=None) -> tuple[int, int]:
    """The compute capability of an NVIDIA GPU."""
    text = str(getattr(_jax_device(device), "compute_capability", "0.0"))
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


def get_device_properties(device=None) -> types.SimpleNamespace:
    """name, major, minor, total_memory and multi_processor_count of a device, as far as jax tells them."""
    found = _jax_device(device)
    major, minor = get_device_capability(device)
    return types.SimpleNamespace(
        name=found.device_kind, major=major, minor=minor, total_memory=mem_get_info(device)[1],
        multi_processor_count=int(getattr(found, "core_count", 0) or 0), is_integrated=False, is_multi_gpu_board=False,
    )  # fmt: skip


def mem_get_info(device=None) -> tuple[int, int]:
    """(free, total) bytes of a device, as far as jax may use it."""
    _need()
    return accelerator.get_memory_info(device)


def is_bf16_supported(including_emulation=True) -> bool:
    """XLA computes in bfloat16 on every accelerator."""
    return is_available()


def is_tf32_supported() -> bool:
    """From compute capability 8 on."""
    return devices.accelerator() == "cuda" and get_device_capability()[0] >= 8


def can_device_access_peer(device, peer_device) -> bool:
    """Whether both are accelerators of this process."""
    count = device_count()
    return all((d if isinstance(d, int) else devices.Device(d).index or 0) < count for d in (device, peer_device))


def get_arch_list() -> list[str]:
    """Empty: XLA compiles for the device that is there."""
    return []


def get_gencode_flags() -> str:
    """Empty, as get_arch_list."""
    return ""


def get_allocator_backend() -> str:
    """ "native": XLA's own."""
    return "native"


def memory_summary(device=None, abbreviated=False) -> str:
    """The allocator's statistics as a table."""
    rows = [f"{name:<40} {value:>20}" for name, value in sorted(memory_stats(device).items())]
    return "\n".join(
        [f"memory of device {device if device is not None else accelerator.current_device_index()}, bytes", *rows]
    )


def set_per_process_memory_fraction(fraction, device=None) -> None:
    """Raises: XLA's share is set before it starts."""
    raise errors.unsupported(
        "a memory limit set at run time", instead="the environment variable XLA_PYTHON_CLIENT_MEM_FRACTION"
    )


def ipc_collect() -> None:
    """Accepted: device memory is not shared between processes."""


def _jax_device(device):
    if device is None or isinstance(device, int):
        device = devices.Device("cuda", device)
    return devices.resolve(device).jax


# --- random numbers: one generator serves all devices --------------------------------------------------------------


def manual_seed(seed) -> None:
    """Seed the generator: there is one for all devices. Accepted, without effect, where there is no accelerator."""
    if is_available():
        random_tensors.manual_seed(seed)


manual_seed_all = manual_seed


def seed() -> None:
    """Seed the generator from the system's entropy, where there is an accelerator."""
    if is_available():
        random_tensors.seed()


seed_all = seed


def initial_seed() -> int:
    """The generator's seed."""
    _need()
    return random_tensors.initial_seed()


def get_rng_state(device=None):
    """The generator's state."""
    _need()
    return random_tensors.get_rng_state()


def set_rng_state(new_state, device=None) -> None:
    """Set the generator's state."""
    if is_available():
        random_tensors.set_rng_state(new_state)


def get_rng_state_all() -> list:
    """The generator's state, once for each device."""
    return [random_tensors.get_rng_state() for _ in range(device_count())]


def set_rng_state_all(new_states) -> None:
    """Set the generator's state to the first of these."""
    for state in list(new_states)[:1]:
        random_tensors.set_rng_state(state)


# --- graphs and the rest -------------------------------------------------------------------------------------------


class CudaError(RuntimeError):
    """An error of the device."""


class CUDAGraph:
    """Raises: a program of many kernels is what jtorch runs anyway."""

    def __init__(self, keep_graph=False):
        raise errors.unsupported("torch.cuda.CUDAGraph", instead="torch.compile(fn): its programs are launched as one")


class graph(contextlib.AbstractContextManager):
    """Raises, as CUDAGraph."""

    def __init__(self, *args, **kwargs):
        CUDAGraph()

    def __exit__(self, *exc):
        """Never reached."""


def make_graphed_callables(callables, *args, **kwargs):
    """Raises, as CUDAGraph."""
    return CUDAGraph()


def graph_pool_handle():
    """A handle that nothing uses."""
    return (0, 0)


def is_current_stream_capturing() -> bool:
    """False."""
    return False


def set_sync_debug_mode(debug_mode) -> None:
    """Accepted."""


def get_sync_debug_mode() -> int:
    """0: off."""
    return 0


def _monitored(name):
    def ask(device=None):
        raise ModuleNotFoundError("nvidia-ml-py does not seem to be installed or it can't be imported.")

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = "Raises ModuleNotFoundError, as PyTorch does where the driver cannot be asked."
    return ask


utilization, memory_usage, temperature, power_draw, clock_rate = map(
    _monitored, ("utilization", "memory_usage", "temperature", "power_draw", "clock_rate")
)


def list_gpu_processes(device=None) -> str:
    """Which processes use the device: the driver is not asked."""
    return "pynvml module not found, please install nvidia-ml-py"


def memory_snapshot(mempool_id=None) -> list:
    """The blocks of the allocator: XLA does not tell."""
    return []


def memory_stats_as_nested_dict(device=None) -> dict:
    """memory_stats, a dict for each part of a name."""
    found = {}
    for name, value in (memory_stats(device) if is_available() else {}).items():
        *parts, last = name.split(".")
        at = found
        for part in parts:
            at = at.setdefault(part, {})
        at[last] = value
    return found


def cudart():
    """Raises: jax does not show the CUDA runtime."""
    raise errors.unsupported("torch.cuda.cudart", instead="jax.profiler for traces")


for _name, _class in CUDA_CLASSES.items():
    globals()[_name] = _class


@contextlib.contextmanager
def _range(msg, *args, **kwargs):
    """Context and decorator: accepted."""
    yield


nvtx = types.ModuleType(f"{__name__}.nvtx", "Ranges for NVIDIA's profiler: accepted.")
nvtx.range_push = nvtx.mark = lambda msg: 0
nvtx.range_pop = lambda: 0
nvtx.range_start = lambda msg: 0
nvtx.range_end = lambda range_id: None
nvtx.range = _range
memory = types.ModuleType(f"{__name__}.memory", "Statistics of the device's memory.")
for _name in (
    "empty_cache", "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "mem_get_info", "memory_allocated",
    "memory_cached", "memory_reserved", "memory_stats", "memory_summary", "reset_peak_memory_stats",
):  # fmt: skip
    setattr(memory, _name, globals()[_name])
del _name, _class
_ = random


def __getattr__(name):
    """torch.cuda.amp: the old names of torch.amp, for CUDA; torch.cuda.random: this module itself; _initialized: is_initialized()."""
    if name == "_initialized":  # reversible networks ask it before they keep the random state
        return is_initialized()
    if name == "amp":
        return importlib.import_module(".amp.cuda", __package__)
    if name in ("random", "streams", "graphs"):
        return importlib.import_module(".cuda", __package__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
