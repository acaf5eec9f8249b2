"""The public functions, generated from the records.

For each op a function with PyTorch's signature is generated at its first use; it finds the plan in a dict by the specs of
its operands and its static values. Everything unusual goes through `slow`.
"""

import builtins
import inspect
import sys

import numpy as np

from .. import errors, errors_arguments
from ..core import crowd, wide
from ..core import dtype as dtypes
from ..core.record import tls
from ..ops import registry
from ..ops.registry import KEY, LIST, NUMBER, OPTIONAL, SCALAR, STATIC, TENSOR
from ..tensor import Tensor
from ..tracebacks import shorten, shortening
from . import old_order, override
from .call import checkable, inplace, inplace_planned, into_out, slow
from .guards import GUARDS
from .kinds import asked_kinds, check_kinds
from .plans import DEFAULT, FAST, MISSING, NUMBER_TYPES, PUBLIC_RETURN_NAMES, RETURN_FIELDS, return_type
from .spread import spread
from .statics import is_method
from .twins import take_no_out, twin
from .view import call_view

_RENAMED = {
    "axis": "dim", "keepdims": "keepdim", "axis0": "dim0", "axis1": "dim1",
    "x": "input", "a": "input", "x1": "input", "x2": "other",
}  # fmt: skip
# What takes any of these takes all of numpy's spellings. Functions without a dimension, such as add, are the hottest that there
# are: to let them take `x1=` would cost each of their calls.
_RENAMES = frozenset(("dim", "keepdim", "dim0", "dim1"))
# A matrix or vector by the letter of the documentation. PyTorch takes `input=` for it, in some functions alone.
_LETTERS = frozenset(("A", "B", "L", "b", "x"))
# Where PyTorch's functions take other names than its documentation says: {record: {name: the record's own}}. Both are taken.
_SPELLED = {
    "lstsq": {"b": "B"}, "cholesky_solve": {"input2": "L"}, "split": {"tensor": "input"}, "one_hot": {"input": "tensor"},
    "householder_product": {"input2": "tau"}, "ormqr": {"input2": "tau", "input3": "other"}, "tensorsolve": {"other": "B"},
    "constant_pad_nd": {"pad": "padding"}, "isin": {"element": "elements", "test_element": "test_elements"},
}  # fmt: skip
_INTEGERS = frozenset((int, np.int8, np.int16, np.int32, np.int64))
_OF_C = ("torch.", "Tensor.", "linalg.", "special.", "fft.")
_COLD = ("linalg.", "special.", "fft.")


def _tolerant(record):
    """Whether a function takes other names of its arguments: at the price of an empty dict a call."""
    names = [p.name for p in record.params]
    if record.name in _SPELLED or not _RENAMES.isdisjoint(names):
        return True
    cold = bool(record.targets) and all(t.startswith(_COLD) for t in record.targets)
    return cold or _is_of_c(record) and names[0] in _LETTERS


def _is_of_c(record):
    return any(t.startswith(_OF_C) for t in record.targets)


def _signature_source(record):
    """The parameter list of a record as source, with defaults taken from a namespace.

    A required `dim` has a default too, since it may be given as `axis`; `Call` finds it missing. So has the `input` beside it.
    """
    parts, defaults, star, optional = [], {}, False, False
    tolerant = _tolerant(record)
    spelled = {*_RENAMED.values(), *_SPELLED.get(record.name, {}).values()}
    for at, p in enumerate(record.params):
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        if getattr(record, "roles", None) and record.roles[record.params.index(p)] == KEY:
            continue
        renames = p.name in spelled or not at and p.name in _LETTERS
        optional = optional or tolerant and renames and p.default is p.empty and not star
        if p.default is p.empty and optional:
            defaults["_missing"] = MISSING
            parts.append(f"{p.name}=_missing")
        elif p.default is p.empty:
            parts.append(p.name)
        else:
            defaults[f"_d_{p.name}"] = p.default
            parts.append(f"{p.name}=_d_{p.name}")
    if parts and parts[-1] == "*":
        parts.pop()
        star = False
    return parts, defaults, star


