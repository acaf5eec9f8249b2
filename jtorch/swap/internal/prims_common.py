"""torch._prims_common: shapes, strides and dtypes as PyTorch's decompositions ask for them, in Python's own integers."""

from collections.abc import Sequence

from ... import functions as torch
from ...core import dtype as dtypes
from ...core import shapes
from ...core.device import Device
from ...core.spec import Size
from ...creation import channels_last, channels_last_3d, contiguous_format
from ...tensor import Tensor

__all__ = [
    "Dim", "DimsType", "IntLike", "Number", "NumberType", "ShapeType", "StrideType", "TensorLike", "TensorLikeType",
    "canonicalize_dim", "canonicalize_dims", "check", "corresponding_complex_dtype", "corresponding_real_dtype", "dtype_to_type",
    "is_boolean_dtype", "is_channels_last_contiguous_2d", "is_channels_last_contiguous_3d", "is_complex_dtype", "is_contiguous",
    "is_float_dtype", "is_integer_dtype", "is_same_shape", "make_channels_last_2d_strides_for", "make_channels_last_3d_strides_for",
    "make_channels_last_strides_for", "make_contiguous_strides_for", "suggest_memory_format", "type_to_dtype",
]  # fmt: skip

ShapeType = Size | list[int] | tuple[int, ...]
StrideType = list[int] | tuple[int, ...]
DimsType = int | list[int] | tuple[int, ...]
Dim = IntLike = int
NumberType = bool | int | float | complex
Number = (bool, int, float, complex)
TensorLikeType = TensorLike = Tensor
DeviceLikeType = str | Device | int


def make_contiguous_strides_for(shape, row_major=True) -> tuple:
    """The strides of a dense tensor of this shape; without `row_major` the last two dimensions lie the other way round."""
    strides = shapes.contiguous_strides(shape)
    if row_major or len(strides) < 2:
        return strides
    return strides[:-2] + (1, max(shape[-2], 1))


_LAST = {3: "channels_last_1d", 4: "channels_last", 5: "channels_last_3d"}


def _from_fastest(ndim):
    """The dimensions of a channels-last tensor, from the one whose elements lie next to each other on."""
    return 1, *range(ndim - 1, 1, -1), 0


def _channels_last(shape, ndim):
    if len(shape) != ndim:
        raise RuntimeError(f"Only tensors of rank {ndim} can use the {_LAST[ndim]} memory format")
    strides, step = [0] * ndim, 1
    for d in _from_fastest(ndim):
        strides[d] = step
        step *= shape[d] if ndim == 3 else max(shape[d], 1)  # as PyTorch counts empty dimensions
    return tuple(strides)


def make_channels_last_2d_strides_for(shape) -> tuple:
    """The strides of a channels-last (N, C, H, W). RuntimeError: of another rank."""
    return _channels_last(shape, 4)


def make_channels_last_3d_strides_for(shape) -> tuple:
    """The strides of a channels-last (N, C, D, H, W). RuntimeError: of another rank."""
    return _channels_last(shape, 5)


def make_channels_last_strides_for(shape) -> tuple:
    """The strides of a channels-last tensor of rank 3 to 5. RuntimeError: of another rank."""
    if len(shape) not in _LAST:
        raise RuntimeError(f"no channels last format strides exist in {len(shape)} dimensions")
    return _channels_last(shape, len(shape))


def is_contiguous(a) -> bool:
    """Whether the elements lie in row-major order."""
    return a.is_contiguous()


def is_channels_last_contiguous_2d(a) -> bool:
    """Whether the elements of (N, C, H, W) lie channels last."""
    return a.ndim == 4 and a.is_contiguous(memory_format=channels_last)


def is_channels_last_contiguous_3d(a) -> bool:
    """Whether the elements of (N, C, D, H, W) lie channels last."""
    return a.ndim == 5 and a.is_contiguous(memory_format=channels_last_3d)


def _like_channels_last(x):
    """Whether the strides grow from the channels on, gaps allowed; of one channel, by themselves, they do not say so."""
    shape, strides = x.shape, x.stride()
    least = 1
    for d in _from_fastest(x.ndim):
        if shape[d] == 0 or strides[d] < least or d == 0 and least == strides[1]:
            return False
        least = strides[d] * max(shape[d], 1)
    return True


def suggest_memory_format(x):
    """The memory format that the strides are like; contiguous_format where they are like none."""
    if x.ndim in (4, 5) and _like_channels_last(x):
        return channels_last if x.ndim == 4 else channels_last_3d
    return contiguous_format


def is_same_shape(a: Sequence, b: Sequence) -> bool:
    """Whether two shapes are equal."""
    return tuple(a) == tuple(b)


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """The dimension counted from the front. IndexError: there is no such one."""
    if rank == 0 and not wrap_scalar:
        raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
    return shapes.wrap_dim(idx, max(rank, 1))


def canonicalize_dims(rank: int, indices, wrap_scalar: bool = True):
    """The same of one dimension or of a sequence of them."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, i, wrap_scalar) for i in indices)


def check(b: bool, s, exc_type=RuntimeError) -> None:
    """Raise exc_type(s()) unless b."""
    if not b:
        raise exc_type(s())


# --- dtypes --------------------------------------------------------------------------------------------------------


def is_boolean_dtype(dtype) -> bool:
    """Whether it is torch.bool."""
    return dtype.category == dtypes.BOOL


def is_float_dtype(dtype) -> bool:
    """Whether it is of real floating point numbers."""
    return dtype.is_floating_point


def is_complex_dtype(dtype) -> bool:
    """Whether it is of complex numbers."""
    return dtype.is_complex


def is_integer_dtype(dtype) -> bool:
    """Whether it is of integers; bool is not."""
    return dtype.category == dtypes.INT


def corresponding_real_dtype(dtype):
    """The dtype of the parts of complex numbers. KeyError: the dtype is of no such."""
    if not dtype.is_complex:
        raise KeyError(dtype)
    return dtype.to_real()


def corresponding_complex_dtype(dtype):
    """The dtype of complex numbers that have such parts. KeyError: there is none."""
    if not dtype.is_floating_point or not dtype.to_complex().is_complex:
        raise KeyError(dtype)
    return dtype.to_complex()


def dtype_to_type(dtype) -> type:
    """Python's type of an element: bool, int, float or complex."""
    if is_boolean_dtype(dtype):
        return bool
    if is_integer_dtype(dtype):
        return int
    return complex if is_complex_dtype(dtype) else float


def type_to_dtype(typ: type):
    """The dtype that a Python number of this type becomes. ValueError: no type of numbers."""
    if typ is bool:
        return dtypes.ALL["bool"]
    if typ is int:
        return dtypes.ALL["int64"]
    if typ not in (float, complex):
        raise ValueError(f"Invalid type {typ}!")
    found = torch.get_default_dtype()
    return found.to_complex() if typ is complex else found
