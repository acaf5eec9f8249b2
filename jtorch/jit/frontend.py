"""Python source to a graph: what a scripted function shows as `.graph`, and what is saved of it. Running it needs no graph."""

import ast
import builtins
import functools
import inspect
import itertools
import operator
import textwrap
import typing

from .. import errors, script_types
from ..core.dtype import dtype
from ..nn.modules.module import Module
from ..tensor import Tensor
from . import targets, types
from .expressions import BINARY, IN_PLACE, NUMBERS, Expressions, Static, element, plain, type_of_hint, words_of
from .ir import Graph
from .targets import Call
from .values import Value

__all__ = ["graph_of"]


def graph_of(fn, module=None) -> Graph:
    """The graph of a function, or of a method of `module`. NotImplementedError names what of the source has no place in a graph."""
    graph = Graph()
    fn = inspect.unwrap(fn)
    me = None
    if module is not None:
        me = Static(module, graph.addInput("self").setType(types.ClassType.of(module)))
    frame = _Frame(graph, graph.block(), fn, me)
    hints = typing.get_type_hints(fn)
    for name, p in list(inspect.signature(fn).parameters.items())[module is not None :]:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise frame.cannot("*args and **kwargs")
        kind = type_of_hint(hints.get(name, Tensor))
        frame.known[name] = graph.addInput(f"{name}.1").setType(kind)
    graph.registerOutput(frame.returned())
    return graph


