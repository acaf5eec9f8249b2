"""What random calls found beyond PyTorch's own samples: inputs that lie otherwise in memory, and arguments of wrong types."""

import numpy as np
import pytest

from tests.oracle import both


def turned(t, *shape):
    """Numbers whose dimensions lie in memory from the first to the last."""
    n = len(shape)
    count = 1
    for s in shape:
        count *= s
    return t.arange(float(count)).reshape(shape[::-1]).permute(*range(n - 1, -1, -1))


def plain(t, *shape):
    return turned(t, *shape).contiguous()


def last(t, *shape):
    return t.ones(shape).contiguous(memory_format=t.channels_last)


def lines(t):
    """(N, C, L) as a transposed (N, L, C)."""
    return t.arange(24.0).reshape(2, 3, 4).transpose(1, 2)


# Strides are compared too.
LAYOUTS = {
    "sort": lambda t: t.sort(turned(t, 2, 3, 4), dim=1),
    "argsort": lambda t: turned(t, 2, 3, 4).argsort(),
    "msort": lambda t: t.msort(turned(t, 2, 3, 4)),
    "rows by position": lambda t: turned(t, 2, 3, 4)[[1, 0]],
    "rows by a matrix of positions": lambda t: turned(t, 2, 3, 4)[:, [[1, 2], [0, 1], [2, 2]]],
    "positions apart": lambda t: turned(t, 2, 3, 4)[[1, 0], :, [1, 1]],
    "positions by two, one broadcast": lambda t: turned(t, 2, 2, 2, 3)[1:, [0, 1], [1]],
    "index_put": lambda t: turned(t, 2, 3).index_put([t.tensor([1])], t.ones(3)),
    "index_fill": lambda t: turned(t, 2, 3).index_fill(0, t.tensor([1]), 1.0),
    "put": lambda t: turned(t, 2, 3).put(t.tensor([1]), t.ones(1)),
    "rsub": lambda t: [t.rsub(turned(t, 2, 3), plain(t, 2, 3)), t.rsub(plain(t, 2, 3), turned(t, 2, 3), alpha=2)],
    "bits from the right": lambda t: [
        turned(t, 2, 3).long().__ror__(plain(t, 2, 3).long()),
        plain(t, 2, 3).long().__rand__(turned(t, 2, 3).long()),
    ],
    "fft of what is expanded": lambda t: [
        f(plain(t, 1, 3, 4).expand(2, 3, 4), dim=1) for f in (t.fft.fft, t.fft.rfft, t.fft.ihfft)
    ],
    "differences": lambda t: [t.diff(turned(t, 2, 3), n) for n in (0, 1)],
    "as_strided_scatter": lambda t: [
        t.as_strided_scatter(x, -t.ones(2, 2), (2, 2), (1, 2), 1)
        for x in (plain(t, 3, 3), turned(t, 3, 3), plain(t, 3, 7)[:, 1::2], plain(t, 3, 3)[1:])
    ],
    "rms_norm": lambda t: t.nn.functional.rms_norm(turned(t, 2, 3), [3]),
    "kl_div": lambda t: t.nn.functional.kl_div(turned(t, 2, 3), plain(t, 2, 3) + 1, reduction="none"),
    "bce with logits": lambda t: t.nn.functional.binary_cross_entropy_with_logits(
        plain(t, 2, 3), turned(t, 2, 3), reduction="none"
    ),
    "hinge": lambda t: t.nn.functional.hinge_embedding_loss(plain(t, 2, 3), turned(t, 2, 3).sign(), reduction="none"),
    "pools of lines": lambda t: [
        t.nn.functional.avg_pool1d(lines(t), 2),
        t.nn.functional.adaptive_avg_pool1d(lines(t), 2),
        t.nn.functional.adaptive_max_pool1d(lines(t), 2),
        t.nn.functional.max_pool1d(lines(t), 2, return_indices=True),
        t.nn.functional.max_pool1d(lines(t), 2),
    ],
    "convolution of one image": lambda t: [
        t.nn.functional.conv2d(t.ones(2, 3, 3), last(t, 2, 2, 2, 2)),
        t.nn.functional.conv2d(last(t, 1, 2, 3, 3)[0], t.ones(2, 2, 2, 2)),
        t.nn.functional.conv_transpose2d(t.ones(2, 3, 3), last(t, 2, 2, 2, 2)),
    ],
    "a format it is in already": lambda t: [
        turned(t, 2, 3).float(memory_format=t.contiguous_format),
        turned(t, 2, 3).to(memory_format=t.contiguous_format),
        last(t, 1, 2, 3, 3).to(memory_format=t.contiguous_format),
        turned(t, 2, 3).double(memory_format=t.contiguous_format),
    ],
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name):
    both(LAYOUTS[name])


