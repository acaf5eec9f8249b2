"""Numbers drawn on the host written into a tensor, in the order of its memory."""

import jax
import numpy as np

from . import errors, traced_draws
from .core import dtype as dtypes
from .core import storage as storages
from .core.record import tls
from .core.spec import Spec
from .dispatch import check_inplace, overlaps, overwritten, write_on_tape, zeros_value


def memory_order(strides) -> list[int]:
    """The dimensions in the order in which PyTorch fills a tensor of these strides: as its elements lie in memory."""
    return sorted(range(len(strides)), key=lambda i: -strides[i])


def turned(out, shape):
    """The order of the dimensions in which an `out=` of this shape is drawn, as its elements lie; None for the usual one."""
    if out is None or tuple(out.shape) != tuple(shape) or out.is_contiguous():
        return None
    return memory_order(out.stride())


def fill_random(t, drawn, name):
    """Fill a tensor in place with numbers drawn on the host, in the order of memory.

    name: of the tape's node; none for a write that is no draw, in which elements that share memory may be written twice

    drawn: called with the sizes in that order
    """
    if tls.me.grad:
        check_inplace(t)
    spec = t._spec
    if name and overlaps(spec):
        raise errors.overlap()
    if spec.device.type == "meta":
        drawn((0,))  # raises for a dtype that it is not for; numbers there are none
        value = zeros_value(Spec.dense(spec.shape, spec.dtype, spec.device))
    else:
        order = memory_order(spec.strides)
        array = traced_draws.host(drawn, tuple(spec.shape[i] for i in order))
        if order != sorted(order):
            array = array.transpose(np.argsort(order))
        value = (
            array.astype(spec.dtype.np)
            if isinstance(array, jax.Array)
            else storages.to_device(np.array(dtypes.held(array, spec.dtype), order="C"), spec.device)
        )
    write_on_tape(t, value, overwritten(t, name))
    return t
