"""Tensors of random numbers drawn on the host, and the generator they come from."""

import math
import operator
from functools import partial

import numpy as np

from . import errors, errors_arguments, traced_draws
from .autograd.derive import differentiable
from .autograd.mode import no_grad
from .autograd.node import PythonNode, class_of
from .core import device as devices
from .core import draw, rng, shapes
from .core import dtype as dtypes
from .core import storage as storages
from .core.lanes import is_traced
from .core.record import tls
from .core.spec import Spec
from .creation import (
    check_out,
    dtype_or_default,
    finish,
    from_array,
    from_jax,
    nonnegative,
    number_of,
    size_of,
    strides_like,
)  # fmt: skip
from .dispatch import overlaps, zeros_value
from .dispatch.statics import real_of, whole_of
from .filling import fill_random, memory_order, turned
from .tensor import Tensor, edge_of, value_of, wrap

Generator = rng.Generator
default_generator = rng.default_generator


def _get_state(self) -> Tensor:
    """The state as a ByteTensor, in PyTorch's layout."""
    return from_array(self.state_bytes(), devices.cpu)


Generator.get_state = _get_state


def generator_of(generator, place=devices.meta):
    """The generator that a call draws from for tensors on a device. Raises TypeError for what is no generator."""
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        raise TypeError(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    if generator.device.type != place.type and place is not devices.meta:
        raise RuntimeError(
            f"Expected a '{place.type}' device type for generator but found '{generator.device.type}'\n"
            f"  make it with torch.Generator(device='{place.type}')"
        )
    return generator


def manual_seed(seed) -> Generator:
    """Seed the default generator (and so every device)."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seed the default generator from the system's entropy; returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator started from."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state as a ByteTensor."""
    return default_generator.get_state()


def set_rng_state(new_state) -> None:
    """Set the default generator's state."""
    default_generator.set_state(new_state)


def _random(name, args, size, generator, out, dtype, device, requires_grad, drawn, default=None):
    if not args and size is None:
        raise errors.combination(name, [], "(tuple of ints size)")
    shape = nonnegative(size_of(args if size is None else (size,), name), name)
    check_out(name, dtype, out)
    d = dtype_or_default(dtype if dtype is not None or out is None else out.dtype, default)
    place = devices.resolve(device)
    if place.type == "meta":
        return finish(_undrawn(shape, d, place, drawn), requires_grad, out)
    if out is not None and tuple(out.shape) == tuple(shape) and not out.is_contiguous():
        if name in ("randn", "normal"):
            drawn = partial(drawn, scattered=True)
        with no_grad():
            fill_random(out, lambda s: drawn(generator_of(generator, place), s, d), "NormalBackward0")
        return out
    made = traced_draws.made(lambda s: drawn(generator_of(generator, place), s, d), tuple(shape), place, d)
    return finish(made, requires_grad, out)


def _undrawn(shape, d, place, drawn=None, strides=None):
    """A tensor of device meta, which has no numbers: none are drawn, and the generator stays where it is."""
    if drawn is not None:
        drawn(default_generator, (0,), d)  # raises for a dtype that it is not for
    spec = Spec.dense(shape, d, place) if strides is None else Spec.of(shape, strides, d, place)
    return wrap(zeros_value(spec), spec)


def _needs_float(d, name):
    if not (d.is_floating_point or d.is_complex):
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtypes.scalar_name(d)}'")
    return d


def _needs_real(d, name, of_complex):
    if not d.is_floating_point:
        raise errors.not_implemented(of_complex if d.is_complex else name, d)


def _in_pairs(parts, d):
    """Complex numbers whose real and imaginary parts are next to each other."""
    return dtypes.values(parts.view(d.memory)[..., 0], d)


def draw_uniform(g, shape, d, low=0.0, high=1.0):
    if d.is_complex:
        return _in_pairs(draw.uniform(g, (*shape, 2), d.to_real().np, low, high), d)
    return draw.uniform(g, shape, _needs_float(d, "check_uniform_bounds").np, low, high)


def draw_normal(g, shape, d, mean=0.0, std=1.0, scattered=False):
    if d.is_complex:
        real = draw.normal(g, (*shape, 2), d.to_real().np, 0.0, std * math.sqrt(0.5), scattered)
        return dtypes.held(_in_pairs(real, d) + complex(mean, mean), d)  # PyTorch gives both parts the mean
    return draw.normal(g, shape, _needs_float(d, "normal_kernel_cpu").np, mean, std, scattered)


