"""Products summed over dimensions that are named: einsum, tensordot, inner, and the Kronecker product."""

import builtins
import functools
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np

from .. import errors, errors_arguments
from ..core import dtype as dt
from ..core import shapes
from . import small
from .arguments import axis, ints, size_of
from .arithmetic import mul
from .backend import accumulator
from .conversion import is_foreign
from .products import expected_dtype
from .registry import Array, composite, op
from .views import diagonal, permute

# what torch says of an out= of another dtype
_TENSORDOT_OUT = (
    "tensordot: Expected the output tensor to have dtype {want}, but got an output tensor with dtype {have}"
)


def _terms(equation: str, count: int) -> tuple[list, list | None]:
    """The labels of each operand and of the result; "..." is the label Ellipsis."""
    left, arrow, right = equation.partition("->")
    parts, start, operands = left.split(","), 0, []
    for k, part in enumerate(parts):
        operands.append(_labels(part, start, f"operand {k}"))
        start += len(part) + 1
    if len(operands) > count:
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    if len(operands) < count:
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    return operands, _labels(right, len(left) + 2, "output") if arrow else None


def _labels(term: str, start: int, place: str) -> list:
    """The labels of one operand or of the output, which begins at `start` in the equation."""
    out, i = [], 0
    while i < len(term):
        if term[i] == " ":
            i += 1
        elif term[i] == ".":
            if ... in out:
                raise errors_arguments.einsum_second_ellipsis(place)
            if term[i : i + 3] != "...":
                raise errors_arguments.einsum_dot(place)
            out.append(...)
            i += 3
        elif term[i].isascii() and term[i].isalpha():
            out.append(term[i])
            i += 1
        else:
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {start + i} in the equation "
                "string, subscripts must be in [a-zA-Z]"
            )
    return out


def _without_dots(operands, result, tensors):
    """Name the dimensions behind each ellipsis, from the right, so that they broadcast."""
    widest = 0
    for i, (labels, t) in enumerate(zip(operands, tensors)):
        dots = ... in labels
        count = len(labels) - dots
        if count > t.ndim and dots:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({count}) is more than the number of "
                f"dimensions ({t.ndim}) for operand {i}"
            )
        if count != t.ndim and not dots:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({count}) does not match the number of "
                f"dimensions ({t.ndim}) for operand {i} and no ellipsis was given"
            )
        if dots:
            widest = builtins.max(widest, t.ndim - len(labels) + 1)
    names = [("dots", d) for d in range(widest)]

    def spell(labels, count):
        if ... not in labels:
            return list(labels)
        at = labels.index(...)
        return [*labels[:at], *names[widest - count :], *labels[at + 1 :]]

    named = [spell(x, t.ndim - len(x) + 1) for x, t in zip(operands, tensors)]
    if result is None:
        every = [x for labels in named for x in labels if x not in names]
        result = names + sorted(x for x in set(every) if every.count(x) == 1)
    else:
        result = spell(result, widest)
    return named, result


def _check_einsum(named, result, tensors):
    sizes = {}
    for i, (labels, t) in enumerate(zip(named, tensors)):
        for label, n in zip(labels, t.shape):
            seen = sizes.setdefault(label, n)
            if seen == 1:
                sizes[label] = n
            elif n not in (1, seen):
                word = label if isinstance(label, str) else "..."
                raise RuntimeError(
                    f"einsum(): subscript {word} has size {n} for operand {i} which "
                    f"does not broadcast with previously seen size {seen}"
                )
    for label in result:
        if result.count(label) > 1:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
        if label not in sizes:
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input operand"
            )
    return sizes


def _einsum_dtype(named, result, operands):
    """The dtype of the product: promoted where dimensions are only multiplied, one and the same where they are summed.

    Of more than two operands PyTorch takes pairs in an order of its choice; here all are promoted.
    """
    if len(operands) == 2:
        (a, b), (first, second) = operands, (dict(zip(labels, t.shape)) for labels, t in zip(named, operands))
        if any(n != 1 and second.get(x, 1) != 1 and x not in result for x, n in first.items()):
            expected_dtype(a, b)
            if a.dtype == np.bool_:
                raise NotImplementedError("\"bmm\" not implemented for 'Bool'")
    return functools.reduce(dt.promote, (dt.of(t.dtype) for t in operands)).np


