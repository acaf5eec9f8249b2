"""torch.hann_window and its like, torch.signal.windows and the frequencies of torch.fft, as factories."""

import numpy as np
import pytest

import jtorch
from tests import oracle

torch = oracle.torch
OLD = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]


def same(got, want):
    assert str(got.dtype) == str(want.dtype)
    assert got.requires_grad == want.requires_grad
    got, want = (t.detach().double() if t.dtype.is_floating_point else t for t in (got, want))
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("name", OLD)
@pytest.mark.parametrize("periodic", [True, False])
def test_periodic_windows(name, periodic):
    for n in (0, 1, 2, 7):
        same(getattr(jtorch, name)(n, periodic), getattr(torch, name)(n, periodic))
    same(getattr(jtorch, name)(5, dtype=jtorch.float64), getattr(torch, name)(5, dtype=torch.float64))
    same(getattr(jtorch, name)(5, requires_grad=True), getattr(torch, name)(5, requires_grad=True))


def test_parameters():
    same(jtorch.kaiser_window(6, True, 3.0), torch.kaiser_window(6, True, 3.0))
    same(jtorch.hamming_window(6, False, 0.5, 0.4), torch.hamming_window(6, False, 0.5, 0.4))


def test_frequencies():
    for name in ("fftfreq", "rfftfreq"):
        got, want = (getattr(m.fft, name)(6, 0.5, dtype=m.float64, requires_grad=True) for m in (jtorch, torch))
        same(got, want)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.hann_window(-1),
        lambda m: m.signal.windows.hann(-1),
        lambda m: m.signal.windows.gaussian(3, std=0.0),
        lambda m: m.signal.windows.exponential(3, tau=-1.0),
        lambda m: m.signal.windows.general_cosine(3, a=[]),
        lambda m: m.signal.windows.kaiser(3, beta=-1.0),
        lambda m: m.signal.windows.hann(3, dtype=m.float16),
    ],
)
def test_errors(call):
    with pytest.raises((RuntimeError, ValueError)) as want:
        call(torch)
    with pytest.raises(type(want.value)) as got:
        call(jtorch)
    assert str(got.value).split("\n")[0] == str(want.value).split("\n")[0]
