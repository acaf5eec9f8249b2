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


__all__ = ["_set_grad_enabled", "enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
