"""Norms over groups and instances, whose sums are those of channels: PyTorch's numbers, also far from zero and at second order."""

import numpy as np

import jtorch
from tests.oracle import both, torch

X = np.random.default_rng(0).standard_normal((2, 6, 3, 4))


def test_instances():
    def program(t):
        x, w, b = (t.tensor(a, requires_grad=True) for a in (X, X[0, :, 0, 0], X[1, :, 0, 0]))
        out = t.nn.functional.instance_norm(x, weight=w, bias=b)
        first = t.autograd.grad((out * out.detach() ** 2).sum(), (x, w, b), create_graph=True)
        return [out, *first, *t.autograd.grad(sum(g.square().sum() for g in first), (x, w))]

    both(program)


def test_spread_channels_and_halves():
    def program(t):
        norm = t.nn.functional.group_norm
        x = t.tensor(X, dtype=t.float32)
        spread = t.arange(6.0)[:, None, None] * 10
        return [
            norm(x + spread, 2),
            norm(x.bfloat16(), 3, t.ones(6), t.zeros(6)),
            norm(x[:, :, 0, 0], 3),
        ]

    both(program)


def test_far_from_zero():
    far = (X / 8 + 1000).astype(np.float32)
    got, want = (t.nn.functional.group_norm(t.tensor(far), 3).numpy() for t in (jtorch, torch))
    np.testing.assert_allclose(got, want, atol=5e-3)


def test_many_rows():
    rows = np.random.default_rng(1).standard_normal((1608, 6))

    def program(t):
        x, w, b = (t.tensor(a, requires_grad=True) for a in (rows.reshape(8, -1, 6), rows[0], rows[1]))
        out = t.nn.functional.layer_norm(x, (6,), w, b)
        first = t.autograd.grad((out * out.detach() ** 2).sum(), (x, w, b), create_graph=True)
        return [out, *first, *t.autograd.grad(sum(g.square().sum() for g in first), (x, w))]

    both(program)
