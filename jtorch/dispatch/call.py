"""Calls with something unusual about them: no plan yet, out=, in place, data-dependent shapes, random keys, devices."""

import functools

import numpy as np

from .. import errors, errors_autograd, errors_func
from ..autograd import node as tape
from ..autograd.derive import Binding, differentiable
from ..core import device as devices
from ..core import dtype as dtypes
from ..core import rng
from ..core import storage as storages
from ..core.lanes import is_traced
from ..core.layout import has_overlap
from ..core.pending import Pending
from ..core.record import tls
from ..core.slices import of_slices
from ..core.spec import Spec
from ..core.storage import Storage
from ..core.wide import is_wide
from ..ops import registry
from ..tensor import CONSTANTS, Tensor, edge_of, make, value_of
from .dynamic import dtype_of, plan_of
from .joined import MANY, joined
from .numbers import check_again, refuses_numbers
from .override import ask, overloaded
from .plans import (
    FAST,
    RETURN_FIELDS,
    Call,
    bind,
    check_arguments,
    check_dtype,
    device_of,
    key_spec,
    make_plan,
    return_type,
)
from .results import finish, put_on_tape
from .statics import check_statics, statics_of, unhashable
from .write import (
    check_inplace,
    copy_to_out,
    following,
    make_room,
    overlap,
    overlaps,
    overwritten,
    seen_as_tensors,
    shifted,
    write,
    write_on_tape,
)


def slow(op, args, out=None, public=None):
    """One call with everything that may be unusual about it. public: the function called, for __torch_function__."""
    me = tls.me
    if me.special is not None:
        if public is not None:
            handled, result = ask(op, public, args, out)
            if handled:
                return result
        handled, result = me.special(op, args, out)
        if handled:
            return result
    if out is not None and op.follows_out:
        _outs(op, out, None)
        args = following(op, args, out)
    try:
        call = Call(op, args)
    except TypeError:
        handled, result = ask(op, public, args, out)
        if not handled:
            if _is_method(public):
                Call(op, args, method=True)  # raises the same, in a method's words
            raise
        return result
    for t in call.tensors if out is None else (*call.tensors, out):
        if type(t) not in FAST and t is not None:
            handled, result = ask(op, public, args, out)
            if handled:
                return result
            break
    if op.prepare is not None and (prepared := op.prepare(*args)) is not None:
        call = Call(op, prepared)
    if op.dynamic:
        if op.value_checks:
            _check_values(op, call)
        return _dynamic(op, call, out)
    _draw_keys(call)
    plan = _plan_of(op, call, public)
    if any(map(is_wide, call.numbers)):
        check_again(op, call)
    if op.value_checks:
        _check_values(op, call)
    tensors = _same_device(call.tensors, plan.device)
    if out is not None:
        return _with_out(op, plan, me, tensors, call, out)
    if op.by_numpy is not None and len(tensors) >= MANY:
        result = joined(op, plan, me, tensors, args[1])
        if result is not None:
            return result
    result = finish(plan, me, tensors, call.numbers)
    return _in_copy(tensors[0], result) if op.in_copy else result


def _plan_of(op, call, public=None):
    # Of an op that is laid out in a copy, the generated function must find no plan: it knows no such thing.
    key = ("in copy", call.key) if op.in_copy else call.key
    if all(type(t) is KeyTensor for t in call.tensors):  # made of numbers alone: on the device that is the default now
        key = (devices.get_default(), key)
    try:
        plan = op.plans.get(key) or _plan_of_each(op, call, key)
    except TypeError:
        raise _no_key(op, call, method=_is_method(public)) from None
    if plan is None:
        for t in [t for t in call.tensors if t is not None] if tls.me.grad and op.differentiable else ():
            edge_of(t)  # a view that must not be used any more is refused before shapes are
        plan = _keep_plan(op, call, key, make_plan(op, call, method=_is_method(public)))
    return plan


def _plan_of_each(op, call, key):
    plan = op.plans.get((_EACH, key))
    if plan is not None:
        check_again(op, call)
    return plan


