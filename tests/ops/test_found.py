"""What a complete conformance run found and the capped samples of test_rows do not hold: one program a cause."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jtorch
from jtorch.ops import factor, reduce
from tests.oracle import both, torch

B = "bool"


def inner_of(kind, *shapes, out=None):
    def program(t):
        more = {} if out is None else {"out": t.empty(0, dtype=getattr(t, out))}
        return t.inner(*(t.ones(shape, dtype=getattr(t, kind)) for shape in shapes), **more)

    return program


def ones(t, *shape):
    return t.ones(shape, dtype=t.bool)


def seeded(t):
    t.manual_seed(3)
    return t


def second_order(function, *values):
    """The results, both gradients and the sum of the gradients' gradients of a function of two tensors."""

    def program(t):
        ends = [t.tensor(v, dtype=t.float64, requires_grad=True) for v in values]
        out = getattr(t, function)(*ends)
        first = t.autograd.grad(out, ends, t.ones_like(out), create_graph=True)
        again = t.autograd.grad(first, ends, [t.ones_like(g) for g in first])
        return [x.detach() for x in (out, *first)], again

    return program


INF = float("inf")
ENDS = [-INF, -INF, 1.0, INF, INF, 0.3, 1000.0], [-INF, 1.0, -INF, INF, -INF, 0.7, 1.0]


def points_between(function, kind, edges=True):
    """The histogram, its edges, and whether those are the tensors given."""

    def program(t):
        points = t.tensor([[0.1, 0.6], [0.6, 0.7], [0.9, 0.2]], dtype=getattr(t, kind))
        grid = t.tensor([0.0, 0.5, 1.0], dtype=points.dtype) if edges else 2
        if function == "histogram":
            counts, ends = t.histogram(points, grid)
            return counts, ends, ends is grid
        counts, ends = t.histogramdd(points, [grid, grid])
        return counts, ends, [e is grid for e in ends]

    return program


HISTOGRAMS = {
    f"{function} of {kind}, {'edges' if edges else 'a number'}": points_between(function, kind, edges)
    for function in ("histogram", "histogramdd")
    for kind in ("float32", "float16", "int64")
    for edges in (True, False)
}


def slopes(values, *orders):
    """The gradients of norms of a vector, by both functions."""

    def program(t):
        found = []
        for call in (t.linalg.vector_norm, t.norm):
            for order in orders:
                x = t.tensor(values, dtype=t.float64, requires_grad=True)
                found += t.autograd.grad(call(x, order), x)
        return found

    return program


def slope_of_matrix_norm(order, values):
    def program(t):
        x = t.tensor(values, requires_grad=True)
        return t.autograd.grad(t.linalg.matrix_norm(x, order), x)

    return program


def singular(t, *batch):
    """Matrices of rank 2 with singular values 9, 2 and 0."""
    return t.diag(t.tensor([9.0, 2.0, 0.0])).expand(*batch, 3, 3).clone()


def slopes_of_bags(t, indices, rows, **how):
    w = t.tensor(rows, requires_grad=True)
    out = t.nn.functional.embedding_bag(t.tensor(indices, dtype=t.int64), w, mode="max", **how)
    return [out, *t.autograd.grad((out * t.arange(1.0, 1 + out.numel()).reshape(out.shape)).sum(), w)]


