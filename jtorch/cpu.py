"""torch.cpu: the questions that device-generic code asks, answered for the CPU."""

import importlib

from .streams import Event, Stream, StreamContext, wait

__all__ = [
    "Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count", "get_capabilities", "is_available",
    "is_initialized", "set_device", "stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """True."""
    return True


is_initialized = is_available
__path__: list = []  # so that `import jtorch.cpu.amp` asks jtorch/elsewhere.py


def synchronize(device=None) -> None:
    """Wait for all work."""
    wait()


def current_stream(device=None) -> Stream:
    """The one stream."""
    return Stream("cpu")


def stream(stream) -> StreamContext:
    """Context: accepted."""
    return StreamContext(stream)


def device_count() -> int:
    """1."""
    return 1


def set_device(device) -> None:
    """Accepted: there is one."""


def current_device() -> str:
    """ "cpu"."""
    return "cpu"


def get_capabilities() -> dict:
    """Empty: XLA finds out for itself what the processor has."""
    return {}


def _is_vnni_supported() -> bool:
    """False, as the questions below: packages choose kernels of theirs by the processor's instructions, and XLA compiles here."""
    return False


_init_amx = _is_amx_fp16_supported = _is_amx_tile_supported = _is_avx2_supported = _is_avx512_supported = (
    _is_vnni_supported
)
_is_avx512_bf16_supported = _is_vnni_supported


def __getattr__(name):
    """torch.cpu.amp: the old names of torch.amp."""
    if name == "amp":
        return importlib.import_module(".amp.cpu", __package__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
