"""Shapes and memory layouts of tensors: reshape, view, contiguous, clone."""

import builtins
import functools
import math

from . import errors, errors_arguments, operators
from .core import dtype as dtypes
from .core import shapes
from .core.dtype import dtype as DType
from .core.layout import view_strides
from .core.spec import Size, Spec
from .creation import (
    channels_last,
    contiguous_format,
    preserve_format,
    size_of,
    strides_for,
)  # fmt: skip
from .dispatch import (
    call_view,
    function_of,
)  # fmt: skip
from .dispatch.statics import whole_of
from .ops import registry
from .tensor import Tensor, make
from .tracebacks import shorten


def op_named(name):
    return function_of(registry.OPS[name])


lookup = operators.lookup


def view_named(name, t, *statics):
    return call_view(registry.VIEWS[name], t, statics)


def reshape(input, *size, shape=None) -> Tensor:
    """The same elements in another shape: a view where one layout can say it, else a copy."""
    try:
        if shape is None and not size:
            raise errors.missing_argument("reshape", "shape")
        size, name = _as_size(input._spec, size_of(size if shape is None else (shape,), "reshape"))
        if name is None:
            return lookup("_unsafe_view")(clone(input, memory_format=contiguous_format), size)
        return view_named(name, input, size)
    except Exception as error:
        shorten(error)
        raise


@functools.lru_cache(4096)
def _as_size(spec, size):
    """The whole size that is meant, and the view op that gives it; None where no layout can."""
    size = shapes.infer_size(size, spec.numel)
    if view_strides(tuple(spec.shape), spec.strides, size) is None:
        return size, None
    return size, "view" if spec.contiguous else "_reshape_alias"


def reshape_function(input, shape) -> Tensor:
    """The same elements in another shape: a view where one layout can say it, else a copy."""
    return reshape(input, shape)


reshape_function.__qualname__ = "reshape"  # by which Python's errors about its arguments call it


def view(self, *shape, size=None, dtype=None) -> Tensor:
    """The same storage in another shape, or read as another dtype."""
    try:
        size = shape if size is None else (size,)
        if dtype is not None or (len(size) == 1 and isinstance(size[0], DType)):
            return view_dtype(self, dtype or size[0])
        if not size or isinstance(size[0], (str, float)):
            raise errors.combination("view", size, "(torch.dtype dtype) or (tuple of ints size)")
        return view_named("view", self, size_of(size, "view"))
    except Exception as error:
        shorten(error)
        raise


