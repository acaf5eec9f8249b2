"""Scaled dot product attention, with its derivative from the saved weights. Knows arrays only."""

import functools
import math
import operator

import jax
import jax.numpy as jnp
from jax import Array, lax

from jtorch import config
from jtorch import errors_nn as errors
from jtorch.core import dtype as dtypes
from jtorch.core import shapes

from . import backend, formats
from .linear import torch_dropout
from .matmul import matmul
from .registry import Key, composite, op

# Every product has stored operands: XLA's CPU compiler otherwise computes the softmax again inside the
# transposed copies that the backward products read. What is transposed is the smaller operand, never the weights. These are not
# divided by their sums: the results are, which are smaller.

BLOCKS = ((256, 4), (64, 2), (0, 1))  # queries from which on attention on the CPU takes so many blocks of them,
LEAST = 1 << 18  # where it has so many scores
MOST = BLOCKS[0][1]


def _dot(a: Array, b: Array) -> Array:
    return jnp.matmul(a, b, preferred_element_type=backend.accumulator(a.dtype))


def _scale(query: Array, scale: float | None) -> float:
    return 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale


def _grouped(query: Array, x: Array, enable_gqa: bool) -> Array:
    """Keys or values repeated for the query heads that share them."""
    if not enable_gqa or query.shape[-3] == x.shape[-3]:
        return x
    return jnp.repeat(x, query.shape[-3] // x.shape[-3], axis=-3)


def _spans(query: Array, key: Array, is_causal: bool) -> list[tuple[int, int, int]]:
    """The blocks of queries that are attended by themselves: (first, end, how many keys they may see).

    A causal block sees no key behind its end, so that of four blocks five eighths of the products are left. Others gain what
    the processor's caches then hold.
    """
    rows, columns = query.shape[-2], key.shape[-2]
    matrices = max(math.prod(x.shape[:-2]) for x in (query, key))
    few = not backend.on_cpu() or matrices * rows * columns < LEAST
    count = 1 if few else next(n for least, n in BLOCKS if rows >= least)
    size = max(-(-rows // count), 1)
    spans = [(first, min(first + size, rows)) for first in range(0, max(rows, 1), size)]
    return [(first, end, min(end, columns) if is_causal else columns) for first, end in spans]


def _cut(x: Array | None, first: int, end: int, seen: int) -> Array | None:
    """A block's part of what is broadcast against (rows, columns)."""
    if x is None:
        return None
    if x.ndim > 1 and x.shape[-2] != 1:
        x = x[..., first:end, :]
    return x if x.shape[-1] == 1 else x[..., :seen]


def _weights(query, key, mask, first, is_causal, scale):
    """exp(score - largest score of the row), and the reciprocals of its sums over the keys."""
    scores = _dot(query, key.mT) if scale == 1 else _dot(query, key.mT) * scale
    rows, columns = scores.shape[-2:]
    if not columns:  # no keys at all: nothing to find the largest of, and zeros in the end
        return scores, jnp.ones((*scores.shape[:-1], 1), scores.dtype)
    if is_causal:
        before = jnp.tril(jnp.ones((rows, columns), bool), first)
        if mask is None:
            mask = before
        else:
            mask = mask & before if mask.dtype == bool else jnp.where(before, mask, -jnp.inf)
    if mask is None:
        top = jnp.max(scores, axis=-1, keepdims=True)
    else:
        scores = jnp.where(mask, scores, -jnp.inf) if mask.dtype == bool else scores + mask
        # a row that sees nothing attends to nothing: zeros, as in PyTorch
        top = jnp.maximum(jnp.max(scores, axis=-1, keepdims=True), jnp.finfo(scores.dtype).min)
    e = jnp.exp(scores - lax.stop_gradient(top))
    total = jnp.sum(e, axis=-1, keepdims=True)
    return e, 1 / (total if mask is None else jnp.where(total == 0, 1, total))


def _attend(query, key, value, mask, is_causal, scale, enable_gqa, keep=None, dropout_p=0.0):
    """The result, the reciprocals of the sums of weights, and the weights of each block before dropout."""
    scale = _scale(query, scale)
    if query.dtype not in backend.NARROW:  # fewer numbers than the scores are
        query, scale = query * jnp.asarray(scale, query.dtype), 1
    query = backend.materialize(query)
    key, value = (backend.materialize(_grouped(query, x, enable_gqa)) for x in (key, value))
    outs, inverses, weights = [], [], []
    for first, end, seen in _spans(query, key, is_causal):
        e, inverse = _weights(
            query[..., first:end, :], key[..., :seen, :], _cut(mask, first, end, seen), first, is_causal, scale
        )
        e = backend.materialize(e.astype(query.dtype))
        used = e if keep is None else _dropped(e, keep[..., first:end, :seen], dropout_p)
        outs.append((_dot(used, value[..., :seen, :]) * inverse).astype(query.dtype))
        inverses.append(inverse)
        weights.append(e)
    return _rows(outs), _rows(inverses), weights


def _rows(blocks):
    return blocks[0] if len(blocks) == 1 else jnp.concatenate(blocks, -2)


def _kept(out, inverse, weights, *more):
    """What an attention op gives: its results, then as many arrays of weights as there may be blocks."""
    return out, *more, inverse, *weights, *[jnp.zeros((0,), out.dtype)] * (MOST - len(weights))


def _dropped(x, keep, p):
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return jnp.where(keep, x * jnp.asarray(scale, x.dtype), jnp.zeros((), x.dtype))


def _fused(query, key, value, mask, enable_gqa) -> bool:
    """Whether cuDNN's kernel takes these: an NVIDIA GPU, 16-bit floats, 4 dimensions, head sizes it knows."""
    if backend.on_cpu() or query.dtype not in backend.NARROW or query.ndim != 4:
        return False
    if "NVIDIA" not in jax.devices()[0].device_kind:
        return False
    size = query.shape[-1]
    same = value.shape[-1] == size and query.shape[0] == key.shape[0] == value.shape[0]
    grouped = query.shape[1] == key.shape[1] or enable_gqa
    return same and grouped and mask is None and size % 8 == 0 and size <= 128 and query.shape[2] > 1


def _fused_attention(is_causal, scale):
    def run(query, key, value):
        swapped = (x.swapaxes(1, 2) for x in (query, key, value))
        with jax.disable_jit(False):  # jax calls cuDNN from a function that is compiled
            out = jax.nn.dot_product_attention(
                *swapped, is_causal=is_causal, scale=_scale(query, scale), implementation="cudnn"
            )
        return out.swapaxes(1, 2)

    return run


_NAME = "ScaledDotProductFlashAttentionForCpuBackward0"


def _takes_both(query, key, value, enable_gqa) -> bool:
    """Whether PyTorch's kernel for the CPU runs, which takes a mask beside `is_causal`; its other one refuses them."""
    if not query.ndim == key.ndim == value.ndim == 4 or not query.shape[-1] == key.shape[-1] == value.shape[-1]:
        return False
    same = query.shape[0] == key.shape[0] == value.shape[0]
    return (
        same
        and query.shape[-2] * key.shape[-2] > 0
        and (enable_gqa or query.shape[1] == key.shape[1] == value.shape[1])
    )


def _like_query(outs, query, key, value, attn_mask, is_causal, scale, enable_gqa, plain):
    """The query's order of dimensions, where PyTorch's kernel for the CPU runs: heads that came of a transpose go back without a copy."""
    if plain or not _takes_both(query, key, value, enable_gqa) or any(x.strides[-1] != 1 for x in (query, key, value)):
        return [None] * len(outs)
    return [*formats.keep_format(outs[:1], query), *[None] * (len(outs) - 1)]


@op(where="", hidden=1 + MOST, grad_name=_NAME, strides=_like_query)
def attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    plain: bool = False,
) -> tuple:
    """`softmax(query @ key.mT * scale + mask) @ value`; plain: row-major, whatever the query's strides."""
    if _fused(query, key, value, attn_mask, enable_gqa):
        return _kept(_fused_attention(is_causal, scale)(query, key, value), jnp.zeros((), query.dtype), [])
    return _kept(*_attend(query, key, value, attn_mask, is_causal, scale, enable_gqa))


attention.vjp_together(
    "query key value attn_mask",
    lambda g, query, key, value, attn_mask, is_causal, scale, enable_gqa, out: attention_grad(
        g, query, key, value, attn_mask, out[0], out[1], out[2:], None, is_causal, scale, enable_gqa, 0.0
    ),
)


def _unless_plain(call):
    """PyTorch's plain products keep scaled copies of query and keys, and the probabilities."""
    return None if _takes_both(call["query"], call["key"], call["value"], call["enable_gqa"]) else False


attention.guards(
    query=_unless_plain,
    key=_unless_plain,
    value=lambda call: None if _unless_plain(call) is None else bool(call["needs"] & {"query", "key"}),
    out0=_unless_plain,
)


@op(where="", hidden=2 + MOST, grad_name=_NAME)
def attention_dropout(
    query: Array,
    keys: Array,
    value: Array,
    attn_mask: Array | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    dropout_p: float = 0.0,
    *,
    key: Key,
) -> tuple:
    """`attention` with dropout of the probabilities."""
    shape = (
        *jnp.broadcast_shapes(query.shape[:-2], _lead(query, keys, enable_gqa)),
        query.shape[-2],
        keys.shape[-2],
    )
    keep = backend.keep_mask(key, 1.0 - dropout_p, shape)
    return _kept(*_attend(query, keys, value, attn_mask, is_causal, scale, enable_gqa, keep, dropout_p), keep)


def _lead(query, key, enable_gqa):
    return query.shape[:-2] if enable_gqa else key.shape[:-2]


attention_dropout.vjp_together(
    "query keys value attn_mask",
    lambda g, query, keys, value, attn_mask, is_causal, scale, enable_gqa, dropout_p, out: attention_grad(
        g, query, keys, value, attn_mask, out[0], out[2], out[3:], out[1], is_causal, scale, enable_gqa, dropout_p
    ),
)


# The derivative: one op with the cotangents of query, key, value and mask; what nobody uses, XLA drops.


def _fit(x: Array, like: Array) -> Array:
    """Sum a cotangent over the dimensions that its operand was broadcast along."""
    lead = x.ndim - like.ndim
    x = jnp.sum(x, axis=tuple(range(lead)), keepdims=False) if lead else x
    axes = tuple(i for i, (a, b) in enumerate(zip(x.shape, like.shape)) if a != b)
    return jnp.sum(x, axis=axes, keepdims=True) if axes else x


def _ungroup(x: Array, like: Array, enable_gqa: bool) -> Array:
    if enable_gqa and x.shape[-3] != like.shape[-3]:
        heads = like.shape[-3]
        x = x.reshape(*x.shape[:-3], heads, x.shape[-3] // heads, *x.shape[-2:]).sum(-3)
    return _fit(x, like).astype(like.dtype)


def _widest(blocks, size):
    """The sum of blocks that begin together along the last dimension, as long as `size`."""
    pad = lambda x: jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, size - x.shape[-1])])
    return functools.reduce(operator.add, map(pad, blocks))


