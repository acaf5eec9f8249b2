"""vmap by lanes: the operations that the function calls are recorded for all slices at once, on the tape as always.

A gradient inside is one for each slice, and is the same for all where it has no lanes. Where it leaves for a tensor that all slices
share, those of the slices are added up.
"""

from .. import functions
from ..autograd.custom import set_tangent, tangent_of
from ..autograd.derive import differentiable
from ..autograd.levels import Lanes
from ..autograd.node import Node, PythonNode
from ..core.lanes import ByTracing, Lane
from ..core.record import tls
from ..core.spec import Spec
from ..tensor import Tensor, edge_of, make, value_of, wrap
from . import by_tape
from .trees import flatten


def possible(tensors, dual=False) -> bool:
    """Whether a vmap over these tensors can go by lanes. dual: inside forward mode too."""
    me = tls.me
    return me.mode == "auto" and (dual or me.extra.get("dual") is None) and by_tape.possible(tensors)


def run(func, arguments, in_axes, size, out_dims_of):
    """(the result's leaves, tensors with all slices, its tree). in_axes: one a tensor. out_dims_of: of a result, where slices go, one a tensor.

    Raises ByTracing, or anything, where this way is none.
    """
    moved = [t if axis is None else t.movedim(axis, 0) for t, axis in zip(arguments.tensors, in_axes)]
    here = Lanes(size)
    recording = tls.me.grad
    with here:
        tensors = [_given(t, axis is not None, here, recording) for t, axis in zip(moved, in_axes)]
        before = [(t._storage, t._storage.version, t._spec) for t in tensors]
        out = arguments.run(func, tensors)
        dims = out_dims_of(out)
    leaves, tree = flatten(out)
    if recording:
        written = [t for t, (_, version, _) in zip(tensors, before) if t._storage.version != version]
        join([*leaves, *written], here)
    for original, t, axis, (storage, version, spec) in zip(arguments.tensors, tensors, in_axes, before):
        times = t._storage.version - version if t._storage is storage else 0
        if times:
            if t._spec is not spec:  # turned in place: the caller's has the dimensions that it had
                if recording and edge_of(t) is not None:
                    raise ByTracing
                t = make(storage, spec)
            if axis is None and type(value_of(t)) is Lane:
                raise ByTracing
            original.copy_(_taken(t, axis, here, recording))
            original._storage.version += times - 1
    given = {
        id(t): (original, axis)
        for original, t, axis, (storage, version, spec) in zip(arguments.tensors, tensors, in_axes, before)
        if t._storage is storage and t._spec is spec
    }
    return [
        _result(t, dim, given, here, recording) if isinstance(t, Tensor) else t for t, dim in zip(leaves, dims)
    ], tree


def _dense(shape, spec):
    return Spec.dense(tuple(shape), spec.dtype, spec.device)


def _given(t, sliced, here, recording):
    """A tensor, whose slices lie along its first dimension if it has any, as the function gets it."""
    value, shape = value_of(t), t._spec.shape
    if sliced:
        value, shape = Lane(value, here.level, here.size), shape[1:]
    made = wrap(value, _dense(shape, t._spec))
    edge = edge_of(t) if recording and differentiable(t._spec) else None
    if edge is not None:
        made._edge = (_In(made._spec, edge, here, sliced), 0)
    return made


def _result(t, dim, given, here, recording):
    """A result outside: an argument that is returned as it is itself, or turned; so is what all slices share, from elsewhere too."""
    original, axis = given.get(id(t), (None, None))
    if original is not None and axis is None and dim is None:
        return original
    if axis is not None and dim is not None and -original.ndim <= dim < original.ndim:
        dim %= original.ndim
        return original if dim == axis else original.movedim(axis, dim)
    if dim is None and t._base is None and t._storage.version < here.birth:
        return t
    return _taken(t, dim, here, recording)


def _taken(t, dim, here, recording):
    """A result with all slices along `dim`; None where it has none."""
    value, spec, edge = value_of(t), t._spec, edge_of(t) if recording else None
    has = type(value) is Lane and value.level == here.level
    if dim is None:
        if has or edge is not None:
            raise ByTracing
        return wrap(value, _dense(spec.shape, spec))
    size = here.size
    if has:
        made = wrap(value.value, _dense((size, *spec.shape), spec))
    else:
        made = wrap(value, _dense(spec.shape, spec)).unsqueeze(0).expand(size, *spec.shape).clone()
    if edge is not None:
        if _older(edge[0], here):
            edge = _between(edge, here, {})
        made._edge = (_Out(made._spec, edge, here), 0)
    if dim == 0:
        return made
    moved = made.movedim(0, dim)
    result = make(moved._storage, moved._spec)  # as PyTorch's it has these strides, and is no view
    result._edge = edge_of(moved)
    return result