CASES = HISTOGRAMS | {
    "the largest of equal rows": lambda t: [
        slopes_of_bags(t, indices, [[1.0, 5], [1, 4], [0, 5]], **how)
        for indices, how in (
            ([0, 1, 2, 0], {"offsets": t.tensor([0, 3])}),
            ([0, 1, 2, 0], {"offsets": t.tensor([0, 3]), "padding_idx": 0}),
            ([0, 0, 0, 0], {"offsets": t.tensor([0, 0, 3]), "padding_idx": 0}),
            ([[0, 0], [1, 2]], {}),
            ([], {"offsets": t.tensor([0, 0])}),
        )
    ],
    "the largest of infinite rows": lambda t: slopes_of_bags(t, [[0, 1], [1, 0]], [[-INF, 1.0], [-INF, INF]]),
    "labels as floats": lambda t: [
        t.nn.functional.ctc_loss(t.zeros(5, 2, 4).log_softmax(-1), t.tensor([[1.7, 2], [1, 2]]), n, t.tensor([2, 2]))
        for n in (t.tensor([5, 5]), t.tensor([5.0, 5.0]))
    ],
    "frequencies of nothing": lambda t: [
        [t.fft.fftfreq(0), t.fft.rfftfreq(0), t.fft.fftfreq(4, 0), t.fft.rfftfreq(5, 0.0), t.fft.rfftfreq(5, 0.5)],
        [t.fft.rfftfreq(n) for n in (-1, -2, -3)],
    ],
    "norms scaled down by nan": lambda t: t.renorm(t.eye(2), 2, 0, float("nan")),
    "norms of order nan scaled down": lambda t: t.renorm(t.eye(2), float("nan"), 0, 1),
    "rank with a tensor of more dimensions": lambda t: t.linalg.matrix_rank(singular(t, 1, 1), rtol=t.tensor([[0.5]])),
    "bins of bfloat16": lambda t: t.histc((t.arange(200.0) * 0.37).sin().mul(10).bfloat16(), 100, -10, 0),
    "quantiles of one slice side by side": lambda t: t.quantile(
        t.arange(24.0).reshape(2, 3, 4), t.tensor([0.1, 0.5]), 1, True
    ),
    **{
        f"quantiles between equals, {mode}": lambda t, mode=mode: [
            [q.detach(), t.autograd.grad(q, x, t.tensor([1.0, 2.0, 4.0]))]
            for row in ([1.0, 1, 2, 3], [INF, INF, INF], [1, INF, INF, 2], [-INF, 1, 2], [3, float("nan"), 1])
            for call in (t.quantile, t.nanquantile)
            for x in [t.tensor(row, requires_grad=True)]
            for q in [call(x, t.tensor([0.3, 0.5, 0.8]), interpolation=mode)]
        ]
        for mode in ("linear", "lower", "higher", "midpoint", "nearest")
    },
    "slopes of segments' products, with zeros and nan": lambda t: [
        t.autograd.grad(
            t.segment_reduce(x, "prod", lengths=t.tensor([1, 2, 3, 0]), initial=start), x, t.tensor([1.0, 2, 3, 4])
        )
        for row in (
            [1, float("nan"), 3, 4, 5, 5],
            [0, 2, 3, 0, 0, 4],
            [float("nan"), float("nan"), 1, 0, float("nan"), 2],
            [2, 0, 3, 1, 2, 0],
        )
        for start in (None, 2.0, 0.5)
        for x in [t.tensor(row, dtype=t.float32, requires_grad=True)]
    ],
    "zeta of an endless order": lambda t: t.special.zeta(
        t.tensor([[INF], [3e38], [1.0], [-INF]]), t.tensor([0.0, 1.0, 0.5, -2.5, -1.0, 1.5, INF, -INF])
    ),
    "slope of norms at zero": slopes([0.0, 0.0], 0.5, 1, 2, 3, INF, -1, -INF),
    "slope of norms of complex numbers": lambda t: [
        t.autograd.grad(call(x, order), x)
        for x in [t.complex(t.arange(9.0).sin(), t.arange(9.0).cos() * 0.7).to(t.complex128).requires_grad_()]
        for call in (t.linalg.vector_norm, t.norm)
        for order in (INF, -INF)
    ],
    "slope of norms near zero": slopes([0.0, 1.0, -2.0], 0.5, 1, 2, 3, INF, -1, -INF),
    "slope of a matrix norm, zeros in it": slope_of_matrix_norm(1, [[1.0, 0.0], [0.0, -2.0]]),
    "slope of a matrix norm at zero": slope_of_matrix_norm(2, [[0.0, 0.0], [0.0, 0.0]]),
    "differences into another dtype": lambda t: t.diff(t.arange(4), 2, out=t.zeros(2)),
    "no differences, into another dtype": lambda t: t.diff(t.arange(4), 0, out=t.zeros(4)),
    "no differences": lambda t: t.diff(t.arange(4.0).requires_grad_(), 0),
    "slices without neighbours that repeat": lambda t: t.unique_consecutive(t.arange(24).reshape(2, 3, 4), dim=1),
    "slices that differ": lambda t: t.unique(t.arange(24).reshape(2, 3, 4), dim=2, return_counts=True),
    "places in rows": lambda t: t.nonzero_static(t.eye(3), size=2),
    "whole numbers at equal ratios": lambda t: [
        t.logspace(*ends, 7, dtype=t.int64) for ends in ((-1, 1.9), (1, 1.2), (0.5, 3))
    ],
    "pooling's gradient lies as its input": lambda t: t.ops.aten.max_pool2d_with_indices_backward(
        t.ones(1, 2, 2, 2).to(memory_format=t.channels_last),
        t.ones(1, 2, 4, 4).to(memory_format=t.channels_last),
        [2, 2],
        [2, 2],
        [0, 0],
        [1, 1],
        False,
        t.zeros(1, 2, 2, 2, dtype=t.int64).to(memory_format=t.channels_last),
    ),
    "whole numbers at equal steps": lambda t: t.linspace(1, 50, 50, dtype=t.int64),
    "inner with a number, of bools": inner_of(B, (), (2, 3)),
    "inner of bools": inner_of(B, (3,), (3,)),
    "inner of bool matrices": inner_of(B, (2, 3), (2, 3)),
    "inner with a number, into another dtype": inner_of("int64", (), (2, 3), out="float64"),
    "inner into another dtype": inner_of("int64", (3,), (2, 3), out="float64"),
    "inner of sizes that differ": inner_of("float32", (2,), (4,)),
    "inner": lambda t: t.inner(t.arange(12.0).reshape(2, 2, 3), t.ones(2, 3)),
    "one product of bools, transposed": lambda t: t.tensordot(ones(t, 2, 2, 1), ones(t, 2, 1, 2), ((0, 1), (2, 0))),
    "one product of bools": lambda t: t.tensordot(ones(t, 2, 2), ones(t, 2, 2), 2),
    "products of bools": lambda t: t.tensordot(ones(t, 2, 2), ones(t, 2, 2), 1),
    "logaddexp of infinities": second_order("logaddexp", *ENDS),
    "logaddexp2 of infinities": second_order("logaddexp2", *ENDS),
    "normal with one deviation fits an empty out=": lambda t: t.normal(t.ones(4, 3), 2.0, out=t.empty(0)),
    "normal with one deviation fits a longer out=": lambda t: seeded(t).normal(t.ones(4, 3), 2.0, out=t.empty(2, 4, 3)),
    "normal with one mean resizes out=": lambda t: seeded(t).normal(2.0, t.ones(4, 3), out=t.empty(0)),
}