class _Frame(Expressions):
    """One function being read: its names, and where its nodes go."""

    def __init__(self, graph, block, fn, me):
        self.graph, self.block, self.fn = graph, block, fn
        try:
            lines, self.first = inspect.getsourcelines(fn)
            self.tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
        except (OSError, TypeError, SyntaxError):
            raise self.cannot("a function without source") from None
        if not isinstance(self.tree, ast.FunctionDef):
            raise self.cannot("a lambda")
        self.at = self.tree
        closure = inspect.getclosurevars(fn)
        self.outer = {**vars(builtins), **closure.globals, **closure.nonlocals}
        self.known = {self.tree.args.args[0].arg: me} if me is not None else {}

    def cannot(self, what):
        line = getattr(self, "first", 0) + getattr(getattr(self, "at", None), "lineno", 1) - 1
        name = getattr(self.fn, "__qualname__", self.fn)
        return errors.unsupported(f"{what} in the graph of {name} (line {line})", "a trace (torch.jit.trace) of it")

    def returned(self) -> Value:
        """The value that the body returns."""
        found = self.body(self.tree.body)
        return self.value(Static(None) if found is None else found)

    # --- nodes

    def node(self, kind, inputs, count=1):
        made = self.graph.create(kind, inputs, count)
        made._source = f"{inspect.getsourcefile(self.fn)}:{self.first + self.at.lineno - 1}:{self.at.col_offset}"
        return made._into(self.block, len(self.block._nodes))

    def value(self, x) -> Value:
        """A value of the graph for what an expression gave."""
        if isinstance(x, Value):
            return x
        it = x.it
        if x.value is not None:
            return x.value
        if isinstance(it, (list, tuple)):
            parts = [v if isinstance(v, Value) else self.value(v if isinstance(v, Static) else Static(v)) for v in it]
            made = self.node("prim::ListConstruct" if isinstance(it, list) else "prim::TupleConstruct", parts).output()
            inner = [plain(v.type()) for v in parts]
            return made.setType(
                script_types.ListType(inner[0] if inner else script_types.TensorType.get())
                if isinstance(it, list)
                else script_types.TupleType(inner)
            )
        if isinstance(it, dict):
            parts = [v for pair in it.items() for v in (self.value(Static(pair[0])), self.value(pair[1]))]
            kinds = [v.type() for v in parts[:2]] or [script_types.StringType.get(), script_types.TensorType.get()]
            return self.node("prim::DictConstruct", parts).output().setType(script_types.DictType(*kinds))
        if (
            it is not None
            and not isinstance(it, (bool, int, float, complex, str, dtype, Tensor))
            and type(it).__name__ != "device"
        ):
            raise self.cannot(f"a value of type {type(it).__name__}")
        made = self.graph.constant(it)
        return made._into(self.block, len(self.block._nodes)).output()

    def call(self, kind, fn, args, kwargs=None, result=None, extra=()):
        """A node that calls a Python function of values."""
        kwargs = kwargs or {}
        inputs = [self.value(v) for v in (*args, *kwargs.values(), *extra)]
        made = self.node(kind, inputs)
        made._recipe = Call(fn, len(args), tuple(kwargs))
        return made.output().setType(result or script_types.TensorType.get())

    # --- statements

    def body(self, statements):
        """Read statements; what they return, None where they run to their end."""
        for k, s in enumerate(statements):
            self.at = s
            rest = statements[k + 1 :]
            match s:
                case ast.Return():
                    return Static(None) if s.value is None else self.expression(s.value)
                case ast.If():
                    test = self.truth(self.expression(s.test))
                    if isinstance(test, Static):
                        return self.body([*(s.body if test.it else s.orelse), *rest])
                    if _returns(s.body) or _returns(s.orelse):
                        ways = [functools.partial(self.body, [*way, *rest]) for way in (s.body, s.orelse)]
                        return self.branch(test, *ways)
                    self.choose(test, s.body, s.orelse)
                case ast.For():
                    self.loop(s)
                case ast.While():
                    self.repeat(s)
                case _:
                    self.simple(s)
        return None

    def simple(self, s):
        match s:
            case ast.Assign():
                found = self.expression(s.value)
                for target in s.targets:
                    self.assign(target, found)
            case ast.AnnAssign():
                if s.value is not None:
                    self.assign(s.target, self.expression(s.value))
            case ast.AugAssign():
                name, fn = BINARY[type(s.op)]
                target = self.expression(_loaded(s.target))
                kind = self.value(target).type()
                one = [Static(1)] if name in ("add", "sub") and not isinstance(kind, NUMBERS) else ()
                on = not isinstance(kind, NUMBERS)
                made = self.call(
                    f"aten::{name}{'_' * on}",
                    IN_PLACE.get(name, fn),
                    [target, self.expression(s.value)],
                    result=kind,
                    extra=one,
                )
                self.assign(s.target, made)
            case ast.Expr():
                if not isinstance(s.value, ast.Constant):
                    self.expression(s.value)
            case ast.Pass():
                pass
            case ast.Assert():
                self.asserted(self.expression(s.test), words_of(s.msg or s.test))
            case _:
                raise self.cannot(f"`{type(s).__name__.lower()}`")

    def assign(self, target, found):
        match target:
            case ast.Name(id=name):
                if isinstance(found, Value) and not found._name:
                    found.setDebugName(f"{name}.1")
                self.known[name] = found
            case ast.Tuple() | ast.List():
                for t, v in zip(target.elts, self.unpacked(found, len(target.elts))):
                    self.assign(t, v)
            case ast.Subscript():
                given = [self.expression(target.value), self.key(target.slice), found]
                self.call("aten::_set_item", operator.setitem, given, result=script_types.NoneType.get())
            case _:
                raise self.cannot("assigning to an attribute")

    def unpacked(self, found, count):
        if isinstance(found, Static) and isinstance(found.it, (tuple, list)):
            return [v if isinstance(v, (Static, Value)) else Static(v) for v in found.it]
        kind = self.value(found).type()
        listed = isinstance(kind, script_types.ListType)
        node = self.node("prim::ListUnpack" if listed else "prim::TupleUnpack", [self.value(found)], count)
        kinds = (
            kind.elements()
            if isinstance(kind, script_types.TupleType)
            else itertools.repeat(script_types.TensorType.get())
        )
        if listed:
            kinds = itertools.repeat(kind.getElementType())
        return [v.setType(k) for v, k in zip(node.outputs(), kinds)]

    def branch(self, test, then, otherwise):
        """An If of two ways to a value."""
        node = self.node("prim::If", [test], 1)
        kinds = []
        for way in (then, otherwise):
            with_names = dict(self.known)
            outer, self.block = self.block, node.addBlock()
            found = way()
            found = self.value(Static(None) if found is None else found)
            self.block.registerOutput(found)
            kinds.append(found.type())
            self.block, self.known = outer, with_names
        return node.output().setType(plain(kinds[0]))

    def choose(self, test, body, orelse):
        """An If that gives names their values."""
        names = [
            n for n in _assigned([*body, *orelse]) if n in self.known or n in _assigned(body) and n in _assigned(orelse)
        ]
        node = self.node("prim::If", [test], 0)
        before, found = self.known, []
        for way in (body, orelse):
            outer, self.block, self.known = self.block, node.addBlock(), dict(before)
            self.body(way)
            found.append([self.value(self.known[n]) for n in names])
            for v in found[-1]:
                self.block.registerOutput(v)
            self.block = outer
        self.known = before
        for n, v in zip(names, found[0]):
            self.known[n] = node.addOutput().setType(v.type()).setDebugName(f"{n}.1")

    def turn(self, s, count, going, start):
        """A Loop: `start(number)` opens a turn, the statements of `s` fill it, `going()` says whether another follows."""
        if s.orelse or any(isinstance(n, (ast.Return, ast.Break, ast.Continue)) for n in ast.walk(s)):
            raise self.cannot("a loop with return, break, continue or else")
        names = [n for n in _assigned(s.body) if n in self.known]
        carried = [self.value(self.known[n]) for n in names]
        node = self.node("prim::Loop", [count, going(), *carried], 0)
        outer, before = self.block, dict(self.known)
        self.block = node.addBlock()
        number = self.block.addInputToBlock().setType(script_types.IntType.get())
        for n, v in zip(names, carried):
            self.known[n] = self.block.addInputToBlock().setType(v.type()).setDebugName(f"{n}.1")
        start(number)
        self.body(s.body)
        self.block.registerOutput(going())
        for n in names:
            self.block.registerOutput(self.value(self.known[n]))
        self.block, self.known = outer, before
        for n, v in zip(names, carried):
            self.known[n] = node.addOutput().setType(v.type()).setDebugName(f"{n}.1")

    def repeat(self, s):
        self.turn(
            s,
            self.value(Static(2**63 - 1)),
            lambda: self.value(self.truth(self.expression(s.test))),
            lambda number: None,
        )

    def loop(self, s):
        over = self.spec(s.iter)
        if isinstance(over, list):  # known here: one turn after the other
            for each in over:
                self.assign(s.target, each)
                self.body(s.body)
            return
        count, at = over
        self.turn(s, count, lambda: self.value(Static(True)), lambda number: self.assign(s.target, at(number)))

    def spec(self, node):
        """What a loop goes over: a list of what is known here, or (count, a function from a number to the turn's value)."""
        int_ = script_types.IntType.get()
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("range", "enumerate", "zip")
        ):
            if node.func.id == "range":
                given = [self.expression(a) for a in node.args]
                if len(given) == 1:
                    return self.value(given[0]), lambda n: n
                whole = [self.value(v) for v in given]
                count = self.call("aten::__range_length", targets.range_length, whole, result=int_)
                return count, lambda n: self.call("aten::__derive_index", targets.range_at, [n, *whole], result=int_)
            parts = [self.spec(a) for a in node.args]
            if node.func.id == "enumerate":
                (over,) = parts
                if isinstance(over, list):
                    return [Static((Static(k), v)) for k, v in enumerate(over)]
                return over[0], lambda n: Static((n, over[1](n)))
            if all(isinstance(p, list) for p in parts):
                return [Static(each) for each in zip(*parts)]
            if any(isinstance(p, list) for p in parts):
                raise self.cannot("zip of modules and values")
            count = self.call("prim::min", min, [p[0] for p in parts], result=int_) if len(parts) > 1 else parts[0][0]
            return count, lambda n: Static(tuple(p[1](n) for p in parts))
        over = self.expression(node)
        if isinstance(over, Static):
            if isinstance(over.it, Module):
                return [self.member(over, k) for k in over.it._modules]
            if isinstance(over.it, (tuple, list, str)):
                return [v if isinstance(v, (Static, Value)) else Static(v) for v in over.it]
        over = self.value(over)
        count = self.call("aten::len", len, [over], result=int_)
        return count, lambda n: self.call("aten::__getitem__", operator.getitem, [over, n], result=element(over.type()))


def _loaded(target):
    made = ast.parse(ast.unparse(target), mode="eval").body
    for n in ast.walk(made):
        ast.copy_location(n, target)
    return made


def _returns(statements) -> bool:
    return any(isinstance(n, ast.Return) for s in statements for n in ast.walk(s))


def _assigned(statements) -> list:
    """The names that statements set, in order."""
    found = {}
    for s in statements:
        for n in ast.walk(s):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                found[n.id] = None
    return list(found)
