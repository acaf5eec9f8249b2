"""The copying forms of views: `expand_copy` and its like, tensors of their own with row-major strides."""

import inspect
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import errors
from ..core.dtype import dtype as DType
from ..core.dtype import scalar_name
from . import views
from .registry import ZERO, Array, View, composite, op


def _named(view: View, grad_name: str | Callable):
    if isinstance(grad_name, str):
        return f"{grad_name}_copy"
    return lambda args: f"{view.grad_name(*args.values())}_copy"


def _copying(view: View, name: str, where: str = "torch", silent: bool = False):
    """The op that reads a view at once."""

    def copied(input, *args, **kwargs):
        return view.apply(input, *args, **kwargs)

    first, *rest = view.signature.parameters.values()
    copied.__signature__ = inspect.Signature([first.replace(annotation=Array), *rest])
    copied.__doc__ = f"A copy of what `{name.removesuffix('_copy')}` shows."
    return op(copied, name=name, where=where, grad_name=_named(view, view.grad_name), out="exact", silent=silent)


alias_copy = _copying(views.alias, "alias_copy")
diagonal_copy = _copying(views.diagonal, "diagonal_copy")
expand_copy = _copying(views.expand, "expand_copy")
narrow_copy = _copying(views.narrow_by_int, "narrow_copy", "torch Tensor")


@narrow_copy.check
def _check_narrow(input, dim, start, length):
    size = input.shape
    if size and dim >= len(size):
        raise RuntimeError("Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.")
    if length < 0 and -len(size) <= dim and abs(start) <= size[dim]:
        raise errors.narrow_range(start, length, size[dim])


permute_copy = _copying(views.permute, "permute_copy")
select_copy = _copying(views.select, "select_copy")
slice_copy = _copying(views.slice, "slice_copy")
split_copy = _copying(views.unsafe_split, "split_copy", silent=True)
split_with_sizes_copy = _copying(views.split_with_sizes, "split_with_sizes_copy", silent=True)
squeeze_copy = _copying(views.squeeze, "squeeze_copy")
t_copy = _copying(views.t, "t_copy")
transpose_copy = _copying(views.transpose, "transpose_copy")
unbind_copy = _copying(views.unbind, "unbind_copy", silent=True)
unfold_copy = _copying(views.unfold, "unfold_copy")
unsqueeze_copy = _copying(views.unsqueeze, "unsqueeze_copy")
_view_copy = _copying(views.view_, "_view_copy", where="")
_view_copy.grad_name = "ViewBackward0_copy"


@composite(where="torch", out="exact")
def view_copy(input: Array, size=None, *, dtype=None):
    """A copy of what `view` shows: other sizes, or the memory read as another dtype."""
    if isinstance(size, DType) and dtype is None:
        size, dtype = None, size
    if isinstance(size, (tuple, list)) and dtype is None:
        return _view_copy(input, tuple(size))
    if dtype is None or size is not None:
        named = {} if dtype is None else {"dtype": dtype}
        raise errors.combination(
            "view_copy", (input, size), "(Tensor input, torch.dtype dtype) or (..., tuple of ints size)", named
        )
    return views.packed(input.view(dtype))


@composite(where="torch", out="exact")
def as_strided_copy(input: Array, size, stride, storage_offset: int | None = None):
    """A copy of what `as_strided` shows."""
    return views.packed(views.as_strided(input, tuple(size), tuple(stride), storage_offset))


@op(where="", grad_name="CopyBackwards")
def _copied(input: Array, src: Array) -> Array:
    """What `copy_` writes: `src` in the shape and dtype of `input`."""
    if jnp.issubdtype(src.dtype, jnp.complexfloating) and not jnp.issubdtype(input.dtype, jnp.complexfloating):
        src = src.real
    return jnp.broadcast_to(src, input.shape).astype(input.dtype)


_copied.vjp(input=ZERO, src=lambda g: g)


@op(where="torch", differentiable=False, out="exact")
def detach_copy(input: Array) -> Array:
    """A copy off the tape."""
    return input


@op(where="torch", out="exact", grad_name="ViewAsRealBackward0")
def view_as_real_copy(input: Array) -> Array:
    """Real and imaginary parts, as a last dimension of size 2."""
    if not jnp.iscomplexobj(input):
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return jnp.stack([input.real, input.imag], -1)


@op(where="torch", out="exact", grad_name="ViewAsComplexBackward0")
def view_as_complex_copy(input: Array) -> Array:
    """Complex numbers of the pairs in the last dimension."""
    wide = input.astype(jnp.float32) if input.dtype == np.float16 else input
    return lax.complex(wide[..., 0], wide[..., 1])


@view_as_complex_copy.check
def _check_pairs(input):
    pairs_only(input)


def pairs_only(spec):
    """Raise PyTorch's error unless a tensor can be read as complex numbers."""
    if spec.dtype.name not in ("float16", "float32", "float64"):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            + scalar_name(spec.dtype)
        )
    if not spec.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if spec.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if spec.strides[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % 2 for s in spec.strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
