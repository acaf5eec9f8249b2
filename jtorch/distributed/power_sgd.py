"""torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook: gradients as products of two narrow matrices, which is not there."""

from .. import errors

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """Raises NotImplementedError when made."""

    def __init__(self, *args, **kwargs):
        raise errors.unsupported("PowerSGD's gradients", instead="default_hooks.bf16_compress_hook, half of the bytes")


def powerSGD_hook(state, bucket):
    """Raises NotImplementedError: its state cannot be made."""
    return PowerSGDState()


batched_powerSGD_hook = powerSGD_hook
