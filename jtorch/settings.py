"""Switches of the process that PyTorch has: those that XLA has no use for are kept, so that what was set can be read."""

import jax

from . import config, errors
from .core import crowd
from .core import device as devices
from .core.record import tls
from .handles import mutations

_PRECISIONS = {"highest": "highest", "high": "high", "medium": "default"}  # PyTorch's name -> jax's


class _Settings:
    __slots__ = ("warn_only", "precision", "threads", "interop_threads")

    def __init__(self):
        self.warn_only = False
        self.precision = "highest"
        self.threads = self.interop_threads = 1


_now = _Settings()


def use_deterministic_algorithms(mode, *, warn_only=False) -> None:
    """Each graph has one program, compiled with everything on when it is first seen: each run then agrees in every bit.

    On a GPU sums of scattered rows have a fixed order then. XLA's CPU programs are deterministic as they are.
    """
    if not isinstance(mode, bool):
        raise errors.argument("_set_deterministic_algorithms", "mode", "bool", mode, 1)
    _now.warn_only = bool(warn_only)
    _compile_with("deterministic", mode, "deterministic algorithms")


def are_deterministic_algorithms_enabled() -> bool:
    """What use_deterministic_algorithms was told."""
    return config.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """What use_deterministic_algorithms was told."""
    return _now.warn_only


def set_deterministic_debug_mode(debug_mode) -> None:
    """0 or "default", 1 or "warn", 2 or "error": use_deterministic_algorithms by another name."""
    if not isinstance(debug_mode, (str, int)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    names = ("default", "warn", "error")
    if isinstance(debug_mode, str):
        if debug_mode not in names:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, " + f"but got {debug_mode}"
            )
        debug_mode = names.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """0: off, 1: warn, 2: error."""
    return 0 if not config.deterministic else 1 if _now.warn_only else 2


def set_warn_always(b) -> None:
    """Warnings that come once in a process come each time; Python's own filters decide how often one shows."""
    if not isinstance(b, bool):
        raise TypeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    errors.said_always = b


def is_warn_always_enabled() -> bool:
    """What set_warn_always was told."""
    return errors.said_always


def set_float32_matmul_precision(precision) -> None:
    """How exact float32 matrix products are on accelerators: "highest", "high" or "medium"."""
    if precision not in _PRECISIONS:
        errors.warn(f"{precision} is not one of 'highest', 'high', or 'medium'; the current setting stays")
        return
    if precision != _now.precision:
        tls.me.flush("matmul precision")
        jax.config.update("jax_default_matmul_precision", _PRECISIONS[precision])
        _now.precision = precision
        mutations[0] += 1  # compiled regions may have asked for it


def get_float32_matmul_precision() -> str:
    """What set_float32_matmul_precision was told."""
    return _now.precision


def allow_conv_tf32(allowed) -> None:
    """Whether accelerators may round the operands of float32 convolutions (backends.cudnn.allow_tf32)."""
    _compile_with("conv_tf32", bool(allowed), "convolution precision")


def _compile_with(setting, value, cause) -> None:
    """Change a setting that an accelerator's programs are compiled with: those that there are have the other one."""
    if getattr(config, setting) != value:
        if devices.accelerator() is not None:
            tls.me.flush(cause)
            crowd.forget_programs()
        setattr(config, setting, value)
        mutations[0] += 1


def set_num_threads(n) -> None:
    """Remembered: XLA's threads are set before it starts (XLA_FLAGS)."""
    _now.threads = _positive(n, "set_num_threads")


def get_num_threads() -> int:
    """What set_num_threads was told."""
    return _now.threads


def set_num_interop_threads(n) -> None:
    """Remembered, as set_num_threads."""
    _now.interop_threads = _positive(n, "set_num_interop_threads")


def get_num_interop_threads() -> int:
    """What set_num_interop_threads was told."""
    return _now.interop_threads


def _positive(n, name):
    if not isinstance(n, int):
        raise TypeError(f"{name} expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError(f"{name} expects a positive integer")
    return n


def set_flush_denormal(mode) -> bool:
    """Whether denormal numbers are flushed to zero: not to be set in XLA, so False."""
    return False
