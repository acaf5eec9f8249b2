"""Writing to tensors: through views, into `out=`, and what a write does to the history of a tensor and its base."""

import jax

from .. import errors
from ..autograd import node as tape
from ..autograd.derive import differentiable
from ..autograd.derive_views import write_plan
from ..core import dtype as dtypes
from ..core import shapes
from ..core import storage as storages
from ..core.program import Plan
from ..core.record import tls
from ..core.spec import Spec, extent
from ..errors_autograd import view_of_leaf
from ..ops import registry
from ..tensor import CONSTANTS, Apart, Tensor, edge_of, move_retained, value_of, view_edge, wrap


def copy_to_out(out, result, cast=False):
    """Write a result into an `out=` tensor, resizing it as PyTorch does. `cast`: into any dtype."""
    if out._spec.device is not result._spec.device:
        raise RuntimeError(
            f"Expected out tensor to have device {result._spec.device}, but got {out._spec.device} instead"
        )
    if not cast and not dtypes.can_cast(result._spec.dtype, out._spec.dtype):
        raise RuntimeError(
            f"result type {dtypes.scalar_name(result._spec.dtype)} can't be cast to the desired output type "
            f"{dtypes.scalar_name(out._spec.dtype)}"
        )
    if out._spec.shape != result._spec.shape:
        if out._spec.numel:
            errors.warn(
                f"An output with one or more elements was resized since it had shape {list(out._spec.shape)}, which does "
                f"not match the required output shape {list(result._spec.shape)}. This behavior is deprecated, and in a "
                "future PyTorch release outputs will not be resized unless they have zero elements. You can explicitly "
                "reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0)."
            )
        spec = result._spec.with_dtype(out._spec.dtype)
        make_room(out, spec)
    write(out, cast_value(result, out._spec.dtype))


def make_room(t, spec):
    """Give an `out=` another shape (resize_), for a result that is written to it next: what its storage holds beyond it stays."""
    storage = t._storage
    if t._offset or storage.host is not None or storage.spec.nbytes > spec.nbytes:
        storages.grow(storage, t._offset + extent(spec), spec.dtype)
    else:
        storages.replace(storage, zeros_value(Spec.dense(tuple(spec.shape), spec.dtype, spec.device)), spec)
    t._spec = spec


def zeros_value(spec):
    plan = _zeros.get(spec)
    if plan is None:
        shape, np_dtype = tuple(spec.shape), spec.dtype.np
        plan = _zeros[spec] = Plan(None, "zeros", lambda: jax.numpy.zeros(shape, np_dtype), (), specs=(spec,))
    me = tls.me
    graph = me.graph if me.graph.device is spec.device else me.graph_on(spec.device)
    return graph.recn(plan, ())[0]


_zeros: dict = {}
_casts: dict = {}


def cast_value(t, dtype):
    """A tensor's value in another dtype, off the tape."""
    value = value_of(t)
    spec = t._spec
    if spec.dtype is dtype:
        return value
    key = (spec, dtype)
    plan = _casts.get(key)
    if plan is None:
        np_dtype = dtype.np
        out = Spec.dense(tuple(spec.shape), dtype, spec.device)
        plan = _casts[key] = Plan(
            None, "cast", lambda a: registry.OPS["_to_copy"].fn(a, dtype=dtype) if "_to_copy" in registry.OPS else a.astype(np_dtype),
            (spec,), specs=(out,),
        )  # fmt: skip
    me = tls.me
    graph = me.graph if me.graph.device is spec.device else me.graph_on(spec.device)
    return graph.rec1(plan, value)


def write(t, value, name="copy_"):
    """Swap in a new value for a tensor, through its view if it is one. name: of the call, for errors."""
    storage = t._storage
    if storage.version < tls.me.born:
        if storage.version < 0:
            raise errors.inference_inplace()
        value = CONSTANTS["own"](storage, value, name)
    storages.write(storage, t._spec, t._offset, value)
    apart = (t if t._base is None else t._base)._seen
    if type(apart) is Apart:
        storage.version -= 1
        apart.version += 1


def check_inplace(t, others=()):
    """PyTorch's rules for what may be written to while gradients are recorded.

    others: operands of the write; should one of them require grad, `t` will.
    """
    if t._base is not None:
        needs = t.requires_grad
        made = t.__dict__.get("_made")
        if made is not None and (needs or any(getattr(x, "requires_grad", False) for x in others)):
            raise errors.view_made(made, t._edge)
        if needs and t._base._edge is None:
            raise view_of_leaf()
        if needs and t._edge is None:  # its base got a history that nobody has asked this view for
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if t._rg:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def began_at(storage):
    """The version with which a write gave the storage its history; 0 where it had one before its first write."""
    last = getattr(storage, "written", None)
    return 0 if last is None else last[2]