class _Body:
    """The body of a public function: one branch for each kind of call that has a plan of its own.

    A parameter branches when calls with and without a value for it differ in their operands: an optional tensor, a
    tensor-or-number, a number at its default (which is then static) or not. At each leaf the operands are known.
    """

    def __init__(self, op, fallback):
        self.op = op
        self.fallback = fallback
        self.late = None
        self.lines = []
        self.params = list(zip([p.name for p in op.params], op.roles, [p.default for p in op.params]))

    def emit(self, depth, line):
        self.lines.append("    " * depth + line)

    def walk(self, at, depth, key, tensors, numbers):
        while at < len(self.params):
            name, role, default = self.params[at]
            at += 1
            if role == STATIC:
                key = [*key, name]
            elif role == TENSOR:
                self.emit(depth, f"if type({name}) not in fast:")
                self.emit(depth + 1, self.fallback)
                key, tensors = [*key, f"{name}._spec"], [*tensors, name]
            elif role == OPTIONAL:
                self.emit(depth, f"if {name} is None:")
                self.walk(at, depth + 1, [*key, "None"], tensors, numbers)
                self.emit(depth, f"if type({name}) not in fast:")
                self.emit(depth + 1, self.fallback)
                key, tensors = [*key, f"{name}._spec"], [*tensors, name]
            elif role == SCALAR:
                self.emit(depth, f"kind = type({name})")
                self.emit(depth, "if kind in fast:")
                self.walk(at, depth + 1, [*key, f"{name}._spec"], [*tensors, name], numbers)
                self.emit(depth, f"if kind not in number_types or kind is int and not low <= {name} <= high:")
                self.emit(depth + 1, self.fallback)
                self.emit(depth, f"kind_{name} = kind")
                key, numbers = [*key, f"kind_{name}"], [*numbers, name]
            elif role == NUMBER:
                if default is not inspect.Parameter.empty:
                    late = self.late if self.late == f"_{name}" else None
                    self.emit(depth, f"if {name} is {late or f'_d_{name}'}:")
                    self.walk(at, depth + 1, [*key, "default"], tensors, numbers)
                    if late:
                        self.emit(depth, f"if {late} is not _d_{name}:")
                        self.emit(depth + 1, self.fallback)
                self.emit(depth, f"kind_{name} = type({name})")
                odd = f"kind_{name} is not complex and not low <= {name} <= high and {name} - {name} == 0"
                self.emit(depth, f"if kind_{name} not in number_types or {odd}:")
                self.emit(depth + 1, self.fallback)
                key, numbers = [*key, f"kind_{name}"], [*numbers, name]
        self.leaf(depth, key, tensors, numbers)

    def find(self, depth, key, before=""):
        """Have `plan` be that of a key, which stands in a tuple behind `before`."""
        found = before + (key[0] if len(key) == 1 else "(" + ", ".join(key) + ")")
        for line in ("try:", f"    plan = plans[{found}]", "except (KeyError, TypeError):", "    plan = None"):
            self.emit(depth, line)
        # In the handler, its errors would be shown as if they came of the KeyError.
        self.emit(depth, f"if plan is None: {self.fallback}")

    def leaf(self, depth, key, tensors, numbers):
        values = "(" + "".join(n + ", " for n in numbers) + ")"
        self.find(depth, key)
        if self.op.value_checks:
            self.emit(depth, "if me.scope is not None:")  # a compiled region wants to know what is checked
            self.emit(depth + 1, self.fallback)
        n, named = self.op.keywords
        given = [f"checkable({name})" if name in tensors else name for name, *_ in self.params]
        given[0] = f"{tensors[0]}._spec" if self.op.sized else given[0]
        given[n:] = [f"{name}={value}" for name, value in zip(named, given[n:])]
        for k in range(len(self.op.value_checks)):
            self.emit(depth, f"check{k}({', '.join(given)})")
        given = ", ".join([*tensors, values] if numbers else tensors)
        self.emit(depth, f"return plan.finish(plan, me, {given})" if tensors else self.fallback)


class _InPlaceBody(_Body):
    """The same of the method that writes the result into the first operand."""

    def leaf(self, depth, key, tensors, numbers):
        first = self.params[0][0]
        if tensors[:1] != [first]:
            self.emit(depth, self.fallback)
            return
        self.find(depth, key, "'inplace', ")
        self.emit(depth, f"if 0 in {first}._spec.strides:")
        self.emit(depth + 1, self.fallback)
        given = ["(" + "".join(n + ", " for n in names) + ")" for names in (tensors, numbers)]
        self.emit(depth, f"return inplace_planned(_op, plan, me, {', '.join(given)})")


def _branches(op):
    """Whether calls of an op are worth a generated body: few branches, and nothing that needs a look at values."""
    if op.dynamic or LIST in op.roles or KEY in op.roles:
        return False
    return builtins.sum(r in (OPTIONAL, SCALAR, NUMBER) for r in op.roles) <= 4 and (
        TENSOR in op.roles or SCALAR in op.roles
    )


