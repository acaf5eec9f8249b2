"""Calls as beginners write them: numpy arrays and lists for tensors, names that are not there, tensors for sizes, halves for ints."""

import numpy as np
import pytest

import jtorch
from tests.oracle import both, torch

ROW = np.ones(2)

# PyTorch's class and first line
REFUSED = {
    "arrays for tensors": [
        lambda t: t.nn.functional.softmax(ROW, 0),
        lambda t: t.nn.functional.log_softmax([1.0], 0),
        lambda t: t.einsum("i->i", ROW),
        lambda t: t.nn.functional.scaled_dot_product_attention(*(np.ones((1, 2, 3)),) * 3),
        lambda t: t.nn.functional.scaled_dot_product_attention(*(t.ones(1, 2, 3),) * 3, 1),
        lambda t: t.nn.functional.scaled_dot_product_attention(*(t.ones(1, 2, 3),) * 3, dropout_p=1.5),
    ],
    "lengths that are no tuples": [
        lambda t, lengths=lengths: t.nn.CTCLoss()(t.zeros(5, 1, 3).log_softmax(2), t.tensor([1]), *lengths)
        for lengths in ((5, 1), ((5,), 1), (5, (1,)), (None, (1,)), ([5.0], [1]), ("5", "1"))
    ]
    + [
        lambda t: t.nn.CTCLoss()(t.zeros(5, 1, 3).log_softmax(2), t.tensor([1]), (5,), t.tensor([1])),
        lambda t: t.nn.CTCLoss()(t.zeros(5, 1, 3).log_softmax(2), [1], (5,), (1,)),
    ],
    "names that are not there": [
        lambda t: t.sum(t.ones(2, 3), 0, foo=1),
        lambda t: t.argmax(t.ones(2, 3), 0, foo=1),
        lambda t: t.topk(t.ones(2, 3), 1, size=1),
        lambda t: t.ones(2, 3).uniform_(0, 1, foo=1),
        lambda t: t.linalg.inv(t.eye(2), foo=1),
    ],
    "a dimension twice": [
        lambda t: t.sum(t.ones(2, 3), 0, axis=0),
        lambda t: t.argmax(t.ones(2, 3), 0, axis=1),
        lambda t: t.cumsum(t.ones(2, 3), 0, axis=1),
        lambda t: t.unsqueeze(t.ones(2, 3), 0, axis=1),
    ],
    "ints that are none": [
        lambda t: t.ones(2, 3).expand(2, print, 3),
        lambda t: t.ones(2, 3).expand(2, t.ones(2), 3),
        lambda t: t.ones(2, 3).repeat(2, print),
        lambda t: t.ones(2, 3).roll(t.tensor([0, 1]), 0),
        lambda t: t.multinomial(t.ones(2, 3), 1.5),
        lambda t: t.multinomial(t.ones(2, 3), t.tensor([1, 2])),
    ],
    "no sizes at all": [
        lambda t: t.nn.functional.layer_norm(t.ones(2, 3), 3),
        lambda t: t.nn.functional.layer_norm(t.ones(2, 3), None),
        lambda t: t.nn.functional.rms_norm(t.ones(2, 3), 3),
        lambda t: t.nn.functional.avg_pool2d(t.ones(1, 1, 4, 4), None),
        lambda t: t.nn.functional.max_pool1d(t.ones(1, 1, 4), None),
        lambda t: t.nn.functional.max_pool2d(t.ones(1, 1, 4, 4), 2, None, None),
    ],
    "types as they were given": [
        lambda t: t.cat([t.ones(2), t.ones(2)], [1, 2]),
        lambda t: t.cat([t.ones(2), t.ones(2)], np.float32(2)),
        lambda t: t.cat([t.ones(2), t.ones(2)], t.tensor(0.5)),
        lambda t: t.argmax(t.ones(2), np.ones(2)),
        lambda t: t.ones(2, 3).gather(t.tensor([1, 2]), t.tensor([[0]])),
        lambda t: t.ones(2, 3).repeat(2, print),
        lambda t: t.ones(6).view(3, t.tensor([1, 2])),
    ],
    "flags that are none": [
        lambda t: t.ones(2).requires_grad_(None),
        lambda t: t.ones(2).requires_grad_("cpu"),
        lambda t: setattr(t.ones(2), "requires_grad", 1),
    ],
    "devices that are none": [lambda t: t.device("cpu", "mean"), lambda t: t.device("cpu", 1.5), lambda t: t.device("cpu", True)],
    "no tensor for the result": [
        lambda t: t.full((2,), 1.0, out=3),
        lambda t: t.multinomial(t.ones(3), 1, out=3),
    ],
    "a number for a weight": [
        lambda t: t.nn.functional.binary_cross_entropy_with_logits(t.ones(2), t.ones(2), 1),
        lambda t: t.nn.functional.binary_cross_entropy_with_logits(3, t.ones(2)),
        lambda t: t.nn.functional.binary_cross_entropy(t.ones(2), t.ones(2), 1),
    ],
    "numbers that are none": [
        lambda t: t.nn.functional.leaky_relu(t.ones(2), None),
        lambda t: t.nn.functional.elu(t.ones(2), "a"),
        lambda t: t.ones(2, 3).normal_("a"),
        lambda t: t.ones(2, 3).normal_(0, t.ones(2)),
        lambda t: t.ones(2, 3).uniform_(t.tensor([0, 1])),
        lambda t: t.full((2,), t.tensor([1, 2])),
        lambda t: t.full_like(t.ones(2), t.tensor([1, 2])),
        lambda t: t.arange(t.tensor([1, 2])),
    ],
}  # fmt: skip

