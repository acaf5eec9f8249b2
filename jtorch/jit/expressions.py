"""Expressions of scripted source, as values of a graph: the part of the frontend that knows operators, calls and attributes."""

import ast
import inspect
import operator
import types as python_types
import typing

from .. import script_types
from ..nn.modules.module import Module
from ..sundries import _assert
from ..tensor import Tensor
from . import targets, types
from .targets import Method, target_of
from .values import Value

__all__ = ["BINARY", "IN_PLACE", "NUMBERS", "Expressions", "Static", "element", "plain", "type_of_hint", "words_of"]

BINARY = {
    ast.Add: ("add", operator.add), ast.Sub: ("sub", operator.sub), ast.Mult: ("mul", operator.mul), ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("floor_divide", operator.floordiv), ast.Mod: ("remainder", operator.mod), ast.Pow: ("pow", operator.pow),
    ast.MatMult: ("matmul", operator.matmul), ast.BitAnd: ("__and__", operator.and_), ast.BitOr: ("__or__", operator.or_),
    ast.BitXor: ("__xor__", operator.xor), ast.LShift: ("__lshift__", operator.lshift), ast.RShift: ("__rshift__", operator.rshift),
}  # fmt: skip
IN_PLACE = {
    "add": operator.iadd, "sub": operator.isub, "mul": operator.imul, "div": operator.itruediv, "matmul": operator.imatmul, "pow": operator.ipow,
}  # fmt: skip
_COMPARE = {
    ast.Lt: ("lt", operator.lt), ast.LtE: ("le", operator.le), ast.Gt: ("gt", operator.gt), ast.GtE: ("ge", operator.ge),
    ast.Eq: ("eq", operator.eq), ast.NotEq: ("ne", operator.ne), ast.Is: ("__is__", operator.is_), ast.IsNot: ("__isnot__", operator.is_not),
    ast.In: ("__contains__", operator.contains), ast.NotIn: ("__contains__", operator.contains),
}  # fmt: skip
_UNARY = {ast.USub: ("neg", operator.neg), ast.UAdd: ("positive", operator.pos), ast.Invert: ("bitwise_not", operator.invert), ast.Not: ("__not__", operator.not_)}  # fmt: skip
_RESULTS = {
    len: script_types.IntType, int: script_types.IntType, float: script_types.FloatType, bool: script_types.BoolType, str: script_types.StringType,
    operator.not_: script_types.BoolType, operator.is_: script_types.BoolType, operator.is_not: script_types.BoolType,
}  # fmt: skip
_HINTS = {
    int: script_types.IntType, float: script_types.FloatType, bool: script_types.BoolType, str: script_types.StringType, Tensor: script_types.TensorType,
    type(None): script_types.NoneType, complex: script_types.ComplexType, typing.Any: script_types.AnyType,
}  # fmt: skip
NUMBERS = (script_types.IntType, script_types.FloatType, script_types.BoolType)


class Static:
    """What the source names and the graph does not hold: a module, a function, a number. `value`: the module's own value."""

    __slots__ = ("it", "value")

    def __init__(self, it, value=None):
        self.it, self.value = it, value


def words_of(node) -> str:
    """What an assertion says: its text, or the source of what is not one."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)


def type_of_hint(hint):
    """The type of an annotation; Tensor where it says nothing that is known."""
    if hint in _HINTS:
        return _HINTS[hint].get()
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        return script_types.ListType(type_of_hint(inner[0]))
    if origin is tuple:
        return script_types.TupleType([type_of_hint(i) for i in inner])
    if origin is dict:
        return script_types.DictType(*map(type_of_hint, inner))
    if origin in (typing.Union, python_types.UnionType) and type(None) in inner and len(inner) == 2:
        return script_types.OptionalType(type_of_hint(next(i for i in inner if i is not type(None))))
    return script_types.TensorType.get()


_METHODS = {
    "item": script_types.FloatType.get, "dim": script_types.IntType.get, "numel": script_types.IntType.get, "size": script_types.ListType.ofInts,
    "stride": script_types.ListType.ofInts, "is_floating_point": script_types.BoolType.get, "keys": lambda: script_types.ListType(script_types.StringType.get()),
}  # fmt: skip


def _held(*found):
    """Whether a value of the graph is among what is known here."""
    return any(
        s.value is not None
        or isinstance(s.it, (list, tuple))
        and any(isinstance(v, Value) or isinstance(v, Static) and _held(v) for v in s.it)
        for s in found
    )


def _never_none(v):
    return isinstance(v, Value) and not isinstance(
        v.type(), (script_types.OptionalType, script_types.AnyType, script_types.NoneType)
    )


def plain(kind):
    """A type without what only a constant's tensor knows."""
    return script_types.TensorType.get() if isinstance(kind, script_types.TensorType) else kind


