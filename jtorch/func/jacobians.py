"""Jacobians and Hessians: a column (jacfwd) or a row (jacrev) a lane of one vmap."""

import functools
import itertools

import jax
import jax.numpy as jnp

from .. import functions
from ..autograd import whole
from ..autograd.derive import differentiable
from ..autograd.levels import Lanes, level, refuse_nested_forward
from ..core.lanes import ByTracing, Lane
from ..core.record import tls
from ..core.spec import Spec
from ..dispatch.dispatched import dispatches
from ..tensor import Tensor, value_of
from . import by_dual, by_lanes, by_tape, hooked
from .lift import Results, lift
from .transforms import Split, all_tensors, same, with_aux
from .trees import flatten, unflatten
from .vectorize import check_randomness, randomness_of

_names = itertools.count()
_traced = whole.Known()  # functions that cannot go by lanes


def _by_rows(function, primals, randomness):
    """The Jacobian of a function of arrays in reverse mode: [result][argument]."""
    n = len(primals)
    with hooked.reverse() as here:
        out, pull, extra = jax.vjp(function, *primals, has_aux=True)
    if here.hooked:
        m = len(out) * n
        extra, by_tape = extra[: len(extra) - m], extra[len(extra) - m :]
        return [by_tape[k : k + n] for k in range(0, m, n)], extra
    total, basis = hooked.basis([o.shape for o in out], [o.dtype for o in out])
    axis = f"jacrev{next(_names)}"

    def row(*cotangents):
        with level("vmap", size=total, randomness=randomness), randomness_of(randomness, axis, total):
            return pull(cotangents)

    whole_rows, found, at = jax.vmap(row, axis_name=axis, axis_size=total)(*basis), [], 0
    for o in out:
        found.append([g[at : at + o.size].reshape(*o.shape, *p.shape) for g, p in zip(whole_rows, primals)])
        at += o.size
    return found, extra


def _by_columns(function, primals, randomness):
    """The same in forward mode."""
    sizes = [p.size for p in primals]
    total, basis = hooked.basis([p.shape for p in primals], [p.dtype for p in primals])
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
        _checked(out, self.kind)
        return self.results.take(out)


_CALLS = {"jacrev": "vjp(f, *primals)", "jacfwd": "jvp(f, primals, tangents)"}  # what PyTorch's error is about


def _checked(out, kind):
    """The tensors of a result, checked."""
    all_tensors(out, _CALLS[kind])
    leaves = flatten(out)[0]
    _real(leaves, kind, "output")
    return leaves


def _forward(func, split, has_aux):
    """(the run, what it gave, the rest, the tensors of what it gave) of a function that is differentiated by the tape."""
    forward = by_tape.Forward(func, split)
    out, aux = with_aux(forward.out, _CALLS["jacrev"]) if has_aux else (forward.out, None)
    leaves = _checked(out, "jacrev")
    forward.look([*leaves, *flatten(aux)[0], *forward.tensors])
    return forward, out, aux, leaves


def _rows_by_lanes(func, split, has_aux):
    """The Jacobian by the tape, whose pass runs for all rows at once. Raises where it is not to go so."""
    forward, out, aux, leaves = _forward(func, split, has_aux)
    if forward.here.hooked:
        raise ByTracing
    specs, leads = [t._spec for t in leaves], forward.outer and forward.leads
    total, parts = by_lanes.basis(specs)
    with Lanes(total) as here:
        cotangents = [by_lanes.given(value_of(b), _dense(s), here) for b, s in zip(parts, specs)]
        grads = by_tape.gradients(leaves, forward, cotangents, leads)
    grads = [by_lanes.all_slices(g, here, leads) for g in grads]
    forward.write_back(split.arguments.tensors)
    rows, at = [], 0
    for s in specs:
        rows.append(split.rebuild([g.narrow(0, at, s.numel).reshape(*s.shape, *g.shape[1:]) for g in grads]))
        at += s.numel
    result = unflatten(flatten(out)[1], rows)
    return (result, forward.everywhere(aux)) if has_aux else result


def _rows_one_by_one(func, split, has_aux):
    """The Jacobian of tensors whose class has a `__torch_dispatch__`: it sees a backward pass for each row."""
    forward, out, aux, leaves = _forward(func, split, has_aux)
    leads, rows = forward.outer and forward.leads, []
    for k, leaf in enumerate(leaves):
        found = []
        for i in range(leaf.numel()):
            start = [x.new_zeros(x.shape) for x in leaves]
            start[k].view(-1)[i] = 1
            found.append(by_tape.gradients(leaves, forward, start, leads, keep=True))
        each = [functions.stack(list(gs)).reshape(*leaf.shape, *gs[0].shape) for gs in zip(*found)]
        rows.append(split.rebuild(each))
    forward.write_back(split.arguments.tensors)
    result = unflatten(flatten(out)[1], rows)
    return (result, forward.everywhere(aux)) if has_aux else result


def _columns_by_lanes(func, split, has_aux):
    """The Jacobian by dual tensors, whose tangents are all columns at once. Raises where it is not to go so."""
    tensors = split.arguments.tensors
    specs = [tensors[k]._spec for k in split.flat]
    total, parts = by_lanes.basis(specs)
    tangents = [None] * len(tensors)
    with Lanes(total) as here:
        for k, b, s in zip(split.flat, parts, specs):
            tangents[k] = by_lanes.given(value_of(b), _dense(s), here)
        paired = (lambda *args, **kwargs: with_aux(func(*args, **kwargs), _CALLS["jacfwd"])) if has_aux else func
        results = by_dual.jvp(paired, split.arguments, tangents, has_aux)
    leaves, tree = flatten(results[0])
    _checked(results[0], "jacfwd")
    moved = flatten(results[1])[0]
    if any(type(value_of(t)) is Lane and value_of(t).level == here.level for t in leaves):
        raise ByTracing
    columns = []
    for m in moved:
        m = by_lanes.all_slices(m, here, tls.me.grad).movedim(0, -1)
        found, at = [], 0
        for s in specs:
            found.append(m.narrow(-1, at, s.numel).reshape(*m.shape[:-1], *s.shape))
            at += s.numel
        columns.append(split.rebuild(found))
    result = unflatten(tree, columns)
    return (result, results[2]) if has_aux else result


def _dense(spec):
    return Spec.dense(tuple(spec.shape), spec.dtype, spec.device)


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
        if any(map(dispatches, tensors)):
            return _rows_one_by_one(func, split, has_aux)
        who = whole.identity(func)
        if who not in _traced and by_lanes.possible(tensors, dual=kind == "jacrev"):
            with by_tape.Attempt(anything=True):
                return (_rows_by_lanes if kind == "jacrev" else _columns_by_lanes)(func, split, has_aux)
            _traced.add(who)
        value, aux = Results(), Results() if has_aux else None
        checked = _Checked(value, kind)
        n = len(split.flat)
        count = {}

        def run(*arrays):
            function = split.function_of(func, arrays, checked, aux, _CALLS[kind], hooked.rows)
            rows, extra = transform(function, [arrays[k] for k in split.flat], randomness)
            count["out"] = len(rows)
            return (*[j for row in rows for j in row], *extra)

        got = lift(run, tensors, func)
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
