"""Calling an op: find its plan, read the operands, record the node, wrap the result, put it on the tape.

For each op a function with PyTorch's signature is generated at its first use; it finds the plan in a dict by the specs of
its operands and its static values. Everything unusual (no plan yet, out=, subclasses, autocast) goes through `slow`.
"""

import builtins
import functools

import jax
import numpy as np

from . import errors
from .autograd import node as tape
from .autograd.derive import Binding, SlicesMap, differentiable, view_plan
from .core import device as devices
from .core import dtype as dtypes
from .core import rng, shapes
from .core import storage as storages
from .core.layout import Layout
from .core.program import Plan
from .core.record import tls
from .core.spec import Size, Spec
from .core.storage import Storage
from .ops import registry
from .ops.registry import KEY, LIST, NUMBER, OPTIONAL, SCALAR, STATIC, TENSOR, VarInts
from .tensor import Tensor, edge_of, make, value_of

_new = object.__new__
FAST = {Tensor}  # classes whose instances take the generated path
NUMBERS = (float, int, bool, complex)
_number_set = frozenset(NUMBERS)
_read = storages.read


# --- promotion ---------------------------------------------------------------------------------------------------------


def _combine(higher, lower):
    if higher is None:
        return lower
    if lower is None or higher.is_complex:
        return higher
    if higher.is_floating_point:
        return higher.to_complex() if lower.is_complex else higher
    if higher.category == dtypes.BOOL or lower.category >= dtypes.FLOAT:
        return dtypes.promote(higher, lower)
    return higher


def result_dtype(specs, kinds):
    """PyTorch's result type of tensors (Specs) and Python numbers (their types)."""
    dim = zero = wrapped = None
    for s in specs:
        if s.ndim:
            dim = s.dtype if dim is None else dtypes.promote(dim, s.dtype)
        else:
            zero = s.dtype if zero is None else dtypes.promote(zero, s.dtype)
    for kind in kinds:
        d = dtypes.of_number(kind(0))
        wrapped = d if wrapped is None else dtypes.promote(wrapped, d)
    return _combine(dim, _combine(zero, wrapped))


# --- plans -------------------------------------------------------------------------------------------------------------


class Call:
    """The arguments of one call sorted by what they are to the recorder."""

    __slots__ = ("key", "tensors", "numbers", "slots")

    def __init__(self, op, args):
        key, tensors, numbers, slots = [], [], [], []
        for param, role, a in zip(op.params, op.roles, args):
            if role == STATIC:
                a = static(a)
                key.append(a)
                slots.append(("s", a))
            elif role == KEY:
                key.append(None)
                slots.append(("k", len(tensors)))
                tensors.append(None)
            elif role == LIST:
                if isinstance(a, Tensor):
                    raise errors.argument(op.name, param.name, "tuple of Tensors", a)
                entries, marks = [], []
                for x in a if a is not None else ():
                    if x is None:
                        entries.append(("s", None))
                        marks.append(None)
                    else:
                        x = _tensor(op, param.name, x)
                        entries.append(("o", len(tensors)))
                        marks.append(x._spec)
                        tensors.append(x)
                key.append(tuple(marks) if a is not None else None)
                slots.append(("l", entries) if a is not None else ("s", None))
            elif isinstance(a, Tensor) and role != NUMBER:
                key.append(a._spec)
                slots.append(("o", len(tensors)))
                tensors.append(a)
            elif a is None and (role in (OPTIONAL, NUMBER, SCALAR)):
                if role == SCALAR and param.default is not None:
                    raise errors.argument(op.name, param.name, "Tensor", a)
                key.append(None)
                slots.append(("s", None))
            elif role in (TENSOR, OPTIONAL):
                raise errors.argument(op.name, param.name, "Tensor", a)
            else:
                a = scalar(op, param.name, a)
                key.append(type(a))
                slots.append(("n", len(numbers)))
                numbers.append(a)
        self.key = key[0] if len(key) == 1 else tuple(key)
        self.tensors = tensors
        self.numbers = tuple(numbers)
        self.slots = slots


def _tensor(op, name, x):
    if not isinstance(x, Tensor):
        raise errors.argument(op.name, name, "Tensor", x)
    return x


def scalar(op, name, a):
    """A Python number out of whatever may stand for one."""
    if type(a) in _number_set:
        return a
    if isinstance(a, Tensor):
        return a.item()
    if isinstance(a, (bool, np.bool_)):
        return bool(a)
    if isinstance(a, np.generic):
        return a.item()
    for kind in (int, float, complex):
        if isinstance(a, kind):
            return kind(a)
    raise errors.argument(op.name, name, "Number", a)


def static(a):
    """A static argument in hashable, canonical form."""
    if isinstance(a, (list, tuple)):
        return tuple(static(x) for x in a)
    if isinstance(a, Tensor):
        return a.item() if a._spec.ndim == 0 else tuple(a.tolist())
    if isinstance(a, np.generic):
        return a.item()
    if isinstance(a, np.ndarray):
        return tuple(static(x) for x in a.tolist())
    return a