# PyTorch's class alone: of functions with several forms it lists them all, and of others it counts a method's arguments otherwise
OF_CLASS = {
    "arrays for tensors": [
        lambda t: t.max(ROW),
        lambda t: t.min(ROW, 0),
        lambda t: t.max([1, 2]),
        lambda t: t.float_power(ROW, 2),
        lambda t: t.adaptive_max_pool1d(ROW, 1),
        lambda t: t.nn.functional.max_pool2d_with_indices(np.ones((1, 2, 2)), 1),
    ],
    "names that are not there": [
        lambda t: t.mean(t.ones(2, 3), 0, foo=1),
        lambda t: t.max(t.ones(2, 3), 0, axis=1),
        lambda t: t.ones(2, 3).sort(0, axis=1),
    ],
    "sizes by tensors": [
        lambda t: t.sum(t.ones(2, 3), t.tensor([0, 1])),
        lambda t: t.ones(2, 3).squeeze(t.tensor([0, 1])),
        lambda t: t.ones(6).split(t.tensor([2, 4])),
        lambda t: t.ones(2, 3).flatten(t.tensor([0, 1])),
    ],
    "numbers that are none": [
        lambda t: t.linspace(None, 1, 5),
        lambda t: t.linspace(0, [1], 5),
        lambda t: t.bernoulli(t.ones(2), t.ones(2)),
        lambda t: t.ones(2, 3).scatter_(0, t.tensor([[0]])),
        lambda t: t.randint(5, (2,), out=3),
    ],
    "ints that are none": [
        lambda t: t.ones(2, 3).flatten(1.5),
        lambda t: t.ones(2, 3).expand(2, [1, 2], 3),
        lambda t: t.randint(),
        lambda t: t.squeeze(t.ones(1, 1), 0, 1),
    ],
}  # fmt: skip

VALUES = {
    "an element of what is written to": lambda t: [
        t.arange(6.0).masked_fill_(t.arange(6) > 2, 1.0),
        (x := t.arange(6.0)).masked_fill_(x > 2, x[1]),
        (y := t.arange(6.0)).clamp_(y[1], 3),
        (z := t.arange(6.0)).clamp_(1, z[4]),
    ],
    "a dimension by a tensor": lambda t: [t.ones(2, 3).sum(t.tensor([0])), t.ones(2, 3).sum(t.tensor(1))],
    "ints one by one": lambda t: t.ones(1, 1, 2).squeeze(0, 1),
    "the norm of everything": lambda t: [
        t.nn.functional.normalize(t.arange(6.0).view(2, 3), p, dim=None) for p in (1.0, 2.0, float("inf"))
    ],
    "words and dates of numpy's": lambda t: [
        t.ones(2) == np.str_("a"),
        t.ones(2) != np.datetime64("2020"),
        np.str_("a") == t.ones(2),
        t.ones(2) + np.float32(1),
        t.ones(2) * np.bool_(True),
    ],
    "numbers in tensors": lambda t: [
        t.full((2,), t.tensor(2)),
        t.arange(t.tensor(3)),
        t.ones(2).normal_(t.tensor(1.0), 0),
    ],
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    for program in REFUSED[name]:
        both(program)


@pytest.mark.parametrize("name", OF_CLASS)
def test_class_of_the_error(name):
    for program in OF_CLASS[name]:
        kinds = []
        for module in (torch, jtorch):
            with pytest.raises(Exception) as caught:
                program(module)
            kinds.append(type(caught.value).__name__)
        assert kinds[0] == kinds[1]


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    both(VALUES[name])
