"""Connectionist temporal classification: the loss of all alignments of a label sequence with a longer one."""

import numbers

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jtorch import errors as general
from jtorch import errors_nn as errors
from jtorch.core import dtype as dtypes

from . import registry
from .indexing import take
from .logic import where
from .registry import Array, composite, op

# In place of log(0): finite, so that derivatives of sums of exponentials stay numbers.
NEVER = -1e30


def _padded(targets, target_lengths):
    """Targets as (N, S): those given as one row are cut by their lengths."""
    if targets.ndim == 2:
        return targets
    if not targets.shape[0]:
        return targets.reshape(1, 0).repeat(target_lengths.shape[0], 0)
    ends = jnp.cumsum(target_lengths)
    at = (ends - target_lengths)[:, None] + jnp.arange(targets.shape[0])
    return jnp.take(targets, jnp.minimum(at, targets.shape[0] - 1))


def _log_add(*terms):
    top = lax.stop_gradient(jnp.maximum(jnp.maximum(*terms[:2]), terms[-1]))
    total = 0
    for t in terms:
        total = total + jnp.exp(t - top)
    return top + jnp.log(total)


@op(where="", grad_name="CtcLossBackward0")
def ctc_alignments(log_probs: Array, targets: Array, input_lengths: Array, target_lengths: Array, blank: int) -> Array:
    """The negative log likelihood of each sequence: log_probs (T, N, C), targets (N, S) or all in one row."""
    steps, batch, _ = log_probs.shape
    labels = _padded(targets, target_lengths)
    length = labels.shape[1]
    if length == 0:
        extended = jnp.full((batch, 1), blank, jnp.int64)
    else:
        valid = jnp.arange(length) < target_lengths[:, None]
        inner = jnp.stack([jnp.where(valid, labels, blank), jnp.full_like(labels, blank)], -1)
        inner = inner.reshape(batch, -1)
        extended = jnp.concatenate([jnp.full((batch, 1), blank, inner.dtype), inner], 1)
    states = extended.shape[1]
    emit = jnp.take_along_axis(log_probs, jnp.broadcast_to(extended, (steps, *extended.shape)), 2)
    emit = jnp.maximum(emit, NEVER)
    # a label may follow the one before it without a blank between, unless they are equal; labels stand at odd places
    skip = jnp.pad(extended[:, 2:] != extended[:, :-2], ((0, 0), (2, 0)))[:, :states] & (jnp.arange(states) % 2 == 1)
    shift = lambda a, k: jnp.pad(a, ((0, 0), (k, 0)), constant_values=NEVER)[:, :states]

    def step(alpha, at):
        t, e = at
        jump = jnp.where(skip, shift(alpha, 2), NEVER)
        new = jnp.maximum(_log_add(alpha, shift(alpha, 1), jump) + e, NEVER)
        return jnp.where((t < input_lengths)[:, None], new, alpha), None

    first = jnp.where(jnp.arange(states) < 2, emit[0], NEVER)
    alpha, _ = lax.scan(step, first, (jnp.arange(1, steps), emit[1:]))
    last = 2 * target_lengths[:, None]
    end = jnp.take_along_axis(alpha, last, 1)[:, 0]
    before = jnp.take_along_axis(alpha, jnp.maximum(last - 1, 0), 1)[:, 0]
    before = jnp.where(target_lengths > 0, before, NEVER)
    loss = -_log_add(end, before, jnp.full_like(end, NEVER))
    loss = jnp.where(input_lengths > 0, loss, jnp.where(target_lengths > 0, -NEVER, 0.0))
    loss = jnp.where(loss > -NEVER / 2, jnp.inf, loss)
    # PyTorch's gradient takes the probabilities to be normalised: it has exp(log_probs) in addition
    mass = jnp.where((jnp.arange(steps)[:, None] < input_lengths), jnp.sum(jnp.exp(log_probs), -1), 0).sum(0)
    return loss + (mass - lax.stop_gradient(mass))


def _nan_where_infinite(g, log_probs, targets, input_lengths, target_lengths, blank, out):
    """The loss's own derivative; without an alignment there is none, unless nobody asks (zero_infinity)."""
    loss = lambda x: ctc_alignments.fn(x, targets, input_lengths, target_lengths, blank)
    return jax.vjp(loss, log_probs)[1](jnp.where((out == jnp.inf) & (g != 0), jnp.nan, g))[0]


ctc_alignments.vjp(log_probs=_nan_where_infinite)

_WHILE = "(while checking arguments for ctc_loss_allocate_outputs)"


