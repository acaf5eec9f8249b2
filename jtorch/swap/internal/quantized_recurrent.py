"""torch.ao.nn.quantized.dynamic's recurrent layers: both products of a step are those of the quantized linear layer.

The products with the inputs are made for all steps at once, with one scale; those with the hidden state step by step.
"""

from ... import errors
from ... import functions as torch
from ...nn import functional as F
from ...nn.modules import rnn
from ...nn.modules.container import ModuleList
from ...nn.modules.module import Module
from ...nn.packed import PackedSequence
from .quantized_dynamic import Linear

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "RNNCell"]


def _lstm(inputs, states, product):
    hidden, cell = states
    i, f, g, o = (inputs + product(hidden)).chunk(4, -1)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def _gru(inputs, states, product):
    (hidden,) = states
    ir, iz, inew = inputs.chunk(3, -1)
    hr, hz, hnew = product(hidden).chunk(3, -1)
    new = (inew + hnew * (ir + hr).sigmoid()).tanh()
    return ((hidden - new) * (iz + hz).sigmoid() + new,)


class _Pair(Module):
    """The two products of a layer in one direction."""

    def __init__(self, of_input, of_hidden):
        super().__init__()
        self.of_input, self.of_hidden = of_input, of_hidden


def _products(mod, ending, dtype):
    made = []
    for kind in ("ih", "hh"):
        weight, bias = (getattr(mod, f"{what}_{kind}{ending}", None) for what in ("weight", "bias"))
        made.append(Linear.from_weights(weight, bias, dtype))
    return _Pair(*made)


class _Layers(Module):
    """What LSTM and GRU share."""

    states = 1

    @classmethod
    def from_float(cls, mod, dtype=None, use_precomputed_fake_quant=False):
        """The layers made of those of torch.nn. Raises AssertionError for those without bias, as PyTorch does."""
        assert mod.bias, "mod.bias must be True"
        if mod.proj_size:
            raise errors.unsupported("quantize_dynamic of an LSTM with proj_size", "one without")
        made = cls()
        for name in ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional"):
            setattr(made, name, getattr(mod, name))
        made.dtype = torch.qint8 if dtype is None else dtype
        directions = ("", "_reverse") if mod.bidirectional else ("",)
        made.products = ModuleList(
            [_products(mod, f"_l{k}{d}", made.dtype) for k in range(mod.num_layers) for d in directions]
        )
        return made

    def forward(self, input, hx=None):
        """Output and last states, for an input (steps, batch, features), or batch first where the layer was made so."""
        if isinstance(input, PackedSequence):
            raise errors.unsupported("packed sequences in quantized recurrent layers", "padded ones")
        if input.dim() == 1:
            raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
        if input.dim() != 3:
            raise RuntimeError(f"input must have 3 dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )
        x = input.transpose(0, 1) if self.batch_first else input
        size = (len(self.products), x.size(1), self.hidden_size)
        starts = self._starts(hx, size, x)
        ends = []
        for k in range(self.num_layers):
            each = 2 if self.bidirectional else 1
            outs = []
            for d in range(each):
                n = k * each + d
                out, last = self._direction(self.products[n], x, [s[n] for s in starts], bool(d))
                outs.append(out)
                ends.append(last)
            x = torch.cat(outs, -1) if each == 2 else outs[0]
            if self.dropout and self.training and k < self.num_layers - 1:
                x = F.dropout(x, self.dropout, True)
        last = tuple(torch.stack(states) for states in zip(*ends))
        return x.transpose(0, 1) if self.batch_first else x, last if self.states == 2 else last[0]

    def _starts(self, hx, size, x):
        if hx is None:
            return [torch.zeros(size, dtype=x.dtype, device=x.device)] * self.states
        given = list(hx) if self.states == 2 else [hx]
        for k, s in enumerate(given):
            if tuple(s.shape) != size:
                what = f"hidden[{k}]" if self.states == 2 else "hidden"
                raise RuntimeError(f"Expected {what} size {size}, got {list(s.shape)}")
        return given

    def _direction(self, products, x, states, backwards):
        inputs = products.of_input(x).unbind(0)
        outs = []
        for step in reversed(inputs) if backwards else inputs:
            states = type(self).step(step, states, products.of_hidden)
            outs.append(states[0])
        return torch.stack(outs[::-1] if backwards else outs), states

    def _get_name(self):
        return f"DynamicQuantized{type(self).__name__}"

    extra_repr = rnn.RNNBase.extra_repr
    proj_size = 0

    def __repr__(self):
        return f"{self._get_name()}({self.extra_repr()})"


class LSTM(_Layers):
    """torch.nn.LSTM with weights of 8 or 16 bits."""

    states = 2
    step = staticmethod(_lstm)


class GRU(_Layers):
    """torch.nn.GRU with weights of 8 or 16 bits."""

    step = staticmethod(_gru)


class _Cell(Module):
    """What the cells share."""

    @classmethod
    def from_float(cls, mod, dtype=None, use_precomputed_fake_quant=False):
        """The cell made of that of torch.nn."""
        made = cls()
        made.input_size, made.hidden_size, made.bias = mod.input_size, mod.hidden_size, mod.bias
        made.nonlinearity = getattr(mod, "nonlinearity", None)
        made.dtype = torch.qint8 if dtype is None else dtype
        made.products = _products(mod, "", made.dtype)
        return made

    def _run(self, step, input, states):
        if states[0] is None:
            states = [torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)] * len(
                states
            )
        return step(self.products.of_input(input), states, self.products.of_hidden)

    def __repr__(self):
        other = "" if self.nonlinearity in (None, "tanh") else f", nonlinearity={self.nonlinearity}"
        return f"DynamicQuantized{type(self).__name__}({self.input_size}, {self.hidden_size}{other})"


class LSTMCell(_Cell):
    """torch.nn.LSTMCell with weights of 8 or 16 bits."""

    def forward(self, input, hx=None):
        """(hidden, cell) after one step."""
        return self._run(_lstm, input, [None, None] if hx is None else list(hx))


class GRUCell(_Cell):
    """torch.nn.GRUCell with weights of 8 or 16 bits."""

    def forward(self, input, hx=None):
        """The hidden state after one step."""
        return self._run(_gru, input, [hx])[0]


class RNNCell(_Cell):
    """torch.nn.RNNCell with weights of 8 or 16 bits."""

    def forward(self, input, hx=None):
        """The hidden state after one step."""
        bend = torch.tanh if self.nonlinearity == "tanh" else torch.relu
        return self._run(lambda inputs, states, product: [bend(inputs + product(states[0]))], input, [hx])[0]
