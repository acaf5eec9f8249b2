"""torch._higher_order_ops: loops over slices, as Python loops on the tape. XLA makes one program of what they record."""

from ... import aten, errors, errors_extend
from ...control import check_alike, cond, unwritten, while_loop
from ...dispatch.dispatched import OpOverload
from ...functions import promote_types, stack
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


def _slices(xs, dim):
    """The leaves of a tree of tensors, how to put them together again, and how many slices each has along `dim`."""
    leaves, tree = _pytree.tree_flatten(xs)
    if not leaves or not all(isinstance(x, Tensor) for x in leaves):
        raise RuntimeError("All xs leaves must be a Tensor, and there must be at least one")
    for x in leaves:
        if not -x.ndim <= dim < x.ndim:
            bounds = f"[{-x.ndim}, {x.ndim - 1}]"
            raise IndexError(f"Dimension out of range (expected to be in range of {bounds}, but got {dim})")
    sizes = {x.shape[dim] for x in leaves}
    if len(sizes) > 1:
        raise RuntimeError(f"All xs leaves must have the same size along dim {dim}, got {sorted(sizes)}")
    (size,) = sizes
    if size == 0:
        raise RuntimeError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")
    return leaves, tree, size


def _stacked(rows, dim=0):
    """One tree of tensors from a list of equal trees."""
    trees = [_pytree.tree_flatten(row) for row in rows]
    columns = zip(*(leaves for leaves, _ in trees))
    return _pytree.tree_unflatten([stack(list(column), dim) for column in columns], trees[0][1])


def scan(combine_fn, init, xs, *, dim=0, reverse=False):
    """carry, y = combine_fn(carry, x) for each slice x of `xs` along `dim`: the last carry, and the ys stacked along `dim`.

    RuntimeError: xs are not tensors with as many slices each; the carry changes in number, shape or dtype, or is written to.
    IndexError: no such dimension.
    """
    if not callable(combine_fn):
        raise RuntimeError("Combine_fn must be a callable, but got " + str(combine_fn))
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if not _pytree.tree_flatten(xs)[0]:
        return init, []
    for x in _pytree.tree_leaves(init):
        if not isinstance(x, Tensor):
            raise RuntimeError(f"All init leaves must be a Tensor but got {x}")
    leaves, tree, size = _slices(xs, dim)
    carry, form, made = init, _pytree.tree_structure(init), [None] * size
    for k in reversed(range(size)) if reverse else range(size):
        before = _pytree.tree_leaves(carry)
        with unwritten("torch.ops.higher_order.scan", before):
            result = combine_fn(carry, _pytree.tree_unflatten([x.select(dim, k) for x in leaves], tree))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise errors_extend.scan_returns(result)
        after, made[k] = result
        now = _pytree.tree_leaves(after)
        check_alike(("init", "carry"), before, now)
        carry = _pytree.tree_unflatten(now, form)
    return after, _stacked(made, dim)


def map(f, xs, *args):
    """f(x, *args) for each slice x of `xs` along dimension 0, stacked."""
    leaves, tree, size = _slices(xs, 0)
    return _stacked([f(_pytree.tree_unflatten([x[k] for x in leaves], tree), *args) for k in range(size)])


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
