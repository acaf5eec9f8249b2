"""Reductions over runs of elements, and the hash of a tensor. Knows arrays, never Tensor."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from .. import errors
from . import registry
from .reduce import all_dims, one_dim
from .registry import Array, composite, op

_START = {"sum": 0, "mean": 0, "prod": 1, "max": -math.inf, "min": math.inf}
_NAMES = {"amax": "max", "amin": "min"} | {name: name for name in _START}
_REDUCE = {
    "sum": jax.ops.segment_sum, "mean": jax.ops.segment_sum, "prod": jax.ops.segment_prod,
    "max": jax.ops.segment_max, "min": jax.ops.segment_min,
}  # fmt: skip


def _members(bounds, size):
    """For each position its segment; the number of segments for what belongs to none."""
    at = jnp.searchsorted(bounds, jnp.arange(size), side="right") - 1
    return jnp.where(at < 0, bounds.shape[0] - 1, at)


def _by_row(fn, batch):
    for _ in range(batch):
        fn = jax.vmap(fn)
    return fn


def _reduced(data, bounds, reduce, initial):
    """The segments of `data`, whose first dimension they divide."""
    segments = bounds.shape[0] - 1
    ids = _members(bounds, data.shape[0])
    out = _REDUCE[reduce](data, ids, segments + 1)[:segments]
    lengths = (bounds[1:] - bounds[:-1]).reshape(-1, *(1,) * (data.ndim - 1))
    start = jnp.asarray(_START[reduce] if initial is None else initial, data.dtype)
    if reduce in ("max", "min"):
        out = (jnp.maximum if reduce == "max" else jnp.minimum)(out, start)
        return jnp.where(lengths == 0, start, out)
    out = out * start if reduce == "prod" else out + start
    if reduce == "mean":
        out = jnp.where(lengths == 0, jnp.nan if initial is None else start, out / jnp.maximum(lengths, 1))
    return out.astype(data.dtype)


@op(where="", out=False, grad_name="SegmentReduceBackward0")
def _segments(data: Array, bounds: Array, reduce: str, initial: float | None, axis: int) -> Array:
    """Each segment of one dimension reduced; `bounds` are where they begin, and the end of the last."""
    return _by_row(lambda x, b: _reduced(x, b, reduce, initial), axis)(data, bounds)


_segments.vjp(
    data=lambda g, data, bounds, reduce, initial, axis, out: _segments_grad(
        g, data, bounds, out, reduce, initial, axis
    ),
)


@op(where="", out=False)
def _segments_grad(
    grad: Array, data: Array, bounds: Array, out: Array, reduce: str, initial: float | None, axis: int
) -> Array:
    """The cotangent of the data of `_segments`."""
    return _by_row(lambda g, x, b, o: _share(g, x, b, o, reduce, 1 if initial is None else initial), axis)(
        grad, data, bounds, out
    )


def _share(g, x, bounds, out, reduce, initial):
    segments = bounds.shape[0] - 1
    ids = _members(bounds, x.shape[0])
    spread = lambda v: jnp.concatenate([v, jnp.zeros_like(v[:1])])[ids] if segments else jnp.zeros_like(x)
    total = lambda v: jax.ops.segment_sum(v, ids, segments + 1)[:segments]
    if reduce == "mean":
        lengths = jnp.maximum(bounds[1:] - bounds[:-1], 1).reshape(-1, *(1,) * (x.ndim - 1))
        return spread((g / lengths).astype(x.dtype))
    if reduce in ("max", "min"):
        # elements equal to the extreme share evenly
        hit = ((x == spread(out)) | (jnp.isnan(x) & jnp.isnan(spread(out)))).astype(x.dtype)
        return hit * spread(g / jnp.maximum(total(hit), 1))
    if reduce == "prod":
        nan = jnp.isnan(x)
        odd = (x == 0) | nan  # by these the product is not divided: it is taken of the others
        count = lambda mask: spread(total(mask.astype(x.dtype)))
        others = jax.ops.segment_prod(jnp.where(odd, 1, x), ids, segments + 1)[:segments] * initial
        none = jnp.where(count(nan) > nan, jnp.asarray(jnp.nan, x.dtype), jnp.zeros((), x.dtype))
        one = jnp.where(count(odd) == 1, spread(others.astype(x.dtype)), none)
        return spread(g) * jnp.where(odd, one, jnp.where(count(odd) == 0, spread(out) / jnp.where(odd, 1, x), none))
    return spread(g)


def _check_segments(data, lengths, axis, unsafe):
    if lengths.dim() != axis + 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of lengths but got {axis}.")
    if lengths.dtype.name not in ("int32", "int64"):
        raise errors.not_implemented("_segment_reduce_lengths_cpu_kernel1", lengths.dtype)
    values = registry.host_value(lengths)
    if unsafe or values is None:
        return
    if (values < 0).any():
        raise RuntimeError("lengths contains negative value!")
    if (values.sum(-1) != data.shape[axis]).any():
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) "
            "when !unsafe."
        )


@op(where="", out=False, differentiable=False)
def _bounds_of(lengths: Array) -> Array:
    """Where segments of these lengths begin, and the end of the last."""
    ends = jnp.cumsum(lengths, axis=-1)
    return jnp.concatenate([jnp.zeros_like(ends[..., :1] if ends.shape[-1] else jnp.zeros_like(lengths)), ends], -1)


@composite(where="torch", aliases=("_segment_reduce",))
def segment_reduce(
    data: Array,
    reduce: str,
    *,
    lengths: Array | None = None,
    indices: Array | None = None,
    offsets: Array | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial=None,
):
    """The sum, mean, prod, max or min of each segment along `axis`, given by their lengths or their bounds."""
    axis = one_dim(axis, data.dim())
    if data.numel() < 0 or reduce not in _NAMES:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if offsets is None:
        _check_segments(data, lengths, axis, unsafe)
        offsets = _bounds_of(lengths)
    elif offsets.dim() != axis + 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of offsets but got {axis}.")
    if not data.dtype.is_floating_point:
        raise errors.not_implemented("_segment_reduce_cpu", data.dtype)
    return _segments(data, offsets, _NAMES[reduce], initial, axis)


# ---- hashes ----


@op(differentiable=False, out="exact", lacks={"xor_sum_cpu": "complex"})
def hash_tensor(input: Array, dim: object = (), *, keepdim: bool = False, mode: int = 0) -> Array:
    """The exclusive or of the elements' bits, as 64-bit numbers, over dimensions or all of them."""
    if input.dtype.kind in "iub":
        bits = input.astype(jnp.int64).astype(jnp.uint64) if input.dtype.kind == "i" else input.astype(jnp.uint64)
    else:
        bits = lax.bitcast_convert_type(input.astype(jnp.float64), jnp.uint64)
    dims = all_dims(dim, input.ndim)
    out = lax.reduce(bits, jnp.zeros((), jnp.uint64), lax.bitwise_xor, dims)
    return jnp.expand_dims(out, dims) if keepdim else out


@hash_tensor.check
def _(input, dim=(), *, keepdim=False, mode=0):
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if 0 in input.shape:
        if dim is None or dim == ():
            raise RuntimeError(
                "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. "
                "Specify the reduction dim with the 'dim' argument."
            )
        for d in all_dims(dim, input.ndim):
            if input.shape[d] == 0:
                raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
