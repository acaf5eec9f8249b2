"""vmap: jax.vmap of the function of arrays behind a function of tensors."""

import functools
import itertools

import jax
import jax.numpy as jnp

from .. import errors_func, functions
from ..autograd import whole
from ..autograd.levels import level
from ..core.record import tls
from ..core.rng import default_generator
from ..dispatch.dispatched import dispatches
from ..ops import registry
from ..tensor import Tensor
from . import by_lanes, by_tape
from .lift import Arguments, Results, lift
from .trees import flatten, show, unflatten

_names = itertools.count()
_traced = whole.Known()  # functions that cannot go by lanes
in_parts = None  # another way to run it, set where programs can replace parts of PyTorch's: gives (results,), or None for this way


def _name(func):
    return getattr(func, "__name__", repr(func))


def _spread(dims, args, func):
    """in_dims for each leaf of the arguments, checked against them."""
    where = f"vmap({_name(func)}, in_dims={dims}, ...)(<inputs>)"
    if not isinstance(dims, (int, tuple)):
        raise ValueError(
            f"{where}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no inputs. "
            "The latter is unsupported."
        )
    leaves, tree = flatten(args)
    flat = broadcast_prefix(dims, args)
    if flat is None:
        raise ValueError(
            f"{where}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{show(flatten(dims)[1])} but inputs has structure {show(tree)}."
        )
    out = []
    for x, d in zip(leaves, flat):
        if d is not None and not isinstance(d, int):
            raise ValueError(
                f"{where}: Got in_dim={d} for an input but in_dim must be either an integer dimension or None."
            )
        if d is not None and not isinstance(x, Tensor):
            raise ValueError(
                f"{where}: Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap over non-Tensor "
                "arguments, please use None as the respective in_dim"
            )
        if d is not None and not -x.ndim <= d < x.ndim:
            raise ValueError(
                f"{where}: Got in_dim={d} for some input, but that input is a Tensor of dimensionality {x.ndim} so expected "
                f"in_dim to satisfy -{x.ndim} <= in_dim < {x.ndim}."
            )
        out.append(None if d is None else d % x.ndim)
    return leaves, out


def broadcast_prefix(prefix, tree):
    """A nested tuple of dims spread over the leaves below each of its entries; None where the structures differ."""
    if prefix is None or not isinstance(prefix, (tuple, list, dict)):
        return [prefix] * len(flatten(tree)[0])
    if isinstance(prefix, dict):
        if not isinstance(tree, dict) or prefix.keys() != tree.keys():
            return None
        pairs = [(prefix[k], tree[k]) for k in tree]
    else:
        kind = list if isinstance(prefix, list) else tuple
        if not isinstance(tree, kind) or len(prefix) != len(tree):
            return None
        pairs = list(zip(prefix, tree))
    parts = [broadcast_prefix(p, t) for p, t in pairs]
    return None if any(p is None for p in parts) else [d for part in parts for d in part]


def check_randomness(randomness):
    """What a vmap may think of random numbers."""
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    return randomness


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function that runs `func` on every slice along `in_dims` at once and stacks the results along `out_dims`.

    randomness: "error" forbids random numbers inside, "same" gives every slice the same ones, "different" its own.
    chunk_size: at most so many slices at a time.
    """
    check_randomness(randomness)
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        if in_parts is not None:
            done = in_parts(func, in_dims, out_dims, randomness, args, kwargs)
            if done is not None:
                return done[0]
        leaves, dims = _spread(in_dims, args, func)
        sizes = [x.shape[d] for x, d in zip(leaves, dims) if d is not None]
        if not sizes:
            raise ValueError("vmap: Expected at least one Tensor to vmap over")
        if any(s != sizes[0] for s in sizes):
            raise errors_func.mapped_sizes(sizes)
        if chunk_size is not None and chunk_size < sizes[0]:
            return _in_chunks(func, args, kwargs, dims, sizes[0], out_dims, randomness, chunk_size)
        return _run(func, args, kwargs, dims, sizes[0], out_dims, randomness)

    return wrapper


def _run(func, args, kwargs, dims, size, out_dims, randomness):
    arguments, results = Arguments(args, kwargs), Results()
    axes = dict(zip(range(len(dims)), dims))
    in_axes = tuple(axes.get(k) for k in arguments.slots)
    if any(map(dispatches, arguments.tensors)):
        return _one_by_one(func, args, kwargs, dims, size, out_dims, randomness)
    who = whole.identity(func)
    if by_lanes.possible(arguments.tensors) and who not in _traced:
        with by_tape.Attempt(anything=True):
            found, tree = by_lanes.run(func, arguments, in_axes, size, lambda out: _out_dims(out_dims, out, func))
            return unflatten(tree, found)
    outs = {}

    def run(*arrays):
        axis = fresh_axis()

        def one(*slices):
            with level("vmap", size=size, randomness=randomness) as here, randomness_of(randomness, axis, size):
                out, written = arguments.call(func, slices)
                written = [here.own(a) if in_axes[k] is None else a for a, (k, _, _) in zip(written, arguments.written)]
                dims = _out_dims(out_dims, out, func)
                outs["dims"] = [d for d, x in zip(dims, flatten(out)[0]) if isinstance(x, Tensor)]
                arrays = results.take(out)
                if any(d is None and here.sliced(a) for d, a in zip(outs["dims"], arrays)):
                    raise has_slices(func)
                return (*arrays, *written)

        got = jax.vmap(one, in_axes=in_axes, out_axes=0, axis_size=size, axis_name=axis)(*arrays)
        dims = [*outs["dims"], *(in_axes[k] for k, _, _ in arguments.written)]
        return [placed(g, d) for g, d in zip(got, dims)]

    got = lift(run, arguments.tensors, func)
    _traced.add(who)
    arguments.write_back(got)
    return results.give(got, lambda x: x)


def _one_by_one(func, args, kwargs, dims, size, out_dims, randomness):
    """The slices of tensors whose class has a `__torch_dispatch__`: it sees each operator for each slice."""
    leaves, tree = flatten(args)
    state = default_generator.state_bytes()
    found = []
    for i in range(size):
        if randomness == "same":
            default_generator.set_state(state)
        slices = [x if d is None else x.select(d, i) for x, d in zip(leaves, dims)]
        found.append(func(*unflatten(tree, slices), **kwargs))
    where = _out_dims(out_dims, found[0], func)
    each, out = zip(*[flatten(f)[0] for f in found]), flatten(found[0])[1]
    return unflatten(out, [xs[0] if d is None else functions.stack(list(xs), d) for xs, d in zip(each, where)])


def fresh_axis() -> str:
    """A name for JAX's axis that no other vmap has."""
    return f"vmap{next(_names)}"


