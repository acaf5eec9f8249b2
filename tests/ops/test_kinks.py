"""Gradients at ties and kinks are PyTorch's, where jax has others; so are theirs."""

import pytest

import jtorch
from tests.oracle import torch

X = [0.0, 1.0, -1.0, 2.0, 0.5, 0.0, -0.5, 3.0]
Y = [0.0, 1.0, -1.0, 3.0, -0.5, 1.0, -0.5, -3.0]
CLASSES = [1.0, -1.0] * 4

# name -> (how often it is differentiated, function)
KINKS = {
    "l1_loss": (1, lambda t, F, x, y: F.l1_loss(x, y)),
    "smooth_l1_loss": (2, lambda t, F, x, y: F.smooth_l1_loss(x, y, beta=0.5)),
    "huber_loss twice": (2, lambda t, F, x, y: F.huber_loss(x, y * 0)),
    "binary_cross_entropy": (2, lambda t, F, x, y: F.binary_cross_entropy(x.sigmoid(), (y.detach() > 0).double())),
    "binary_cross_entropy at its ends": (2, lambda t, F, x, y: F.binary_cross_entropy(x[:2], x.detach()[:2])),
    "a power of 0": (1, lambda t, F, x, y: x**0.0 * y),
    "huber_loss": (1, lambda t, F, x, y: F.huber_loss(x, y)),
    "soft_margin_loss": (2, lambda t, F, x, y: F.soft_margin_loss(x, t.tensor(CLASSES))),
    "multilabel_soft_margin_loss": (2, lambda t, F, x, y: F.multilabel_soft_margin_loss(x[None], t.tensor([CLASSES]).relu())),
    "hinge_embedding_loss": (1, lambda t, F, x, y: F.hinge_embedding_loss(x, t.tensor(CLASSES))),
    "margin_ranking_loss": (1, lambda t, F, x, y: F.margin_ranking_loss(x, y, t.tensor(CLASSES))),
    "cdist": (1, lambda t, F, x, y: t.cdist(x.view(4, 2), y.view(4, 2), p=1.0)),
    "pairwise_distance": (1, lambda t, F, x, y: F.pairwise_distance(x.view(4, 2), y.view(4, 2), p=1.0, eps=0.0)),
    "normalize": (1, lambda t, F, x, y: F.normalize(x.view(4, 2), p=1.0)),
    "norm": (1, lambda t, F, x, y: (x - y).norm(1)),
    "std of equal values": (1, lambda t, F, x, y: t.stack([(x - x.detach() + v)[:n, None].expand(n, 3).std(0) for n in (3, 6, 7) for v in (0.36065589235082707, 0.7, 2.7)])),
    "softsign": (2, lambda t, F, x, y: F.softsign(x - y)),
    "logcumsumexp": (2, lambda t, F, x, y: t.logcumsumexp(t.stack([x, y, x]), 0)),
    "logaddexp": (2, lambda t, F, x, y: t.logaddexp(x, y)),
    "cummax": (2, lambda t, F, x, y: t.stack([x, y, x]).cummax(0)[0] * y),
    "max_pool1d": (2, lambda t, F, x, y: F.max_pool1d(x[None], 8) * y),
}  # fmt: skip


def derivatives(t, order, function):
    x, y = (t.tensor(v, dtype=t.float64, requires_grad=True) for v in (X, Y))
    out = function(t, t.nn.functional, x, y)
    grads = t.autograd.grad(out.sum(), (x, y), create_graph=True, allow_unused=True)
    found = [g for g in grads if g is not None]
    if order == 2:
        again = t.autograd.grad(sum((g * g).sum() for g in found), (x, y), allow_unused=True)
        found += [t.zeros_like(x) if g is None else g for g in again]
    return [out.tolist(), *(g.tolist() for g in found)]


@pytest.mark.parametrize("name", KINKS)
def test_derivatives(name):
    expected, got = (derivatives(t, *KINKS[name]) for t in (torch, jtorch))
    for want, have in zip(expected, got, strict=True):
        torch.testing.assert_close(torch.tensor(have), torch.tensor(want), rtol=1e-6, atol=1e-9)


def test_the_second_derivative_of_a_power_of_nothing():
    x = jtorch.tensor([0.0, 1.0], requires_grad=True)
    (slope,) = jtorch.autograd.grad((x**0.0).sum(), x, create_graph=True)
    if slope.requires_grad:  # PyTorch's does not
        (slope,) = jtorch.autograd.grad(slope.sum(), x)
    assert slope.tolist() == [0.0, 0.0]