def make_plan(op, call, inplace_spec=None):
    """Specialise an op: promotion, checks, shape inference, result strides. Errors are PyTorch's."""
    operands = [t._spec for t in call.tensors if t is not None]
    kinds = tuple(type(x) for x in call.numbers)
    slots, cast = _bind(op, call, operands)
    specs = [t._spec if t is not None else _key_spec() for t in call.tensors]
    device = _device(op, specs)
    for check in op.checks:
        op.invoke(check, _check_arguments(slots, specs, call.numbers))
    shape = None
    if op.elementwise:
        shape = shapes.broadcast(*[tuple(s.shape) for s in specs])
        if inplace_spec is not None and shape != tuple(inplace_spec.shape):
            raise RuntimeError(
                f"output with shape {list(inplace_spec.shape)} doesn't match the broadcast shape {list(shape)}"
            )
    binding = Binding(op, slots, len(specs))
    fn = binding.kernel
    plan = Plan(op, op.name, fn, tuple(specs), kinds, device=device)
    out = _infer(op, plan, specs, call)
    multiple = isinstance(out, (tuple, list))
    outs = list(out) if multiple else [out]
    if inplace_spec is not None:
        result = dtypes.of(outs[0].dtype)
        if not dtypes.can_cast(result, inplace_spec.dtype):
            raise RuntimeError(
                f"result type {dtypes.scalar_name(result)} can't be cast to the desired output type "
                f"{dtypes.scalar_name(inplace_spec.dtype)}"
            )
        if tuple(outs[0].shape) != tuple(inplace_spec.shape):
            raise RuntimeError(
                f"output with shape {list(inplace_spec.shape)} doesn't match the broadcast shape {list(outs[0].shape)}"
            )
        if outs[0].dtype != inplace_spec.dtype.np:
            target = inplace_spec.dtype.np
            plan = Plan(op, op.name, lambda *v: fn(*v).astype(target), tuple(specs), kinds, device=device)
        plan.set_specs((Spec.dense(tuple(inplace_spec.shape), inplace_spec.dtype, device),))
    else:
        plan.set_specs(tuple(_result_specs(op, outs, specs, call, shape, device)))
    plan.extra = binding
    name = op.grad_name
    plan.grad_name = name if isinstance(name, str) else name(_arguments(op, call))
    plan.diff = op.differentiable and any(differentiable(s) for s in plan.specs)
    plan.public = plan.n_out - op.hidden
    plan.multiple = multiple and not (op.hidden and plan.public == 1)
    if multiple and len(outs) == 1 and type(out) in (tuple, list):
        plan.multiple = True
        inner = plan.fn
        plan.fn = lambda *v: inner(*v)[0]
        plan.jit = jax.jit(plan.fn, inline=True)
    plan.fields = _fields(op, plan)
    plan.simple = plan.n_out == 1 and not plan.multiple
    plan.out_edges = [k if differentiable(s) else None for k, s in enumerate(plan.specs)]
    return plan


def _fields(op, plan):
    names = RETURN_FIELDS.get(op.name)
    return None if names is None or not plan.multiple else return_type(op.name, names)


RETURN_FIELDS: dict[str, tuple] = {}
_return_types: dict[str, type] = {}


def return_type(name, fields):
    """The named tuple of an op with several results, as torch.return_types has it."""
    made = _return_types.get(name)
    if made is None:
        made = _return_types[name] = _make_return_type(name, fields)
    return made


def _make_return_type(name, fields):
    def field(k):
        return property(lambda self: tuple.__getitem__(self, k))

    def show(self):
        parts = ",\n".join(f"{n}={v!r}" for n, v in zip(fields, self))
        return f"torch.return_types.{self.__class__.__name__}(\n{parts})"

    body = {n: field(k) for k, n in enumerate(fields)}
    public = PUBLIC_RETURN_NAMES.get(name, name)
    body |= {"__repr__": show, "__slots__": (), "_fields": tuple(fields), "n_fields": len(fields), "__module__": "torch.return_types"}
    body["__reduce__"] = lambda self: (_rebuild_return, (name, tuple(self)))
    return type(public, (tuple,), body)


def _rebuild_return(name, values):
    return _return_types[name](values) if name in _return_types else values


PUBLIC_RETURN_NAMES = {"max_dim": "max", "min_dim": "min", "median_dim": "median", "nanmedian_dim": "nanmedian"}


def _key_spec():
    return Spec.dense((2,), dtypes.uint32, devices.cpu)