def _attend_grad(grad, query, key, value, mask, out, inverse, weights, keep, is_causal, scale, enable_gqa, dropout_p):
    scale, dtype = _scale(query, scale), query.dtype
    grad, query = backend.materialize(grad), backend.materialize(query)
    k, v = (backend.materialize(_grouped(query, x, enable_gqa)) for x in (key, value))
    # sum(dprobs * probs) over the keys, from the far smaller result
    wide = inverse.dtype
    mean = jnp.sum(grad.astype(wide) * out.astype(wide), axis=-1, keepdims=True) * inverse
    scaled = backend.materialize((grad.astype(wide) * inverse).astype(dtype))
    dq, dk, dv, dscores = [], [], [], []
    columns = k.shape[-2]
    for (first, end, seen), e in zip(_spans(query, k, is_causal), weights):
        g, q = scaled[..., first:end, :], query[..., first:end, :]
        used, dweights = e, _dot(g, v[..., :seen, :].mT)
        if keep is not None:
            kept = keep[..., first:end, :seen]
            used, dweights = _dropped(e, kept, dropout_p), _dropped(dweights, kept, dropout_p)
        d = backend.materialize(e.astype(wide) * (dweights - mean[..., first:end, :]))
        dscores.append(d)
        narrow = d.astype(dtype)
        dq.append(_dot(narrow, k[..., :seen, :]))
        dk.append(_dot(backend.materialize(q.mT), narrow))
        dv.append(_dot(backend.materialize(g.mT), used))
    grads = (
        _fit(_rows(dq) * scale, query).astype(dtype),
        _ungroup(_widest(dk, columns).mT * scale, key, enable_gqa),
        _ungroup(_widest(dv, columns).mT, value, enable_gqa),
    )
    if mask is None:
        return grads
    if not jnp.issubdtype(mask.dtype, jnp.floating):
        return *grads, jnp.zeros(mask.shape, dtype)
    whole = _rows([_widest([d], columns) for d in dscores])
    return *grads, _fit(whole, mask).astype(mask.dtype)


