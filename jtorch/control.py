"""torch.cond and torch.while_loop: branches and loops that depend on tensors.

On concrete values they are Python's `if` and `while`, on the tape as always. Inside a transformation, where the value of the
predicate is not known, they become jax.lax.cond and jax.lax.while_loop.
"""

import jax

from . import errors_extend
from .autograd.levels import array_of
from .creation import from_jax
from .func.trees import flatten, unflatten
from .tensor import Tensor

__all__ = ["cond", "while_loop"]


def _traced(x) -> bool:
    return isinstance(x, Tensor) and isinstance(x._storage.value, jax.core.Tracer)


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
    if not _traced(pred):
        return true_fn(*operands) if pred else false_fn(*operands)
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


def while_loop(cond_fn, body_fn, carried_inputs):
    """Call carried = body_fn(*carried) as long as cond_fn(*carried) holds; the last carried values, as a tuple.

    RuntimeError: body_fn gives another number of values, or of other shapes, than it takes.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise errors_extend.cond_functions("while_loop")
    if not isinstance(carried_inputs, (tuple, list)):
        raise errors_extend.loop_carried(carried_inputs)
    carried = tuple(carried_inputs)
    holds = cond_fn(*carried)
    if any(map(_traced, carried)) or _traced(holds):
        arrays = jax.lax.while_loop(
            lambda now: array_of(cond_fn(*map(from_jax, now))).reshape(()).astype(bool),
            lambda now: tuple(array_of(x) for x in _checked(body_fn(*map(from_jax, now)), len(carried))),
            tuple(array_of(x) for x in carried),
        )
        return tuple(map(from_jax, arrays))
    while holds:
        carried = _checked(body_fn(*carried), len(carried))
        holds = cond_fn(*carried)
    return carried


def _checked(result, n):
    result = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    if len(result) != n:
        raise errors_extend.loop_result(len(result), n)
    return result
