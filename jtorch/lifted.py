"""What control flow's results depend on: PyTorch's operators for it have one gradient for all that goes into them.

A tensor that only the other branch of `cond` reads, or that no turn of a loop does, has a gradient of zeros there, not none: weight
decay and momentum go on for it.
"""

import contextlib

from .autograd.function import Function
from .autograd.mode import is_grad_enabled
from .core.lanes import is_traced
from .overrides import TorchFunctionMode
from .random import fork_rng
from .tensor import Tensor
from .utils._pytree import tree_map

__all__ = ["read_by", "tied"]


class _Reading(TorchFunctionMode):
    """Calls see tensors without memory in place of those that exist; which those were is noted."""

    def __init__(self):
        super().__init__()
        self.stand_ins = {}  # id of a tensor -> what stands for it
        self.originals = {}  # id of what stands for a tensor -> both, so that they keep their ids
        self.read = {}

    def stand_in(self, x):
        if not isinstance(x, Tensor) or x.device.type == "meta":
            return x
        if id(x) not in self.stand_ins:
            made = self.stand_ins[id(x)] = x.detach().to("meta")
            self.originals[id(made)] = x, made
        return self.stand_ins[id(x)]

    def note(self, x):
        x = self.stand_in(x)
        if id(x) in self.originals:
            self.read[id(x)] = self.originals[id(x)][0]
        return x

    def __torch_function__(self, func, types, args=(), kwargs=None):
        args, kwargs = tree_map(self.note, (tuple(args), kwargs or {}))
        return func(*args, **kwargs)


def read_by(fn, args) -> list:
    """The tensors with a gradient that fn(*args) reads, arguments and others. Nothing is computed, written or drawn.

    Where fn does what takes values, what it reads up to there.
    """
    reading = _Reading()
    args = tree_map(reading.stand_in, tuple(args))
    with fork_rng(), reading, contextlib.suppress(Exception):  # the branch that is not taken may ask for anything
        fn(*args)
    return [x for x in reading.read.values() if x.requires_grad]


class _Tied(Function):
    """The first tensors as they are; the gradients of the others are zeros."""

    @staticmethod
    def forward(ctx, n, *tensors):
        ctx.others = [(x.shape, x.dtype, x.device) for x in tensors[n:]]
        return tensors[:n]

    @staticmethod
    def backward(ctx, *grads):
        made = [grads[0].new_zeros(shape, dtype=dtype, device=device) for shape, dtype, device in ctx.others]
        return None, *grads, *made


def tied(leaves, operands) -> list:
    """The results of control flow, of which those with a floating-point dtype depend on all operands that have a gradient."""
    others = [x for x in operands if isinstance(x, Tensor) and x.requires_grad]
    slots = [k for k, x in enumerate(leaves) if isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex())]
    if not (others and slots and is_grad_enabled()):
        return leaves
    if any(is_traced(x._storage.value) for x in [*others, *(leaves[k] for k in slots)]):
        return leaves  # a transformation's gradients are zeros anyhow
    results = list(leaves)
    for k, x in zip(slots, _Tied.apply(len(slots), *(leaves[k] for k in slots), *others)):
        results[k] = x
    return results
