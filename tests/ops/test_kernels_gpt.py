"""The transformer's ops against PyTorch, on arrays: values, first and second derivatives, errors."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.ops.derived import derived

jax.config.update("jax_enable_x64", True)

torch = importlib.import_module("torch")
F = torch.nn.functional

from jtorch.core import dtype as dtypes  # noqa: E402
from jtorch.core.device import Device  # noqa: E402
from jtorch.core.spec import Spec  # noqa: E402
from jtorch.ops import activation as act  # noqa: E402
from jtorch.ops import attention as att  # noqa: E402
from jtorch.ops import backend, norm  # noqa: E402
from jtorch.ops import linear as lin  # noqa: E402

DRAW = np.random.default_rng(0)


def real(*shape):
    return DRAW.standard_normal(shape)


def whole(high, *shape):
    return DRAW.integers(0, high, shape)


MASK = np.tril(np.ones((5, 5), bool))
QKV = [real(2, 4, 5, 8) for _ in range(3)]
GQA = [QKV[0], real(2, 2, 5, 8), real(2, 2, 5, 8)]
ATTENTION = {"is_causal": False, "scale": None, "enable_gqa": False}
AFFINE = [real(6), real(6)]
HARD = np.array([[-3.0, 3.0, -1.0, 1.0, 0.0, 6.0, -0.5, 0.5, 50.0, -50.0, 2.0, -2.0]])


def plain_attention(*args, **options):
    """PyTorch's differentiable form: its fused kernels have no second derivative."""
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return F.scaled_dot_product_attention(*args, **options)


def row(name, op, arrays, torch_fn, **static):
    return pytest.param(op, arrays, static, torch_fn, id=name)


def unary(name, op, **static):
    return row(name, op, [real(3, 4)], lambda x: getattr(F, op.name)(x, **static), **static)


