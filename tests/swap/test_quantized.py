"""torch.ao.quantization.quantize_dynamic: PyTorch's numbers, and what is refused."""

import numpy as np
import pytest

import jtorch
from jtorch import nn
from jtorch.swap.internal import quantized_dynamic as ours
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
    mine = ours.quantize_dynamic(net, {nn.Linear}, dtype=getattr(jtorch, dtype))
    assert repr(mine) == repr(its) and type(net[0]) is nn.Linear and not mine.training
    for name, make in INPUTS.items():
        x = make(np.random.RandomState(0)).astype(np.float32)
        want, got = its(torch.from_numpy(x)).detach().numpy(), mine(jtorch.tensor(x)).detach().numpy()
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6 * max(1, np.abs(want).max()), err_msg=name)


def test_refusals():
    lstm = nn.Sequential(nn.LSTM(2, 2))
    assert type(ours.quantize_dynamic(lstm)[0]) is nn.LSTM
    with pytest.raises(NotImplementedError, match=r"quantize_dynamic of LSTM \(0\)"):
        ours.quantize_dynamic(lstm, {nn.LSTM, nn.Linear})
    with pytest.raises(NotImplementedError, match="with configurations"):
        ours.quantize_dynamic(lstm, {"": None})
    named = ours.quantize_dynamic(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), {"1"}, inplace=True)
    assert [type(m) for m in named] == [nn.Linear, ours.Linear]
