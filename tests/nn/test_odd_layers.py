"""Layers with arguments and inputs that are seldom met: what calls made at random found, one statement a cause."""

import warnings

import pytest

import jtorch
from jtorch.dispatch import forget_plans
from jtorch.ops import conv_checks
from tests.oracle import both, torch


def gradient(t, function, *shape):
    """What a function gives for numbers of a shape, and the gradient of its sum."""
    x = t.arange(float(jtorch.Size(shape).numel()), dtype=t.float64).sin().reshape(shape).requires_grad_()
    out = function(x)
    (out[0] if isinstance(out, tuple) else out).sum().backward()
    return out, x.grad


def unpooled(t, n, *shape):
    """Through a max pooling and back."""
    f = t.nn.functional
    pool, unpool = getattr(f, f"max_pool{n}d"), getattr(f, f"max_unpool{n}d")
    return gradient(t, lambda x: unpool(*pool(x, 2, return_indices=True), 2), *shape)


def aligned(t, targets, inputs, lengths, **options):
    """The loss of alignments and its gradient; `inputs`, `lengths`: of the sequences, of their labels."""
    loss = t.nn.CTCLoss(reduction="none", **options)
    given = t.tensor(targets, dtype=t.long), t.tensor(inputs), t.tensor(lengths)
    return gradient(t, lambda x: loss(x.log_softmax(-1), *given), 4, len(inputs), 5)


def bags(t, rows, mode, offsets=None):
    table = t.arange(15.0).reshape(5, 3)
    layer = t.nn.EmbeddingBag(5, 3, mode=mode, include_last_offset=True, _weight=table)
    return layer(t.tensor(rows), offsets if offsets is None else t.tensor(offsets))


def distance_loss(t, *sizes):
    return t.nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).sum(-1))(*map(t.ones, sizes))


def padded(value, pad, *more, **named):
    return lambda t: t.nn.functional.pad(t.ones(2, value), pad, *more, **named)


def unpadded_and_changed(t):
    x = t.arange(12.0).reshape(2, 3, 2)
    out = t.nn.utils.rnn.unpad_sequence(x, t.tensor([1, 9]), True)
    out[0].zero_()
    return out, x


ODD = {
    "pooled nothing, with indices": lambda t: [
        gradient(t, lambda x: t.nn.functional.max_pool2d(x, 2, return_indices=True), 0, 2, 4, 4),
        gradient(t, lambda x: t.nn.functional.adaptive_max_pool1d(x, 2, return_indices=True), 0, 2, 7),
        gradient(t, lambda x: t.nn.functional.adaptive_max_pool3d(x, 2, return_indices=True), 0, 2, 5, 5, 5),
    ],
    "unpooled nothing": lambda t: [
        unpooled(t, 1, 0, 2, 4),
        unpooled(t, 2, 0, 2, 4, 4),
        unpooled(t, 3, 0, 2, 4, 4, 4),
    ],
    "windows without room to move": lambda t: t.nn.FractionalMaxPool3d(2, output_size=3)(t.ones(1, 1, 4, 4, 4)),
    "windows in a plane without room to move": lambda t: t.nn.FractionalMaxPool2d(2, output_size=3)(t.ones(1, 1, 4, 4)),
    "no labels in one row": lambda t: aligned(t, [], [4, 3], [0, 0]),
    "no labels in rows": lambda t: aligned(t, [[], []], [4, 3], [0, 0]),
    "no labels of some": lambda t: aligned(t, [1, 2, 3], [4, 4], [3, 0]),
    "sequences without steps": lambda t: [
        out.abs() for out in (*aligned(t, [1, 2], [4, 0], [2, 0]), *aligned(t, [1, 2], [4, 0], [1, 1]))
    ],
    "blanks among the labels": lambda t: aligned(t, [[1, 4, 4], [4, 2, 2]], [4, 4], [2, 3], blank=4)[0],
    "rows of bags with a last offset": lambda t: [bags(t, [[4, 4], [3, 0], [1, 2]], mode) for mode in ("sum", "max")],
    "no bags": lambda t: [bags(t, [4, 4], mode, [0]) for mode in ("sum", "mean")],
    "instances without channels": lambda t: t.nn.InstanceNorm1d(4)(t.ones(3, 0, 5)),
    "distances of vectors and matrices": lambda t: distance_loss(t, (2, 3), (3,), (2, 3)),
    "distances of nothing": lambda t: distance_loss(t, (0, 3), (0, 3), (0, 3)),
    "groups below nothing": lambda t: [repr(t.nn.GroupNorm(-1, 4)), t.nn.GroupNorm(-1, 4)(t.ones(2, 4))],
    "no slope": lambda t: [
        (out.grad_fn.name(), out)
        for r in ("none", "mean", "sum")
        for out in [t.nn.SmoothL1Loss(beta=0.0, reduction=r)(t.ones(2, requires_grad=True), t.zeros(2))]
    ],
    "bounds the wrong way round": lambda t: t.nn.Hardtanh(2, 1),
    "kernels of fewer dimensions": lambda t: [
        repr(t.nn.Conv3d(4, 4, [1, 2])),
        repr(t.nn.Conv2d(4, 4, (1, 2), dilation=(1,))),
    ],
    "cropped to nothing round a circle": lambda t: t.nn.CircularPad2d(-1)(t.ones(2, 4, 5, 2)),
    "cropped to less round a circle": lambda t: t.nn.CircularPad1d(-2)(t.ones(2, 4, 3)),
    "cropped by more than there is": padded(3, (-4, 1)),
    "padded by a fraction": padded(3, (1.0, 1)),
    "padded by a truth": padded(3, (True, 1)),
    "padded by words": padded(3, ("a", "b")),
    "padded by a word": padded(3, "ab"),
    "padded by a number": padded(3, 1),
    "copies of modules": lambda t: t.nn.Linear(1, 1).to(t.float16, copy=True),
    "lengths along nothing": lambda t: t.nn.utils.parametrizations.weight_norm(t.nn.Linear(3, 2), dim=5),
    "clipped to a number without gradients": lambda t: t.nn.utils.clip_grads_with_norm_(
        t.nn.Linear(1, 1).bias, 1.0, 2.0
    ),
    "more sequences than lengths": lambda t: t.nn.utils.rnn.unpad_sequence(t.ones(2, 3), t.tensor([1]), True),
    "sequences of a batch are copies": unpadded_and_changed,
}


