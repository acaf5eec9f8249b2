"""Jacobians and Hessians: a column (jacfwd) or a row (jacrev) a lane of one vmap."""

import functools
import itertools

import jax
import jax.numpy as jnp

from ..autograd.derive import differentiable
from ..autograd.levels import level, refuse_nested_forward
from ..tensor import Tensor
from . import hooked
from .lift import Results, lift
from .transforms import Split, all_tensors, same
from .trees import flatten
from .vectorize import check_randomness, randomness_of

_names = itertools.count()


def _by_rows(function, primals, randomness):
    """The Jacobian of a function of arrays in reverse mode: [result][argument]."""
    n = len(primals)
    with hooked.reverse() as here:
        found, extra = jax.jacrev(function, argnums=tuple(range(n)), has_aux=True)(*primals)
    if here.hooked:
        m = len(found) * n
        extra, by_tape = extra[: len(extra) - m], extra[len(extra) - m :]
        found = [by_tape[k : k + n] for k in range(0, m, n)]
    return found, extra


def _by_columns(function, primals, randomness):
    """The same in forward mode."""
    sizes = [p.size for p in primals]
    total = sum(sizes)
    basis, at = [], 0
    for p, n in zip(primals, sizes):
        basis.append(jnp.eye(total, n, -at, p.dtype).reshape(total, *p.shape))
        at += n
    axis = f"jacfwd{next(_names)}"

    def column(*tangents):
        with level("vmap", size=total, randomness=randomness), randomness_of(randomness, axis, total), level("jvp"):
            out, moved, extra = jax.jvp(function, tuple(primals), tangents, has_aux=True)
        moved = [jnp.zeros(o.shape, o.dtype) if t.dtype == jax.dtypes.float0 else t for o, t in zip(out, moved)]
        return tuple(moved), extra

    moved, extra = jax.vmap(column, axis_name=axis, axis_size=total)(*basis)
    rows = []
    for m in moved:
        m = jnp.moveaxis(m, 0, -1)
        starts = itertools.accumulate(sizes, initial=0)
        rows.append([m[..., s : s + p.size].reshape(*m.shape[:-1], *p.shape) for s, p in zip(starts, primals)])
    return rows, [e[0] for e in extra]


def _real(leaves, kind, what):
    for k, x in enumerate(leaves):
        if isinstance(x, Tensor) and x.dtype.is_complex:
            raise RuntimeError(
                f"{kind}: Expected all {what}s to be real but received complex tensor at flattened input idx: {k}"
            )


class _Checked:
    """Results that a Jacobian can be of."""

    def __init__(self, results, kind):
        self.results, self.kind = results, kind

    def take(self, out):
        all_tensors(out, "vjp(f, *primals)" if self.kind == "jacrev" else "jacfwd(f, argnums)(*args)")
        _real(flatten(out)[0], self.kind, "output")
        return self.results.take(out)


def _jacobian(kind, func, argnums, has_aux, randomness="error"):
    transform = _by_rows if kind == "jacrev" else _by_columns

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        if kind == "jacfwd":
            refuse_nested_forward()
        split = Split(argnums, args, kwargs, reverse=kind == "jacrev")
        tensors = split.arguments.tensors
        _real([tensors[k] for k in split.flat], kind, "input")
        for k in split.flat:
            if not differentiable(tensors[k]._spec):
                raise ValueError(f"Expected primal to be floating point or complex, but got: {tensors[k].dtype}")
        value, aux = Results(), Results() if has_aux else None
        checked = _Checked(value, kind)
        n = len(split.flat)
        count = {}

        def run(*arrays):
            function = split.function_of(func, arrays, checked, aux, kind, hooked.rows)
            rows, extra = transform(function, [arrays[k] for k in split.flat], randomness)
            count["out"] = len(rows)
            return (*[j for row in rows for j in row], *extra)

        got = lift(run, tensors)
        split.arguments.write_back(got)
        m = count["out"]
        rows = [split.rebuild(got[i * n : (i + 1) * n]) for i in range(m)]
        result = value.give(rows, same)
        return (result, aux.give(got[m * n :], same)) if has_aux else result

    return wrapper


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """A function that gives the Jacobian by the arguments `argnums`, computed in reverse mode."""
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")
    return _jacobian("jacrev", func, argnums, has_aux)


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """A function that gives the Jacobian by the arguments `argnums`, computed in forward mode."""
    return _jacobian("jacfwd", func, argnums, has_aux, check_randomness(randomness))


def hessian(func, argnums=0):
    """A function that gives the Hessian: forward over reverse mode."""
    return jacfwd(jacrev(func, argnums), argnums)


__all__ = ["hessian", "jacfwd", "jacrev"]