def given(value, spec, here):
    """A tensor with a value for each slice."""
    return wrap(Lane(value, here.level, here.size), spec)


def all_slices(t, here, recording):
    """A tensor's slices along a new first dimension, and its tangent's."""
    tangent = tangent_of(t)
    if recording:
        join([t], here)
    made = _taken(t, 0, here, recording)
    if tangent is not None:
        set_tangent(made, all_slices(tangent, here, recording))
    return made


def basis(specs):
    """All unit vectors of tensors like these taken together: of each its part, the vectors along dimension 0."""
    total = sum(s.numel for s in specs)
    parts, at = [], 0
    for s in specs:
        eye = functions.eye(total, dtype=s.dtype, device=s.device)
        parts.append(eye.narrow(1, at, s.numel).reshape(total, *s.shape))
        at += s.numel
    return total, parts


class _In(PythonNode):
    """Between a tensor and what the function gets of it."""

    __slots__ = ("lanes", "sliced")

    def __init__(self, spec, edge, lanes, sliced):
        super().__init__("VmapBackward", (edge,), (spec,))
        self.lanes, self.sliced = lanes, sliced

    def apply(self, g):
        if g is None:
            return (None,)
        size = self.lanes.size
        spec = _dense((size, *g._spec.shape), g._spec)
        value = _slices(value_of(g), g._spec, self.lanes)
        if value is None:
            return (g.unsqueeze(0).expand(size, *g.shape) if self.sliced else g * size,)
        whole = wrap(value, spec)
        edge = edge_of(g)
        if edge is not None:
            whole._edge = (_Out(spec, edge, self.lanes), 0)
        return (whole if self.sliced else whole.sum(0),)


class _Out(PythonNode):
    """Between a result of the function, one for each slice, and the tensor with all of them."""

    __slots__ = ("lanes",)

    def __init__(self, spec, edge, lanes):
        made = edge[0]
        super().__init__(made.name() if isinstance(made, Node) else "VmapBackward", (edge,), (spec,))
        self.lanes = lanes

    def apply(self, g):
        if g is None:
            return (None,)
        spec = _dense(g._spec.shape[1:], g._spec)
        made = wrap(_sliced(value_of(g), g._spec, self.lanes), spec)
        edge = edge_of(g)
        if edge is not None:
            made._edge = (_In(spec, edge, self.lanes, True), 0)
        return (made,)


# A pass inside a later vmap brings gradients with lanes of that one: those of larger levels are the outer ones of a value.


def _slices(value, spec, lanes):
    """All slices of a value along a new first dimension; None if it has none."""
    if type(value) is not Lane or value.level < lanes.level:
        return None
    if value.level == lanes.level:
        return value.value
    shape = (value.size, *spec.shape)
    inner = _slices(value.value, _dense(shape, spec), lanes)
    if inner is None:
        return None
    return Lane(_exchanged(inner, (lanes.size, *shape), spec), value.level, value.size)


def _sliced(value, spec, lanes):
    """A value whose slices are what lies along the first dimension of another."""
    if type(value) is not Lane or value.level < lanes.level:
        return Lane(value, lanes.level, lanes.size)
    shape = (value.size, *spec.shape)
    inner = _exchanged(value.value, shape, spec)
    inner = _sliced(inner, _dense((shape[1], shape[0], *shape[2:]), spec), lanes)
    return Lane(inner, value.level, value.size)


def _exchanged(value, shape, spec):
    """A value with its first two dimensions exchanged."""
    return value_of(wrap(value, _dense(shape, spec)).transpose(0, 1))


def join(tensors, here):
    """Have the tape add up slices wherever it leads from what was made inside to what was there before."""
    edges = [e for e in map(edge_of, (t for t in tensors if isinstance(t, Tensor))) if e is not None]
    stack, seen, between = [target for target, _ in edges], set(), {}
    while stack:
        node = stack.pop()
        if node in seen or _older(node, here):
            continue
        seen.add(node)
        stack += [e[0] for e in node.edges if e is not None]
        if not (type(node) is _In and node.lanes is here) and any(
            e is not None and _older(e[0], here) for e in node.edges
        ):
            node.edges = tuple([_between(e, here, between) for e in node.edges])


def _older(target, here) -> bool:
    if isinstance(target, Node):
        return target.sequence < here.start
    return target._storage.version < here.birth


def _between(edge, here, made):
    """An edge to what all slices share, through what adds them up."""
    if edge is None or not _older(edge[0], here):
        return edge
    node = made.get(edge)
    if node is None:
        target, k = edge
        spec = target.out_spec(k) if isinstance(target, Node) else target._spec
        node = _In(_dense(spec.shape, spec), edge, here, False)
        node.sequence = here.start + len(made) * 1e-6  # the tape runs it after all that was made inside
        made[edge] = node
    return (node, 0)