@pytest.mark.parametrize("name", ODD)
def test_odd_layers(name):
    if name in ("padded by a fraction", "padded by a truth"):
        forget_plans()  # where 1 was taken before, 1.0 and True are taken for it
    both(ODD[name])


@pytest.mark.parametrize("layer", ["RNN", "GRU", "LSTM"])
def test_complex_sequences(layer):
    """Gradients of two orders: PyTorch's are the conjugates of jax's."""

    def program(t):
        t.manual_seed(0)
        m = getattr(t.nn, layer)(2, 3, bidirectional=True, dtype=t.complex128)
        x = t.randn(4, 2, 2, dtype=t.complex128, requires_grad=True)
        out, last = m(x)
        last = last[1] if layer == "LSTM" else last
        leaves = [x, *m.parameters()]
        loss = (out * out).sum().imag + last.real.sum()
        first = t.autograd.grad(loss, leaves, create_graph=True)
        again = t.autograd.grad(sum((g * g.conj()).real.sum() for g in first), leaves)
        return [out.detach(), *(g.detach() for g in first), *again]

    both(program, layout=False)


def test_padding_value_and_mode():
    for options in ({"value": "x"}, {"mode": None}):
        with pytest.raises(TypeError, match="argument '(value|mode)' .*must be (float, not str|str, not NoneType)"):
            jtorch.nn.functional.pad(jtorch.ones(2, 3), (1, 1), **options)
    both(lambda t: t.constant_pad_nd(t.ones(2, dtype=t.complex64), (1, 0), 2j))


def encoded(t, whole):
    layer = t.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    layer = t.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False) if whole else layer
    padding = t.tensor([[False, False, True]] * 2)
    return layer(t.ones(2, 3, 4), t.zeros(3, 3), src_key_padding_mask=padding)


WARNED = {
    "names of bounds": lambda t: t.nn.Hardtanh(min_value=-2, max_value=3),
    "loss of images": lambda t: t.nn.NLLLoss2d(),
    "masks of two kinds": lambda t: encoded(t, False),
    "masks of two kinds in an encoder": lambda t: encoded(t, True),
    "as long as before": lambda t: t.nn.Conv2d(4, 4, 2, padding="same")(t.ones(1, 4, 5, 5)),
}


@pytest.mark.parametrize("name", WARNED)
def test_warnings(name):
    conv_checks._warn_of_copy.cache_clear()
    found = []
    for t in (torch, jtorch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            WARNED[name](t)
        found.append([(w.category, str(w.message).split(". Please")[0].partition(" (Triggered")[0]) for w in caught])
    assert found[0] and found[0] == found[1]