def write_on_tape(t, value, node, k=0, name="copy_"):
    """Write `value`, the result `k` of `node` (or of nothing differentiable), into a tensor and give it that history."""
    me = tls.me
    storage = t._storage
    base = t._base
    write(t, value, name)
    if node is not None and node.bwd is not None and node.bwd.guard_out:
        node.guards.append((storage, storage.version))
    if not me.grad:
        return
    before = t._edge if base is None else base._edge
    if node is None:
        if me.born > 0:  # inside func's transformations, where JAX knows what the value depends on
            storage.written = None
    else:
        began = storage.version if before is None else began_at(storage)
        storage.written = (node.name() if base is None else "torch::autograd::CopySlices", k, began)
    if base is None:
        t._edge = None if node is None else (node, k)
        if before is not None and before[0].retained:
            move_retained(t, before)
        return
    base_edge = edge_of(base)
    if node is None and base_edge is None:
        return
    if base._spec.dtype.to_real() is not t._spec.dtype.to_real():
        raise errors.unsupported("gradients through a write to a view of another dtype", "an out-of-place operation")
    before_edge = t._edge
    if node is not None and before_edge is not None and (before_edge[0].pre_hooks or before_edge[0].hooks):
        _pass_by(node, before_edge, view_edge(base, t, base_edge))
    base._edge = copy_slices(base, base_edge, t, None if node is None else (node, k))
    base._rg = False
    t._seen = None
    edge_of(t)
    for x, e in ((base, before), (t, before_edge)):
        if e is not None and e[0].retained:
            move_retained(x, e)


def _pass_by(node, edge, other):
    """Let the gradient of what a node has written over go to the base by another way: hooks of the view as it was do not run."""
    at = node.edges.index(edge) if edge in node.edges else None
    if at is not None and other is not None:
        node.sequence, other[0].sequence = other[0].sequence, node.sequence  # the way back comes after the node
        node.edges = (*node.edges[:at], other, *node.edges[at + 1 :])


def copy_slices(base, base_edge, view, edge):
    """The edge of a base after one of its views has been written: base with the view's elements replaced."""
    a, b = base._spec, view._spec
    made = write_plan(a, base._offset, b, view._offset)
    if made is None:
        node = _WroteOutside("torch::autograd::CopySlices", (base_edge, edge), (a,))
        node.view, node.offset = b, view._offset - base._offset
        return (node, 0)
    plan, starts = made
    return (tape.record(plan, (None, None), (base_edge, edge), starts, (None,)), 0)


class _Overwritten(tape.PythonNode):
    """A write of something that does not depend, to first order, on what was there nor on what it was made of."""

    __slots__ = ("taken",)

    def apply(self, grad):
        return tuple(wrap(zeros_value(spec), spec) for spec in self.taken)


def overwritten(t, name, others=()):
    """The node of a write to a tensor of values that have no history, though `others` that they were made of may have one; None
    where nothing has."""
    if not tls.me.grad or not differentiable(t._spec):
        return None
    taped = [(e, x._spec) for x in (t, *others) if differentiable(x._spec) and (e := edge_of(x)) is not None]
    if not taped:
        return None
    specs = tuple(Spec.dense(tuple(s.shape), s.dtype, s.device) for s in (t._spec, *(s for _, s in taped)))
    node = tape.class_of(name, _Overwritten)(name, tuple(e for e, _ in taped), specs[:1])
    node.taken = specs[1:]
    return node


class _WroteOutside(tape.PythonNode):
    """A write through a view that shows more of the memory than its base does: PyTorch has no derivative of it either."""

    __slots__ = ("view", "offset")

    def apply(self, grad):
        (base,), view, size = self.specs, self.view, self.view.dtype.itemsize
        need = self.offset + extent(view)
        raise errors.storage_bounds(tuple(view.shape), view.strides, self.offset, size, need, base.numel)


def overlaps(spec):
    return spec.numel > 0 and any(s == 0 and n > 1 for n, s in zip(spec.shape, spec.strides))


def shifted(t, tensors):
    """Whether an operand shares elements with `t` that it has in other places."""
    for x in tensors:
        if x is not t and x._storage is t._storage and half_overlap(t, x):
            return True
    return False


def seen_as_tensors(op, tensors, numbers):
    """The operands without those that PyTorch reads as numbers before it writes: `x.masked_fill_(mask, x[0, 0])` is no overlap."""
    if op.name == "masked_fill" or op.name == "clamp" and numbers:
        return [x for x in tensors if x._spec.ndim]
    return tensors


def half_overlap(a, b) -> bool:
    """Whether two dense tensors on one storage share elements without being the same."""
    if a._offset == b._offset and a._spec.numel == b._spec.numel and a._spec.strides == b._spec.strides:
        return False
    return overlap(a, b)


def overlap(a, b) -> bool:
    """Whether two dense tensors on one storage share elements."""
    for x in (a, b):
        if not x._spec.numel or not shapes.is_dense(tuple(x._spec.shape), x._spec.strides):
            return False
    first, second = a._offset, b._offset
    return first < second + b._spec.numel and second < first + a._spec.numel


_GIVEN = {"nansum": "nansum: provided dtype must match dtype of result. Got {have} and {want}."}


def following(op, args, out):
    """Arguments with which the op computes in the dtype of out=; a dtype given beside it must be that one."""
    for p, a in zip(op.params, args):
        if p.name == "dtype" and a is not None and a is not out.dtype:
            raise errors.out_dtype(a, out.dtype, _GIVEN.get(op.name))
    if op.follows_out != "wider":
        return [out.dtype if p.name == "dtype" and a is None else a for p, a in zip(op.params, args)]
    first = args[0]
    wide = isinstance(first, Tensor) and first.dtype.is_floating_point and out.dtype.is_floating_point
    return [first.to(out.dtype), *args[1:]] if wide and out.dtype.itemsize > first.dtype.itemsize else args
