"""Plans: an op specialised to the specs of its operands. Promotion, checks, shape inference, result strides."""

import functools

import jax
import numpy as np

from .. import errors
from ..autograd.derive import Binding, HalfBinding, differentiable
from ..core import device as devices
from ..core import dtype as dtypes
from ..core import shapes, wide
from ..core.program import Plan
from ..core.spec import Spec
from ..ops import registry
from ..ops.registry import KEY, LIST, NUMBER, OPTIONAL, SCALAR, STATIC, TENSOR
from ..tensor import Tensor
from .factors import FACTORS, check_factors
from .inference import infer
from .results import finisher
from .statics import check_statics, numpy_number, static_of, statics_of

NUMBER_TYPES = frozenset((float, int, bool, complex))


class _Mark:
    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name


DEFAULT = _Mark("default")  # in a key: this number has its default value, and is static
MISSING = _Mark("missing")  # in the place of a required argument that may come under numpy's name


def _combine(higher, lower):
    if higher is None:
        return lower
    if lower is None or higher.is_complex:
        return higher
    if higher.is_floating_point:
        return higher.to_complex() if lower.is_complex else higher
    if lower.is_complex:
        return lower
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


FAST = {Tensor}  # classes whose instances take the generated path


class Call:
    """The arguments of one call sorted by what they are to the recorder."""

    __slots__ = ("key", "tensors", "numbers", "slots", "given")

    def __init__(self, op, args, method=False, name=None):
        """method: whether an error counts the arguments without the tensor. name: that of an in-place form, for errors."""
        key, tensors, numbers, slots = [], [], [], []
        for param, role, a in zip(op.params, op.roles, args):
            if a is MISSING:
                raise errors.missing_argument(op.shown, param.name)
            if role == STATIC:
                a = static_of(param, a)
                key.append(a)
                slots.append(("s", a))
            elif role == KEY:
                key.append(None)
                slots.append(("k", len(tensors)))
                tensors.append(None)
            elif role == LIST:
                if (
                    isinstance(a, Tensor)
                    or a is None
                    and param.default is param.empty
                    or not (a is None or hasattr(a, "__iter__"))
                ):
                    raise _wrong(op, param, "tuple of Tensors", a, args, method, name)
                entries, marks = [], []
                for at, x in enumerate(a if a is not None else ()):
                    if not isinstance(x, Tensor) and not (x is None and takes_none(param)):
                        raise errors.list_element(at, x)
                    if x is None:
                        entries.append(("s", None))
                        marks.append(None)
                    else:
                        entries.append(("o", len(tensors)))
                        marks.append(x._spec)
                        tensors.append(x)
                key.append(tuple(marks) if a is not None else None)
                slots.append(("l", entries) if a is not None else ("s", None))
            elif role == NUMBER and a is param.default:
                key.append(DEFAULT)
                slots.append(("s", a))
            elif isinstance(a, Tensor) and role != NUMBER:
                key.append(a._spec)
                slots.append(("o", len(tensors)))
                tensors.append(a)
            elif a is None and (role in (OPTIONAL, NUMBER, SCALAR)):
                if role == NUMBER and param.name in FACTORS and param.default is not None:
                    raise _wrong(op, param, "Number", a, args, method, name)
                if role == SCALAR and param.default is not None:
                    raise _wrong(op, param, "Tensor", a, args, method, name)
                key.append(None)
                slots.append(("s", None))
            elif role in (TENSOR, OPTIONAL):
                raise _wrong(op, param, "Tensor", a, args, method, name)
            else:
                a = scalar(op, param, role, a, args, method, name)
                key.append(type(a))
                slots.append(("n", len(numbers)))
                numbers.append(a)
        self.given = args
        self.key = key[0] if len(key) == 1 else tuple(key)
        self.tensors = tensors
        self.numbers = tuple(numbers)
        self.slots = slots


@functools.cache
def takes_none(param) -> bool:
    """Whether the tensors of a list may be None."""
    return "None" in str(param.annotation).split("[", 1)[-1]


def _wrong(op, param, expected, got, args, method=False, name=None):
    """The error for an argument of the wrong type.

    PyTorch has one form of add, which takes numbers for tensors, but several of eq: with a tensor, with a number.
    """
    if expected == "Tensor":
        op.ask_first(param.name, got)
    if expected == "Tensor" and SCALAR in op.roles and not op.numbers:
        return no_such_call(op, args, method, name)
    position = None if param.kind is param.KEYWORD_ONLY else op.params.index(param) + 1 - method
    return errors.argument(name or op.shown, param.name, expected, got, position)


