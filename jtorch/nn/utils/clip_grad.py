"""Clipping of gradients, in place."""

import functools
import math
import types
import warnings

from jtorch import functions as torch
from jtorch.autograd.mode import no_grad
from jtorch.tensor import Tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _gradients(parameters):
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    elif isinstance(parameters, types.GeneratorType):
        parameters = list(parameters)
        if not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3)
    return [p.grad for p in parameters if p.grad is not None]


@no_grad()
def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of the norms of all tensors, as if they were one vector."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return torch.tensor(0.0)
    device = tensors[0].device
    vector_norm = torch.lookup("linalg", "vector_norm")
    norms = [vector_norm(t, norm_type) for t in tensors]
    total = vector_norm(torch.stack([n.to(device) for n in norms]), norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from "
            "`parameters` is non-finite, so it cannot be clipped. To disable "
            "this error and scale the gradients by the non-finite norm anyway, "
            "set `error_if_nonfinite=False`"
        )
    return total


@no_grad()
def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scale all gradients by max_norm / total_norm if that is below one."""
    gradients = _gradients(parameters)
    if not gradients:
        return
    factor = torch.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
    for g in gradients:
        g.mul_(factor.to(g.device))


@no_grad()
def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scale all gradients so that their total norm is at most `max_norm`; returns the norm before.

    Args:
        parameters: whose gradients are clipped
        max_norm: the bound
        norm_type: p of the norm. Default: 2
        error_if_nonfinite: raise if the norm is nan or infinite
    """
    if isinstance(parameters, types.GeneratorType):
        parameters = list(parameters)
        if not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3)
    elif not isinstance(parameters, Tensor):
        parameters = list(parameters)
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


@functools.wraps(clip_grad_norm_, assigned=())
def clip_grad_norm(*args, **kwargs):
    """Deprecated: use clip_grad_norm_."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*args, **kwargs)


@no_grad()
def clip_grad_value_(parameters, clip_value, foreach=None):
    """Clamp all gradients to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    for g in _gradients(parameters):
        g.clamp_(min=-clip_value, max=clip_value)
