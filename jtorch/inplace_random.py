"""Random numbers into tensors that exist: uniform_, normal_ and so on."""

import math

import jax.numpy as jnp

from . import errors, errors_arguments, traced_draws
from .convert import as_numpy
from .core import draw, shapes
from .core import dtype as dtypes
from .dispatch.statics import real_of
from .filling import fill_random, memory_order
from .random_tensors import bernoulli, draw_normal, draw_uniform, generator_of
from .reshaping import view_named
from .tensor import Tensor


def _largest(d) -> float:
    """The largest number of a float dtype; inf of others, which have no uniform numbers."""
    return float(jnp.finfo(d.np).max) if d.is_floating_point else math.inf


def uniform_(self, from_=0, to=1, *, generator=None, **named) -> Tensor:
    """Uniform numbers from [from, to)."""
    low = real_of("uniform_", "from", named.pop("from", from_), 1)
    if named:
        raise errors_arguments.no_such_name("uniform_", next(iter(named)), (), named, ("from", "to", "generator"))
    to = real_of("uniform_", "to", to, 2)
    largest = _largest(self._spec.dtype)
    for name, bound in (("from", low), ("to", to)):
        if not abs(bound) <= largest:
            raise RuntimeError(f"{name} is out of bounds for {errors.c_type(self._spec.dtype)}")
    if low > to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={to}")
    if to - low > largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<Float>::max(), but found to={to:g} and from={low:g} which result in "
            "to-from to exceed the limit"
        )
    g = generator_of(generator, self._spec.device)
    return fill_random(self, lambda s: draw_uniform(g, s, self._spec.dtype, float(low), float(to)), "UniformBackward0")


def normal_(self, mean=0, std=1, *, generator=None) -> Tensor:
    """Normal numbers."""
    mean, std = real_of("normal_", "mean", mean, 1), real_of("normal_", "std", std, 2)
    if not std >= 0:
        raise errors.negative_std(std)
    g, spec = generator_of(generator, self._spec.device), self._spec
    apart = not shapes.is_contiguous(tuple(spec.shape), spec.strides)
    return fill_random(self, lambda s: draw_normal(g, s, spec.dtype, float(mean), float(std), apart), "NormalBackward0")


def bernoulli_(self, p=0.5, *, generator=None) -> Tensor:
    """0 or 1, each 1 with probability `p` (a number or a tensor)."""
    if self._spec.dtype.is_complex:
        raise errors.not_implemented("bernoulli_scalar_cpu_", self._spec.dtype)
    if isinstance(p, Tensor) and not p.is_floating_point():
        raise errors.not_implemented("bernoulli_tensor_cpu_p_", p.dtype)
    g = generator_of(generator, self._spec.device)
    if not isinstance(p, Tensor) and not 0 <= p <= 1:
        raise errors_arguments.chance(p)
    if isinstance(p, Tensor) and traced_draws.traced(p) is not None:
        return self.copy_(bernoulli(p.expand(tuple(self._spec.shape)), generator=generator))
    prob = float(p) if not isinstance(p, Tensor) else as_numpy(view_named("expand", p, tuple(self._spec.shape)))
    if isinstance(p, Tensor) and not ((prob >= 0) & (prob <= 1)).all():
        raise errors.probability()
    if isinstance(p, Tensor):
        prob = prob.transpose(memory_order(self._spec.strides))
    return fill_random(
        self,
        lambda s: draw.bernoulli(g, prob, s, self._spec.dtype.np),
        "BernoulliBackward1" if isinstance(p, Tensor) else "BernoulliBackward2",
    )


def random_(self, *args, generator=None, **named) -> Tensor:
    """Integers: over the dtype's range, [0, to), or [from, to)."""
    if len(args) > 2 or args[:1] == (None,) or any(isinstance(x, float) for x in (*args, *named.values())):
        raise errors.combination("random_", [*args, *named.values()], "(int from, int to) or (int to)")
    if self._spec.dtype.is_complex:
        if args or named:
            raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
        raise errors.not_implemented("random_kernel_cpu", self._spec.dtype)
    g = generator_of(generator, self._spec.device)
    d = self._spec.dtype.np
    low = named.get("from")
    high = named.get("to")
    if len(args) == 2:
        low, high = args
    elif len(args) == 1:
        high = args[0]
    if high is None and low is None:
        return fill_random(self, lambda s: draw.random(g, s, d), "RandomBackward2")
    if high is None and low == -(2**63):
        _check_all_bits(self._spec.dtype)
        return fill_random(self, lambda s: draw.all_bits(g, s, d), "RandomBackward0")
    if high is None:
        low, high = draw.bounds_from(int(low), self._spec.dtype)
        return fill_random(self, lambda s: draw.randint(g, low, high, s, d), "RandomBackward0")
    low, high = draw.int_bounds(0 if low is None else int(low), int(high), self._spec.dtype)
    return fill_random(
        self, lambda s: draw.randint(g, low, high, s, d), "RandomBackward1" if len(args) == 1 else "RandomBackward0"
    )


def _check_all_bits(d):
    kernel = "random_full_64_bits_range_kernel_cpu"
    if d in (dtypes.bool_, dtypes.float16):
        raise errors.not_implemented(kernel, d)
    if d is not dtypes.int64 and not d.is_floating_point:
        raise RuntimeError(f"{kernel} handles only int64, double, float and bfloat16")


def exponential_(self, lambd=1, *, generator=None) -> Tensor:
    """Exponential numbers with rate `lambd`."""
    if not self._spec.dtype.is_floating_point:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {dtypes.scalar_name(self._spec.dtype)}"
        )
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    g = generator_of(generator, self._spec.device)
    return fill_random(
        self, lambda s: draw.exponential(g, s, self._spec.dtype.np, float(lambd)), "ExponentialBackward0"
    )


def cauchy_(self, median=0, sigma=1, *, generator=None) -> Tensor:
    """Cauchy numbers."""
    median, sigma = real_of("cauchy_", "median", median, 1), real_of("cauchy_", "sigma", sigma, 2)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    if not self._spec.dtype.is_floating_point:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you specified "
            f"{errors.c_type(self._spec.dtype)}"
        )
    g = generator_of(generator, self._spec.device)
    return fill_random(
        self, lambda s: draw.cauchy(g, s, self._spec.dtype.np, float(median), float(sigma)), "CauchyBackward0"
    )


def log_normal_(self, mean=1, std=2, *, generator=None) -> Tensor:
    """Exponentials of normal numbers."""
    mean, std = real_of("log_normal_", "mean", mean, 1), real_of("log_normal_", "std", std, 2)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    if not self._spec.dtype.is_floating_point:
        raise errors.not_implemented("log_normal_cpu", self._spec.dtype)
    g = generator_of(generator, self._spec.device)
    return fill_random(
        self, lambda s: draw.log_normal(g, s, self._spec.dtype.np, float(mean), float(std)), "LogNormalBackward0"
    )


def geometric_(self, p, *, generator=None) -> Tensor:
    """The number of trials up to the first success of probability `p`."""
    p = real_of("geometric_", "p", p, 1)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if self._spec.dtype.category in (dtypes.BOOL, dtypes.COMPLEX):
        raise errors.not_implemented("geometric_cpu", self._spec.dtype)
    g = generator_of(generator, self._spec.device)
    return fill_random(self, lambda s: draw.geometric(g, float(p), s, self._spec.dtype.np), "GeometricBackward0")