ROWS = [
    row("linear of many rows", lin.linear, [real(70, 5), real(4, 5), real(4)], F.linear),
    row("linear of large weight", lin.linear, [real(50, 256), real(256, 256), real(256)], F.linear),
    row("linear of one row", lin.linear, [real(1, 5), real(4, 5), real(4)], F.linear),
    row("linear 2-D", lin.linear, [real(7, 5), real(4, 5), real(4)], F.linear),
    row("linear 3-D", lin.linear, [real(2, 3, 5), real(8, 5), real(8)], F.linear),
    row("linear no bias", lin.linear, [real(2, 3, 5), real(8, 5), None], F.linear),
    row("linear 1-D", lin.linear, [real(5), real(8, 5), real(8)], F.linear),
    row("linear vector weight", lin.linear, [real(3, 5), real(5), None], F.linear),
    row("linear wide bias", lin.linear, [real(3, 5), real(8, 5), real(1)], F.linear),
    row("linear bias matrix", lin.linear, [real(3, 5), real(8, 5), real(3, 8)], F.linear),
    row("linear empty", lin.linear, [real(0, 5), real(8, 5), real(8)], F.linear),
    row("bilinear", lin.bilinear, [real(2, 7, 5), real(2, 7, 3), real(4, 5, 3), real(4)], F.bilinear),
    row("softmax", act.softmax, [real(3, 4)], lambda x: torch.softmax(x, 1), dim=1, dtype=None),
    row("softmax first", act.softmax, [real(3, 4, 2)], lambda x: torch.softmax(x, 0), dim=0, dtype=None),
    row("softmax 0-d", act.softmax, [real()], lambda x: torch.softmax(x, 0), dim=0, dtype=None),
    row("log_softmax", act.log_softmax, [real(3, 4)], lambda x: x.log_softmax(-1), dim=-1, dtype=None),
    row("log_softmax middle", act.log_softmax, [real(3, 4, 2)], lambda x: x.log_softmax(1), dim=1, dtype=None),
    unary("gelu", act.gelu, approximate="none"),
    unary("gelu tanh", act.gelu, approximate="tanh"),
    unary("silu", act.silu),
    unary("mish", act.mish),
    unary("glu", act.glu, dim=-1),
    unary("softplus", act.softplus, beta=2, threshold=1),
    unary("logsigmoid", act.logsigmoid),
    unary("tanhshrink", act.tanhshrink),
    unary("softsign", act.softsign),
    unary("elu", act.elu, alpha=0.7),
    unary("celu", act.celu, alpha=0.7),
    unary("selu", act.selu),
    unary("leaky_relu", act.leaky_relu, negative_slope=0.2),
    unary("hardtanh", act.hardtanh, min_val=-0.5, max_val=0.8),
    row("prelu", act.prelu, [real(2, 3, 4), real(3)], F.prelu),
    row("prelu one", act.prelu, [real(2, 3, 4), real(1)], F.prelu),
    row("rrelu", act.rrelu_mean, [real(3, 4)], lambda x: F.rrelu(x, 0.1, 0.4), lower=0.1, upper=0.4),
    row(
        "layer_norm",
        norm.layer_norm,
        [real(2, 3, 6), *AFFINE],
        lambda x, w, b: F.layer_norm(x, (6,), w, b),
        normalized_shape=(6,),
        eps=1e-5,
    ),
    row(
        "layer_norm 2-D",
        norm.layer_norm,
        [real(2, 3, 6), real(3, 6), real(3, 6)],
        lambda x, w, b: F.layer_norm(x, (3, 6), w, b),
        normalized_shape=(3, 6),
        eps=1e-5,
    ),
    row(
        "layer_norm plain",
        norm.layer_norm,
        [real(2, 3, 6), None, None],
        lambda x, w, b: F.layer_norm(x, (6,)),
        normalized_shape=(6,),
        eps=1e-5,
    ),
    row(
        "rms_norm",
        norm.rms_norm,
        [real(2, 3, 6), AFFINE[0]],
        lambda x, w: F.rms_norm(x, (6,), w),
        normalized_shape=(6,),
        eps=None,
    ),
    row(
        "group_norm",
        norm.group_norm,
        [real(2, 6, 3, 2), *AFFINE],
        lambda x, w, b: F.group_norm(x, 3, w, b),
        num_groups=3,
        eps=1e-5,
    ),
    row(
        "group_norm plain",
        norm.group_norm,
        [real(2, 6, 3), None, None],
        lambda x, w, b: F.group_norm(x, 2),
        num_groups=2,
        eps=1e-5,
    ),
    row(
        "local_response_norm",
        norm.response_norm,
        [real(2, 6, 3)],
        lambda x: F.local_response_norm(x, 4, 0.3, 0.6, 1.5),
        size=4,
        alpha=0.3,
        beta=0.6,
        k=1.5,
        whole=False,
    ),
    *(
        row(f"normalize p={p}", norm.normalize, [real(3, 4)], lambda x, p=p: F.normalize(x, p, 1), p=p, dim=1)
        for p in (2.0, 1.0, 3.0, float("inf"))
    ),
    row("cosine_similarity", norm.cosine_similarity, [real(3, 4), real(3, 4)], F.cosine_similarity),
    row("cosine_similarity broadcast", norm.cosine_similarity, [real(3, 4), real(4)], F.cosine_similarity),
    *(
        row(
            f"pairwise_distance p={p}",
            norm.pairwise_distance,
            [real(3, 4), real(3, 4)],
            lambda a, b, p=p: F.pairwise_distance(a, b, p),
            p=p,
        )
        for p in (2.0, 1.0, 3.0)
    ),
    row(
        "attention",
        att.attention,
        [*QKV, None],
        lambda q, k, v, m: plain_attention(q, k, v),
        **ATTENTION,
    ),
    row(
        "attention causal",
        att.attention,
        [*QKV, None],
        lambda q, k, v, m: plain_attention(q, k, v, is_causal=True, scale=0.7),
        **(ATTENTION | {"is_causal": True, "scale": 0.7}),
    ),
    row("attention mask", att.attention, [*QKV, MASK], plain_attention, **ATTENTION),
    row("attention bias", att.attention, [*QKV, real(5, 5)], plain_attention, **ATTENTION),
    row(
        "attention grouped",
        att.attention,
        [*GQA, None],
        lambda q, k, v, m: plain_attention(q, k, v, enable_gqa=True),
        **(ATTENTION | {"enable_gqa": True}),
    ),
    row(
        "attention wide keys",
        att.attention,
        [real(3, 2, 8), real(3, 6, 8), real(3, 6, 4), None],
        lambda q, k, v, m: plain_attention(q, k, v),
        **ATTENTION,
    ),
    row(
        "embedding",
        lin.embedding_rows,
        [real(6, 4), whole(6, 3, 5)],
        lambda w, i: F.embedding(i, w),
        padding_idx=None,
        scale_grad_by_freq=False,
    ),
    row(
        "embedding padding",
        lin.embedding_rows,
        [real(6, 4), whole(6, 3, 5)],
        lambda w, i: F.embedding(i, w, padding_idx=2),
        padding_idx=2,
        scale_grad_by_freq=False,
    ),
]