def build(op):
    """The public function of an op."""
    parts, scope, star = _signature_source(op)
    if op.out:
        parts += ([] if star else ["*"]) + ["out=None"]
    names = [p.name for p in op.params]
    late = old_order.names(op)
    old_order.put(parts, op, late)
    tolerant = _tolerant(op)
    if tolerant:
        parts.append("**named")
    args = ", ".join("None" if r == KEY else n for n, r in zip(names, op.roles)) + ","
    body = _Body(op, f"return slow(_op, ({args}), {'out' if op.out else 'None'}, public)")
    if late:
        body.late, scope["old"] = late[0], old_order.slow
        body.fallback = f"return old(_op, ({args}), ({', '.join(late)},), {'out' if op.out else 'None'}, public)"
    if tolerant:
        body.emit(0, "if named:")
        body.emit(1, f"return renamed(_op, ({args}), {'out' if op.out else 'None'}, named)")
    for line in GUARDS.get(op.name, ()):
        body.emit(0, line)
    if "inplace" in names and op.inplace:
        body.emit(0, "if inplace:")
        body.emit(1, f"return _inplace(_op, ({args.replace('inplace', 'False')}), public)")
    if _branches(op):
        body.emit(0, "me = tls.me")
        body.emit(0, f"if me.special is not None{' or out is not None' if op.out else ''}:")
        body.emit(1, body.fallback)
        body.walk(0, 0, [], [], [])
    else:
        body.emit(0, body.fallback)
    return old_order.hidden(late, _compile(op, parts, body.lines, scope))


def build_operator(op):
    """The dunder method of a binary op: NotImplemented for what is neither tensor nor number."""
    (first, second) = [p.name for p, r in zip(op.params, op.roles) if r in (TENSOR, SCALAR)][:2]
    _, scope, _ = _signature_source(op)
    rest = [p.name for p in op.params if p.name not in (first, second)]
    body = _Body(op, f"return operand(_op, {first}, {second})")
    for line in GUARDS.get(op.name, ()):
        body.emit(0, line)
    for name in rest:
        body.emit(0, f"{name} = _d_{name}")
    body.emit(0, "me = tls.me")
    body.emit(0, "if me.special is not None:")
    body.emit(1, body.fallback)
    body.walk(0, 0, [], [], [])
    return _compile(op, [first, second], body.lines, scope)


def operand(op, a, b):
    """A binary operator on operands out of the ordinary."""
    if not isinstance(b, (Tensor, int, float, complex, np.number, np.bool_)):
        if not isinstance(b, np.ndarray):  # numbers of numpy's are let through, not its words and dates
            if not override.has_override(type(b)):
                return NotImplemented
            try:
                return getattr(a, op.name)(b) if op.name != "rsub" else function_of(op)(a, b)
            except TypeError:
                return NotImplemented
        b = from_host(b)
    return function_of(op)(a, b)


from_host = None  # numpy array -> Tensor, set by the creation functions


def _safe(name):
    return name if name.isidentifier() else "op"


def _compile(record, parts, lines, scope):
    source = f"def {_safe(record.name)}({', '.join(parts)}):\n" + "\n".join("    " + line for line in shortening(lines))
    scope |= {
        "tls": tls, "_op": record, "slow": slow, "plans": getattr(record, "plans", None),
        "fast": FAST, "renamed": renamed, "number_types": NUMBER_TYPES,
        "type": builtins.type, "default": DEFAULT, "operand": operand, "_inplace": inplace, "inplace_planned": inplace_planned, "call_view": call_view,
        "view_of_other": view_of_other, "shorten": shorten, "Tensor": Tensor, "isinstance": builtins.isinstance,
        "missing_argument": errors.missing_argument, "check_kinds": check_kinds, "integer_power": errors.integer_power, "division_by_zero": errors.division_by_zero,
        "checkable": checkable, **{f"check{k}": check for k, check in enumerate(getattr(record, "value_checks", ()))},
        "check_number": dtypes.check_number, "integer_types": _INTEGERS,
        "low": wide.LOW, "high": wide.HIGH, "int": builtins.int, "complex": builtins.complex,
    }  # fmt: skip
    exec(compile(source, f"<jtorch {record.name}>", "exec"), scope)
    fn = scope["public"] = scope[_safe(record.name)]
    fn.__doc__, fn.__module__ = record.doc, "jtorch"
    fn.__name__ = fn.__qualname__ = record.name
    return fn