def no_such_call(op, args, method=False, name=None):
    """The error for arguments that fit none of an op's forms."""
    given = list(args)
    while given and given[-1] is op.params[len(given) - 1].default:
        given.pop()
    kinds = {TENSOR: "Tensor", OPTIONAL: "Tensor or None", LIST: "list of Tensors", SCALAR: "Tensor or number"}
    wanted = ", ".join(f"{p.name}: {kinds[r]}" for p, r in zip(op.params, op.roles) if r in kinds)
    return errors.combination(name or op.shown, given[method:], f"({wanted}), with one Tensor at least")


def scalar(op, param, role, a, args=(), method=False, name=None):
    """A Python number out of whatever may stand for one."""
    if type(a) is int:
        if not wide.is_wide(a):
            return a
        wide.check(a)
        return float(a) if any(isinstance(t, Tensor) and t._spec.dtype.category > dtypes.INT for t in args) else a
    if type(a) in NUMBER_TYPES:
        return a
    if isinstance(a, Tensor) and not a._spec.ndim:
        return a.item()
    for kind in (int, float, complex):
        if isinstance(a, kind):
            return kind(a)
    if isinstance(a, np.generic) and a.dtype.kind in "biufc":
        return numpy_number(a)
    raise _wrong(op, param, "Tensor" if role == SCALAR else "Number", a, args, method, name)


def make_plan(op, call, inplace_spec=None, method=False):
    """Specialise an op: promotion, checks, shape inference, result strides. Errors are PyTorch's."""
    if not call.tensors and op.promote is not registry.NONE and not op.numbers:
        raise no_such_call(op, call.numbers)
    name = None if inplace_spec is None else op.name + "_"
    check_statics(op, statics_of(op, call), method=method, name=name, given=call.given)
    kinds = tuple(type(x) for x in call.numbers)
    slots, target = bind(op, call)
    specs = [t._spec if t is not None else key_spec() for t in call.tensors]
    device = device_of(call)
    check_numbers(op, call, slots, specs, target)
    shape = None
    if op.elementwise:  # sizes that do not fit are said before dtypes
        shape = shapes.broadcast(*[tuple(s.shape) for s in specs])
        if inplace_spec is not None and shape != tuple(inplace_spec.shape):
            raise RuntimeError(
                f"output with shape {list(inplace_spec.shape)} doesn't match the broadcast shape {list(shape)}"
            )
    if inplace_spec is not None:
        _check_kept(op, target, inplace_spec)
    check_dtype(op, target, specs)
    binding = _binding(op, slots, target, specs, inplace_spec)
    fn = binding.kernel
    plan = Plan(op, op.name, fn, tuple(specs), kinds, device=device)
    plan.extra = binding
    out = infer(op, plan, call, inplace_spec)
    multiple = isinstance(out, (tuple, list))
    outs = list(out) if multiple else [out]
    if inplace_spec is not None:
        if callable(op.inplace):
            op.inplace(inplace_spec, **{op.params[k].name: v for k, v in statics_of(op, call)})
        result = dtypes.of(outs[0].dtype)
        if not dtypes.can_cast(result, inplace_spec.dtype):
            raise RuntimeError(
                f"result type {dtypes.scalar_name(result)} can't be cast to the desired output type "
                f"{dtypes.scalar_name(inplace_spec.dtype)}"
            )
        if tuple(outs[0].shape) != tuple(inplace_spec.shape):
            raise errors.inplace_shape(op.name, inplace_spec.shape, outs[0].shape)
        if outs[0].dtype != inplace_spec.dtype.np:
            target = inplace_spec.dtype.np
            plan = _cast(plan, fn, target)
        plan.set_specs((Spec.dense(tuple(inplace_spec.shape), inplace_spec.dtype, device),))
    else:
        narrow = type(binding) is HalfBinding
        strided = [_strides_read(s, target) for s in specs] if op.elementwise else ()
        plan.set_specs(tuple(_result_specs(op, outs, specs, call, shape, device, narrow, strided)))
    plan.extra = binding
    name = op.grad_name
    plan.grad_name = name if isinstance(name, str) else name(_arguments(op, call))
    if inplace_spec is not None and op.own_in_place is not None:
        plan.grad_name = plan.grad_name[:-1] + "1"
        binding.refused = op.own_in_place(_arguments(op, call))
        binding.by_result = op.by_result_in_place
    plan.diff = op.differentiable and any(differentiable(s) for s in (*plan.specs, *specs[: op.keeps_history]))
    plan.public = plan.n_out - op.hidden
    plan.multiple = multiple and not (op.hidden and plan.public == 1)
    if multiple and len(outs) == 1 and type(out) in (tuple, list):
        plan.multiple = True
        inner = plan.fn
        plan.fn = lambda *v: inner(*v)[0]
        plan.jit = jax.jit(plan.fn, inline=True)
    plan.fields = _fields(op, plan)
    plan.out_edges = [k if differentiable(s) and k not in op.constant else None for k, s in enumerate(plan.specs)]
    plan.finish = finisher(plan)
    return plan


