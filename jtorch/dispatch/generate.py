"""The public functions, generated from the records.

For each op a function with PyTorch's signature is generated at its first use; it finds the plan in a dict by the specs of
its operands and its static values. Everything unusual goes through `slow`.
"""

import builtins

from .. import errors
from ..core.record import tls
from ..core.spec import Size
from ..ops import registry
from ..ops.registry import KEY, NUMBER, SCALAR, STATIC, TENSOR, VarInts
from ..tensor import Tensor
from .call import inplace, slow
from .plans import NUMBER_TYPES
from .results import finish, finish1, finish2
from .view import call_view

FAST = {Tensor}  # classes whose instances take the generated path


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
            result = (
                f"return finish(plan, me, ({first},), ({nums}))"
                if numbers
                else f"return finish1(plan, me, {first}) if plan.simple else finish(plan, me, ({first},), ())"
            )
            body += attempt(key(), result, "")
        else:
            second = tensors[1]
            both = (
                f"return finish(plan, me, ({first}, {second}), ({nums}))"
                if numbers
                else f"return finish2(plan, me, {first}, {second}) if plan.simple else finish(plan, me, ({first}, {second}), ())"
            )
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
        "fast": FAST, "renamed": renamed, "number_types": NUMBER_TYPES, "type": builtins.type,
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


registry.tensor_call = tensor_call
registry.tensor_type = Tensor
