"""vmap in parts that a program has replaced: containers that take the batch dimension off their tensors themselves."""

import contextlib
import itertools

import jax

from .. import errors
from ..autograd.levels import array_of, level
from ..autograd.transformed import note_edges
from ..creation import from_jax
from ..tensor import Tensor
from .lift import lift
from .vectorize import fresh_axis, has_slices, no_tensor, placed, randomness_of

_names = itertools.count(1)  # never twice: a container may keep what it made for a level
_levels = {}  # what taking a batch dimension off a tensor, or giving it one, does at a level


@contextlib.contextmanager
def _at(move):
    name = next(_names)
    _levels[name] = move
    try:
        yield name
    finally:
        del _levels[name]


def _move(tensor, dim, name):
    if name not in _levels:
        raise errors.unsupported("moving a batch dimension by hand", instead="torch.func.vmap, which is jax.vmap")
    return _levels[name](tensor, dim)


def add(tensor, in_dim, level):
    """The slices of a tensor along a dimension, inside a vmap run in parts."""
    return _move(tensor, in_dim, level)


def remove(tensor, level, batch_size, out_dim):
    """What all slices of a result make, with the slices along a dimension."""
    return _move(tensor, out_dim, level)


def remove_checked(name, tensor, level, batch_size, out_dim):
    """As `remove`; what is no tensor comes back for no dimension and is an error else, with the function's name."""
    if isinstance(tensor, Tensor):
        return _move(tensor, out_dim, level)
    if out_dim is None:
        return tensor
    raise no_tensor(name, tensor)


def run(parts, func, in_dims, out_dims, randomness, args, kwargs):
    """`vmap(func)(*args, **kwargs)`; `parts` has the three functions that take arguments apart, slice them and join results.

    Slicing is done twice: to see which tensors there are, and around the slices that JAX makes of them. So is joining.
    """
    size, dims, flat, spec = parts._process_batched_inputs(in_dims, args, func)
    batched = []
    with _at(lambda t, d: batched.append((t, d)) or t) as name:
        parts._create_batched_inputs(dims, flat, name, spec)
    kept = {}

    def one(*slices):
        given = map(from_jax, slices)
        with _at(lambda t, d: next(given)) as name:
            inputs = parts._create_batched_inputs(dims, flat, name, spec)
        out = func(*inputs, **kwargs)
        results = []

        def take(t, d):
            results.append((t, d))
            return (
                t
                if d is None
                else t.unsqueeze(d).expand(*t.shape[: d % (t.ndim + 1)], size, *t.shape[d % (t.ndim + 1) :])
            )

        with _at(take) as name:
            parts._unwrap_batched(out, out_dims, name, size, func)
        note_edges(t for t, _ in results)
        kept.update(out=out, dims=[d for _, d in results])
        return [array_of(t) for t, _ in results]

    def on_arrays(*arrays):
        axis = fresh_axis()

        def sliced(*slices):
            with level("vmap", size=size, randomness=randomness) as here, randomness_of(randomness, axis, size):
                arrays = one(*slices)
                if any(d is None and here.sliced(a) for a, d in zip(arrays, kept["dims"])):
                    raise has_slices(func)
                return arrays

        in_axes = tuple(d for _, d in batched)
        got = jax.vmap(sliced, in_axes=in_axes, out_axes=0, axis_size=size, axis_name=axis)(*arrays)
        return [placed(g, d) for g, d in zip(got, kept["dims"])]

    given = iter(lift(on_arrays, [t for t, _ in batched], func))
    with _at(lambda t, d: next(given)) as name:
        return parts._unwrap_batched(kept["out"], out_dims, name, size, func)
