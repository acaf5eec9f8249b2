"""What calls of every operator with odd arguments found: flags, words and numbers out of place, nans, other dtypes."""

import enum
import math
import operator

import numpy as np
import pytest

import jtorch
from tests.oracle import both, torch

INF, NAN = float("inf"), float("nan")
HUGE = 2**63


def rows(t):
    return t.tensor([[1.0, NAN], [2, 3], [INF, 3], [INF, 4], [-INF, 3]])


def bytes_of(t):
    return t.tensor([[248, 255, 252], [254, 249, 3]], dtype=t.uint8)


def odd_grid(t):
    return t.tensor([[[[NAN, NAN], [NAN, 0.0], [0.0, NAN], [INF, 0.0], [-INF, 0.0], [0.1, 0.2]]]])


def sampled(t, **how):
    return t.nn.functional.grid_sample(t.arange(1.0, 17).view(1, 1, 4, 4), odd_grid(t), align_corners=False, **how)


class Answer(enum.IntEnum):
    YES = 1


# what stands for an int: numpy's numbers and arrays without dimensions, tensors of one element, members of enums
INTS = {
    "the largest": lambda t, x, n: x.topk(n(1), 0),
    "the smallest": lambda t, x, n: t.kthvalue(x, n(1)),
    "a triangle": lambda t, x, n: t.tril(x, n(1)),
    "an identity": lambda t, x, n: t.eye(n(1), 4),
    "a piece": lambda t, x, n: t.slice_scatter(x, x[:1], 0, n(1), 2),
    "a row": lambda t, x, n: x.select(0, n(1)),
    "a row written": lambda t, x, n: t.select_scatter(x, x[0], 0, n(1)),
    "a spectrum": lambda t, x, n: t.fft.rfft(x, n(1)),
    "numbers of a bin": lambda t, x, n: t.bincount(t.tensor([1, 0]), None, n(1)),
}
LONE = {  # of which an array is none
    "parts of a dimension": lambda t, x, n: t.nn.Unflatten(n(1), (3, 1))(x),
    "slopes": lambda t, x, n: t.gradient(x, dim=n(1)),
    "a type": lambda t, x, n: [t.result_type(x, n(1)), t.result_type(x.long(), n(1))],
}
KINDS = {
    "numpy.int64": lambda t: np.int64,
    "numpy.uint8": lambda t: np.uint8,
    "numpy.array": lambda t: np.array,
    "tensor": lambda t: t.tensor,
    "tensor of one element": lambda t: lambda v: t.tensor([v]),
    "enum": lambda t: Answer,
}
VALUES = {
    "factorials, of 0 and 1 exactly": lambda t: repr(t.arange(1.0, 7).lgamma()),
    **{
        f"{name} by {kind}": lambda t, name=name, kind=kind: INTS[name](t, t.arange(6.0).view(2, 3), KINDS[kind](t))
        for name in INTS
        for kind in KINDS
    },
    **{
        f"{name} by {kind}": lambda t, name=name, kind=kind: LONE[name](t, t.arange(6.0).view(2, 3), KINDS[kind](t))
        for name in LONE
        for kind in ("numpy.int64", "numpy.uint8", "tensor", "enum")
    },
    "sizes and dimensions by numpy's arrays without dimensions": lambda t: [
        t.ones(2, 3).repeat(np.array(2), 1),
        t.ones(2, 3).permute(np.array(1), 0),
        t.ones(1, 3).expand(np.array(2), 3),
        t.ones(2, 3).amax((np.array(0), 1)),
        t.nn.functional.pad(t.ones(2, 3), (np.array(1), 1)),
        t.nn.functional.layer_norm(t.arange(6.0).view(2, 3), (np.array(3),)),
        t.flip(t.arange(3), [np.array(0)]),
    ],
    "types beside numpy's numbers": lambda t: [
        t.result_type(t.ones(2, dtype=d), n)
        for d in (t.int64, t.float32)
        for n in (np.float32(2), np.bool_(True), np.complex64(2), np.complex128(2), 2.0, True)
    ],
    "numpy's numbers in a tensor": lambda t: [
        np.float32(0.5) in t.tensor([0.5]),
        np.int8(7) in t.ones(2),
        np.float64(1) in t.ones(2),
    ],
    "a new tensor of += an array": lambda t: [
        f(t.arange(1.0, 5.0).view(2, 2), np.array([[1, 2], [2, 1]], np.float32))
        for f in (operator.iadd, operator.isub, operator.imul, operator.itruediv)
    ],
    "a table of a numpy size": lambda t: t.nn.Embedding(np.uint8(5), 3, 0).padding_idx,
    "limits of bytes between -1 and 0": lambda t: [
        t.nn.functional.hardtanh(t.arange(6, dtype=t.uint8), *limits)
        for limits in ((-0.5, 0.5), (-0.99, 3.0), (0.5, 2.5))
    ],
    "distances of bytes": lambda t: [
        t.pairwise_distance(a, t.tensor([[3, 2], [1, 5]]).to(a.dtype))
        for a in (t.tensor([[1, 2], [200, 3]], dtype=t.uint8), t.eye(2))
    ],
    "medians of nothing": lambda t: [
        f(t.zeros(0).to(d)) for f in (t.median, t.nanmedian) for d in (t.int64, t.int32, t.int16, t.uint8, t.float32)
    ],
    "areas of nothing": lambda t: [t.trapezoid(t.zeros(0).short()), t.trapezoid(t.zeros(0, 3), dim=0)],
    "arguments by other names": lambda t: [str(t.result_type(t.ones(1), other=2)), t.rsub(t.ones(2), 1, 1.5)],
    "nodes by PyTorch's names": lambda t: [
        f(t.ones(2, 2, requires_grad=True)).grad_fn.name()
        for f in (t.deg2rad, t.rad2deg, lambda x: x.T, lambda x: x.mT)
    ],
    "nothing along a diagonal": lambda t: t.block_diag(),
    "odds between ends out of order": lambda t: [
        t.logit(t.tensor([0.0, 0.2, 0.5, 0.7, 1.0, NAN]), eps) for eps in (0.3, 0.5, 0.6, 2.0, -0.5)
    ],
    "a bias of two dimensions": lambda t: [
        t.nn.functional.linear(t.ones(shape), t.ones(3, 2), t.arange(1.0, 1 + math.prod(bias)).view(bias))
        for shape, bias in (
            ((2,), (1, 3)),
            ((2, 2), (2, 3)),
            ((2, 2), (2, 1)),
            ((2, 2, 2), (2, 3)),
            ((2, 2, 2), (4, 1)),
            ((2, 2, 2), (2, 2, 3)),
        )
    ],
    "empty points of two dtypes": lambda t: t.cdist(t.ones(0, 2), t.ones(3, 2).double()),
    "floats wrapped into a copy": lambda t: [
        f(t.zeros(2, 2, dtype=kind), t.tensor(values))
        for kind in (t.uint8, t.int8, t.int32)
        for values in ([300.0, -3.0], [3e10, -3e10], [NAN, INF])
        for f in (
            lambda x, src: t.select_scatter(x, src, 0, 0),
            t.diagonal_scatter,
            lambda x, src: t.as_strided_scatter(x, src, (2,), (1,)),
            lambda x, src: t.slice_scatter(x, src.view(1, 2), 0, 0, 1),
        )
    ],
    "between, by a tensor for a number": lambda t: [
        t.lerp(t.tensor([1.0, 2.0]), t.tensor([3.0, 4.5]), w)
        for w in (t.tensor(0.3, dtype=t.float64), t.tensor(0.3, dtype=t.float16), t.tensor(2), t.tensor(True))
    ],
    "derivatives past the largest factorial": lambda t: [
        t.polygamma(300, t.tensor([1.0, 2.0, 30.0], dtype=d)) for d in (t.float32, t.float64)
    ],
    "parts by a number of numpy": lambda t: [f(t.arange(4.0).view(2, 2), np.int64(2)) for f in (t.hsplit, t.vsplit)],
    "cholesky of nothing": lambda t: [t.cholesky(t.zeros(shape)) for shape in ((0, 2, 2), (0, 3), (0,), (0, 0))],
    "gradient of cholesky of nothing": lambda t: [
        t.autograd.grad(t.cholesky(x, u).sum(), x)
        for x in [t.zeros(0, 2, 2, requires_grad=True)]
        for u in (False, True)
    ],
    "logic in place on a leaf": lambda t: [
        [getattr(x, f"logical_{name}_")(*more).detach(), x.requires_grad]
        for name, more in (("xor", 1), ("and", 1), ("or", 1), ("not", 0))
        for x in [t.tensor([1.0, 2.0], requires_grad=True)]
        for more in [(t.tensor([1.0, 0.0]),) * more]
    ],
    "in place with what is no operand": lambda t: [
        getattr(t.tensor([1]), f"__i{name}__")(x)
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
        for x in ("a", None, [1])
    ],
    "polygamma beside a nan": lambda t: t.polygamma(2, t.tensor([-1.7658, -4.3228, NAN, 3.0])),
    "zeta beside a nan": lambda t: t.special.zeta(t.tensor(2.0), t.tensor([-1.75, -4.25, NAN])),
    "normalized nans": lambda t: [
        t.nn.functional.normalize(t.tensor([[1e3, INF, 1, NAN], [NAN, 1, 2, 3], [0, 0, 0, 0]]), p=p)
        for p in (2.0, 1.0, INF)
    ],
    "flag, then dimension of its value": lambda t: [
        f(t.arange(6.0).view(2, 3), x) for f in (t.var, t.std, t.var_mean, t.std_mean) for x in (True, 1, False, 0)
    ],
    "how many differ, of nans": lambda t: [t.pdist(rows(t), p=0), t.cdist(rows(t), rows(t), p=0)],
    "areas of bytes": lambda t: [
        t.trapezoid(bytes_of(t)),
        t.trapezoid(bytes_of(t), dx=2),
        t.trapezoid(bytes_of(t), dim=0),
        t.trapezoid(bytes_of(t), t.tensor([[-8.0, -0.5, 3.0], [-3.0, 5.0, 1.0]])),
        t.cumulative_trapezoid(bytes_of(t)),
        t.cumulative_trapezoid(bytes_of(t), t.tensor([[-8.0, -0.5, 3.0], [-3.0, 5.0, 1.0]])),
    ],
    "areas to infinity": lambda t: [t.trapezoid(t.tensor([-INF, -INF, 1.0]), dx=2.0), t.trapezoid(t.tensor([1.0]))],
    "points nowhere": lambda t: [
        sampled(t, mode=m, padding_mode=p) for m in ("bilinear", "nearest") for p in ("zeros", "border", "reflection")
    ],
    "losses in the dtype of the input": lambda t: [
        f(t.tensor([1.0, -2.0], dtype=a), t.tensor([1, -1], dtype=b), reduction=r)
        for f in (t.nn.functional.huber_loss, t.nn.functional.soft_margin_loss)
        for a, b in ((t.float16, t.float32), (t.float32, t.float64), (t.float64, t.float32), (t.float32, t.int64))
        for r in ("none", "mean", "sum")
    ],
    "areas of a transposed line": lambda t: t.nn.functional.interpolate(
        t.arange(24.0).view(2, 4, 3).transpose(1, 2), 6, mode="area"
    ),
    "coordinates of a turned matrix": lambda t: t.unravel_index(t.tensor([[3, 8, 13], [0, 5, 10]]).t(), (4, 5)),
    "complex without end": lambda t: [
        f(t.tensor([complex(x, y) for x in (INF, -INF, NAN, 1.0) for y in (INF, -INF, NAN, 0.0, 1.0)])).abs()
        for f in (t.exp, t.sqrt, t.log)
    ],
    "filled under a mask, turned": lambda t: [
        t.arange(30.0).view(5, 6).t().masked_fill(t.ones(6, 5).bool(), v) for v in (1.0, t.tensor(2.0))
    ],
    "turned over, turned": lambda t: [
        t.arange(24.0).view(2, 3, 4).mT.flip(0),
        t.fliplr(t.arange(24.0).view(2, 3, 4).mT),
        t.arange(24.0).view(2, 3, 4)[:, :, ::2].flip(1),
        t.ones(2, 1, 3).expand(2, 4, 3).flip(0),
    ],
    "last of the nans": lambda t: [
        t.nn.functional.adaptive_max_pool1d(t.tensor([[[NAN, 1, NAN, 2, 3, NAN, 0]]]), 3, return_indices=True),
        t.nn.functional.fractional_max_pool2d(
            t.tensor([[[NAN, 1, NAN, 2, 3, NAN], [1, 2, NAN, 3, NAN, 0]]]),
            (2, 2),
            output_size=(1, 3),
            _random_samples=t.tensor([[[0.5, 0.5]]]),
            return_indices=True,
        ),
    ],
    "logits in the dtype of the targets": lambda t: [
        t.nn.functional.binary_cross_entropy_with_logits(
            t.tensor([1.0, -2.0], dtype=a), t.tensor([1.0, 0.0], dtype=b), weight=w, reduction=r
        )
        for a, b in ((t.float64, t.float32), (t.float32, t.float16), (t.float32, t.float64))
        for w in (None, t.tensor([1.0, 2.0]))
        for r in ("none", "mean")
    ],
    "normal of tensors and a size": lambda t: t.normal(t.tensor(1.5), 0.3, (2, 2)).shape,
    "positions if asked for by an int": lambda t: t.nn.functional.max_pool2d(t.ones(1, 2, 2), 2, return_indices=1),
    "weighted by size": lambda t: [
        t.nn.functional.huber_loss(
            t.arange(6.0).view(2, 3), t.ones(2, 3), weight=t.arange(1.0, 7).view(2, 3), reduction=r
        )
        for r in ("none", "mean", "sum")
    ],
    "smoothed by less than nothing": lambda t: [
        t.nn.functional.cross_entropy(t.arange(6.0).view(2, 3), y, label_smoothing=s)
        for s in (-1, -0.5, 0.5)
        for y in (t.tensor([0, 2]), t.ones(2, 3) / 3)
    ],
    "reductions by unknown numbers": lambda t: [
        t.hinge_embedding_loss(t.arange(6.0), t.ones(6), 1.0, 5),
        t.kl_div(t.arange(6.0), t.ones(6), -1),
        t.poisson_nll_loss(t.arange(6.0), t.ones(6), True, False, 1e-8, 5),
    ],
    "batch_norm of halves": lambda t: [
        t.nn.functional.batch_norm(t.arange(12.0, dtype=d).view(4, 3), *stats, training=k)
        for d in (t.float16, t.bfloat16)
        for k in (False, True)
        for stats in (
            (t.zeros(3), t.ones(3)),
            (t.zeros(3), t.ones(3), t.ones(3), t.ones(3)),
            (t.zeros(3, dtype=d), t.ones(3, dtype=d), t.ones(3, dtype=d), t.ones(3, dtype=d)),
        )
    ],
    "bytes resampled": lambda t: [
        t.nn.functional.interpolate((t.arange(3 * n * m) * 53 % 256).view(1, 3, n, m).byte(), size, mode=mode, **how)
        for n, m, size in ((16, 16, (7, 9)), (9, 13, (9, 5)), (8, 8, (8, 21)), (20, 30, (41, 3)), (5, 4, (200, 150)))
        for mode in ("bilinear", "bicubic")
        for how in ({}, {"align_corners": True}, {"antialias": True})
    ],
    "bytes resampled by factors": lambda t: [
        t.nn.functional.interpolate(
            (t.arange(360) * 53 % 256).view(1, 3, 10, 12).byte(), scale_factor=f, mode=mode, antialias=a
        )
        for f in (0.3, 2.5, (1.7, 0.6))
        for mode, a in (("bilinear", False), ("bicubic", False), ("bicubic", True), ("lanczos", True))
    ],
    "ints in tensors of one element": lambda t: [
        t.arange(6.0).as_strided((t.tensor([2]), 2), (t.tensor([1]), t.tensor([[2]]))),
        t.nn.functional.pad(t.ones(1, 3), (t.tensor([1]), 0)),
    ],
    "a flag by its number": lambda t: [t.masked.var(t.arange(6.0).view(2, 3), 1, unbiased=u) for u in (0, 1, None)],
    "tiles by name": lambda t: [t.tile(t.ones(2), dims=(2, 2)), t.ones(2).tile(2, 3), t.ones(2).tile((2,))],
}