FIRST_ONLY = [
    row(
        "embedding frequency",
        lin.embedding_rows,
        [real(6, 4), whole(6, 3, 5)],
        lambda w, i: F.embedding(i, w, scale_grad_by_freq=True),
        padding_idx=None,
        scale_grad_by_freq=True,
    ),
    *(
        row(
            f"{op.name} corners",
            op,
            [np.append(HARD, np.nan)],
            lambda x, op=op: getattr(F, op.name)(x),
        )
        for op in (
            act.relu,
            act.relu6,
            act.hardtanh,
            act.hardsigmoid,
            act.hardswish,
            act.hardshrink,
            act.softshrink,
            act.leaky_relu,
            act.elu,
            act.selu,
            act.celu,
            act.softplus,
            act.logsigmoid,
            act.silu,
            act.mish,
            act.tanhshrink,
            act.softsign,
            act.gelu,
        )  # fmt: skip
    ),
    *(
        row(
            f"embedding_bag {mode}",
            lin.embedding_bags,
            [real(6, 4), np.array([1, 2, 2, 5, 0]), np.array([0, 2, 2]), None],
            lambda w, i, o, s, mode=mode: F.embedding_bag(i, w, o, mode=mode, padding_idx=5),
            mode=mode,
            padding_idx=5,
            scale_grad_by_freq=False,
            include_last_offset=False,
        )
        for mode in ("sum", "mean", "max")
    ),
    row(
        "embedding_bag weights",
        lin.embedding_bags,
        [real(6, 4), np.array([1, 2, 2, 5, 0]), np.array([0, 2, 5]), real(5)],
        lambda w, i, o, s: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=s, include_last_offset=True),
        mode="sum",
        padding_idx=None,
        scale_grad_by_freq=False,
        include_last_offset=True,
    ),
]


RTOL = 5e-8  # PyTorch rounds some constants of float64 activations (slopes, 1/6) to float32


def is_float(a):
    return a is not None and np.issubdtype(np.asarray(a).dtype, np.floating)


def both(op, arrays, static, torch_fn, second):
    """Values and derivatives by name, from the op and from PyTorch."""
    where = [i for i, a in enumerate(arrays) if is_float(a)]
    ours = derived(op, **static)
    fixed = [None if a is None else jnp.asarray(a) for a in arrays]

    def run(*variables):
        args = list(fixed)
        for i, v in zip(where, variables):
            args[i] = v
        return ours(*args)

    variables = [fixed[i] for i in where]
    t_args = [None if a is None else torch.from_numpy(np.array(a)) for a in arrays]
    t_variables = [t_args[i].requires_grad_() for i in where]
    t_out = torch_fn(*t_args)
    g = real(*t_out.shape)
    t_g = torch.from_numpy(np.array(g)).requires_grad_()
    t_grads = torch.autograd.grad(t_out, t_variables, t_g, create_graph=second)
    weights = [real(*t.shape) for t in t_grads]

    @jax.jit
    def everything(g, weights, *variables):
        def first(g, *variables):
            out, pull = jax.vjp(run, *variables)
            return pull(g), out

        if not second:
            return *first(g, *variables), ()
        grads, pull, out = jax.vjp(first, g, *variables, has_aux=True)
        return grads, out, pull(weights)

    grads, out, seconds = everything(g, tuple(weights), *variables)
    yield "value", [out], [t_out]
    yield "gradient", grads, t_grads
    if not second:
        return
    total = sum((t * torch.from_numpy(np.array(w))).sum() for t, w in zip(t_grads, weights))
    t_seconds = torch.autograd.grad(total, [t_g, *t_variables], allow_unused=True)
    t_seconds = [torch.zeros(s.shape) if t is None else t for s, t in zip(seconds, t_seconds)]
    yield "second gradient", seconds, t_seconds


def check(op, arrays, static, torch_fn, second):
    for what, ours, theirs in both(op, arrays, static, torch_fn, second):
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            expected = b.detach().numpy(force=True)
            np.testing.assert_allclose(a, expected, rtol=RTOL, atol=1e-10, err_msg=f"{what} {i}")
            assert what != "value" or a.dtype == expected.dtype