def _bind(op, call, specs):
    """The slots of a Binding, with the casts of promotion in them."""
    target = None
    if op.promote is not registry.NONE:
        used = [t._spec for t, s in _promoted(op, call)]
        kinds = [type(call.numbers[s[1]]) for p, s, r in zip(op.params, call.slots, op.roles) if r == SCALAR and s[0] == "n"]
        target = result_dtype(used, kinds)
        if op.promote is registry.FLOAT and target is not None and target.category < dtypes.FLOAT:
            target = dtypes.default.dtype
    slots = []
    for role, slot in zip(op.roles, call.slots):
        kind = slot[0]
        if kind == "o":
            to = target.np if target is not None and call.tensors[slot[1]]._spec.dtype is not target else None
            slots.append(("o", slot[1], to))
        elif kind == "k":
            slots.append(("o", slot[1], None))
        elif kind == "l":
            entries = []
            for e in slot[1]:
                if e[0] == "o":
                    to = target.np if target is not None and call.tensors[e[1]]._spec.dtype is not target else None
                    entries.append(("o", e[1], to))
                else:
                    entries.append(e)
            slots.append(("l", entries))
        elif kind == "n":
            slots.append(("n", slot[1], target.np if role == SCALAR and target is not None else None))
        else:
            slots.append(slot)
    return slots, target


def _promoted(op, call):
    for role, slot in zip(op.roles, call.slots):
        if slot[0] == "o" and role in (TENSOR, SCALAR, OPTIONAL):
            yield call.tensors[slot[1]], slot
        elif slot[0] == "l":
            for e in slot[1]:
                if e[0] == "o":
                    yield call.tensors[e[1]], e


def _device(op, specs):
    """The one device of the operands; 0-d CPU tensors go along with any."""
    found = None
    for s in specs:
        if s.dtype is dtypes.uint32 and s.shape == (2,):
            continue
        if found is None or (found is devices.cpu and s.device is not found):
            found = s.device
    if found is None:
        found = devices.get_default()
    for s in specs:
        if s.device is not found and s.ndim:
            if s.dtype is dtypes.uint32 and s.shape == (2,):
                continue
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {found} and {s.device}!"
            )
    return found


def _check_arguments(slots, specs, numbers):
    out = []
    for slot in slots:
        if slot[0] == "o":
            out.append(specs[slot[1]])
        elif slot[0] == "l":
            out.append([specs[e[1]] if e[0] == "o" else e[1] for e in slot[1]])
        elif slot[0] == "n":
            out.append(numbers[slot[1]])
        else:
            out.append(slot[1])
    return out


def _arguments(op, call):
    values = _check_arguments(call.slots, [t._spec if t is not None else None for t in call.tensors], call.numbers)
    return {p.name: v for p, v in zip(op.params, values)}


def _infer(op, plan, specs, call):
    try:
        return plan.jit.eval_shape(*[s.aval for s in specs], *call.numbers)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        if isinstance(error, (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)):
            raise
        raise errors.from_kernel(op.name, error) from error


def _result_specs(op, outs, specs, call, shape, device):
    strides = None
    if op.strides is not None:
        strides = op.invoke(functools.partial(op.strides, outs), _check_arguments(call.slots, specs, call.numbers))
    for k, o in enumerate(outs):
        d = dtypes.of(o.dtype)
        size = tuple(o.shape)
        if strides is not None and strides[k] is not None:
            yield Spec.of(size, tuple(strides[k]), d, device)
        elif op.elementwise and shape is not None and size == shape:
            operands = [(tuple(s.shape), s.strides) for s in specs]
            yield Spec.of(size, tuple(shapes.elementwise_strides(size, operands)), d, device)
        else:
            yield Spec.dense(size, d, device)


# --- finishing a call --------------------------------------------------------------------------------------------------


def finish1(plan, me, a):
    """Record a plan with one tensor operand and one result."""
    s = a._storage
    sp = a._spec
    va = s.value if s.spec is sp else _read(s, sp, a._offset)
    graph = me.graph
    if graph.device is not plan.device:
        graph = me.graph_on(plan.device)
    out = graph.rec1(plan, va)
    spec = plan.specs[0]
    t = _new(Tensor)
    t._storage = Storage(out, spec)
    t._spec = spec
    t._offset = 0
    t._edge = t._grad = t._base = t._base_edge = t._hooks = None
    t._rg = False
    if me.grad and plan.diff:
        base = a._base
        if a._rg:
            edge = (a, 0)
        elif base is not None and base._edge is not a._base_edge:
            edge = edge_of(a)
        else:
            edge = a._edge
        if edge is not None:
            node = tape.record(plan, (va,), (edge,), (), (out,), ((s, s.version),))
            if node.bwd.save_out:
                node.guards.append((t._storage, 0))
            t._edge = (node, 0)
    return t