def rand(
    *args,
    size=None,
    generator=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    names=None,
):
    """Uniform numbers from [0, 1)."""
    return _random("rand", args, size, generator, out, dtype, device, requires_grad, draw_uniform)


def randn(
    *args,
    size=None,
    generator=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    names=None,
):
    """Normal numbers with mean 0 and variance 1."""
    return _random("randn", args, size, generator, out, dtype, device, requires_grad, draw_normal)


def randint(
    *args,
    low=None,
    high=None,
    size=None,
    generator=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
):
    """Integers from [low, high); low is 0 when not given."""
    args = list(args)
    if size is None:
        if not args:
            raise errors.combination("randint", [], "(int high, tuple of ints size)")
        size = args.pop()
    if len(args) == 2:
        low, high = args
    elif len(args) == 1:
        if high is None:
            high = args[0]
        else:
            low = args[0]
    check_out("randint", None, out)
    low, high = number_of(low, "randint", "low"), number_of(high, "randint", "high")
    if any(isinstance(x, (float, bool)) for x in (low, high)) or high is None or not isinstance(size, (tuple, list)):
        given = [*([] if low is None else [low]), *([] if high is None else [high]), size]
        raise errors.combination(
            "randint", given, "(int high, tuple of ints size) or (int low, int high, tuple of ints size)"
        )
    low, high = 0 if low is None else int(low), int(high)
    draw.int_bounds(low, high, dtype_or_default(dtype if dtype is not None or out is None else out.dtype, dtypes.int64))
    return _random(
        "randint",
        (),
        size,
        generator,
        out,
        dtype,
        device,
        requires_grad,
        lambda g, s, d: draw.randint(g, *draw.int_bounds(low, high, d), s, d.np),
        dtypes.int64,
    )


_COUNTED = {"float16": 2049, "float32": (1 << 24) + 1, "float64": (1 << 53) + 1}


