"""Recurrent layers: RNN, LSTM, GRU and their cells."""

import math
import numbers
import warnings

from jtorch import errors_nn
from jtorch import functions as torch
from jtorch.amp.autocast import get_autocast_dtype, is_any_autocast_enabled
from jtorch.handles import mutations
from jtorch.nn import functional as F
from jtorch.nn import init
from jtorch.nn.modules.module import Module
from jtorch.nn.packed import PackedSequence, inside, repacked
from jtorch.nn.parameter import Parameter
from jtorch.ops.rnn_stacks import stack_of_lengths

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]


def apply_permutation(tensor, permutation, dim=1):
    """`tensor.index_select(dim, permutation)`, under the name that PyTorch keeps for old programs."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead",
        FutureWarning,
        stacklevel=2,
    )
    return tensor.index_select(dim, permutation)


_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """The parameters and checks of recurrent layers.

    Args:
        mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU"
        input_size, hidden_size: sizes of the input's and the state's last dimension
        num_layers: layers on top of each other. Default: 1
        bias: Default: True
        batch_first: input is (N, L, H), not (L, N, H)
        dropout: probability for the outputs of all layers but the last
        bidirectional: also run backward; outputs are concatenated
        proj_size: LSTM only: size of the projected state

    Start: uniform in (-k, k), k = 1 / sqrt(hidden_size)
    """

    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_options(dropout)
        self._flat_weights_names = []
        self._all_weights = []
        for layer in range(num_layers):
            for direction in range(2 if bidirectional else 1):
                self._add_layer(layer, direction, {"device": device, "dtype": dtype})
        self.reset_parameters()

    def _check_options(self, dropout):
        for name, kind in (("input_size", int), ("hidden_size", int), ("bias", bool), ("batch_first", bool)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last "
                "recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={self.num_layers}",
                stacklevel=4,
            )
        if self.input_size <= 0:
            raise ValueError("input_size must be greater than zero")
        if self.hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    def _add_layer(self, layer, direction, factory):
        out = self.proj_size if self.proj_size > 0 else self.hidden_size
        gates = _GATES[self.mode] * self.hidden_size
        size = self.input_size if layer == 0 else out * (2 if self.bidirectional else 1)
        suffix = f"_l{layer}" + ("_reverse" if direction else "")
        shapes = {"weight_ih": (gates, size), "weight_hh": (gates, out)}
        if self.bias:
            shapes["bias_ih"] = shapes["bias_hh"] = (gates,)
        if self.proj_size > 0:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = [name + suffix for name in shapes]
        for name, shape in zip(names, shapes.values()):
            setattr(self, name, Parameter(torch.empty(shape, **factory)))
        self._flat_weights_names.extend(names)
        self._all_weights.append(names)

    @property
    def _flat_weights(self):
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @property
    def all_weights(self):
        """The parameters, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self):
        """Nothing to do: there is no layout of weights that a kernel would prefer."""

    def reset_parameters(self):
        """Draw the start values anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self):
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.proj_size != 0:
            parts.append(f"proj_size={self.proj_size}")
        if self.num_layers != 1:
            parts.append(f"num_layers={self.num_layers}")
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        if self.batch_first is not False:
            parts.append(f"batch_first={self.batch_first}")
        if self.dropout != 0:
            parts.append(f"dropout={self.dropout}")
        if self.bidirectional is not False:
            parts.append(f"bidirectional={self.bidirectional}")
        return ", ".join(parts)

    def _directions(self):
        return 2 if self.bidirectional else 1

    def check_input(self, input, batch_sizes):
        """Raise unless `input` has the right dtype, dimensions and size."""
        weight = self._flat_weights[0]
        if input.dtype != weight.dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        n = 2 if batch_sizes is not None else 3
        if input.dim() != n:
            raise RuntimeError(f"input must have {n} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _batch(self, input, batch_sizes):
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return input.size(0) if self.batch_first else input.size(1)

    def get_expected_hidden_size(self, input, batch_sizes):
        """The shape that a given start state must have."""
        out = self.proj_size if self.proj_size > 0 else self.hidden_size
        return self.num_layers * self._directions(), self._batch(input, batch_sizes), out

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        """Raise unless the state has the expected shape."""
        if tuple(hx.size()) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):
        """Raise unless input and start state fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def _check_states(self, input, hx):
        if is_any_autocast_enabled():
            return
        for h in hx if isinstance(hx, tuple) else (hx,):
            if h.dtype is not input.dtype:
                if self.mode == "LSTM":
                    raise RuntimeError("get_mkldnn_dtype: unsupported data type")
                raise errors_nn.same_dtype("mat1", "mat2", h.dtype, input.dtype)

    def permute_hidden(self, hx, permutation):
        """The state in another order of the batch."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def _zeros(self, input, batch, size):
        shape = (self.num_layers * self._directions(), batch, size)
        return torch.zeros(shape, dtype=input.dtype, device=input.device)

    def _start(self, input, batch):
        """The state when none is given."""
        return self._zeros(input, batch, self.hidden_size)

    def _add_batch(self, hx):
        if hx is not None:
            if hx.dim() != 2:
                raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor")
            return hx.unsqueeze(1)
        return None

    def _check_batched(self, hx):
        if hx is not None and hx.dim() != 3:
            raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor")

    def _drop_batch(self, hx):
        return hx.squeeze(1)

    def _function(self):
        return getattr(torch, self.mode.lower())

    def _scan(self, input, hx):
        options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first)
        return self._function()(input, hx, self._flat_weights, *options)

    def _across_dtypes(self, input, hx):
        """Under autocast an input may be of another dtype than the weights: computed in theirs, given back as autocast says."""
        dtype, wide = input.data.dtype, self._flat_weights[0].dtype
        if not isinstance(input, PackedSequence):
            low = get_autocast_dtype(input.device.type)
            dtype = torch.promote_types(dtype, low) if self.mode == "GRU" else low  # a GRU's state is never cast
        states = hx if hx is None else tuple(h.to(wide) for h in hx) if isinstance(hx, tuple) else hx.to(wide)
        output, state = self.forward(input.to(wide), states)
        return output.to(dtype), tuple(h.to(dtype) for h in state) if isinstance(state, tuple) else state.to(dtype)

    def _scan_packed(self, input, hx):
        """All layers over packed sequences; each keeps its state once it has ended."""
        _, batch_sizes, sorted_indices, unsorted_indices = tuple.__iter__(input)
        drop = lambda x: repacked(x, batch_sizes, lambda data: F.dropout(data, self.dropout, True))
        output, *state = stack_of_lengths(
            self.mode, input.padded(), torch.from_numpy(inside(batch_sizes)).to(hx[0].device), hx, self._flat_weights, self.bias,
            self.num_layers, self.dropout, self.training, self.bidirectional, drop,
        )  # fmt: skip
        return PackedSequence.of_padded(output, batch_sizes, sorted_indices, unsorted_indices), state

    def forward(self, input, hx=None):
        """Run over a sequence (or a PackedSequence) from the state `hx` (default: zeros).

        Returns the outputs of the last layer and the last state.
        """
        if is_any_autocast_enabled() and input.data.dtype is not self._flat_weights[0].dtype:
            return self._across_dtypes(input, hx)
        if isinstance(input, PackedSequence):
            row = input.padded()[0]
            hx = self._start(row, len(row)) if hx is None else self.permute_hidden(hx, input.sorted_indices)
            self.check_forward_args(row, hx, input.batch_sizes)
            self._check_states(row, hx)
            output, state = self._scan_packed(input, hx if isinstance(hx, tuple) else (hx,))
            state = tuple(state) if len(state) > 1 else state[0]
            return output, self.permute_hidden(state, input.unsorted_indices)
        if input.dim() not in (2, 3):
            tensor = " tensor" if self.mode.startswith("RNN") else ""
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D{tensor} instead")
        batched = input.dim() == 3
        if batched:
            self._check_batched(hx)
        else:
            input = input.unsqueeze(0 if self.batch_first else 1)
            hx = self._add_batch(hx)
        if hx is None:
            hx = self._start(input, self._batch(input, None))
        self.check_forward_args(input, hx, None)
        self._check_states(input, hx)
        if input.shape[1 if self.batch_first else 0] == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        output, *state = self._scan(input, hx)
        state = tuple(state) if len(state) > 1 else state[0]
        if not batched:
            return output.squeeze(0 if self.batch_first else 1), self._drop_batch(state)
        return output, state

    def __getstate__(self):
        # PyTorch keeps its parameters in a list besides, and expects it of a module out of a file.
        return {**super().__getstate__(), "_flat_weights": [getattr(self, n, None) for n in self._flat_weights_names]}

    def __setstate__(self, state):
        mutations[0] += 1
        state = dict(state)
        state.setdefault("proj_size", 0)
        state.pop("_flat_weights", None)
        super().__setstate__(state)


class RNN(RNNBase):
    """h' = nonlinearity(W_ih x + b_ih + W_hh h + b_hh), over a sequence; arguments as RNNBase after mode.

    Args:
        nonlinearity: "tanh" or "relu". Default: "tanh"
    """

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            self_nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self_nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self_nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{self_nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + self_nonlinearity.upper(), *args, **kwargs)
        self.nonlinearity = self_nonlinearity


class GRU(RNNBase):
    """Gated recurrent unit over a sequence (Cho et al., 2014); arguments as RNNBase after mode."""

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory over a sequence (Hochreiter and Schmidhuber, 1997); arguments as RNNBase after mode.

    The state is a pair (h, c).
    """

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input, batch_sizes):
        """The shape that a given start cell must have."""
        return self.num_layers * self._directions(), self._batch(input, batch_sizes), self.hidden_size

    def check_forward_args(self, input, hidden, batch_sizes):
        """Raise unless input and start state fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0],
            self.get_expected_hidden_size(input, batch_sizes),
            "Expected hidden[0] size {}, got {}",
        )
        self.check_hidden_size(
            hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}"
        )

    def permute_hidden(self, hx, permutation):
        """The state in another order of the batch."""
        if permutation is None:
            return hx
        return hx[0].index_select(1, permutation), hx[1].index_select(1, permutation)

    def _start(self, input, batch):
        out = self.proj_size if self.proj_size > 0 else self.hidden_size
        return self._zeros(input, batch, out), self._zeros(input, batch, self.hidden_size)

    def _add_batch(self, hx):
        if hx is None:
            return None
        if hx[0].dim() != 2 or hx[1].dim() != 2:
            raise RuntimeError(
                "For unbatched 2-D input, hx and cx should also be 2-D "
                f"but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )
        return hx[0].unsqueeze(1), hx[1].unsqueeze(1)

    def _check_batched(self, hx):
        if hx is not None and (hx[0].dim() != 3 or hx[1].dim() != 3):
            raise RuntimeError(
                "For batched 3-D input, hx and cx should also be 3-D "
                f"but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )

    def _drop_batch(self, hx):
        return hx[0].squeeze(1), hx[1].squeeze(1)


class RNNCellBase(Module):
    """The parameters of one recurrent step.

    Args:
        input_size, hidden_size: sizes of input and state
        bias: Default: True
        num_chunks: number of gates
    """

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        self.weight_ih = Parameter(torch.empty((gates, input_size), **factory))
        self.weight_hh = Parameter(torch.empty((gates, hidden_size), **factory))
        if bias:
            self.bias_ih = Parameter(torch.empty(gates, **factory))
            self.bias_hh = Parameter(torch.empty(gates, **factory))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw the start values anew: uniform in (-k, k), k = 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self):
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            parts.append(f"nonlinearity={self.nonlinearity}")
        return ", ".join(parts)

    def _weights(self):
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _check_dims(self, input, hx):
        if input.dim() not in (1, 2):
            raise ValueError(f"{self._get_name()}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for i, h in enumerate(hx if isinstance(hx, tuple) else (hx,)):
            if h is not None and h.dim() not in (1, 2):
                which = f"hx[{i}]" if isinstance(hx, tuple) else "hidden"
                raise ValueError(f"{self._get_name()}: Expected {which} to be 1D or 2D, got {h.dim()}D instead")

    def _single(self, function, input, hx):
        """One step of a cell whose state is one tensor."""
        self._check_dims(input, hx)
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            hx = torch.zeros((input.size(0), self.hidden_size), dtype=input.dtype, device=input.device)
        elif not batched:
            hx = hx.unsqueeze(0)
        out = function(input, hx, *self._weights())
        return out if batched else out.squeeze(0)


class RNNCell(RNNCellBase):
    """h' = nonlinearity(W_ih x + b_ih + W_hh h + b_hh)."""

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity == "tanh":
            return self._single(torch.rnn_tanh_cell, input, hx)
        if self.nonlinearity == "relu":
            return self._single(torch.rnn_relu_cell, input, hx)
        raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")


class GRUCell(RNNCellBase):
    """One step of GRU."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        return self._single(torch.gru_cell, input, hx)


class LSTMCell(RNNCellBase):
    """One step of LSTM; the state is a pair (h, c)."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        self._check_dims(input, hx)
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            zeros = torch.zeros((input.size(0), self.hidden_size), dtype=input.dtype, device=input.device)
            hx = (zeros, zeros)
        elif not batched:
            hx = tuple(h.unsqueeze(0) for h in hx)
        out = torch.lstm_cell(input, hx, *self._weights())
        return out if batched else tuple(h.squeeze(0) for h in out)