def finish2(plan, me, a, b):
    """Record a plan with two tensor operands and one result."""
    sa = a._storage
    sp = a._spec
    va = sa.value if sa.spec is sp else _read(sa, sp, a._offset)
    sb = b._storage
    sp = b._spec
    vb = sb.value if sb.spec is sp else _read(sb, sp, b._offset)
    graph = me.graph
    if graph.device is not plan.device:
        graph = me.graph_on(plan.device)
    out = graph.rec2(plan, va, vb)
    spec = plan.specs[0]
    t = _new(Tensor)
    t._storage = Storage(out, spec)
    t._spec = spec
    t._offset = 0
    t._edge = t._grad = t._base = t._base_edge = t._hooks = None
    t._rg = False
    if me.grad and plan.diff:
        ea = a._edge if a._base is None and not a._rg else edge_of(a)
        eb = b._edge if b._base is None and not b._rg else edge_of(b)
        if ea is not None or eb is not None:
            node = tape.record(plan, (va, vb), (ea, eb), (), (out,), ((sa, sa.version), (sb, sb.version)))
            if node.bwd.save_out:
                node.guards.append((t._storage, 0))
            t._edge = (node, 0)
    return t


def finish(plan, me, tensors, numbers):
    """Record any plan and return its public results."""
    values = []
    for t in tensors:
        s = t._storage
        sp = t._spec
        values.append(s.value if s.spec is sp else _read(s, sp, t._offset))
    graph = me.graph
    if graph.device is not plan.device:
        graph = me.graph_on(plan.device)
    outs = graph.recn(plan, values, numbers)
    results = []
    for value, spec in zip(outs, plan.specs):
        t = _new(Tensor)
        t._storage = Storage(value, spec)
        t._spec = spec
        t._offset = 0
        t._edge = t._grad = t._base = t._base_edge = t._hooks = None
        t._rg = False
        results.append(t)
    if me.grad and plan.diff:
        edges = [edge_of(t) for t in tensors]
        for e in edges:
            if e is not None:
                put_on_tape(plan, tensors, values, edges, numbers, outs, results)
                break
    if not plan.multiple:
        return results[0]
    if plan.public != plan.n_out:
        results = results[: plan.public]
    return tuple(results) if plan.fields is None else plan.fields(results)


def put_on_tape(plan, tensors, values, edges, numbers, outs, results):
    edges = tuple(e if differentiable(t._spec) else None for e, t in zip(edges, tensors))
    if not any(e is not None for e in edges):
        return
    guards = [(t._storage, t._storage.version) for t in tensors]
    node = tape.record(plan, values, edges, numbers, outs, guards)
    if node.bwd.save_out:
        for t in results[: plan.public]:
            node.guards.append((t._storage, 0))
    for t, k in zip(results, plan.out_edges):
        if k is not None:
            t._edge = (node, k)


# --- the slow path -----------------------------------------------------------------------------------------------------


def slow(op, args, out=None):
    """One call with everything that may be unusual about it."""
    me = tls.me
    if me.special is not None:
        handled, result = me.special(op, args, out)
        if handled:
            return result
    call = Call(op, args)
    if op.value_checks:
        _check_values(op, call)
    if op.dynamic:
        return _dynamic(op, call)
    _draw_keys(call)
    plan = _plan_of(op, call)
    tensors = _same_device(call.tensors, plan.device)
    if out is not None:
        return _with_out(op, plan, me, tensors, call, out)
    return finish(plan, me, tensors, call.numbers)


def _plan_of(op, call):
    try:
        plan = op.plans.get(call.key)
    except TypeError:
        raise errors.unhashable(op.name, call.key) from None
    if plan is None:
        plan = op.plans[call.key] = make_plan(op, call)
    return plan


def _draw_keys(call):
    for slot in call.slots:
        if slot[0] == "k":
            call.tensors[slot[1]] = KeyTensor(rng.next_key())


class KeyTensor:
    """A random key in the place of a tensor operand."""

    __slots__ = ("_storage", "_spec", "_offset", "_edge", "_rg", "_base", "_base_edge")

    def __init__(self, key):
        self._spec = _key_spec()
        self._storage = Storage(key, self._spec)
        self._offset = 0
        self._edge = self._base = self._base_edge = None
        self._rg = False


def _same_device(tensors, device):
    for t in tensors:
        if t._spec.device is not device and type(t) is not KeyTensor:
            return [t if type(t) is KeyTensor or t._spec.device is device else t.to(device) for t in tensors]
    return tensors


def _check_values(op, call):
    """Checks of values that are on the host already, or cheap to have because they are computed."""
    arrays = []
    for t in call.tensors:
        v = t._storage.value if t is not None else None
        known = t is not None and (type(v) is not storages.Pending or v.value is not None)
        arrays.append(storages.numpy_of(t._storage, t._spec, t._offset) if known and _on_host(t, v) else None)
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
    for check in op.value_checks:
        op.invoke(check, args)


def _on_host(t, value):
    if isinstance(value, jax.core.Tracer):
        return False
    return t._spec.device is devices.cpu and t._spec.dtype.category <= dtypes.INT


