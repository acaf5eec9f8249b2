"""The product that all of matmul's relatives are made of, and the checks that they share. Knows arrays, never Tensor."""

import builtins

import jax.numpy as jnp
import numpy as np

from .. import errors
from . import small
from .arguments import scalar_name
from .backend import on_cpu, on_tpu, one_of
from .registry import Array

_C_NAMES = {
    "Float": "float", "Double": "double", "Half": "c10::Half", "BFloat16": "c10::BFloat16", "Long": "long int",
    "Int": "int", "Short": "short int", "Char": "signed char", "Byte": "unsigned char", "Bool": "bool",
    "UInt16": "short unsigned int", "UInt32": "unsigned int", "UInt64": "long unsigned int", "ComplexFloat": "c10::complex<float>", "ComplexDouble": "c10::complex<double>",
}  # fmt: skip


def c_name(x) -> str:
    """The dtype of an array as C++ names it, which some of PyTorch's messages do."""
    name = scalar_name(x)
    return _C_NAMES.get(name, name)


_BOOL_KERNELS = {(1, 1): "dot", (1, 2): "addmv_impl_cpu", (2, 2): "addmm_impl_cpu_"}


def product_of(a: Array, b: Array) -> Array:
    """`a @ b` of equal dtypes; the result has theirs."""
    if a.dtype == np.bool_:
        if a.size and b.size:
            ranks = sorted((a.ndim, b.ndim))
            kernel = "bmm" if ranks[0] > 2 else _BOOL_KERNELS[ranks[0], min(ranks[1], 2)]
            raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")
        return jnp.matmul(a.astype(jnp.int8), b.astype(jnp.int8)).astype(bool)
    if a.ndim > 2 and b.ndim > 2:
        batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        if small.multiplies(batch, *a.shape[-2:], b.shape[-1], a.dtype):
            return small.product(a, b)
    if a.dtype.kind in "iu" and a.dtype.itemsize != 4:
        return _whole_product(a, b)
    return jnp.matmul(a, b)


MANY_TERMS = 1 << 17  # of a product of integers, from which on floats compute it on the CPU


def _whole_product(a: Array, b: Array) -> Array:
    """`a @ b` of integers. For those of 32 bits XLA has vectorised products on the CPU, for others it adds up term by term."""
    inner, bits = a.shape[-1], 8 * a.dtype.itemsize
    if bits == 64 and on_tpu():
        return _term_by_term(a, b)
    if not on_cpu() or a.size * (b.shape[-1] if b.ndim > 1 else 1) < MANY_TERMS:
        return jnp.matmul(a, b)
    plain = lambda: jnp.matmul(a, b)
    by = lambda wide: jnp.matmul(a.astype(wide), b.astype(wide)).astype(jnp.int64).astype(a.dtype)
    if bits <= 16:  # every sum is exact
        short = inner << 2 * bits <= 1 << 24
        return by(jnp.float32 if short else jnp.float64) if inner << 2 * bits <= 1 << 53 else plain()
    if a.dtype != jnp.int64:
        return plain()
    size = lambda x: jnp.max(jnp.abs(x.astype(jnp.float64)))
    return one_of(size(a) * size(b) * inner < 2.0**53, lambda: by(jnp.float64), plain)


def _term_by_term(a: Array, b: Array) -> Array:
    """`a @ b` as one loop: XLA has no products of 64-bit integers for TPUs."""
    if b.ndim == 1:
        return jnp.sum(a * b, -1, dtype=a.dtype)
    return jnp.sum(a[:, None] * b if a.ndim == 1 else a[..., None] * b[..., None, :, :], -2, dtype=a.dtype)


def mt(x: Array) -> Array:
    """Matrices transposed, batch by batch."""
    return jnp.swapaxes(x, -1, -2)


def same_dtype(a, b):
    """The check of `mm` that both factors have one dtype."""
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {c_name(a)} != {c_name(b)}")


def inner_sizes(a, b):
    """The check of `mm` that rows are as long as columns."""
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )


def expected_dtype(a, b):
    """The check of `bmm` that both factors have one dtype."""
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(a)} but found {scalar_name(b)}")


def batch_shape(a, b) -> tuple:
    """Two shapes broadcast together, or PyTorch's error."""
    ndim = builtins.max(len(a), len(b))
    a, b = (1,) * (ndim - len(a)) + tuple(a), (1,) * (ndim - len(b)) + tuple(b)
    for d, (n, m) in enumerate(zip(a, b)):
        if n != m and 1 not in (n, m):
            raise errors.broadcast(n, m, d)
    return tuple(m if n == 1 else n for n, m in zip(a, b))
