"""Random numbers whose distribution is given by tensors, as PyTorch's CPU generator gives them: drawn on the host, one after the other.

Where there are more than `MANY`, where they are for an accelerator, where the values of the tensors are not known (inside jax's transformations) or
where a program is being compiled that shall be replayed without Python, the ops of `ops/draws.py` and `ops/activation.py` draw on the device instead: of the
same distribution, other numbers. Poisson counts then come from numpy.
"""

import math

import numpy as np

from . import errors, traced_draws
from .core import rejection, shapes
from .core import storage as storages
from .core.lanes import is_traced
from .core.record import tls
from .creation import finish, from_array
from .limits import finfo
from .ops import draws
from .random_tensors import _undrawn, generator_of, on_tape
from .tensor import Tensor

# So many numbers at most are drawn one by one, in less than half a second.
MANY = 1 << 16


def on_host(*tensors) -> bool:
    """Whether numbers for these tensors are drawn on the host."""
    me = tls.me
    if me.scope is not None or me.extra.get("transforms") or me.extra.get("vmap_random") is not None:
        return False
    return all(
        t._spec.device.type == "cpu" and not is_traced(t._storage.value) for t in tensors
    )  # fmt: skip


def _one_by_one(*tensors) -> bool:
    return on_host(*tensors) and math.prod(shapes.broadcast(*(tuple(t.shape) for t in tensors))) <= MANY


def values(t) -> np.ndarray:
    """The values of a tensor; those of the two short types as float32."""
    found = storages.numpy_of(t._storage, t._spec, t._offset)
    return found if found.dtype in (np.float32, np.float64) else found.astype(np.float32)


def _made(array, like):
    array = np.asarray(array).reshape(tuple(like._spec.shape))
    return from_array(array.astype(like.dtype.np), like.device, like.dtype)


def poisson(input, generator=None) -> Tensor:
    """Poisson counts with these rates."""
    if not input.dtype.is_floating_point:
        raise errors.not_implemented("poisson_cpu", input.dtype)
    if input._spec.device.type == "meta":
        return _undrawn(input._spec.shape, input.dtype, input._spec.device)
    rates = values(input)
    if not (rates >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    gen = generator_of(generator)
    many = rates.size > MANY or input.device.type != "cpu"

    def drawn(shape):
        means = np.broadcast_to(rates, shape)
        if many:
            counts = np.random.Generator(np.random.PCG64(int(gen.words64(1)[0]))).poisson(means)
        else:
            counts = rejection.poisson(gen, means)
        return np.asarray(counts).reshape(shape).astype(input.dtype.np)

    counts = traced_draws.of_host(traced_draws.host(drawn, tuple(input._spec.shape)), input.device, input.dtype)
    return on_tape(counts, "PoissonBackward0", input)


def binomial(count, prob, generator=None, *, out=None) -> Tensor:
    """How often an event of probability `prob` happens in `count` trials."""
    same = isinstance(count, Tensor) and isinstance(prob, Tensor) and count.dtype is prob.dtype
    if not same or not count.dtype.is_floating_point or not _one_by_one(count, prob):
        return draws.binomial(count, prob, generator, **({} if out is None else {"out": out}))
    shape = shapes.broadcast(tuple(count.shape), tuple(prob.shape))
    n, p = (np.broadcast_to(values(t), shape) for t in (count, prob))
    drawn = rejection.binomial(generator_of(generator), n, p).reshape(shape)
    drawn = finish(from_array(drawn.astype(count.dtype.np), count.device, count.dtype), False, out)
    return drawn if out is not None else on_tape(drawn, "binomial", count, prob)


def _standard_gamma(input, generator=None) -> Tensor:
    """Draws of gamma distributions with concentrations `input` and rate 1."""
    if not input.dtype.is_floating_point or not _one_by_one(input):
        return draws._standard_gamma(input, generator)
    alpha = values(input)
    with np.errstate(under="ignore"):
        drawn = rejection.gamma(generator_of(generator), alpha).astype(alpha.dtype)
    drawn = _made(np.maximum(drawn, finfo(input.dtype).tiny), input)
    return draws.drawn_gamma(input, drawn) if tls.me.grad and input.requires_grad else drawn


def _sample_dirichlet(input, generator=None) -> Tensor:
    """Draws of Dirichlet distributions with concentrations `input` in the last dimension."""
    if not input.dtype.is_floating_point or not input.dim() or not _one_by_one(input):
        return draws._sample_dirichlet(input, generator)
    drawn = _made(rejection.dirichlet(generator_of(generator), values(input)), input)
    return draws.drawn_dirichlet(input, drawn) if tls.me.grad and input.requires_grad else drawn
