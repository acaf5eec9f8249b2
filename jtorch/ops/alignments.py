"""The best alignment of labels with frames (Viterbi), and the loss of all alignments of a transducer."""

import jax
import jax.numpy as jnp
from jax import lax

from .registry import Array, op


@op(where="", differentiable=False)
def best_alignment(log_probs: Array, targets: Array, blank: int) -> Array:
    """The label of each frame, blanks among them, on the likeliest path: log_probs (T, C), targets (L,) without blanks."""
    labels = targets.shape[0]
    extended = jnp.full(2 * labels + 1, blank, targets.dtype).at[1::2].set(targets)
    skips = jnp.pad(extended[2:] != extended[:-2], (2, 0)) & (jnp.arange(2 * labels + 1) % 2 == 1)
    emit = log_probs[:, extended]
    never = jnp.array(-jnp.inf, log_probs.dtype)
    back = lambda a, k: jnp.pad(a, (k, 0), constant_values=never)[: a.shape[0]]

    def forward(scores, emitted):
        one, two = back(scores, 1), jnp.where(skips, back(scores, 2), never)
        by_two = (two > one) & (two > scores)
        by_one = ~by_two & (one > scores)
        best = jnp.where(by_two, two, jnp.where(by_one, one, scores))
        return best + emitted, jnp.where(by_two, 2, by_one.astype(jnp.int8)).astype(jnp.int8)

    first = jnp.where(jnp.arange(2 * labels + 1) < 2, emit[0], never)
    scores, steps = lax.scan(forward, first, emit[1:])
    end = 2 * labels
    if labels:
        end = jnp.where(scores[-1] > scores[-2], end, end - 1)

    def backward(at, step):
        before = at - step[at].astype(at.dtype)
        return before, before

    end = jnp.asarray(end, jnp.int64)
    _, states = lax.scan(backward, end, steps, reverse=True)
    return extended[jnp.concatenate([states, end[None]])]


def _diagonals(grid, fill):
    """A grid (B, T, U) by anti-diagonals: (T + U - 1, B, U), whose entry (d, b, u) is the grid's (b, d - u, u), or `fill`."""
    frames, width = grid.shape[1:]
    at = jnp.arange(frames + width - 1)[:, None] - jnp.arange(width)
    found = grid[:, jnp.clip(at, 0, frames - 1), jnp.arange(width)]
    return jnp.moveaxis(jnp.where((at >= 0) & (at < frames), found, fill), 1, 0)


def _grid(diagonals, frames):
    """The grid (B, T, U) of what lies by anti-diagonals."""
    width = diagonals.shape[2]
    at = jnp.arange(frames)[:, None] + jnp.arange(width)
    return jnp.moveaxis(diagonals, 1, 0)[:, at, jnp.arange(width)]


def _forward(skip, emit):
    """log of the probability to come to each place of the grid; skip, emit: of the steps from each place, (B, T, U)."""
    frames, never = skip.shape[1], -jnp.inf
    aside = lambda a: jnp.pad(a, ((0, 0), (1, 0)), constant_values=never)[:, :-1]

    def step(before, at):
        skip, emit = at
        after = jnp.logaddexp(before + skip, aside(before + emit))
        return after, after

    skip, emit = _diagonals(skip, never), _diagonals(emit, never)
    first = jnp.full(skip.shape[1:], never, skip.dtype).at[:, 0].set(0)
    _, alphas = lax.scan(step, first, (skip[:-1], emit[:-1]))
    return _grid(jnp.concatenate([first[None], alphas]), frames)


def _backward(skip, emit, last):
    """log of the probability to come from each place to the end; last: which place is followed by it."""
    frames, never = skip.shape[1], -jnp.inf
    aside = lambda a: jnp.pad(a, ((0, 0), (0, 1)), constant_values=never)[:, 1:]

    def step(after, at):
        skip, emit, last = at
        before = jnp.where(last, skip, jnp.logaddexp(after + skip, aside(after) + emit))
        return before, before

    each = _diagonals(skip, never), _diagonals(emit, never), _diagonals(last, False)
    _, betas = lax.scan(step, jnp.full(each[0].shape[1:], never, skip.dtype), each, reverse=True)
    return _grid(betas, frames)


@op(where="", differentiable=False)
def transducer_loss(
    logits: Array,
    targets: Array,
    logit_lengths: Array,
    target_lengths: Array,
    blank: int,
    clamp: float,
    normalize: bool,
) -> tuple[Array, Array]:
    """The negative log likelihood of each sequence and its derivative: logits (B, T, U, C), targets (B, U - 1).

    clamp: the largest element of a derivative, none where it is not positive; normalize: take the softmax here."""
    x = logits.astype(jnp.promote_types(logits.dtype, jnp.float32))
    logs = x - jax.nn.logsumexp(x, -1, keepdims=True) if normalize else x
    _, frames, width, classes = x.shape
    t, u = jnp.arange(frames)[:, None], jnp.arange(width)
    ends_t, ends_u = logit_lengths[:, None, None] - 1, target_lengths[:, None, None]
    real = (t <= ends_t) & (u <= ends_u)
    skip = jnp.where(real, logs[..., blank], -jnp.inf)
    labels = jnp.pad(targets, ((0, 0), (0, 1)))
    emit = jnp.take_along_axis(logs, labels[:, None, :, None], 3)[..., 0]
    emit = jnp.where(real & (u < ends_u), emit, -jnp.inf)
    last = (t == ends_t) & (u == ends_u)
    alpha, beta = _forward(skip, emit), _backward(skip, emit, last)
    cost = -beta[:, 0, 0]
    score = logs + (alpha + cost[:, None, None])[..., None]
    # Where each class leads: a blank to the next frame, the label to the next label, all others nowhere.
    shifted = jnp.pad(beta, ((0, 0), (0, 1), (0, 1)), constant_values=-jnp.inf)
    by_blank = jnp.where(last, 0, jnp.where(t < ends_t, shifted[:, 1:, :-1], -jnp.inf))[..., None]
    by_label = jnp.where(u < ends_u, shifted[:, :-1, 1:], -jnp.inf)[..., None]
    which = jnp.arange(classes)
    is_blank = (which == blank) & (last | (t < ends_t))[..., None]
    is_label = which == labels[:, None, :, None]
    taken = jnp.exp(score + jnp.where(is_blank, by_blank, jnp.where(is_label, by_label, -jnp.inf)))
    grads = jnp.exp(score + beta[..., None]) - taken if normalize else -taken
    if clamp > 0:
        grads = jnp.clip(grads, -clamp, clamp)
    return cost.astype(logits.dtype), jnp.where(real[..., None], grads, 0).astype(logits.dtype)
