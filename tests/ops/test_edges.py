"""What random calls found beyond PyTorch's own samples: inputs that lie otherwise in memory, and arguments of wrong types."""

import numpy as np
import pytest

from jtorch.dispatch import forget_plans
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
    "what is cast before it is read": lambda t: [
        f(t.ones(1, 3).int().expand(2, 3), turned(t, 2, 3))
        for f in (t.add, t.gt, t.pow, t.maximum, t.logical_and, t.atan2)
    ],
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
    "what is cropped or left as it is": lambda t: [
        t.nn.functional.pad(x, pad)
        for x in (turned(t, 3, 4), last(t, 2, 3, 4, 5), plain(t, 3, 8)[:, ::2], plain(t, 1, 4).expand(3, 4))
        for pad in ((0, 0), (-1, 0), (0, -1, -1, 0), (1, -1), ())
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
    "angles": lambda t: [turned(t, 2, 3).angle(), turned(t, 2, 3).to(t.complex64).angle()],
    "mvlgamma": lambda t: (turned(t, 2, 3) + 5).mvlgamma(2),
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
    "one number for a size": lambda t: t.full(2, 1),
    "nothing for a size": lambda t: t.full(None, 1),
    "strides of one number": lambda t: t.empty_strided((2,), 1),
    "broadcast to one number": lambda t: t.broadcast_to(t.ones(1), 2),
    "filled by a vector": lambda t: t.ones(3).masked_fill(t.ones(3) > 0, t.ones(2)),
    "8-bit floats chosen": lambda t: [
        t.where(t.tensor([True, False]), t.ones(2).to(t.float8_e5m2), other)
        for other in (t.zeros(2).to(t.float8_e5m2), 0)
    ],
    "conjugate transposes": lambda t: [
        f(plain(t, 2, 3) * (1 + 2j)) for f in (t.adjoint, t.Tensor.adjoint, lambda x: x.mH, lambda x: x.H)
    ],
    "lstsq of a vector": lambda t: t.linalg.lstsq(t.ones(3, 3), t.ones(2)),
    "lstsq of a matrix": lambda t: t.linalg.lstsq(t.ones(3, 3), t.ones(2, 1)),
    **{
        f"einsum {equation}": lambda t, equation=equation: t.einsum(equation, t.ones(2, 3))
        for equation in ("i.j", "...i...", "ij->j->i", "ij->i.", "ij->......", "ij->i1", "...->...")
    },
    "8-bit floats beyond their range": lambda t: [
        x.float()
        for values in (t.tensor([1.0, 465.0, 1e9, -500.0, float("inf"), -float("inf")]),)
        for x in (
            values.to(t.float8_e4m3fn),
            values.half().to(t.float8_e4m3fn),
            t.zeros(6, dtype=t.float8_e4m3fn).copy_(values),
            t.tensor(values.tolist(), dtype=t.float8_e4m3fn),
            values.to(t.float8_e5m2),
        )
    ],
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
    if name == "dim as a bool":
        forget_plans()  # where 1 was taken before, True is taken for it
    both(CALLS[name])


INF, NAN = float("inf"), float("nan")


# What was taken and is refused, or refused in another way: class and first words are compared. x: a square matrix.
REFUSED = {
    "repeats of another size than said": lambda t, x: t.repeat_interleave(x, 2, output_size=7),
    "repeats along of another size than said": lambda t, x: t.repeat_interleave(x, 2, 0, output_size=5),
    "repeats of a matrix of counts": lambda t, x: t.repeat_interleave(x.long()),
    "a number turned over along nothing": lambda t, x: t.flip(t.ones(()), [2]),
    "similarity with a floor below 0": lambda t, x: t.cosine_similarity(x, x, 0, -1.0),
    "pairs of what is real": lambda t, x: t.view_as_real_copy(x),
    "norm of wholes as reals": lambda t, x: t.linalg.vector_norm(x.long(), dtype=t.float32),
    "norm in less than it has": lambda t, x: t.linalg.vector_norm(x, dtype=t.float16),
    "norm of reals as complex": lambda t, x: t.linalg.vector_norm(x, dtype=t.complex64),
    "norm of complex as reals": lambda t, x: t.linalg.vector_norm(x.cfloat(), dtype=t.float32),
    "norm in more than it has": lambda t, x: t.linalg.vector_norm(x.cfloat(), dtype=t.complex128),
    "matrix norm in less than it has": lambda t, x: t.linalg.matrix_norm(x, dtype=t.bfloat16),
    "a bag's index, quick kernel": lambda t, x: t.nn.functional.embedding_bag(t.tensor([1, 9]), x, t.tensor([0])),
    "a bag's index, of doubles": lambda t, x: t.nn.functional.embedding_bag(
        t.tensor([1, 9]), x.double(), t.tensor([0])
    ),
    "a bag's index, padded": lambda t, x: t.nn.functional.embedding_bag(
        t.tensor([1, -1]), x, t.tensor([0]), padding_idx=0
    ),
    "a number to flip": lambda t, x: t.fliplr(3),
    "a word to flip": lambda t, x: t.flipud("x"),
    "an array to flip": lambda t, x: t.fliplr(np.ones((2, 2))),
    "cov of a number": lambda t, x: t.cov(3),
    "cov, whose correction is a bool": lambda t, x: t.cov(x, correction=True),
    "cov, weighted by a number": lambda t, x: t.cov(x, fweights=3),
    "blocks of numbers": lambda t, x: t.block_diag(x, 3),
    "blocks in a list": lambda t, x: t.block_diag([x]),
    "at least one number": lambda t, x: t.atleast_1d(x, 3),
    "a list that is a tensor": lambda t, x: t.hstack(x),
    "a stack of numbers": lambda t, x: t.vstack([x, 3]),
    "grid of numbers": lambda t, x: t.meshgrid(3, indexing="ij"),
    "where a number holds": lambda t, x: t.where(3),
    "nonzero of a number": lambda t, x: t.nonzero(3),
    "largest of a number": lambda t, x: t.max(3),
    "difference of order True": lambda t, x: t.diff(x, n=True),
    "inverse of a number": lambda t, x: t.linalg.inv(3),
    "a factor whose flag is a word": lambda t, x: t.linalg.cholesky(x, upper="x"),
    "polygamma of order True": lambda t, x: t.polygamma(True, x),
    "embedding by a number": lambda t, x: t.embedding(x, 3),
    "celu_ of a number": lambda t, x: t.celu_(3),
    "how many elements a number has": lambda t, x: t.numel(3),
    "whether a number is real": lambda t, x: t.is_floating_point(3),
    "whether a number is conjugate": lambda t, x: t.is_conj(3),
    "a number detached": lambda t, x: t.detach(3),
    "a number cloned": lambda t, x: t.clone(3),
    "a number flattened": lambda t, x: t.flatten(3),
    "a number zeroed": lambda t, x: t.zero_(3),
    "equal to a number": lambda t, x: t.equal(x, 3),
    "drawn by a number": lambda t, x: t.bernoulli(3),
    "sizes that begin with a bool": lambda t, x: t.zeros((True, 2)),
    "sizes that end with one": lambda t, x: t.zeros((2, True)),
    "rolled by True": lambda t, x: x.roll(True),
    "rolled by half": lambda t, x: x.roll(1.5),
    "turned over by a float": lambda t, x: x.flip((1.0,)),
    "along a numpy int": lambda t, x: t.max(x, np.int64(1)),
    "wrong degree": lambda t, x: t.mvlgamma(x + 5, 0),
    "cross of two dtypes": lambda t, x: t.linalg.cross(t.ones(3), t.ones(3).long()),
    "shifted along nothing": lambda t, x: t.fft.fftshift(x, dim=()),
    "slices for a number": lambda t, x: t.index_add(t.tensor(1.0), 0, t.tensor([0]), t.ones(1)),
    "a row that is copied to a matrix": lambda t, x: t.index_copy(x, 0, t.tensor([0]), t.ones(2)),
    "joined into wholes": lambda t, x: t.cat([x, x], out=t.zeros(4, 2).long()),
    "identity of size True": lambda t, x: t.eye(True),
    "solved for a number": lambda t, x: t.linalg.solve(x, t.tensor(1.0)),
    "copied by ints": lambda t, x: t.index_copy(x, 0, t.tensor([0]).int(), t.ones(1, 2)),
    "least squares of two dtypes": lambda t, x: t.linalg.lstsq(x, x.double()),
    "least squares of other batches": lambda t, x: t.linalg.lstsq(x, t.ones(2, 2, 1)),
    "a dtype that is not that of out=": lambda t, x: t.sum(x, 0, dtype=t.float64, out=t.empty(0)),
    "a mean in a dtype that is not that of out=": lambda t, x: t.mean(x, 0, dtype=t.float64, out=t.empty(0)),
    "a sum without nans in another dtype than out=": lambda t, x: t.nansum(x, 0, dtype=t.float64, out=t.empty(0)),
    "a mean in whole numbers": lambda t, x: t.nanmean(x, dtype=t.int32),
    "least squares by no driver": lambda t, x: t.linalg.lstsq(x, x, driver="x"),
    "least squares of nothing": lambda t, x: list(t.linalg.lstsq(t.ones(0, 3), t.ones(0, 2))),
    "LU of two dtypes": lambda t, x: t.linalg.lu_solve(x, t.tensor([1, 2]).int(), x.double()),
    "LU by long pivots": lambda t, x: t.linalg.lu_solve(x, t.tensor([1, 2]), x),
    "LDL of two dtypes": lambda t, x: t.linalg.ldl_solve(x, t.tensor([1, 2]).int(), x.double()),
    "LDL of a vector": lambda t, x: t.linalg.ldl_solve(x, t.tensor([1, 2]).int(), t.ones(2)),
    "LDL by other pivots": lambda t, x: t.linalg.ldl_solve(x, t.tensor(1).int(), x),
    "triangle of two dtypes": lambda t, x: t.linalg.solve_triangular(x.double(), x, upper=True),
    "out= wider than an inverse": lambda t, x: t.linalg.inv(x, out=x.double()),
    "out= wider than a softmax": lambda t, x: t.softmax(x, 0, out=x.double()),
    "out= wider than a norm": lambda t, x: t.linalg.vector_norm(x, out=t.zeros(()).double()),
    "out= of another kind than an fft": lambda t, x: t.fft.fft(x, out=t.zeros(2, 2)),
    "out= of complex for a real fft": lambda t, x: t.fft.irfft(x, out=t.zeros(2, 2).cfloat()),
    "out= of complex for a real plane": lambda t, x: t.fft.hfft2(x, out=t.zeros(2, 2).cfloat()),
    "out= of floats for eigenvalues": lambda t, x: t.linalg.eigvals(x, out=t.zeros(2)),
    "wholes over 0": lambda t, x: x.long() // 0,
    "wholes modulo 0": lambda t, x: t.fmod(x.long(), 0),
    "mean of wholes and reals": lambda t, x: t.nn.functional.l1_loss(x.long(), x),
    "frames aligned to the window and centred": lambda t, x: t.stft(
        t.ones(9), 4, align_to_window=True, return_complex=True
    ),
    "frames aligned beyond the end": lambda t, x: t.stft(
        t.ones(9), 4, 1, win_length=3, center=False, align_to_window=True, return_complex=True
    ),
    "windows of no channels": lambda t, x: t.nn.functional.adaptive_max_pool1d(t.ones(2, 0, 4), 2),
    "means of windows of no channels": lambda t, x: t.nn.functional.adaptive_avg_pool3d(t.ones(2, 0, 4, 4, 4), 2),
    "a class of one number": lambda t, x: t.nn.functional.cross_entropy(t.ones(()), t.ones((), dtype=t.int64)),
    "a probability of one number": lambda t, x: t.nn.functional.cross_entropy(t.ones(()), t.ones(())),
    "classes of one number": lambda t, x: t.nn.functional.cross_entropy(t.ones(()), t.ones(3)),
    "classes of one number for many": lambda t, x: t.nn.functional.nll_loss(t.ones(2, 3, 4), t.ones(2)),
    "windows without room": lambda t, x: t.nn.functional.fractional_max_pool2d(t.ones(1, 4, 4), 2, output_size=4),
    "windows over too many": lambda t, x: t.nn.functional.fractional_max_pool2d(
        t.ones(1, 1, 1, 4, 4), 2, output_size=1
    ),
    "mean windows that only padding makes fit": lambda t, x: t.nn.functional.avg_pool3d(t.ones(1, 1, 4, 4, 4), 5, 3, 1),
    "places of windows of another dtype": lambda t, x: t.nn.functional.fractional_max_pool2d(
        t.ones(1, 2, 4, 4), 2, output_size=2, _random_samples=t.ones(1, 2, 2).double()
    ),
    "places of windows for too few": lambda t, x: t.nn.functional.fractional_max_pool2d(
        t.ones(2, 2, 4, 4), 2, output_size=2, _random_samples=t.ones(1, 2, 2)
    ),
    "places of windows of other channels": lambda t, x: t.nn.functional.fractional_max_pool3d(
        t.ones(2, 4, 4, 4), 2, output_size=2, _random_samples=t.ones(1, 1, 3)
    ),
    "places of windows without channels": lambda t, x: t.nn.functional.fractional_max_pool2d(
        t.ones(1, 2, 4, 4), 2, output_size=2, _random_samples=t.ones(1, 2)
    ),
    "places of windows of three dimensions": lambda t, x: t.nn.functional.fractional_max_pool2d(
        t.ones(1, 2, 4, 4), 2, output_size=2, _random_samples=t.ones(1, 2, 3)
    ),
    "divided from the right by a word": lambda t, x: x.__rtruediv__("a"),
    "divided as in Python 2": lambda t, x: [x.__div__(2), x.clone().__idiv__(2)],
    **{
        f"a history in {kind} {f}": lambda t, x, kind=kind, f=f: getattr(t, f)(
            x.requires_grad_(), *((0,) if f.startswith("cum") else ()), dtype=getattr(t, kind)
        )
        for f in ("sum", "nansum", "prod", "cumsum", "cumprod")
        for kind in ("int8", "int64", "bool")
        if not (f.startswith("cum") and kind == "bool")
    },
    "a choice of numbers into out=": lambda t, x: t.where(x > 0, 1.0, 2.0, out=t.zeros(2, 2)),
    "a choice of a number into out=": lambda t, x: t.where(x > 0, x, 2, out=t.zeros(2, 2)),
    **{
        f"bits of {kind} {f}": lambda t, x, kind=kind, f=f: getattr(x.to(getattr(t, kind)), f)(1)
        for kind in ("uint16", "uint64")
        for f in ("__lshift__", "bitwise_right_shift", "__ilshift__")
    },
    "bits of uint32 turned": lambda t, x: ~x.to(t.uint32),
    **{
        f"ranges {bounds} of {kind}": lambda t, x, bounds=bounds, kind=kind: t.range(*bounds, dtype=getattr(t, kind))
        for bounds in ((0, INF), (INF, 0), (0, NAN), (0, 1, NAN), (0, 1, 0), (-INF, INF), (0, 3, INF))
        for kind in ("bool", "int64", "float32", "complex64")
        if not (kind == "float32" and bounds == (0, 3, INF))
    },
    **{f"numbers {bounds}": lambda t, x, bounds=bounds: t.arange(*bounds) for bounds in ((INF, 0), (0, 1, NAN))},
    "elu in place with nan": lambda t, x: t.nn.functional.elu(x.requires_grad_() * 1, NAN, True).sum().backward(),
    **{
        f"places of {v} among {e}": lambda t, x, e=e, v=v: t.searchsorted(
            x[0].to(getattr(t, e)), v if v in (True, 1) else x.to(getattr(t, v))
        )
        for e in ("bool", "complex64", "float32")
        for v in ("bool", "complex64", "int64", True)
    },
    **{
        f"{f} at {index}": lambda t, x, f=f, index=index: getattr(t.ones(3, 2), f)(0, t.tensor(index), x)
        for f in ("index_add", "index_add_", "index_copy", "index_copy_")
        for index in ([[0, 1]], [[0.0, 1.0]], [0.0, 1.0])
    },
    **{
        f"a number at {index}": lambda t, x, index=index: t.tensor(2.0).index_select(0, t.tensor(index))
        for index in ([0, 0, 0], [0.0, 0.0], [[0]], [0.0])
    },
    "rows at what is no index": lambda t, x: x.index_select(0, t.tensor([[0.0]])),
    "places among nothing": lambda t, x: t.searchsorted(t.zeros(0).bool(), x.bool()),
    "turned round": lambda t, x: t.stack(list(reversed(t.tensor([[1.0, 2.0], [3.0, 4.0]])))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    both(lambda t: REFUSED[name](t, t.eye(2)))


NUMPY = (
    np.bool_(True),
    np.float32(0.5),
    np.float64(0.5),
    np.complex64(2 + 1j),
    np.complex128(2 + 1j),
    np.int8(2),
    np.uint8(2),
)


def gradient_of(t, function, values):
    """A function's result, its node's name, and the gradient of its sum."""
    x = t.tensor(values, requires_grad=True)
    out = function(x)
    out.sum().backward()
    return out.detach(), out.grad_fn.name(), x.grad


def aligned(t):
    return t.tensor([[1, 1, 1], [1, 2, 0]]), t.tensor([4, 4]), t.tensor([3, 2])


VALUES = {
    "complex numbers drawn without dimensions": lambda t: [
        t.manual_seed(3) and t.randn((), dtype=t.complex128),
        t.randn((), dtype=t.complex64),
    ],
    "frames aligned to the window": lambda t: [
        t.stft(t.arange(12.0) ** 2, n, hop, win, t.ones(win), center=False, align_to_window=True, return_complex=True)
        for n, hop, win in ((4, 1, 2), (5, 2, 3), (4, 2, 3), (4, 1, 4))
    ],
    "numpy's numbers as operands": lambda t: [
        (t.ones(2, dtype=d) * n, t.add(t.ones(2, dtype=d), n), t.where(t.ones(2) > 0, n, t.ones(2, dtype=d)))
        for d in (t.int64, t.float32, t.float16, t.bool)
        for n in NUMPY
    ],
    "numpy's numbers written": lambda t: [(t.ones(2).fill_(n), t.ones(2).copy_(n)) for n in NUMPY if n != 2 + 1j],
    "nodes of fills": lambda t: [
        f(t.ones(2, requires_grad=True) * 1).grad_fn.name()
        for f in (
            lambda x: x.masked_fill(x > 0, 1.5),
            lambda x: x.masked_fill(x > 0, t.tensor(1.5)),
            lambda x: x.masked_fill_(x > 0, t.tensor(1.5)),
            lambda x: x.polygamma_(1),
        )
    ],
    "areas of bytes": lambda t: [
        f(y, *x)
        for f in (t.trapezoid, t.cumulative_trapezoid)
        for y in (t.tensor([[2, 200, 3], [1, 200, 50]], dtype=t.uint8),)
        for x in ((), (t.tensor([[1, 2, 3], [200, 2, 3]], dtype=t.uint8),), (y.long(),), (y.float(),))
    ],
    "running areas of nothing": lambda t: t.cumulative_trapezoid(t.zeros(0, 3), dim=0),
    "positions of another dtype in nothing": lambda t: t.zeros(2, 0).gather(0, t.zeros(2, 0).half()),
    "positions of another dtype": lambda t: t.zeros(2, 1).gather(0, t.zeros(2, 1).half()),
    "histograms of halves between bounds": lambda t: t.histogram(t.tensor([1.0, 2, 3]).half(), 2, range=(0.0, 4.0)),
    "incomplete gamma of order 0": lambda t: [
        f(t.zeros(3), t.tensor([0.0, 0.5, INF])) for f in (t.special.gammainc, t.special.gammaincc)
    ],
    "one number among others": lambda t: [
        t.isin(t.ones(2), test_element=1),
        t.isin(element=2.0, test_elements=t.ones(2)),
    ],
    "conditions of what is singular": lambda t: [
        t.linalg.cond(x, p)
        for p in ("fro", "nuc", 1, -1, INF)
        for x in (t.ones(2, 2), t.zeros(2, 2), t.stack([t.ones(2, 2), t.eye(2) * 2]), t.ones(3, 3).cdouble())
    ],
    "wholes to a power that wraps": lambda t: (
        t.tensor([10701, 3, -7, 1, -1]) ** t.tensor([-1113, 1113, 10701, 2**62, 2**62 + 1])
    ),
    "small powers of complex numbers are products": lambda t: [
        (t.tensor([3 - 4j, -0.5j]) ** n - t.tensor(exact)).abs() < 1e-9
        for n, exact in (
            (1, [3 - 4j, -0.5j]),
            (2, [-7 - 24j, -0.25]),
            (3, [-117 - 44j, 0.125j]),
            (0.5, [2 - 1j, 0.5 - 0.5j]),
        )
    ],
    "scaled by powers that are too large alone": lambda t: [
        t.ldexp(
            t.tensor([0.0, 1.0, -0.0, 1e-30, 1.0, 3.0], dtype=getattr(t, kind)),
            t.tensor([200, 100, 300, 129, 128, -200]),
        )
        for kind in ("float32", "float64", "float16", "bfloat16")
    ],
    "running sums past an infinity": lambda t: [
        gradient_of(t, lambda x: x.logcumsumexp(0) @ t.tensor([1.0, 2, 3, 4, 5]), x)
        for x in ([1.0, 2, INF, 3, 1], [1.0, 2, -INF, 3, 1], [-INF, -INF, 3.0, 1, 2])
    ],
    "no alignment": lambda t: [
        gradient_of(t, lambda x, z=z: t.nn.functional.ctc_loss(x, *aligned(t), reduction="none", zero_infinity=z), x)
        for z in (False, True)
        for x in [t.arange(24.0).reshape(4, 2, 3).sin().log_softmax(-1).tolist()]
    ],
    "targets in one row": lambda t: [
        gradient_of(
            t,
            lambda x, lengths=lengths: t.nn.functional.ctc_loss(
                x.log_softmax(-1), t.arange(sum(lengths)) % 2 + 1, t.full((3,), 9), lengths, reduction="sum"
            ),
            t.arange(81.0).reshape(9, 3, 3).sin().tolist(),
        )
        for lengths in (t.tensor([3, 0, 1]), (1, 1, 1), (0, 0, 4), t.tensor([4, 2, 6]) // 2)
    ],
    "classes need no gradient": lambda t: [
        t.nn.functional.hinge_embedding_loss(t.ones(3), t.tensor([1.0, -1, 0.5], requires_grad=True)).requires_grad,
        t.nn.functional.cosine_embedding_loss(t.ones(1, 2), t.ones(1, 2), t.ones(1, requires_grad=True)).requires_grad,
    ],
    "names of losses' nodes": lambda t: [
        [
            gradient_of(
                t, lambda x, f=f, full=full, r=r: f.kl_div(x, x.detach(), log_target=full, reduction=r), [1.0, 2]
            )[1],
            gradient_of(
                t, lambda x, f=f, full=full, r=r: f.poisson_nll_loss(x, x.detach(), full=full, reduction=r), [1.0, 2]
            )[1],
            gradient_of(
                t,
                lambda x, f=f, full=full, r=r: f.gaussian_nll_loss(x, x.detach(), x.detach(), full, reduction=r),
                [1.0, 2],
            )[1],
        ]
        for f in [t.nn.functional]
        for full in (False, True)
        for r in ("none", "mean", "sum")
    ],
    "names of convolutions' nodes": lambda t: [
        getattr(t.nn.functional, name)(x, t.ones(2, 2, *[1] * n, requires_grad=True)).grad_fn.name()
        for n in (1, 2, 3)
        for name in (f"conv{n}d", f"conv_transpose{n}d")
        for x in (t.ones(2, *[3] * n), t.ones(1, 2, *[3] * n))
    ],
    "a threshold's value that wraps": lambda t: t.nn.functional.threshold(t.ones(3, dtype=t.uint8), 5, -1),
    "parts of complex numbers are slices": lambda t: [
        f(t.tensor([1j], requires_grad=True)).grad_fn.name() for f in (t.real, t.imag, t.view_as_real)
    ],
    **{
        f"between {a} by a weight of {w}{', in place' * in_place}": lambda t, a=a, w=w, in_place=in_place: [
            getattr(t.ones(shape, dtype=getattr(t, a)), "lerp_" if in_place else "lerp")(
                t.full(shape, 3, dtype=getattr(t, a)), t.tensor(1, dtype=getattr(t, w))
            )
            for shape in ((), (2,))
        ]
        for a, w in (
            ("float32", "float64"),
            ("float64", "float32"),
            ("bfloat16", "float32"),
            ("float32", "complex64"),
            ("float32", "int64"),
            ("int64", "float32"),
            ("int64", "bool"),
        )
        for in_place in (False, True)
    },
    "what has the common shape already": lambda t: (
        [
            [a is b for a, b in zip(t.broadcast_tensors(*given), given)]
            for given in ((t.ones(2), t.ones(2)), (t.ones(2), t.ones(())), (t.ones(1, 2), t.ones(2)), (t.ones(3),))
        ]
        + [t.distributions.Normal(x, 1.0).loc is x for x in (t.ones(2, requires_grad=True),)]
    ),
    "0 to a complex power": lambda t: t.pow(t.tensor([0j, 0j]), t.tensor([2 + 1j, 1 + 0j])) + 0,
    "size of what is infinite": lambda t: t.abs(t.tensor([complex(INF, NAN), complex(NAN, -INF), 3 + 4j])),
    "polynomials of no degree": lambda t: t.special.chebyshev_polynomial_t(
        t.tensor([0.5, 0.5, 0.5, 0.5]), t.tensor([NAN, -1.0, 2.0, INF])
    ),
    "polygamma far to the left": lambda t: t.polygamma(2, t.tensor([-1001.25, -100.25, -70.0])),
    "places beside nans": lambda t: [
        [t.searchsorted(edges, x, right=right), t.bucketize(x, edges, right=right)]
        for edges in (
            t.tensor([1.0, 3.0, NAN, NAN]),
            t.tensor([NAN, 3.0, 1.0, NAN]),
            t.tensor([1.0, 3.0, 3.0, 7.0, INF]),
        )
        for x in (t.tensor([NAN, 2.0, 3.0, INF, -INF]),)
        for right in (False, True)
    ],
    "places out of order": lambda t: [
        t.searchsorted(t.tensor(edges), t.arange(-1.0, 10.0).expand(len(edges), -1).contiguous(), right=right)
        for edges in ([[5.0, 1.0, 9.0, 2.0, 7.0, 3.0], [1.0, 2.0, 2.0, 2.0, 0.0, 8.0]],)
        for right in (False, True)
    ],
    "ranges beyond double precision": lambda t: [
        t.arange(2**60, 2**60 + 3, dtype=kind and getattr(t, kind)).shape
        for kind in (None, "int32", "uint8", "float32")
    ],
    "places among flags": lambda t: [
        t.searchsorted(edges, x)
        for edges in (t.tensor([False, True, True]), t.tensor([], dtype=t.bool))
        for x in (t.tensor([0.0, 0.5, 1.0, 2.0]), t.tensor([0, 1, 2]), t.tensor([], dtype=t.bool), 0.5, 1)
    ],
    "counts of nothing": lambda t: [t.bincount(t.tensor([]).long(), t.tensor([]), n) for n in (0, 3)],
    "into a wider out=": lambda t: [
        getattr(t, f)(t.tensor([1.0, 2.0, 4.0]), 0, out=t.zeros((), dtype=t.float64))
        for f in ("std", "var", "mean", "nansum", "logsumexp")
    ],
    "slopes without end": lambda t: [
        [f(x, slope), t.autograd.grad(f(x, slope).sum(), x)]
        for x in (t.tensor([-INF, -2.0, -0.0, 0.0, 1.0, INF], requires_grad=True),)
        for f in (t.nn.functional.elu, t.nn.functional.celu)
        for slope in (INF, -INF, -1.0)
    ],
    "sums of wholes in wholes": lambda t: [
        t.tensor([1, 2], dtype=t.int32).sum(dtype=t.int8),
        t.tensor([1.5, 2.5], requires_grad=True).detach().cumsum(0, dtype=t.int64),
        t.tensor([1.5, 2.5], requires_grad=True).sum(dtype=t.float64),
    ],
    "polygamma far to the right": lambda t: t.polygamma(1, t.tensor([INF, 1e10, 1e20])),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    both(VALUES[name])


KINDS = ("float32", "int64", "int16", "uint8", "bool", "bfloat16", "complex64")


@pytest.mark.parametrize("wanted", [None, *(k for k in KINDS if k != "bool")])
@pytest.mark.parametrize("kind", KINDS)
def test_scans_in_place(kind, wanted):
    """A dtype= other than the tensor's is refused."""
    both(lambda t: t.tensor([1, 0, 3]).to(getattr(t, kind)).cumsum_(0, dtype=wanted and getattr(t, wanted)))
    both(lambda t: t.tensor([1, 0, 3]).to(getattr(t, kind)).cumprod_(0, dtype=wanted and getattr(t, wanted)))


@pytest.mark.parametrize("kind", ["float32", "int64", "bool", "uint8"])
@pytest.mark.parametrize(
    "name", ["bitwise_and_", "bitwise_or_", "__ixor__", "bitwise_left_shift_", "__irshift__", "gcd_", "lcm_", "lt_"]
)
def test_bits_in_place(name, kind):
    """What is promoted to a dtype that does not fit is refused for that, before it is for having no kernel."""
    for other in (
        lambda t: t.tensor([1.5, 2, 3]),
        lambda t: t.tensor(1.5),
        lambda t: t.tensor([1, 2, 3]),
        lambda t: t.tensor([1, 2, 3]).bfloat16(),
        lambda t: t.tensor([1j, 2, 3]),
    ):
        both(lambda t, other=other: getattr(t.tensor([1, 0, 3]).to(getattr(t, kind)), name)(other(t)))


POWERS = [1.0, 2, 3, 0, -1, -6, INF, NAN, 3e38, 1.5, 0.75, 6, 2.0**-126, 200]


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "bfloat16", "int64", "bool"])
def test_powers_of_two(kind):
    """To and from float8_e8m0fnu, which has neither signs nor 0."""
    values = [v for v in POWERS if v == v and abs(v) < 1e9] if kind == "int64" else POWERS
    both(lambda t: t.tensor(values).to(getattr(t, kind)).to(t.float8_e8m0fnu).view(t.uint8))
    both(lambda t: t.tensor(values, dtype=t.float8_e8m0fnu).view(t.uint8))
    both(lambda t: t.arange(1, 190).byte().view(t.float8_e8m0fnu).to(getattr(t, kind)))
    both(lambda t: t.tensor([0, 1, 254, 255]).byte().view(t.float8_e8m0fnu).float())
