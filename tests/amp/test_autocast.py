"""autocast: dtypes of what runs under it, in both."""

import pytest

from tests import oracle
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


_LSTM = pytest.param(
    "LSTM", marks=pytest.mark.skipif(not oracle.HAS_AVX512, reason="PyTorch's LSTM in bfloat16 needs AVX-512")
)


@pytest.mark.parametrize("name", ["RNN", _LSTM, "GRU"])
def test_recurrent_layers_of_what_another_layer_gave(name):
    """A convolution's result is in bfloat16 there, the weights are not."""
    run(RECURRENT.format(name, name))


CELLS = """
torch.manual_seed(0)
lower = torch.{dtype}
x, h, c = torch.randn(4, 3), torch.randn(4, 5), torch.randn(4, 5)
weights = []
for made, state in ((torch.nn.LSTMCell(3, 5), (h, c)), (torch.nn.GRUCell(3, 5), h), (torch.nn.RNNCell(3, 5), h)):
    for bias in (True, False):
        cell = type(made)(3, 5, bias=bias)
        for given, start in ((x, None), (x, state), (x.to(lower), state), (x, tuple(s.to(lower) for s in state) if type(state) is tuple else state.to(lower)), (x[0], None)):
            given = given.clone().requires_grad_()
            with torch.autocast("cpu", dtype=lower):
                got = cell(given, start)
            got = got if isinstance(got, tuple) else (got,)
            print([g.dtype for g in got])
            sum((g.float() ** 2).sum() for g in got).backward()
            print([p.grad.dtype for p in (given, *cell.parameters())])
packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(3, 2, 3), [3, 2])
for layer in (torch.nn.LSTM(3, 5, 2, bidirectional=True), torch.nn.GRU(3, 5), torch.nn.RNN(3, 5)):
    with torch.autocast("cpu", dtype=lower):
        out, state = layer(packed)
    print(out.data.dtype, [s.dtype for s in (state if isinstance(state, tuple) else (state,))])
image = torch.arange(16.).view(1, 1, 4, 4).to(lower)
with torch.autocast("cpu", dtype=lower):
    for mode in ("reflect", "replicate", "circular", "constant"):
        padded = [torch.nn.functional.pad(i, (1,) * n, mode=mode) for i, n in ((image[0], 2), (image, 4), (image[None], 6)) if mode != "reflect" or n < 6]
        print([p.dtype for p in padded])
    print(torch.nn.functional.pad(image.repeat(2, 2, 1, 1)[None], (1,) * 6, mode="reflect").dtype)
del packed, made, cell, given, got, state, start, h, c, layer, out, padded, image, x
"""


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_cells_and_padding(dtype):
    """The state of a cell keeps its dtype; paddings that have no kernel in lower precision are in float32."""
    run(CELLS.format(dtype=dtype))


PRODUCTS = """
v, A, B = torch.randn(4), torch.randn(4, 4), torch.randn(3, 4, 4)
F = torch.nn.functional
made = lambda *shape: torch.randn(*shape).to(lower)
image, volume = made(2, 4, 6, 6), made(2, 3, 4, 4, 4)
layer = torch.nn.MultiheadAttention(4, 2)
with torch.autocast("cpu", dtype=lower):
    for got in (
        torch.mv(A, v), A.mv(v), A @ v, v @ A, v @ v, torch.dot(v, v), torch.addmv(v, A, v), torch.addr(A, v, v), torch.inner(v, v),
        torch.inner(A, v), torch.inner(A, A), torch.tensordot(A, A, 1), torch.tensordot(A, A), torch.tensordot(B, A, ([1, 2], [0, 1])),
        torch.tensordot(v, v, 1), torch.matrix_power(A, 3), torch.matrix_power(A, 1), torch.matrix_power(A, -1), torch.matrix_power(A, 0),
        torch.einsum("ij,jk->ik", A, A), torch.einsum("i,i->", v, v), torch.einsum("ij->ji", A), torch.einsum("ij,ij->ij", A, A),
        torch.einsum("i,j->ij", v, v), torch.einsum("...i,i->...", A, v), torch.einsum("ij,jk,kl->il", A, A, A),
        F.affine_grid(torch.randn(2, 2, 3), (2, 1, 3, 3), align_corners=False), F.local_response_norm(image, 2), F.local_response_norm(image[0], 2),
        F.max_pool3d(volume, 2), *F.max_pool3d(volume, 2, return_indices=True), F.fractional_max_pool2d(image, 2, 2),
        F.fractional_max_pool3d(volume, 2, 2), F.max_unpool1d(*F.max_pool1d(image[0], 2, return_indices=True), 2),
        *layer(B, B, B, attn_mask=torch.zeros(3, 3)), *layer(B, B, B),
    ):
        print(got.dtype, got.shape)
del got, layer, image, volume, v, A, B
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_which_products_and_pools_are_cast(dtype):
    """Of products those that are matrix products, of pools those that have no kernel in lower precision."""
    run(f"lower = torch.{dtype}\n{PRODUCTS}")


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