def _dynamic(op, call):
    """An op whose result's shape depends on values: run at once on concrete arrays."""
    specs = [t._spec for t in call.tensors]
    slots, _ = _bind(op, call, specs)
    for check in op.checks:
        op.invoke(check, _check_arguments(slots, specs, call.numbers))
    arrays = [storages.realise(value_of(t)) for t in call.tensors]
    if any(isinstance(a, jax.core.Tracer) for a in arrays):
        raise errors.data_dependent(op.name)
    device = _device(op, specs)
    got = Binding(op, slots, len(arrays)).kernel(*arrays, *call.numbers)
    multiple = isinstance(got, (tuple, list))
    outs = []
    for v in got if multiple else (got,):
        v = storages.to_device(v, device)
        outs.append(make(Storage(v, Spec.dense(v.shape, dtypes.of(v.dtype), device)), Spec.dense(v.shape, dtypes.of(v.dtype), device)))
    if not multiple:
        return outs[0]
    names = RETURN_FIELDS.get(op.name)
    return tuple(outs) if names is None else return_type(op.name, names)(outs)


def _with_out(op, plan, me, tensors, call, out):
    outs = (out,) if isinstance(out, Tensor) else tuple(out)
    if me.grad and plan.diff and (any(edge_of(t) is not None for t in (*tensors, *outs))):
        raise RuntimeError(
            f"{op.name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    results = finish(plan, me, tensors, call.numbers)
    for o, r in zip(outs, results if plan.multiple else (results,)):
        copy_to_out(o, r)
    return out if plan.fields is None else plan.fields(outs)


def copy_to_out(out, result):
    """Write a result into an `out=` tensor, resizing it as PyTorch does."""
    if out._spec.device is not result._spec.device:
        raise RuntimeError(
            f"Expected out tensor to have device {result._spec.device}, but got {out._spec.device} instead"
        )
    if not dtypes.can_cast(result._spec.dtype, out._spec.dtype):
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
        replace_storage(out, spec)
    write(out, cast_value(result, out._spec.dtype))


def replace_storage(t, spec):
    """Give a tensor's storage room for another shape (resize_): the contents are what the next write puts there."""
    t._storage.value = zeros_value(Spec.dense(tuple(spec.shape), spec.dtype, spec.device))
    t._storage.spec = spec
    t._spec = spec
    t._offset = 0


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
            None, "cast", lambda a: registry.OPS["_to_copy"].fn(a, dtype) if "_to_copy" in registry.OPS else a.astype(np_dtype),
            (spec,), specs=(out,),
        )  # fmt: skip
    me = tls.me
    graph = me.graph if me.graph.device is spec.device else me.graph_on(spec.device)
    return graph.rec1(plan, value)


def write(t, value):
    """Swap in a new value for a tensor, through its view if it is one."""
    storages.write(t._storage, t._spec, t._offset, value)


# --- in place ----------------------------------------------------------------------------------------------------------


def inplace(op, args):
    """`input.op_(...)`: compute out of place, write through the view, and rebase the history."""
    me = tls.me
    t = args[0]
    if me.special is not None:
        handled, result = me.special(op, args, None, True)
        if handled:
            return result
    if not isinstance(t, Tensor):
        raise errors.argument(op.name + "_", "input", "Tensor", t)
    if me.grad:
        check_inplace(t)
    call = Call(op, args)
    if op.value_checks:
        _check_values(op, call)
    _draw_keys(call)
    key = ("inplace", call.key)
    try:
        plan = op.plans.get(key)
    except TypeError:
        raise errors.unhashable(op.name, call.key) from None
    if plan is None:
        plan = op.plans[key] = make_plan(op, call, inplace_spec=t._spec)
    tensors = _same_device(call.tensors, plan.device)
    if t._spec.numel > 1 and 0 in t._spec.strides and _overlaps(t._spec):
        raise errors.overlap()
    values = [value_of(x) for x in tensors]
    graph = me.graph
    if graph.device is not plan.device:
        graph = me.graph_on(plan.device)
    outs = graph.recn(plan, values, call.numbers)
    node = None
    if me.grad and plan.diff:
        edges = tuple(edge_of(x) for x in tensors)
        edges = tuple(e if e is not None and differentiable(x._spec) else None for e, x in zip(edges, tensors))
        if any(e is not None for e in edges):
            guards = [(x._storage, x._storage.version) for x in tensors]
            node = tape.record(plan, values, edges, call.numbers, outs, guards)
    write_on_tape(t, outs[0], node)
    return t


def check_inplace(t):
    """PyTorch's rules for what may be written to while gradients are recorded."""
    if t._rg:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if t._base is not None:
        if t._base._rg:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
        edge = edge_of(t)
        if edge is not None and t.__dict__.get("_multi_view"):
            raise RuntimeError(
                f"Output {edge[1]} of {edge[0].name()} is a view and is being modified inplace. This view is the output of a "
                "function that returns multiple views. Such functions do not allow the output views to be modified inplace. "
                "You should replace the inplace operation by an out-of-place one."
            )