@ctc_alignments.check
def _(log_probs, targets, input_lengths, target_lengths, blank):
    if log_probs.ndim != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {log_probs.ndim}-dimensional tensor for argument #1 'log_probs' "
            + _WHILE
        )
    if targets.ndim not in (1, 2):
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {targets.ndim}-dimensional tensor for argument #2 'targets' {_WHILE}"
        )
    if targets.ndim == 2 and targets.shape[0] != log_probs.shape[1]:
        raise RuntimeError(
            f"Expected tensor to have size {log_probs.shape[1]} at dimension 0, but got size {targets.shape[0]} for "
            f"argument #2 'targets' {_WHILE}"
        )
    if not log_probs.dtype.is_floating_point or log_probs.dtype.itemsize == 2:
        raise errors.not_implemented("ctc_loss_cpu", log_probs.dtype)


@ctc_alignments.check_values
def _(log_probs, targets, input_lengths, target_lengths, blank):
    steps = log_probs.shape[0]
    for name, lengths, most in (("input", input_lengths, steps), ("target", target_lengths, None)):
        for n in () if lengths is None else lengths.tolist():
            if most is not None and n > most or n < 0:
                limit = "at least 0" if n < 0 else f"at most {most}"
                raise RuntimeError(f"Expected {name}_lengths to have value {limit}, but got value {n} {_WHILE}")
    if target_lengths is None or targets is None or not target_lengths.size:
        return
    if targets.ndim == 1:
        fits, dim, wanted = targets.shape[0] == target_lengths.sum(), 0, f"{target_lengths.sum()}"
    else:
        fits, dim, wanted = targets.shape[1] >= target_lengths.max(), 1, f"at least {target_lengths.max()}"
    if not fits:
        raise RuntimeError(
            f"Expected tensor to have size {wanted} at dimension {dim}, but got size {targets.shape[dim]} for "
            f"argument #2 'targets' {_WHILE}"
        )


_FORMS = "tensors of scores, targets and both kinds of lengths, or both kinds of lengths as tuples of ints"


def _are_tensors(values) -> bool:
    return all(hasattr(v, "shape") and not isinstance(v, np.ndarray) for v in values)


def _are_ints(lengths) -> bool:
    return isinstance(lengths, (tuple, list)) and all(
        isinstance(n, numbers.Integral) or hasattr(n, "shape") for n in lengths
    )


def _in_rows(targets, lengths):
    """Targets given as one row, as (N, the most of one): `_padded` has as many states as all of them together make.

    The width is a multiple of 4, so that batches have few shapes. Where the lengths are not known, or wrong, they stay as they are.
    """
    n = registry.host_value(lengths)
    if n is None or not n.size or n.min() < 0 or not n.max() or n.sum() != targets.shape[0]:
        return targets
    at = (np.cumsum(n) - n)[:, None] + np.arange(-(-n.max() // 4) * 4)
    return take(targets, targets.new_tensor(np.minimum(at, targets.shape[0] - 1), dtype=dtypes.int64))


@composite(where="nn.functional")
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """The loss of aligning `targets` with `log_probs` (T, N, C) or (T, C), blanks and repeats allowed."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    given = log_probs, targets, input_lengths, target_lengths
    if not (_are_tensors(given) or _are_tensors(given[:2]) and _are_ints(input_lengths) and _are_ints(target_lengths)):
        number = ("none", "mean", "sum").index(reduction)
        raise general.combination("ctc_loss", (*given, blank, number, zero_infinity), _FORMS)
    single = log_probs.ndim != 3
    if single:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0) if targets.ndim == 1 else targets
    input_lengths, target_lengths = (
        n if hasattr(n, "shape") else targets.new_tensor(n, dtype=dtypes.int64) for n in (input_lengths, target_lengths)
    )
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if lengths.dtype.is_floating_point:
            raise RuntimeError(f"{name} must be integral")
    input_lengths, target_lengths = input_lengths.reshape(-1), target_lengths.reshape(-1)
    if log_probs.ndim != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {log_probs.ndim}-dimensional tensor for argument #1 'log_probs' "
            "(while checking arguments for ctc_loss_allocate_outputs)"
        )
    if not log_probs.shape[0] or not log_probs.shape[1]:
        raise RuntimeError("log_probs tensor must not be empty")
    if not 0 <= blank < log_probs.shape[2]:
        raise RuntimeError("blank must be in label range")
    if input_lengths.shape[0] != log_probs.shape[1]:
        raise RuntimeError("input_lengths must be of size batch_size")
    if target_lengths.shape[0] != log_probs.shape[1]:
        raise RuntimeError("target_lengths must be of size batch_size")
    if targets.dtype.is_floating_point:  # labels
        targets = targets.long()
    if targets.ndim == 1:
        targets = _in_rows(targets, target_lengths)
    # Lengths and labels may be the CPU's, as CUDA's library wants them.
    targets, input_lengths, target_lengths = (t.to(log_probs.device) for t in (targets, input_lengths, target_lengths))
    loss = ctc_alignments(log_probs, targets, input_lengths, target_lengths, blank)
    if zero_infinity:
        loss = where(loss == float("inf"), 0, loss)
    if reduction == "mean":
        return (loss / target_lengths.clamp(min=1)).mean()
    if reduction == "sum":
        return loss.sum()
    return loss[0] if single else loss