_EACH = "each number"  # before the keys of plans whose numbers are looked at in each call: the generated functions find none


def _keep_plan(op, call, key, plan):
    op.plans[(_EACH, key) if refuses_numbers(op, call) else key] = plan
    return plan


def _no_key(op, call, **how):
    return unhashable(op, statics_of(op, call), call.tensors[0] if call.tensors else None, **how)


def _is_method(public):
    return public is not None and public.__qualname__.startswith("Tensor.")


def _in_copy(like, t):
    """A result laid out in a copy of the whole memory that `like` is part of; of elements that share memory it stays dense."""
    spec, base = like._spec, like._storage.base
    if spec is t._spec and spec.numel == base.numel or has_overlap(tuple(spec.shape), spec.strides):
        return t
    flat = Spec.dense((base.nbytes // spec.dtype.itemsize,), spec.dtype, spec.device)
    storage = Storage(storages.read(like._storage, flat, 0), flat)
    storages.write(storage, spec, like._offset, value_of(t))
    storage.version = t._storage.version
    t._storage, t._spec, t._offset = storage, spec, like._offset
    return t


def _draw_keys(call):
    for slot in call.slots:
        if slot[0] == "k":
            key = rng.next_key()
            scope = tls.me.scope
            if scope is not None:
                scope.keys[id(key)] = key
            repeat = tls.me.extra.get("keys")  # a checkpoint notes the keys, or gives those of the first time
            call.tensors[slot[1]] = KeyTensor(key if repeat is None else repeat(key))


class KeyTensor:
    """A random key in the place of a tensor operand."""

    __slots__ = ("_storage", "_spec", "_offset", "_edge", "_rg", "_base", "_seen")

    def __init__(self, key):
        self._spec = key_spec()
        self._storage = Storage(key, self._spec)
        self._offset = 0
        self._edge = self._base = self._seen = None
        self._rg = False


def _same_device(tensors, device):
    for t in tensors:
        if t._spec.device is not device and type(t) is not KeyTensor:
            return [t if type(t) is KeyTensor or t._spec.device is device else t.to(device) for t in tensors]
    return tensors


def _check_values(op, call):
    """Checks of values that are on the host already: integer operands as numpy arrays (None while not computed), the
    others as Specs."""
    arrays = [checkable(t) for t in call.tensors]
    if op.sized:
        arrays[0] = call.tensors[0]._spec
    args = _checked(call, arrays)
    for check in op.value_checks:
        op.invoke(check, args)
    scope = tls.me.scope
    if scope is not None:
        places = [a if a is None or type(a) is Spec else Place(t) for t, a in zip(call.tensors, arrays)]
        if Place in map(type, places):
            scope.checks.append((op, _checked(call, places), [p for p in places if type(p) is Place]))


class Place:
    """Where a check of values has found numbers, for a compiled region that is to check others there."""

    __slots__ = ("storage", "spec", "offset", "argument")

    def __init__(self, t):
        self.storage, self.spec, self.offset = t._storage, t._spec, t._offset
        self.argument = None

    def values(self, given):
        """The numbers there, seen from another argument; None while they are not known."""
        storage = given._storage
        value = storage.value
        if type(value) is Pending:
            value = value.value
        if storage.spec is self.spec and value is not None and storage.host is None:  # all there is, as in most calls
            return np.asarray(value)
        return (
            storages.numpy_of(storage, self.spec, self.offset + given._offset)
            if storages.at_hand(storage.value)
            else None
        )


def _checked(call, arrays):
    """The arguments of checks, tensors given by `arrays`."""
    args = []
    for slot in call.slots:
        if slot[0] in ("o", "k"):
            args.append(arrays[slot[1]])
        elif slot[0] == "l":
            args.append([arrays[e[1]] if e[0] == "o" else None for e in slot[1]])
        elif slot[0] == "n":
            args.append(call.numbers[slot[1]])
        else:
            args.append(slot[1])
    return args


def checkable(t):
    """What a check of values sees of a tensor: numbers of the host's, None while they are not known, the spec of any but whole numbers."""
    if t is None:
        return None
    spec = t._spec
    if spec.dtype.category > dtypes.INT:
        return spec
    v = t._storage.value
    if is_traced(v) or spec.device is not devices.cpu:
        return of_slices(v)
    if not storages.at_hand(v):
        return storages.known_of(t._storage, spec, t._offset)
    return storages.numpy_of(t._storage, spec, t._offset)


_DYNAMIC = {"nonzero_rows": "nonzero", "nonzero_tuple": "nonzero"}  # an op of ours: the name of the call


def _dynamic(op, call, out=None):
    """An op whose result's shape depends on values: run at once. What numpy makes stays so: jax would compile a program for its shape."""
    check_statics(op, statics_of(op, call), given=call.given)
    specs = [t._spec for t in call.tensors]
    slots, target = bind(op, call)
    for check in op.checks:
        op.invoke(check, check_arguments(slots, specs, call.numbers))
    check_dtype(op, target, specs)
    arrays = [storages.realise(value_of(t)) for t in call.tensors]
    if any(is_traced(a) for a in arrays):
        if op.of_traced is not None and out is None and (result := op.of_traced(*call.tensors)) is not None:
            return result
        raise errors_func.data_dependent(_DYNAMIC.get(op.name, op.name), tls.me.extra.get("transforms", ()))
    device = device_of(call)
    got = Binding(op, slots, len(arrays)).kernel(*arrays, *call.numbers)
    multiple = isinstance(got, (tuple, list))
    made = [np.asarray(v, order="C") if isinstance(v, np.ndarray) else v for v in (got if multiple else (got,))]
    values = [storages.to_device(v, device) for v in made]
    out_specs = tuple(Spec.dense(v.shape, dtype_of(v, specs), device) for v in made)
    if op.strides is not None:
        strides = op.invoke(functools.partial(op.strides, made), check_arguments(slots, specs, call.numbers))
        out_specs = tuple(Spec.of(tuple(s.shape), n or s.strides, s.dtype, device) for s, n in zip(out_specs, strides))
    results = [make(Storage(v, s), s) for v, s in zip(values, out_specs)]
    if tls.me.grad and op.differentiable and any(edge_of(t) is not None for t in call.tensors):
        plan = plan_of(op, slots, tuple(specs), tuple(map(type, call.numbers)), out_specs)
        put_on_tape(plan, call.tensors, arrays, [edge_of(t) for t in call.tensors], call.numbers, values, results)
    if not multiple:
        if out is None:
            return results[0]
        _keep_apart(op, _outs(op, out, None), call.tensors)
        return into_out(op, out, results[0])
    names = RETURN_FIELDS.get(op.name)
    return tuple(results) if names is None else return_type(op.name, names)(results)


def _with_out(op, plan, me, tensors, call, out):
    outs = _outs(op, out, len(plan.specs) if plan.multiple else None)
    _keep_apart(op, outs, tensors)
    if op.elementwise and any(shifted(o, tensors) for o in outs):
        raise errors.input_overlap()
    for o, spec in zip(outs, plan.specs if op.elementwise else ()):
        if o._spec.shape != spec.shape and any(o is t for t in tensors):
            raise errors.inplace_shape(op.name, o._spec.shape, spec.shape)
    if op.differentiable:
        _off_tape(op.name, me, (*tensors, *outs))
    ruled = _check_out(op, outs, plan.specs)
    results = finish(plan, me, tensors, call.numbers)
    of_fresh = getattr(op.strides, "of_fresh", None)
    if of_fresh is not None and of_fresh(tensors[0]._spec):
        _make_room(outs, plan.specs)
    for o, r in zip(outs, results if plan.multiple else (results,)):
        copy_to_out(o, r, cast=ruled)
    if op.silent:
        return None
    return out if plan.fields is None else plan.fields(outs)


def _make_room(outs, specs):
    """Resize empty out= to row-major strides, whatever those of the results are."""
    for o, spec in zip(outs, specs):
        if not o._spec.numel and o._spec.shape != spec.shape:
            make_room(o, Spec.dense(tuple(spec.shape), o._spec.dtype, spec.device))


def _keep_apart(op, outs, tensors):
    if op.apart:
        others = tensors[1:] if op.inplace else tensors  # what has a form in place may write to its input
        if any(o is t or (o._storage is t._storage and overlap(o, t)) for o in outs for t in others):
            raise errors.input_overlap()


def _outs(record, out, count):
    """The tensors of out=, for so many results; None for one that is not in a tuple."""
    if count is None:
        if not isinstance(out, Tensor):
            raise errors.argument(record.shown, "out", "Tensor", out)
        return (out,)
    if isinstance(out, Tensor) or not isinstance(out, (tuple, list)):
        raise errors.argument(record.shown, "out", "tuple of Tensors", out)
    if len(out) != count:
        raise errors.out_count(count, len(out))
    for at, t in enumerate(out):
        if not isinstance(t, Tensor):
            raise errors.list_element(at, t, record.keywords[0])
    return tuple(out)


def into_out(record, out, result):
    """Write the results of a composite into out=."""
    many = isinstance(result, tuple)
    results = result if many else (result,)
    outs = _outs(record, out, len(results) if many else None)
    _off_tape(record.name, tls.me, (*results, *outs))
    ruled = _check_out(record, outs, [r._spec for r in results])
    if record.kind == "composite" and record.row_major:
        _make_room(outs, [r._spec for r in results])
    for o, r in zip(outs, results):
        copy_to_out(o, r, cast=ruled)
    return type(result)(outs) if many and type(result) is not tuple else out


def _off_tape(name, me, tensors):
    if me.grad and any(t.requires_grad for t in tensors):
        raise errors_autograd.off_tape(name)


def _check_out(record, outs, specs):
    """Apply the op's own rule for the dtypes of out=; False where it has none and the general one holds."""
    for o in outs:
        if overlaps(o._spec):
            raise errors.overlap()
    rule = record.out
    if rule is True:
        return False
    if callable(rule):
        for o, spec in zip(outs, specs):
            rule(spec.dtype, o._spec.dtype)
        return True
    words = rule if isinstance(rule, tuple) else (rule,) * len(outs)
    for o, spec, w in zip(outs, specs, words):
        if o._spec.dtype is not spec.dtype:
            raise errors.out_dtype(spec.dtype, o._spec.dtype, None if w == "exact" else w)
    return True


def _ask_in_place(op, args, public):
    """ask, of a call in place: for the function that was called with inplace=True, else for the method."""
    if public is not None and tls.me.overriding == 2 and overloaded(args):
        return ask(op, public, [True if p.name == "inplace" else a for p, a in zip(op.params, args)])
    return ask(op, getattr(Tensor, op.name + "_", None), args, inplace=True)


def inplace(op, args, public=None):
    """`input.op_(...)`: compute out of place, write through the view, and rebase the history.

    public: the function that was called with inplace=True, for __torch_function__.
    """
    me = tls.me
    t = args[0]
    if me.special is not None:
        handled, result = me.special(op, args, None, True)
        if handled:
            return result
    if not isinstance(t, Tensor):
        handled, result = _ask_in_place(op, args, public)
        if handled:
            return result
        raise errors.argument(op.name + "_", "input", "Tensor", t)
    try:
        call = Call(op, args)
    except TypeError:
        handled, result = _ask_in_place(op, args, public)
        if not handled:
            Call(op, args, method=True, name=f"{op.name}_")  # raises the same, in a method's words
            raise
        return result
    for x in call.tensors:
        if type(x) not in FAST and x is not None:
            handled, result = _ask_in_place(op, args, public)
            if handled:
                return result
            break
    if op.prepare is not None and (prepared := op.prepare(*args)) is not None:
        call = Call(op, prepared)
    if t._storage.version < me.born:
        CONSTANTS["own"](t._storage, None, _written_name(op))
    if me.grad and not op.untracked:
        check_inplace(t, args[1:])
    _draw_keys(call)
    key = ("inplace", call.key)
    try:
        plan = op.plans.get(key) or _plan_of_each(op, call, key)
    except TypeError:
        raise _no_key(op, call, method=True, name=f"{op.name}_") from None
    if plan is None:
        if not overlaps(t._spec) and has_overlap(tuple(t._spec.shape), t._spec.strides):
            raise errors.overlap()  # PyTorch reads some elements after it has written them
        plan = _keep_plan(op, call, key, make_plan(op, call, inplace_spec=t._spec, method=True))
    if any(map(is_wide, call.numbers)):
        check_again(op, call)
    if op.value_checks:
        _check_values(op, call)
    tensors = _same_device(call.tensors, plan.device)
    if t._spec.numel > 1 and 0 in t._spec.strides and overlaps(t._spec):
        if op.expanded is None:
            raise errors.overlap()
        errors.warn(
            f"Use of {op.name}_ on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
            "This also applies to advanced indexing e.g. tensor[mask] = scalar"
        )
        inplace(op, op.expanded(*args))
        return t
    _compute_and_write(op, plan, me, t, tensors, call.numbers)
    return t


def inplace_planned(op, plan, me, tensors, numbers):
    """`inplace` of plain tensors that has a plan; the first of them is written to, whose elements are apart."""
    t = tensors[0]
    if t._storage.version < me.born:
        CONSTANTS["own"](t._storage, None, _written_name(op))
    if me.grad and not op.untracked:
        check_inplace(t, tensors[1:])
    _compute_and_write(op, plan, me, t, _same_device(tensors, plan.device), numbers)
    return t


def _compute_and_write(op, plan, me, t, tensors, numbers):
    if op.elementwise and shifted(t, tensors) and shifted(t, seen_as_tensors(op, tensors, numbers)):
        raise errors.input_overlap()
    if op.apart and any(x._storage is t._storage and (x is t or overlap(t, x)) for x in tensors[1:]):
        raise errors.input_overlap()
    values = [value_of(x) for x in tensors]
    graph = me.graph
    if graph.device is not plan.device:
        graph = me.graph_on(plan.device)
    outs = graph.recn(plan, values, numbers)
    if op.untracked:
        write(t, outs[0])  # the history stays what it was
    else:
        write_on_tape(t, outs[0], _node_of_write(op, plan, t, tensors, values, numbers, outs) if me.grad else None)


def _node_of_write(op, plan, t, tensors, values, numbers, outs):
    if not plan.diff:  # a comparison
        return overwritten(
            t, f"{registry.camel(op.name)}Backward{len(tensors) - 1}", [x for x in tensors if x is not t]
        )
    edges = tuple(edge_of(x) for x in tensors)
    edges = tuple(e if e is not None and differentiable(x._spec) else None for e, x in zip(edges, tensors))
    if all(e is None for e in edges):
        return None
    # What the op read of `t` as what it writes to is kept as it was: writing to that is no fault.
    return tape.record(plan, values, edges, numbers, outs, [None, *tensors[1:]])


def _written_name(op):
    """An op's in-place form as PyTorch's errors name it."""
    found = {"_copied": "copy_", "assigned": "copy_", "filled": "fill_.Scalar", "zeroed": "zero_"}.get(op.name)
    second = op.params[1].name if len(op.params) > 1 else ""
    return found or f"{op.name}_.Tensor" * (second == "other") or f"{op.name}_"


def _host_value(t, slices=False):
    """The value of a tensor as numpy: None for anything else, under a jax transformation and in a compiled region.

    slices: under a vmap those of all slices.
    """
    if not isinstance(t, Tensor) or tls.me.scope is not None or tls.me.special is not None:
        return None
    if is_traced(t._storage.value):
        return of_slices(t._storage.value, True) if slices else None
    return storages.numpy_of(t._storage, t._spec, t._offset)


registry.host_value = _host_value