def element(kind, key=None):
    if isinstance(kind, script_types.ListType):
        return kind.getElementType()
    if isinstance(kind, script_types.DictType):
        return kind.getValueType()
    if isinstance(kind, script_types.TupleType):
        at = key.it if isinstance(key, Static) else 0
        return kind.elements()[at] if isinstance(at, int) and kind.elements() else script_types.TensorType.get()
    return script_types.StringType.get() if isinstance(kind, script_types.StringType) else script_types.TensorType.get()


class Expressions:
    """The reading of expressions. Nodes, constants and names are the frame's."""

    def expression(self, node):
        """The Value or Static of an expression."""
        outer, self.at = self.at, node
        try:
            return getattr(self, f"_{type(node).__name__.lower()}", self.unknown)(node)
        finally:
            self.at = outer

    def unknown(self, node):
        raise self.cannot(f"`{ast.unparse(node)[:60]}`")

    def truth(self, found):
        if isinstance(found, Static):
            return found if found.value is None else Static(True)
        if isinstance(found.type(), script_types.BoolType):
            return found
        return self.call("aten::Bool", bool, [found], result=script_types.BoolType.get())

    def _name(self, node):
        if node.id in self.known:
            return self.known[node.id]
        if node.id in self.outer:
            return Static(self.outer[node.id])
        raise self.cannot(f"the name {node.id}, which is not set on this way,")

    def _constant(self, node):
        return Static(node.value)

    def _tuple(self, node):
        return Static(tuple(self.expression(e) for e in node.elts))

    def _list(self, node):
        return self.value(Static([self.expression(e) for e in node.elts]))

    def _dict(self, node):
        return self.value(Static({self.expression(k).it: self.expression(v) for k, v in zip(node.keys, node.values)}))

    def _joinedstr(self, node):
        parts = [self.expression(v.value if isinstance(v, ast.FormattedValue) else v) for v in node.values]
        return self.call("aten::format", targets.joined, parts, result=script_types.StringType.get())

    def _attribute(self, node):
        base = self.expression(node.value)
        if isinstance(base, Static):
            if isinstance(base.it, Module):
                return self.member(base, node.attr)
            return Static(getattr(base.it, node.attr))
        kind = {
            "shape": script_types.ListType.ofInts(),
            "ndim": script_types.IntType.get(),
            "requires_grad": script_types.BoolType.get(),
        }
        name = "aten::size" if node.attr == "shape" else f"prim::{node.attr}"
        return self.call(name, targets.get, [base, Static(node.attr)], result=kind.get(node.attr))

    def member(self, base, name):
        """A part of a module."""
        found = getattr(base.it, name)
        if found is None or callable(found) and not isinstance(found, (Module, Tensor)):
            return Static(found, None)
        at = self.node("prim::GetAttr", [base.value]).s_("name", name).output()
        if isinstance(found, Module):
            return Static(found, at.setType(types.ClassType.of(found)).setDebugName(name))
        if isinstance(found, Tensor):
            return at.setDebugName(name) if not name.isdigit() else at
        return at.setType(types.of_value(found))

    def _subscript(self, node):
        base = self.expression(node.value)
        key = self.key(node.slice)
        if isinstance(base, Static) and isinstance(key, Static) and key.value is None:
            if isinstance(base.it, Module):
                return self.member(base, list(base.it._modules)[key.it] if isinstance(key.it, int) else key.it)
            if isinstance(base.it, (list, tuple, dict, str)):
                found = base.it[key.it]
                return found if isinstance(found, (Static, Value)) else Static(found)
            return Static(base.it[key.it])  # an annotation
        base = self.value(base)
        kind = base.type()
        tensor = isinstance(kind, script_types.TensorType)
        name = "aten::index" if tensor else "aten::__getitem__"
        if tensor and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
            return self.call("aten::select", targets.select, [base, Static(0), key])
        return self.call(name, operator.getitem, [base, key], result=element(kind, key))

    def key(self, node):
        if isinstance(node, ast.Slice):
            parts = [Static(None) if p is None else self.expression(p) for p in (node.lower, node.upper, node.step)]
            return self.call("prim::slice", slice, parts, result=script_types.AnyType.get())
        if isinstance(node, ast.Tuple):
            return self.value(Static(tuple(self.key(e) for e in node.elts)))
        if isinstance(node, ast.Constant) and node.value is Ellipsis:
            return self.call("prim::ellipsis", targets.ellipsis, [], result=script_types.AnyType.get())
        return self.expression(node)

    def _unaryop(self, node):
        name, fn = _UNARY[type(node.op)]
        found = self.expression(node.operand)
        if isinstance(found, Static) and found.value is None:
            return Static(fn(found.it))
        if fn is operator.not_:
            found = self.truth(found)
        return self.call(f"aten::{name}", fn, [found], result=found.type())

    def _binop(self, node):
        name, fn = BINARY[type(node.op)]
        left, right = self.expression(node.left), self.expression(node.right)
        if isinstance(left, Static) and isinstance(right, Static) and not _held(left, right):
            return Static(fn(left.it, right.it))
        left, right = self.value(left), self.value(right)
        kinds = [left.type(), right.type()]
        one, result = (), script_types.TensorType.get()
        if all(isinstance(k, NUMBERS) for k in kinds):
            whole = all(isinstance(k, script_types.IntType) for k in kinds) and name != "div"
            result = (script_types.IntType if whole else script_types.FloatType).get()
        elif not any(isinstance(k, script_types.TensorType) for k in kinds):
            result = kinds[0]
        elif name in ("add", "sub"):
            one = [Static(1)]
        return self.call(f"aten::{name}", fn, [left, right], result=result, extra=one)

    def _compare(self, node):
        if len(node.ops) > 1:
            pairs = zip([node.left, *node.comparators], node.ops, node.comparators)
            return self._boolop(
                ast.BoolOp(ast.And(), [ast.copy_location(ast.Compare(a, [op], [b]), node) for a, op, b in pairs])
            )
        name, fn = _COMPARE[type(node.ops[0])]
        left, right = self.expression(node.left), self.expression(node.comparators[0])
        if fn in (operator.is_, operator.is_not) and (_never_none(left) or isinstance(left, Static)):
            return Static(
                (isinstance(left, Static) and left.value is None and left.it is right.it) == (fn is operator.is_)
            )
        if isinstance(left, Static) and isinstance(right, Static) and not _held(left, right):
            return Static(fn(right.it, left.it) if fn is operator.contains else fn(left.it, right.it))
        if fn is operator.contains:
            left, right = right, left
        left, right = self.value(left), self.value(right)
        tensor = fn not in (operator.is_, operator.is_not) and any(
            isinstance(v.type(), script_types.TensorType) for v in (left, right)
        )
        made = self.call(f"aten::{name}", fn, [left, right], result=None if tensor else script_types.BoolType.get())
        if isinstance(node.ops[0], ast.NotIn):
            made = self.call("aten::__not__", operator.not_, [made], result=script_types.BoolType.get())
        return made

    def _boolop(self, node):
        first, *rest = node.values
        found = self.truth(self.expression(first))
        if not rest:
            return found
        more = ast.copy_location(ast.BoolOp(node.op, rest), first)
        stop = isinstance(node.op, ast.Or)
        if isinstance(found, Static):
            return found if bool(found.it) is stop else self.expression(more)

        def go_on():
            return self.truth(self.expression(more))

        ways = (lambda: Static(True), go_on) if stop else (go_on, lambda: Static(False))
        return self.branch(found, *ways)

    def _ifexp(self, node):
        test = self.truth(self.expression(node.test))
        if isinstance(test, Static):
            return self.expression(node.body if test.it else node.orelse)
        return self.branch(test, lambda: self.expression(node.body), lambda: self.expression(node.orelse))

    def _listcomp(self, node):
        (gen,) = node.generators if len(node.generators) == 1 and not node.generators[0].ifs else [None]
        if gen is None:
            raise self.cannot("this comprehension")
        made = self.value(Static([]))
        name = f"_made{len(self.known)}"
        self.known[name] = made
        add = ast.Expr(ast.Call(ast.Attribute(ast.Name(name, ast.Load()), "append", ast.Load()), [node.elt], []))
        turn = ast.fix_missing_locations(ast.copy_location(ast.For(gen.target, gen.iter, [add], []), node))
        self.loop(turn)
        return self.known.pop(name)

    def _call(self, node):
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            raise self.cannot("a call with * or **")
        method = None
        if isinstance(node.func, ast.Attribute):
            base = self.expression(node.func.value)
            if isinstance(base, Value):
                method = base
            elif isinstance(base.it, Module):
                return self.of_module(base, node.func.attr, *self.arguments(node))
            else:
                target = Static(getattr(base.it, node.func.attr))
        else:
            target = self.expression(node.func)
        if method is not None:
            return self.of_value(method, node.func.attr, *self.arguments(node))
        if isinstance(target.it, Module):
            return self.of_module(target, "forward", *self.arguments(node))
        return self.of_function(target.it, *self.arguments(node))

    def arguments(self, node):
        return [self.expression(a) for a in node.args], {k.arg: self.expression(k.value) for k in node.keywords}

    def of_module(self, base, name, args, kwargs):
        found = getattr(base.it, name)
        if isinstance(found, Module):
            return self.of_module(self.member(base, name), "forward", args, kwargs)
        if not inspect.ismethod(found):
            return self.of_function(found, args, kwargs)
        node = self.node("prim::CallMethod", [base.value, *(self.value(v) for v in (*args, *kwargs.values()))])
        node.s_("name", name)
        node._argument_names = (*[None] * (1 + len(args)), *kwargs)
        hint = typing.get_type_hints(found.__func__).get("return", Tensor)
        return node.output().setType(type_of_hint(hint))

    def of_value(self, base, name, args, kwargs):
        kind = base.type()
        result = _METHODS.get(name)
        if result is not None and not (name in ("size", "stride") and (args or kwargs)):
            result = result()
        elif name in ("size", "stride"):
            result = script_types.IntType.get()
        elif name in ("append", "extend", "insert", "update", "clear"):
            result = script_types.NoneType.get()
        elif name == "split" or name in ("chunk", "unbind"):
            result = script_types.ListType.ofTensors()
        elif not isinstance(kind, script_types.TensorType):
            result = element(kind)
        return self.call(f"aten::{name}", Method(name), [base, *args], kwargs, result)

    def asserted(self, test, words):
        """The node of an assertion; none where the source says what it comes to."""
        test = self.truth(test)
        if not isinstance(test, Static):
            self.call("prim::Assert", targets.asserted, [test, Static(words)], result=script_types.NoneType.get())
        return Static(None)

    def of_function(self, fn, args, kwargs):
        fn = getattr(fn, "_torchdynamo_orig_callable", getattr(fn, "_scripted", fn))
        name = getattr(fn, "__name__", "")
        if (getattr(fn, "__module__", None) or "").startswith("jtorch.jit") and name in ("is_scripting", "annotate"):
            return Static(True) if name == "is_scripting" else args[1]
        if fn is _assert:
            return self.asserted(args[0], args[1].it if isinstance(args[1], Static) else "assertion failed")
        if fn is isinstance or target_of(fn) is None:
            if not inspect.isfunction(fn) or fn.__module__.startswith("jtorch"):
                raise self.cannot(f"a call of {name or fn}")
            return self.inlined(fn, args, kwargs)
        space = "prim" if fn in (print, min, max) else "aten"
        result = _RESULTS.get(fn) or (script_types.NoneType if fn is print else None)
        kinds = (
            [self.value(a).type() for a in args] if fn in (min, max, abs, sum, round) or fn.__module__ == "math" else ()
        )
        if kinds and all(isinstance(k, NUMBERS) for k in kinds):
            made = kinds[0] if fn.__module__ != "math" else script_types.FloatType.get()
        elif kinds and isinstance(kinds[0], script_types.ListType):
            made = kinds[0].getElementType()
        else:
            made = result.get() if result is not None else None
        if made is None and name in ("split", "chunk", "unbind"):
            made = script_types.ListType.ofTensors()
        name = name.title() if fn in (bool, int, float) else name  # aten::Bool
        return self.call(f"{space}::{name}", fn, args, kwargs, made)

    def inlined(self, fn, args, kwargs):
        """The body of another function, in this one's graph."""
        inner = type(self)(self.graph, self.block, fn, None)
        try:
            given = inspect.signature(fn).bind(*args, **kwargs)
        except TypeError as e:
            raise self.cannot(str(e)) from None
        given.apply_defaults()
        inner.known = {n: v if isinstance(v, (Value, Static)) else Static(v) for n, v in given.arguments.items()}
        return inner.returned()