def _strides(outs, equation, operands):
    """The result lies as the product of two operands makes it: what both have, then what the first one has, then the second one.

    Without a sum it is a product of elements, or one operand turned around. None for others.
    """
    terms, result = _terms(equation, len(operands))
    named, result = _without_dots(terms, result, operands)
    shape = tuple(outs[0].shape)
    if len(operands) > 2 or any(len({*labels}) < len(labels) for labels in named):
        return (None,)
    sizes = [dict(zip(labels, t.shape)) for labels, t in zip(named, operands)]

    def among(x):
        return [of.get(x, 1) != 1 for of in sizes]

    summed = {x for labels in named for x in labels if x not in result}
    if not summed and 1 not in shape:
        steps = [dict(zip(labels, t.strides)) for labels, t in zip(named, operands)]
        views = [tuple(zip(*[(n.get(x, 1), s.get(x, 0)) for x in result])) or ((), ()) for n, s in zip(sizes, steps)]
        return (shapes.elementwise_strides(shape, views),)
    if len(operands) == 1 or not any(all(among(x)) for x in summed):
        return (None,)
    where = [among(x) for x in result]
    free = [d for d, of in enumerate(where) if of == [True, False]], [d for d, of in enumerate(where) if not of[0]]
    turned = all(free) and free[1][-1] < free[0][0]  # the second one's come first, so it is multiplied by the first
    order = sorted(range(len(result)), key=lambda d: (not all(where[d]), d in free[not turned], d))
    made = shapes.contiguous_strides(tuple(shape[d] for d in order))
    return (tuple(made[order.index(d)] for d in range(len(result))),)


@op(where="", grad_name="ViewBackward0", strides=_strides)
def einsum_of(equation: str, operands: list[Array]) -> Array:
    """`einsum` of an equation in letters."""
    terms, result = _terms(equation, len(operands))
    named, result = _without_dots(terms, result, operands)
    sizes = _check_einsum(named, result, operands)
    kind = _einsum_dtype(named, result, operands)
    operands = [t.astype(kind) for t in operands]
    number = {label: i for i, label in enumerate(sizes)}
    args = []
    for labels, t in zip(named, operands):
        # a size of 1 against a larger one broadcasts: leave it out of the product
        dull = tuple(d for d, label in enumerate(labels) if t.shape[d] == 1 and sizes[label] != 1)
        args.append(jnp.squeeze(t, dull) if dull else t)
        args.append([number[label] for d, label in enumerate(labels) if d not in dull])
    present = {n for labels in args[1::2] for n in labels}
    kept = [number[label] for label in result if number[label] in present]
    if len(operands) == 1 and len(kept) < len(sizes) and not jnp.issubdtype(kind, jnp.inexact):
        kind = np.dtype(np.int64)  # a sum of one operand, which torch widens
        args[0] = args[0].astype(kind)
    path = "optimal" if len(operands) < 6 else "greedy"
    out = _product_of_two(args, kept) if len(operands) == 2 else None
    return (jnp.einsum(*args, kept, optimize=path) if out is None else out).astype(kind)


def _product_of_two(args, kept):
    """An einsum of two operands as one product of many small matrices; None where it is none."""
    a, left, b, right = args
    if len({*left}) != len(left) or len({*right}) != len(right):
        return None
    batch = [n for n in left if n in right and n in kept]
    inner = [n for n in left if n in right and n not in kept]
    free, free_right = ([n for n in x if n not in batch and n not in inner] for x in (left, right))
    if not inner or not kept or any(n not in kept for n in (*free, *free_right)):
        return None
    where = [tuple(tuple(map(x.index, dims)) for x in (left, right)) for dims in (inner, batch)]
    out = small.dot_general(a, b, tuple(where))
    made = [*batch, *free, *free_right]
    return None if out is None else jnp.transpose(out, [made.index(n) for n in kept])