MASK = [True, False]


def small(t, d):
    return t.tensor([1, 100], dtype=getattr(t, d))


# Numbers that the dtype of the tensor cannot hold.
NUMBERS = {
    "bytes by a larger number": lambda t: [
        f(small(t, "uint8"))
        for f in (lambda x: x / 256, lambda x: x.div(1000), lambda x: x.true_divide(300), lambda x: 300 / x)
    ],
    "ints by a larger number": lambda t: small(t, "int32") / 2**33,
    "bytes by a larger number, rounded": lambda t: small(t, "int8").div(100, rounding_mode="floor"),
    "copysign of bytes": lambda t: t.copysign(small(t, "uint8"), -300),
    "masked_fill of halves": lambda t: small(t, "float16").masked_fill(t.tensor(MASK), -1e9),
    "masked_fill_ of floats": lambda t: small(t, "float32").masked_fill_(t.tensor(MASK), 1e39),
    "masked_fill of bytes": lambda t: small(t, "int8").masked_fill(t.tensor(MASK), 300),
    "masked_fill with inf": lambda t: small(t, "float16").masked_fill(t.tensor(MASK), -INF),
    "masked_fill of bools": lambda t: t.ones(2, dtype=t.bool).masked_fill(t.tensor([True, False]), 1j),
    "index_fill": lambda t: small(t, "int8").index_fill(0, t.tensor([0]), 300),
    "masked_fill, then with more": lambda t: [small(t, "float16").masked_fill(t.tensor(MASK), v) for v in (2, 2**40)],
    "index_fill, then with more": lambda t: [small(t, "int8").index_fill(0, t.tensor([0]), v) for v in (2.0, INF)],
    "scatter": lambda t: small(t, "float16").scatter(0, t.tensor([0]), 1e9),
    "clamp": lambda t: small(t, "int8").clamp(0, 300),
    "clamp of halves": lambda t: small(t, "float16").clamp(max=1e9),
    "where": lambda t: t.where(t.tensor(MASK), small(t, "int8"), 300),
    "where with halves": lambda t: t.where(t.tensor(MASK), small(t, "float16"), 2.5),
    "full": lambda t: t.full((2,), 1e6, dtype=t.float16),
    "fill_": lambda t: t.ones(2, dtype=t.bfloat16).fill_(3.395e38),
    "linspace": lambda t: t.linspace(0, 300, 4, dtype=t.uint8),
    "linspace of bools": lambda t: t.linspace(0, 1, 3, dtype=t.bool),
}
RESULTS = {
    "sums in the dtype of out=": lambda t: [
        getattr(t, f)(t.tensor([[1.5, 2.5], [3.0, 4.0]]), 0, out=t.empty(0, dtype=d))
        for f in ("sum", "prod")
        for d in (t.int64, t.float64, t.bool)
    ],
    "names of results": lambda t: [
        type(getattr(t.linalg, f)(t.eye(2))).__name__
        for f in ("eigh", "eig", "lu_factor", "cholesky_ex", "inv_ex", "ldl_factor", "slogdet")
    ],
    "names of results of the same in torch": lambda t: [
        type(f).__name__ for f in (t.slogdet(t.eye(2)), t.eye(2).slogdet())
    ],
    "medians into out=": lambda t: [
        f(t.tensor([[3.0, 1, 2], [0, 5, 4]]), d, keep, out=(t.empty(0), t.empty(0, dtype=t.int64)))
        for f in (t.median, t.nanmedian)
        for d, keep in ((0, False), (1, True))
    ],
    "medians into out= of other ints": lambda t: t.median(t.ones(2, 3), 0, out=(t.empty(0), t.empty(0, dtype=t.int32))),
    "nodes of layers": lambda t: [
        r.grad_fn.name()
        for r in (
            t.nn.Bilinear(2, 3, 4, bias=False)(t.ones(5, 2), t.ones(5, 3)),
            t.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6])(t.ones(2, 8), t.tensor([1, 7])).output,
        )
    ],
    "dtypes of a factor and a right side": lambda t: t.cholesky_solve(t.ones(2, 1, dtype=t.float64), t.eye(2)),
    "fields of results": lambda t: [(r.n_fields, r.n_sequence_fields, r.__match_args__) for r in [t.sort(t.ones(2))]],
}
DIVIDED = {  # integers by 0
    "rounded": lambda t: t.tensor([3, -3]).div(0, rounding_mode="trunc"),
    "floor_divide_": lambda t: t.tensor([3, -3]).clone().floor_divide_(0),
    "remainder_": lambda t: t.tensor([3, -3]).clone().remainder_(0),
}
SPECTRA = {
    "too few rows": lambda t: t.istft(t.ones(2, 5) + 0j, 4),
    "too few rows for all": lambda t: t.istft(t.ones(2, 5) + 0j, 4, onesided=False),
    "no columns": lambda t: t.istft(t.ones(3, 0) + 0j, 4),
    "too many dimensions": lambda t: t.istft(t.ones(1, 1, 3, 5) + 0j, 4),
    "no step": lambda t: t.istft(t.ones(3, 5) + 0j, 4, hop_length=0),
    "too large a step": lambda t: t.istft(t.ones(3, 5) + 0j, 4, hop_length=5),
    "too long a window": lambda t: t.istft(t.ones(3, 5) + 0j, 4, win_length=5),
    "a window of another length": lambda t: t.istft(t.ones(3, 5) + 0j, 4, window=t.ones(3)),
    "complex numbers of half a spectrum": lambda t: t.istft(
        t.ones(3, 5) + 0j, 4, window=t.ones(4), return_complex=True
    ),
    "half a spectrum of complex numbers": lambda t: t.stft(t.arange(16.0) + 0j, 4, onesided=True, return_complex=True),
}
NOTHING = {
    "the largest": lambda t: t.zeros(0).norm(p=INF),
    "the largest of rows": lambda t: t.zeros(2, 0).norm(INF, 1),
    "the largest of columns": lambda t: t.zeros(2, 0).norm(INF, 0),
    "below 0": lambda t: t.zeros(0).norm(p=-1),
    "condition": lambda t: t.linalg.cond(t.zeros(0, 0)),
}
SIZES = {
    "too large for any memory": lambda t: t.zeros(2**61),
    "too many elements": lambda t: t.ones(1).expand(2**62, 4),
    "repeated less than never": lambda t: t.ones(2).repeat(-1),
    "repeated never": lambda t: t.ones(2).repeat(0, 2).shape,
}


