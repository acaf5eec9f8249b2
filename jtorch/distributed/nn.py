"""torch.distributed.nn: differentiable collectives, of which there are none in one process."""

from .. import errors

__all__ = ["all_gather", "all_reduce", "all_to_all", "broadcast", "gather", "reduce", "reduce_scatter", "scatter"]


def _refusing(name):
    def refuse(*args, **kwargs):
        raise errors.unsupported(f"torch.distributed.nn.{name}", instead="one process, which sees all devices")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raises: there is no process group."
    refuse.__unsupported__ = True
    return refuse


all_gather, all_reduce, all_to_all, broadcast, gather, reduce, reduce_scatter, scatter = map(_refusing, __all__)