def randperm(
    n, *, generator=None, out=None, dtype=dtypes.int64, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """A random permutation of 0 .. n-1."""
    if not hasattr(n, "__index__"):
        raise TypeError(f"randperm(): argument 'n' (position 1) must be int, not {type(n).__name__}")
    (n,) = nonnegative((operator.index(n),), "randperm")
    d = dtype_or_default(dtype, dtypes.int64, "randperm")
    if d.category in (dtypes.BOOL, dtypes.COMPLEX):
        raise errors.not_implemented("randperm", d)
    if d.category == dtypes.INT and n and not dtypes.fits(n - 1, d):
        raise errors.not_representable(d)
    place = devices.resolve(device)
    if place.type == "meta":
        return finish(_undrawn((n,), d, place), requires_grad, out)
    if n > _COUNTED.get(d.name, n):
        raise RuntimeError(f"n cannot be greater than {_COUNTED[d.name]} for {dtypes.scalar_name(d)} type.")

    def drawn(shape):
        gen = generator_of(generator, place)
        rows = [draw.randperm(gen, n, np.int64) for _ in range(math.prod(shape[:-1]))]
        return np.reshape(rows, shape).astype(d.np)

    return finish(traced_draws.made(drawn, (n,), place, d), requires_grad, out)


def rand_like(
    input,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    memory_format=None,
    generator=None,
    pin_memory=False,
):
    """Uniform numbers in the shape of `input`."""
    return _random_like(input, dtype, device, requires_grad, memory_format, generator, draw_uniform)


def randn_like(
    input,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    memory_format=None,
    generator=None,
    pin_memory=False,
):
    """Normal numbers in the shape of `input`."""
    return _random_like(input, dtype, device, requires_grad, memory_format, generator, draw_normal)


def randint_like(
    input,
    *args,
    low=None,
    high=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    memory_format=None,
    generator=None,
    pin_memory=False,
):
    """Integers from [low, high) in the shape of `input`."""
    given = [number_of(a, "randint", "high") for a in args]
    if len(given) == 2:
        low, high = given
    elif given:
        high = given[0]
    if any(isinstance(x, (float, bool)) for x in (low, high)) or high is None or len(given) > 2:
        raise errors.combination(
            "randint_like", [input, *args], "(Tensor input, int high) or (Tensor input, int low, int high)"
        )
    lo, hi = 0 if low is None else int(low), int(high)
    return _random_like(
        input,
        dtype,
        device,
        requires_grad,
        memory_format,
        generator,
        lambda g, s, d: draw.randint(g, *draw.int_bounds(lo, hi, d), s, d.np),
    )


def _random_like(input, dtype, device, requires_grad, memory_format, generator, drawn):
    spec = input._spec
    d = dtype_or_default(dtype, spec.dtype)
    place = spec.device if device is None else devices.resolve(device)
    shape = tuple(spec.shape)
    if tls.me.extra.get("vmap_random") is not None:
        return finish(
            traced_draws.made(lambda s: drawn(generator_of(generator, place), s, d), shape, place, d), requires_grad
        )
    strides = strides_like(spec, memory_format)
    if place.type == "meta":
        return finish(_undrawn(shape, d, place, drawn, strides), requires_grad)
    order = memory_order(strides)
    more = {"scattered": True} if drawn is draw_normal and not shapes.is_contiguous(shape, strides) else {}
    array = drawn(generator_of(generator, place), tuple(shape[i] for i in order), d, **more)
    if len(shape) > 1:
        array = np.ascontiguousarray(array.transpose(np.argsort(order)))
    t = from_array(array, place, d)
    if t._spec.strides != strides:
        spec = Spec.of(shape, strides, d, place)
        t = wrap(storages.read(t._storage, t._spec, 0), spec)
    return finish(t, requires_grad)


class _Draw(PythonNode):
    """A draw, whose parameters have gradients of zeros, or, where the label is the name of a function, none."""

    __slots__ = ("given",)

    def name(self):
        return "torch::autograd::NotImplemented" if self.label.islower() else self.label

    def apply(self, grad):
        if self.label.islower():
            raise RuntimeError(f"derivative for aten::{self.label} is not implemented")
        return tuple(wrap(zeros_value(s), s) for s in self.given)


def on_tape(t, name, *parameters):
    """A draw with its place on the tape: PyTorch differentiates draws, to zeros, or refuses where `name` is that of the function."""
    edges = tuple(edge_of(p) if differentiable(p._spec) else None for p in parameters)
    if tls.me.grad and differentiable(t._spec) and any(e is not None for e in edges):
        node = class_of(name, _Draw)(name, edges, (t._spec,))
        node.given = [Spec.dense(tuple(p._spec.shape), p.dtype, p._spec.device) for p in parameters]
        t._edge = (node, 0)
    return t


def bernoulli(input, p=None, *, generator=None, out=None) -> Tensor:
    """0 or 1, each 1 with the probability that `input` gives (or `p`)."""
    spec = input._spec
    if p is not None and out is not None:
        raise errors.combination(
            "bernoulli", [input, p], "(Tensor input, *, Tensor out) or (Tensor input, float p)", {"out": out}
        )
    if p is None:
        _needs_real(spec.dtype, "bernoulli_tensor_cpu_p_", "bernoulli_tensor_cpu_self_")
    elif spec.dtype.is_complex:
        raise errors.not_implemented("bernoulli_scalar_cpu_", spec.dtype)
    elif not 0 <= real_of("bernoulli", "p", p, 2) <= 1:
        raise errors_arguments.chance(p)
    if spec.device.type == "meta":
        return finish(_undrawn(spec.shape, spec.dtype if out is None else out.dtype, spec.device), False, out)
    given = traced_draws.traced(input)
    if given is not None:
        chances = given if p is None else np.broadcast_to(p, given.shape)
        drawn = from_jax(traced_draws.bernoulli(chances, generator_of(generator)).astype(spec.dtype.np))
        return finish(drawn, False, out)
    probability = storages.numpy_of(input._storage, spec, input._offset) if p is None else p
    if p is None and probability.size and not ((probability >= 0) & (probability <= 1)).all():
        raise errors.probability()
    if p is None:
        probability = probability.astype(np.float64 if spec.dtype is dtypes.float64 else np.float32)
    order = turned(out, spec.shape)
    if order is not None:
        probability = probability.transpose(order)
    g = generator_of(generator, spec.device)
    lying = tuple(spec.shape) if order is None or p is not None else probability.shape
    array = traced_draws.host(lambda s: draw.bernoulli(g, probability, s, spec.dtype.np), lying)
    if order is not None:
        array = array.transpose(np.argsort(order))
    if out is not None and overlaps(out._spec):
        raise errors.overlap()
    kind = spec.dtype if out is None else out.dtype  # 0 and 1 fit any dtype
    result = finish(traced_draws.of_host(array, spec.device, kind), False, out)
    if out is not None:
        return result
    return on_tape(result, "BernoulliBackward0" if p is None else "bernoulli", input)


_CATEGORIES = 1 << 24  # PyTorch draws with float32


def multinomial(input, num_samples, replacement=False, *, generator=None, out=None) -> Tensor:
    """Indices drawn from each row of weights; with replacement or without."""
    check_out("multinomial", None, out)
    if not input.dtype.is_floating_point:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {dtypes.scalar_name(input.dtype)}"
        )
    if input.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if out is not None and out.dtype is not dtypes.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {dtypes.scalar_name(out.dtype)}")
    num_samples = whole_of("multinomial", "num_samples", num_samples, 2)
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > input.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if input.shape[-1] > _CATEGORIES:
        raise RuntimeError("number of categories cannot exceed 2^24")
    if input._spec.device.type == "meta":
        shape = (*input.shape[:-1], int(num_samples))
        return finish(_undrawn(shape, dtypes.int64, input._spec.device), False, out)
    given = traced_draws.traced(input)
    if given is not None:
        drawn = traced_draws.multinomial(given, int(num_samples), bool(replacement), generator_of(generator))
        return finish(from_jax(drawn), False, out)
    weights = storages.numpy_of(input._storage, input._spec, input._offset)
    if not (np.isfinite(weights) & (weights >= 0)).all():
        words = (
            "invalid multinomial distribution (encountering probability entry < 0)"
            if replacement
            else ("probability tensor contains either `inf`, `nan` or element < 0")
        )
        raise RuntimeError(words)
    if (weights.sum(-1, dtype=np.float64) <= 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    g, count = generator_of(generator, input._spec.device), int(num_samples)

    def drawn(shape):
        rows = np.broadcast_to(weights, shape).reshape(-1, shape[-1])
        return draw.multinomial(g, rows, count, bool(replacement)).reshape(*shape[:-1], count).astype(np.int64)

    return finish(traced_draws.made(drawn, weights.shape, input._spec.device, dtypes.int64), False, out)


def normal(
    mean,
    std=1.0,
    size=None,
    *,
    generator=None,
    out=None,
    dtype=None,
    device=None,
    requires_grad=False,
    layout=None,
    pin_memory=None,
):
    """Normal numbers with these means and deviations (numbers or tensors)."""
    if size is not None:  # then they are numbers
        mean, std = number_of(mean), number_of(std)
        if not isinstance(size, (tuple, list)):
            raise errors.combination("normal", [mean, std, size], "(float mean, float std, tuple of ints size)")
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        if size is None:
            raise errors.combination(
                "normal", [mean, std], "(Tensor mean, Tensor std) or (float mean, float std, tuple of ints size)"
            )
        if not std >= 0:
            raise errors.negative_std(std)
        return _random(
            "normal",
            (),
            size,
            generator,
            out,
            dtype,
            device,
            requires_grad,
            partial(draw_normal, mean=mean, std=std),
        )
    some = mean if isinstance(mean, Tensor) else std
    if isinstance(std, Tensor):
        if std.is_complex():
            raise RuntimeError("normal expects standard deviation to be non-complex")
        known = std._spec.device.type != "meta" and not is_traced(value_of(std))
        if known and (storages.numpy_of(std._storage, std._spec, std._offset) < 0).any():
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif std < 0:
        raise errors.negative_std(std)
    shape = shapes.broadcast(*[tuple(t.shape) for t in (mean, std) if isinstance(t, Tensor)])
    if out is not None and not isinstance(std, Tensor):  # PyTorch then fits the result to out=, not out= to the result
        shape = shapes.broadcast(shape, tuple(out.shape))
    d = _needs_float(some.dtype, "normal_kernel_cpu")
    if some.device.type == "meta":
        return finish(_undrawn(shape, d, some._spec.device), False, out)
    order = turned(out, shape)
    lying = shape if order is None else tuple(shape[i] for i in order)
    place, apart = some.device, order is not None
    unit = traced_draws.made(
        lambda s: draw_normal(generator_of(generator, place), s, d, scattered=apart), lying, place, d
    )
    with no_grad():
        if order is not None:
            unit = unit.permute(*np.argsort(order).tolist())
        result = (unit * std).to(d).add(mean).to(d)
    if out is not None:
        return finish(result, False, out)
    name = f"NormalBackward{isinstance(mean, Tensor) + 2 * isinstance(std, Tensor)}"
    return on_tape(result, name, *[t for t in (mean, std) if isinstance(t, Tensor)])