NO_TENSOR = {
    "float_power": lambda t: t.float_power(None, 2),
    "float_power, the exponent": lambda t: t.float_power(2, None),
    "one_hot": lambda t: t.nn.functional.one_hot(None),
    "max": lambda t: t.max(None),
    "min": lambda t: t.min(None),
    "lp_pool2d": lambda t: t.nn.functional.lp_pool2d(None, 2, 2),
    "max_pool1d": lambda t: t.nn.functional.adaptive_max_pool1d_with_indices(None, 2),
}


@pytest.mark.parametrize("name", NO_TENSOR)
def test_none_for_a_tensor(name):
    both(NO_TENSOR[name])


def test_classes_that_are_no_int():
    with pytest.raises(TypeError, match="must be int, not float"):
        jtorch.nn.functional.one_hot(jtorch.tensor([1]), 2.5)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_do_not_fit(name):
    both(NUMBERS[name])


@pytest.mark.parametrize("name", DIVIDED)
def test_integers_divided_by_zero(name):
    both(DIVIDED[name])


@pytest.mark.parametrize("name", SPECTRA)
def test_spectra(name):
    both(SPECTRA[name])


@pytest.mark.parametrize("name", NOTHING)
def test_norms_of_nothing(name):
    both(NOTHING[name])


@pytest.mark.parametrize("name", RESULTS)
def test_results(name):
    both(RESULTS[name])


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name):
    both(SIZES[name])


