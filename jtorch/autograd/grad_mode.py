"""The grad modes under PyTorch's module name."""

import threading

from .mode import _set_grad_enabled, enable_grad, inference_mode, no_grad, set_grad_enabled

_said = threading.local()  # threads: what set_multithreading_enabled was told


class _unsafe_preserve_version_counter:
    """Put the version counters of tensors back at the end."""

    def __init__(self, tensors):
        self.tensors = tensors if isinstance(tensors, (tuple, list)) else (tensors,)

    def __enter__(self):
        self.versions = [t._storage.version for t in self.tensors]

    def __exit__(self, *exc):
        for t, version in zip(self.tensors, self.versions):
            t._storage.version = version


def is_multithreading_enabled() -> bool:
    """What set_multithreading_enabled was told."""
    return getattr(_said, "threads", True)


class set_multithreading_enabled:
    """Kept, and without effect: the backward pass records into one graph in one thread, which XLA runs in many. Also a context."""

    def __init__(self, mode):
        self.mode, self.prev = mode, is_multithreading_enabled()
        _said.threads = bool(mode)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        _said.threads = self.prev


class enforce_grad_layout_policy:
    """Accepted: gradients always have the layout of their leaves. Also a context manager."""

    def __init__(self, enable=True):
        self.enable = enable

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None


__all__ = [
    "_set_grad_enabled",
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "is_multithreading_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]
