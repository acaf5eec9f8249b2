"""Sizes that may change: as torch.onnx.export takes them, brought to the form of torch.export."""

from ..export import specs
from ..export.dim import Dim, DimHint
from ..tensor import Tensor
from ..utils import _pytree

__all__ = ["changing", "names_of"]


def changing(model, args, kwargs, dynamic_shapes, dynamic_axes, input_names):
    """(args, kwargs, dynamic_shapes, [{dimension: its name or None} of each leaf]) for torch.export.

    A size of 1 becomes 2: an example of one row stands for any number of them, where torch.export would take it for fixed.
    """
    if dynamic_shapes is None and not dynamic_axes:
        return args, kwargs, None, []
    inputs = specs.named(model, args, kwargs)
    order = [*(name for name in inputs if name not in kwargs), *kwargs]
    trees = {name: _pytree.tree_flatten(inputs[name]) for name in order}
    if dynamic_shapes is None:
        wanted = iter(_by_names(order, trees, input_names, dynamic_axes))
        given = {name: [next(wanted) for _ in trees[name][0]] for name in order}
    else:
        if not isinstance(dynamic_shapes, dict):
            dynamic_shapes = dict(zip(inputs, dynamic_shapes, strict=True))
        given = {
            name: [row[1] for row in specs.leaves_of(inputs[name], dynamic_shapes.get(name), f"['{name}']", name)]
            if dynamic_shapes.get(name) is not None
            else [None] * len(trees[name][0])
            for name in order
        }
    dims, shapes, names, leaves = {}, {}, [], []
    for name in order:
        found = [_sizes(leaf, spec, dims) for leaf, spec in zip(trees[name][0], given[name])]
        shapes[name] = _pytree.tree_unflatten(found, trees[name][1])
        for leaf, sizes in zip(trees[name][0], found):
            names.append({d: _name(s) for d, s in (sizes or {}).items()})
            leaves.append(_widened(leaf, sizes or {}))
    args, kwargs = _pytree.tree_unflatten(leaves, _pytree.tree_flatten((args, kwargs))[1])
    return args, kwargs, {name: shapes[name] for name in inputs}, names


def _by_names(order, trees, input_names, axes):
    """The entry of `dynamic_axes` for each leaf: inputs are named by `input_names`, else as their arguments."""
    own = [name for name in order for _ in trees[name][0]]
    for k, name in enumerate([*input_names, *own[len(input_names) :]][: len(own)]):
        wanted = axes.get(name, axes.get(own[k]))
        yield {d: Dim.DYNAMIC for d in wanted} if isinstance(wanted, (list, tuple)) else wanted


def _sizes(leaf, spec, dims):
    """{dimension: Dim or DimHint} of one leaf, or None."""
    if spec is None or not isinstance(leaf, Tensor):
        return None
    pairs = spec.items() if isinstance(spec, dict) else enumerate(spec)
    found = {}
    for d, size in pairs:
        if isinstance(size, str):
            size = dims.setdefault(size, Dim(size))
        if isinstance(size, Dim) or isinstance(size, DimHint) and size.kind != "STATIC":
            found[d % leaf.dim()] = size
    return found or None


def _name(size):
    return size.__name__ if isinstance(size, Dim) else None


def _widened(leaf, sizes):
    """The example with two where a size that may change is one."""
    if not any(leaf.shape[d] == 1 for d in sizes):
        return leaf
    return leaf.expand(*(2 if d in sizes and n == 1 else n for d, n in enumerate(leaf.shape))).clone()


def names_of(program, names):
    """The sizes of each tensor that goes in: numbers, and names of those that may change."""
    found, unnamed = [], 0
    for k, check in enumerate(program.checks):
        if check[0] == "value":
            continue
        sizes = list(check[0])
        for d, n in enumerate(sizes):
            if n is None:
                sizes[d] = names[k].get(d) if k < len(names) else None
                if sizes[d] is None:
                    sizes[d] = f"s{unnamed}"
                    unnamed += 1
        found.append(sizes)
    return found
