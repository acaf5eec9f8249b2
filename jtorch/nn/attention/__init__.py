"""torch.nn.attention: which kernel attention uses. XLA has one lowering, so the choice is accepted."""

import contextlib
import enum

from ...backends import allowing, attention_kernels

__all__ = [
    "SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "activate_flash_attention_impl", "current_flash_attention_impl", "list_flash_attention_impls",
    "register_flash_attention_impl", "restore_flash_attention_impl", "sdpa_kernel",
]  # fmt: skip

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """PyTorch's names of the kernels."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self):
        return f"<SDPBackend.{self.name}: {self.value}>"


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Context: attention uses one of these kernels. Checked and accepted; the result does not depend on it.

    Raises AssertionError for what is neither an SDPBackend nor a list of them.
    """
    assert isinstance(backends, (list, SDPBackend)), (
        f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends).__name__}"
    )
    asked = backends if isinstance(backends, list) else [backends]
    with allowing(**{name: kernel in asked for kernel, name in _SETTINGS.items()}) as made:
        yield made


_SETTINGS = {
    SDPBackend.FLASH_ATTENTION: "flash",
    SDPBackend.EFFICIENT_ATTENTION: "mem_efficient",
    SDPBackend.MATH: "math",
    SDPBackend.CUDNN_ATTENTION: "cudnn",
}


def _cur_sdpa_kernel_backends(with_priority=False):
    return [*(kernel for kernel, name in _SETTINGS.items() if attention_kernels[name]), SDPBackend.OVERRIDEABLE]


_implementations: dict = {}
_active: list = []


def register_flash_attention_impl(impl, *, register_fn) -> None:
    """Remember how to switch a kernel on."""
    _implementations[impl] = register_fn


def activate_flash_attention_impl(impl) -> None:
    """Raises ValueError unless the kernel was registered."""
    if impl not in _implementations:
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. Available implementations: {list_flash_attention_impls()}"
        )
    _implementations[impl]()
    _active[:] = [impl]


def restore_flash_attention_impl() -> None:
    """Back to the default."""
    _active.clear()


def current_flash_attention_impl():
    """The kernel that was switched on, or None."""
    return _active[0] if _active else None


def list_flash_attention_impls() -> list:
    """The registered kernels."""
    return sorted(_implementations)
