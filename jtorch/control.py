"""torch.cond and torch.while_loop: branches and loops that depend on tensors.

On concrete values they are Python's `if` and `while`, on the tape as always. Inside a transformation, where the value of the
predicate is not known, they become jax.lax.cond and jax.lax.while_loop.
"""

import contextlib

import jax

from . import errors_extend
from .autograd.levels import array_of
from .autograd.mode import is_grad_enabled
from .core.lanes import is_traced
from .creation import from_jax
from .func.trees import flatten, unflatten
from .lifted import read_by, tied
from .tensor import Tensor

__all__ = ["cond", "while_loop"]


def _traced(x) -> bool:
    return isinstance(x, Tensor) and is_traced(x._storage.value)


def cond(pred, true_fn, false_fn, operands=()):
    """true_fn(*operands) if `pred`, else false_fn(*operands).

    RuntimeError: `pred` is neither a bool nor a tensor with one element, or `operands` is no tuple or list of tensors.
    """
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise errors_extend.cond_pred(pred)
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise errors_extend.cond_pred_shape(pred)
    if not callable(true_fn) or not callable(false_fn):
        raise errors_extend.cond_functions()
    if not isinstance(operands, (tuple, list)):
        raise errors_extend.cond_operands(operands)
    if isinstance(pred, Tensor) and pred.device.type == "meta":  # only what is read and made is asked for
        false_fn(*operands)
        return true_fn(*operands)
    if not _traced(pred):
        taken, other = (true_fn, false_fn) if pred else (false_fn, true_fn)
        return _branch(taken, other, operands) if isinstance(pred, Tensor) else taken(*operands)
    leaves, tree = flatten(tuple(operands))
    slots = [k for k, x in enumerate(leaves) if isinstance(x, Tensor)]
    shapes = []

    def branch(fn):
        def run(arrays):
            given = list(leaves)
            for k, a in zip(slots, arrays):
                given[k] = from_jax(a)
            results, shape = flatten(fn(*unflatten(tree, given)))
            shapes.append(shape)
            return [array_of(r) for r in results]

        return run

    taken = array_of(pred).reshape(()).astype(bool)
    outs = jax.lax.cond(taken, branch(true_fn), branch(false_fn), [array_of(leaves[k]) for k in slots])
    return unflatten(shapes[0], [from_jax(a) for a in outs])


def _branch(taken, other, operands):
    """taken(*operands), which depends on what the other branch would read too."""
    result = taken(*operands)
    leaves, tree = flatten(result)
    if not is_grad_enabled() or any(map(_traced, leaves)) or not any(isinstance(x, Tensor) for x in leaves):
        return result
    return unflatten(tree, tied(leaves, read_by(other, operands)))


def while_loop(cond_fn, body_fn, carried_inputs):
    """Call carried = body_fn(*carried) as long as cond_fn(*carried) holds; the last carried values, as a tuple.

    RuntimeError: body_fn gives another number of values, or of other shapes or dtypes, than it takes, or writes to them; cond_fn
    gives no bool. AssertionError: what is carried is neither a tensor nor an int.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise errors_extend.cond_functions("while_loop")
    if not isinstance(carried_inputs, (tuple, list)):
        raise errors_extend.loop_carried(carried_inputs)
    carried = tuple(carried_inputs)
    leaves, tree = flatten(carried)
    if not all(isinstance(x, Tensor) or type(x) is int for x in leaves):
        raise errors_extend.loop_leaf(leaves)
    holds = _condition(cond_fn(*carried))
    if any(map(_traced, carried)) or _traced(holds):
        arrays = jax.lax.while_loop(
            lambda now: array_of(cond_fn(*map(from_jax, now))).reshape(()).astype(bool),
            lambda now: tuple(map(array_of, _following(body_fn, tuple(map(from_jax, now))))),
            tuple(array_of(x) for x in carried),
        )
        return tuple(map(from_jax, arrays))
    result = None
    while holds:
        result = _following(body_fn, carried)
        # lists and tuples as they were given, whatever body_fn makes of them
        carried = unflatten(tree, flatten(result)[0])
        holds = _condition(cond_fn(*carried))
    if result is None:
        return carried
    results, form = flatten(result)
    return unflatten(form, tied(results, leaves))


def _condition(holds):
    if isinstance(holds, Tensor):
        if holds.ndim or holds.dtype.name != "bool":
            raise errors_extend.loop_condition(holds.shape)
    elif not isinstance(holds, bool):
        raise errors_extend.loop_condition(holds)
    return holds


def _following(body_fn, carried):
    with unwritten("torch.while_loop", flatten(carried)[0]):
        result = body_fn(*carried)
    result = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    check_alike(("body_fn_output", "carried_inputs"), flatten(result)[0], flatten(carried)[0])
    return result


@contextlib.contextmanager
def unwritten(name, leaves):
    """Raise RuntimeError if a tensor among `leaves` is written to inside."""
    tensors = [x for x in leaves if isinstance(x, Tensor)]
    before = [x._version for x in tensors]
    yield
    if before != [x._version for x in tensors]:
        raise errors_extend.loop_mutation(name)


def check_alike(names, lhs, rhs):
    """Raise RuntimeError where two lists of what a loop carries differ in number, kind, shape or dtype."""
    if len(lhs) != len(rhs):
        raise errors_extend.loop_count(names, lhs, rhs)
    pairs = []
    for k, (a, b) in enumerate(zip(lhs, rhs)):
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            if a._spec is b._spec:
                continue
            what = [
                f"'{n}: {x} vs {y}'" for n, x, y in (("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype)) if x != y
            ]
            if what:
                pairs.append((k, ", ".join(what), a, b))
        elif isinstance(a, Tensor) or isinstance(b, Tensor):
            shown = ("tensor" if isinstance(x, Tensor) else repr(x) for x in (a, b))
            pairs.append((k, f"type: {' vs '.join(shown)}", a, b))
    if pairs:
        raise errors_extend.loop_pair(names, pairs)
