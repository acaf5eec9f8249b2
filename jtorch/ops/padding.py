"""Padding: by a number, by what is reflected, repeated or comes round again; negative numbers crop."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from jtorch import errors_arguments
from jtorch import errors_nn as errors
from jtorch.core import dtype as dtypes
from jtorch.core import shapes, wide
from jtorch.core.channel_order import FOLLOWS, IMAGES
from jtorch.core.dtype import BOOL
from jtorch.errors import argument

from . import channels, formats
from .registry import Array, composite, op


def _pairs(pad):
    """(before, after) of each padded dimension, the last dimension first."""
    return list(zip(pad[::2], pad[1::2]))


def _pad_constant(input, pad, value, last):
    config = [(0, 0, 0)] * input.ndim
    for i, (lo, hi) in enumerate(_pairs(pad)):
        config[last - i] = (lo, hi, 0)
    value = float(value) if type(value) is int and wide.is_wide(value) else value
    return lax.pad(input, jnp.asarray(0 if value is None else value).astype(input.dtype), config)


def _reflected(size, lo, hi):
    at = np.abs(np.arange(-lo, size + hi))
    return np.where(at >= size, 2 * (size - 1) - at, at)


def _wrapped(size, lo, hi):
    kept = np.arange(max(-lo, 0), size - max(-hi, 0))  # cropped first: what is cut off does not come back
    if lo + hi + size == 0:
        return kept[:0]
    return kept[np.arange(-max(lo, 0), len(kept) + max(hi, 0)) % max(len(kept), 1)]


_SOURCES = {
    "reflect": _reflected,
    "replicate": lambda size, lo, hi: np.clip(np.arange(-lo, size + hi), 0, size - 1),
    "circular": _wrapped,
}


def _runs(index):
    """The maximal runs of `index` that go by a constant step of 1, -1 or 0: (first, last, step)."""
    runs, start = [], 0
    while start < len(index):
        stop, step = start + 1, None
        while stop < len(index) and int(index[stop] - index[stop - 1]) in ((-1, 0, 1) if step is None else (step,)):
            step = int(index[stop] - index[stop - 1])
            stop += 1
        runs.append((int(index[start]), int(index[stop - 1]), step or 0, stop - start))
        start = stop
    return runs


def _take_runs(x, index, axis):
    """x at `index` along an axis, by slices rather than a gather: its derivative is then no scatter."""
    if not len(index):
        return lax.slice_in_dim(x, 0, 0, axis=axis)
    parts = []
    for first, last, step, count in _runs(index):
        low, high = min(first, last), max(first, last)
        part = lax.slice_in_dim(x, low, high + 1, axis=axis)
        if step == -1:
            part = lax.rev(part, (axis % x.ndim,))
        elif step == 0 and count > 1:
            shape = list(x.shape)
            shape[axis] = count
            part = jnp.broadcast_to(part, shape)
        parts.append(part)
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis)


def _pad_name(args):
    mode, n = args["mode"], len(args["pad"]) // 2
    label = {"reflect": f"ReflectionPad{n}DBackward0", "replicate": f"ReplicationPad{n}DBackward0"}
    return label.get(mode, "CopySlices" if mode == "circular" else "ConstantPadNdBackward0")


def _pad_strides(outs, input, pad, mode="constant", value=None):
    if mode == "constant" and not any(n > 0 for n in pad):  # a clone of what is left
        return [tuple(shapes.empty_like_strides(tuple(o.shape), input.strides)) for o in outs]
    return [None] if mode == "circular" else formats.follow(outs, input)


@op(where="nn.functional _C._nn", grad_name=_pad_name, out=False, strides=_pad_strides)
def pad(input: Array, pad: tuple, mode: str = "constant", value: float | None = None) -> Array:
    """Pad the last dimensions: `pad` has (before, after) for the last, the one before it, and so on.

    Constant padding may be negative, which crops. The other modes ("reflect", "replicate", "circular") take
    what they pad with from the input.
    """
    if input.ndim in IMAGES and len(pad) // 2 <= input.ndim - 2:
        x = channels.enter(input)
        return channels.leave(_padded(x, pad, mode, value, channels.space(x.ndim) + x.ndim - 3))
    return _padded(input, pad, mode, value, input.ndim - 1)


def _padded(x, pad, mode, value, last):
    """`last`: the dimension to which the first pair belongs."""
    if mode == "constant":
        return _pad_constant(x, pad, value, last)
    for i, (lo, hi) in enumerate(_pairs(pad)):
        if lo or hi:
            x = _take_runs(x, _SOURCES[mode](x.shape[last - i], lo, hi), last - i)
    return x


pad.channels = FOLLOWS
pad.guards(input=lambda call: call["mode"] in ("reflect", "replicate") or None)


@pad.check
def _(input, pad, mode="constant", value=None):
    if not isinstance(pad, tuple):
        raise errors_arguments.no_tuple("pad", "pad", 2, pad)
    if isinstance(value, str):
        raise argument("pad", "value", "float", value, 4)
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * input.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {input.ndim}"
        )
    sizes = [(input.ndim - 1 - i, input.shape[input.ndim - 1 - i], lo, hi) for i, (lo, hi) in enumerate(_pairs(pad))]
    if mode == "constant":
        if value is not None:
            dtypes.check_number(float(value) if type(value) is int else value, input.dtype)  # so no -1 wraps
        if any(size + min(lo, 0) + min(hi, 0) < 0 for _, size, lo, hi in sizes):
            raise RuntimeError("narrow(): length must be non-negative.")
        return
    if value not in (None, 0):
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    n = len(pad) // 2
    if mode not in _SOURCES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if input.ndim not in (n + 1, n + 2) or n > 3:
        raise NotImplementedError(f"Padding size {len(pad)} is not supported for {input.ndim}D input tensor.")
    if mode != "circular" and 0 in input.shape[input.ndim - n - 1 :]:
        raise RuntimeError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
            f"input, but got: {list(input.shape)}"
        )
    for i, (dim, size, lo, hi) in enumerate(sizes):
        if mode == "reflect" and (lo >= size or hi >= size):
            raise RuntimeError(
                f"Argument #{4 + 2 * i}: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({lo}, {hi}) at dimension {dim} of input {list(input.shape)}"
            )
        if mode == "circular" and (lo > size or hi > size):
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if mode == "circular" and lo + hi + size < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
    if mode != "circular":
        _check_padded(sizes[::-1])
    if input.dtype.category == BOOL and mode != "circular":
        raise errors.not_implemented(f"{'reflection' if mode == 'reflect' else 'replication'}_pad{n}d", input.dtype)


def _check_padded(sizes):
    """Raise if nothing is left of what `reflect` or `replicate` crops: (dimension, size, before, after) of each."""
    left = [size + lo + hi for _, size, lo, hi in sizes]
    if max(left) < 1 or min(left) < 0:
        names = "DHW"[3 - len(sizes) :]
        before = ", ".join(f"{name}: {size}" for name, (_, size, _, _) in zip(names, sizes))
        after = " ".join(f"{name}: {size}" for name, size in zip(names, left))
        raise RuntimeError(f"input ({before}) is too small. Calculated output {after}")


@composite(where="torch")
def constant_pad_nd(input: Array, padding, value=0):
    """Pad the last dimensions with a number."""
    return pad(input, tuple(padding), "constant", value)
