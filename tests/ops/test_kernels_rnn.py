"""Loops of recurrent layers, whole and with the batch in halves: outputs, gradients, and second gradients are PyTorch's."""

import jax
import numpy as np
import pytest

import jtorch
from jtorch.ops import rnn
from tests.oracle import both, torch

CELLS = {
    "lstm": lambda t, **kw: t.nn.LSTM(3, 4, **kw),
    "gru": lambda t, **kw: t.nn.GRU(3, 4, **kw),
    "tanh": lambda t, **kw: t.nn.RNN(3, 4, **kw),
    "relu": lambda t, **kw: t.nn.RNN(3, 4, nonlinearity="relu", **kw),
}


def seen(t, kind, batch, **options):
    t.manual_seed(0)
    model = CELLS[kind](t, **options).double()
    x = t.linspace(-1, 1, 5 * batch * 3, dtype=t.float64).sin().reshape(5, batch, 3).requires_grad_()
    out, state = model(x)
    last = state[1] if kind == "lstm" else state
    loss = (out**2).sum() + (last * 0.5).sum()
    wanted = [x, *model.parameters()]
    grads = t.autograd.grad(loss, wanted, create_graph=True)
    twice = t.autograd.grad(sum((g**2).sum() for g in grads), wanted)
    return [v.detach().tolist() for v in (out, last, *grads, *twice)]


BUILDS = {"plain, 4": ({}, 4), "plain, 5": ({}, 5), "both ways, 4": ({"bidirectional": True}, 4)}


# That an odd batch stays whole does not depend on the cell; relu and tanh are one loop.
LEFT_OUT = [*[(kind, "plain, 5") for kind in ("gru", "tanh", "relu")], ("relu", "both ways, 4")]
CASES = [(kind, build) for kind in CELLS for build in BUILDS if (kind, build) not in LEFT_OUT]


@pytest.mark.parametrize("kind, build", CASES)
def test_loops_over_halves_of_the_batch(kind, build, monkeypatch):
    (options, batch), halved = BUILDS[build], []
    whole = rnn._in_halves
    monkeypatch.setattr(rnn, "FORWARD_HALVED", 0)
    monkeypatch.setattr(rnn, "BACKWARD_HALVED", 0)
    monkeypatch.setattr(rnn, "_in_halves", lambda *args: halved.append(whole(*args)) or halved[-1])
    for got, want in zip(seen(jtorch, kind, batch, **options), seen(torch, kind, batch, **options), strict=True):
        torch.testing.assert_close(torch.tensor(got), torch.tensor(want), rtol=1e-9, atol=1e-11)
    assert set(halved) == {batch == 4}


@pytest.mark.parametrize("vectors, elements", [("AVX2", 1 << 20), ("AVX512", 1 << 20), ("AVX512", 0)])
def test_what_multiplies_the_hidden_state(vectors, elements, monkeypatch):
    """Either form, whatever this processor is."""
    monkeypatch.setattr(rnn, "TURNED", elements)
    monkeypatch.setattr(rnn.processor, "vectors", lambda: vectors)
    h, w = np.linspace(-1, 1, 12, dtype="f").reshape(4, 3), np.linspace(0, 1, 15, dtype="f").reshape(5, 3)
    columns = []
    plain = rnn._times
    monkeypatch.setattr(rnn, "_times", lambda *args: columns.append(args) or plain(*args))
    np.testing.assert_allclose(jax.jit(lambda h, w: rnn._hidden(w)(h))(h, w), h @ w.T, rtol=1e-6)
    assert bool(columns) == (vectors == "AVX2" or elements == 0)


def test_a_derivative_is_traced_once_for_all_arguments(monkeypatch):
    traced = []
    plain = rnn._layer_grad
    monkeypatch.setattr(rnn, "_layer_grad", lambda *args: traced.append(args) or plain(*args))
    model = jtorch.nn.LSTM(2, 7)
    model(jtorch.ones(3, 1, 2))[0].sum().backward()
    assert model.bias_hh_l0.grad.shape == (28,)
    # by what it keeps, by its shapes, by the program: never once for each of seven arguments
    assert 0 < len(traced) < 7


@pytest.mark.parametrize("name", ["RNN", "RNNCell"])
def test_gradients_of_nan_go_on_through_relu(name):
    def program(t):
        model = getattr(t.nn, name)(2, 3, nonlinearity="relu")
        with t.no_grad():
            for p in model.parameters():
                p.fill_(0.1)
        x = t.ones(4, 2)
        x[1, 1] = float("nan")
        out = model(x)
        out = out if name == "RNNCell" else out[0]
        out.sum().backward()
        return out.detach(), [p.grad for p in model.parameters()]

    both(program, layout=False)