@pytest.mark.parametrize("name", CASES)
def test_found(name):
    both(CASES[name])


@pytest.mark.parametrize("mask", [None, "bool", "float32"])
def test_attention_without_keys(mask):
    def program(t):
        q, k, v = (t.ones(1, 2, n, 4, requires_grad=True) for n in (3, 0, 0))
        given = None if mask is None else t.zeros(3, 0, dtype=getattr(t, mask))
        out = t.nn.functional.scaled_dot_product_attention(q, k, v, given)
        out.sum().backward()
        return out.detach(), q.grad, k.grad, v.grad

    both(program, layout=False)


LAYOUTS = {
    "heads last in memory": lambda t, x: (x.transpose(1, 2).contiguous().transpose(1, 2),) * 3,
    "batch inside the heads": lambda t, x: (x.transpose(0, 1).contiguous().transpose(0, 1),) * 3,
    "packed": lambda t, x: t.stack([x, x, x]).permute(1, 3, 0, 2, 4).contiguous().permute(2, 0, 3, 1, 4).unbind(0),
    "query alone": lambda t, x: (x.transpose(1, 2).contiguous().transpose(1, 2), x, x),
    "keys alone": lambda t, x: (x, x.transpose(1, 2).contiguous().transpose(1, 2), x),
    "keys columns first": lambda t, x: (LAYOUTS["query alone"](t, x)[0], x.mT.contiguous().mT, x),
    "one step": lambda t, x: (x[:, :, :1].mT.contiguous().mT,) * 3,
    "other batch": lambda t, x: (LAYOUTS["query alone"](t, x)[0], x[:1], x[:1]),
    "wide values": lambda t, x: (LAYOUTS["query alone"](t, x)[0], x, x.repeat(1, 1, 1, 2)),
    "grouped heads": lambda t, x: (x.repeat(1, 2, 1, 1).transpose(1, 2).contiguous().transpose(1, 2), x, x),
    "three dimensions": lambda t, x: (x[0].transpose(0, 1).contiguous().transpose(0, 1),) * 3,
}