def write_on_tape(t, value, node, k=0):
    """Write `value`, the result `k` of `node` (or of nothing differentiable), into a tensor and give it that history."""
    me = tls.me
    storage = t._storage
    base = t._base
    before = storage.base
    old = storage.value if base is not None else None
    write(t, value)
    if node is not None and node.bwd is not None and node.bwd.save_out:
        node.guards.append((storage, storage.version))
    if not me.grad:
        return
    if base is None:
        t._edge = None if node is None else (node, k)
        return
    base_edge = edge_of(base)
    if node is None and base_edge is None:
        return
    base._edge = _copy_slices(base, base_edge, t, old, before, value, None if node is None else (node, k))
    base._rg = False
    t._base_edge = None
    from_base = edge_of(t)
    t._edge = from_base


def _copy_slices(base, base_edge, view, old, before, value, edge):
    """The edge of a base after one of its views has been written: base with the view's elements replaced."""
    a, b = base._spec, view._spec
    layout = storages.strided.plan(tuple(a.shape), a.strides, tuple(b.shape), b.strides, view._offset - base._offset)
    recipe, starts = layout
    key = (a, b, recipe)
    plan = _slices.get(key)
    if plan is None:

        def put(array, value, *starts):
            return recipe.write(array, starts, value)

        operands = (Spec.dense(tuple(a.shape), a.dtype, a.device), Spec.dense(tuple(b.shape), b.dtype, b.device))
        plan = Plan(None, "CopySlices", put, operands, (int,) * len(starts), specs=operands[:1])
        plan.grad_name = "CopySlices"
        plan.extra = SlicesMap(recipe, operands)
        _slices[key] = plan
    return (tape.record(plan, (None, None), (base_edge, edge), tuple(starts), (None,), (None, None)), 0)


_slices: dict = {}


def _overlaps(spec):
    return any(s == 0 and n > 1 for n, s in zip(spec.shape, spec.strides))


# --- views -------------------------------------------------------------------------------------------------------------


class ViewPlan:
    """A view op on one spec: the specs and offsets of its results, and the canonical layouts for their derivative."""

    __slots__ = ("outs", "many", "name")

    def __init__(self, view, spec, statics):
        layout = Layout(tuple(spec.shape), spec.strides, 0)
        got = view.fn(layout, *statics)
        self.many = isinstance(got, (tuple, list))
        flat = Layout(tuple(spec.shape), shapes.contiguous_strides(tuple(spec.shape)), 0)
        self.name = view.grad_name if isinstance(view.grad_name, str) else view.grad_name(spec, *statics)
        if view.name == "as_strided":
            plain = got
        else:
            try:
                plain = view.fn(flat, *statics)
            except RuntimeError:
                plain = got
        pairs = zip(got, plain) if self.many else ((got, plain),)
        self.outs = [
            (Spec.of(tuple(o.shape), tuple(o.strides), spec.dtype, spec.device), o.offset, tuple(p.strides), p.offset)
            for o, p in pairs
        ]


def call_view(view, t, statics):
    """Apply a view op to a tensor."""
    spec = t._spec
    try:
        plan = view.plans.get((spec, statics))
    except TypeError:
        statics = static(statics)
        plan = view.plans.get((spec, statics))
    if plan is None:
        statics = static(statics)
        plan = view.plans[spec, statics] = ViewPlan(view, spec, statics)
    me = tls.me
    edge = edge_of(t) if me.grad else None
    base = t if t._base is None else t._base
    if not plan.many:
        out, offset, strides, start = plan.outs[0]
        v = _new(Tensor)
        v._storage = t._storage
        v._spec = out
        v._offset = t._offset + offset
        v._grad = v._hooks = None
        v._rg = False
        v._base = base
        v._base_edge = base._edge
        if edge is None or not differentiable(out):
            v._edge = None
        else:
            p, starts = view_plan(spec, shapes_contiguous(spec), tuple(out.shape), strides, start, plan.name)
            v._edge = (tape.record(p, (), (edge,), starts, (), (None,)), 0)
        return v
    return _many_views(plan, t, spec, edge, base)


def shapes_contiguous(spec):
    return Spec.dense(tuple(spec.shape), spec.dtype, spec.device).strides


def _many_views(plan, t, spec, edge, base):
    views = []
    for out, offset, strides, start in plan.outs:
        v = make(t._storage, out, t._offset + offset)
        v._base = base
        v._base_edge = base._edge
        v.__dict__["_multi_view"] = True
        if edge is not None and differentiable(out):
            p, starts = view_plan(spec, shapes_contiguous(spec), tuple(out.shape), strides, start, plan.name)
            v._edge = (tape.record(p, (), (edge,), starts, (), (None,)), 0)
        views.append(v)
    return tuple(views)


