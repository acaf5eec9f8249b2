"""torch.utils.backend_registration: a device of the program's own. JAX's plugins bring devices here."""

from .. import errors

__all__ = ["generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"]


def rename_privateuse1_backend(backend_name: str) -> None:
    """Raises NotImplementedError: PyTorch's backends are C++."""
    raise errors.unsupported(f"the backend {backend_name}", "a plugin of JAX for the device")


def generate_methods_for_privateuse1_backend(**kinds) -> None:
    """Raises NotImplementedError: PyTorch's backends are C++."""
    raise errors.unsupported("methods for a backend of PyTorch's", "a plugin of JAX for the device")