@pytest.mark.parametrize("mask", [None, "added", "learned"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_attention_layout(layout, mask):
    """The result lies in memory as the query does, where the kernel for the CPU runs; a learned mask is the other one's."""

    def program(t):
        x = t.arange(120.0).view(2, 3, 5, 4).sin().requires_grad_()
        q, k, v = LAYOUTS[layout](t, x)
        given = None if mask is None else t.zeros(q.shape[-2], k.shape[-2], requires_grad=mask == "learned")
        options = {"enable_gqa": True} if q.shape[1] != k.shape[1] else {}
        out = t.nn.functional.scaled_dot_product_attention(q, k, v, given, **options)
        out.cos().sum().backward()
        return out.detach(), out.stride(), x.grad

    both(program)


@pytest.mark.parametrize("mask", ["bool", "float32"])
@pytest.mark.parametrize("shape", [(1, 2, 3, 4), (2, 3, 4)])
def test_attention_with_a_mask_and_causal(mask, shape):
    """PyTorch's kernel for the CPU takes both, its other one, for fewer dimensions and dropout, refuses them."""

    def program(t, **options):
        q, k, v = (
            t.arange(1.0, 25.0).view(1, 2, 3, 4).sin().mul(i).view(*shape[:1], -1, *shape[-2:]) for i in (1, 2, 3)
        )
        q, k, v = (x.reshape(-1, 3, 4) if len(shape) == 3 else x for x in (q, k, v))
        q.requires_grad_()
        given = (t.arange(9.0).view(3, 3) % 4 > 0).to(getattr(t, mask))
        out = t.nn.functional.scaled_dot_product_attention(q, k, v, given, is_causal=True, **options)
        out.sum().backward()
        return out.detach(), q.grad

    both(program, layout=False)
    both(lambda t: program(t, dropout_p=0.5), layout=False)


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
def test_linear_with_no_outputs(shape):
    def program(t):
        x, w, b = t.ones(shape, requires_grad=True), t.ones(0, 4, requires_grad=True), t.ones(0, requires_grad=True)
        out = t.nn.functional.linear(x, w, b)
        out.sum().backward()
        return out.detach(), x.grad, w.grad, b.grad

    both(program, layout=False)


EMPTY_IMAGES = {
    "the largest of windows, no images": lambda t, F: F.adaptive_max_pool2d(t.ones(0, 4, 6, 7), 2, return_indices=True),
    "the largest of windows, no channels and no batch": lambda t, F: [
        F.adaptive_max_pool1d(t.ones(0, 4), 2),
        F.adaptive_max_pool2d(t.ones(0, 4, 4), 2),
        F.adaptive_max_pool3d(t.ones(0, 4, 4, 4), 2),
        F.fractional_max_pool2d(t.ones(0, 4, 4), 2, 2),
        F.fractional_max_pool3d(t.ones(0, 4, 4, 4), 2, 2),
    ],
    "the largest of even windows, no images": lambda t, F: F.adaptive_max_pool1d(t.ones(0, 4, 6), 3),
    "grid_sample": lambda t, F: F.grid_sample(t.ones(1, 2, 0, 3), t.zeros(1, 2, 2, 2), align_corners=False),
    "grid_sample of no image": lambda t, F: F.grid_sample(t.ones(0, 2, 3, 3), t.zeros(0, 2, 2, 2), align_corners=False),
    "nearest, no channels": lambda t, F: F.interpolate(t.ones(2, 0, 4), 3),
    "reflected, no images": lambda t, F: F.pad(t.ones(0, 4, 5), (1, 1), "reflect"),
    "reflected, no image": lambda t, F: F.pad(t.ones(0, 5, 5), (1, 1, 1, 1), "reflect"),
    "reflected, no width": lambda t, F: F.pad(t.ones(4, 0), (1, 1), "reflect"),
    "repeated, no channels": lambda t, F: F.pad(t.ones(4, 0, 5, 5), (1, 1, 1, 1), "replicate"),
    "repeated, no depth": lambda t, F: F.pad(t.ones(4, 0, 5, 5), (1,) * 6, "replicate"),
    "cross entropy of no probabilities": lambda t, F: F.cross_entropy(t.ones(0, 4), t.ones(0, 4)),
    "bilinear, no channels": lambda t, F: F.interpolate(t.ones(2, 0, 4, 4), 3, mode="bilinear"),
    "area, no channels": lambda t, F: F.interpolate(t.ones(2, 0, 4, 4), 3, mode="area"),
    "bicubic, no images": lambda t, F: F.interpolate(t.ones(0, 2, 4, 4), 3, mode="bicubic"),
}


@pytest.mark.parametrize("name", EMPTY_IMAGES)
def test_empty_images(name):
    both(lambda t: EMPTY_IMAGES[name](t, t.nn.functional), layout=False)


_CLOSE = [0.2, 0.5, 0.9, 0.3], [0.2, 0.4, 0.1, 0.0]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ["smooth_l1_loss", "huber_loss", "mse_loss"])
def test_slope_of_the_slope_of_equal_values(name, reduction):
    def program(t):
        x, y = (t.tensor(v, dtype=t.float64) for v in _CLOSE)
        function = getattr(t.nn.functional, name)
        hessian = t.func.jacrev(t.func.jacrev(lambda a: function(a, y, reduction=reduction).sum()))
        x.requires_grad_()
        slope = t.autograd.grad(function(x, y, reduction=reduction).sum(), x, create_graph=True)[0]
        return hessian(x.detach()), t.autograd.grad((slope * y).sum(), x)

    both(program)


_VALUES_ALONE = {
    "svd": lambda t, A: t.linalg.svd(A).S.sum(),
    "svd, reduced": lambda t, A: t.linalg.svd(A, full_matrices=False)[1].pow(2).sum(),
    "torch.svd": lambda t, A: t.svd(A)[1].sum(),
    "eigh": lambda t, A: t.linalg.eigh(A).eigenvalues.pow(2).sum(),
    "eig": lambda t, A: t.linalg.eig(A).eigenvalues.real.sum(),
}


@pytest.mark.parametrize("name", _VALUES_ALONE)
def test_equal_values_have_a_gradient_where_vectors_have_none(name):
    def program(t):
        got = []
        for A in (t.eye(3), t.diag(t.tensor([1.0, 1.0, 3.0])), t.stack([t.eye(3), t.eye(3) + 0.1])):
            A = A.to(t.float64).requires_grad_()
            _VALUES_ALONE[name](t, A).backward()
            got.append(A.grad)
        return got

    both(program)


def nearly_singular(points, jitter, scale=20):
    """A kernel's matrix, singular but for rounding, with numbers added to its diagonal."""
    k = jtorch.exp(-(points[:, None] - points).square().sum(-1) / scale)
    return k + jtorch.tensor(jitter)[:, None, None] * jtorch.eye(len(points))


@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")
def test_a_cholesky_factor_is_right_or_its_info_says_no():
    jtorch.manual_seed(0)
    jitter = [0, 3e-7, 1e-6, 2e-6, 1e-5, 1e-3]
    for n in (64, 128):
        matrices = nearly_singular(jtorch.randn(n, 3), jitter)
        for A in (matrices, *matrices):
            L, info = factor.cholesky_and_info(A, False)
            assert (info > 0).tolist() == L.isnan().any(-1).any(-1).tolist()
            if bool((info > 0).any()):
                for f in (jtorch.linalg.cholesky, jtorch.cholesky):
                    with pytest.raises(RuntimeError, match="leading minor|not positive"):
                        f(A)


def test_a_share_of_nothing_is_nan_also_where_the_gradient_is_known_to_xla():
    x = jnp.array([math.nan, 1.0])
    assert jnp.isnan(jax.jit(lambda x: reduce._equal_share.fn(jnp.ones(()), x, jnp.max(x), None, False))(x)).all()


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["amax", "amin", "aminmax"])
def test_an_extreme_that_is_nan_has_gradients_of_nan(name, kind):
    def program(t):
        rows = [[1.0, math.nan, 2.0, math.inf], [3.0, 2.0, 2.0, math.inf], [3.0, 1.0, 1.0, 0.0]]
        x = t.tensor(rows, dtype=getattr(t, kind), requires_grad=True)
        out = getattr(t, name)(x, dim=0)
        (out if name != "aminmax" else out[0] + out[1]).sum().backward()
        return x.grad

    both(program)


