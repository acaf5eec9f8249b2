"""Batch normalisation over the batches of all processes."""

import sys

from jtorch import functions as torch
from jtorch.autograd.mode import no_grad


def group_of_several(group):
    """The group of processes to normalise over; None where there is one process."""
    world = sys.modules.get("jtorch.distributed.world")  # without an import no group was made
    if world is None or not world.is_initialized():
        return None
    group = world.group_of(group)
    return group if group.size() > 1 else None


def batch_norm(input, running_mean, running_var, weight, bias, factor, eps, group):
    """As F.batch_norm in training, with mean and variance over the batches of all processes, which may differ in size."""
    from jtorch.distributed import nn  # noqa: PLC0415  where there are several processes alone

    dims = [d for d in range(input.dim()) if d != 1]
    shape = [-1 if d == 1 else 1 for d in range(input.dim())]
    exact = input.float() if input.dtype.itemsize < 4 else input
    own = torch.stack([exact.mean(dims), exact.var(dims, correction=0)])
    count = own.new_full((1,), input.numel() // input.shape[1])
    found = torch.stack(nn.all_gather(torch.cat([own.reshape(-1), count]), group))
    counts, (means, variances) = found[:, -1:], found[:, :-1].unflatten(1, (2, -1)).unbind(1)
    total = counts.sum()
    mean = (counts * means).sum(0) / total
    variance = (counts * (variances + (means - mean) ** 2)).sum(0) / total
    if running_mean is not None:
        with no_grad():
            running_mean.lerp_(mean.detach().to(running_mean.dtype), factor)
            running_var.lerp_((variance.detach() * (total / (total - 1))).to(running_var.dtype), factor)
    made = (exact - mean.view(shape)) * torch.rsqrt(variance + eps).view(shape)
    if weight is not None:
        made = made * weight.view(shape)
    if bias is not None:
        made = made + bias.view(shape)
    return made.to(input.dtype)
