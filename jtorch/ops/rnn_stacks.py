"""Stacks of recurrent layers, one way or both: what nn's recurrent modules and torch.lstm and its like call."""

import jax.numpy as jnp

from jtorch import config

from . import backend
from .join import cat, stack
from .linear import torch_dropout
from .registry import Array, Key, composite, op
from .rnn import gru_layer, lstm_layer, lstm_projected_layer, rnn_layer


@op(where="", grad_name="MulBackward0")
def between_layers(input: Array, p: float, *, key: Key) -> Array:
    """Dropout of one layer's outputs."""
    keep = backend.keep_mask(key, 1.0 - p, input.shape)
    return jnp.where(keep, input / (1 - p) if p < 1 else 0, 0).astype(input.dtype)


def _lstm_of(x, states, weights, reverse, valid):
    layer = lstm_projected_layer if len(weights) == 5 else lstm_layer
    return layer(x, *states, *weights, reverse, valid)


def _gru_of(x, states, weights, reverse, valid):
    return gru_layer(x, *states, *weights, reverse, valid)


def _tanh_of(x, states, weights, reverse, valid):
    return rnn_layer(x, *states, *weights, reverse, "tanh", valid)


def _relu_of(x, states, weights, reverse, valid):
    return rnn_layer(x, *states, *weights, reverse, "relu", valid)


_LAYERS = {"LSTM": _lstm_of, "GRU": _gru_of, "RNN_TANH": _tanh_of, "RNN_RELU": _relu_of}


def _stacked(
    mode,
    input,
    states,
    params,
    has_biases,
    num_layers,
    p,
    train,
    bidirectional,
    batch_first=False,
    valid=None,
    drop=None,
):
    """Run a layer of this mode for each layer and direction: the outputs, the last states stacked."""
    layer = _LAYERS[mode]
    drop = drop or (lambda x: torch_dropout(x, p, True))
    x = input.transpose(0, 1) if batch_first else input
    directions = 2 if bidirectional else 1
    each = len(params) // (num_layers * directions)
    ends = []
    for depth in range(num_layers):
        if depth and p and train:
            x = drop(x) if config.host_dropout else between_layers(x, p)
        outs = []
        for way in range(directions):
            i = depth * directions + way
            weights = list(params[i * each : (i + 1) * each])
            if not has_biases:
                weights[2:2] = [None, None]
            out, *last = layer(x, [s[i] for s in states], weights, way == 1, valid)
            outs.append(out)
            ends.append(last)
        x = outs[0] if directions == 1 else cat(outs, -1)
    last = [stack([end[k] for end in ends]) for k in range(len(states))]
    return (x.transpose(0, 1) if batch_first else x), *last


def stack_of_lengths(mode, input, valid, states, params, has_biases, num_layers, dropout, train, bidirectional, drop):
    """A stack of layers over (T, N, I) whose rows have as many steps as `valid` (T, N) says: the outputs, the last states.

    The outputs of other steps mean nothing. drop: dropout of one layer's outputs with PyTorch's own draws (config.host_dropout).
    """
    return _stacked(
        mode, input, states, params, has_biases, num_layers, dropout, train, bidirectional, valid=valid, drop=drop
    )


def _check_input(input):
    if input.ndim != 3:
        raise RuntimeError(f"input must have 3 dimensions, got {input.ndim}")


@composite(where="torch")
def lstm(input: Array, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    """A stack of LSTM layers: the outputs, the last hidden states and the last cell states.

    `params`: for each layer and direction w_ih, w_hh, then b_ih, b_hh, then w_hr where hidden states are projected.
    """
    _check_input(input)
    return _stacked("LSTM", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)


@composite(where="torch")
def gru(input: Array, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    """A stack of GRU layers: the outputs and the last hidden states."""
    _check_input(input)
    return _stacked("GRU", input, [hx], params, has_biases, num_layers, dropout, train, bidirectional, batch_first)


@composite(where="torch")
def rnn_tanh(input: Array, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    """A stack of Elman layers with tanh: the outputs and the last hidden states."""
    _check_input(input)
    return _stacked("RNN_TANH", input, [hx], params, has_biases, num_layers, dropout, train, bidirectional, batch_first)


@composite(where="torch")
def rnn_relu(input: Array, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    """A stack of Elman layers with relu: the outputs and the last hidden states."""
    _check_input(input)
    return _stacked("RNN_RELU", input, [hx], params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
