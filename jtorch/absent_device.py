"""The functions of a device kind that jax has under another name here: torch.mps, torch.mtia and torch.xpu are made of them."""

__all__ = [
    "device_count", "empty_cache", "is_available", "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all",
]  # fmt: skip


def is_available() -> bool:
    """False: jax's accelerators are `cuda` and `tpu` here."""
    return False


is_initialized = is_bf16_supported = is_available


def device_count() -> int:
    """0."""
    return 0


def manual_seed(seed) -> None:
    """Accepted: there is no such device."""


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Accepted: there is no such device."""
