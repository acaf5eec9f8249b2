"""Arguments that PyTorch refuses, or takes for something else: numbers past int64, flags of numpy's, dtypes, sizes that do not fit."""

import numpy as np
import pytest

from tests.oracle import both

INF, NAN = float("inf"), float("nan")
HUGE = 2**63


def by_probabilities(t, kind, of_target, **how):
    """A cross entropy and its gradients, of logits whose softmax 16 bits round in one way only."""
    x = t.zeros(2, 3).to(kind).requires_grad_()
    p = (t.arange(6.0).view(2, 3) / 16).to(of_target).requires_grad_()
    loss = t.nn.functional.cross_entropy(x, p, **how)
    return loss, t.autograd.grad(loss.sum(), (x, p))


def attended(t, bias, given):
    """Attention whose keys or values are given, of these sizes."""
    m, x = t.nn.MultiheadAttention(4, 2, add_bias_kv=bias), t.ones(3, 2, 4)
    weights = m.in_proj_weight, m.in_proj_bias, m.bias_k, m.bias_v, False, 0.0, m.out_proj.weight, m.out_proj.bias
    given = {name: t.ones(size) for name, size in given.items()}
    return t.nn.functional.multi_head_attention_forward(x, x, x, 4, 2, *weights, **given)


def indices_written(t, name):
    values, indices = getattr(t.nn.functional, name)(
        t.rand(1, 2, *(4,) * int(name[-2]), requires_grad=True), 2, return_indices=True
    )
    indices.add_(1)
    values.sum().backward()


def looked_up(t, rows, width):
    """What a sparse gradient of rows without elements holds."""
    table = t.nn.Embedding(rows, width, sparse=True)
    table(t.arange(rows)).sum().backward()
    return table.weight.grad._indices(), table.weight.grad._values(), table.weight.grad.shape


