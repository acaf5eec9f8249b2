"""torch.nn.parallel's parts: scatter, replicate, parallel_apply and gather, one after the other in one process."""

from jtorch import functions as torch
from jtorch.core.device import Device, resolve
from jtorch.tensor import Tensor

__all__ = ["gather", "parallel_apply", "replicate", "scatter", "scatter_kwargs"]


def _place(device):
    return resolve(f"cuda:{device}" if isinstance(device, int) else device)


def _named(x):
    return isinstance(x, tuple) and hasattr(x, "_fields")


def scatter(inputs, target_gpus, dim=0):
    """A list with a slice of every tensor for each device; containers are entered, other objects are repeated."""
    n = len(target_gpus)
    if isinstance(inputs, Tensor):
        return [part.to(_place(d)) for part, d in zip(inputs.chunk(n, dim), target_gpus)]
    if isinstance(inputs, (tuple, list, dict)) and len(inputs):
        pairs = isinstance(inputs, dict)
        parts = zip(*(scatter(x, target_gpus, dim) for x in (inputs.items() if pairs else inputs)))
        if _named(inputs):
            return [type(inputs)(*p) for p in parts]
        return [list(p) if isinstance(inputs, list) else type(inputs)(p) if pairs else p for p in parts]
    return [inputs for _ in range(n)]


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """(arguments, keyword arguments) for each device; what is too short is filled with empty ones."""
    inputs = scatter(inputs, target_gpus, dim) if inputs else []
    kwargs = scatter(kwargs, target_gpus, dim) if kwargs else []
    n = max(len(inputs), len(kwargs))
    return tuple(inputs) + ((),) * (n - len(inputs)), tuple(kwargs) + ({},) * (n - len(kwargs))


def gather(outputs, target_device, dim=0):
    """One result from those of the devices: tensors are joined, numbers of dimension 0 become a vector."""
    first = outputs[0]
    if isinstance(first, Tensor):
        place = target_device if isinstance(target_device, Device) else _place(target_device)
        moved = [o.to(place) for o in outputs]
        return torch.cat([m.view(1) if m.dim() == 0 else m for m in moved], 0 if first.dim() == 0 else dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(first) != len(o) for o in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((k, gather([o[k] for o in outputs], target_device, dim)) for k in first)
    parts = [gather(list(p), target_device, dim) for p in zip(*outputs)]
    return type(first)(*parts) if _named(first) else type(first)(parts)


def replicate(network, devices, detach=False):
    """Copies of a module whose parameters are copies too, through which gradients reach the module's own."""
    return [_replica(network, _place(d), detach) for d in devices]


def _replica(network, place, detach):
    originals = list(network.modules())
    made = {id(m): object.__new__(type(m)) for m in originals}
    moved: dict[int, Tensor] = {}  # a tied parameter stays tied
    for m in originals:
        new = made[id(m)]
        new.__dict__ = dict(m.__dict__)
        new.__dict__["_modules"] = {n: None if c is None else made[id(c)] for n, c in m._modules.items()}
        new.__dict__["_buffers"] = {n: None if b is None else b.detach().to(place) for n, b in m._buffers.items()}
        new.__dict__["_parameters"] = {n: None for n, p in m._parameters.items() if p is None}
        for name, p in m._parameters.items():
            if p is not None:
                if id(p) not in moved:
                    moved[id(p)] = (p.detach() if detach else p).to(place, copy=True)
                new.__dict__[name] = moved[id(p)]
    return made[id(network)]


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """The result of each module for its own arguments; XLA computes those of different devices at the same time."""
    kwargs = kwargs_tup if kwargs_tup is not None else ({},) * len(modules)
    if not len(modules) == len(inputs) == len(kwargs):
        raise AssertionError(f"{len(modules)} modules, {len(inputs)} inputs and {len(kwargs)} keyword arguments")
    results = []
    for module, given, named in zip(modules, inputs, kwargs):
        results.append(module(*(given if isinstance(given, (list, tuple)) else (given,)), **named))
    return results