@op(where="")
def attention_grad(
    grad: Array,
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None,
    out: Array,
    inverse: Array,
    weights: list[Array],
    keep: Array | None,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    dropout_p: float,
) -> tuple:
    """The cotangents of query, key, value and, where there is one, the mask."""

    def fast(grad, query, key, value, mask, out, inverse, weights, keep):
        if keep is None and _fused(query, key, value, mask, enable_gqa):
            return jax.vjp(_fused_attention(is_causal, scale), query, key, value)[1](grad)
        saved = out, inverse, weights, keep
        return _attend_grad(grad, query, key, value, mask, *saved, is_causal, scale, enable_gqa, dropout_p)

    def plain(grad, query, key, value, mask, out, inverse, weights, keep):
        saved = *_attend(query, key, value, mask, is_causal, scale, enable_gqa, keep, dropout_p), keep
        return _attend_grad(grad, query, key, value, mask, *saved, is_causal, scale, enable_gqa, dropout_p)

    args = grad, query, key, value, attn_mask, out, inverse, list(weights), keep
    return backend.differentiated_as(fast, plain)(*args)


def _check_attention(query, key, value, attn_mask, is_causal, enable_gqa, dropped=False):
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise errors.attention_ranks(query.ndim, key.ndim, value.ndim)
    if not query.dtype is key.dtype is value.dtype:
        raise errors.attention_dtypes(query.dtype, key.dtype, value.dtype)
    if attn_mask is not None:
        shapes.wrap_dim(-2, attn_mask.ndim)
        if attn_mask.dtype not in (dtypes.bool_, dtypes.float32, query.dtype):
            raise errors.attention_mask_dtype(attn_mask.dtype, query.dtype)
        if is_causal and (dropped or not _takes_both(query, key, value, enable_gqa)):
            raise errors.attention_mask_causal()
    if not query.dtype.is_floating_point:
        if query.dtype.is_complex:
            raise errors.not_implemented("softmax_lastdim_kernel_impl", query.dtype)
        raise errors.scalar_type(dtypes.float32, query.dtype)
    if enable_gqa and (query.ndim < 3 or key.shape[-3] == 0 or query.shape[-3] % key.shape[-3]):
        raise errors.attention_groups()
    batch = math.prod(query.shape[:-2])
    if query.shape[-1] != key.shape[-1]:
        raise errors.bmm_shapes(batch, query.shape[-1], math.prod(key.shape[:-2]), key.shape[-1])
    if key.shape[-2] != value.shape[-2]:
        raise errors.bmm_shapes(batch, key.shape[-2], math.prod(value.shape[:-2]), value.shape[-2])
    if not enable_gqa:
        before = shapes.broadcast(shapes.broadcast(query.shape[:-2], key.shape[:-2]), value.shape[:-2])
        if attn_mask is not None:
            shapes.broadcast((*before, query.shape[-2], key.shape[-2]), tuple(attn_mask.shape))