@pytest.mark.parametrize("op, arrays, static, torch_fn", ROWS)
def test_double_backward(op, arrays, static, torch_fn):
    check(op, arrays, static, torch_fn, second=True)


@pytest.mark.parametrize("op, arrays, static, torch_fn", FIRST_ONLY)
def test_backward(op, arrays, static, torch_fn):
    check(op, arrays, static, torch_fn, second=False)


@pytest.mark.parametrize("name", ["linear 3-D", "linear 2-D", "layer_norm", "attention causal", "embedding"])
def test_off_the_cpu(name, monkeypatch):
    monkeypatch.setattr(backend, "on_cpu", lambda: False)
    op, arrays, static, torch_fn = next(r.values for r in ROWS if r.id == name)
    check(op, arrays, static, torch_fn, second=True)


@pytest.mark.parametrize("name", [r.id for r in ROWS])
def test_narrow_floats(name):
    op, arrays, static, torch_fn = next(r.values for r in ROWS if r.id == name)
    narrow = [jnp.asarray(a, jnp.bfloat16) if is_float(a) else None if a is None else jnp.asarray(a) for a in arrays]
    t_args = [
        torch.from_numpy(np.array(a)).bfloat16() if is_float(a) else None if a is None else torch.from_numpy(a)
        for a in arrays
    ]
    out = jax.jit(derived(op, **static))(*narrow)
    expected = torch_fn(*t_args)
    assert out.dtype == jnp.bfloat16 and not out.weak_type
    np.testing.assert_allclose(out.astype(float), expected.float().numpy(), rtol=0.02, atol=0.03)


@pytest.mark.parametrize("name", [r.id for r in ROWS])
def test_single_stays_single(name):
    op, arrays, static, _ = next(r.values for r in ROWS if r.id == name)
    args = [jnp.asarray(a, jnp.float32) if is_float(a) else None if a is None else jnp.asarray(a) for a in arrays]
    where = [i for i, a in enumerate(arrays) if is_float(a)]

    def run(*variables):
        full = list(args)
        for i, v in zip(where, variables):
            full[i] = v
        out, pull = jax.vjp(lambda *v: derived(op, **static)(*v), *full)
        return out, [g for g, a in zip(pull(out), arrays) if is_float(a)]

    out, grads = jax.eval_shape(run, *(args[i] for i in where))
    assert out.dtype == jnp.float32 and not out.weak_type
    assert all(g.dtype == jnp.float32 for g in grads)


def test_integer_results():
    x = np.array([-3, 0, 2, 9])
    for op in (act.relu, act.relu6, act.hardtanh):
        expected = getattr(F, op.name)(torch.from_numpy(x)).numpy()
        got = op.fn(jnp.asarray(x))
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


KEY = np.array([1, 2], np.uint32)


def test_dropout():
    x = jnp.ones((100, 100), jnp.float32)
    out, keep = lin.dropout_mask.fn(x, 0.3, key=KEY)
    assert abs(float(keep.mean()) - 0.7) < 0.02
    np.testing.assert_allclose(out, np.where(keep, np.float32(1 / 0.7), 0), rtol=1e-6)
    np.testing.assert_allclose(lin.dropout_grad.fn(x, keep, 0.3), out)
    out, keep = lin.dropout_mask.fn(x.reshape(10, 10, 100), 0.5, 2, key=KEY)
    assert keep.shape == (10, 10, 1)
    out, _ = lin.dropout_mask.fn(x, 1.0, key=KEY)
    assert not out.any()


