"""Gradients through `__torch_dispatch__`: of wrapper subclasses, and of plain tensors where a dispatch mode looks; in both libraries."""

import contextlib
import importlib
import inspect

import pytest

import jtorch
from jtorch.dispatch.outer_rules import RULES
from tests.oracle import torch

BOTH = jtorch, torch
pytestmark = pytest.mark.filterwarnings("ignore")


def wrapper(t, log):
    """A class that computes with the tensor inside of it and writes down which operators it was asked for."""
    tree = importlib.import_module(f"{t.__name__}.utils._pytree")

    class Wrapped(t.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = t.Tensor._make_wrapper_subclass(cls, inner.size(), strides=inner.stride(), dtype=inner.dtype)
            made.elem = inner
            return made

        __torch_function__ = t._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            log.append(str(func).removeprefix("aten.").removesuffix(".default"))
            args_, kwargs_ = tree.tree_map(lambda x: x.elem if isinstance(x, cls) else x, (args, kwargs or {}))
            found = func(*args_, **kwargs_)
            if func.__name__.split(".")[0].endswith("_"):
                return args[0]
            return tree.tree_map(lambda x: cls(x) if isinstance(x, t.Tensor) else x, found)

    return Wrapped


def plain(x):
    """A tensor's numbers, whatever its class; other things as they are."""
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    inner = getattr(x, "elem", x)
    return inner.tolist() if hasattr(inner, "tolist") else inner


def check(mine, its):
    assert type(mine) is type(its) or isinstance(mine, (int, float)) and isinstance(its, (int, float)), (mine, its)
    if isinstance(mine, list):
        assert len(mine) == len(its)
        for a, b in zip(mine, its):
            check(a, b)
    elif isinstance(mine, float):
        assert mine == pytest.approx(its, rel=2e-4, abs=2e-4, nan_ok=True)
    else:
        assert mine == its


# x, y of 3 by 4; z of 2, 3, 4. F is torch.nn.functional.
ELEMENTS = [
    "x * y", "x + y * 2", "x - y", "1 - x", "x / (y + 3)", "x ** 3", "x.abs().add(1) ** y", "x.relu() ** y", "0 ** y", "2.0 ** y", "(-2.0) ** y", "x * y[0]", "-x", "x.exp()", "x.abs().add(1).log()",
    "x.abs().add(1).log2()", "x.abs().log1p()", "x.expm1()", "x.tanh()", "x.sigmoid()", "x.relu()", "F.gelu(x)", "F.gelu(x, approximate='tanh')", "F.silu(x)",
    "F.mish(x)", "F.leaky_relu(x)", "F.elu(x)", "F.hardtanh(x)", "F.softplus(x)", "F.logsigmoid(x)", "x.sin() + x.cos() * x.tan()", "x.sinh() + x.cosh()",
    "x.abs().add(1).sqrt()", "x.abs().add(1).rsqrt()", "x.abs().add(1).reciprocal()", "x.clamp(-0.5, 0.5)", "x.clamp_min(y)", "torch.where(x > 0, x, y)",
    "x.masked_fill(x > 0, 2.0)", "torch.maximum(x, y)", "torch.minimum(x, y)", "torch.atan2(x, y)", "torch.lerp(x, y, 0.3)", "torch.addcmul(x, x, y, value=2)",
    "torch.addcdiv(x, x, y.abs().add(1))", "x.erf()", "x.floor() + x.round() + x.sign()", "x.double() * 2", "x * x.detach()", "F.glu(x)",
]  # fmt: skip
LOSSES = [
    "F.cross_entropy(x, i)", "F.nll_loss(x.log_softmax(1), i, reduction='sum')", "F.cross_entropy(x, i, label_smoothing=0.1)", "F.mse_loss(x, y)",
    "F.mse_loss(x, y, reduction='none')", "F.mse_loss(x, y, weight=x.detach().abs())", "F.l1_loss(x, y)", "F.smooth_l1_loss(x, y, beta=0.5)", "F.huber_loss(x, y, delta=0.5)",
    "F.binary_cross_entropy_with_logits(x, y.sigmoid(), pos_weight=y.detach().abs()[0])", "F.binary_cross_entropy(x.sigmoid(), y.sigmoid())",
    "F.kl_div(x.log_softmax(1), y.softmax(1), reduction='batchmean')", "F.kl_div(x.log_softmax(1), y.log_softmax(1), log_target=True)",
    "F.margin_ranking_loss(x, y, x.detach().sign())", "F.triplet_margin_loss(x, y, x + y)", "F.poisson_nll_loss(x, y.abs())",
]  # fmt: skip
MOVES = [
    "x @ y.t()", "F.linear(x, y).pow(2)", "F.linear(x, y, y[:, 0]).pow(2)", "F.linear(z, y, y[:, 0]).pow(2)", "z @ z.transpose(1, 2)", "x @ y[0]", "x[0] @ y[0]",
    "torch.addmm(y[:, :3], x, y.t())", "torch.baddbmm(z, z @ z.mT, z)", "torch.addmv(x[:, 0], x, y[0])", "torch.outer(x[0], y[0])", "torch.einsum('ij,kj->ik', x, y)",
    "x.view(2, 6).pow(2)", "x.t().reshape(2, 6).pow(2)", "z.permute(2, 0, 1).pow(2)", "x.T * 2", "x.unsqueeze(1) * y", "x[:, :1].squeeze(1) * 2", "x[:1].squeeze() * 2",
    "x[:1].expand(3, 4) * y", "x[1].pow(2)", "x[1:, ::2].pow(2)", "x[i].pow(2)", "x.index_select(1, i).pow(2)", "x.gather(1, i[:, None]).pow(2)", "z.flatten(1).pow(2)",
    "sum((a * (k + 1)).sum() for k, a in enumerate(x.split(3, 1)))", "sum((a * (k + 1)).sum() for k, a in enumerate(x.unbind(0)))",
    "x.split([1, 3], 1)[1].pow(2)", "torch.cat([x, y * 2], 1).pow(2)", "torch.stack([x, y * 2], 1).pow(2)", "x.flip(0) * y", "x.roll(1, 0) * y", "x.repeat(2, 1) * 2",
    "x.tril() * y + x.triu(1)", "F.pad(x, (1, 1)).pow(2)", "x.diagonal().pow(2)", "F.embedding(i, x).pow(2)", "x.clone().mul_(2).add_(y).pow(2)",
    "x.scatter_add(1, i[:, None], y[:, :1])",
    "x.clone().cumsum_(1) * y",
    "(x.tanh() * 0.5).erfinv_()",
    "torch.view_as_complex(x[:, :2]).real.pow(2)",
    "x.clone().zero_() * y", "x.clone().fill_(2) * y", "(x * 1).fill_(y[0, 0]) * y", "(x * 1).copy_(y) * y", "(x * 1)[1].zero_() * y[0]",
    "torch.view_as_real(torch.view_as_complex(x[:, :2])).mT.mul(2)",
    "x.clone().index_fill_(1, i, 0.0) * y",
]  # fmt: skip
REDUCTIONS = [
    "x.sum(1).pow(2)", "x.mean(0, keepdim=True).pow(2)", "x.var(1)", "x.std().pow(2)", "x.amax(1)", "x.amin((0, 1))", "x.max(1)[0].pow(2)", "x.min()", "x.median(1)[0]",
    "x.logsumexp(1)", "x.norm()", "x.norm(dim=1)", "x.norm(1)", "x.norm(3, 1)", "x.cumsum(1) * y", "x.topk(2, 1)[0]", "x.sort(1)[0] * y", "x.softmax(1) * y",
    "x.log_softmax(1) * y", "x.abs().add(1).prod()",
]  # fmt: skip
LAYERS = [
    "F.layer_norm(x, (4,), y[0], y[1]).pow(2)", "F.group_norm(z, 3).pow(3)", "F.batch_norm(x, None, None, training=True).pow(3)", "F.rms_norm(x, (4,)).pow(3)",
    "F.conv2d(z.view(1, 2, 3, 4), z.view(1, 2, 3, 4)[:, :, :2, :2], padding=1).pow(2)", "F.scaled_dot_product_attention(z, z, z)", "F.max_pool2d(z, 2)", "F.avg_pool2d(z, 2).pow(2)",
    "F.adaptive_avg_pool2d(z, 1).pow(2)", "F.interpolate(z[None], scale_factor=2).pow(2)", "F.normalize(x)", "F.cosine_similarity(x, y)",
    "F.dropout(x, 0.5).pow(2)", "F.dropout2d(z[None], 0.5).pow(2)",
]  # fmt: skip


def tensors(t, make):
    t.manual_seed(0)
    x, y, z = (make(t.randn(*shape)).requires_grad_() for shape in ((3, 4), (3, 4), (2, 3, 4)))
    return {"torch": t, "F": t.nn.functional, "x": x, "y": y, "z": z, "i": t.tensor([0, 2, 1])}


def gradients(t, code, make=None, second=False):
    """The value, the classes and the gradients of a program; what the class was asked for."""
    log = []
    cls = wrapper(t, log)
    have = tensors(t, make(cls) if make else cls)
    out = eval(code, have)
    loss = out.sum() if out.ndim else out
    leaves = [have[n] for n in "xyz"]
    log.append("backward")
    if second:
        first = t.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
        loss = sum((g * g).sum() for g in first if g is not None)
    loss.backward()
    return [
        plain(out),
        type(out).__name__,
        plain([x.grad for x in leaves]),
        [type(x.grad).__name__ for x in leaves],
    ], log


@pytest.mark.parametrize("code", ELEMENTS + LOSSES + MOVES + REDUCTIONS + LAYERS)
def test_gradients(code):
    check(gradients(jtorch, code)[0], gradients(torch, code)[0])


def mixed(cls):
    """The first tensor is plain, the others are not."""
    made = []
    return lambda inner: made.append(inner) or (inner if len(made) == 1 else cls(inner))


@pytest.mark.parametrize(
    "code", [c for c in ELEMENTS[::3] + LOSSES[::2] + MOVES[::2] + REDUCTIONS[::3] + LAYERS[:8:2] if "dropout" not in c]
)
def test_plain_tensors_among_them(code):
    check(gradients(jtorch, code, mixed)[0], gradients(torch, code, mixed)[0])


# PyTorch refuses some, or says that the second derivative is none where it is zero.
# PyTorch's own answers for such a class are others: the conjugate bit of the tensor inside is not that of the class.
_C, _D = "torch.view_as_complex(x[:, :2])", "torch.view_as_complex(y[:, 2:])"
COMPLEX = [
    code.replace("C", _C).replace("D", _D)
    for code in (
        "(C * 2j).real", "(C / 2j).imag", "(2j / C).imag", "(C / D).real", "C.clone().div_(D).imag", "torch.add(C, D, alpha=2j).real",
        "torch.sub(C, D, alpha=1j).imag", "torch.rsub(C, D, alpha=1j).imag", "torch.addcmul(C, C, D, value=2 - 1j).imag",
        "torch.addcdiv(C, C, D, value=2 - 1j).imag", "(C ** D).real", "(2j ** C).real", "(2.0 ** C).imag", "(C ** 1.5j).imag",
        "(C ** 2).real", "C.tanh().imag", "C.sigmoid().real", "C.abs()", "C.sgn().real", "C.var()", "C.std()", "torch.complex(x, y).abs()",
        "torch.addmm(torch.outer(C, D), torch.outer(C, C), torch.outer(D, C), beta=1j, alpha=2j).real",
        "torch.addmv(C, torch.outer(C, D), D, alpha=2j).imag", "C.log2().real", "C.rsqrt().imag", "torch.dot(C, D).imag",
    )
]  # fmt: skip
SECOND = ["x * y", "x / (y + 3)", "x ** 3", "x.tanh()", "F.gelu(x)", "x.sigmoid() * y", "F.linear(x, y, y[:, 0]).pow(2)", "z @ z.transpose(1, 2)", "x[1].pow(3)",
          "F.layer_norm(x, (4,), y[0], y[1]).pow(2)", "x.softmax(1) * y", "x.log_softmax(1) * y", "F.cross_entropy(x, i)", "F.embedding(i, x).pow(3)", "x.norm()",
          "F.conv2d(z.view(1, 2, 3, 4), z.view(1, 2, 3, 4)[:, :, :2, :2], padding=1).pow(2)", "x.logsumexp(1)", "F.mse_loss(x, y)", "torch.cat([x, y * 2], 1).pow(3)"]  # fmt: skip


@pytest.mark.parametrize("make", [None, mixed], ids=["all", "some"])
@pytest.mark.parametrize("code", SECOND)
def test_second_gradients(code, make):
    check(gradients(jtorch, code, make, True)[0], gradients(torch, code, make, True)[0])


# Where what the class is asked for is the same to the last operator, but for copies of gradients that nobody else holds.
SAME = ["x * y", "x.exp()", "x.tanh()", "x.sigmoid()", "x.relu()", "F.gelu(x)", "F.silu(x)", "x ** 3", "x @ y.t()", "F.linear(x, y).pow(2)", "F.linear(x, y, y[:, 0]).pow(2)",
        "x.view(2, 6).pow(2)", "x.unsqueeze(1) * y", "x[1].pow(2)", "x[1:, ::2].pow(2)", "x.softmax(1) * y", "x.log_softmax(1) * y", "x.mean(0, keepdim=True).pow(2)",
        "F.mse_loss(x, y)", "F.embedding(i, x).pow(2)", "x.logsumexp(1)",
        "torch.view_as_complex(x[:, :2]).imag.pow(2)", "x.clone().zero_() * y", "x.clone().fill_(2) * y"]  # fmt: skip


@pytest.mark.parametrize("code", SAME)
def test_operators_asked_for(code):
    mine, its = ([n for n in gradients(t, code)[1] if n not in ("detach", "new_empty_strided", "copy_")] for t in BOTH)
    assert mine == its


@pytest.mark.parametrize("code", COMPLEX)
def test_gradients_of_complex_numbers(code):
    have = tensors(torch, lambda x: x)
    out = eval(code, have)
    out.sum().backward()
    want = [plain(out), plain([have[n].grad for n in "xyz"])]
    found, classes = gradients(jtorch, code)[0][::2], gradients(jtorch, code)[0][3]
    check(found, want)
    assert set(classes) <= {"Wrapped", "NoneType"}
    check(seen_by_a_mode(jtorch, code, True)[0][0], want[1])


def seen_by_a_mode(t, code, forward):
    home = importlib.import_module(f"{t.__name__}.utils._python_dispatch")
    log = []

    class Log(home.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            log.append(str(func))
            return func(*args, **(kwargs or {}))

    have = tensors(t, lambda x: x)
    with Log() if forward else contextlib.nullcontext():
        out = eval(code, have)
        loss = out.sum() if out.ndim else out
    log.clear()
    with Log():
        loss.backward()
    grads = [have[n].grad for n in "xyz"]
    return [plain(grads), [None if g is None else list(g.stride()) for g in grads]], log


@pytest.mark.parametrize("forward", [True, False], ids=["forward too", "backward only"])
@pytest.mark.parametrize("code", ELEMENTS[::4] + MOVES[::4] + REDUCTIONS[::4] + LAYERS[:6:2] + LOSSES[::5])
def test_gradients_in_a_mode(code, forward):
    check(seen_by_a_mode(jtorch, code, forward)[0], seen_by_a_mode(torch, code, forward)[0])


@pytest.mark.parametrize(
    "code",
    ["x * y", "x ** 3", "F.gelu(x)", "F.linear(x, y, y[:, 0]).pow(2)", "x @ y.t()", "x.exp() * y", "x.t() * 2.0"],
)
def test_operators_in_a_mode(code):
    mine, its = (
        [n for n in seen_by_a_mode(t, code, True)[1] if "detach" not in n and "copy_" not in n and "empty" not in n]
        for t in BOTH
    )
    assert mine == its


# --- programs -----------------------------------------------------------------------------------------------------------


def a_layer(t, cls, log):
    t.manual_seed(0)
    layer = t.nn.Linear(4, 3)
    layer.weight = t.nn.Parameter(cls(layer.weight.detach()))
    optimizer = t.optim.SGD(layer.parameters(), lr=0.01, momentum=0.9, weight_decay=0.1)
    seen = [
        type(layer.weight).__name__,
        isinstance(layer.weight, t.nn.Parameter),
        [n for n, _ in layer.named_parameters()],
    ]
    for _ in range(3):
        optimizer.zero_grad()
        loss = layer(t.arange(8.0).view(2, 4)).pow(2).mean()
        loss.backward()
        optimizer.step()
        seen.append(loss)
    return [*seen, layer.weight, type(layer.weight.grad).__name__]


def adam(t, cls, log):
    w, v = cls(t.ones(3)).requires_grad_(), t.ones(3).requires_grad_()
    optimizer = t.optim.Adam([w, v], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (w * w * v).sum().backward()
        optimizer.step()
    return w, v


def a_network(t, cls, log):
    t.manual_seed(0)
    model = t.nn.Sequential(t.nn.Linear(4, 8), t.nn.LayerNorm(8), t.nn.GELU(), t.nn.Linear(8, 3))
    loss = t.nn.functional.cross_entropy(model(cls(t.randn(5, 4))), t.tensor([0, 1, 2, 0, 1]))
    loss.backward()
    return loss, [p.grad for p in model.parameters()], [type(p.grad).__name__ for p in model.parameters()]


def convolutions(t, cls, log):
    t.manual_seed(0)
    model = t.nn.Sequential(t.nn.Conv2d(1, 3, 3), t.nn.ReLU(), t.nn.MaxPool2d(2), t.nn.Flatten(), t.nn.Linear(12, 2))
    loss = model(cls(t.randn(2, 1, 6, 6))).pow(2).mean()
    loss.backward()
    return loss, [p.grad for p in model.parameters()]


def attention(t, cls, log):
    t.manual_seed(0)
    layer, x = t.nn.MultiheadAttention(8, 2, batch_first=True), cls(t.randn(2, 3, 8)).requires_grad_()
    out, _ = layer(x, x, x, need_weights=False)
    out.pow(2).sum().backward()
    return out, x.grad, [p.grad for p in layer.parameters()]


def hooks(t, cls, log):
    w, seen = cls(t.ones(3)).requires_grad_(), []
    w.register_hook(lambda g: seen.append(type(g).__name__) or g * 2)
    w.register_post_accumulate_grad_hook(lambda p: seen.append(type(p.grad).__name__))
    y = w * 3
    y.retain_grad()
    y.register_hook(lambda g: seen.append(type(g).__name__))
    y.sum().backward()
    return seen, w.grad, y.grad, y.is_leaf, y.grad_fn.name()


def a_function(t, cls, log):
    class Product(t.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * b, g * a

    w, v = cls(t.ones(3) * 2).requires_grad_(), t.ones(3).requires_grad_()
    Product.apply(w, v).sum().backward()
    return w.grad, type(w.grad).__name__, v.grad, type(v.grad).__name__


def accumulated(t, cls, log):
    w = cls(t.ones(3)).requires_grad_()
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    first, w.grad = w.grad, None
    (w * 2).backward(t.arange(3.0))
    return first, w.grad, t.autograd.grad((w * 3).sum(), w)


def checkpointed(t, cls, log):
    w = cls(t.ones(3)).requires_grad_()
    home = importlib.import_module(f"{t.__name__}.utils.checkpoint")
    home.checkpoint(lambda a: (a * a).exp(), w, use_reentrant=False).sum().backward()
    return (w.grad,)


def saved_with_hooks(t, cls, log):
    w, v, seen = cls(t.ones(3)).requires_grad_(), t.ones(3, requires_grad=True), []

    def pack(x):
        seen.append(("pack", type(x).__name__, list(x.shape)))
        return x

    def unpack(x):
        seen.append(("unpack", type(x).__name__))
        return x

    with t.autograd.graph.saved_tensors_hooks(pack, unpack):
        loss = ((w * v).exp() * w).sum()
    (first,) = t.autograd.grad(loss, w, create_graph=True)
    n = len(seen)
    first.sum().backward()
    return first, w.grad, v.grad, seen[:n]


def off_the_tape(t, cls, log):
    w = cls(t.ones(3)).requires_grad_()
    with t.no_grad():
        y = w * 2
    return y.requires_grad, y.grad_fn is None, (w.detach() * 2).requires_grad


def written_leaf(t, cls, log):
    cls(t.ones(3)).requires_grad_().add_(1)


def written_since(t, cls, log):
    y = cls(t.ones(3)).requires_grad_() * 2
    z = y * y
    y.add_(1)
    z.sum().backward()


def twice(t, cls, log):
    w = cls(t.ones(3)).requires_grad_()
    loss = (w * w).sum()
    loss.backward()
    loss.backward()


def through_a_view(t, cls, log):
    v, w = t.ones(2, requires_grad=True), cls(t.ones(3))
    w[1:] = v * 2
    (w * w).sum().backward()
    x = cls(t.ones(4)).requires_grad_()
    y = x * 2
    y[t.tensor([0, 2])] = x[:2] * 7
    (y * y).sum().backward()
    return v.grad, w.requires_grad, w.grad_fn.name(), x.grad


def through_a_view_of_a_view(t, cls, log):
    x = cls(t.ones(2, 3)).requires_grad_()
    y = x * 1
    inner = y[0][1:]
    inner.add_(inner * 2)
    y.pow(2).sum().backward()
    return y, x.grad


def views_of_what_was_written(t, cls, log):
    found = []
    for write in (lambda y: y.mul_(3), lambda y: y[:2].mul_(5), lambda y: y.t().zero_()):
        x = cls(t.ones(4)).requires_grad_()
        y = x * 1
        tail = y[1:]
        write(y)
        tail.pow(2).sum().backward()
        found += [tail, x.grad]
    return found


def written_view_of_a_leaf(t, cls, log):
    cls(t.ones(4)).requires_grad_()[1:].mul_(2)


def saved_then_written_through_a_view(t, cls, log):
    y = cls(t.ones(4)).requires_grad_() * 1
    z = y * y
    y[0] = 5
    z.sum().backward()


PROGRAMS = [a_layer, adam, a_network, convolutions, attention, hooks, a_function, accumulated, checkpointed, saved_with_hooks, off_the_tape, written_leaf,
            written_since, twice, through_a_view, through_a_view_of_a_view, views_of_what_was_written, written_view_of_a_leaf,
            saved_then_written_through_a_view]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs(program):
    said = []
    for t in BOTH:
        log = []
        try:
            said.append(plain(program(t, wrapper(t, log), log)))
        except RuntimeError as error:
            said.append([type(error).__name__, str(error)])
    check(*said)


def plain_results(t):
    """A class whose operators give plain tensors, and which says nothing of `__torch_function__`."""

    class Outer(t.Tensor):
        @staticmethod
        def __new__(cls, elem):
            return t.Tensor._make_wrapper_subclass(cls, elem.shape, dtype=elem.dtype)

        def __init__(self, elem):
            self.elem = elem

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*[a.elem if isinstance(a, cls) else a for a in args], **(kwargs or {}))

    x = Outer(t.ones(2)).requires_grad_()
    y = x * 2
    y.sum().backward()
    return [type(y).__name__, y.tolist(), type(x.grad).__name__, x.grad.tolist(), t.nn.functional.relu(x).tolist()]


def test_results_keep_the_class_that_they_are_given():
    assert plain_results(jtorch) == plain_results(torch)


def test_what_draws_has_no_gradient_of_its_own():
    w = wrapper(jtorch, [])(jtorch.ones(3)).requires_grad_()
    out = jtorch.nn.functional.alpha_dropout(w, 0.5, training=True)
    with pytest.raises(NotImplementedError, match="through a __torch_dispatch__"):
        out.sum().backward()


def test_rules_read_arguments_of_their_operators():
    for rule in RULES.values():
        given = {*inspect.signature(rule.bound).parameters, "g", "gs", "out", "outs", "specs", "out_specs"}
        assert {n for names in rule.takes.values() for n in names} <= given, rule.name
        assert set(rule.by) <= set(inspect.signature(rule.bound).parameters), rule.name