@attention.check
def _(query, key, value, attn_mask=None, is_causal=False, scale=None, enable_gqa=False, plain=False):
    _check_attention(query, key, value, attn_mask, is_causal, enable_gqa)


@attention_dropout.check
def _(query, keys, value, attn_mask, is_causal, scale, enable_gqa, dropout_p, *, key=None):
    _check_attention(query, keys, value, attn_mask, is_causal, enable_gqa, dropped=True)


@op(where="")
def attention_probabilities(
    query: Array, keys: Array, attn_mask: Array | None, is_causal: bool, scale: float | None, enable_gqa: bool
) -> Array:
    """softmax(query @ keys.mT * scale + mask)."""
    keys = _grouped(query, keys, enable_gqa)
    e, inverse = _weights(query, keys, attn_mask, 0, is_causal, _scale(query, scale))
    return (e * inverse).astype(query.dtype)


def _attention_by_host(query, key, value, attn_mask, is_causal, scale, enable_gqa, dropout_p):
    """Attention whose dropout is PyTorch's own (config.host_dropout)."""
    probs = torch_dropout(attention_probabilities(query, key, attn_mask, is_causal, scale, enable_gqa), dropout_p, True)
    if enable_gqa and value.shape[-3] != query.shape[-3]:
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    return matmul(probs, value)


@composite(where="nn.functional")
def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p=0.0,
    is_causal=False,
    scale=None,
    enable_gqa=False,
):
    """`softmax(query @ key.mT * scale + mask) @ value`, with dropout of the softmax.

    A boolean mask keeps where true; a float one is added to the scores."""
    args = (
        query,
        key,
        value,
        attn_mask,
        bool(is_causal),
        None if scale is None else float(scale),
        bool(enable_gqa),
    )
    if dropout_p > 1:
        raise errors.dropout_probability(dropout_p, RuntimeError)
    if dropout_p > 0 and config.host_dropout:
        return _attention_by_host(*args, float(dropout_p))
    if dropout_p > 0:
        return attention_dropout(*args, float(dropout_p))
    if attn_mask is not None and attn_mask.requires_grad:  # only PyTorch's plain kernel has its derivative
        return attention(*args, True)
    return attention(*args)