def renamed(record, args, out, named, public=None):
    """A call with numpy's spellings of arguments (axis=, keepdims=), which PyTorch accepts too."""
    names = [p.name for p in record.params]
    values = dict(zip(names, args))
    defaults = {p.name: MISSING if p.default is p.empty else p.default for p in record.params}
    spelled = _SPELLED.get(record.name, {})
    for name, value in named.items():
        to = spelled.get(name) or _RENAMED.get(name, name)
        if to == "input" and "input" not in values:
            to = names[0]
        if to not in values or values[to] is not MISSING and (to not in _RENAMES or values[to] is not defaults[to]):
            given = [a for n, a in values.items() if a is not defaults[n]]
            method, own = is_method(sys._getframe(1)), PUBLIC_RETURN_NAMES.get(record.name, record.shown)
            raise errors_arguments.no_such_name(own, name, given, named, names, method)
        values[to] = value
    if out is not None:
        values["out"] = out
    fn = public or function_of(record)
    n, _ = record.keywords
    return fn(*[values[k] for k in names[:n]], **{k: v for k, v in values.items() if k not in names[:n]})


def build_inplace(op, name):
    """The method `op_`, named as its caller knows it: arccos_ is acos_."""
    parts, scope, _ = _signature_source(op)
    names = ["None" if r == KEY else p.name for p, r in zip(op.params, op.roles)]
    args, lines, late = ", ".join(names), [*GUARDS.get(op.name, ())], old_order.names(op)
    if late:
        scope["old"] = old_order.reordered
        old_order.put(parts, op, late)
        given = ", ".join([*(n for n in names if f"_{n}" not in late), *late])
        numbers = "".join(f"{n[1:]}, " for n in late)
        lines += [
            f"if {late[0]} is not _d_{late[0][1:]}:",
            f"    return old(_op, ({given}), ({numbers}), None, public)",
        ]
    if not _RENAMES.isdisjoint(names):
        parts.append("**named")
        lines += ["if named:", f"    return renamed(_op, ({args},), None, named, public)"]
    body = _InPlaceBody(op, f"return _inplace(_op, ({args},))")
    if _branches(op) and op.prepare is None and not op.value_checks:
        body.emit(0, "me = tls.me")
        body.emit(0, "if me.special is not None:")
        body.emit(1, body.fallback)
        body.walk(0, 0, [], [], [])
    else:
        body.emit(0, body.fallback)
    fn = old_order.hidden(late, _compile(op, parts, [*lines, *body.lines], scope))
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = f"`{name[:-1]}`, in place.\n\n{op.doc}"
    return fn


def build_view(view, alone=errors_arguments.one_by_one):
    """The public function of a view op. alone: the error of ints one by one, None for a method."""
    parts, scope, _ = _signature_source(view)
    names = [p.name for p in view.params]
    first, rest = names[0], names[1:]
    lines = []
    if view.spread:
        parts, scope = [*parts, "*more"], scope | {"alone": alone}
        lines += ["if more:", f"    {rest[0]} = ({rest[0]}, *more)"]
        lines += ["    if alone is not None:", f"        raise alone({view.name!r}, {first}, {rest[0]})"]
    if not _RENAMES.isdisjoint(names):
        parts.append("**named")
        lines += ["if named:", f"    return renamed(_op, ({', '.join(names)},), None, named)"]
    lines += [
        f"if type({first}) not in fast:",
        f"    return view_of_other(_op, {first}, ({''.join(n + ', ' for n in rest)}), public)",
        f"return call_view(_op, {first}, ({''.join(n + ', ' for n in rest)}))",
    ]
    return _compile(view, parts, lines, scope)


def view_of_other(view, t, statics, public):
    """A view of what is no plain tensor: a subclass's, or an error."""
    handled, result = override.ask(view, public, (t, *statics))
    if handled:
        return result
    if not isinstance(t, Tensor):
        raise errors.argument(view.name, view.params[0].name, "Tensor", t, 1)
    return call_view(view, t, statics)


def build_composite(record):
    """The public function of a composite: itself, its results named or written to out= where it says so."""
    names = RETURN_FIELDS.get(record.name)
    if not record.out and names is None:
        return _with_spellings(record, True)
    fn = _with_spellings(record, False)
    fields = None if names is None else return_type(record.name, names)

    def call(*args, out=None, **kwargs):
        try:
            result = fn(*args, **kwargs)
        except override.FirstMeeting:
            return function_of(record)(*args, **kwargs if out is None else {**kwargs, "out": out})
        except Exception as error:
            shorten(error)
            raise
        result = result if fields is None else fields(result)
        return result if out is None else into_out(record, out, result)

    call.__name__ = call.__qualname__ = record.name
    call.__doc__, call.__module__ = record.doc, "jtorch"
    return call