# PyTorch's functions take these names, whatever its documentation says.
NAMED = {
    "linalg.eig": {"input": "m"}, "linalg.eigh": {"input": "m"}, "linalg.eigvals": {"input": "m"}, "linalg.eigvalsh": {"input": "m"},
    "linalg.cholesky": {"input": "m"}, "linalg.cholesky_ex": {"input": "m"}, "linalg.matrix_exp": {"input": "m"},
    "linalg.householder_product": {"input": "m", "tau": "v"}, "linalg.ldl_factor": {"input": "m"},
    "linalg.ldl_factor_ex": {"input": "m"}, "linalg.lstsq": {"input": "m", "b": "m"}, "linalg.vector_norm": {"input": "m"},
    "linalg.matrix_norm": {"input": "m"}, "linalg.norm": {"input": "m"}, "linalg.tensorsolve": {"input": "m", "other": "v"},
    "det": {"input": "m"}, "linalg.det": {"A": "m"}, "slogdet": {"input": "m"}, "inverse": {"input": "m"}, "linalg.inv": {"A": "m"},
    "cholesky_inverse": {"input": "m"}, "cholesky_solve": {"input": "m", "input2": "m"}, "orgqr": {"input": "m", "input2": "v"},
    "ormqr": {"input": "m", "input2": "v", "input3": "m"}, "triangular_solve": {"input": "m", "A": "m"},
    "special.airy_ai": {"x": "v"}, "special.spherical_bessel_j0": {"x": "v"}, "special.scaled_modified_bessel_k0": {"x": "v"},
    "constant_pad_nd": {"input": "v", "pad": (1, 1)}, "scalar_tensor": {"s": 2},
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_names(name):
    def program(t):
        given = {"m": t.eye(2), "v": t.ones(2)}
        function = t
        for part in name.split("."):
            function = getattr(function, part)
        return function(**{k: given.get(v, v) for k, v in NAMED[name].items()})

    both(program)


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    both(VALUES[name])


# x: ones, two rows of three. Class and first words are compared.
def _scattered(t, kind, how, number):
    x, at = t.zeros(3, dtype=kind), t.tensor([0])
    if how == "in place":
        return x.scatter_(0, at, number)
    return x.scatter(0, at, value=number) if how == "value" else x.scatter(0, at, number)


REFUSED = {
    "dimension of a view, as a method": lambda t, x: x.unsqueeze(1.5),
    "dimension of a view, as a function": lambda t, x: t.unsqueeze(x, 1.5),
    "other tensor, as a method": lambda t, x: x.view_as(3),
    "int of 65 bits": lambda t, x: x.sum(HUGE),
    "int of 65 bits for a view": lambda t, x: x.unsqueeze(-HUGE - 1),
    "ints of 65 bits": lambda t, x: x.roll((1,), (HUGE,)),
    "window of 65 bits": lambda t, x: t.nn.functional.avg_pool2d(x[None], HUGE),
    "None among ints": lambda t, x: x.permute((1, None)),
    "None first among ints": lambda t, x: x.permute((None, 1)),
    "word among dimensions": lambda t, x: t.sum(x, (1, "a")),
    "float for dimensions": lambda t, x: x.amax(1.5),
    "flag of a pool": lambda t, x: t.nn.functional.avg_pool2d(x[None], 2, ceil_mode=1),
    "window that begins with a flag": lambda t, x: t.nn.functional.avg_pool2d(x[None], (True, 2)),
    "window of a float": lambda t, x: t.nn.functional.max_pool2d(x[None], 1.5),
    "distance that is None": lambda t, x: t.cosine_similarity(x, x, eps=None),
    "dtype that is a number": lambda t, x: t.softmax(x, 0, dtype=1),
    "flag of what has no shape yet": lambda t, x: t.nonzero(x, as_tuple=1),
    "flag of unique": lambda t, x: t.unique_consecutive(x, return_counts="a"),
    "triangle of a float": lambda t, x: t.triu_indices(2.5, 3),
    "triangle of a flag": lambda t, x: t.tril_indices(True, 3),
    "rows into wholes": lambda t, x: t.vstack((x, x), out=x.long()),
    "coordinates in floats": lambda t, x: t.unravel_index(t.tensor([1]), (4.5, 5)),
    "coordinates in a word": lambda t, x: t.unravel_index(t.tensor([1]), "a"),
    "triangular system of two dtypes": lambda t, x: t.triangular_solve(x, t.eye(2).double()),
    "triangular system of a vector": lambda t, x: t.triangular_solve(x[0], t.eye(3)),
    "triangular system of other sizes": lambda t, x: t.triangular_solve(x, t.eye(3)),
    "system without a triangle": lambda t, x: t.triangular_solve(x, x),
    "too large for float32": lambda t, x: t.nn.functional.threshold(x, 0.0, 1e39),
    "too large a bound": lambda t, x: t.nn.functional.hardtanh(x, -1e39, 1),
    "too large for a half": lambda t, x: t.nn.functional.hardshrink(x.half(), 1e6),
    "too large a slope": lambda t, x: t.nn.functional.leaky_relu(x, 1e39),
    "too large for a byte": lambda t, x: t.nn.functional.threshold(x.to(t.int8), 1, 300),
    "lambda that is infinite": lambda t, x: t.nn.functional.softshrink(x, INF),
    "lambda that is nan": lambda t, x: t.nn.functional.softshrink(x, NAN),
    "slopes without end": lambda t, x: t.nn.functional.rrelu(x, 0.1, INF),
    "too large a factor": lambda t, x: t.add(x, x, alpha=1e39),
    "too large a factor for bytes": lambda t, x: t.add(x.to(t.int8), x.to(t.int8), alpha=300),
    "too large a factor of a product": lambda t, x: t.addmm(x, x, t.eye(3), beta=1e39),
    "loss of a complex target": lambda t, x: t.nn.functional.soft_margin_loss(x, x.cfloat()),
    "out= of what are no tensors": lambda t, x: t.topk(x, 1, out=(3, 4)),
    "out= of a sum that is no tensor": lambda t, x: t.cumsum(x, 0, out=[x]),
    "out= of a choice that is no tensor": lambda t, x: t.masked_select(x, x > 0, out=[x]),
    "counts of the largest number": lambda t, x: t.bincount(t.tensor([HUGE - 1])),
    "counts up to a large number": lambda t, x: t.bincount(t.tensor([0, 2**62])),
    "out= of a factory": lambda t, x: t.zeros(2, out=[x]),
    "out= of another dtype for noise": lambda t, x: t.randn(2, dtype=t.float32, out=x.double()),
    "no list": lambda t, x: t.stack(None),
    "shape of a number": lambda t, x: x.reshape_as(3),
    "number that is a list": lambda t, x: t.scalar_tensor([0]),
    "deviation that is nan": lambda t, x: t.normal(1.5, NAN, (2,)),
    "noise below None": lambda t, x: t.randint(2, 10, None),
    "kernel without elements": lambda t, x: t.nn.functional.conv1d(x[None], t.ones(3, 2, 0)),
    "kernel without elements, transposed": lambda t, x: t.nn.functional.conv_transpose2d(
        x[None, None], t.ones(1, 3, 1, 0)
    ),
    "padding below 0": lambda t, x: t.nn.functional.unfold(x[None], 2, padding=-1),
    "dilation of 0": lambda t, x: t.nn.functional.unfold(x[None], 2, dilation=0),
    "three strides": lambda t, x: t.nn.functional.unfold(x[None], 2, stride=(1, 2, 1)),
    "bias of another dtype": lambda t, x: t.nn.functional.bilinear(x, x, t.ones(4, 3, 3), t.ones(4).half()),
    "put by ints": lambda t, x: x.put(t.tensor([0]).int(), t.ones(1)),
    "reflections of another dtype": lambda t, x: t.ormqr(t.eye(2), t.ones(2), x.double()),
    "reflections of other ranks": lambda t, x: t.ormqr(t.eye(2), t.ones(2), x[None]),
    "complex among the ordered": lambda t, x: t.searchsorted(t.ones(1), t.tensor([1j])),
    "bounds of no dimension": lambda t, x: t.searchsorted(t.tensor(0.0), t.ones(1)),
    "order in ints": lambda t, x: t.searchsorted(t.ones(1), t.ones(1), sorter=t.tensor([0]).int()),
    "products of two dtypes": lambda t, x: t.linalg.vecdot(x, x.double()),
    "product into another dtype": lambda t, x: t.linalg.vecdot(x, x, out=t.zeros(2).double()),
    "Householder's of two dtypes": lambda t, x: t.linalg.householder_product(t.eye(2), t.ones(2).double()),
    "Householder's of other ranks": lambda t, x: t.linalg.householder_product(t.eye(2), t.ones(1, 2)),
    "flag among numbers": lambda t, x: t.isin(True, x),
    "complex among numbers": lambda t, x: t.isin(1j, x),
    "added by floats": lambda t, x: t.index_add(x, 0, t.ones(2), x),
    "added by flags": lambda t, x: t.index_add(x, 0, t.tensor([True, False]), x),
    **{
        f"flag or number of a loss: {name}": lambda t, x, f=name, a=arguments: getattr(t.nn.functional, f)(x, x, **a)
        for name, arguments in {
            "poisson_nll_loss": {"log_input": "x"},
            "kl_div": {"log_target": "x"},
            "smooth_l1_loss": {"beta": "x"},
            "huber_loss": {"delta": None},
            "cross_entropy": {"label_smoothing": "x"},
            "hinge_embedding_loss": {"margin": "x"},
        }.items()
    },
    "eps of a loss": lambda t, x: t.nn.functional.poisson_nll_loss(x, x, eps=None),
    "ignored class that is a float": lambda t, x: t.nn.functional.cross_entropy(x, x[:, 0].long(), ignore_index=1.5),
    "ignored class that is a word": lambda t, x: t.nn.functional.nll_loss(x, x[:, 0].long(), ignore_index="x"),
    "swap by a number": lambda t, x: t.nn.functional.triplet_margin_loss(x, x, x, swap=1),
    "margin by a word": lambda t, x: t.nn.functional.triplet_margin_loss(x, x, x, margin="x"),
    "power of a margin": lambda t, x: t.nn.functional.multi_margin_loss(x, x[:, 0].long(), p="x"),
    "factor in a vector": lambda t, x: t.add(x, x, alpha=t.tensor([1])),
    "factor that is None": lambda t, x: t.add(x, x, alpha=None),
    "products into another dtype": lambda t, x: t.cumprod(x, 0, dtype=t.float32, out=t.empty(0).double()),
    "one statistic": lambda t, x: t.nn.functional.batch_norm(x, t.zeros(3), None, training=True),
    "the other statistic": lambda t, x: t.nn.functional.batch_norm(x, None, t.zeros(3), training=True),
    **{
        f"{what} of another dtype, batch_norm {training}": lambda t, x, w=what, k=training: t.nn.functional.batch_norm(
            x,
            training=k,
            **{
                n: t.ones(3, dtype=t.float64 if n == w else None)
                for n in ("running_mean", "running_var", "weight", "bias")
            },
        )
        for what in ("running_mean", "running_var", "weight", "bias")
        for training in (False, True)
    },
    "doubles, batch_norm": lambda t, x: t.nn.functional.batch_norm(x.double(), t.zeros(3), t.ones(3)),
    "doubles, batch_norm in training": lambda t, x: t.nn.functional.batch_norm(
        x.double(), t.zeros(3), t.ones(3), t.ones(3), training=True
    ),
    "halves of two kinds, batch_norm": lambda t, x: t.nn.functional.batch_norm(
        x.half(), t.zeros(3).half(), t.ones(3).half(), t.ones(3), t.ones(3)
    ),
    "weights of halves, batch_norm": lambda t, x: t.nn.functional.batch_norm(
        x.half(), t.zeros(3), t.ones(3), t.ones(3).half(), t.ones(3).half()
    ),
    "batch_norm of no tensor": lambda t, x: t.nn.functional.batch_norm(1, x, x),
    **{
        f"{name} of no tensor": lambda t, x, f=name: getattr(t.nn.functional, f)(1)
        for name in ("dropout", "alpha_dropout", "feature_alpha_dropout")
    },
    "affine matrices of ints": lambda t, x: t.nn.functional.affine_grid(x[None].int(), (1, 1, 2, 2)),
    "weight of another dtype": lambda t, x: t.nn.functional.multi_margin_loss(x, x[:, 0].long(), weight=x[0].double()),
    "weights of another shape": lambda t, x: t.nn.functional.mse_loss(x, x, weight=x[0]),
    "weights of another shape, huber": lambda t, x: t.nn.functional.huber_loss(x, x, weight=x[0]),
    "reduction by a number, poisson": lambda t, x: t.nn.functional.poisson_nll_loss(x, x, reduction=1),
    "reduction by a number, gaussian": lambda t, x: t.nn.functional.gaussian_nll_loss(x, x, x, reduction=1),
    "reduction by a word, labels": lambda t, x: t.nn.functional.multilabel_soft_margin_loss(x, x, reduction="x"),
    "labels in flags": lambda t, x: t.nn.functional.multilabel_soft_margin_loss(x, x > 0),
    "labels of another size": lambda t, x: t.nn.functional.multilabel_soft_margin_loss(x, t.ones(3, 3)),
    "a label alone": lambda t, x: t.nn.functional.multilabel_soft_margin_loss(x[0, 0], x[0, 0]),
    "signs of another size": lambda t, x: t.nn.functional.hinge_embedding_loss(x, t.ones(2)),
    "ranks of another size": lambda t, x: t.nn.functional.margin_ranking_loss(x[0], x[0], t.ones(2)),
    "variance below 0": lambda t, x: t.nn.functional.gaussian_nll_loss(x, x, -1.0),
    "labels out of range": lambda t, x: t.nn.functional.multilabel_margin_loss(x, t.tensor([[0, 1, 3], [0, 1, 2]])),
    "label out of range": lambda t, x: t.nn.functional.multi_margin_loss(x, t.tensor([0, 3])),
    "weight that is a matrix": lambda t, x: t.nn.MultiMarginLoss(weight=x),
    "mask of another size, scattered": lambda t, x: x.masked_scatter(t.ones(2, 4) > 0, x),
    "loss of wholes": lambda t, x: t.nn.functional.huber_loss(x.long(), x),
    "bias of more rows than a vector has": lambda t, x: t.nn.functional.linear(x[0], t.ones(3, 3), x),
    "bias of more rows than there are": lambda t, x: t.nn.functional.linear(x[:1], t.ones(3, 3), x),
    "bias of more dimensions": lambda t, x: t.nn.functional.linear(x, t.ones(3, 3), x[None]),
    "bias that makes a batch larger": lambda t, x: t.nn.functional.linear(x[:, None], t.ones(3, 3), x),
    "bias that is a column": lambda t, x: t.nn.functional.linear(x[0], t.ones(3, 3), t.ones(3, 1)),
    "float factor of wholes": lambda t, x: t.addr(x.long(), t.tensor([1, 2]), t.tensor([1, 2, 3]), beta=1.5),
    "flag for a factor": lambda t, x: t.addr(x, x[:, 0], x[0], alpha=True),
    "flag of an extreme by its number": lambda t, x: x.min(1, keepdim=1),
    "flag of an extreme that is None": lambda t, x: x.max(1, keepdim=None),
    "far between": lambda t, x: t.lerp(x, x, 1e39),
    "points of two dtypes": lambda t, x: t.cdist(x, x.double()),
    "points of two dtypes, multiplied": lambda t, x: t.cdist(t.ones(30, 3), x.double()),
    "wholes filled with nan after a number": lambda t, x: [x.long().masked_fill(x > 0, v) for v in (1.5, NAN)],
    "bytes filled with much after a number": lambda t, x: [x.byte().masked_fill(x > 0, v) for v in (1, -300)],
    "wholes filled with much in place": lambda t, x: [x.int().masked_fill_(x > 0, v) for v in (1, HUGE - 1)],
    **{
        f"{kind} scattered, {how}, at last {values[-1]}": lambda t, x, kind=kind, how=how, values=values: [
            _scattered(t, getattr(t, kind), how, v) for v in values
        ]
        for kind, values in (
            ("uint8", (1, 2, 3, 1000)),
            ("uint8", (1, 2, 3, NAN)),
            ("int32", (1, 2, 3, HUGE - 1)),
            ("float16", (1, 2, 3, 1j)),
            ("float16", (1.0, 2.0, 3.0, 1e9)),
            ("bool", (1, 2.5, 0, 3)),
        )
        for how in ("src", "value", "in place")
    },
    "wholes to a negative power in place": lambda t, x: [x.long().pow_(v) for v in (1, -1)],
    "rest of wholes by 0 in place": lambda t, x: [x.long().fmod_(v) for v in (1, 0)],
    "a bound that is nan": lambda t, x: t.nn.functional.huber_loss(x, x, delta=NAN),
    "a type beside a word": lambda t, x: t.result_type(x, "a"),
    "a matrix for a size": lambda t, x: t.fft.irfft(x, x.long()),
    "a matrix for shifts": lambda t, x: t.roll(x, x > 0, 0),
    "a matrix for a dimension in place": lambda t, x: x.cumsum_(x),
    "a matrix for an order": lambda t, x: t.cdist(x, x, x),
    "a dict for a dimension": lambda t, x: x.argmin({}),
    "a dict for a flag": lambda t, x: t.nansum(x, 0, {}),
    "a dict for a row": lambda t, x: t.select(x, 0, {}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    both(lambda t: REFUSED[name](t, t.ones(2, 3)))


WARNED = {
    "corners of samples": lambda f, t: f.grid_sample(t.zeros(1, 1, 4, 4), t.zeros(1, 2, 2, 2)),
    "corners of a grid": lambda f, t: f.affine_grid(t.eye(2, 3)[None], (1, 1, 2, 2)),
    "unit grid": lambda f, t: f.affine_grid(t.eye(2, 3)[None], (1, 1, 1, 2), align_corners=True),
    "bytes that choose": lambda f, t: t.where(
        t.tensor([1, 0], dtype=t.uint8), t.ones(2, dtype=t.int8), t.zeros(2, dtype=t.int8)
    ),
    "upsample": lambda f, t: f.upsample(t.zeros(1, 1, 4, 4), 2),
    "upsample_nearest": lambda f, t: f.upsample_nearest(t.zeros(1, 1, 4, 4), 2),
    "upsample_bilinear": lambda f, t: f.upsample_bilinear(t.zeros(1, 1, 4, 4), 2),
    "var of one": lambda f, t: t.zeros(1, 1, 1, 1).var(),
    "std of one each": lambda f, t: t.zeros(3, 1, 1, 1).std((1, 2)),
    "var_mean of fewer": lambda f, t: t.var_mean(t.zeros(2, 1, 1, 1), 0, correction=3)[0],
    "std_mean of nothing": lambda f, t: t.std_mean(t.zeros(3, 0, 1, 1), 0)[1],
}


@pytest.mark.parametrize("name", WARNED)
def test_warned(name):
    words, dtypes = [], []
    for t in (torch, jtorch):
        with pytest.warns(UserWarning) as caught:
            dtypes.append(str(WARNED[name](t.nn.functional, t).dtype))
        words.append([str(w.message).partition(" (Triggered")[0] for w in caught])
    assert words[0] == words[1]
    assert dtypes[0] == dtypes[1].replace("jtorch", "torch")


# Methods count their arguments without the tensor, and say what they are in place.
METHODS = {
    "add": lambda x: x.add("a"),
    "add_": lambda x: x.add_("a"),
    "addcmul": lambda x: x.addcmul(2, x),
    "addcmul_": lambda x: x.addcmul_(x, None),
    "atan2": lambda x: x.atan2(None),
    "maximum": lambda x: x.maximum(3),
    "mv": lambda x: x.mv("a"),
    "gather": lambda x: x.gather(0, 1),
    "lerp_": lambda x: x.lerp_(3, 0.5),
    "pow_": lambda x: x.pow_("a"),
    "reshape": lambda x: x.reshape(),
    "expand": lambda x: x.expand(),
    "permute": lambda x: x.permute(),
    "repeat": lambda x: x.repeat(),
    "flip": lambda x: x.flip(),
    "tile": lambda x: x.tile(),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    both(lambda t: METHODS[name](t.ones(2)))


SEARCHED = {
    "a sorter of another size": lambda t: t.searchsorted(t.tensor([1, 3, 5]), t.tensor([3]), sorter=t.tensor([0, 1])),
    "a sorter that leaves the sequence": lambda t: t.searchsorted(t.tensor([1, 3, 5]), t.tensor([3]), sorter=t.tensor([0, 1, 7])),
    "a sorter": lambda t: t.searchsorted(t.tensor([5, 3, 1]), t.tensor([3]), sorter=t.tensor([2, 1, 0])),
    "a number in several sequences": lambda t: t.searchsorted(t.ones(2, 3), t.tensor(1.0)),
    "unique along what is not there": lambda t: t.unique(t.tensor(1), dim=0),
    "unique of nothing twice": lambda t: t.unique(t.zeros(0, 0, 2), dim=1),
    "diff after a number": lambda t: t.diff(t.ones(3), prepend=t.tensor(1.0)),
    "diff before other rows": lambda t: t.diff(t.ones(2, 3), append=t.ones(3, 1)),
    "diff before the same rows": lambda t: t.diff(t.ones(2, 3), append=t.zeros(2, 2)),
    "too few places": lambda t: t.trapezoid(t.ones(5), t.ones(3)),
    "too few places, running": lambda t: t.cumulative_trapezoid(t.ones(5), t.ones(3)),
    "places for rows": lambda t: t.trapezoid(t.ones(2, 5), t.arange(5.0)),
    "max along a tensor": lambda t: t.max(t.arange(6.0).view(2, 3), dim=t.tensor(1)),
    "min along a tensor": lambda t: t.arange(6.0).view(2, 3).min(axis=t.tensor(0), keepdims=True),
    "max along nothing": lambda t: t.max(t.ones(2, 3), dim=None),
    "max with a tensor": lambda t: t.max(t.arange(3.0), t.tensor(1)),
    **{f"masked.{name} along {dim}": lambda t, name=name, dim=dim: getattr(t.masked, name)(t.arange(6.0).view(2, 3), dim) for name in ("softmax", "log_softmax", "softmin") for dim in (None, (0, 1), 1)},
    "a norm along three dimensions": lambda t: t.linalg.norm(t.ones(2, 2, 2), 2, (0, 1, 2)),
    "a norm along none": lambda t: t.linalg.norm(t.ones(2, 2), dim=()),
    "a chain of a vector": lambda t: t.chain_matmul(t.ones(2, 2), t.ones(2)),
    "rounded beyond all digits": lambda t: t.round(t.tensor([1.5, 0.0]), decimals=40),
    "parts of what has its channels last": lambda t: [t.cat([x[:, :, :2], x[:, :, 1:]], -1).stride() for x in [t.ones(2, 2, 3, 2).contiguous(memory_format=t.channels_last)]],
    "every second of what has its channels last": lambda t: [t.cat([x[:, :, ::2]] * 2).stride() for x in [t.ones(2, 2, 3, 2).contiguous(memory_format=t.channels_last)]],
    **{f"{name} what has its channels last": lambda t, how=how: [how(x).stride() for x in [t.ones(2, 3, 4, 5).contiguous(memory_format=t.channels_last)]] for name, how in {
        "rolls": lambda x: x.roll(1, 1),
        "rolls several of": lambda x: x.roll((1, 2), (0, -1)),
        "rolls a part of": lambda x: x[:, :2].roll(1, 0),
        "rolls, as a line,": lambda x: x.roll(1),
        "leaves": lambda x: x.roll(0, 1),
        "rolls, turned,": lambda x: x.permute(1, 0, 2, 3).roll(1, 0),
    }.items()},
    "shuffles channels, which are last, into space": lambda t: [(y.stride(), t.pixel_unshuffle(y, 2).stride()) for y in [t.pixel_shuffle(t.ones(2, 8, 3, 4).contiguous(memory_format=t.channels_last), 2)]],
    "nothing into channels": lambda t: [t.pixel_unshuffle(t.ones(s), 3).shape for s in [(2, 8, 0, 3), (0, 2, 3, 3)]],
    **{f"{mode} crops {shape} by {pad}": lambda t, mode=mode, shape=shape, pad=pad: t.nn.functional.pad(t.ones(shape), pad, mode=mode).shape for mode in ("reflect", "replicate", "circular") for shape, pad in (((1, 1, 4), (-3, -2)), ((1, 1, 4), (-2, -2)), ((2, 4), (-5, 1)), ((1, 1, 2, 3), (-2, -1, 0, 0)))},
    **{f"the entropy of no classes, {how}": lambda t, how=how: [t.nn.functional.cross_entropy(x, x, reduction=how) for x in [t.ones(5, 0)]] for how in ("mean", "sum", "none")},
    **{f"the nearest of {n} by {factor}": lambda t, n=n, factor=factor: t.nn.functional.interpolate(t.arange(float(n * n)).view(1, 1, n, n), scale_factor=factor) for n in (32, 33, 70) for factor in (2.01, 1.01)},
    "a ratio too many": lambda t: t.nn.FractionalMaxPool2d([2, 1], output_ratio=[0.5, 0.5, 0.6])(t.ones(2, 3, 5, 4)),
    "statistics of nothing": lambda t: t.batch_norm_update_stats(t.ones(0, 1), t.zeros(1), t.ones(1), 0.1),
    "sizes before dtypes": lambda t: t.bitwise_and(t.ones(2, 3), t.ones(4)),
    "sizes before dtypes, in place": lambda t: t.ones(2, 3).gcd_(t.ones(4, 2, 3)),
    "takes part of one storage": lambda t: [t.take(x[:4], t.tensor([3, 0]), out=x[4:6]) for x in [t.arange(6.0)]],
    "takes what it writes": lambda t: [t.take(x[:4], t.tensor([3, 0]), out=x[2:4]) for x in [t.arange(6.0)]],
}  # fmt: skip


@pytest.mark.parametrize("name", SEARCHED)
def test_searched(name):
    both(SEARCHED[name])
