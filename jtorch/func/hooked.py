"""Hooks inside the transformations: a level whose function has put one somewhere differentiates by the tape.

JAX knows of no hooks, and one may be put where uses of the tensor have been traced already. The tape is there inside the
levels as outside, so the gradients come from it, computed inside the function on the values that JAX traces; what JAX would
have given for this level is not used, and the levels around differentiate both.
"""

import contextlib
import math
import weakref

import jax
import jax.numpy as jnp

from .. import errors_func
from ..autograd import entry
from ..autograd.engine import Run
from ..autograd.graph import disable_saved_tensors_hooks
from ..autograd.levels import array_of, level, levels, note_hook
from ..autograd.node import Node, bridge
from ..autograd.transformed import note_edges
from ..core.record import tls
from ..creation import from_jax
from ..random_tensors import default_generator
from ..tensor import CONSTANTS, Tensor, edge_of
from .trees import flatten

SAVING = "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case."


@contextlib.contextmanager
def reverse():
    """The level of a transformation in reverse mode whose function may put hooks somewhere."""
    with disable_saved_tensors_hooks(SAVING), level("vjp", hooked=False) as here:
        yield here


def note(edge):
    """A hook is being put on a tensor or a node that was made inside the levels.

    RuntimeError: nothing that the innermost level differentiates by leads there. NotImplementedError: another level's.
    """
    here = levels()[-1]
    if not _since(edge[0]) > here.start:
        raise errors_func.outer_hook()
    if here.kind != "vjp" or not _leads(edge, here):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if here.hooked is None:
        raise errors_func.outer_hook()
    here.hooked = True


def note_node(node):
    """A hook is being put on a node; one that was made outside of the levels runs in the pass around them."""
    around = levels()
    if not around:
        note_hook((node, 0))
    elif node.sequence > around[0].start:
        note((node, 0))


def _since(target):
    return target.sequence if isinstance(target, Node) else target.__dict__.get("_since", 0)


def _leads(edge, here):
    """Whether an edge comes from a leaf that was made inside this level."""
    stack, seen = [edge], set()
    while stack:
        target = stack.pop()[0]
        if not isinstance(target, Node):
            if target._storage.version >= here.birth:
                return True
        elif target.sequence > here.start and target not in seen:
            seen.add(target)
            stack += [e for e in target.edges if e is not None]
    return False


CONSTANTS["hooked"] = lambda t: note(edge_of(t))
bridge.hooked = note_node


class _Run(Run):
    """A pass that remembers what its hooks have been given: they may keep it beyond the level."""

    __slots__ = ()

    def tensor(self, value, spec):
        made = super().tensor(value, spec)
        if made is not None:
            levels()[-1].given.append(weakref.ref(made))
        return made


def pulled(outs, leaves, cotangents):
    """The arrays of the gradients of `outs`, along `cotangents` (or None for ones), for each leaf, by the tape."""
    extra = tls.me.extra
    before = extra.get("run_class")
    extra["run_class"] = before or _Run
    there = [k for k, o in enumerate(outs) if edge_of(o) is not None]
    grads = [None] * len(leaves)
    try:
        if there:
            given = None if cotangents is None else [cotangents[k] for k in there]
            grads = entry.grad([outs[k] for k in there], leaves, given, True, True, allow_unused=True)
    finally:
        tls.me.put("run_class", before)
    note_edges(g for g in grads if g is not None)
    return tuple(
        jnp.zeros(tuple(t._spec.shape), t._spec.dtype.np) if g is None else array_of(g) for g, t in zip(grads, leaves)
    )


def ones(out, leaves):
    """What `grad` wants of a function that has put hooks somewhere."""
    return pulled([out], leaves, None)


def along(cotangents):
    """The same for a pullback: cotangents are arrays, one a result."""
    return lambda out, leaves: pulled(_tensors(out), leaves, [from_jax(c) for c in cotangents])


def basis(shapes, dtypes):
    """(how many elements arrays of these shapes have together, the unit vectors of all as one array for each shape)."""
    sizes = [math.prod(shape) for shape in shapes]
    total, units, at = sum(sizes), [], 0
    for shape, dtype, n in zip(shapes, dtypes, sizes):
        units.append(jnp.eye(total, n, -at, dtype).reshape(total, *shape))
        at += n
    return total, units


def rows(out, leaves):
    """The same for `jacrev`: for each result the Jacobian by each leaf, all rows of all results by one vmap."""
    outs = _tensors(out)
    sizes = [o._spec.numel for o in outs]
    total, units = basis([tuple(o._spec.shape) for o in outs], [o._spec.dtype.np for o in outs])

    def row(*cotangents):
        with level("vmap", size=total, randomness="error"):
            return pulled(outs, leaves, [from_jax(c) for c in cotangents])

    found, at = [], 0
    whole = jax.vmap(row)(*units)
    for o, n in zip(outs, sizes):
        found += [g[at : at + n].reshape(*o.shape, *t.shape) for g, t in zip(whole, leaves)]
        at += n
    return tuple(found)


@contextlib.contextmanager
def random_numbers_of(state):
    """What is drawn inside was drawn before, from this state on: nothing of it is drawn from the stream again."""
    now = default_generator.state_bytes()
    default_generator.set_state(state)
    try:
        yield
    finally:
        default_generator.set_state(now)


def _tensors(out):
    return [x for x in flatten(out)[0] if isinstance(x, Tensor)]


__all__ = [
    "SAVING",
    "along",
    "basis",
    "default_generator",
    "note",
    "ones",
    "pulled",
    "random_numbers_of",
    "reverse",
    "rows",
]
