"""Each translation against the module that it was made from, run by onnx's own evaluator."""

import pytest

import jtorch as torch
import jtorch.nn.functional as F

pytest.importorskip("onnx")


def _draw(shape, kind="normal"):
    g = torch.Generator().manual_seed(len(shape) + 7)
    if kind == "positive":
        return torch.rand(shape, generator=g) + 0.25
    if kind == "unit":
        return torch.rand(shape, generator=g) * 1.8 - 0.9
    if kind == "int":
        return torch.randint(-5, 6, shape, generator=g)
    if kind == "index":
        return torch.randint(0, 3, shape, generator=g)
    if kind == "bool":
        return torch.rand(shape, generator=g) > 0.5
    return torch.randn(shape, generator=g)


def x(*shape):
    return _draw(shape)


def p(*shape):
    return _draw(shape, "positive")


def u(*shape):
    return _draw(shape, "unit")


def i(*shape):
    return _draw(shape, "int")


def at(*shape):
    return _draw(shape, "index")


def b(*shape):
    return _draw(shape, "bool")


SIGNED = (
    "relu sigmoid tanh exp abs neg ceil floor sin cos tan asin acos atan sinh cosh asinh atanh erf sign round square expm1 exp2 erfc trunc frac isnan isinf "
    "isfinite nan_to_num positive clone detach"
).split()  # fmt: skip
POSITIVE = "sqrt log rsqrt log2 log10 log1p reciprocal".split()
ACTIVATIONS = (
    "relu relu6 elu selu celu leaky_relu gelu silu mish hardswish hardsigmoid hardtanh softplus softsign tanhshrink softshrink hardshrink logsigmoid "
    "rrelu"
).split()  # fmt: skip


def each(home, names):
    """A function of one tensor whose results are those of all these functions."""
    return lambda x: tuple(getattr(home, n)(x) for n in names)