# --- generated callers -------------------------------------------------------------------------------------------------


def _signature_source(record):
    """The parameter list of a record as source, with defaults taken from a namespace."""
    parts, defaults, star = [], {}, False
    for p in record.params:
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        if getattr(record, "roles", None) and record.roles[record.params.index(p)] == KEY:
            continue
        if p.default is p.empty:
            parts.append(p.name)
        else:
            defaults[f"_d_{p.name}"] = p.default
            parts.append(f"{p.name}=_d_{p.name}")
    if parts and parts[-1] == "*":
        parts.pop()
        star = False
    return parts, defaults, star


def build(op):
    """The public function of an op."""
    parts, scope, star = _signature_source(op)
    if op.out:
        parts += ([] if star else ["*"]) + ["out=None"]
    roles = op.roles
    names = [p.name for p in op.params]
    tolerant = "dim" in names
    if tolerant:
        parts.append("**named")
    args = ", ".join("None" if r == KEY else n for n, r in zip(names, roles)) + ","
    out = ", out" if op.out else ""
    fallback = f"return slow(op, ({args}){out})"
    body = []
    if tolerant:
        body += ["if named:", f"    return renamed(op, ({args}), {'out' if op.out else 'None'}, named)"]
    plain = all(r in (TENSOR, SCALAR, NUMBER, STATIC) for r in roles) and not op.dynamic and not op.value_checks
    tensors = [n for n, r in zip(names, roles) if r in (TENSOR, SCALAR)]
    if plain and 1 <= len(tensors) <= 2 and roles[0] in (TENSOR, SCALAR):
        first = tensors[0]
        test = f"type({first}) not in fast or me.special is not None"
        if op.out:
            test += " or out is not None"
        body += ["me = tls.me", f"if {test}:", f"    {fallback}"]
        pieces, numbers = {}, []
        for n, r in zip(names, roles):
            if r in (TENSOR, SCALAR) and n != first:
                continue
            pieces[n] = f"{n}._spec" if n == first else f"type({n})" if r == NUMBER else n
            if r == NUMBER:
                numbers.append(n)

        def key(**other):
            got = [other.get(n, pieces.get(n)) for n in names]
            return got[0] if len(got) == 1 else "(" + ", ".join(got) + ")"

        def attempt(k, result, indent):
            return [
                f"{indent}try:",
                f"{indent}    plan = plans[{k}]",
                f"{indent}except (KeyError, TypeError):",
                f"{indent}    {fallback}",
                f"{indent}{result}",
            ]

        nums = "".join(n + "," for n in numbers)
        if numbers:
            # A None where a number may stand is part of the key as NoneType: such calls are rare.
            test = " or ".join(f"type({n}) not in number_types" for n in numbers)
            body += [f"if {test}:", f"    {fallback}"]
        if len(tensors) == 1:
            result = f"return finish(plan, me, ({first},), ({nums}))" if numbers else "return finish1(plan, me, {0}) if plan.simple else finish(plan, me, ({0},), ())".format(first)
            body += attempt(key(), result, "")
        else:
            second = tensors[1]
            both = f"return finish(plan, me, ({first}, {second}), ({nums}))" if numbers else "return finish2(plan, me, {0}, {1}) if plan.simple else finish(plan, me, ({0}, {1}), ())".format(first, second)
            body += [f"kind = type({second})", "if kind in fast:"]
            body += attempt(key(**{second: f"{second}._spec"}), both, "    ")
            if roles[names.index(second)] == SCALAR:
                order = "".join(n + "," for n in names if n == second or n in numbers)
                body += ["if kind in number_types:"]
                body += attempt(key(**{second: "kind"}), f"return finish(plan, me, ({first},), ({order}))", "    ")
            body += [fallback]
    else:
        body += [fallback]
    source = f"def {_safe(op.name)}({', '.join(parts)}):\n" + "\n".join("    " + line for line in body)
    scope |= {
        "tls": tls, "op": op, "slow": slow, "plans": op.plans, "finish": finish, "finish1": finish1, "finish2": finish2,
        "fast": FAST, "renamed": renamed, "number_types": _number_set, "type": builtins.type,
    }  # fmt: skip
    return _compile(source, scope, op)


def _safe(name):
    return name if name.isidentifier() else "op"


def _compile(source, scope, record):
    exec(compile(source, f"<jtorch {record.name}>", "exec"), scope)
    fn = scope[_safe(record.name)]
    fn.__doc__ = record.doc
    fn.__module__ = "jtorch"
    fn.__name__ = fn.__qualname__ = record.name
    return fn


def varargs_index(record):
    """Where a VarInts parameter stands, or -1."""
    for i, p in enumerate(record.params):
        if p.annotation is VarInts:
            return i
    return -1


