"""Recurrent cells under autocast on the CPU: the products are in the lower precision, the state keeps its own dtype."""

from ..functions import sigmoid, tanh
from ..reshaping import op_named


def _linear(x, weight, bias):
    return op_named("linear")(x, weight, bias)


def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """(h, c) after one step of torch.lstm_cell."""
    h, c = hx
    i, f, g, o = (_linear(input, w_ih, b_ih) + _linear(h, w_hh, b_hh)).chunk(4, -1)
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(c), c


def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """h after one step of torch.gru_cell."""
    given, kept = _linear(input, w_ih, b_ih).chunk(3, -1), _linear(hx, w_hh, b_hh).chunk(3, -1)
    reset, update = sigmoid(kept[0] + given[0]), sigmoid(kept[1] + given[1])
    new = tanh(given[2] + reset * kept[2])
    return (hx - new) * update + new
