"""Attention and recurrent layers."""

import math

import numpy as np

from ...core import dtype as dtypes
from ..builder import Value
from ..errors import option
from .layers import linear
from .pointwise import number
from .record import op
from .reductions import reduced


def _attend(g, query, key, value, mask, scale):
    """The result and the weights of attention; mask: of booleans (True takes part), or numbers that are added."""
    turned = g.transpose(key, *range(key.ndim - 2), key.ndim - 1, key.ndim - 2)
    scores = g("MatMul", g("Mul", query, number(g, scale)), turned, shape=(*query.shape[:-1], key.shape[-2]))
    if mask is not None:
        if mask.dtype is dtypes.bool_:
            mask = g("Where", mask, number(g, 0), number(g, -math.inf), dtype=g.dtype, shape=mask.shape)
        scores = g("Add", scores, mask)
    weights = g("Softmax", scores, axis=-1)
    return g("MatMul", weights, value, shape=(*query.shape[:-1], value.shape[-1])), weights


@op("scaled_dot_product_attention")
def scaled_dot_product_attention(
    g, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    if dropout_p or enable_gqa:
        raise option("scaled_dot_product_attention", "with dropout, or enable_gqa")
    if is_causal:
        rows = g.ints([g.size(query, -2), g.size(key, -2)])
        ones = g("Expand", np.array(True), rows, shape=(query.shape[-2], key.shape[-2]))
        attn_mask = g.cast(
            g("Trilu", g.cast(Value(ones.name, dtypes.bool_, ones.shape), dtypes.int32), upper=0), dtypes.bool_
        )
    return _attend(g, query, key, value, attn_mask, 1 / math.sqrt(query.shape[-1]) if scale is None else scale)[0]


@op("_additive_mask")
def additive_mask(g, mask, mask_name, other_type, other_name, target_type, check_other=True):
    return mask if mask is None or mask.dtype is not dtypes.bool_ else _added(g, mask, g.dtype)


def _added(g, mask, dtype):
    """A mask of booleans (True: does not take part) as numbers that are added."""
    return g("Where", mask, g.value(-math.inf, dtype), g.value(0, dtype), dtype=dtype, shape=mask.shape)


def _heads(g, x, heads):
    """(length, batch, width) -> (batch, heads, length, width of a head)."""
    n, batch, width = x.shape
    apart = g("Reshape", x, g.ints([0, 0, heads, width // heads]), shape=(n, batch, heads, width // heads))
    return g.transpose(apart, 1, 2, 0, 3)


@op("multi_head_attention_forward")
def multi_head_attention_forward(
    g, query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight,
    out_proj_bias, training=True, key_padding_mask=None, need_weights=True, attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None,
    k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None, average_attn_weights=True, is_causal=False,
):  # fmt: skip
    if bias_k is not None or add_zero_attn or static_k is not None or static_v is not None or training and dropout_p:
        raise option("multi_head_attention_forward", "with bias_k, add_zero_attn, static keys, or dropout")
    single = query.ndim == 2
    if single:
        query, key, value = (g.unsqueeze(x, 1) for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else g.unsqueeze(key_padding_mask, 0)
    width = embed_dim_to_check
    projected = []
    for k, x in enumerate((query, key, value)):
        if use_separate_proj_weight:
            weight = (q_proj_weight, k_proj_weight, v_proj_weight)[k]
        else:
            weight = g.slice(in_proj_weight, 0, k * width, (k + 1) * width)
        bias = None if in_proj_bias is None else g.slice(in_proj_bias, 0, k * width, (k + 1) * width)
        turned = g.transpose(weight, 1, 0)
        found = g("MatMul", x, turned, dtype=x.dtype, shape=(*x.shape[:-1], width))
        projected.append(_heads(g, found if bias is None else g("Add", found, bias), num_heads))
    g.dtype = query.dtype
    out, weights = _attend(
        g, *projected, _mask(g, attn_mask, key_padding_mask, num_heads), 1 / math.sqrt(width // num_heads)
    )
    joined = g.transpose(out, 2, 0, 1, 3)
    joined = g("Reshape", joined, g.ints([0, 0, width]), shape=(*joined.shape[:2], width))
    g.shape = joined.shape[:2] + (out_proj_weight.shape[0],)
    out = linear(g, joined, out_proj_weight, out_proj_bias)
    if not need_weights:
        return [g.squeeze(out, 1) if single else out, None]
    if average_attn_weights:
        weights = reduced(g, "ReduceMean", weights, 1)
    return [g.squeeze(out, 1), g.squeeze(weights, 0)] if single else [out, weights]


def _mask(g, attn_mask, key_padding_mask, heads):
    """One mask of numbers to add, from those that PyTorch takes (True: does not take part)."""
    found = None
    for k, mask in enumerate((attn_mask, key_padding_mask)):
        if mask is None:
            continue
        if mask.dtype is dtypes.bool_:
            mask = _added(g, mask, g.dtype)
        if k:
            mask = g.unsqueeze(mask, 1, 2)
        elif mask.ndim == 3:
            n, rows, columns = mask.shape
            mask = g(
                "Reshape",
                mask,
                g.ints([-1, heads, g.size(mask, 1), g.size(mask, 2)]),
                shape=(n // heads, heads, rows, columns),
            )
        found = mask if found is None else g("Add", found, mask)
    return found


# PyTorch's order of the gates, as places of ONNX's: LSTM i f g o against i o f c, GRU r z n against z r h.
_GATES = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2], "RNN": [0]}


def _stacked(g, parts, order):
    """Parameters of both directions as ONNX has them: gates in its order, a direction a row."""
    rows = []
    for x in parts:
        n = x.shape[0] // len(order)
        rows.append(g.unsqueeze(g.concat([g.slice(x, 0, k * n, (k + 1) * n) for k in order], 0), 0))
    return g.concat(rows, 0)


def _recurrent(g, kind, input, state, params, has_biases, layers, bidirectional, batch_first, **attributes):
    directions = 2 if bidirectional else 1
    per = 4 if has_biases else 2
    if len(params) != per * layers * directions:
        raise option(kind, "with proj_size")
    single = input.ndim == 2
    x = g.unsqueeze(input, 0 if batch_first else 1) if single else input
    x = g.transpose(x, 1, 0, 2) if batch_first else x
    state = [g.unsqueeze(s, 1) for s in state] if single else state
    order, width = _GATES[kind], params[1].shape[1]
    ends = [[] for _ in state]
    for layer in range(layers):
        at = per * layer * directions
        sets = [params[at + per * d : at + per * (d + 1)] for d in range(directions)]
        weights = [_stacked(g, [s[k] for s in sets], order) for k in range(2)]
        bias = None
        if has_biases:
            halves = [_stacked(g, [s[k] for s in sets], order) for k in (2, 3)]
            bias = g.concat(halves, 1)
        first = [g.slice(s, 0, layer * directions, (layer + 1) * directions) for s in state]
        names = g.node(
            kind, [x, *weights, bias, None, *first], 1 + len(state), hidden_size=width, direction="bidirectional" if bidirectional else "forward",
            linear_before_reset=1 if kind == "GRU" else None, **attributes,
        )  # fmt: skip
        n, batch = x.shape[:2]
        out = g.transpose(Value(names[0], x.dtype, (n, directions, batch, width)), 0, 2, 1, 3)
        x = g("Reshape", out, g.ints([0, 0, directions * width]), shape=(n, batch, directions * width))
        for end, name in zip(ends, names[1:]):
            end.append(Value(name, x.dtype, (directions, batch, width)))
    out = g.transpose(x, 1, 0, 2) if batch_first else x
    found = [out, *(g.concat(e, 0) for e in ends)]
    return [g.squeeze(found[0], 0 if batch_first else 1), *(g.squeeze(s, 1) for s in found[1:])] if single else found


def _plain(kind, dropout, train):
    if dropout and train:
        raise option(kind, "with dropout in training mode")


@op("lstm")
def lstm(g, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first=False):
    _plain("lstm", dropout, train)
    return _recurrent(g, "LSTM", input, list(hx), params, has_biases, num_layers, bidirectional, batch_first)


@op("gru")
def gru(g, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first=False):
    _plain("gru", dropout, train)
    return _recurrent(g, "GRU", input, [hx], params, has_biases, num_layers, bidirectional, batch_first)


def _rnn(kind):
    def rnn(g, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first=False):
        _plain("rnn", dropout, train)
        names = [kind] * (2 if bidirectional else 1)
        return _recurrent(
            g, "RNN", input, [hx], params, has_biases, num_layers, bidirectional, batch_first, activations=names
        )

    return rnn


op("rnn_tanh")(_rnn("Tanh"))
op("rnn_relu")(_rnn("Relu"))


def _gates(g, input, hidden, weights, biases):
    """The two products of a cell."""
    found = []
    for x, w, b in zip((input, hidden), weights, biases):
        y = g("MatMul", x, g.transpose(w, 1, 0), dtype=x.dtype, shape=(*x.shape[:-1], w.shape[0]))
        found.append(y if b is None else g("Add", y, b))
    return found


def _pieces(g, x, n):
    width = x.shape[-1] // n
    return [g.slice(x, -1, k * width, (k + 1) * width) for k in range(n)]


@op("lstm_cell")
def lstm_cell(g, input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    hidden, cell = hx
    i, f, c, o = _pieces(g, g("Add", *_gates(g, input, hidden, (w_ih, w_hh), (b_ih, b_hh))), 4)
    kept = g("Mul", g("Sigmoid", f), cell)
    cell = g("Add", kept, g("Mul", g("Sigmoid", i), g("Tanh", c)))
    return [g("Mul", g("Sigmoid", o), g("Tanh", cell)), cell]


@op("gru_cell")
def gru_cell(g, input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    a, b = (_pieces(g, x, 3) for x in _gates(g, input, hx, (w_ih, w_hh), (b_ih, b_hh)))
    reset, update = (g("Sigmoid", g("Add", a[k], b[k])) for k in range(2))
    new = g("Tanh", g("Add", a[2], g("Mul", reset, b[2])))
    return g("Add", new, g("Mul", update, g("Sub", hx, new)))


def _cell(kind):
    def cell(g, input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
        return g(kind, g("Add", *_gates(g, input, hx, (w_ih, w_hh), (b_ih, b_hh))))

    return cell


op("rnn_tanh_cell")(_cell("Tanh"))
op("rnn_relu_cell")(_cell("Relu"))