def test_zeros_with_a_sign_and_steps_of_nan():
    both(lambda t: t.asinh(t.tensor([complex(re, im) for re in (0.0, -0.0) for im in (-1.5, 1.5, 0.5)])))
    cuts = [complex(re, im) for re in (-2.0, -1.0, 0.5, 2.0) for im in (0.0, -0.0)]
    for name in ("sqrt", "rsqrt", "asin", "acos", "acosh", "atanh", "log"):
        both(lambda t, name=name: getattr(t, name)(t.tensor(cuts).requires_grad_()))
        both(lambda t, name=name: getattr(t, name)(t.tensor(cuts, dtype=t.complex128).conj()))
    both(lambda t: [t.tensor(cuts) ** n for n in (0.5, -0.5, 0.3)])
    both(lambda t: t.heaviside(t.tensor([math.nan, 2, -1, 0], dtype=t.bfloat16), t.ones(4, dtype=t.bfloat16)))
    both(lambda t: t.zeros(0, dtype=t.bfloat16).median())
    ends = [0.0, 1.0, math.inf, math.nan, 3e4, -1.0]
    for name in ("igamma", "igammac"):
        both(lambda t, name=name: getattr(t, name)(t.tensor(ends)[:, None], t.tensor(ends)))


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0, 500.0])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_functions(name, dtype, scale):
    """On both sides of the order, close to it and far from it."""
    draw = np.random.default_rng(0)
    a = (draw.random(300) + 0.05) * scale
    x = np.concatenate([a[:100] * (1 + 0.1 * draw.standard_normal(100)), draw.random(200) * 3 * scale])

    def program(t):
        kind = getattr(t, dtype)
        order, at = t.tensor(a).to(kind), t.tensor(x).to(kind).requires_grad_(dtype == "float64")
        found = getattr(t.special, name)(order, at)
        if dtype != "float64":
            return found
        (slope,) = t.autograd.grad(found.sum(), at, create_graph=True)
        return found, slope, t.autograd.grad(slope.sum(), at)[0], getattr(t.special, name)(order[:0], at[:0])

    # PyTorch's own are off by 1e-6 in float32, and by 1e-9 in float64 at orders around 30
    both(program, least=(1e-4, 3e-6) if dtype == "float32" else (1e-7, 1e-9))