CALLS = {
    "norm of one element": lambda t: [t.linalg.vector_norm(t.tensor([-8.5]), order) for order in (-100.0, 100.0, 0.0)],
    "norms of rows of one element": lambda t: t.linalg.vector_norm(plain(t, 3, 1) + 8, -60.0, dim=1, keepdim=True),
    "largest of nothing": lambda t: t.linalg.vector_norm(t.zeros(0), float("inf")),
    "smallest along nothing": lambda t: t.linalg.vector_norm(t.zeros(2, 0), -2.5, dim=-1),
    "sum along nothing": lambda t: t.linalg.vector_norm(t.zeros(2, 0), 2, dim=-1),
    "nothing into an expanded nothing": lambda t: t.exp(t.ones(1, 0, 3), out=t.zeros(1).expand(1, 0, 3)),
    "arange into a matrix": lambda t: t.arange(6, out=t.zeros(3, 2)),
    "arange into a turned matrix": lambda t: t.arange(6, out=t.zeros(2, 3).t()),
    "linspace of nothing": lambda t: t.linspace(0, 1, 0, out=t.zeros(0, 2)),
    "logspace": lambda t: t.logspace(0, 1, 4, out=t.zeros(2, 2)),
    "arange into less": lambda t: t.arange(6, out=t.zeros(2, 2)),
    "out= of one in a tuple": lambda t: t.exp(t.ones(2), out=(t.zeros(2),)),
    "out= of two, one given": lambda t: t.sort(t.ones(2), out=(t.zeros(2),)),
    "in place product": lambda t: t.ones(1).addmm_(t.ones(2, 2), t.ones(2, 3)),
    "fill with a word": lambda t: t.full((2,), "1"),
    "fill with nothing": lambda t: t.full((2,), None),
    "fill in place with a word": lambda t: t.ones(2).fill_("1"),
    "fill with too much": lambda t: t.full((2,), 300, dtype=t.uint8),
    "fill with what wraps": lambda t: t.full((2,), -255, dtype=t.uint8),
    "fill with a fraction below": lambda t: t.full_like(t.ones(2, dtype=t.uint8), -8.5),
    "fill with nan": lambda t: t.zeros(2, dtype=t.int32).fill_(float("nan")),
    "fill with more than single": lambda t: t.full((2,), 1e39),
    "fill bools": lambda t: t.full((2,), 1e39, dtype=t.bool),
    "fill halves": lambda t: t.full((2,), 1j, dtype=t.float16),
    "like a number": lambda t: t.full_like(2.5, 1),
    "new without a size": lambda t: t.ones(2).new_zeros(),
    "grid of another dtype": lambda t: t.nn.functional.grid_sample(
        t.ones(1, 1, 2, 2), t.zeros(1, 1, 1, 2).double(), align_corners=False
    ),
    "reduced dtype": lambda t: t.ones(3, 4).index_reduce(0, t.tensor([0, 2]), t.ones(2, 4).double(), "prod"),
    "reduced sizes": lambda t: t.ones(3, 4).index_reduce(0, t.tensor([0, 2]), t.ones(2, 5), "prod"),
    "reduced dimensions": lambda t: t.ones(3, 4).index_reduce(0, t.tensor([0, 2]), t.ones(2), "prod"),
    "reduced out of range": lambda t: t.ones(3, 4).index_reduce(0, t.tensor([0, 5]), t.ones(2, 4), "prod"),
    "reduced by floats": lambda t: t.ones(3, 4).index_reduce(0, t.ones(2), t.ones(2, 4), "prod"),
    "added by a matrix": lambda t: t.ones(3, 4).index_add(0, t.tensor([[0, 2]]), t.ones(2, 4)),
    "copied sizes": lambda t: t.ones(3, 4).index_copy(0, t.tensor([0, 2]), t.ones(2, 5)),
    "filled by a matrix": lambda t: t.ones(3, 4).index_fill(0, t.tensor([[0, 2]]), 1.0),
    "filled with complex": lambda t: t.ones(3, 4).index_fill(0, t.tensor([0, 2]), 1j),
    "mask of another size": lambda t: t.ones(3, 4).masked_select(t.ones(2, 4) > 0),
    "repeats from numpy": lambda t: plain(t, 2, 3).repeat_interleave(np.int64(2), dim=0),
    "positions in nothing": lambda t: t.zeros(0, 5)[[0]],
    "no positions in nothing": lambda t: t.zeros(0, 5)[t.zeros(0, dtype=t.int64)],
    "floats unravelled": lambda t: t.unravel_index(t.ones(2), (3, 4)),
    "flag as an int": lambda t: t.argmin(plain(t, 2, 3), dim=0, keepdim=3),
    "dim as a bool": lambda t: plain(t, 2, 3).softmax(True),
    "dim as a float": lambda t: t.cumsum(plain(t, 2, 3), 1.5),
    "dim of a view": lambda t: plain(t, 2, 3).unsqueeze(1.5),
    "offset of a view": lambda t: t.diagonal(plain(t, 2, 3), offset=1.5),
    "word as a dtype": lambda t: t.linalg.eigh(t.eye(2), UPLO=t.float32),
    "fft of a number": lambda t: t.fft.ifft2(2),
    "dtype for a tensor": lambda t: t.exp(t.float32),
    "layout for a dtype": lambda t: t.zeros(2, dtype=t.strided),
    "dtype that is called": lambda t: t.cdouble(),
    "dtype that is compared": lambda t: t.float32 < t.float64,
    "dtypes that are equal": lambda t: [t.cfloat == t.complex64, t.chalf is t.complex32, t.float32 == "torch.float32"],
    "dtype that is made": lambda t: t.dtype("float32"),
    "layout that is made": lambda t: t.layout(),
    "attribute of a dtype": lambda t: t.float32.nothing,
    "complex of an int": lambda t: t.int64.to_complex(),
    "complex of a name": lambda t: t.quint4x2.to_complex(),
    "short names": lambda t: [
        d.abbr for d in (t.float32, t.bfloat16, t.bool, t.uint8, t.cdouble, t.float8_e4m3fn, t.bits8, t.int4)
    ],
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    both(CALLS[name])
