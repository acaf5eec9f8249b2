"""torch._higher_order_ops: loops over slices, as Python loops on the tape. XLA makes one program of what they record."""

from ... import aten, errors, errors_extend
from ...control import check_alike, cond, unwritten, while_loop
from ...dispatch.dispatched import OpOverload
from ...functions import promote_types, stack
from ...lifted import tied
from ...tensor import Tensor
from ...utils import _pytree
from .scans import associative_scan

__all__ = [
    "associative_scan",
    "cond",
    "foreach_map",
    "inline_asm_elementwise",
    "map",
    "out_dtype",
    "scan",
    "while_loop",
]


def _whole(dim, first) -> int:
    """A dimension of the first of the tensors that are gone through, from the left."""
    if not isinstance(dim, int):
        raise RuntimeError(f"Dim must be an int, but got {type(dim)}")
    ndim = max(first.ndim, 1) if isinstance(first, Tensor) else 1
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    return dim % ndim


def scan(combine_fn, init, xs, *, dim=0, reverse=False):
    """carry, y = combine_fn(carry, x) for each slice x of `xs` along `dim`: the last carry, and the ys stacked along `dim`.

    RuntimeError: xs are not tensors with as many slices each; the carry changes in number, shape or dtype, or is written to, or an x.
    IndexError: no such dimension.
    """
    leaves, tree = _pytree.tree_flatten(xs)
    if not leaves:
        return init, []
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    dim = _whole(dim, leaves[0])
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    start, form = _pytree.tree_flatten(init)
    if not start:
        raise RuntimeError("scan() operator requires init leaves.")
    for name, tensors in (("init", start), ("xs", leaves)):
        for x in tensors:
            if not isinstance(x, Tensor):
                raise RuntimeError(f"All {name} leaves must be a Tensor but got {x}")
    if any(x.ndim <= dim or not x.shape[dim] for x in leaves):
        raise RuntimeError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")
    size = leaves[0].shape[dim]
    if any(x.shape[dim] != size for x in leaves):
        raise RuntimeError(f"All xs leaves must have the same size along dim {dim}, got {[x.shape for x in leaves]}")
    carry, made = init, [None] * size
    for k in reversed(range(size)) if reverse else range(size):
        before = _pytree.tree_leaves(carry)
        with unwritten("torch.ops.higher_order.scan", before + leaves):
            result = combine_fn(carry, _pytree.tree_unflatten([x.select(dim, k) for x in leaves], tree))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise errors_extend.scan_returns(result)
        after, y = result
        now, last = _pytree.tree_flatten(after)
        check_alike(("init", "carry"), before, now)
        carry = _pytree.tree_unflatten(now, form)
        made[k], shape = _pytree.tree_flatten(y)
    stacked = [stack(list(column)) for column in zip(*made)]
    stacked = [x.movedim(0, dim) if dim < x.ndim else x for x in stacked]
    results = tied(now + stacked, start + leaves)
    return _pytree.tree_unflatten(results[: len(now)], last), _pytree.tree_unflatten(results[len(now) :], shape)


def map(f, xs, *args):
    """f(x, *args) for each slice x of `xs` along dimension 0, stacked; None stays None.

    RuntimeError: xs are not tensors with as many slices each, or f writes to what it is given.
    """
    leaves, tree = _pytree.tree_flatten(xs)
    if not all(isinstance(x, Tensor) for x in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    shapes = [x.shape for x in leaves]
    size = shapes[0][0]
    if size == 0:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    if any(shape[0] != size for shape in shapes):
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")
    given = leaves + _pytree.tree_leaves(args)
    with unwritten("torch.ops.higher_order.map_impl", given):
        rows = [f(_pytree.tree_unflatten([x[k] for x in leaves], tree), *args) for k in range(size)]
    form = _pytree.tree_structure(rows[0])
    columns = zip(*(_pytree.tree_leaves(row) for row in rows))
    results = [None if column[0] is None else stack(list(column)) for column in columns]
    return _pytree.tree_unflatten(tied(results, given), form)


def foreach_map(op, *operands, **kwargs):
    """op on the elements of the lists among `operands`, one after the other; what is no list goes to each call."""
    many = [x for x in operands if isinstance(x, (list, tuple))]
    if not many or len({len(x) for x in many}) > 1:
        raise RuntimeError("foreach_map: there must be a list among the operands, and all of one length")
    return [op(*(x[k] if isinstance(x, (list, tuple)) else x for x in operands), **kwargs) for k in range(len(many[0]))]


_WIDENING = ("linear.default", "mm.default", "conv2d.default", "convolution.default", "mul.Tensor", "mul.Scalar", "div.Tensor", "div.Scalar")  # fmt: skip


def out_dtype(op, output_dtype, *args):
    """op(*args) computed in the dtype of its operands and `output_dtype` together, as `output_dtype`: int8 products in int32.

    ValueError: op is not one of the operators that products are made of.
    """
    if not isinstance(op, OpOverload):
        raise ValueError("out_dtype's first argument must be an OpOverload")
    if op.namespace != "aten" or op.__name__ not in _WIDENING:
        allowed = [getattr(getattr(aten, n.partition(".")[0]), n.partition(".")[2]) for n in _WIDENING]
        raise ValueError(f"out_dtype only allows the following operators: {allowed}.")
    wide = [promote_types(x.dtype, output_dtype) if isinstance(x, Tensor) else None for x in args]
    result = op(*(x if t is None else x.to(t) for x, t in zip(args, wide)))
    return result.to(output_dtype)


def inline_asm_elementwise(*inputs, **options):
    """Raises: assembly for one kind of GPU."""
    raise errors.unsupported("assembly in an operation", instead="torch's own operations")
