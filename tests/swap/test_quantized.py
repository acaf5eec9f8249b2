"""torch.ao.quantization.quantize_dynamic: PyTorch's numbers, and what is refused."""

import numpy as np
import pytest

import jtorch
from jtorch import nn
from jtorch.swap.internal import quantize, quantized_dynamic, quantized_recurrent
from tests import oracle

torch = oracle.torch
INPUTS = {
    "normal": lambda r: r.randn(7, 20),
    "batched": lambda r: r.randn(2, 3, 20),
    "zeros": lambda r: np.zeros((1, 20)),
    "tiny": lambda r: r.randn(2, 20) * 1e-6,
    "positive": lambda r: r.rand(2, 20) * 100,
    "negative": lambda r: -r.rand(2, 20),
    "tiny and negative": lambda r: -r.rand(2, 20) * 1e-4,
}


def model(t):
    t.manual_seed(0)
    return t.nn.Sequential(t.nn.Linear(20, 600), t.nn.ReLU(), t.nn.Sequential(t.nn.Linear(600, 5, bias=False)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["qint8", "float16"])
def test_numbers(dtype):
    its = torch.ao.quantization.quantize_dynamic(model(torch), {torch.nn.Linear}, dtype=getattr(torch, dtype))
    net = model(jtorch)
    mine = quantize.quantize_dynamic(net, {nn.Linear}, dtype=getattr(jtorch, dtype))
    assert repr(mine) == repr(its) and type(net[0]) is nn.Linear and not mine.training
    for name, make in INPUTS.items():
        x = make(np.random.RandomState(0)).astype(np.float32)
        want, got = its(torch.from_numpy(x)).detach().numpy(), mine(jtorch.tensor(x)).detach().numpy()
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6 * max(1, np.abs(want).max()), err_msg=name)


def recurrent(t):
    """Layers and calls of them, by name."""
    nn = t.nn
    made = {
        "lstm": nn.LSTM(4, 5, num_layers=2, bidirectional=True),
        "lstm batch first": nn.LSTM(4, 5, batch_first=True),
        "gru": nn.GRU(4, 5, num_layers=2, bidirectional=True, dropout=0.5),
        "lstm cell": nn.LSTMCell(4, 5), "gru cell": nn.GRUCell(4, 5), "rnn cell": nn.RNNCell(4, 5, nonlinearity="relu"),
        "rnn": nn.RNN(4, 5),
    }  # fmt: skip
    r = np.random.RandomState(0)
    for layer in made.values():
        for p in layer.parameters():
            p.data = t.tensor(r.uniform(-1, 1, p.shape).astype(np.float32))
    return made


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["qint8", "float16"])
@pytest.mark.parametrize("name", recurrent(jtorch))
def test_recurrent_layers(name, dtype):
    def run(t, quantize_dynamic):
        layer = quantize_dynamic(t.nn.Sequential(recurrent(t)[name]), dtype=getattr(t, dtype))[0]
        r = np.random.RandomState(1)
        x = t.tensor(r.randn(*((3, 4) if "cell" in name else (6, 3, 4))).astype(np.float32))
        first = layer(x)
        again = layer(x * 2, first if "cell" in name else first[1])
        leaves = [v for out in (first, again) for v in (out if isinstance(out, tuple) else [out])]
        leaves = [v for out in leaves for v in (out if isinstance(out, tuple) else [out])]
        return repr(layer), [v.detach().numpy() for v in leaves]

    (theirs, want), (mine, got) = (
        run(torch, torch.ao.quantization.quantize_dynamic),
        run(jtorch, quantize.quantize_dynamic),
    )
    assert mine == theirs
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-6)


@pytest.mark.filterwarnings("ignore")
def test_words_of_recurrent_layers():
    for t, quantize_dynamic in ((torch, torch.ao.quantization.quantize_dynamic), (jtorch, quantize.quantize_dynamic)):
        layer = quantize_dynamic(t.nn.Sequential(t.nn.LSTM(4, 5, num_layers=2)))[0]
        for x, hx, words in (
            (t.ones(3, 4), None, "input must have 3 dimensions, got 2"),
            (t.ones(3, 2, 5), None, r"input.size\(-1\) must be equal to input_size. Expected 4, got 5"),
            (
                t.ones(3, 2, 4),
                (t.zeros(1, 2, 5), t.zeros(2, 2, 5)),
                r"Expected hidden\[0\] size \(2, 2, 5\), got \[1, 2, 5\]",
            ),
        ):
            with pytest.raises(RuntimeError, match=words):
                layer(x, hx)


def test_refusals():
    lstm = nn.Sequential(nn.LSTM(2, 2))
    assert type(quantize.quantize_dynamic(lstm, {nn.Linear})[0]) is nn.LSTM
    assert type(quantize.quantize_dynamic(lstm)[0]) is quantized_recurrent.LSTM
    packed = nn.utils.rnn.pack_sequence([jtorch.ones(2, 2)])
    with pytest.raises(NotImplementedError, match="packed sequences in quantized recurrent layers"):
        quantize.quantize_dynamic(lstm)(packed)
    with pytest.raises(NotImplementedError, match="LSTM with proj_size"):
        quantize.quantize_dynamic(nn.LSTM(2, 3, proj_size=1))
    with pytest.raises(NotImplementedError, match="with configurations"):
        quantize.quantize_dynamic(lstm, {"": None})
    named = quantize.quantize_dynamic(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), {"1"}, inplace=True)
    assert [type(m) for m in named] == [nn.Linear, quantized_dynamic.Linear]