def _with_spellings(record, bare):
    """The function of a composite as it is called: of one that PyTorch has in C, one that asks what kinds of arguments it is given,
    as its annotations say; of one with a dimension, one that takes numpy's spellings too. A bare one is not called by another."""
    tolerant = (record.name in _SPELLED or _is_of_c(record)) and _tolerant(record)
    kinds = asked_kinds(record)
    if not tolerant and not kinds:
        return record.fn
    parts, scope = _signature_source(record)[:2] if tolerant else _plain_signature(record)
    names = [p.name for p in record.params]
    lines = []
    if tolerant:
        parts.append("**named")
        lines += ["if named:", f"    return renamed(_op, ({', '.join(names)},), None, named)"]
        lines += [
            f"if {p.name} is _missing: raise missing_argument({record.name!r}, {p.name!r})"
            for p in record.params
            if f"{p.name}=_missing" in parts
        ]
    given = ", ".join(_MARKS.get(p.kind, f"{n}={n}").format(n) for n, p in zip(names, record.params))
    if kinds:
        check = f"check_kinds(_op, ({', '.join(names)},))"
        again = ("    try:", f"        {check}", "    except Met:", f"        return function_of(_op)({given})")
        lines += [f"if {' or '.join(kinds)}:", *(again if bare else [f"    {check}"])]
    lines.append(f"return fn({given})")
    scope |= {"fn": record.fn, "function_of": function_of, "Met": override.FirstMeeting}
    return _compile(record, parts, lines, scope)


_MARKS = {
    inspect.Parameter.POSITIONAL_ONLY: "{}", inspect.Parameter.POSITIONAL_OR_KEYWORD: "{}",
    inspect.Parameter.VAR_POSITIONAL: "*{}", inspect.Parameter.VAR_KEYWORD: "**{}",
}  # fmt: skip


def _plain_signature(record):
    """The parameter list of a composite as it is written, with defaults taken from a namespace."""
    parts, defaults, star = [], {}, False
    for p in record.params:
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
        star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        if p.default is p.empty:
            parts.append(_MARKS.get(p.kind, "{}").format(p.name))
        else:
            defaults[f"_d_{p.name}"] = p.default
            parts.append(f"{p.name}=_d_{p.name}")
    return parts, defaults


def function_of(record):
    """The public function of any record, made once."""
    found = _functions.get(record.name)
    if found is None:
        if record.kind == "op":
            fn = build(record)
        elif record.kind == "view":
            fn = build_view(record)
        else:
            fn = build_composite(record)
        found = _functions[record.name] = _public(record, fn)
        space = record.targets[0].rpartition(".")[0] if record.targets else ""
        if space and space != "Tensor" and f"torch.{record.name}" not in record.targets:
            _at_home(found, space, record.targets[0].rpartition(".")[2])
        elif space:
            _at_home(found, "torch", record.name)
        override.publish((found,), generated=record.kind != "composite")
    return found


def _at_home(fn, space, name):
    """Say where a public function is, by which pickle refers to it: models keep `F.gelu` as an attribute."""
    fn.__module__, fn.__qualname__ = "jtorch", name if space == "torch" else f"{space}.{name}"


def _public(record, fn, function=""):
    """A function as the public one: spread, and known to itself. function: as for `spread`."""
    found = spread(record, fn, function)
    if found is not fn:
        _inner[found] = fn
    if "public" in fn.__globals__:
        fn.__globals__["public"] = found
    return found


def copy_of(record, space, name, out=True):
    """The same function once more, as it stands in another namespace or under another name: `torch.add`, `torch.Tensor.add`.

    out: whether it takes out=, where the record's own function does.
    """
    public = function_of(record)
    fn = _inner.get(public, public)
    scope = dict(fn.__globals__) if "public" in fn.__globals__ else fn.__globals__
    made = twin(fn, scope)
    if not out:
        take_no_out(made)
    made = _public(record, made, "" if space == "Tensor" else name)
    made.__name__ = made.__qualname__ = name
    _at_home(made, space, name)
    if space == "Tensor":
        if "alone" in scope:  # ints one by one are for methods
            scope["alone"] = None
    else:
        override.publish((made,), generated=record.kind != "composite")
    return made


_inner: dict = {}  # the generated function under one that takes its ints spread
_functions: dict = {}


def tensor_call(record, args, kwargs):
    return function_of(record)(*args, **kwargs)


def forget_plans():
    """Drop all plans: the default dtype has changed, and they depend on it, or there are too many programs."""
    for op in registry.OPS.values():
        op.plans.clear()
        op.passed.clear()


crowd.forgetters.append(forget_plans)
registry.tensor_call = tensor_call
registry.tensor_type = Tensor