def view_dtype(self, dtype) -> Tensor:
    """The same memory read as another element type."""
    spec = self._spec
    if dtype is spec.dtype:
        return make(self._storage, spec, self._offset)  # without a gradient, as of any other dtype
    old, new = spec.dtype.itemsize, dtype.itemsize
    names = f"{dtypes.scalar_name(spec.dtype)} as {dtypes.scalar_name(dtype)}"
    shape, strides, offset = list(spec.shape), list(spec.strides), self._offset
    if old != new and not shape:
        raise RuntimeError(f"self.dim() cannot be 0 to view {names} (different element sizes)")
    if old > new:
        if strides[-1] != 1:
            raise RuntimeError(
                f"self.stride(-1) must be 1 to view {names} (different element sizes), but got {strides[-1]}"
            )
        ratio = old // new
        shape[-1] *= ratio
        strides = [s * ratio for s in strides[:-1]] + [1]
        offset *= ratio
    elif old < new:
        ratio = new // old
        if shape[-1] % ratio:
            raise RuntimeError(
                f"self.size(-1) must be divisible by {ratio} to view {names} (different element sizes), but "
                f"got {shape[-1]}"
            )
        if offset % ratio:
            raise RuntimeError(
                f"self.storage_offset() must be divisible by {ratio} to view {names} (different element "
                f"sizes), but got {offset}"
            )
        if strides[-1] != 1:
            raise RuntimeError(
                f"self.stride(-1) must be 1 to view {names} (different element sizes), but got {strides[-1]}"
            )
        if any(s % ratio for s in strides[:-1]):
            bad = next(i for i, s in enumerate(strides[:-1]) if s % ratio)
            raise RuntimeError(
                f"self.stride({bad}) must be divisible by {ratio} to view {names} (different element sizes), "
                f"but got {strides[bad]}"
            )
        shape[-1] //= ratio
        strides = [s // ratio for s in strides[:-1]] + [1]
        offset //= ratio
    made = make(self._storage, Spec.of(tuple(shape), tuple(strides), dtype, spec.device), offset)
    return made


def reshape_as(self, other) -> Tensor:
    """The same elements in the shape of another tensor."""
    if not isinstance(other, Tensor):
        raise errors.argument("reshape_as", "other", "Tensor", other, 1)
    return reshape(self, tuple(other._spec.shape))


def sum_to_size(self, *sizes, size=None) -> Tensor:
    """The sum over the dimensions along which `size` would broadcast to this tensor's shape."""
    size, shape = size_of(sizes if size is None else (size,)), tuple(self._spec.shape)
    lead = len(shape) - len(size)
    if lead < 0 or any(n not in (1, m) for n, m in zip(size, shape[lead:])):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}.")
    if not size:
        return lookup("sum")(self)
    dims = tuple(d for d, m in enumerate(shape) if d < lead or size[d - lead] == 1 and m != 1)
    made = lookup("sum")(self, dims, True) if dims else self
    return reshape(made, size) if lead else made


def broadcast_to(self, *sizes, size=None) -> Tensor:
    """A view of this tensor in a larger shape."""
    if size is None and not sizes:
        raise errors.missing_argument("broadcast_to", "size")
    return lookup("broadcast_to")(self, size_of(sizes if size is None else (size,)))


def one_by_one(name):
    """The method of a function whose other argument may be a tuple of ints: they may be given without parentheses too."""

    def method(self, *args, **named):
        return lookup(name)(self, *(args if len(args) < 2 else (args,)), **named)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`jtorch.{name}` of this tensor; several ints need no parentheses."
    return method


def broadcast_shapes(*sizes):
    """The shape to which tensors of these shapes broadcast."""
    sizes = [(s,) if isinstance(s, int) else tuple(s) for s in sizes]
    if any(n < 0 for s in sizes for n in s):
        raise ValueError("Attempting to broadcast a dimension with negative length!")
    try:
        return Size(shapes.broadcast(*sizes)) if sizes else Size(())
    except RuntimeError:
        raise errors_arguments.broadcast_shapes(sizes) from None


def flatten(input, start_dim=0, end_dim=-1) -> Tensor:
    """Dimensions start_dim .. end_dim joined into one."""
    try:
        size = _flat_size(input._spec, start_dim, end_dim)
        return input if size is None else reshape(input, size)
    except Exception as error:
        shorten(error)
        raise


@functools.lru_cache(4096, typed=True)
def _flat_size(spec, start_dim, end_dim):
    """The size of `flatten`'s result; None where there is nothing to join."""
    start_dim, end_dim = whole_of("flatten", "start_dim", start_dim), whole_of("flatten", "end_dim", end_dim)
    first, last = shapes.wrap_dim(start_dim, spec.ndim), shapes.wrap_dim(end_dim, spec.ndim)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if spec.ndim == 0:
        return (1,)
    if first == last:
        return None
    shape = tuple(spec.shape)
    return (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])


def ravel(input) -> Tensor:
    """All elements in one dimension."""
    return reshape(input.contiguous(), -1)


def contiguous(self, memory_format=contiguous_format) -> Tensor:
    """The tensor itself when it is laid out so already, else a copy that is."""
    if is_contiguous(self, memory_format):
        return self
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return clone(self, memory_format=memory_format)


