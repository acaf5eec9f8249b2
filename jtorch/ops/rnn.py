"""Recurrent layers: LSTM, GRU and plain RNN, one op a layer and direction.

The input's part of the gates is one matmul over all steps before the loop, and the weights' gradients are one matmul
over all steps after the backward loop; the loops hold only what depends on the step before.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jtorch import errors_nn as errors
from jtorch.core import processor

from .backend import accumulator, barrier, by_columns, materialize, matmul_nt, matmul_tn, on_cpu
from .registry import Array, op

TURNED = 1 << 20  # elements of a weight
FORWARD_HALVED, BACKWARD_HALVED = 4 << 20, 5 << 20  # multiplications of the product of one step


def _times(x, w):
    """x @ w.T, rounded."""
    return matmul_nt(x, w).astype(x.dtype)


def _linear(x, w, b):
    """x @ w.T + b for x of any rank, as one matmul of two matrices."""
    out = _times(x.reshape(-1, x.shape[-1]), w)
    if b is not None:
        out = out + b
    return out.reshape(*x.shape[:-1], w.shape[0])


def _before(first, sequence, reverse):
    """The state before each step, given the first state and the states after each step."""
    if reverse:
        return jnp.concatenate([sequence[1:], first[None]])
    return jnp.concatenate([first[None], sequence[:-1]])


# A cell is three functions. `step(state, x, hidden, b)`: from the state (h, ...), the input's part of the gates and what multiplies h
# with the weight to the next state and what the derivative keeps. `factors(kept, after, before)`, of all steps at once, before the
# backward loop: from what was kept and the states after and before, what `back` needs. `back(d, factors)`: from the derivative of
# the new state to the derivatives of the input's part, of the hidden part (None: the same), and of the state before except through
# the hidden part.


def _lstm_step(state, x, hidden, b):
    # sigmoid(x) is tanh(x / 2) / 2 + 1 / 2: one function of all gates, which stay one array, where XLA would compute each gate anew in
    # each of three loops and put them together element by element
    h, c = state
    n = c.shape[-1]
    scale = np.repeat(np.array([0.5, 0.5, 1, 0.5], h.dtype), n)
    gates = jnp.tanh((x + hidden(h)) * scale) * scale + (1 - scale)
    i, f, g, o = jnp.split(gates, 4, -1)
    c = f * c + i * g
    return (o * jnp.tanh(c), c), gates


def _lstm_factors(kept, after, before):
    i, f, g, o = jnp.split(kept, 4, -1)
    t = jnp.tanh(after[1])
    gates = [g * i * (1 - i), before[1] * f * (1 - f), i * (1 - g * g), t * o * (1 - o)]
    return o * (1 - t * t), jnp.concatenate(gates, -1), f


def _lstm_back(d, factors):
    (dh, dc), (through, gates, f) = d, factors
    dc = dc + dh * through
    gates = jnp.concatenate([dc, dc, dc, dh], -1) * gates
    return gates, None, (None, dc * f)


def _gru_step(state, x, hidden, b):
    (h,) = state
    u = hidden(h)
    u = u if b is None else u + b
    (xr, xz, xn), (hr, hz, hn) = jnp.split(x, 3, -1), jnp.split(u, 3, -1)
    r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
    n = jnp.tanh(xn + r * hn)
    return (n + z * (h - n),), jnp.concatenate([r, z, n, hn], -1)


def _gru_factors(kept, after, before):
    r, z, n, hn = jnp.split(kept, 4, -1)
    return (1 - z) * (1 - n * n), hn * r * (1 - r), (before[0] - n) * z * (1 - z), r, z


def _gru_back(d, factors):
    (dh,), (new, reset, update, r, z) = d, factors
    dn = dh * new
    dr, dz = dn * reset, dh * update
    return jnp.concatenate([dr, dz, dn], -1), jnp.concatenate([dr, dz, dn * r], -1), (dh * z,)


def _tanh_step(state, x, hidden, b):
    h = jnp.tanh(x + hidden(state[0]))
    return (h,), ()


def _tanh_factors(kept, after, before):
    return 1 - after[0] * after[0]


def _tanh_back(d, factors):
    gate = d[0] * factors
    return gate, None, (None,)


def _relu_step(state, x, hidden, b):
    h = jnp.maximum(x + hidden(state[0]), 0)
    return (h,), ()


def _relu_factors(kept, after, before):
    return ~(after[0] <= 0)  # nan goes on


def _relu_back(d, factors):
    gate = jnp.where(factors, d[0], 0)
    return gate, None, (None,)


CELLS = {
    "lstm": (_lstm_step, _lstm_factors, _lstm_back),
    "gru": (_gru_step, _gru_factors, _gru_back),
    "tanh": (_tanh_step, _tanh_factors, _tanh_back),
    "relu": (_relu_step, _relu_factors, _relu_back),
}


def _hidden(w):
    """What multiplies the rows of a hidden state with a weight (out, in), which a loop reads at each step: turned beforehand, or the rows
    are the columns of the other product (benchmarks/kernels_cnn.py, "lstm")."""
    turned, wide = materialize(w.T), processor.vectors() == "AVX512" and w.size <= TURNED
    return lambda h: _times(h, w) if h.shape[0] > 2 and by_columns(h.shape[0], w) and not wide else h @ turned


def _in_halves(state, w, least) -> bool:
    """Whether a loop over steps is to take each half of the batch by itself: on the CPU, where two products of which each is one
    thread's take less time than one of two threads' (benchmarks/kernels_cnn.py)."""
    rows = state[0].shape[0]
    return on_cpu() and rows % 2 == 0 and rows * w.size >= least


def _scan(body, state, each, reverse, w, least):
    """`lax.scan` of a body in which the rows of the batch, the first dimension of everything, do not meet.

    w: the weight of its product; least: the multiplications from which on it is taken in halves."""
    if not _in_halves(state, w, least):
        return lax.scan(body, state, each, reverse=reverse)
    halves = lambda tree: [
        jax.tree.map(part, tree) for part in (lambda a: a[: len(a) // 2], lambda a: a[len(a) // 2 :])
    ]
    whole = lambda parts: jax.tree.map(lambda *ab: jnp.concatenate(ab), *parts)

    def both(states, at):
        made = [body(*one) for one in zip(states, halves(at))]
        return [state for state, _ in made], whole([kept for _, kept in made])

    states, made = lax.scan(both, halves(state), each, reverse=reverse)
    return whole(states), made


def _run(kind, x, state, w_ih, w_hh, b_ih, b_hh, reverse, valid):
    """(the states after each step, what the derivative keeps of each step)."""
    step, _, _ = CELLS[kind]
    inner = None
    if kind == "gru":
        inner = b_hh  # its last third acts inside the reset gate
    elif b_ih is not None:
        b_ih = b_ih + b_hh
    gates = _linear(x, w_ih, b_ih)
    hidden = _hidden(w_hh)

    def body(state, at):
        x, v = at
        after, kept = step(state, x, hidden, inner)
        after = after if v is None else tuple(jnp.where(v, a, s) for a, s in zip(after, state))
        return after, (after, kept)

    _, (states, kept) = _scan(body, state, (gates, valid), reverse, w_hh, FORWARD_HALVED)
    return states, kept


def _gate_grads_from(kind, out_grad, last_grads, states, kept, first, w_hh, reverse, valid):
    """(of the input's part of the gates, of the hidden part, of each of the first states)."""
    _, factors, back = CELLS[kind]
    factors = barrier(factors(kept, states, tuple(_before(f, s, reverse) for f, s in zip(first, states))))

    def body(d, at):
        g, factors, v = at
        d = d[0] + g, *d[1:]
        by_input, by_hidden, rest = back(d, factors)
        if v is not None:
            by_input = jnp.where(v, by_input, 0)
            by_hidden = None if by_hidden is None else jnp.where(v, by_hidden, 0)
        dh = (by_input if by_hidden is None else by_hidden) @ w_hh
        before = (dh if rest[0] is None else dh + rest[0], *rest[1:])
        before = before if v is None else tuple(jnp.where(v, b, a) for b, a in zip(before, d))
        return before, (by_input, by_hidden)

    each = (out_grad, factors, valid)
    d, (by_input, by_hidden) = _scan(body, last_grads, each, not reverse, w_hh, BACKWARD_HALVED)
    # one loop, whichever of the gradients are wanted: the rules of all arguments then share it
    by_input, by_hidden, d = barrier((by_input, by_hidden, d))
    return by_input, by_input if by_hidden is None else by_hidden, d


def _pull(kind, reverse, grads, arrays, valid):
    """The gradients in (x, first states, w_ih, w_hh, b_ih, b_hh), through the loop itself."""

    def run(x, first, *weights):
        states, _ = _run(kind, x, first, *weights, reverse, valid)
        return states[0], tuple(_end(s, reverse) for s in states)

    return jax.vjp(run, *arrays)[1](grads)


def _end(sequence, reverse):
    return sequence[0] if reverse else sequence[-1]


def _gradients(kind, reverse, valid, out_grad, last_grads, arrays, states, kept):
    @jax.custom_jvp
    def fast(grads, arrays, states, kept):
        out_grad, last_grads = grads
        x, first, w_ih, w_hh, b_ih, b_hh = arrays
        by_input, by_hidden, by_first = _gate_grads_from(
            kind, out_grad, last_grads, states, kept, first, w_hh, reverse, valid
        )
        flat = lambda a: a.reshape(-1, a.shape[-1])
        gi, gh = flat(by_input), flat(by_hidden)
        by_b = (None, None) if b_ih is None else (jnp.sum(gi, 0), jnp.sum(gh, 0))
        return (
            (gi @ w_ih).reshape(x.shape),
            by_first,
            matmul_tn(gi, flat(x)),
            matmul_tn(gh, flat(_before(first[0], states[0], reverse))),
            *by_b,
        )

    @fast.defjvp
    def _(primals, tangents):
        # what was kept depends on the arguments: derivatives of higher order go through the loop itself
        pull = lambda grads, arrays: _pull(kind, reverse, grads, arrays, valid)
        return fast(*primals), jax.jvp(pull, primals[:2], tangents[:2])[1]

    return fast((out_grad, last_grads), arrays, states, kept)


def _layer(kind, x, first, w_ih, w_hh, b_ih, b_hh, reverse, valid):
    dtype = x.dtype
    wide = lambda a: None if a is None else a.astype(accumulator(dtype))
    first = tuple(map(wide, first))
    states, kept = _run(kind, wide(x), first, wide(w_ih), wide(w_hh), wide(b_ih), wide(b_hh), reverse, _column(valid))
    narrow = lambda a: a.astype(dtype)
    return narrow(states[0]), *(narrow(_end(s, reverse)) for s in states), *states, kept


def _column(valid):
    return None if valid is None else valid[..., None]


def _layer_grad(kind, grads, x, first, w_ih, w_hh, b_ih, b_hh, saved, reverse, valid):
    dtype = accumulator(x.dtype)
    n = len(first)
    wide = lambda t: jax.tree.map(lambda a: a.astype(dtype), t)
    # PyTorch's gradient of a complex value is the conjugate of what the loops below have
    turn = jnp.conj if jnp.issubdtype(dtype, jnp.complexfloating) else lambda a: a
    last = tuple(turn(wide(g)) for g in grads[1:])
    arrays = wide((x, tuple(first), w_ih, w_hh, b_ih, b_hh))
    states, kept = tuple(saved[:n]), saved[n] if len(saved) > n else ()
    if not x.size:
        by = _pull(kind, reverse, (turn(wide(grads[0])), last), arrays, _column(valid))
    else:
        by = _gradients(kind, reverse, _column(valid), turn(wide(grads[0])), last, arrays, states, kept)
    flat = (by[0], *by[1], *by[2:])
    given = (x, *first, w_ih, w_hh, b_ih, b_hh)
    return tuple(None if b is None or a is None else turn(a).astype(b.dtype) for a, b in zip(flat, given))


@op(where="", hidden=3, grad_name="MkldnnRnnLayerBackward0")
def lstm_layer(
    input: Array,
    h0: Array,
    c0: Array,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array | None,
    b_hh: Array | None,
    reverse: bool,
    valid: Array | None = None,
) -> Array:
    """One direction of one LSTM layer over (T, N, I): the outputs, the last hidden state, the last cell state.

    `valid` (T, N), here and in the other layers: the steps that a row of the batch takes; at others it keeps its state.
    """
    return _layer("lstm", input, (h0, c0), w_ih, w_hh, b_ih, b_hh, reverse, valid)


@op(where="", hidden=2, grad_name="StackBackward0")
def gru_layer(
    input: Array,
    h0: Array,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array | None,
    b_hh: Array | None,
    reverse: bool,
    valid: Array | None = None,
) -> Array:
    """One direction of one GRU layer over (T, N, I): the outputs and the last hidden state."""
    return _layer("gru", input, (h0,), w_ih, w_hh, b_ih, b_hh, reverse, valid)


@op(where="", hidden=1, grad_name="StackBackward0")
def rnn_layer(
    input: Array,
    h0: Array,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array | None,
    b_hh: Array | None,
    reverse: bool,
    nonlinearity: str,
    valid: Array | None = None,
) -> Array:
    """One direction of one Elman layer over (T, N, I): the outputs and the last hidden state."""
    return _layer(nonlinearity, input, (h0,), w_ih, w_hh, b_ih, b_hh, reverse, valid)[:-1]


def _lstm_rule(g, input, h0, c0, w_ih, w_hh, b_ih, b_hh, reverse, valid, out):
    return _layer_grad("lstm", g, input, (h0, c0), w_ih, w_hh, b_ih, b_hh, out[3:], reverse, valid)


def _gru_rule(g, input, h0, w_ih, w_hh, b_ih, b_hh, reverse, valid, out):
    return _layer_grad("gru", g, input, (h0,), w_ih, w_hh, b_ih, b_hh, out[2:], reverse, valid)


def _rnn_rule(g, input, h0, w_ih, w_hh, b_ih, b_hh, reverse, nonlinearity, valid, out):
    return _layer_grad(nonlinearity, g, input, (h0,), w_ih, w_hh, b_ih, b_hh, out[2:], reverse, valid)


lstm_layer.vjp_together("input h0 c0 w_ih w_hh b_ih b_hh", _lstm_rule)
gru_layer.vjp_together("input h0 w_ih w_hh b_ih b_hh", _gru_rule)
rnn_layer.vjp_together("input h0 w_ih w_hh b_ih b_hh", _rnn_rule)


@op(where="", grad_name="StackBackward0")
def lstm_projected_layer(
    input: Array,
    h0: Array,
    c0: Array,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array | None,
    b_hh: Array | None,
    w_hr: Array,
    reverse: bool,
    valid: Array | None = None,
) -> Array:
    """An LSTM layer whose hidden state is projected by `w_hr` after each step."""
    gates = _linear(input, w_ih, None if b_ih is None else b_ih + b_hh)
    hidden, project = _hidden(w_hh), _hidden(w_hr)

    def body(state, at):
        x, v = at
        (h, c), _ = _lstm_step(state, x, hidden, None)
        after = (project(h), c)
        after = after if v is None else tuple(jnp.where(v, a, s) for a, s in zip(after, state))
        return after, after[0]

    (h, c), out = lax.scan(body, (h0, c0), (gates, _column(valid)), reverse=reverse)
    return out, h, c


@op(where="torch", out=False, grad_name="MulBackward0")
def lstm_cell(
    input: Array,
    hx: list[Array],
    w_ih: Array,
    w_hh: Array,
    b_ih: Array | None = None,
    b_hh: Array | None = None,
) -> Array:
    """One LSTM step from (h, c): the next (h, c)."""
    h, c = hx
    gates = _linear(input, w_ih, b_ih)
    gates = gates if b_hh is None else gates + b_hh
    return _lstm_step((h, c), gates, lambda h: _times(h, w_hh), None)[0]


@op(where="torch", out=False, grad_name="AddBackward0")
def gru_cell(
    input: Array, hx: Array, w_ih: Array, w_hh: Array, b_ih: Array | None = None, b_hh: Array | None = None
) -> Array:
    """One GRU step."""
    return _gru_step((hx,), _linear(input, w_ih, b_ih), lambda h: _times(h, w_hh), b_hh)[0][0]


@op(where="torch", out=False, grad_name="TanhBackward0")
def rnn_tanh_cell(
    input: Array, hx: Array, w_ih: Array, w_hh: Array, b_ih: Array | None = None, b_hh: Array | None = None
) -> Array:
    """One step of an Elman RNN with tanh."""
    return jnp.tanh(_linear(input, w_ih, b_ih) + _linear(hx, w_hh, b_hh))


@op(where="torch", out=False, grad_name="ReluBackward0")
def rnn_relu_cell(
    input: Array, hx: Array, w_ih: Array, w_hh: Array, b_ih: Array | None = None, b_hh: Array | None = None
) -> Array:
    """One step of an Elman RNN with relu."""
    sums = _linear(input, w_ih, b_ih) + _linear(hx, w_hh, b_hh)
    return jnp.where(sums <= 0, jnp.zeros((), sums.dtype), sums)  # whose slope is 0 at 0, and goes on at nan


for _record in (gru_cell, rnn_tanh_cell, rnn_relu_cell):
    for _one, _other in (("input", "w_ih"), ("hx", "w_hh")):
        _factors = {
            _one: lambda call, other=_other: other in call["needs"],
            _other: lambda call, one=_one: one in call["needs"],
        }
        _record.guards(**_factors, b_ih=False, b_hh=False)
rnn_tanh_cell.guards(out=True)
rnn_relu_cell.guards(out=True)


def _check_cell(input, states, w_ih, w_hh):
    """One row of each state for each row of the input, and sizes that fit the weights."""
    features, hidden = w_ih.shape[-1], w_hh.shape[-1]
    if input.shape[-1] != features:
        raise RuntimeError(f"input has inconsistent input_size: got {input.shape[-1]} expected {features}")
    for i, h in enumerate(states):
        if h.ndim and h.shape[-1] != hidden or h.ndim > 2:
            got = h.shape[1 if h.ndim > 2 else -1]
            raise RuntimeError(f"hidden{i} has inconsistent hidden_size: got {got}, expected {hidden}")
        if input.ndim == 2 and input.shape[0] != h.shape[0]:
            raise RuntimeError(f"Input batch size {input.shape[0]} doesn't match hidden{i} batch size {h.shape[0]}")
    for x in (input, *states):
        if x.dtype is not w_ih.dtype:
            raise errors.same_dtype("mat1", "mat2", x.dtype, w_ih.dtype)


lstm_cell.check(lambda input, hx, w_ih, w_hh, *biases: _check_cell(input, hx, w_ih, w_hh))
for _cell in (gru_cell, rnn_tanh_cell, rnn_relu_cell):
    _cell.check(lambda input, hx, w_ih, w_hh, *biases: _check_cell(input, (hx,), w_ih, w_hh))
