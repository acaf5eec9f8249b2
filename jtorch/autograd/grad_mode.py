"""The grad modes under PyTorch's module name."""

from .mode import _set_grad_enabled, enable_grad, inference_mode, no_grad, set_grad_enabled


class _unsafe_preserve_version_counter:
    """Put the version counters of tensors back at the end."""

    def __init__(self, tensors):
        self.tensors = tensors if isinstance(tensors, (tuple, list)) else (tensors,)

    def __enter__(self):
        self.versions = [t._storage.version for t in self.tensors]

    def __exit__(self, *exc):
        for t, version in zip(self.tensors, self.versions):
            t._storage.version = version


class set_multithreading_enabled:
    """Accepted: the backward pass records into one graph in one thread, which XLA runs in many. Also a context manager."""

    def __init__(self, mode):
        self.mode = mode

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None


class enforce_grad_layout_policy(set_multithreading_enabled):
    """Accepted: gradients always have the layout of their leaves. Also a context manager."""

    def __init__(self, enable=True):
        super().__init__(enable)


__all__ = [
    "_set_grad_enabled",
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]
