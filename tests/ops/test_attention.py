"""Attention by blocks of queries: whatever their number, the values and derivatives are those of one block and PyTorch's."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jtorch.ops import attention as att
from jtorch.ops import backend
from tests.ops.derived import derived
from tests.oracle import torch

draw = np.random.default_rng(0)


def real(*shape):
    return jnp.asarray(draw.standard_normal(shape))


SAMPLES = {
    "square": ((2, 3, 9, 4), (2, 3, 9, 4), (2, 3, 9, 5), None, False),
    "more keys": ((2, 5, 4), (2, 11, 4), (2, 11, 4), None, False),
    "fewer keys": ((2, 11, 4), (2, 3, 4), (2, 3, 4), None, False),
    "one query": ((2, 1, 4), (2, 7, 4), (2, 7, 4), None, False),
    "no query": ((2, 0, 4), (2, 7, 4), (2, 7, 4), None, False),
    "no key": ((2, 6, 4), (2, 0, 4), (2, 0, 4), None, False),
    "broadcast": ((1, 3, 8, 4), (2, 1, 8, 4), (2, 3, 8, 4), None, False),
    "grouped": ((2, 6, 8, 4), (2, 2, 8, 4), (2, 2, 8, 4), None, True),
    "mask": ((2, 8, 4), (2, 8, 4), (2, 8, 4), draw.random((8, 8)) < 0.5, False),
    "mask of keys": ((2, 8, 4), (2, 8, 4), (2, 8, 4), draw.random((2, 1, 8)) < 0.7, False),
    "bias": ((2, 8, 4), (2, 8, 4), (2, 8, 4), draw.standard_normal((2, 8, 8)), False),
    "bias of queries": ((2, 8, 4), (2, 8, 4), (2, 8, 4), draw.standard_normal((8, 1)), False),
}


def outcome(op, arrays, mask, grouped, causal=True, **static):
    """The result, and the first and second derivatives by all arrays of floats."""
    static = {"is_causal": causal, "scale": 0.7, "enable_gqa": grouped} | static
    floating = mask is not None and mask.dtype != bool
    if not floating:
        static["attn_mask"] = None if mask is None else jnp.asarray(mask)
    fn = derived(op, **static)
    args = [*arrays, jnp.asarray(mask)] if floating else list(arrays)
    cotangent = jnp.cos(jnp.arange(float(np.prod(jax.eval_shape(fn, *args).shape))))

    def first(*args):
        out, pull = jax.vjp(fn, *args)
        return out, pull(cotangent.reshape(out.shape).astype(out.dtype))

    if "key" in static:
        return first(*args)
    grads, pull, out = jax.vjp(lambda *a: first(*a)[::-1], *args, has_aux=True)
    return out, grads, pull(tuple(jnp.sin(g) for g in grads))


@functools.cache
def arrays_of(name):
    return [real(*s) for s in SAMPLES[name][:3]]


def by_blocks(name, causal, blocks):
    *_, mask, grouped = SAMPLES[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(att, "BLOCKS", blocks)
        patch.setattr(att, "LEAST", 0)
        return jax.jit(lambda *a: outcome(att.attention, a, mask, grouped, causal))(*arrays_of(name))


@functools.cache
def in_one(name, causal):
    return by_blocks(name, causal, ((0, 1),))


TWO, FOUR = ((3, 2), (0, 1)), ((6, 4), (0, 1))


@pytest.mark.parametrize(
    "causal, blocks", [(True, TWO), (True, FOUR), (False, FOUR)], ids=["causal-two", "causal-four", "all-four"]
)
@pytest.mark.parametrize("name", SAMPLES)
def test_blocks(name, causal, blocks):
    got, expected = by_blocks(name, causal, blocks), in_one(name, causal)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)
    arrays, (*_, mask, grouped) = arrays_of(name), SAMPLES[name]
    if mask is None:
        args = [torch.from_numpy(np.array(a)) for a in arrays]
        result = torch.nn.functional.scaled_dot_product_attention(
            *args, is_causal=causal, scale=0.7, enable_gqa=grouped
        )
        np.testing.assert_allclose(got[0], result.numpy(), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "all"])
def test_blocks_with_dropout(causal, monkeypatch):
    arrays = [real(2, 9, 4) for _ in range(3)]
    static = {"dropout_p": 0.4, "key": np.array([1, 2], np.uint32)}
    monkeypatch.setattr(att, "LEAST", 0)
    results = []
    for blocks in (((0, 1),), ((6, 4), (0, 1))):
        monkeypatch.setattr(att, "BLOCKS", blocks)
        run = jax.jit(lambda *a: outcome(att.attention_dropout, a, None, False, causal, **static))
        results.append(run(*arrays))
    for a, b in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


def spans(rows, columns, causal, matrices=16):
    shapes = [jax.ShapeDtypeStruct((matrices, n, 8), jnp.float32) for n in (rows, columns)]
    return att._spans(*shapes, causal)


def test_spans(monkeypatch):
    assert spans(300, 300, False) == [(0, 75, 300), (75, 150, 300), (150, 225, 300), (225, 300, 300)]
    assert spans(300, 300, True) == [(0, 75, 75), (75, 150, 150), (150, 225, 225), (225, 300, 300)]
    assert spans(64, 300, True) == [(0, 32, 32), (32, 64, 64)]
    assert spans(128, 100, True, matrices=32) == [(0, 64, 64), (64, 128, 100)]
    assert spans(63, 1000, True) == [(0, 63, 63)]
    assert spans(128, 128, True, matrices=8) == [(0, 128, 128)]
    assert all(len(spans(n, n, True)) <= att.MOST for n in range(1, 600))
    monkeypatch.setattr(backend, "on_cpu", lambda: False)
    assert spans(300, 200, True) == [(0, 300, 200)]
