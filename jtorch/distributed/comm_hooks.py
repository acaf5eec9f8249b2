"""torch.distributed.algorithms.ddp_comm_hooks.default_hooks: how DistributedDataParallel's gradients become their mean.

Source: https://docs.pytorch.org/docs/stable/ddp_comm_hooks.html
"""

from .. import functions as torch
from .collectives import all_reduce
from .world import group_of

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def allreduce_hook(process_group, bucket):
    """The mean, as without a hook."""
    group = group_of(process_group)
    flat = bucket.buffer().div_(group.size())
    return all_reduce(flat, group=group, async_op=True).get_future().then(lambda done: done.value()[0])


def fp16_compress_hook(process_group, bucket):
    """The mean of gradients in float16, half of the bytes."""
    return _compressed(torch.float16, process_group, bucket)


def bf16_compress_hook(process_group, bucket):
    """The mean of gradients in bfloat16, half of the bytes."""
    return _compressed(torch.bfloat16, process_group, bucket)


def _compressed(dtype, process_group, bucket):
    group = group_of(process_group)
    small = bucket.buffer().to(dtype).div_(group.size())
    done = all_reduce(small, group=group, async_op=True).get_future()
    return done.then(lambda done: bucket.buffer().copy_(done.value()[0]))


def fp16_compress_wrapper(hook):
    """The hook on gradients in float16."""

    def fp16_compress_wrapper_hook(state, bucket):
        return _wrapped(torch.float16, hook, state, bucket)

    return fp16_compress_wrapper_hook


def bf16_compress_wrapper(hook):
    """The hook on gradients in bfloat16."""

    def bf16_compress_wrapper_hook(state, bucket):
        return _wrapped(torch.bfloat16, hook, state, bucket)

    return bf16_compress_wrapper_hook


def _wrapped(dtype, hook, state, bucket):
    whole = bucket.buffer()
    bucket.set_buffer(whole.to(dtype))

    def widened(done):
        value = done.value()
        return whole.copy_(value[0] if isinstance(value, (list, tuple)) else value)

    return hook(state, bucket).then(widened)
