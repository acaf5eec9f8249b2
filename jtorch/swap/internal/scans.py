"""torch._higher_order_ops.associative_scan: the running results of an associative function along a dimension."""

from ... import functions as torch
from ...func import vmap
from ...func.trees import flatten, unflatten
from ...lifted import tied
from ...tensor import Tensor

__all__ = ["associative_scan"]


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """Tensors like `xs` (one, or a nested tuple, list or dict of them) whose entry k along `dim` combines entries 0 to k.

    combine_fn(a, b) takes two entries of `xs`, without `dim`, and returns one. It is called about 2 log2(n) times, on batches
    of entries. ValueError: combine_fn is not callable, the mode is neither "generic" nor "pointwise" (accelerators only), there is
    nothing to go through.
    """
    leaves, tree = flatten(xs)
    _check(combine_fn, leaves, dim, reverse, combine_mode)
    given, leaves = leaves, [torch.movedim(x, dim, 0) for x in leaves]
    batched = vmap(combine_fn)

    def combine(a, b):
        made = flatten(batched(unflatten(tree, a), unflatten(tree, b)))[0]
        if len(made) != len(a):
            raise AssertionError(
                f"Combine_fn received wrong number of arguments, expected {2 * len(a)}, but got {len(a) + len(made)}"
            )
        return made

    def turned(values):
        return [x.flip(0) for x in values] if reverse else values

    results = turned(_running(combine, turned(leaves), leaves[0].shape[0]))
    return unflatten(tree, tied([torch.movedim(x, 0, dim) for x in results], given))


def _check(combine_fn, leaves, dim, reverse, combine_mode):
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if not all(isinstance(x, Tensor) for x in leaves):
        raise ValueError("xs leaves must be a Tensor")
    if combine_mode == "pointwise" and any(x.device.type == "cpu" for x in leaves):
        raise ValueError("For combine_mode='pointwise', all input tensors need to be on CUDA or XPU")
    at = dim + leaves[0].ndim if dim < 0 else dim
    if any(x.ndim <= at or not x.shape[at] for x in leaves):
        raise ValueError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")


def _running(combine, xs, n):
    """Pairs first, then their running results (the odd entries), then the even entries between."""
    if n < 2:
        return xs
    odd = _running(combine, combine([x[: n - 1 : 2] for x in xs], [x[1::2] for x in xs]), n // 2)
    if n > 2:
        before = [x[: (n - 1) // 2] for x in odd]
        rest = combine(before, [x[2::2] for x in xs])
        even = [torch.cat([x[:1], more]) for x, more in zip(xs, rest)]
    else:
        even = [x[:1] for x in xs]
    woven = [torch.stack([a[: n // 2], b], 1).flatten(0, 1) for a, b in zip(even, odd)]
    return [torch.cat([w, a[n // 2 :]]) if n % 2 else w for w, a in zip(woven, even)]
