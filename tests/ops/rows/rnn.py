"""Rows of jtorch/ops/rnn.py."""

from . import T, row

_LSTM = [T(12, 3), T(12, 3), T(12), T(12)]
_CELL = [T(9, 4), T(9, 3), T(9), T(9)]
_GRU = [T(9, 4), T(9, 3), T(9), T(9)]
_RNN = [T(3, 4), T(3, 3), T(3), T(3)]
_TAIL = [True, 1, 0.0, False, False, False]

ROWS = [
    row("lstm_cell", samples=[[T(2, 3), [T(2, 3), T(2, 3)], *_LSTM]]),
    row("gru_cell", samples=[[T(2, 4), T(2, 3), *_CELL]]),
    row("rnn_tanh_cell", samples=[[T(2, 4), T(2, 3), *_RNN]]),
    row("rnn_relu_cell", samples=[[T(2, 4), T(2, 3), *_RNN]]),
    row("lstm", samples=[[T(5, 2, 3), [T(1, 2, 3), T(1, 2, 3)], _LSTM, *_TAIL]]),
    row("gru", samples=[[T(5, 2, 4), T(1, 2, 3), _GRU, *_TAIL]]),
    row("rnn_tanh", samples=[[T(5, 2, 4), T(1, 2, 3), _RNN, *_TAIL]]),
    row("rnn_relu", samples=[[T(5, 2, 4), T(1, 2, 3), _RNN, *_TAIL]]),
]