def test_alpha_dropout_keeps_moments():
    draw = np.random.default_rng(0)
    x = jnp.asarray(draw.standard_normal((300, 300)), jnp.float32)
    out, keep = lin.alpha_dropout_mask.fn(x, 0.4, key=KEY)
    assert abs(float(out.mean())) < 0.02 and abs(float(out.std()) - 1) < 0.02
    expected = np.unique(F.alpha_dropout(torch.ones(200), 0.4, True).numpy())
    got = np.unique(lin.alpha_dropout_mask.fn(jnp.ones(200, jnp.float32), 0.4, key=KEY)[0])
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_attention_dropout():
    q, k, v = (jnp.asarray(a) for a in QKV)
    out, keep, inverse, weights, *empty = att.attention_dropout.fn(q, k, v, dropout_p=0.4, key=KEY)
    np.testing.assert_allclose(out, (weights * inverse * keep / 0.6) @ v, rtol=1e-12)
    assert len(empty) == att.MOST - 1 and not any(e.size for e in empty)
    static = ATTENTION | {"is_causal": True, "dropout_p": 0.4, "key": KEY}
    run = derived(att.attention_dropout, attn_mask=None, **static)
    g = jnp.asarray(real(*out.shape))
    grads = jax.vjp(run, q, k, v)[1](g)
    plain = lambda q, k, v: att.attention_dropout.fn(q, k, v, **static)[0]
    for a, b in zip(grads, jax.vjp(plain, q, k, v)[1](g)):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_rrelu_training():
    x = jnp.asarray(real(50, 50))
    out, slope = act.rrelu_noise.fn(x, 0.1, 0.4, key=KEY)
    np.testing.assert_allclose(out, x * slope)
    drawn = slope[x < 0]
    assert 0.1 <= drawn.min() < 0.12 and 0.38 < drawn.max() <= 0.4 and (slope[x > 0] == 1).all()


def test_gumbel_softmax():
    logits = jnp.asarray([[1.0, 2.0, 0.0]] * 20000)
    hard = act.gumbel_softmax.fn(logits, 0.5, True, key=KEY)
    np.testing.assert_allclose(hard.mean(0), jax.nn.softmax(logits[0]), atol=0.02)
    soft = act.gumbel_softmax.fn(logits, 0.5, key=KEY)
    g = jnp.asarray(real(*logits.shape))
    run = lambda hard: jax.vjp(lambda x: act.gumbel_softmax.fn(x, 0.5, hard, key=KEY), logits)[1](g)[0]
    np.testing.assert_allclose(soft.sum(-1), 1)
    np.testing.assert_allclose(run(True), run(False))


CPU = Device("cpu")


def spec(*shape, dtype="float32"):
    return Spec.dense(shape, dtypes.ALL[dtype], CPU)


def t(*shape, dtype="float32"):
    return torch.zeros(shape, dtype=getattr(torch, dtype))


