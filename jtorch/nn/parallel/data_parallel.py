"""DataParallel: one process, all local devices, each with a slice of the batch.

The module is called once, on tensors whose memory lies in slices on the devices; XLA splits the computation and adds the
gradients up. So there are no replicas: hooks run once, and batch norm sees the whole batch (as SyncBatchNorm does).
"""

import functools

import jax
import numpy as np

from jtorch.autograd.function import Function
from jtorch.core.by_numpy import NEVER
from jtorch.core.device import Device, accelerator
from jtorch.core.program import Plan
from jtorch.core.record import tls
from jtorch.core.spec import Spec
from jtorch.nn.modules.module import Module
from jtorch.tensor import Tensor, value_of, wrap

__all__ = ["DataParallel", "data_parallel"]


@functools.cache
def _mesh(devices):
    return jax.sharding.Mesh(np.array(devices), ("batch",))


@functools.cache
def _plan(spec, dim, devices):
    """Lay a tensor in slices over devices; whole on each of them where its size does not divide."""
    even = dim is not None and spec.shape[dim] % len(devices) == 0
    axes = [None] * len(spec.shape)
    if even:
        axes[dim] = "batch"
    place = jax.sharding.NamedSharding(_mesh(devices), jax.sharding.PartitionSpec(*axes))

    def scatter(array):
        return jax.lax.with_sharding_constraint(array, place)

    plan = Plan(None, "scatter", scatter, (spec,), specs=(spec,))
    plan.steps = NEVER
    return plan


def _spread(tensor, dim, devices):
    spec = Spec.dense(tuple(tensor._spec.shape), tensor._spec.dtype, tensor._spec.device)
    plan = _plan(spec, dim, devices)
    me = tls.me
    graph = me.graph if me.graph.device is plan.device else me.graph_on(plan.device)
    return wrap(graph.rec1(plan, value_of(tensor)), spec)


class _Scatter(Function):
    """The same tensor, its memory spread over devices."""

    @staticmethod
    def forward(ctx, tensor, dim, devices):
        return _spread(tensor, dim, devices)

    @staticmethod
    def backward(ctx, grad):
        return grad, None, None


def _local(device_ids):
    """The jax devices of `device_ids` (numbers or devices); all local ones by default."""
    local = jax.local_devices()
    if device_ids is None or len(local) == 1 and accelerator() is None:  # there PyTorch asks for no device either
        return tuple(local)
    found = []
    for d in device_ids:
        index = d if isinstance(d, int) else (Device(d).index or 0)
        if not 0 <= index < len(local):
            raise RuntimeError(f"Invalid device id {index}: there are {len(local)} local devices")
        found.append(local[index])
    return tuple(found)


def _call(module, inputs, kwargs, devices, dim):
    if len(devices) < 2:
        return module(*inputs, **kwargs)

    def scatter(x):
        if isinstance(x, Tensor):
            return _Scatter.apply(x, dim if -x.ndim <= dim < x.ndim else None, devices)
        if isinstance(x, dict):
            return {k: scatter(v) for k, v in x.items()}
        if isinstance(x, (list, tuple)):
            moved = map(scatter, x)
            return type(x)(*moved) if hasattr(x, "_fields") else type(x)(moved)
        return x

    return module(*scatter(tuple(inputs)), **scatter(kwargs))


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """Call `module` on `inputs` (a tensor or a tuple), their dimension `dim` split over the devices.

    The result is one tensor, wherever its slices lie: `output_device` has nothing to gather.
    """
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return _call(module, inputs, module_kwargs or {}, _local(device_ids), dim)


class DataParallel(Module):
    """Runs `module` with its batch split over all local devices; with one device it is a plain call.

    Args:
        module: the module, also found as `.module`
        device_ids: numbers of the local devices, or devices. Default: all
        output_device: taken and not needed: a result is one tensor, wherever its slices lie
        dim: the dimension of the inputs that is split; where it does not divide, every device gets the whole

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module = module
        self.dim = dim
        self._devices = _local(device_ids)
        self.device_ids = [] if len(self._devices) < 2 else [d.id for d in self._devices]
        self.output_device = self.device_ids[0] if output_device is None and self.device_ids else output_device

    def forward(self, *inputs, **kwargs):
        return _call(self.module, inputs, kwargs, self._devices, self.dim)