def _cast(plan, fn, target):
    """A plan that has been inferred, with its result in another dtype."""
    made = Plan(plan.op, plan.name, lambda *v: fn(*v).astype(target), plan.operands, plan.kinds, device=plan.device)
    made.kin = plan.kin
    return made


def _check_kept(op, target, spec):
    """Raise where PyTorch has no kernel for the promoted dtype, and says first that it does not fit what is written to."""
    if (
        target is None or target.name not in op.lacks or op.name in ("lt", "le", "gt", "ge")
    ):  # results of these are bools
        return
    if not dtypes.can_cast(target, spec.dtype):
        raise RuntimeError(
            f"result type {dtypes.scalar_name(target)} can't be cast to the desired output type {dtypes.scalar_name(spec.dtype)}"
        )


def check_numbers(op, call, slots, specs, target):
    for check in op.checks:
        op.invoke(check, check_arguments(slots, specs, call.numbers))
    check_factors(op, call, target or (specs[0].dtype if specs else None))
    if any(map(wide.is_wide, call.numbers)):
        if (
            target is not None
            and all(s.dtype is dtypes.bool_ for s in specs)
            and any(type(x) is int for x in call.numbers)
        ):
            dtypes.promote(dtypes.bool_, dtypes.uint64)  # what holds such an int: PyTorch refuses
        read = float if target is not None and target.category > dtypes.INT else wide.wrapped
        call.numbers = tuple(read(x) if type(x) is int and wide.is_wide(x) else x for x in call.numbers)


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
    body |= {
        "__repr__": show,
        "__slots__": (),
        "n_fields": len(fields),
        "n_sequence_fields": len(fields),
        "n_unnamed_fields": 0,
        "__match_args__": tuple(fields),
        "__module__": "torch.return_types",
    }
    body["__reduce__"] = lambda self: (_rebuild_return, (name, tuple(self)))
    made = type(public, (tuple,), body)
    jax.tree_util.register_pytree_node(made, lambda t: (tuple(t), None), lambda _, children: made(children))
    return made


def _rebuild_return(name, values):
    return _return_types[name](values) if name in _return_types else values


_LINALG = (
    "eigh",
    "eig",
    "lu_factor",
    "lu_factor_ex",
    "cholesky_ex",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "solve_ex",
    "lstsq",
)
PUBLIC_RETURN_NAMES = {"max_dim": "max", "min_dim": "min", "median_dim": "median", "nanmedian_dim": "nanmedian"}
PUBLIC_RETURN_NAMES |= {name: f"linalg_{name}" for name in _LINALG}


def key_spec():
    return Spec.dense((2,), dtypes.uint32, devices.cpu)