def spread(record, fn):
    """Let the ints of a VarInts parameter be given one by one: x.permute(0, 1)."""
    at = varargs_index(record)
    if at < 0:
        return fn

    def call(*args, **kwargs):
        if len(args) > at:
            first = args[at]
            if not isinstance(first, (tuple, list, Size)) and not (first is None and len(args) == at + 1):
                args = (*args[:at], args[at:])
        return fn(*args, **kwargs)

    call.__name__ = call.__qualname__ = record.name
    call.__doc__ = record.doc
    return call


_RENAMED = {"axis": "dim", "keepdims": "keepdim", "axis0": "dim0", "axis1": "dim1"}


def renamed(record, args, out, named):
    """A call with numpy's spellings of arguments (axis=, keepdims=), which PyTorch accepts too."""
    names = [p.name for p in record.params]
    values = dict(zip(names, args))
    for name, value in named.items():
        to = _RENAMED.get(name)
        if to not in values:
            raise TypeError(f"{record.name}() got an unexpected keyword argument '{name}'")
        values[to] = value
    if out is not None:
        values["out"] = out
    fn = function_of(record)
    n, _ = record.keywords
    return fn(*[values[k] for k in names[:n]], **{k: v for k, v in values.items() if k not in names[:n]})


def build_inplace(op):
    """The method `op_`."""
    parts, scope, _ = _signature_source(op)
    names = ["None" if r == KEY else p.name for p, r in zip(op.params, op.roles)]
    source = f"def {_safe(op.name)}({', '.join(parts)}):\n    return inplace(op, ({', '.join(names)},))"
    scope |= {"inplace": inplace, "op": op}
    fn = _compile(source, scope, op)
    fn.__name__ = fn.__qualname__ = op.name + "_"
    return fn


def build_view(view):
    """The public function of a view op."""
    parts, scope, _ = _signature_source(view)
    names = [p.name for p in view.params]
    first, rest = names[0], names[1:]
    tolerant = any(n in names for n in _RENAMED.values())
    if tolerant:
        parts.append("**named")
    source = (
        f"def {_safe(view.name)}({', '.join(parts)}):\n"
        + (f"    if named:\n        return renamed(view, ({', '.join(names)},), None, named)\n" if tolerant else "")
        + f"    if not isinstance({first}, Tensor):\n"
        f"        raise argument('{view.name}', '{first}', 'Tensor', {first})\n"
        f"    return call_view(view, {first}, ({''.join(n + ', ' for n in rest)}))"
    )
    scope |= {"call_view": call_view, "view": view, "Tensor": Tensor, "argument": errors.argument, "renamed": renamed}
    return _compile(source, scope, view)


def function_of(record):
    """The public function of any record, made once."""
    found = _functions.get(record.name)
    if found is None:
        if record.kind == "op":
            fn = build(record)
        elif record.kind == "view":
            fn = build_view(record)
        else:
            fn = record.fn
        found = _functions[record.name] = spread(record, fn)
    return found


_functions: dict = {}


def tensor_call(record, args, kwargs):
    return function_of(record)(*args, **kwargs)


def forget_plans():
    """Drop all plans: the default dtype has changed, and they depend on it."""
    for op in registry.OPS.values():
        op.plans.clear()


# --- fused updates -----------------------------------------------------------------------------------------------------


def fused_update(fn, static_key, inputs, numbers, outputs):
    """Record one node: fn(arrays, numbers) -> arrays, swapped into the storages of `outputs`. No gradient is recorded.

    Numbers are run-time inputs always: another learning rate never compiles anything.
    """
    specs = tuple(t._spec for t in inputs)
    kinds = tuple(map(type, numbers))
    key = (static_key, specs, tuple(t._spec for t in outputs), kinds)
    plan = _updates.get(key)
    if plan is None:
        n = len(inputs)

        def update(*values):
            got = fn(list(values[:n]), values[n:])
            got = [g.astype(o.dtype.np) if g.dtype != o.dtype.np else g for g, o in zip(got, out_specs)]
            return got[0] if len(got) == 1 else tuple(got)

        out_specs = [Spec.dense(tuple(t._spec.shape), t._spec.dtype, t._spec.device) for t in outputs]
        update.__name__ = str(static_key[0] if isinstance(static_key, tuple) else static_key)
        plan = _updates[key] = Plan(None, update.__name__, update, specs, kinds, True, specs=tuple(out_specs))
    me = tls.me
    graph = me.graph if me.graph.device is plan.device else me.graph_on(plan.device)
    values = []
    for t in inputs:
        s = t._storage
        values.append(s.value if s.spec is t._spec else _read(s, t._spec, t._offset))
    outs = graph.recn(plan, values, tuple(numbers))
    del values
    for t, v in zip(outputs, outs):
        s = t._storage
        if s.spec is t._spec:
            s.value = v
            s.version += 1
        else:
            write(t, v)


_updates: dict = {}

registry.tensor_call = tensor_call
registry.tensor_type = Tensor
