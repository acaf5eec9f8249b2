"""Products of groups of matrices, and convolution over time. Knows arrays, never Tensor."""

import jax.numpy as jnp

from .. import errors
from ..core import dtype as dtypes
from .linear import _dot
from .registry import Array, composite, op

# ---- grouped_mm ----


def _one_hot(offs, size, dtype):
    """For each group, which positions belong to it."""
    at = jnp.searchsorted(offs, jnp.arange(size, dtype=offs.dtype), side="right")
    return (at[None] == jnp.arange(offs.shape[0])[:, None]).astype(dtype)  # (groups, size)


@op(where="nn.functional", out=False)
def grouped_mm(
    mat_a: Array, mat_b: Array, *, offs: Array | None = None, bias: Array | None = None, out_dtype: object = None
) -> Array:
    """The products of groups of rows, columns or matrices; `offs` is where the groups end in the common dimension.

    Shape:
        (G, M, K) (G, K, N) -> (G, M, N)
        (rows, K) (G, K, N) -> (rows, N)
        (G, M, K) (K, columns) -> (M, columns)
        (M, K) (K, N) -> (G, M, N), K divided into groups
    """
    if offs is None:
        return _dot(mat_a, mat_b)
    if mat_a.ndim == 2 and mat_b.ndim == 2:
        hot = _one_hot(offs, mat_a.shape[1], mat_a.dtype)
        return _dot(mat_a[None] * hot[:, None, :], jnp.broadcast_to(mat_b, (hot.shape[0], *mat_b.shape)))
    if mat_a.ndim == 2:
        hot = _one_hot(offs, mat_a.shape[0], mat_a.dtype)
        return jnp.sum(_dot(mat_a[None] * hot[:, :, None], mat_b), 0).astype(mat_a.dtype)
    hot = _one_hot(offs, mat_b.shape[1], mat_b.dtype)
    return jnp.sum(_dot(mat_a, mat_b[None] * hot[:, None, :]), 0).astype(mat_a.dtype)


@grouped_mm.check
def _(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
    for name, x in (("mat_a", mat_a), ("mat_b", mat_b)):
        if x.ndim not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    if (offs is None) != (mat_a.ndim == 3 and mat_b.ndim == 3):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if out_dtype is not None and out_dtype is not mat_a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")


@composite(where="torch")
def _grouped_mm(self: Array, mat2: Array, offs: Array | None = None, bias: Array | None = None, out_dtype=None):
    """nn.functional.grouped_mm under the name of PyTorch's kernel."""
    return grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


# ---- products of 8-bit integers ----


@op(where="torch", out="exact", differentiable=False)
def _int_mm(input: Array, mat2: Array) -> Array:
    """The product of a matrix of int8 or uint8 and one of int8, summed in int32."""
    return jnp.matmul(input.astype(jnp.int32), mat2.astype(jnp.int32))


@_int_mm.check
def _check_int_mm(input, mat2):
    if input.ndim != 2:
        raise RuntimeError(f"int_mm_out_cpu: Expected self to be of dimension 2 but got {input.ndim}")
    if mat2.ndim != 2:
        raise RuntimeError(f"int_mm_out_cpu: Expected mat2 to be of dimension 2 but got {mat2.ndim}")
    if input.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got {input.shape[1]} and {mat2.shape[0]}"
        )
    if input.dtype not in (dtypes.int8, dtypes.uint8):
        raise RuntimeError(
            f"int_mm_out_cpu: Expected self dtype to be int8 or uint8 but got {errors.c_type(input.dtype)}"
        )
    if mat2.dtype is not dtypes.int8:
        raise RuntimeError(
            f"int_mm_out_cpu: Expected mat2 dtype to be of type int8 but got {errors.c_type(mat2.dtype)}"
        )


def _scaled(name):
    def refuse(*args, **kwargs):
        raise errors.unsupported(f"nn.functional.{name}", instead="a product of bfloat16 tensors")

    refuse.__doc__ = "Not supported: products of scaled 8-bit floats."
    return composite(name=name, where="nn.functional")(refuse)


scaled_mm = _scaled("scaled_mm")
scaled_grouped_mm = _scaled("scaled_grouped_mm")


# ---- conv_tbc ----


@op(where="torch nn.functional", out=False)
def conv_tbc(input: Array, weight: Array, bias: Array, pad: int = 0) -> Array:
    """Convolution over the first dimension of (time, batch, channels), with weights (width, channels, outputs)."""
    width = weight.shape[0]
    x = jnp.pad(input, ((pad, pad), (0, 0), (0, 0)))
    steps = x.shape[0] - width + 1
    out = bias
    for k in range(width):
        out = out + _dot(x[k : k + steps], weight[k])
    return out.astype(input.dtype)


@conv_tbc.check
def _(input, weight, bias, pad=0):
    if input.ndim != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.ndim != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    if input.shape[2] != weight.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight.shape[2] != bias.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
