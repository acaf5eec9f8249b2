"""Complex tensors and their parts as views of one storage: real, imag, view_as_real, view_as_complex."""

import types

from .core.record import tls
from .core.spec import Spec
from .dispatch import function_of
from .dispatch.view import seen_through
from .ops import registry
from .ops.copies import pairs_only
from .tensor import Tensor, edge_of, make, seen_now

# As a dispatch mode is told of them.
_CALLS = {name: types.SimpleNamespace(name=name) for name in ("view_as_real", "view_as_complex", "real", "imag")}


def _seen_by_a_mode(me, name, t):
    """What a dispatch mode makes of one of these views; None where there is none that sees views."""
    return me.special(_CALLS[name], (t,))[1] if getattr(me.special, "sees_views", False) else None


def _part(again, t, name, dtype, shape, strides, offset) -> Tensor:
    """`again(t)`: a view of `t`'s storage read as another dtype; `name` is the op that computes the same, for the derivative."""
    me = tls.me
    view = make(t._storage, Spec.of(tuple(shape), tuple(strides), dtype, t._spec.device), offset)
    base = t if t._base is None else t._base
    view._base = base
    view._seen = seen_now(base)
    special, me.special = me.special, None  # the op stands for its node alone: nobody calls it
    try:
        if me.grad and edge_of(t) is not None:
            view._edge = function_of(registry.OPS[name])(t)._edge
    finally:
        me.special = special
    if special is not None and "_tangent" in t.__dict__:
        _view_tangent(me, again, t, view)
    return view


def _view_tangent(me, again, t, view):
    """In forward mode: the same view of the tangent goes along."""
    level, tangent = t.__dict__["_tangent"]
    if level is me.extra.get("dual"):
        tangent, seen = seen_through(tangent, t._spec, again)
        t.__dict__["_tangent"] = level, tangent
        view.__dict__["_tangent"] = level, seen


def view_as_real(input) -> Tensor:
    """A view of a complex tensor as real numbers: a last dimension of size 2 holds real and imaginary parts."""
    spec = input._spec
    if not spec.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    me = tls.me
    if me.special is not None and (seen := _seen_by_a_mode(me, "view_as_real", input)) is not None:
        return seen
    strides = (*(2 * s for s in spec.strides), 1)
    return _part(
        view_as_real, input, "view_as_real_copy", spec.dtype.to_real(), (*spec.shape, 2), strides, 2 * input._offset
    )


def view_as_complex(input) -> Tensor:
    """A view of a real tensor, whose last dimension of size 2 holds real and imaginary parts, as complex numbers."""
    spec = input._spec
    pairs_only(spec)
    if input._offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    me = tls.me
    if me.special is not None and (seen := _seen_by_a_mode(me, "view_as_complex", input)) is not None:
        return seen
    strides = tuple(s // 2 for s in spec.strides[:-1])
    return _part(
        view_as_complex,
        input,
        "view_as_complex_copy",
        spec.dtype.to_complex(),
        spec.shape[:-1],
        strides,
        input._offset // 2,
    )


def real(input) -> Tensor:
    """The real parts: of a complex tensor a view, a real tensor itself."""
    spec = input._spec
    if not spec.dtype.is_complex:
        return input
    me = tls.me
    if me.special is not None and (seen := _seen_by_a_mode(me, "real", input)) is not None:
        return seen
    strides = (2 * s for s in spec.strides)
    return _part(real, input, "real", spec.dtype.to_real(), spec.shape, strides, 2 * input._offset)


def imag(input) -> Tensor:
    """The imaginary parts of a complex tensor, as a view."""
    spec = input._spec
    if not spec.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    me = tls.me
    if me.special is not None and (seen := _seen_by_a_mode(me, "imag", input)) is not None:
        return seen
    strides = (2 * s for s in spec.strides)
    return _part(imag, input, "imag", spec.dtype.to_real(), spec.shape, strides, 2 * input._offset + 1)
