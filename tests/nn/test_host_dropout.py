"""JTORCH_DROPOUT=host: dropout's masks are PyTorch's for the same seed, and the generator goes on as PyTorch's does."""

import pytest

import jtorch
from jtorch import config
from tests.oracle import both


@pytest.fixture(autouse=True)
def on_host(monkeypatch):
    monkeypatch.setattr(config, "host_dropout", True)


DROPS = {
    "dropout": lambda t, x: t.nn.functional.dropout(x, 0.3),
    "transposed": lambda t, x: t.nn.functional.dropout(x.transpose(1, 2), 0.3),
    "all": lambda t, x: t.nn.functional.dropout(x, 1.0),
    "dropout1d": lambda t, x: t.nn.functional.dropout1d(x, 0.4),
    "alpha": lambda t, x: t.nn.functional.alpha_dropout(x, 0.2, True),
    "alpha of channels": lambda t, x: t.nn.functional.feature_alpha_dropout(x, 0.2, True),
    "in place": lambda t, x: t.nn.functional.dropout(x.clone(), 0.3, inplace=True),
    "attention": lambda t, x: t.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.3),
    "causal attention": lambda t, x: t.nn.functional.scaled_dot_product_attention(
        x, x, x, dropout_p=0.3, is_causal=True
    ),
}


@pytest.mark.parametrize("name", DROPS)
def test_numbers(name):
    def program(t):
        t.manual_seed(0)
        x = t.randn(3, 4, 5, requires_grad=True)
        y = DROPS[name](t, x)
        (y * y).sum().backward()
        return y.detach(), x.grad, t.rand(2)

    both(program)


def test_layers():
    def program(t):
        t.manual_seed(0)
        x = t.randn(5, 2, 4)
        h, _ = t.nn.LSTM(4, 4, 2, dropout=0.3)(x)
        h = t.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.2)(h)
        return t.nn.MultiheadAttention(4, 2, dropout=0.2)(h, h, h)[0].detach(), t.rand(2)

    both(program)


def test_compiled_regions_draw_anew():
    x = jtorch.ones(64)
    drop = jtorch.compile(lambda x: jtorch.nn.functional.dropout(x, 0.5))
    assert len({tuple(drop(x).tolist()) for _ in range(5)}) == 5
