"""autocast: dtypes of what runs under it, in both."""

import pytest

from tests.autograd.programs import run

RECURRENT = """
torch.manual_seed(0)
x = torch.randn(5, 3, 4)
layer = torch.nn.{}(4, 2)
for dtype in (torch.float32, torch.bfloat16):
    given = x.to(dtype).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out, state = layer(given)
        print(out.dtype, [s.dtype for s in (state if isinstance(state, tuple) else (state,))])
    out.float().sum().backward()
    print(given.grad.dtype, [p.grad.dtype for p in layer.parameters()])
    print((given.grad.float().abs().sum() * 4).round())
with torch.autocast("cpu", dtype=torch.bfloat16):
    start = torch.ones(1, 3, 2, dtype=torch.bfloat16)
    print(layer(x.bfloat16(), (start, start) if "{}" == "LSTM" else start)[0].dtype)
    packed = torch.nn.utils.rnn.pack_sequence([x[:3, 0].bfloat16(), x[:2, 1].bfloat16()])
    print(layer(packed)[0].data.dtype)
try:
    layer(x.bfloat16())
except ValueError as error:
    print(str(error))
"""


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers_of_what_another_layer_gave(name):
    """A convolution's result is in bfloat16 there, the weights are not."""
    run(RECURRENT.format(name, name))


def test_device_types():
    run("""
attempt(torch.autocast, "foo")
attempt(torch.autocast, 3)
""")


WIDENED = """
from torch import linalg
torch.manual_seed(0)
a = torch.randn(3, 3)
s = (a @ a.t() + torch.eye(3)).bfloat16()
a = a.bfloat16()
square = torch.eye(4).view(2, 2, 2, 2).bfloat16()
with torch.autocast("cpu", dtype=torch.bfloat16):
    for results in (
        linalg.svdvals(a), linalg.svd(a), torch.svd(a), linalg.eigvals(a), linalg.eig(a), linalg.eigvalsh(s), linalg.eigh(s),
        linalg.solve(s, a), linalg.cholesky(s), linalg.cholesky_ex(s), linalg.cond(s), linalg.matrix_rank(s), linalg.qr(a),
        linalg.tensorinv(square), linalg.tensorsolve(square, torch.ones(2, 2).bfloat16()), torch.geqrf(a),
        linalg.lstsq(a, a).solution,
        *(getattr(torch.fft, name)(a) for name in ("fft", "ifft", "rfft", "fft2", "rfftn", "hfft", "ihfft")),
        torch.fft.irfft(torch.fft.rfft(a)),
        torch.stft(a.flatten().repeat(3), 8, return_complex=True, window=torch.ones(8).bfloat16()),
    ):
        print([r.dtype for r in (results if isinstance(results, tuple) else (results,))])
"""


def test_what_has_no_kernel_in_lower_precision():
    """On the CPU factorisations and Fourier transforms of bfloat16 run in float32 there, and are refused elsewhere."""
    run(WIDENED)