def is_contiguous(self, memory_format=contiguous_format) -> bool:
    """Whether the elements lie in memory in the order of the format."""
    spec = self._spec
    if memory_format is contiguous_format or memory_format is preserve_format:
        return spec.contiguous
    want = 4 if memory_format is channels_last else 5
    return spec.ndim == want and shapes.is_channels_last(tuple(spec.shape), spec.strides)


def dim_order(self, ambiguity_check=False) -> tuple[int, ...]:
    """The dimensions from the outermost in, as the elements lie in memory.

    ambiguity_check: True raises where another order says the same; a list of memory formats, unless the tensor is of just one of them
    """
    formats = [] if isinstance(ambiguity_check, bool) else ambiguity_check
    if type(formats) is not list or not all(isinstance(f, type(contiguous_format)) for f in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    shape, strides = tuple(self._spec.shape), self._spec.strides
    order, undecided = shapes.stride_order(shape, strides)
    equal = 1 in shape or builtins.any(a == b for a, b in zip(strides, strides[1:]))
    if (
        ambiguity_check is not False
        and equal
        and builtins.sum(self.is_contiguous(memory_format=f) for f in formats) != 1
    ):
        raise errors_arguments.dim_order(", or cannot map to exact one of the given memory formats")
    plain, last = self.is_contiguous(), len(shape) == 4 and shapes.is_channels_last(shape, strides)
    if undecided and ambiguity_check and plain == last and len(shape) > 1:
        raise errors_arguments.dim_order("")
    return order


def clone(input, *, memory_format=preserve_format) -> Tensor:
    """A copy, differentiable."""
    made = op_named("clone")(input)
    spec = made._spec
    if memory_format is None or memory_format is preserve_format:
        strides = tuple(shapes.empty_like_strides(tuple(input._spec.shape), input._spec.strides))
    else:
        strides = tuple(strides_for(spec.shape, memory_format))
    return with_strides(made, strides)


def with_strides(t, strides):
    """A fresh tensor's storage declared to lie in memory with these (dense) strides."""
    spec = t._spec
    if spec.strides != strides:
        spec = Spec.of(tuple(spec.shape), strides, spec.dtype, spec.device)
        t._spec = t._storage.spec = spec
    return t


def transposed(self) -> Tensor:
    """The dimensions in reverse order."""
    n = self._spec.ndim
    if n == 2:
        return view_named("permute", self, (1, 0))
    warn_reversed(n)
    return view_named("permute", self, tuple(builtins.range(n - 1, -1, -1)))


def warn_reversed(ndim) -> None:
    """Of `T` on other than matrices."""
    if ndim == 0:
        errors.warn("Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.")
    else:
        errors.warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an "
            "error in a future release. Consider `x.mT` to transpose batches of matrices or `x.permute(*torch.arange("
            "x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
        )


def matrix_transposed(self) -> Tensor:
    """The last two dimensions swapped."""
    if self._spec.ndim < 2:
        check_matrix(self._spec.ndim, "mT")
        return self
    return view_named("transpose", self, -2, -1)


def check_matrix(ndim, name) -> None:
    """Of `mT` or `mH` on what has fewer than two dimensions: a number is returned as it is, with a warning."""
    if ndim == 1:
        raise errors.matrix_rank(ndim, name)
    instead = "This function is the identity in these cases." if name == "mT" else "Consider using x.conj()."
    errors.warn(f"Tensor.{name} is deprecated on 0-D tensors. {instead}")


def hermitian(self) -> Tensor:
    if self._spec.ndim not in (0, 2):
        raise errors.matrix_rank(self._spec.ndim, "H")
    if self._spec.ndim == 0:
        check_matrix(0, "H")
    turned = view_named("transpose", self, 0, 1) if self._spec.ndim else self
    return op_named("conj")(turned) if self.is_complex() else turned


def batch_hermitian(self) -> Tensor:
    if self._spec.ndim < 2:
        check_matrix(self._spec.ndim, "mH")
        return op_named("conj")(self) if self.is_complex() else self
    return op_named("conj")(matrix_transposed(self)) if self.is_complex() else matrix_transposed(self)