def bind(op, call):
    """The slots of a Binding, with the casts of promotion in them."""
    target = None
    if op.promote is not registry.NONE:
        used = [t._spec for t, s in _promoted(op, call)]
        kinds = [
            type(call.numbers[s[1]]) for p, s, r in zip(op.params, call.slots, op.roles) if r == SCALAR and s[0] == "n"
        ]
        target = result_dtype(used, kinds)
        kind = op.promote
        if op.promotes is not None:
            kind = op.promotes({p.name: s[1] for p, s in zip(op.params, call.slots) if s[0] == "s"})
        if kind is registry.FLOAT and target is not None and target.category < dtypes.FLOAT:
            target = dtypes.default.dtype
    # PyTorch computes 16-bit floats in float32, and takes a number there as it is
    half = target is not None and target.is_floating_point and target.itemsize == 2
    slots = []
    for param, role, slot in zip(op.params, op.roles, call.slots):
        kind = slot[0]
        wide = half and param.name == op.wide
        if param.name in op.unpromoted:
            slots.append(("o", slot[1], None))
        elif kind == "o":
            spec = call.tensors[slot[1]]._spec
            to = target if target is not None and spec.dtype is not target else None
            if wide and to is not None and not spec.ndim and spec.dtype.is_floating_point:
                to = dtypes.float32
            slots.append(("o", slot[1], to and to.np))
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
            to = None if role != SCALAR or target is None else dtypes.float32 if wide else target
            slots.append(("n", slot[1], to and to.np))
        else:
            slots.append(slot)
    return slots, target


def _promoted(op, call):
    for param, role, slot in zip(op.params, op.roles, call.slots):
        if param.name in op.unpromoted:
            continue
        if slot[0] == "o" and role in (TENSOR, SCALAR, OPTIONAL):
            yield call.tensors[slot[1]], slot
        elif slot[0] == "l":
            for e in slot[1]:
                if e[0] == "o":
                    yield call.tensors[e[1]], e


def device_of(call):
    """The one device of the operands; 0-d CPU tensors go along with any, and so do random keys."""
    keys = {slot[1] for slot in call.slots if slot[0] == "k"}
    specs = [t._spec for at, t in enumerate(call.tensors) if at not in keys]
    found = None
    for s in specs:
        if found is None or (found is devices.cpu and s.device is not found):
            found = s.device
    if found is None:
        found = devices.get_default()
    for s in specs:
        if s.device is not found and s.ndim:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {found} and {s.device}!"
            )
    return found


def check_dtype(op, target, specs):
    """Raise PyTorch's NotImplementedError for a dtype that it has no kernel for."""
    if op.lacks:
        computed = specs[0].dtype if target is None else target
        if computed.name in op.lacks:
            raise errors.not_implemented(op.lacks[computed.name], computed)


def check_arguments(slots, specs, numbers):
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
    values = check_arguments(call.slots, [t._spec if t is not None else None for t in call.tensors], call.numbers)
    return {p.name: v for p, v in zip(op.params, values)}


def _binding(op, slots, target, specs, inplace_spec):
    """How the kernel is called: where numbers of complex32 go in or have to come out, so that its results are."""
    binding = Binding(op, slots, len(specs))
    asked = [s[1] for s in slots if s[0] == "s" and isinstance(s[1], dtypes.dtype)]
    if inplace_spec is not None:
        asked = [inplace_spec.dtype]
    kinds = asked or ([target] if target is not None else [s.dtype for s in specs])
    kinds = {d for d in kinds if d.category >= dtypes.FLOAT}
    # Complex numbers made of float16 alone are complex32 too.
    if kinds == {dtypes.complex32} or (kinds and not asked and kinds <= {dtypes.complex32, dtypes.float16}):
        binding = HalfBinding(op, slots, len(specs))
        binding.real = dtypes.complex32 in kinds
    return binding


def _strides_read(spec, target):
    """(shape, strides) of an operand as an elementwise op reads it: PyTorch casts it first, into memory without gaps or repetitions."""
    shape = tuple(spec.shape)
    return shape, spec.strides if target in (None, spec.dtype) else shapes.empty_like_strides(shape, spec.strides)


def _result_specs(op, outs, specs, call, shape, device, narrow, operands):
    strides = None
    if op.strides is not None:
        strides = op.invoke(functools.partial(op.strides, outs), check_arguments(call.slots, specs, call.numbers))
    for k, o in enumerate(outs):
        d = dtypes.of(o.dtype)
        d = dtypes.complex32 if narrow and d is dtypes.complex64 else d
        size = tuple(o.shape)
        if strides is not None and strides[k] is not None:
            yield Spec.of(size, tuple(strides[k]), d, device)
        elif op.elementwise and shape is not None and size == shape:
            yield Spec.of(size, tuple(shapes.elementwise_strides(size, operands)), d, device)
        else:
            yield Spec.dense(size, d, device)