@pytest.mark.parametrize("driver", [None, "gelsd"])
def test_the_rank_of_one_matrix_for_many_right_sides(driver):
    def program(t):
        A = t.tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]])
        return tuple(t.linalg.lstsq(A, t.ones(2, 3, 1), driver=driver))[1:]

    both(program)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("upper", [False, True])
def test_incomplete_gamma_near_large_orders(dtype, upper):
    """Series and fraction take some sqrt(a) terms there: 1e8, 1e8 gave 0.155, and 1e16, 1e16 what is no probability."""
    a = np.array([21.0, 150, 300, 1e4, 1e6, 1e8, 1e16, 1e30, 2e38]).repeat(6).astype(dtype)
    x = (a * np.array([1.0, 1 - 1e-7, 1.00002, 0.99, 1.25, 0.71] * 9)).astype(dtype)
    name = "igammac" if upper else "igamma"
    got, expected = (getattr(t, name)(t.tensor(a), t.tensor(x)).double().numpy() for t in (jtorch, torch))
    np.testing.assert_allclose(got, expected, rtol=1e-8 if dtype == "float64" else 2e-3, atol=1e-10)
    slope = jtorch.tensor(x[:18], requires_grad=True)
    getattr(jtorch, name)(jtorch.tensor(a[:18]), slope).sum().backward()
    wanted = torch.tensor(x[:18], requires_grad=True)
    getattr(torch, name)(torch.tensor(a[:18]), wanted).sum().backward()
    np.testing.assert_allclose(slope.grad.numpy(), wanted.grad.numpy(), rtol=2e-3)
