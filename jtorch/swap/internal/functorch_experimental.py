"""functorch.experimental: what is in torch.func by now."""

import functools

from ...func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_, vmap
from ...utils._pytree import tree_leaves
from . import functorch_control_flow as control_flow

__all__ = ["chunk_vmap", "control_flow", "functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]


def chunk_vmap(func, in_dims=0, out_dims=0, randomness="error", chunks=2):
    """vmap in so many parts, one after the other, which need less memory."""
    if chunks == 1:
        return vmap(func, in_dims, out_dims, randomness)

    @functools.wraps(func)
    def in_parts(*args, **kwargs):
        dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
        sizes = [t.shape[d] for a, d in zip(args, dims) if isinstance(d, int) for t in tree_leaves(a)]
        return vmap(func, in_dims, out_dims, randomness, chunk_size=max(-(-sizes[0] // chunks), 1))(*args, **kwargs)

    return in_parts