def has_slices(func):
    """The error about a result that is another one for each slice, and was said to be the same."""
    return ValueError(f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when out_dim is None")


def placed(array, dim):
    """The results of all slices, which lie along dimension 0, along `dim`; the first alone for None."""
    if dim is None:
        return array[0]
    if not -array.ndim <= dim < array.ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-array.ndim}, {array.ndim - 1}], but got {dim})"
        )
    return jnp.moveaxis(array, 0, dim)


def no_tensor(name, x):
    """The error about a result that is no tensor."""
    return ValueError(
        f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(x)}. Did you mean to set "
        "out_dims= to None for output?"
    )


def _out_dims(out_dims, out, func):
    """Where the slices of each leaf of a result go, as `out_dims` says; what is no tensor has none."""
    leaves, tree = flatten(out)
    if not all(d is None or isinstance(d, int) for d in flatten(out_dims)[0]):
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints "
            "representing where in the outputs the vmapped dimension should appear."
        )
    if isinstance(out, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        return [out_dims[0]]
    flat = broadcast_prefix(out_dims, out)
    if flat is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {show(flatten(out_dims)[1])} but outputs has structure {show(tree)}."
        )
    for x, dim in zip(leaves, flat):
        if dim is not None and not isinstance(x, Tensor):
            raise no_tensor(_name(func), x)
    return flat


def _in_chunks(func, args, kwargs, dims, size, out_dims, randomness, chunk):
    leaves, tree = flatten(args)
    parts, mark = [], default_generator.mark()
    for start in range(0, size, chunk):
        if randomness == "same":
            default_generator.rewind(mark)  # all chunks see the numbers of the first
        n = min(chunk, size - start)
        some = [x if d is None else x.narrow(d, start, n) for x, d in zip(leaves, dims)]
        parts.append(_run(func, unflatten(tree, some), kwargs, dims, n, out_dims, randomness))
    flats = [flatten(p)[0] for p in parts]
    spread = broadcast_prefix(out_dims, parts[0])
    spread = [out_dims[0]] if spread is None else spread
    cat = registry.tensor_call
    joined = [
        column[0] if d is None else cat(registry.OPS["cat"], (list(column), d), {})
        for column, d in zip(zip(*flats), spread)
    ]
    return unflatten(flatten(parts[0])[1], joined)


class randomness_of:
    """Says to whoever draws numbers what this vmap thinks of it."""

    def __init__(self, how, axis, size):
        self.entry = (how, axis, size)

    def __enter__(self):
        extra = tls.me.extra
        self.before = extra.get("keys")
        self.outer = extra.get("vmap_random")
        extra["vmap_random"] = self
        extra["keys"] = self.key

    def __exit__(self, *exc):
        extra = tls.me.extra
        for name, value in (("keys", self.before), ("vmap_random", self.outer)):
            if value is None:
                extra.pop(name, None)
            else:
                extra[name] = value

    def allow(self):
        if self.entry[0] == "error":
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
                "randomness flags on vmap or perform the randomness operation out of vmap"
            )

    def host(self, draw, shape):
        """Numbers drawn on the host: one set, or one for each slice."""
        self.allow()
        how, axis, size = self.entry
        if self.outer is not None:
            draw = functools.partial(self.outer.host, draw)
        if how == "same":
            return jnp.asarray(draw(shape))
        return jnp.asarray(draw((size, *shape)))[jax.lax.axis_index(axis)]

    def key(self, key):
        self.allow()
        how, axis, _ = self.entry
        key = jnp.asarray(key if self.before is None else self.before(key))
        if how == "same":
            return key
        # Each slice its own key: two rounds of a 32-bit mixer over the key's words and the slice's number.
        i = jax.lax.axis_index(axis).astype(jnp.uint32)
        word = (key[1] ^ (i + jnp.uint32(1)) * jnp.uint32(0x9E3779B9)).astype(jnp.uint32)
        for factor in (0x85EBCA6B, 0xC2B2AE35):
            word = (word ^ (word >> 15)) * jnp.uint32(factor)
        return jnp.stack([key[0] ^ (word >> 13), word])


__all__ = ["vmap"]
