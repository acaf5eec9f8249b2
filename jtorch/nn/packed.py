"""Batches of sequences of unequal length: padded, packed, and back.

What has been packed stays padded until somebody looks at the elements: recurrent layers and `pad_packed_sequence` take the padded
form, whose shapes do not change with every batch's lengths, so that a loop over batches is one program.
"""

from collections import namedtuple
from collections.abc import Iterable

import numpy as np

from jtorch import errors
from jtorch import functions as torch
from jtorch.autograd import grad_mode
from jtorch.core import dtype as dtypes
from jtorch.core import shapes
from jtorch.core.record import tls
from jtorch.core.storage import at_hand, numpy_of
from jtorch.creation import from_array
from jtorch.sampling import on_host
from jtorch.tensor import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

_Fields = namedtuple("PackedSequence_", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


class PackedSequence(_Fields):
    """Sequences without padding: the elements of all at step 0, then at step 1, ...

    Made by pack_padded_sequence or pack_sequence. `batch_sizes` (on the CPU) says how many sequences reach each
    step, `sorted_indices` how the batch was sorted by length.
    """

    # (L, N, *) in the order of the packing, zero outside the sequences: stands for `data` until that is asked for. From then on
    # `data` is what counts, which may be written to and have hooks.
    _padded = None
    _data = None

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. "
                "Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence "
                "and pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    @classmethod
    def of_padded(cls, padded, batch_sizes, sorted_indices, unsorted_indices):
        """Packed sequences whose elements are those of a padded (L, N, *) batch, sorted by length."""
        self = super().__new__(cls, None, batch_sizes, sorted_indices, unsorted_indices)
        self._padded = padded
        return self

    @property
    def data(self):
        """The elements (sum of the lengths, *)."""
        padded = self._padded
        if padded is not None:
            with grad_mode.set_grad_enabled(padded.requires_grad):  # as when it was packed
                self._data, self._padded = _packed(padded, self.batch_sizes), None
        return tuple.__getitem__(self, 0) if self._data is None else self._data

    def _whole(self):
        return self.data if self._padded is None else self._padded

    def padded(self):
        """(L, N, *) in the order of the packing, zero outside the sequences."""
        return _unpacked(self.data, self.batch_sizes) if self._padded is None else self._padded

    def __iter__(self):
        yield self.data
        yield from tuple.__getitem__(self, slice(1, None))

    def __getitem__(self, k):
        return tuple(self)[k] if isinstance(k, slice) or k in (0, -4) else tuple.__getitem__(self, k)

    def __repr__(self):
        return f"PackedSequence({', '.join(f'{n}={v!r}' for n, v in zip(self._fields, self))})"

    def __reduce__(self):
        return type(self), tuple(self)

    def to(self, *args, **kwargs):
        """The same with `data` moved or cast; the indices follow to the device."""
        whole = self._whole().to(*args, **kwargs)
        if whole is self._whole():
            return self
        move = lambda t: None if t is None else t.to(whole.device)
        made = type(self) if self._padded is None else self.of_padded
        return made(whole, self.batch_sizes, move(self.sorted_indices), move(self.unsorted_indices))

    def pin_memory(self):
        """The same in pinned memory."""
        pin = lambda t: None if t is None else t.pin_memory()
        return type(self)(
            self.data.pin_memory(), self.batch_sizes, pin(self.sorted_indices), pin(self.unsorted_indices)
        )

    def cuda(self, *args, **kwargs):
        """The same on a GPU."""
        if self.is_cuda and not args and not kwargs:
            return self
        return self.to(*args, **({"device": "cuda"} | kwargs if not args else kwargs))

    def cpu(self, *args, **kwargs):
        """The same on the CPU."""
        return self.to("cpu")

    def double(self):
        """The same in float64."""
        return self.to(dtype=dtypes.float64)

    def float(self):
        """The same in float32."""
        return self.to(dtype=dtypes.float32)

    def half(self):
        """The same in float16."""
        return self.to(dtype=dtypes.float16)

    def long(self):
        """The same in int64."""
        return self.to(dtype=dtypes.int64)

    def int(self):
        """The same in int32."""
        return self.to(dtype=dtypes.int32)

    def short(self):
        """The same in int16."""
        return self.to(dtype=dtypes.int16)

    def char(self):
        """The same in int8."""
        return self.to(dtype=dtypes.int8)

    def byte(self):
        """The same in uint8."""
        return self.to(dtype=dtypes.uint8)

    @property
    def is_cuda(self):
        """Whether `data` is on a GPU."""
        return self._whole().is_cuda

    def is_pinned(self):
        """Whether `data` is in pinned memory."""
        return self._whole().is_pinned()


def inside(batch_sizes) -> np.ndarray:
    """(L, N): whether a sequence reaches a step."""
    sizes = batch_sizes.numpy()
    return np.arange(sizes[0]) < sizes[:, None]


def _packed(padded, batch_sizes):
    """The elements of a padded batch, sorted by length, step by step."""
    where = torch.from_numpy(np.flatnonzero(inside(batch_sizes))).to(padded.device)
    return padded.reshape(-1, *padded.shape[2:]).index_select(0, where)


def _unpacked(data, batch_sizes):
    """The padded batch of these elements, zero outside the sequences."""
    reached = inside(batch_sizes)
    # all gaps point to one row of zeros at the end
    where = np.where(reached, np.cumsum(reached).reshape(reached.shape) - 1, len(data)).reshape(-1)
    gap = torch.zeros((1, *data.shape[1:]), dtype=data.dtype, device=data.device)
    rows = torch.cat([data, gap]).index_select(0, torch.from_numpy(where).to(data.device))
    return rows.reshape(*reached.shape, *data.shape[1:])


def repacked(padded, batch_sizes, function):
    """A padded batch of which a function has taken the packed elements."""
    return _unpacked(function(_packed(padded, batch_sizes)), batch_sizes)


def _mask(batch_sizes, like):
    """`inside` as a tensor that broadcasts to the padded batch `like` from the left."""
    mask = torch.from_numpy(inside(batch_sizes)).to(like.device)
    return mask.reshape(*mask.shape, *[1] * (like.dim() - 2))


def invert_permutation(permutation):
    """The permutation that undoes this one; None for None."""
    if permutation is None:
        return None
    return torch.argsort(permutation)


def _lengths(lengths) -> list:
    if not isinstance(lengths, Tensor):
        try:
            return [int(n) for n in lengths]
        except TypeError:  # a number, or rows of them
            lengths = torch.as_tensor(lengths, dtype=dtypes.int64)
    if lengths.device.type != "cpu" or lengths.dim() != 1:
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{lengths.dim()}D {lengths.device} {errors.scalar_name(lengths.dtype)} tensor"
        )
    return [int(n) for n in lengths.tolist()]


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Pack a padded batch (L, N, *) of sequences.

    Args:
        lengths: the length of each sequence
        batch_first: the batch is (N, L, *)
        enforce_sorted: the lengths must fall; otherwise the batch is sorted here
    """
    lengths = _lengths(lengths)
    sorted_indices = unsorted = None
    if not enforce_sorted:  # a batch of more sequences than there are lengths loses the rest
        order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
        lengths = [lengths[i] for i in order]
        sorted_indices = torch.tensor(order, dtype=dtypes.int64, device=input.device)
        unsorted = torch.tensor(np.argsort(order), dtype=dtypes.int64, device=input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    if len(lengths) != input.size(0 if batch_first else 1):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} "
            f"(batch_size={input.size(0 if batch_first else 1)})"
        )
    if lengths[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if enforce_sorted:
        if any(a < b for a, b in zip(lengths, lengths[1:])):
            raise RuntimeError(
                "`lengths` array must be sorted in decreasing order when "
                "`enforce_sorted` is True. You can pass `enforce_sorted=False` "
                "to pack_padded_sequence and/or pack_sequence to sidestep this "
                "requirement if you do not need ONNX exportability."
            )
    steps = input.transpose(0, 1) if batch_first else input
    if lengths[0] > steps.shape[0]:
        raise RuntimeError(f"A sequence of length {lengths[0]} cannot be taken from {steps.shape[0]} steps")
    sizes = torch.from_numpy((np.array(lengths) > np.arange(lengths[0])[:, None]).sum(1))
    steps = steps[: lengths[0]]
    return PackedSequence.of_padded(
        torch.where(_mask(sizes, steps), steps, torch.zeros((), dtype=steps.dtype, device=steps.device)),
        sizes,
        sorted_indices,
        unsorted,
    )


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """The padded batch (L, N, *) of packed sequences, and their lengths (a CPU tensor).

    Args:
        batch_first: give (N, L, *)
        padding_value: what fills the rest. Default: 0
        total_length: pad to this length
    """
    reached = inside(sequence.batch_sizes)
    longest = len(reached)
    if total_length is not None:
        if not hasattr(total_length, "__index__"):
            got = errors.type_name(total_length)
            raise TypeError(f"_pad_packed_sequence(): argument 'total_length' (position 5) must be int, not {got}")
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length "
                "of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {longest}"
            )
    padded = sequence.padded()
    fill = torch.full((), padding_value, dtype=padded.dtype, device=padded.device)
    padded = torch.where(_mask(sequence.batch_sizes, padded), padded, fill)
    if total_length is not None and total_length > longest:
        padded = torch.cat([padded, fill.expand(total_length - longest, *padded.shape[1:])])
    lengths = torch.from_numpy(reached.sum(0))
    if batch_first:
        padded = padded.transpose(0, 1)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return padded, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Stack tensors (L_i, *) to (L, N, *), L the largest length, filled with `padding_value`.

    Args:
        batch_first: give (N, L, *)
        padding_side: "right" or "left"
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    for k, s in enumerate(sequences):
        if not isinstance(s, Tensor):
            raise errors.list_element(k, s)
    longest = max(s.size(0) for s in sequences)
    first = sequences[0]
    if all(map(_at_hand, sequences)) and len({tuple(s.shape[1:]) for s in sequences}) == 1:
        return _padded_on_host(sequences, longest, batch_first, padding_value, padding_side)
    rows = []
    for s in sequences:
        wanted = (s.size(0), *first.shape[1:])
        if tuple(s.shape) != wanted:
            shapes.broadcast(wanted, tuple(s.shape))
            s = s.expand(wanted)
        s = s.to(first.dtype)
        short = longest - s.size(0)
        if short:
            gap = torch.full((short, *s.shape[1:]), padding_value, dtype=first.dtype, device=first.device)
            s = torch.cat([s, gap] if padding_side == "right" else [gap, s])
        rows.append(s)
    return torch.stack(rows, 0 if batch_first else 1)


def _at_hand(t) -> bool:
    """Whether the values of a tensor can be read now, and nobody has to know that they are."""
    value = t._storage.value
    if type(t) is not Tensor or t.requires_grad or not at_hand(value):
        return False
    return on_host(t) and tls.me.special is None


def _padded_on_host(sequences, longest, batch_first, padding_value, side):
    """The same by numpy: lengths differ from batch to batch, and every set of lengths would be a recorded graph of its own."""
    first = sequences[0]
    fill = torch.full((), padding_value, dtype=first.dtype)
    shape = (len(sequences), longest, *first.shape[1:])
    out = np.full(shape, numpy_of(fill._storage, fill._spec, 0), first.dtype.np)
    for row, s in zip(out, sequences):
        n = s.size(0)
        row[slice(n) if side == "right" else slice(longest - n, None)] = numpy_of(s._storage, s._spec, s._offset)
    out = out if batch_first else out.swapaxes(0, 1)
    return from_array(out, first.device, first.dtype)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences of a padded batch, each with its own length, as copies."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    places = torch.arange(padded_sequences.shape[1], device=padded_sequences.device)
    return [s[places[: int(n)]] for s, n in zip(padded_sequences.unbind(0), lengths, strict=True)]


def pack_sequence(sequences, enforce_sorted=True):
    """Pack a list of tensors (L_i, *)."""
    lengths = torch.tensor([s.size(0) for s in sequences], dtype=dtypes.int64)
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The list of tensors that were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