ROWS = [
    ("functions", each(torch, SIGNED), [u(2, 3)]),
    ("functions of positive numbers", each(torch, POSITIVE), [p(2, 3)]),
    ("activations", each(F, ACTIVATIONS), [x(2, 3) * 3]),
    ("acosh, logit", lambda x: (torch.acosh(x + 1), torch.logit(x / 2)), [p(2, 3)]),
    ("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), [x(2, 3)]),
    ("softplus beta", lambda x: F.softplus(x, 2.0, 3.0), [x(2, 3) * 4]),
    ("prelu", F.prelu, [x(2, 3, 4), p(3)]),
    ("threshold", lambda x: F.threshold(x, 0.1, 5.0), [x(2, 3)]),
    ("glu", F.glu, [x(2, 4)]),
    ("clamp", lambda x: x.clamp(-0.5, 0.5), [x(2, 3)]),
    ("clamp min", lambda x: x.clamp(min=0.1), [x(2, 3)]),
    ("clamp of ints", lambda x: x.clamp(max=2), [i(2, 3)]),
    ("dropout", lambda x: F.dropout(x, 0.5, False), [x(2, 3)]),
    ("casts", lambda x: (x.long(), x.to(torch.float64), x > 0, x.bool(), x.half().float(), x.type(torch.int32)), [x(2, 3) * 3]),
    ("add", lambda x, y: x + y, [x(2, 3), x(3)]),
    ("add alpha", lambda x, y: torch.add(x, y, alpha=2), [x(2, 3), x(3)]),
    ("promoted", lambda x, y: (x + y, x * 2, 1 - y, y / 2, y * 0.5, y + 1), [x(2, 3), i(2, 3)]),
    ("rsub", lambda x: 2 - x, [x(2, 3)]),
    ("division", lambda x, y: (x / y, x // 2, y // 2, y % 3, x % 0.7, torch.div(x, y, rounding_mode="trunc")), [x(2, 3), i(2, 3) * 2 + 1]),
    ("fmod", lambda x, y: (torch.fmod(x, 0.7), torch.fmod(y, 3)), [x(2, 3), i(2, 3)]),
    ("powers", lambda x: (x**2, x**0.5, 2**x, torch.pow(x, x)), [p(2, 3)]),
    ("maximum", lambda x, y: (torch.maximum(x, y), torch.minimum(x, y), torch.max(x, y)), [x(2, 3), x(3)]),
    ("compared", lambda x, y: (x > y, x >= y, x < y, x <= y, x == y, x != y, x > 0), [i(2, 3), i(3)]),
    ("logical", lambda a, c: (a & c, a | c, a ^ c, ~a, torch.logical_and(a, c), torch.logical_not(a)), [b(2, 3), b(3)]),
    ("bits", lambda x: (x & 3, x | 1, x ^ 2, ~x), [i(2, 3)]),
    ("where", lambda c, x, y: torch.where(c, x, y), [b(2, 3), x(2, 3), x(3)]),
    ("where number", lambda x: torch.where(x > 0, x, 0.5), [x(2, 3)]),
    ("masked_fill", lambda x, c: x.masked_fill(c, float("-inf")), [x(2, 3), b(2, 3)]),
    ("lerp", lambda x, y: torch.lerp(x, y, 0.3), [x(2, 3), x(3)]),
    ("addcmul", lambda x, y: torch.addcmul(x, y, y, value=0.5), [x(2, 3), x(2, 3)]),
    ("addcdiv", lambda x, y: torch.addcdiv(x, x, y, value=0.5), [x(2, 3), p(2, 3)]),
    ("atan2", torch.atan2, [x(2, 3), x(3)]),
    # reductions
    ("of all", each(torch, "sum mean prod max min argmax argmin std var norm".split()), [x(2, 3, 4)]),
    ("along one", lambda x: tuple(getattr(x, n)(1) for n in "sum mean prod argmax argmin logsumexp cumsum softmax log_softmax".split()), [x(2, 3, 4)]),
    ("sum keepdim", lambda x: x.sum((0, 2), keepdim=True), [x(2, 3, 4)]),
    ("sum of ints", lambda x: x.sum(1), [i(2, 3)]),
    ("mean of bools", lambda c: c.float().mean(-1), [b(2, 3)]),
    ("amax", lambda x: (x.amax((1, 2)), x.amin(-1, keepdim=True)), [x(2, 3, 4)]),
    ("max dim", lambda x: (*x.max(1), *x.min(-1, keepdim=True)), [x(2, 3, 4)]),
    ("values", lambda x: x.max(1).values, [x(2, 3)]),
    ("std dim", lambda x: (x.std(1), x.var(1, unbiased=False), x.var((1, 2), correction=0, keepdim=True)), [x(2, 3, 4)]),
    ("var_mean", lambda x: torch.var_mean(x, 1), [x(2, 3)]),
    ("norms", lambda x: (x.norm(1, 1), x.norm(dim=1), torch.linalg.vector_norm(x, 3, 1), torch.linalg.norm(x, dim=1)), [x(2, 3)]),
    ("normalize", lambda x: F.normalize(x, dim=-1), [x(2, 3)]),
    ("cosine_similarity", lambda x, y: F.cosine_similarity(x, y), [x(2, 3), x(2, 3)]),
    ("pairwise_distance", lambda x, y: F.pairwise_distance(x, y), [x(2, 3), x(2, 3) + 1]),
    ("truth", lambda c: (c.any(), c.all(1), c.any(1, keepdim=True)), [b(2, 3)]),
    ("F.softmax", lambda x: (F.softmax(x, dim=-1), F.softmin(x, dim=1), F.log_softmax(x, -1)), [x(2, 3)]),
    ("topk", lambda x: (*x.topk(2), *x.topk(1, 0, largest=False)), [x(4, 3)]),
    ("sort", lambda x: (*x.sort(), *x.sort(0, descending=True), x.argsort(1)), [x(4, 3)]),
    # shapes
    ("view", lambda x: (x.view(x.size(0), -1), x.reshape(-1, 3), x.view(-1)), [x(2, 4, 3)]),
    ("flatten", lambda x: (x.flatten(1), x.flatten(), x.flatten(1, 2), x.unflatten(1, (2, 2))), [x(2, 4, 3, 2)]),
    ("squeeze", lambda x: (x.squeeze(1), x.squeeze(-1), x.unsqueeze(0), x.unsqueeze(-1), x[:, None], x[..., None]), [x(2, 1, 3, 1)]),
    ("transpose", lambda x: (x.transpose(1, 2), x.permute(2, 0, 1), x.mT, x.movedim(0, -1), torch.swapaxes(x, 0, 1)), [x(2, 3, 4)]),
    ("t", lambda x: (x.t(), x.T), [x(2, 3)]),
    ("expand", lambda x: (x.expand(-1, 4), x.expand(2, -1, 4), x.repeat(1, 2), x.repeat(2, 1, 1), torch.tile(x, (2,))), [x(3, 1)]),
    ("expand_as", lambda x, y: y.expand_as(x), [x(2, 3), x(3)]),
    ("repeat_interleave", lambda x: (x.repeat_interleave(2, 1), torch.repeat_interleave(x, 3, 0)), [x(2, 3)]),
    ("cat", lambda x, y: (torch.cat([x, y]), torch.cat((x, y), -1), torch.stack([x, y]), torch.stack((x, y), -1), torch.hstack((x, y))), [x(2, 3), x(2, 3)]),
    ("split", lambda x: (*x.split(2, 1), *x.chunk(2, 1), *x.split([1, 4], dim=1), *x.unbind(1)), [x(2, 5)]),
    ("picked", lambda x: (x[0], x[:, 1], x[:, 1:], x[..., -1], x[:, ::2], x[:, -2:], x[:, None, 0], x[0, 1], x.select(1, 2), x.narrow(1, 1, 2)), [x(2, 4, 3)]),
    ("by an array", lambda x, k: (x[k], x[:, k], x.index_select(1, k), torch.gather(x, 1, k[None].expand(4, -1))), [x(4, 3), at(2)]),
    ("by two arrays", lambda x, k: (x[k, k], x[torch.arange(2), k]), [x(3, 3, 2), at(2)]),
    ("take_along_dim", lambda x: torch.take_along_dim(x, x.argsort(1), 1), [x(3, 4)]),
    ("scatter", lambda x, k: (x.scatter(1, k, 1.5), x.scatter_add(1, k, x[:, :2]), x.scatter(1, k, x[:, :2])), [x(3, 4), torch.tensor([[0, 2], [1, 3], [3, 0]])]),
    ("index_add", lambda x, k: torch.zeros(3, 3).index_add(0, k, x), [x(2, 3), at(2)]),
    ("flip", lambda x: (x.flip(1), torch.flip(x, (0, 1)), torch.roll(x, 1, 1), torch.roll(x, (1, -1), (0, 1)), torch.roll(x, 2)), [x(2, 3)]),
    ("pad", lambda x: (F.pad(x, (1, 2)), F.pad(x, (1, 0, 2, 1), value=3.0), F.pad(x, (1, 1), "reflect"), F.pad(x, (1, 1), mode="replicate")), [x(2, 3, 4)]),
    ("tril", lambda x: (x.tril(), x.triu(1), torch.diagonal(x)), [x(3, 3)]),
    ("like", lambda x: (torch.zeros_like(x), torch.ones_like(x) * x, torch.full_like(x, 2.5), x.new_zeros(2, 3), x.new_ones((2,)) + x[0, 0], torch.full((2,), 0.5) * x[0, 0]), [x(2, 3)]),
    ("arange", lambda x: x + torch.arange(3), [x(2, 3)]),
    ("one_hot", lambda k: F.one_hot(k, 4), [at(2, 3)]),
    ("nonzero", lambda x: (x > 0).nonzero(), [x(2, 3)]),
    ("pixel_shuffle", lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2)), [x(2, 4, 3, 3)]),
    ("channel_shuffle", lambda x: F.channel_shuffle(x, 2), [x(2, 4, 3, 3)]),
    ("in place", lambda x: x.clone().add_(1).mul_(2).relu_(), [x(2, 3)]),
    ("in place of functions", lambda x: F.relu(x * 1.0, inplace=True) + 1, [x(2, 3)]),
    # products and layers
    ("products", lambda x, y: (x @ y, torch.mm(x, y), torch.addmm(x[:, :2], x, y, alpha=2.0, beta=0.5), torch.einsum("ij,jk->ik", x, y), x @ y[:, 0]), [x(2, 3), x(3, 2)]),
    ("bmm", lambda x, y: (torch.bmm(x, y), torch.baddbmm(x[:, :, :2], x, y, beta=2), torch.matmul(x, y[0])), [x(4, 2, 3), x(4, 3, 2)]),
    ("outer", torch.outer, [x(2), x(3)]),
    ("linear", lambda x, w, c: (F.linear(x, w, c), F.linear(x, w), F.linear(x[None], w, c)), [x(2, 3), x(4, 3), x(4)]),
    ("bilinear", F.bilinear, [x(2, 3), x(2, 4), x(5, 3, 4), x(5)]),
    ("conv1d", lambda x, w: (F.conv1d(x, w), F.conv1d(x, w, padding="same"), F.conv1d(x, w, None, 2, 1, 2)), [x(2, 3, 9), x(4, 3, 3)]),
    ("conv2d", lambda x, w, c: (F.conv2d(x, w, c, 2, 1), F.conv2d(x[0], w)), [x(2, 4, 7, 7), x(6, 4, 3, 3), x(6)]),
    ("conv2d groups", lambda x, w: F.conv2d(x, w, groups=2), [x(2, 4, 6, 6), x(4, 2, 3, 3)]),
    ("conv3d", F.conv3d, [x(1, 2, 4, 4, 4), x(3, 2, 2, 2, 2)]),
    ("conv_transpose2d", lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, 1), [x(2, 3, 4, 4), x(3, 2, 3, 3)]),
    ("max_pool", lambda x: (F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1), F.max_pool1d(x[:, 0], 2)), [x(2, 3, 6, 6)]),
    ("avg_pool", lambda x: (F.avg_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)), [x(2, 3, 6, 6)]),
    ("adaptive", lambda x: (F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (2, 3)), F.adaptive_max_pool2d(x, 1), F.adaptive_avg_pool1d(x[:, 0], 3)), [x(2, 3, 6, 6)]),
    ("batch_norm", lambda x, m, v: (F.batch_norm(x, m, v, v, m), F.batch_norm(x, m, v), F.batch_norm(x, None, None, training=True)), [x(2, 3, 4, 4), x(3), p(3)]),
    ("norm layers", lambda x, w: (F.layer_norm(x, (4,), w, w), F.layer_norm(x, (3, 4)), F.rms_norm(x, (4,), w), F.group_norm(x, 3), F.instance_norm(x)), [x(2, 3, 4), p(4)]),
    ("group_norm", lambda x, w: F.group_norm(x, 2, w, w), [x(2, 4, 3, 3), p(4)]),
    ("embedding", lambda k, w: F.embedding(k, w), [at(2, 3), x(5, 4)]),
    ("interpolate", lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, (6, 6), mode="bilinear"), F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)), [x(2, 3, 4, 4)]),
    ("attention", lambda q, k: (F.scaled_dot_product_attention(q, k, k), F.scaled_dot_product_attention(q, q, q, is_causal=True)), [x(2, 2, 3, 4), x(2, 2, 5, 4)]),
    ("attention masks", lambda q, m: (F.scaled_dot_product_attention(q, q, q, m.float()), F.scaled_dot_product_attention(q, q, q, m | True)), [x(2, 2, 3, 4), b(3, 3)]),
    ("losses", lambda x, y: (F.mse_loss(x, y), F.l1_loss(x, y, reduction="sum"), F.binary_cross_entropy_with_logits(x, y)), [x(2, 3), p(2, 3)]),
    ("cross_entropy", lambda x, k: (F.cross_entropy(x, k), F.nll_loss(F.log_softmax(x, 1), k, reduction="none")), [x(4, 3), at(4)]),
    ("sizes", lambda x: (x.shape[0] * x, x / x.size(0), torch.arange(x.shape[0]), torch.zeros(x.size(0), 2) + x[:, :1]), [x(2, 3)]),
]  # fmt: skip
# Of these the first dimension of the first input changes, and of all that are as long and have as many.
CHANGING = {
    "functions", "add", "promoted", "of all", "std dim", "topk", "sort", "view", "flatten", "squeeze", "transpose", "expand", "expand_as", "repeat_interleave",
    "cat", "split", "picked", "scatter", "flip", "pad", "linear", "conv1d", "conv2d", "max_pool", "adaptive", "batch_norm", "norm layers", "group_norm",
    "embedding", "interpolate", "attention", "losses", "sizes", "pixel_shuffle", "channel_shuffle",
}  # fmt: skip


