"""Whole training runs: from the same seed, the losses of 50 steps follow torch's."""

import math

import numpy as np
import pytest

import jtorch
from tests.oracle import torch

STEPS = 50


def cnn(t):
    """Convolutions, batch norm, pooling; SGD with momentum."""
    nn = t.nn
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1, stride=2), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(16, 5),
    )  # fmt: skip
    images, labels = t.randn(64, 1, 12, 12), t.randint(0, 5, (64,))
    optimizer = t.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    schedule = t.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)

    def loss(k):
        rows = slice(16 * (k % 4), 16 * (k % 4) + 16)
        return nn.functional.cross_entropy(model(images[rows]), labels[rows])

    return loss, optimizer, schedule, model


def lstm(t):
    """Embedding, two layers of LSTM, the last step classified; RMSprop, gradients clipped."""
    nn = t.nn

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(20, 12)
            self.lstm = nn.LSTM(12, 16, num_layers=2, batch_first=True)
            self.head = nn.Linear(16, 4)

        def forward(self, x):
            out, _ = self.lstm(self.embed(x))
            return self.head(out[:, -1])

    model = Classifier()
    words, labels = t.randint(0, 20, (48, 9)), t.randint(0, 4, (48,))
    optimizer = t.optim.RMSprop(model.parameters(), lr=3e-3)

    def loss(k):
        rows = slice(12 * (k % 4), 12 * (k % 4) + 12)
        return nn.functional.cross_entropy(model(words[rows]), labels[rows])

    return loss, optimizer, None, model


def gpt(t):
    """A small decoder with tied weights; AdamW, linear warm-up."""
    nn, F = t.nn, t.nn.functional
    width, heads, vocabulary, length = 24, 3, 17, 10

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            b, n, c = x.shape
            q, k, v = (y.view(b, n, heads, -1).transpose(1, 2) for y in self.qkv(self.ln1(x)).split(c, 2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, n, c))
            return x + self.mlp(self.ln2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block() for _ in range(2)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
            self.head.weight = self.tokens.weight

        def forward(self, x):
            h = self.tokens(x) + self.places(t.arange(x.shape[1]))
            for block in self.blocks:
                h = block(h)
            return self.head(self.norm(h))

    model = GPT()
    text = t.randint(0, vocabulary, (32, length + 1))
    optimizer = t.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1)
    schedule = t.optim.lr_scheduler.LambdaLR(optimizer, lambda k: min(1.0, (k + 1) / 10))

    def loss(k):
        rows = text[8 * (k % 4) : 8 * (k % 4) + 8]
        return F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())

    return loss, optimizer, schedule, model


MODELS = {f.__name__: f for f in (cnn, lstm, gpt)}


def trace(t, build, compiled=False):
    """The losses of a run."""
    t.manual_seed(1234)
    loss, optimizer, schedule, model = build(t)

    def step(k):
        optimizer.zero_grad()
        value = loss(k)
        value.backward()
        t.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return value.detach()

    if compiled:
        step = t.compile(step)
    found = []
    for k in range(STEPS):
        found.append(step(k).item())
        if schedule is not None:
            schedule.step()
    return np.array(found)


_expected = {}


@pytest.mark.parametrize("way", ["auto", "compile"])
@pytest.mark.parametrize("name", MODELS)
def test_losses_follow_torch(name, way):
    """Every loss within 1e-3, relative, up to the fiftieth; and the run has learned something."""
    if name not in _expected:
        _expected[name] = trace(torch, MODELS[name])
    expected, got = _expected[name], trace(jtorch, MODELS[name], way == "compile")
    assert math.isfinite(expected[-1]) and expected[-4:].mean() < 0.8 * expected[:4].mean()
    np.testing.assert_allclose(got, expected, rtol=1e-3)