@composite(where="torch")
def einsum(*args):
    """The sums of products that an equation names: einsum("ij,jk->ik", a, b), or with lists of numbers."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, "
            "or at least one operand and its subscripts list"
        )
    if isinstance(args[0], str):
        equation, operands = args[0], args[1:]
    else:
        equation, operands = _from_sublists(args)
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    for at, x in enumerate(operands):
        if is_foreign(x):
            raise errors.list_element(at, x, 1)
    turned = _turned(equation, operands[0]) if len(operands) == 1 else None
    return einsum_of(equation, list(operands)) if turned is None else turned


def _turned(equation, x):
    """The einsum of one operand as a view of it: diagonals, in another order. None where something is summed."""
    found = _turns(equation, tuple(x.shape))
    if found is None:
        return None
    pairs, order = found
    for first, second in pairs:
        x = diagonal(x, 0, first, second)
    return permute(x, order)


@functools.lru_cache(maxsize=1024)
def _turns(equation, shape):
    """(the dimensions of which diagonals are taken, one pair after the other, the order then); None where something is summed."""
    x = SimpleNamespace(shape=shape, ndim=len(shape))
    terms, result = _terms(equation, 1)
    named, result = _without_dots(terms, result, [x])
    labels, pairs = list(named[0]), []
    sizes = _check_einsum(named, result, [x])
    if {*labels} != {*result} or any(n != sizes[label] for label, n in zip(labels, shape)):
        return None
    for label in result:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            pairs.append((first, second))
            labels = [*labels[:first], *labels[first + 1 : second], *labels[second + 1 :], label]
    return pairs, tuple(map(labels.index, result))


def _from_sublists(args):
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

    def word(labels):
        if any(n is not ... and not 0 <= n < len(letters) for n in labels):
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
        return "".join("..." if n is ... else letters[n] for n in labels)

    pairs = len(args) // 2
    equation = ",".join(word(args[2 * i + 1]) for i in range(pairs))
    if len(args) % 2:
        equation += "->" + word(args[-1])
    return equation, list(args[: 2 * pairs : 2])


@composite()
def inner(input: Array, other: Array, *, out=None):
    """The sums of products over the last dimension of both; a number multiplies."""
    into = {} if out is None else {"out": out}
    if not input.ndim or not other.ndim:
        return mul(input, other, **into)
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{size_of(input.shape)} and {size_of(other.shape)}"
        )
    return tensordot(input, other, ((-1,), (-1,)), **into)


@op(where="torch", grad_name="ViewBackward0", out=_TENSORDOT_OUT)
def tensordot(a: Array, b: Array, dims: int | tuple = 2) -> Array:
    """The product of two tensors summed over pairs of dimensions, or over the last and first `dims`."""
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > builtins.min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left, right = range(-dims, 0), range(dims)
    else:
        left, right = ints(dims[0]), ints(dims[1])
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    if a.dtype != b.dtype:
        raise RuntimeError("both inputs should have same dtype")
    for i, j in zip(left, right):
        n, m = a.shape[axis(i, a.ndim)], b.shape[axis(j, b.ndim)]
        if n != m and 1 not in (n, m):
            raise RuntimeError(
                "contracted dimensions need to match, but first has size "
                f"{n} in dim {i} and second has size {m} in dim {j}"
            )
        if n == 1 and m != 1:
            b = b.sum(axis(j, b.ndim), keepdims=True, dtype=accumulator(b.dtype)).astype(b.dtype)
        elif m == 1 and n != 1:
            a = a.sum(axis(i, a.ndim), keepdims=True, dtype=accumulator(a.dtype)).astype(a.dtype)
    first, second = [axis(d, a.ndim) for d in left], [axis(d, b.ndim) for d in right]
    if a.dtype == np.bool_ and a.size and b.size:
        return _bool_tensordot(a, b, first, second)
    return jnp.tensordot(a, b, (first, second))


def _bool_tensordot(a, b, first, second):
    """PyTorch has it for single results only, and there only where a transposed operand keeps it from calling dot."""
    out = jnp.tensordot(a.astype(jnp.int32), b.astype(jnp.int32), (first, second)) > 0
    if out.size > 1:
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")
    orders = [[d for d in dims if x.shape[d] > 1] for x, dims in ((a, first), (b, second))]
    if all(order == sorted(order) for order in orders):
        raise NotImplementedError("\"dot\" not implemented for 'Bool'")
    return out


@op(grad_name="UnsafeViewBackward0")
def kron(input: Array, other: Array) -> Array:
    """The Kronecker product: `other` in the place of each element of `input`, times it."""
    kind = dt.promote(dt.of(input.dtype), dt.of(other.dtype)).np
    ndim = builtins.max(input.ndim, other.ndim)
    a = input.astype(kind).reshape((1,) * (ndim - input.ndim) + input.shape)
    b = other.astype(kind).reshape((1,) * (ndim - other.ndim) + other.shape)
    wide = jnp.expand_dims(a, tuple(range(1, 2 * ndim, 2))) * jnp.expand_dims(b, tuple(range(0, 2 * ndim, 2)))
    return wide.reshape(tuple(n * m for n, m in zip(a.shape, b.shape)))


kron.guards(input=False, other=False)
