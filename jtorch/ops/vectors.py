"""Products of the vectors in a tensor, and distances between them: cross, vecdot, cdist."""

import builtins
import math

import jax
import jax.numpy as jnp
import numpy as np

from .. import deprecations, errors, errors_nn
from ..core import dtype as dt
from . import distances
from .arguments import axis, scalar_name
from .backend import accumulator, conjugate, differentiated_as, extreme_over, magnitude
from .products import batch_shape, mt
from .registry import Array, composite, op


@op(where="linalg.cross", out="exact")
def linalg_cross(input: Array, other: Array, *, dim: int = -1) -> Array:
    """The cross products of vectors of length 3 along `dim`."""
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if input.dtype != other.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(input)} but found {scalar_name(other)}")
    kind = dt.promote(dt.of(input.dtype), dt.of(other.dtype)).np
    d = axis(dim, input.ndim)
    if input.shape[d] != 3 or other.shape[d] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[d]} and {other.shape[d]}"
        )
    batch_shape(input.shape, other.shape)
    if kind == np.bool_ and input.size and other.size:
        raise NotImplementedError("\"cross\" not implemented for 'Bool'")
    a, b = (jnp.moveaxis(x.astype(kind), d, 0) for x in (input, other))
    out = [a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3] for i in range(3)]
    return jnp.stack(out, d)


@composite(out="exact")
def cross(input: Array, other: Array, dim: int | None = None):
    """The cross products along `dim`, or along the first dimension of size 3."""
    if dim is None:
        deprecations.say("cross")
        shape = batch_shape(input.shape, other.shape)
        dim = next((d for d, n in enumerate(shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg_cross(input, other, dim=dim)


@op(where="linalg", grad_name="SumBackward1", out="linalg.vecdot: Expected out of dtype{want} but found {have}")
def vecdot(x: Array, y: Array, *, dim: int = -1) -> Array:
    """The sums of `conj(x) * y` along `dim`."""
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        raise RuntimeError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {scalar_name(x)}")
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {scalar_name(x)} and y of type "
            f"{scalar_name(y)} instead"
        )
    batch_shape(x.shape, y.shape)
    product = conjugate(x) * y
    return product.sum(axis(dim, product.ndim), dtype=accumulator(x.dtype)).astype(x.dtype)


def _cdist_name(args) -> str:
    by_matmul = args["p"] == 2 and builtins.max(args["x1"].shape[-2], args["x2"].shape[-2]) > 25
    return "ViewBackward0" if by_matmul else "CdistBackward0"


def _by_matmul(x1, x2, p, compute_mode):
    if compute_mode in (None, "use_mm_for_euclid_dist_if_necessary"):
        return p == 2 and (x1.shape[-2] > 25 or x2.shape[-2] > 25)
    return p == 2 and compute_mode == "use_mm_for_euclid_dist"


def _mixed_points(x1, x2, by_matmul):
    if by_matmul:
        return errors_nn.mm_dtype(dt.of(x1.dtype), dt.of(x2.dtype))
    return RuntimeError(f"expected scalar type {scalar_name(x1)} but found {scalar_name(x2)}")


@op(where="torch", grad_name=_cdist_name)
def cdist(
    x1: Array,
    x2: Array,
    p: float = 2.0,
    compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary",
) -> Array:
    """The p-norm distances between each row of one batch and each of another."""
    for name, x in (("X1", x1), ("X2", x2)):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    for name, x in (("X1", x1), ("X2", x2)):
        if not jnp.issubdtype(x.dtype, jnp.floating):
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {scalar_name(x)}")
        if x.dtype.itemsize < 4:
            raise errors.not_implemented("cdist", dt.of(x.dtype))
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    kind = x1.dtype
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if compute_mode is not None and compute_mode not in modes:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    by_matmul = _by_matmul(x1, x2, p, compute_mode)
    if x1.dtype != x2.dtype:
        if x1.size and x2.size:
            raise _mixed_points(x1, x2, by_matmul)
        x2 = x2.astype(kind)
    if by_matmul:
        squares = (x1 * x1).sum(-1)[..., :, None] + (x2 * x2).sum(-1)[..., None, :]
        return root(jnp.maximum(squares - 2 * jnp.matmul(x1, mt(x2)), 0))
    diff = magnitude(x1[..., :, None, :] - x2[..., None, :, :])
    if diff.shape[-1] == 0:
        return jnp.zeros(diff.shape[:-1], kind)
    if p == 0:
        return jnp.where(jnp.isnan(diff), diff, diff != 0).sum(-1)
    if p == 1:
        return diff.sum(-1)
    if p == 2:
        return root((diff * diff).sum(-1))
    if math.isinf(p):
        return extreme_over(diff, -1, False, True)
    powers = jnp.where(diff == 0, 0, jnp.where(diff == 0, 1, diff) ** p).sum(-1)
    return root(powers, 1 / p)


def _pulled(g, x1, x2, out, p, compute_mode):
    derived = lambda g, x1, x2, out: jax.vjp(lambda a, b: cdist.fn(a, b, p, compute_mode), x1, x2)[1](g)
    if x1.dtype != x2.dtype or not x1.shape[-1] or _by_matmul(x1, x2, p, compute_mode):
        return derived(g, x1, x2, out)
    by_pairs = lambda g, x1, x2, out: distances.pulled(g, x1, x2, out, p)
    return differentiated_as(by_pairs, derived)(g, x1, x2, out)


cdist.vjp_together("x1 x2", _pulled)
cdist.guards(x1=True, x2=True, out=True)


def root(x, power=0.5):
    """A root whose derivative at 0 is 0."""
    safe = jnp.where(x == 0, jnp.ones((), x.dtype), x)
    rooted = jnp.sqrt(safe) if power == 0.5 else safe**power
    return jnp.where(x == 0, jnp.zeros((), x.dtype), rooted)
