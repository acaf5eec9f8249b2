"""Complex tensors and their parts as views of one storage: real, imag, view_as_real, view_as_complex."""

from .core.record import tls
from .core.spec import Spec
from .dispatch import function_of
from .ops import registry
from .ops.copies import pairs_only
from .tensor import Tensor, edge_of, make, seen_now


def _part(t, name, dtype, shape, strides, offset) -> Tensor:
    """A view of `t`'s storage read as another dtype; `name` is the op that computes the same, for the derivative."""
    view = make(t._storage, Spec.of(tuple(shape), tuple(strides), dtype, t._spec.device), offset)
    base = t if t._base is None else t._base
    view._base = base
    view._seen = seen_now(base)
    if tls.me.grad and edge_of(t) is not None:
        view._edge = function_of(registry.OPS[name])(t)._edge
    return view


def view_as_real(input) -> Tensor:
    """A view of a complex tensor as real numbers: a last dimension of size 2 holds real and imaginary parts."""
    spec = input._spec
    if not spec.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if tls.me.special is not None:
        return function_of(registry.OPS["view_as_real_copy"])(input)
    strides = (*(2 * s for s in spec.strides), 1)
    return _part(input, "view_as_real_copy", spec.dtype.to_real(), (*spec.shape, 2), strides, 2 * input._offset)


def view_as_complex(input) -> Tensor:
    """A view of a real tensor, whose last dimension of size 2 holds real and imaginary parts, as complex numbers."""
    spec = input._spec
    pairs_only(spec)
    if input._offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    if tls.me.special is not None:
        return function_of(registry.OPS["view_as_complex_copy"])(input)
    strides = tuple(s // 2 for s in spec.strides[:-1])
    return _part(input, "view_as_complex_copy", spec.dtype.to_complex(), spec.shape[:-1], strides, input._offset // 2)


def real(input) -> Tensor:
    """The real parts: of a complex tensor a view, a real tensor itself."""
    spec = input._spec
    if not spec.dtype.is_complex:
        return input
    if tls.me.special is not None:
        return function_of(registry.OPS["real"])(input)
    strides = (2 * s for s in spec.strides)
    return _part(input, "real", spec.dtype.to_real(), spec.shape, strides, 2 * input._offset)


def imag(input) -> Tensor:
    """The imaginary parts of a complex tensor, as a view."""
    spec = input._spec
    if not spec.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if tls.me.special is not None:
        return function_of(registry.OPS["imag"])(input)
    strides = (2 * s for s in spec.strides)
    return _part(input, "imag", spec.dtype.to_real(), spec.shape, strides, 2 * input._offset + 1)