VALUES = {
    "rows without elements": lambda t: [looked_up(t, *size) for size in ((0, 0), (3, 0), (0, 2))],
    "attention of no width": lambda t: [
        t.nn.functional.scaled_dot_product_attention(t.ones(2, 3, 0), t.ones(2, 3, 0), t.ones(2, 3, width))
        for width in (0, 4)
    ],
    "windows at random, of nothing": lambda t: [
        t.nn.functional.fractional_max_pool2d(
            t.ones(size), 2, output_size=out, return_indices=True, _random_samples=t.ones(size[0], 2, 2) / 2
        )
        for size, out in (((1, 2, 6, 6), (0, 1)), ((0, 2, 6, 6), 2))
    ],
    "padding by its internal names": lambda t: [
        getattr(t.ops.aten, f"{name}_pad{n}d")(t.arange(24.0).view(2, 3, 2, 2)[(0,) * (3 - n)], [1, 0] * n)
        for name in ("reflection", "replication")
        for n in (1, 2, 3)
    ],
    "ints past int64 that are only asked whether they are 0": lambda t: [
        t.tensor([HUGE, 0], dtype=t.bool),
        t.tensor(-4 * HUGE, dtype=t.bool),
        t.nn.functional.pad(t.ones(2).bool(), (1, 0), value=HUGE),
    ],
    "a padding past int64": lambda t: [t.nn.functional.pad(t.ones(2), (1, 1), value=k * HUGE) for k in (1, 2)],
    "powers past int64": lambda t: [t.ones(2) ** HUGE, t.ones(2).bool() ** 300, t.ones(2).bfloat16() ** HUGE],
    "numbers of numpy's to fill with": lambda t: [
        f(value)
        for value in (np.bool_(True), np.complex64(2), np.complex128(1), np.uint8(3), np.float16(1.5))
        for f in (lambda v: t.full((2,), v), lambda v: t.full_like(t.ones(2).cfloat(), v))
    ],
    "a number that is complex to numpy alone": lambda t: t.full_like(t.ones(2), np.complex64(1)),
    "where to split, by a tensor's name": lambda t: [
        t.tensor_split(t.ones(4), tensor_indices_or_sections=t.tensor([1, 2])),
        t.ones(4).tensor_split(tensor_indices_or_sections=t.tensor(2)),
    ],
    "nodes of transforms of real tensors": lambda t: [
        f(t.ones(2, 2, requires_grad=True)).grad_fn.name()
        for f in (t.fft.fft, t.fft.fft2, t.fft.ifft2, t.fft.fftn, t.fft.ifftn, t.fft.rfft2)
    ],
    "nodes of unpooling": lambda t: [
        getattr(t.nn.functional, f"max_unpool{n}d")(x, t.zeros_like(x).long(), 2).grad_fn.name()
        for n in (1, 2, 3)
        for x in (t.ones(1, 1, *(2,) * n, requires_grad=True),)
    ],
    "windows and frequencies by Python's types": lambda t: [
        t.hann_window(3, dtype=float),
        t.kaiser_window(0, dtype=t.complex64),
        t.hann_window(1, dtype=t.complex64),
        t.fft.fftfreq(3, dtype=float),
        t.fft.rfftfreq(3, pin_memory=False),
    ],
    "bounds without dimensions beside numbers": lambda t: [
        t.clamp(t.arange(3.0), 1, t.tensor(1.5)),
        t.clamp(t.arange(3.0), t.tensor(0.5), 1),
        t.clamp(t.arange(3.0), t.tensor([0.5]), t.tensor(1.0)),
    ],
    "a value without dimensions of another dtype": lambda t: t.zeros(2, 3).scatter(
        0, t.tensor([[0, 1]]), value=t.tensor(3)
    ),
    "norms in another dtype": lambda t: [
        t.norm(t.ones(3).half(), 2, dtype=t.float32),
        t.norm(t.ones(3).cfloat(), 1, dtype=t.cdouble),
        t.ones(3).norm(1, None, False, t.float64),
    ],
    "random ints between the ends of a dtype": lambda t: [
        t.randint(low, high, (2,), dtype=d).shape
        for low, high, d in ((0, 65505, t.float16), (-HUGE, HUGE - 1, t.int64), (0, 2, t.bool), (0, 70000, t.bfloat16))
    ],
    "classes by probabilities of another dtype": lambda t: [
        by_probabilities(t, getattr(t, a), getattr(t, b), **how)
        for a, b in (("float16", "float64"), ("float16", "float32"), ("float32", "float64"), ("float64", "float32"))
        for how in ({"reduction": "none"}, {}, {"reduction": "sum"})
    ],
    "attention without a batch or a position": lambda t: [
        t.nn.MultiheadAttention(4, 2)(*(t.zeros(s),) * 3, need_weights=w)[0]
        for s in ((0, 4), (3, 0, 4), (0, 2, 4))
        for w in (True, False)
    ],
    "a margin's loss of flags": lambda t: t.nn.functional.soft_margin_loss(
        t.arange(3.0), t.tensor([True, False, True])
    ),
    "indices that numbers alone make": lambda t: [
        t.nn.functional.embedding(i, t.arange(16.0).view(8, 2))
        for i in (t.arange(8), t.arange(9)[None].expand(3, -1)[:, :8], t.arange(16)[::2] // 2, t.full((2, 2), 7))
    ],
    "lengths as numbers and labels as floats": lambda t: t.nn.functional.ctc_loss(
        t.zeros(5, 2, 4).log_softmax(-1), t.ones(2, 3), (5, 5), (3, 3)
    ),
    "channels dropped of too few dimensions": lambda t: [
        len({tuple(row) for row in t.nn.functional.dropout3d(t.ones(64, 3, 2), 0.5).reshape(64, -1).tolist()}),
        t.nn.functional.dropout2d(t.ones(3), 1.0),
        t.nn.functional.dropout2d(t.ones(3), 0.5, False),
    ],
    "probabilities and weights that need a gradient": lambda t: t.nn.functional.cross_entropy(
        t.ones(2, 3), t.ones(2, 3), weight=t.ones(3, dtype=t.float64, requires_grad=True)
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    both(VALUES[name])


REFUSED = {
    "frequencies": [
        lambda t, name=name, n=n, dtype=dtype: getattr(t.fft, name)(n, dtype=getattr(t, dtype))
        for name, n, dtype in (
            ("fftfreq", -1, "float32"),
            ("fftfreq", -1, "int64"),
            ("fftfreq", 3, "int64"),
            ("fftfreq", 3, "complex64"),
            ("rfftfreq", -4, "float32"),
            ("rfftfreq", 3, "bool"),
        )
    ],
    "a bool and what only 64 bits without a sign hold": [
        lambda t, f=f: f(t, t.ones(2).bool())
        for f in (
            lambda t, x: x + HUGE,
            lambda t, x: x.mul(HUGE),
            lambda t, x: x == HUGE,
            lambda t, x: x < HUGE,
            lambda t, x: x / HUGE,
            lambda t, x: x & HUGE,
        )
    ],
    "exponents that do not fit": [
        lambda t: t.ones(2).long() ** HUGE,
        lambda t: t.pow(t.ones(2).int(), HUGE),
        lambda t: t.ones(2).int() ** 2**40,
        lambda t: t.ones(2).byte() ** 300,
        lambda t: t.ones(2).bool() ** HUGE,
        lambda t: t.ones(2).half() ** 70000,
        lambda t: t.ones(2).half() ** HUGE,
        lambda t: t.ones(2).half() ** 1e6,
    ],
    "random ints past the ends of a dtype": [
        lambda t: t.randint(0, HUGE, (2,)),
        lambda t: t.randint(HUGE, (2,)),
        lambda t: t.randint(-HUGE - 1, 5, (2,)),
        lambda t: t.randint(0, 70000, (2,), dtype=t.float16),
        lambda t: t.randint(-70000, 1, (2,), dtype=t.float16),
        lambda t: t.randint_like(t.ones(2).half(), 0, 70000),
        lambda t: t.ones(2).random_(0, HUGE),
        lambda t: t.ones(2).random_(0, 2 * HUGE),
        lambda t: t.ones(2).half().random_(0, 70000),
    ],
    "flags of numpy's": [
        lambda t: t.ones(2, 2).sum(1, keepdim=np.bool_(True)),
        lambda t: t.ones(2, 2).argmax(1, keepdim=np.bool_(True)),
        lambda t: t.ones(2, 2).topk(1, largest=np.bool_(True)),
        lambda t: t.nn.functional.avg_pool1d(t.ones(1, 1, 4), 2, ceil_mode=np.bool_(True)),
    ],
    "norms in a dtype that does not fit": [
        lambda t, k=kind, d=d, p=p: t.norm(t.ones(3).to(getattr(t, k)), p, dtype=getattr(t, d))
        for kind, d, p in (
            ("int64", "float32", 2), ("int64", "int32", 1), ("bool", "float64", 1), ("float32", "float16", 2),
            ("float32", "float16", "fro"), ("float64", "float32", "fro"), ("float16", "bfloat16", 1), ("complex64", "float32", 2),
            ("complex128", "complex64", 1), ("float32", "complex64", 2), ("float32", "int32", 2), ("float32", "bool", 1),
        )
    ]
    + [
        lambda t, d=d: t.norm(t.ones(3, 3), "nuc", dtype=getattr(t, d)) for d in ("float16", "int32")
    ]
    + [
        lambda t: t.norm(t.ones(3, 3).double(), "nuc", dtype=t.float32),
        lambda t: t.norm(t.ones(3, 3).long(), "nuc", dtype=t.float32),
        lambda t: t.linalg.vector_norm(t.ones(3), dtype=t.int64),
        lambda t: t.linalg.matrix_norm(t.ones(3, 3), dtype=t.int32),
    ],
    "losses of targets that are larger": [
        lambda t: t.nn.functional.soft_margin_loss(t.ones(()), t.ones(2)),
        lambda t: t.nn.functional.soft_margin_loss(t.ones(2), t.ones(2, 2)),
        lambda t: t.nn.functional.soft_margin_loss(t.ones(2, 1), t.ones(1, 2), reduction="none"),
    ],
    "gradients of what PyTorch has none for": [
        lambda t, f=f: f(t.nn.functional, t, t.ones(3, requires_grad=True))
        for f in (
            lambda F, t, w: F.nll_loss(t.ones(2, 3), t.ones(2).long(), weight=w),
            lambda F, t, w: F.nll_loss(t.ones(2, 3, 2), t.ones(2, 2).long(), weight=w),
            lambda F, t, w: F.cross_entropy(t.ones(2, 3), t.ones(2).long(), weight=w, label_smoothing=0.1),
            lambda F, t, w: F.cross_entropy(t.ones(2, 3, 2), t.ones(2, 2).long(), weight=w),
            lambda F, t, w: F.binary_cross_entropy(t.ones(3) / 2, t.ones(3), weight=w),
            lambda F, t, w: F.binary_cross_entropy_with_logits(t.ones(3), t.ones(3), weight=w),
            lambda F, t, w: F.binary_cross_entropy_with_logits(t.ones(3), t.ones(3), pos_weight=w),
            lambda F, t, w: F.multi_margin_loss(t.ones(2, 3), t.ones(2).long(), weight=w),
            lambda F, t, w: F.soft_margin_loss(t.ones(3), w),
        )
    ],
    "factors that are larger than the loss": [
        lambda t, s=s, name=name: t.nn.functional.binary_cross_entropy_with_logits(t.ones(s), t.ones(s), **{name: t.ones(3)})
        for s in ((), (1,))
        for name in ("weight", "pos_weight")
    ],
    "bytes as classes of many places": [
        lambda t, f=f, s=s: getattr(t.nn.functional, f)(t.ones(2, 3, *s), t.ones(2, *s).byte())
        for f in ("nll_loss", "cross_entropy")
        for s in ((2,), (2, 2))
    ],
    "unpooling by dimensions": [
        lambda t, n=n, s=s: getattr(t.nn.functional, f"max_unpool{n}d")(t.ones(s), t.zeros(s).long(), 2)
        for n, s in (
            (1, (3,)), (1, (1, 1, 1, 2)), (2, (3,)), (2, (2, 2)), (2, (1, 1, 1, 2, 2)), (3, (1, 3)), (3, (1, 2, 2)),
            (3, (1, 1, 1, 1, 2, 2)),
        )
    ],
    "ranks along what is not there": [
        lambda t: t.kthvalue(t.ones(()), 1, dim=5),
        lambda t: t.kthvalue(t.ones(2, 0), 1),
        lambda t: t.kthvalue(t.ones(2, 0), 5),
        lambda t: t.kthvalue(t.ones(0, 2), 5),
    ],
    "losses of what is no tensor": [
        lambda t, f=f, x=x: (
            getattr(t.nn.functional, f)(t.ones(2, 3), x),
            getattr(t.nn.functional, f)(x, t.ones(2, 3)),
        )
        for f in (
            "l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
            "cross_entropy", "nll_loss",
        )
        for x in ("x", None, 1.0, [1.0], np.ones((2, 3)))
    ],
    "layers of what is no tensor": [
        lambda t, x=x, call=call: call(t.nn.functional, x, t)
        for x in ("x", None, [1.0])
        for call in (
            lambda F, x, t: F.glu(x), lambda F, x, t: F.group_norm(x, 2), lambda F, x, t: F.interpolate(x, scale_factor=2),
            lambda F, x, t: F.adaptive_avg_pool2d(x, 2), lambda F, x, t: F.adaptive_avg_pool3d(x, 2),
            lambda F, x, t: F.embedding(x, t.ones(2, 2)),
        )
    ],
    "integers and shapes, both wrong": [
        lambda t: t.nn.functional.kl_div(t.ones(4, 3), t.ones(4).long()),
        lambda t: t.nn.functional.layer_norm(t.ones(2, 4).long(), (4,), t.ones(4)),
        lambda t: t.nn.functional.group_norm(t.ones(2, 4).long(), 2, t.ones(4)),
        lambda t: t.nn.functional.embedding_bag(t.ones(2, 2).bool(), t.ones(4, 3)),
        lambda t: t.nn.functional.embedding_bag(t.ones(2, 2).cfloat(), t.ones(4, 3)),
    ],
    "shapes that do not go together": [
        lambda t: t.nn.functional.cosine_similarity(t.ones(3, 4), t.ones(3, 2)),
        lambda t: t.nn.functional.pairwise_distance(t.ones(3, 4), t.ones(3, 2)),
        lambda t: t.nn.functional.scaled_dot_product_attention(*(t.ones(2, 3, 4),) * 3, attn_mask=t.zeros(2, 2)),
        lambda t: t.nn.functional.scaled_dot_product_attention(t.ones(2, 4, 3, 4), *(t.ones(2, 2, 3, 4),) * 2),
    ],
    "channels to drop of what has none": [
        lambda t, n=n, s=s: getattr(t.nn.functional, f"dropout{n}d")(t.ones(s), 0.5)
        for n, s in ((2, ()), (2, (3,)), (3, ()))
    ],
    "rows to add past the end": [
        lambda t, s=s, d=d, i=i: t.zeros(s).index_add(d, t.tensor([i]), t.ones([1 if k == d else n for k, n in enumerate(s)]))
        for s, d in (((3,), 0), ((3, 2), 0), ((3, 2), 1), ((3, 2, 2), 0), ((3, 2, 2), 1), ((3, 2, 2), 2), ((3, 2, 2, 2), 1))
        for i in (5, -1)
    ],
    "gradients of what is no tensor": [lambda t: t.autograd.grad("a", t.ones(1)), lambda t: t.autograd.grad(["a"], t.ones(1))],
    "a rank that expand lacks": [
        lambda t, kind=kind: t.zeros(2, 3, dtype=getattr(t, kind)).expand(2)
        for kind in ("float32", "int64", "bool", "bfloat16", "uint8", "complex64", "uint16", "float8_e4m3fn")
    ],
    "rows of a kind that is no index": [
        lambda t, kind=kind: t.nn.functional.embedding(t.zeros(2, dtype=getattr(t, kind)), t.ones(3, 2))
        for kind in ("bool", "uint16", "float32", "complex64", "uint8")
    ],
    "indices that a few numbers at hand make": [
        lambda t: t.nn.functional.cross_entropy(t.ones(3, 3), t.tensor([0, 1, 2]) - 1),
        lambda t: t.nn.functional.nll_loss(t.ones(3, 3), (t.tensor([0, 1, 2], dtype=t.int32) * 2).long()),
        lambda t: t.nn.functional.embedding(t.tensor([[1, 2], [3, 4]]).t() + 4, t.ones(8, 2)),
        lambda t: t.ones(3, 3).gather(1, (t.tensor([0, 2]) + 1)[:, None]),
        lambda t: t.ones(3)[t.tensor([0, 1]) + 2],
        lambda t: t.nn.functional.one_hot(t.tensor([0, 1]) - 1),
    ],
    "indices that numbers alone make": [
        lambda t: t.nn.functional.embedding(t.arange(9), t.ones(8, 2)),
        lambda t: t.nn.functional.embedding(t.arange(9)[None].expand(3, -1), t.ones(8, 2)),
        lambda t: t.nn.functional.embedding(t.arange(16).view(4, 4).t()[2], t.ones(8, 2)),
        lambda t: t.nn.functional.embedding(t.zeros(2, dtype=t.long) - 1, t.ones(8, 2)),
        lambda t: t.nn.functional.cross_entropy(t.ones(10, 3), t.full((10,), 3)),
        lambda t: t.ones(10, 3).gather(1, t.full((10, 1), 3)),
        lambda t: t.ones(3)[t.arange(4)],
        lambda t: t.zeros(3).scatter_(0, t.arange(4), t.ones(4)),
        lambda t: t.nn.functional.ctc_loss(t.zeros(5, 2, 4), t.ones(2, 3).long(), t.full((2,), 6), t.full((2,), 3)),
    ],
    "sequences into memory that its elements share": [
        lambda t, make=make: make(t, t.zeros(1).expand(5))
        for make in (
            lambda t, out: t.arange(5, out=out),
            lambda t, out: t.range(0, 4, out=out),
            lambda t, out: t.linspace(0, 1, 5, out=out),
            lambda t, out: t.logspace(0, 1, 5, out=out),
        )
    ],
    "sequences of too many or too few numbers": [
        lambda t: t.arange(1, 2, 3, 4),
        lambda t: t.arange(0, 3, 1, t.float32),
        lambda t: t.empty(2).random_(None, 2),
    ],
    "quantiles of nothing": [
        lambda t, f=f, shape=shape, dim=dim: getattr(t, f)(t.zeros(shape), 0.5, dim)
        for f in ("quantile", "nanquantile")
        for shape, dim in (((0, 2, 3), 1), ((0, 2, 3), 0), ((2, 0), 0), ((0,), None), ((2, 0, 3), -1))
    ],
    "what to subtract from the count, said twice": [
        lambda t, f=f: getattr(t, f)(t.ones(3), unbiased=True, correction=1) for f in ("std", "var", "std_mean", "var_mean")
    ],
    "a vector for lu_solve": [
        lambda t, left=left: t.linalg.lu_solve(*t.linalg.lu_factor(t.eye(2)), t.ones(2), left=left) for left in (True, False)
    ],
    "numbers of no letter": [
        lambda t: t.einsum(t.ones(2, 3), [0, 60]),
        lambda t: t.einsum(t.ones(2, 3), [0, -1]),
        lambda t: t.einsum(t.ones(2, 3), [0, 1], [52]),
    ],
    "windows of nothing": [
        lambda t, s=s: t.nn.functional.unfold(t.ones(s), (2, 3)) for s in ((3, 0, 3, 4), (0, 3, 4), (2, 3, 4, 0))
    ]
    + [lambda t, s=s: t.nn.functional.fold(t.ones(s), (4, 5), (2, 3)) for s in ((2, 0, 9), (0, 9), (2, 6, 0))],
    "windows of no size": [
        lambda t, name=name, n=n, given=given: getattr(t.nn.functional, f"{name}_pool{n}d")(t.ones(1, 2, *(4,) * n), *given)
        for name in ("max", "avg")
        for n in (1, 2, 3)
        for given in (((),), ([],), (2, 2, ()), ((2,) * (n + 1),))
    ]
    + [
        lambda t, n=n, given=given: getattr(t.nn.functional, f"fractional_max_pool{n}d")(t.ones(1, 2, *(7,) * n), *given)
        for n in (2, 3)
        for given in (((), 3), ((1,), 3), (2, (3,)), ((2,) * (n + 1), 3))
    ],
    "convolutions of nothing": [
        lambda t, name=name, s=s, w=w, p=p: getattr(t.nn.functional, name)(t.ones(s), t.ones(w), padding=p)
        for name, s, w, p in (
            ("conv1d", (2, 4, 0), (3, 4, 2), 1), ("conv2d", (2, 4, 0, 5), (3, 4, 2, 2), 1), ("conv2d", (4, 0, 5), (3, 4, 2, 2), 1),
            ("conv3d", (2, 4, 5, 0, 5), (3, 4, 2, 2, 2), 1), ("conv_transpose2d", (2, 4, 0, 5), (4, 3, 2, 2), 0),
        )
    ],
    "unpooling to less than nothing": [
        lambda t, n=n: getattr(t.nn.functional, f"max_unpool{n}d")(t.ones(1, 2, *(2,) * n), t.zeros(1, 2, *(2,) * n).long(), 2, 1, 3)
        for n in (1, 2, 3)
    ],
    "bags without ends": [
        lambda t: t.nn.EmbeddingBag(5, 2, include_last_offset=True)(t.tensor([1, 2]), t.tensor([], dtype=t.int64))
    ],
    "indices of pools that are written to": [
        lambda t, name=name, n=n: indices_written(t, f"{name}max_pool{n}d") for name in ("", "adaptive_") for n in (2, 3)
    ],
    "running statistics of other channels": [
        lambda t, s=s: t.nn.InstanceNorm1d(4, track_running_stats=True)(t.ones(s)) for s in ((2, 3), (3, 2, 3))
    ],
    "points of another rank": [
        lambda t, x=x, g=g: t.nn.functional.grid_sample(t.ones(x), t.zeros(g), align_corners=False)
        for x, g in (((1, 1, 2, 2), (1, 1, 2)), ((1, 1, 2, 2, 2), (1, 1, 1, 3)), ((1, 1, 2), (1, 1, 1)))
    ]
    + [lambda t: t.nn.functional.affine_grid(t.ones(1, 2, 3), (2, 1, 2, 2), align_corners=False)],
    "resizing of another rank": [
        lambda t, s=s, mode=mode: t.nn.functional.interpolate(t.ones(s), size=2, mode=mode)
        for s in ((1, 2, 4), (1, 2, 3, 3, 3))
        for mode in ("bicubic", "bilinear")
    ],
    "reflections that are too long": [
        lambda t, pad=pad: t.nn.functional.pad(t.ones(1, 2, *(3,) * (len(pad) // 2)), pad, "reflect")
        for pad in ((3, 0), (0, 0, 0, 3), (1, 1, 3, 1), (1, 1, 1, 1, 3, 0))
    ]
    + [lambda t: t.nn.functional.pad(t.ones(1, 2, 3, 4), (1, 1), "other")],
    "no classes": [lambda t, n=n: t.nn.functional.one_hot(t.tensor([1, 2]), n) for n in (0, -2)],
    "labels of one position": [lambda t: t.nn.functional.ctc_loss(t.zeros(5), t.tensor([1]), [5], [1])],
    "a slope below zero, in place": [
        lambda t: t.nn.functional.rrelu_(t.ones(2, requires_grad=True).clone(), -5.0, 1.0).sum().backward()
    ],
    "masks of another dtype": [
        lambda t, kind=kind, name=name, w=w: t.nn.MultiheadAttention(4, 2)(
            *(t.ones(2, 1, 4),) * 3, need_weights=w, **{name: t.zeros((2, 2) if name == "attn_mask" else (1, 2), dtype=getattr(t, kind))}
        )
        for kind in ("float64", "float16")
        for name in ("attn_mask", "key_padding_mask")
        for w in (True, False)
    ],
    "keys and values from before": [
        lambda t, bias=bias, given=given: attended(t, bias, given)
        for bias, given in (
            (True, {"static_k": (4, 3, 2)}), (True, {"static_v": (4, 3, 2)}), (False, {"static_k": (3, 3, 2)}), (False, {"static_v": (4, 3, 1)}),
        )
    ],
    "padding by dimensions": [
        lambda t, name=name, n=n: getattr(t.ops.aten, f"{name}_pad{n}d")(t.ones(2, 2, 3, 4, 5, 6)[(0,) * (5 - n - 3)], [1, 1] * n)
        for name in ("reflection", "replication")
        for n in (1, 2)
    ],
    "bins that are no whole number": [lambda t: t.histogram(t.ones(3), 4.0)],
    "ends of a histogram": [
        lambda t, n=n, ends=ends: t.histc(t.ones(n), 4, *ends)
        for n, ends in (
            (3, (0, -1)), (3, (2, 1)), (3, (0, INF)), (3, (NAN, 1)), (0, (2, 1)), (0, (0, INF)), (3, (1, -INF)), (3, (5.5, 1)),
        )
    ],
    "windows and frequencies of other dtypes": [
        lambda t: t.bartlett_window(3, dtype=t.complex64),
        lambda t: t.kaiser_window(3, dtype=t.complex128),
        lambda t: t.hann_window(True),
        lambda t: t.fft.fftfreq(3.0),
        lambda t: t.fft.rfftfreq(True),
        lambda t: t.fft.fftfreq(3, 1j),
        lambda t: t.fft.fftfreq(3, dtype="float32"),
        lambda t: t.fft.fftfreq(3, out=t.empty(0), dtype=t.float64),
    ],
    "spaced numbers of a dtype without": [
        lambda t, f=f, ends=ends, d=d, n=n: getattr(t, f)(*ends, n, dtype=getattr(t, d))
        for f in ("linspace", "logspace")
        for ends in ((0, 1), (NAN, 1), (0, 300))
        for d in ("bool", "int32", "uint8")
        for n in (0, 1, 3)
    ],
    "padding of an unknown mode": [lambda t, n=n: t.stft(t.ones(8), n, window=t.ones(n), pad_mode="edge", return_complex=True) for n in (4, 20)],
    "a number and a tensor as bounds": [
        lambda t: t.clamp(t.ones(3), 0, t.ones(3)),
        lambda t: t.clamp(t.ones(3), t.ones(3), 2.0),
        lambda t: t.clamp(t.ones(3), t.ones(2, 1), 2),
    ],
    "a source of no dimension": [
        lambda t, d=d: t.zeros(2, 3).scatter(0, t.tensor([[0, 1]]), t.tensor(3.0, dtype=getattr(t, d)))
        for d in ("float32", "float64", "int64")
    ],
    "a dimension that no number has": [lambda t, dim=dim: t.mode(t.tensor(1.0), dim) for dim in (1, -2)],
    "what has no shape": [lambda t: t.is_same_size(t.ones(2), 5), lambda t: t.ones(2).is_same_size(5)],
    "what is no number, in a dtype": [
        lambda t, x=x, d=d: t.tensor(x, dtype=getattr(t, d))
        for x in (None, [None], {1: 2}, {1}, [{}], object(), "a", ["a"])
        for d in ("int32", "float64")
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    for program in REFUSED[name]:
        both(program)
