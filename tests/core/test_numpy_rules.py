"""core/numpy_rules.py: each rule gives what the compiled primitive gives, up to rounding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jtorch.core.hosted import Steps
from jtorch.core.numpy_rules import ALIKE, NotHere

X = np.linspace(-2.3, 2.1, 24, dtype=np.float32).reshape(2, 3, 4)
ODD = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 3e38, 88.9, -104.0], np.float32)
Z = (X + 1j * np.cos(X)).astype(np.complex64)
K = np.array([[2, 0, 1], [1, 1, 0]])
IMAGE = np.sin(np.arange(2 * 4 * 7 * 6, dtype=np.float32)).reshape(2, 4, 7, 6)


def conv(x, w, **options):
    return lax.conv_general_dilated(x, w, **{"window_strides": (1, 1), "padding": "SAME", **options})


def weight(*shape):
    return np.cos(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)


def gathered(x, indices, mode, **dims):
    dims = lax.GatherDimensionNumbers(
        **{"offset_dims": (), "collapsed_slice_dims": (), "start_index_map": (0,), **dims}
    )
    sizes = tuple(
        1 if d in dims.collapsed_slice_dims or d in dims.operand_batching_dims else min(n, 2)
        for d, n in enumerate(x.shape)
    )
    return lax.gather(x, indices, dims, sizes, mode=mode)


MODES = ("clip", "fill", "promise_in_bounds")
KERNELS = {
    **{name: (getattr(jnp, name), [ODD]) for name in (
        "exp", "exp2", "log", "log1p", "expm1", "tanh", "sin", "cos", "sign", "floor", "ceil", "cbrt", "isfinite", "round", "square", "sqrt",
    )},
    **{name: (getattr(lax, name), [X / 2.5]) for name in ("sinh", "cosh", "asinh", "asin", "acos", "atan", "atanh", "erf_inv", "digamma")},
    "acosh": (lax.acosh, [np.abs(X) + 1]),
    "tan": (jnp.tan, [X]),
    "half away": (lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), [np.append(ODD, [0.49999997, 1.5]).astype(np.float32)]),
    "rsqrt": (lax.rsqrt, [ODD]),
    "sigmoid": (jax.nn.sigmoid, [ODD]),
    "silu": (jax.nn.silu, [X]),
    "gelu": (lambda x: jax.nn.gelu(x, approximate=False), [X]),
    "softmax": (jax.nn.softmax, [X]),
    "erf": (lax.erf, [ODD]),
    "erfc": (lax.erfc, [X]),
    "lgamma": (lax.lgamma, [np.abs(X)]),
    "lgamma of infinities": (lax.lgamma, [np.array([np.inf, -np.inf, np.nan, 0, -1], np.float32)]),
    "pow": (lambda x, y: x**y, [np.abs(ODD), ODD]),
    "whole powers": (lambda x: (lax.integer_pow(x, 3), lax.integer_pow(x, -2)), [ODD]),
    "whole quotients": (lambda x, y: (lax.div(x, y), lax.rem(x, y), x // 3, x % -4, lax.div(x, np.int32(-5))), [np.arange(-9, 9, dtype=np.int32), np.int32(4)]),
    "unsigned quotients": (lambda x, y: (lax.div(x, y), lax.rem(x, y)), [np.arange(250, 256, dtype=np.uint8), np.uint8(7)]),
    "rem": (lax.rem, [ODD, np.float32(0.75)]),
    "atan2": (jnp.arctan2, [ODD, ODD[::-1].copy()]),
    "clamp": (lambda x: lax.clamp(np.float32(-1), x, np.float32(2)), [ODD]),
    "to whole numbers": (lambda x: x.astype(jnp.int32), [X]),
    "to flags": (lambda x: x.astype(bool), [ODD]),
    "prod": (lambda x: x.prod(1), [X]),
    "bits": (lambda x: lax.bitcast_convert_type(x, jnp.int32), [ODD]),
    "shifts": (lambda x: (lax.shift_left(x, np.int32(3)), lax.shift_right_arithmetic(x, np.int32(2))), [np.arange(-9, 9, dtype=np.int32)]),
    "shifts that fill with zeros": (lambda x, u: (lax.shift_right_logical(x, np.int32(3)), lax.shift_right_logical(u, u & 3)),
                                    [np.arange(-9, 9, dtype=np.int32), np.arange(240, 256, dtype=np.uint8)]),
    "argmax": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0)), [X]),
    "argmax of nan": (lambda x: (jnp.argmax(x), jnp.argmin(x)), [ODD]),
    "running": (lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 2), lax.cummin(x, 1, reverse=True), lax.cumsum(x, 2, reverse=True)), [X]),
    "stacks": (lambda x: (jnp.stack([x, x + 1], 1), *jnp.unstack(x, axis=1), jnp.tile(x, (2, 1, 3))), [X]),
    "sort": (lambda x: (jnp.sort(x), jnp.argsort(x, stable=True)), [ODD]),
    "sort pairs": (lambda x: lax.sort((x, x * 2), dimension=1, num_keys=1), [X]),
    "largest": (lambda x, k, odd: (*lax.top_k(x, 2), *lax.top_k(k, 3), *lax.top_k(odd, 5)), [X, K, ODD]),
    "largest beside nans with a sign": (lambda x: (*lax.top_k(x, 12), *lax.top_k(-x, 3), *lax.top_k(x.astype(np.float64), 3)), [np.append(ODD, -ODD)]),
    "product": (lambda x, w: x @ w, [X, weight(4, 5)]),
    "batched product": (lambda x, w: jnp.einsum("bij,bkj->bik", x, w), [X, weight(2, 5, 4)]),
    "rows by rows": (
        lambda x, y, w: (jnp.einsum("bd,bd->b", x, y), jnp.einsum("db,db->b", x, y), jnp.einsum("bd,db->b", x, w), jnp.einsum("bd,bd->", x, y)),
        [X[0], X[1], weight(4, 3)]),
    "two dimensions summed": (lambda x, w: jnp.einsum("bij,jib->", x, w), [X, weight(4, 3, 2)]),
    "product of nothing": (lambda x, w: (x[:, :, :0] @ w[:0], x[:0] @ w), [X, weight(4, 5)]),
    "whole numbers' product": (lambda k: k @ k.T, [K]),
    "rows": (lambda x, k: x[k], [X, K % 2]),
    "rows of other dimensions": (lambda x, k: (x[:, k], x[..., k - 1], x[0, k], jnp.take(x, k + 1, 1, mode="clip")), [X, K]),
    "rows laid out otherwise": (lambda x, k: gathered(
        x[:, :2, :2], k[..., None], "clip", offset_dims=(0, 3), collapsed_slice_dims=(1,), start_index_map=(1,)), [X, K]),
    "elements": (lambda x, k: x[k & 1, k, 1:3], [X, K]),
    "single elements": (lambda x, k: (
        x.at[k & 1, k, 1].get(mode=MODES[2]), x[0, 0].at[k].get(mode=MODES[2]), x[0].at[k.astype(np.int32), k + 1].get(mode=MODES[2]),
        jnp.take_along_axis(x, k[..., None], 2, mode=MODES[2]), jnp.take_along_axis(x, k[:, :1, None], 1, mode=MODES[2])), [X, K]),
    "last dimension": (lambda x, k: jnp.take_along_axis(x, k[..., None], 2), [X, K]),
    "windows": (lambda x, k: tuple(gathered(x, k[..., :1], m, offset_dims=(1, 2, 3)) for m in ("clip", "fill")), [X, K * 3 - 1]),
    "batched windows": (
        lambda x, k: gathered(x, k[..., None], "clip", offset_dims=(2,), collapsed_slice_dims=(1,), start_index_map=(1,),
                              operand_batching_dims=(0,), start_indices_batching_dims=(0,)), [X, K]),
    "rows outside": (lambda x, k: tuple(x.at[k].get(mode=m) for m in ("clip", "fill")), [X, K * 3 - 2]),
    "whole numbers outside": (lambda x, k: x.at[k].get(mode="fill"), [K, K * 3]),
    "write rows": (lambda x, k: tuple(x.at[k[:, 0] & 1].set(x[:, ::-1] * 2, mode=m) for m in MODES), [X, K]),
    "add rows": (lambda x, k: x.at[k].add(jnp.ones((2, 3, 3, 4), x.dtype), mode="drop"), [X, K - 1]),
    "fold elements": (lambda x, k: (x.at[k & 1].max(0.5), x.at[k & 1, k].min(-0.5), x.at[k & 1, k, 1].mul(2.0)), [X, K]),
    "add elements": (lambda x, k: x.at[k & 1, k, 1].add(2.0), [X, K]),
    "write windows": (lambda x: x.at[:, 1:, 2].set(7), [X]),
    "embedding's gradient": (lambda w, k: jax.grad(lambda w: (w[k] ** 2).sum())(w), [weight(5, 3), K]),
    "conv": (conv, [IMAGE, weight(6, 4, 3, 3)]),
    "conv in steps": (lambda x, w: conv(x, w, window_strides=(2, 3), padding=[(0, 1), (2, 0)], rhs_dilation=(2, 1)), [IMAGE, weight(6, 4, 2, 3)]),
    "conv in groups": (lambda x, w: conv(x, w, feature_group_count=2), [IMAGE, weight(6, 2, 3, 3)]),
    "conv's gradients": (lambda x, w: jax.grad(lambda x, w: (conv(x, w, window_strides=(2, 2)) ** 2).sum(), (0, 1))(x, w), [IMAGE, weight(6, 4, 3, 3)]),
    "conv cut": (lambda x, w: conv(x, w, padding=[(-1, 0), (2, -2)]), [IMAGE, weight(6, 4, 3, 3)]),
    "max pool": (lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 1, 3, 2), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (0, 1))), [IMAGE]),
    "sum pool": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 1, 2), "VALID"), [IMAGE]),
    "scan": (lambda x: lax.scan(lambda c, a: (c * 0.5 + a, (c.sum(), c)), x[0], x, reverse=True), [X]),
    "while": (lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * x), (0, x))[1], [X]),
    "cond": (lambda x: lax.cond(x[0, 0, 0] > 0, lambda x: x + 1, lambda x: x - 1, x), [X]),
    "barrier": (lambda x: lax.optimization_barrier((x, x + 1)), [X]),
    "a custom derivative": (lambda x: jax.grad(lambda x: jax.nn.relu(x).sum())(x), [X]),
    "complex parts": (lambda z: (z.real, z.imag, jnp.conj(z), -z, z == z[::-1], lax.complex(z.imag, z.real)), [Z]),
    "complex arithmetic": (lambda z: (z * z[::-1] + z, z - 2.0, jnp.abs(z), z**2, z.sum(1), jnp.cumsum(z, 1)), [Z]),
    "complex products": (lambda z: (z @ z[0].T, jnp.einsum("bij,bij->b", z, jnp.conj(z))), [Z]),
    "complex moves": (lambda z, k: (z[k & 1], z.at[0, 1].set(1j), z.at[k & 1].add(z[0]), jnp.pad(z, 1), z.astype(np.complex128)), [Z, K]),
    "complex from real": (lambda x: (x.astype(complex), x * (1 + 2j), jnp.conj(x)), [X]),
    "transforms": (lambda z, x: (jnp.fft.fft(z), jnp.fft.ifft2(z), jnp.fft.rfft(x), jnp.fft.irfft(z, 6), jnp.fft.rfft2(x)), [Z, X]),
    "short arithmetic": (lambda x: (x * x + x, x / 3, jnp.exp(x), jnp.maximum(x, 0.5), x > 0.3, x**3, jnp.tanh(x) - 1), [X.astype(jnp.bfloat16)]),
    "short sums": (lambda x: (x.sum(1), x.mean(), x.max(2), jax.nn.softmax(x), jnp.argmax(x, 1)), [X.astype(jnp.bfloat16)]),
    "short products": (lambda x, w: x @ w, [X.astype(jnp.bfloat16), weight(4, 5).astype(jnp.bfloat16)]),
    "short moves": (lambda x, k: (x[k & 1], x.at[0, 1].set(2), jnp.pad(x, 1), x.astype(np.float32), x.astype(np.int32)), [X.astype(jnp.bfloat16), K]),
    "shorter": (lambda x: (x.astype(jnp.bfloat16) + 1, x.astype(np.float16) * 3), [X]),
    "short bits": (lambda x: lax.bitcast_convert_type(x, jnp.int16), [X.astype(np.float16)]),
    "short conv": (conv, [IMAGE.astype(np.float16), weight(6, 4, 3, 3).astype(np.float16)]),
}  # fmt: skip
ROUNDED = {"bfloat16": 1e-2, "float16": 2e-3}  # where sums are rounded to once


@pytest.mark.parametrize("name", KERNELS)
def test_as_compiled(name):
    fn, arrays = KERNELS[name]
    steps = Steps(ALIKE, jax.make_jaxpr(fn)(*arrays))
    with np.errstate(all="ignore"):
        found = steps.run(arrays)
    expected = jax.tree.leaves(jax.jit(fn)(*arrays))
    for e, f in zip(expected, found, strict=True):
        assert (e.shape, e.dtype) == (f.shape, f.dtype)
        wide, tol = (np.float32, ROUNDED[e.dtype.name]) if e.dtype.name in ROUNDED else (e.dtype, 5e-6)
        np.testing.assert_allclose(
            np.asarray(f, wide), np.asarray(e, wide), rtol=min(tol, max(3e-6, tol / 2)), atol=tol
        )


@pytest.mark.parametrize("value", [3e9, -3e9, np.nan, np.inf])
def test_what_does_not_fit_is_left_to_the_compiler(value):
    steps = Steps(ALIKE, jax.make_jaxpr(lambda x: x.astype(jnp.int32))(np.float32(0)))
    assert steps.run([np.float32(-7.9)]) == [-7]
    with pytest.raises(NotHere):
        steps.run([np.float32(value)])


def test_quotients_by_zero_are_left_to_the_compiler():
    steps = Steps(ALIKE, jax.make_jaxpr(lax.div)(K, K))
    with pytest.raises(NotHere):
        steps.run([K, K])


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.astype(jnp.float8_e5m2),
        lambda x: jnp.exp(x.astype(complex)),
        lambda x: 1 / x.astype(complex),
        lambda x: jnp.cumsum(x.astype(jnp.bfloat16)),
        lax.bessel_i0e,
    ],
    ids=["shorter", "complex exp", "complex quotient", "short sums one by one", "no rule"],
)
def test_what_numpy_does_otherwise(fn):
    with pytest.raises(NotHere):
        Steps(ALIKE, jax.make_jaxpr(fn)(X))
