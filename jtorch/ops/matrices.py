"""What the families of torch.linalg share: checks, adjoints, strides of columns, and errors about values."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import errors
from ..core import blas, shapes
from . import registry
from .arguments import scalar_name
from .places import of_values
from .products import batch_shape


def supported(A, kernel):
    """torch's error for dtypes that a LAPACK routine does not exist for."""
    blas.lapack_for(max(A.shape[-2:], default=0))
    if not jnp.issubdtype(A.dtype, jnp.inexact) or A.dtype.itemsize < 4:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(A)}'")


def inexact(A, name, kernel=None):
    """torch's errors for dtypes other than the four of LAPACK; `kernel`: half precision is refused by its name."""
    blas.lapack_for(max(A.shape[-2:], default=0))
    if not jnp.issubdtype(A.dtype, jnp.inexact):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {scalar_name(A)}")
    if kernel is not None:
        if A.size:
            supported(A, kernel)
    elif A.dtype.itemsize < 4:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {scalar_name(A)}")


def square(A, name):
    """torch's errors for what is no batch of square matrices."""
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )


def squares(A, name, kernel=None):
    square(A, name)
    inexact(A, name, kernel)


def matrices(A, name, kernel=None):
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    inexact(A, name, kernel)


def mh(x):
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def real_dtype(dtype):
    return jnp.finfo(dtype).dtype


def from_triangle(A, lower=True):
    """The matrix that one triangle of A stands for; its derivative is that of the mean of both."""
    half = jnp.tril(A, -1) if lower else jnp.triu(A, 1)
    own = jnp.diagonal(A, 0, -2, -1).real.astype(A.dtype)
    on = np.eye(A.shape[-1], dtype=bool)  # chosen, not multiplied: 0 times a nan is one
    whole = jnp.where(on, own[..., None], half + mh(half))
    mean = (A + mh(A)) / 2
    return jnp.where(jnp.isfinite(mean), lax.stop_gradient(whole - mean) + mean, whole)


def broadcast_batches(*matrices):
    lead = ()
    for m in matrices:
        lead = batch_shape(lead, m.shape[:-2])
    return tuple(jnp.broadcast_to(m, (*lead, *m.shape[-2:])) for m in matrices)


# ---------------------------------------------------------------- strides


def column_strides(shape) -> tuple[int, ...]:
    """Strides of matrices that lie column by column, as LAPACK leaves them."""
    if len(shape) < 2:
        return shapes.contiguous_strides(shape)
    turned = shapes.contiguous_strides((*shape[:-2], shape[-1], shape[-2]))
    return (*turned[:-2], turned[-1], turned[-2])


def columns(*which, of_fresh=False):
    """The `strides` of an op whose results `which` lie column by column; `of_fresh`: but not a resized out=."""

    def strides(outs, *args, **kwargs):
        return tuple(column_strides(tuple(o.shape)) if k in which else None for k, o in enumerate(outs))

    strides.of_fresh = (lambda input: True) if of_fresh else None
    return strides


# ---------------------------------------------------------------- errors about values

SINGULAR = (
    "The diagonal element {info} is zero, the inversion could not be completed because the input matrix is singular."
)
NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite (the leading minor of "
    "order {info} is not positive-definite)."
)
DEFICIENT = (
    "The least squares solution could not be computed because the input matrix does not have full rank "
    "(error code: {info})."
)
UNSOLVABLE = "The solver failed because the input matrix is singular."
NOT_FINITE = "The algorithm failed to converge because the input matrix contained non-finite values."
ZERO_PIVOT = (
    "U[{info},{info}] is zero and using it on lu_solve would result in a division by zero. If you still want to "
    "perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
)


def failure(name: str, words: str, info: np.ndarray) -> str | None:
    """torch's message for the first matrix whose `info` is not 0, None when all is well."""
    info = np.asarray(info)
    bad = np.flatnonzero(info)
    if not bad.size:
        return None
    where = f"(Batch element {bad[0]}): " if info.ndim else ""
    return f"{name}: {where}" + words.format(info=int(info.flat[bad[0]]))


def demand(name: str, words: str, info, error=errors.LinAlgError):
    """Raise where a matrix had no factors. This waits for the value, as torch does on a GPU; under a jax
    transformation and in a compiled region, where there is none, nothing is checked."""
    host = registry.host_value(info, True)
    if host is not None:
        message = failure(name, words, host)
        if message is not None:
            of_values(host)
            raise error(message)
