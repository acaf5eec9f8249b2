"""torch.distributed.device_mesh: the class of arrangements of processes, of which there is none."""

from .. import errors
from .tensor import DeviceMesh

__all__ = ["DeviceMesh", "init_device_mesh"]


def init_device_mesh(*args, **kwargs):
    """Raises: what one process sees are devices, which jax arranges."""
    raise errors.unsupported("an arrangement of processes", instead="jax.make_mesh over the devices of one process")