def written(x, c):
    y, z = x.clone(), torch.zeros_like(x)
    y[0] = 1.0
    y[:, 1:] = x[:, :-1]
    y[c] = 0.5
    y[:, torch.tensor([0, 2])] = x[:, :2] * 2
    z.copy_(x[0])
    return y, z, x.clone().fill_(3.0), x.clone().zero_() + y


ROWS.append(("written", written, [x(2, 3), b(2, 3)]))


class Function(torch.nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *args):
        return self.fn(*args)


def _flat(y):
    return [y] if isinstance(y, torch.Tensor) else [t for v in y for t in _flat(v)]


def check(module, args, program):
    want = _flat(module(*args))
    found = program.call_reference(*args)
    assert len(found) == len(want)
    for a, c in zip(found, want):
        assert a.dtype == c.dtype and a.shape == c.shape
        torch.testing.assert_close(a, c, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("fn, args", [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_value(fn, args):
    module = Function(fn).eval()
    check(module, args, torch.onnx.export(module, tuple(args)))


def _widened(args, rows):
    """The arguments with so many times the rows, and which of them have more."""
    n, dims = args[0].shape[0], args[0].dim()
    changes = [a.dim() == dims and a.shape[0] == n for a in args]
    return [torch.cat([a] * rows) if c else a for a, c in zip(args, changes)], changes


@pytest.mark.parametrize("name", sorted(CHANGING))
def test_other_sizes(name):
    [(fn, args)] = [r[1:] for r in ROWS if r[0] == name]
    module = Function(fn).eval()
    shapes = {"args": tuple({0: "rows"} if c else None for c in _widened(args, 1)[1])}
    program = torch.onnx.export(module, tuple(args), dynamic_shapes=shapes)
    for rows in (1, 3):
        check(module, _widened(args, rows)[0], program)