ERRORS = [
    (lin.linear, F.linear, [(5, 3), (2, 4)], [], {}),
    (lin.linear, F.linear, [(2, 5, 3), (2, 4), (2,)], [], {}),
    (lin.linear, F.linear, [(5, 4), (6, 4), (5,)], [], {}),
    (lin.linear, F.linear, [(5, 4), (2, 6, 4)], [], {}),
    (lin.linear, F.linear, [(5, 4), (4,), (1,)], [], {}),
    (lin.linear, F.linear, [(3,), (6, 4), (6,)], [], {}),
    (lin.linear, F.linear, [(3,), (4,)], [], {}),
    (lin.linear, F.linear, [(2, 3), (4,)], [], {}),
    (lin.linear, F.linear, [(), (4,)], [], {}),
    (lin.linear, F.linear, [(5, 4, "float64"), (6, 4), (6,)], [], {}),
    (lin.linear, F.linear, [(5, 4, "int64"), (6, 4), (6,)], [], {}),
    (lin.linear, F.linear, [(5, 4), (6, 4), (6, "float64")], [], {}),
    (lin.linear, F.linear, [(2, 5, 4, "float64"), (6, 4)], [], {}),
    (lin.linear, F.linear, [(5, 4, "bool"), (6, 4, "bool")], [], {}),
    (lin.bilinear, F.bilinear, [(2, 3), (3, 4), (5, 3, 4)], [], {}),
    (lin.bilinear, F.bilinear, [(2, 3), (2, 2, 4), (5, 3, 4)], [], {}),
    (lin.bilinear, F.bilinear, [(2, 3), (2, 5), (5, 3, 4)], [], {}),
    (lin.bilinear, F.bilinear, [(2, 3), (2, 4), (5, 3, 4), (4,)], [], {}),
    (lin.bilinear, F.bilinear, [(2, 3), (2, 4, "float64"), (5, 3, 4)], [], {}),
    (act.softmax, torch.softmax, [(3, 4)], [5], {}),
    (act.softmax, torch.softmax, [(3, 4, "int64")], [1], {}),
    (act.softmax, torch.softmax, [(3, 4, "complex64")], [0], {}),
    (act.log_softmax, torch.log_softmax, [(3, 4, "bool")], [-1], {}),
    (act.gelu, lambda x, a: F.gelu(x, approximate=a), [(3,)], ["foo"], {}),
    *(
        (op, getattr(F, op.name), [(4, dtype)], [], {})
        for op in (
            act.gelu, act.silu, act.mish, act.elu, act.selu, act.celu, act.leaky_relu, act.hardsigmoid,
            act.hardswish, act.hardshrink, act.softshrink, act.softplus, act.logsigmoid, act.glu,
        )
        for dtype in ("int64", "bool", "uint8")
    ),
    *((op, getattr(F, op.name), [(4, "bool")], [], {}) for op in (act.relu, act.relu6, act.tanhshrink)),
    *((op, getattr(F, op.name), [(4, "complex64")], [], {}) for op in (act.relu, act.hardtanh, act.gelu)),
    (act.hardtanh, F.hardtanh, [(4, "uint8")], [], {}),
    (act.hardtanh, F.hardtanh, [(4,)], [1.0, -1.0], {}),
    (act.softshrink, F.softshrink, [(4,)], [-1.5], {}),
    (act.celu, F.celu, [(4,)], [0.0], {}),
    (act.glu, F.glu, [(3,)], [], {}),
    (act.glu, F.glu, [()], [], {}),
    (act.prelu, F.prelu, [(2, 3, 4), (2,)], [], {}),
    (act.prelu, F.prelu, [(4,), (1, "float64")], [], {}),
    (act.prelu, F.prelu, [(), (2,)], [], {}),
    (norm.layer_norm, F.layer_norm, [(2, 3, 4)], [(3,)], {}),
    (norm.layer_norm, F.layer_norm, [(2, 3, 4)], [()], {}),
    (norm.layer_norm, F.layer_norm, [(2, 4, "int64")], [(4,)], {}),
    (norm.rms_norm, F.rms_norm, [(2, 3, 4)], [(3,)], {}),
    (norm.rms_norm, F.rms_norm, [(2, 4, "int64")], [(4,)], {}),
    (norm.group_norm, F.group_norm, [(2, 4, 3)], [3], {}),
    (norm.group_norm, F.group_norm, [(4,)], [2], {}),
    (
        norm.response_norm,
        lambda x, *rest: F.local_response_norm(x, *rest[:-1]),
        [(2, 4)],
        [2, 1e-4, 0.75, 1.0, False],
        {},
    ),
    (norm.cosine_similarity, F.cosine_similarity, [(4, "int64"), (4, "int64")], [0], {}),
    (norm.normalize, F.normalize, [(4, 4, "int64")], [], {}),
    (norm.pairwise_distance, F.pairwise_distance, [(4, "bool"), (4, "bool")], [], {}),
    *(
        (att.attention, F.scaled_dot_product_attention, shapes, [], {})
        for shapes in (
            [(3,), (3,), (3,)],
            [(2, 3, 4), (2, 3, 4, "float64"), (2, 3, 4)],
            [(2, 3, 5), (2, 3, 4), (2, 3, 4)],
            [(2, 3, 4), (2, 3, 4), (2, 6, 4)],
            [(2, 3, 4), (2, 3, 4), (2, 3, 4), (3, 3, "int64")],
            [(2, 3, 4), (2, 3, 4), (2, 3, 4), (3, 3, "float64")],
        )
    ),
    (
        lin.embedding_rows,
        lambda w, i: F.embedding(i, w),
        [(6, 4), (2, "float32")],
        [],
        {},
    ),
    (lin.embedding_rows, lambda w, i: F.embedding(i, w), [(6,), (2, "int64")], [], {}),
]  # fmt: skip


@pytest.mark.parametrize("op, torch_fn, operands, rest, words", ERRORS)
def test_errors(op, torch_fn, operands, rest, words):
    def split(operand):
        shape = tuple(n for n in operand if not isinstance(n, str))
        return shape, next((n for n in operand if isinstance(n, str)), "float32")

    theirs = ours = None
    try:
        torch_fn(*(t(*shape, dtype=d) for shape, d in map(split, operands)), *rest)
    except Exception as error:
        theirs = error
    try:
        for function in op.checks:
            function(*(spec(*shape, dtype=d) for shape, d in map(split, operands)), *rest)
    except Exception as error:
        ours = error
    assert type(ours) is type(theirs)
    assert str(ours).split("\n")[0] == str(theirs).split("\n")[0]
