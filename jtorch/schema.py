"""Schemas of operators: "mine::op(Tensor x, float k=2.) -> Tensor", parsed, inferred from annotations, and applied to calls."""

import collections.abc
import functools
import inspect
import numbers
import operator
import re
import types
import typing
from typing import NamedTuple

import numpy as np

from . import errors_extend, script_types
from .core import device as devices
from .core import dtype as dtypes
from .tensor import Tensor

_CHECKS = {
    "Tensor": Tensor, "int": numbers.Integral, "SymInt": numbers.Integral, "float": numbers.Real, "bool": numbers.Integral, "str": str,
    "complex": numbers.Number, "Scalar": numbers.Number, "ScalarType": dtypes.dtype, "Device": (devices.Device, str),
}  # fmt: skip
_C_TYPES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "short": "int16",
    "int": "int32",
    "long": "int64",
}
_NUMBERS = {"int": int, "SymInt": int, "float": float, "bool": bool, "complex": complex}
_PYTHON = {
    "Tensor": "Tensor",
    "SymInt": "int",
    "Scalar": "number",
    "ScalarType": "int",
}
_BASES = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", dtypes.dtype: "ScalarType",
    devices.Device: "Device", numbers.Number: "Scalar",
}  # fmt: skip
_ARGUMENT = re.compile(
    r"(?P<type>\w+)(?:\((?P<alias>[^)]*)\)|(?P<fresh>!))?(?P<rest>(?:\[\d*\]|\?)*)\s+(?P<name>\w+)\s*(?:=\s*(?P<default>.*))?"
)


_NAMED = {
    "Tensor": "TensorType", "int": "IntType", "SymInt": "SymIntType", "float": "FloatType", "bool": "BoolType", "str": "StringType",
    "Scalar": "NumberType", "ScalarType": "IntType", "Layout": "IntType", "MemoryFormat": "IntType", "Device": "DeviceObjType",
    "Stream": "StreamObjType", "Any": "AnyType", "complex": "ComplexType", "number": "NumberType", "SymBool": "SymBoolType",
    "Generator": "PyObjectType",
}  # fmt: skip


_KNOWN = frozenset(_NAMED) | set(
    "AnyClassType AnyEnumType AnyListType AnyTupleType Await Capsule ConstQuantizerPtr DeviceIndex Dict Dimname Future None NoneType "
    "QScheme Quantizer RRef Storage SymFloat Union".split()
)


class AliasInfo(NamedTuple):
    """What an argument shares storage with: the letters before and after the call, and whether it is written to."""

    is_write: bool
    before_set: set
    after_set: set


class Argument:
    """One argument of a schema, or one result."""

    __slots__ = ("name", "base", "many", "optional", "alias", "default", "required", "by_name", "rest")

    def __init__(self, text, by_name=False, fresh=0):
        found = _ARGUMENT.fullmatch(text.strip())
        if found is None:
            raise errors_extend.bad_schema(text)
        self.name, self.base, self.alias = found["name"], found["type"], found["alias"]
        if found["fresh"]:  # written to, and shared with nothing
            self.alias = f"${fresh}! -> "
        self.rest = found["rest"]
        self.many = "[" in self.rest
        self.optional = self.rest.endswith("?")
        self.required = found["default"] is None
        self.default = None if self.required else _value(found["default"].strip(), self.base)
        self.by_name = by_name

    @property
    def writes(self) -> bool:
        return bool(self.alias) and "!" in self.alias

    # -- as PyTorch's torch.Argument says it

    is_write = writes

    @property
    def is_out(self) -> bool:
        return self.writes and self.by_name

    @property
    def kwarg_only(self) -> bool:
        return self.by_name

    @property
    def default_value(self):
        return self.converted(self.default)

    def has_default_value(self) -> bool:
        return not self.required

    @property
    def N(self):
        """The length of a list, where the schema says one."""
        found = re.search(r"\[(\d+)\]", self.rest)
        return int(found[1]) if found else None

    @property
    def alias_info(self):
        if self.alias is None:
            return None
        before, _, after = self.alias.replace("!", "").partition("->")
        letters = {x.strip() for x in before.split("|")}
        return AliasInfo(self.writes, letters, {x.strip() for x in after.split("|") if x.strip()} if after else letters)

    @property
    def real_type(self):
        """Its type, with SymInt for sizes."""
        found = getattr(script_types, _NAMED.get(self.base, "AnyType")).get()
        for part in re.findall(r"\[\d*\]|\?", self.rest):
            found = script_types.OptionalType(found) if part == "?" else script_types.ListType(found)
        return found

    type = real_type

    def accepts(self, value) -> bool:
        """Whether a value is of the argument's type; what is not known is taken."""
        kind = _CHECKS.get(self.base)
        if kind is None or value is None and self.optional:
            return True
        if self.many and not self._repeats(value):
            return isinstance(value, (tuple, list)) and all(isinstance(v, kind) or v is None for v in value)
        if isinstance(value, Tensor) and self.base in _NUMBERS:
            return value.numel() == 1
        return isinstance(value, kind)

    def _repeats(self, value) -> bool:
        """Whether one number stands for all of a list whose length the schema says."""
        kind = {"int": numbers.Integral, "SymInt": numbers.Integral, "float": float}.get(self.base)
        return self.N is not None and kind is not None and isinstance(value, kind)

    def converted(self, value):
        """An accepted value as kernels get it: lists as such, numbers in the schema's type."""
        if value is None:
            return None
        if not self.many:
            return self._one(value)
        return [self._one(v) for v in (value,) * self.N] if self._repeats(value) else [self._one(v) for v in value]

    def _one(self, value):
        number = _NUMBERS.get(self.base)
        if number is not None and type(value) is not number:
            if isinstance(value, Tensor):
                return number(value.item())
            # Sizes of an export are numbers of no such class.
            return number(value) if isinstance(value, (bool, int, float, np.number)) else value
        return devices.Device(value) if self.base == "Device" and isinstance(value, str) else value

    def __str__(self):
        alias = f"({self.alias})" if self.alias else ""
        text = f"{self.base}{alias}{self.rest} {self.name}"
        return text if self.required else f"{text}={_spelled(self.default)}"


def _value(text, base):
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    if text.startswith("["):
        inner = text[1:-1].strip()
        return [_value(x.strip(), base) for x in inner.split(",")] if inner else []
    if text[:1] in "\"'":
        return text[1:-1]
    if base == "ScalarType":
        return dtypes.ALL[_C_TYPES.get(text, text)]
    try:
        return float(text) if base == "float" else int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def _spelled(value):
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float):
        return f"{value:g}." if value == int(value) else f"{value:g}"
    if isinstance(value, dtypes.dtype):
        return value.name
    return "[" + ", ".join(map(_spelled, value)) + "]" if isinstance(value, list) else str(value)


class Schema:
    """The schema of an operator: "mine::op.overload(Tensor x, int[2] k=[1, 2], *, float? y=None) -> Tensor"."""

    __slots__ = ("name", "overload_name", "arguments", "results", "text")

    def __init__(self, text, namespace=None):
        head, bracket, rest = text.partition("(")
        if not bracket:
            raise errors_extend.schema_name_only()
        inner, returns = _split_arrow(rest, text)
        name, _, self.overload_name = head.strip().partition(".")
        self.name = name if "::" in name or namespace is None else f"{namespace}::{name}"
        self.arguments, by_name = [], False
        for part in _split(inner):
            if part.strip() == "*":
                by_name = True
            else:
                fresh = sum(a.alias is not None and a.alias.startswith("$") for a in self.arguments)
                self.arguments.append(Argument(part, by_name, fresh))
        self.results = returns
        for a in (*self.arguments, *self.returns):
            if a.base not in _KNOWN and not a.base.startswith("_"):  # classes of TorchScript's have a path
                start = len(head) + 1 if a in self.arguments else len(text) - len(returns)
                raise errors_extend.schema_type(text, a.base, text.index(a.base, start))

    @property
    def returns(self) -> list:
        """The results, as Arguments."""
        inner = self.results[1:-1] if self.results.startswith("(") else self.results
        parts = [p.strip() for p in _split(inner)]
        return [Argument(p if _ARGUMENT.fullmatch(p) else f"{p} _") for p in parts]

    @property
    def is_mutable(self) -> bool:
        """Whether it writes to an argument."""
        return any(a.writes for a in self.arguments)

    def bind(self, args, kwargs):
        """The values of all arguments, in order. RuntimeError: one is missing, unknown or of another type."""
        given, values = dict(kwargs), []
        positional = [a for a in self.arguments if not a.by_name]
        if len(args) > len(positional):
            raise errors_extend.too_many_values(self, len(positional), len(args))
        for k, a in enumerate(self.arguments):
            if k < len(args):
                value = args[k]
            elif a.name in given:
                value = given.pop(a.name)
            elif not a.required:
                value = a.default
            else:
                raise errors_extend.missing_value(self, a)
            if not a.accepts(value):
                raise errors_extend.wrong_value(self, a, k, value, _PYTHON.get(a.base, a.base))
            values.append(a.converted(value))
        if given:
            raise errors_extend.unknown_value(self, next(iter(given)))
        return values

    def call(self, fn, values):
        """fn with values for all arguments, each as its place in the schema says."""
        args = [v for a, v in zip(self.arguments, values) if not a.by_name]
        return fn(*args, **{a.name: v for a, v in zip(self.arguments, values) if a.by_name})

    def result(self, found):
        """What a kernel gave, as the schema says. RuntimeError, TypeError: it is something else."""
        many = self.results.startswith("(") or "[" in self.results
        if self.results == "()":
            if found is not None:
                raise errors_extend.no_result_expected(self.name)
            return None
        if many:
            if not isinstance(found, (list, tuple)):
                raise TypeError(f"Object of type '{type(found).__name__}' is not an instance of 'sequence'")
            return list(found) if "[" in self.results and not self.results.startswith("(") else tuple(found)
        if self.results.partition("(")[0] == "Tensor" and found is not None and not isinstance(found, Tensor):
            raise errors_extend.no_cast(found)
        return float(found) if self.results == "float" and type(found) is int else found

    def __str__(self):
        parts, starred = [], False
        for a in self.arguments:
            if a.by_name and not starred:
                parts.append("*")
                starred = True
            parts.append(str(a))
        overload = f".{self.overload_name}" if self.overload_name else ""
        return f"{self.name}{overload}({', '.join(parts)}) -> {self.results}"

    __repr__ = __str__


FunctionSchema = Schema


def parse_schema(schema) -> Schema:
    """The schema that a text says. RuntimeError: it says none."""
    return Schema(schema)


def _split_arrow(rest, text):
    """What is inside the first parentheses, and what follows the arrow."""
    depth = 1
    for k, c in enumerate(rest):
        depth += (c == "(") - (c == ")")
        if not depth:
            after = rest[k + 1 :].strip()
            if not after.startswith("->"):
                raise errors_extend.bad_schema(text)
            return rest[:k], after[2:].strip()
    raise errors_extend.bad_schema(text)


def _split(inner):
    """The parts between commas outside of brackets and quotes."""
    parts, depth, last = [], 0, ""
    for c in inner:
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth:
            parts.append(last)
            last = ""
        else:
            last += c
    return [p for p in [*parts, last] if p.strip()]


def infer_schema(prototype_function, /, *, mutates_args, op_name=None) -> str:
    """The schema that a function's annotations say.

    mutates_args: the names of the arguments that it writes to. ValueError: an annotation is missing or of no known type.
    """
    signature = inspect.signature(prototype_function)
    try:
        hints = typing.get_type_hints(prototype_function)
    except (NameError, TypeError):
        hints = {n: p.annotation for n, p in signature.parameters.items()} | {"return": signature.return_annotation}
    parts, starred = [], False
    for n, (name, p) in enumerate(signature.parameters.items()):
        if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            raise errors_extend.infer("We do not support positional-only args, varargs, or varkwargs.", signature)
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        if p.annotation is p.empty:
            raise errors_extend.infer(f"Parameter {name} must have a type annotation.", signature)
        kind = _type_of(hints[name])
        if kind is None:
            raise errors_extend.infer(f"Parameter {name} has unsupported type {p.annotation}.", signature)
        if mutates_args != "unknown" and name in mutates_args and not kind.startswith("Tensor"):
            raise errors_extend.infer(
                f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated",
                signature,
            )
        if isinstance(p.default, (list, dict, set)):
            raise errors_extend.infer(
                f"Parameter {name} has an unsupported default value type {type(p.default)}. Please file an issue on GitHub so we can "
                "prioritize this.",
                signature,
            )
        if (
            mutates_args == "unknown"
            and kind.startswith("Tensor")
            or mutates_args != "unknown"
            and name in mutates_args
        ):
            kind = f"Tensor(a{n}!){kind.removeprefix('Tensor')}"
        default = (
            ""
            if p.default is p.empty
            else f"={_spelled(list(p.default) if isinstance(p.default, tuple) else p.default)}"
        )
        parts.append(f"{kind} {name}{default}")
    unknown = set(() if mutates_args == "unknown" else mutates_args) - signature.parameters.keys()
    if unknown:
        raise errors_extend.infer(
            f"{unknown} in mutates_args were not found in the custom op's signature. mutates_args should contain the names of all "
            "args that the custom op mutates, or just the string 'unknown' if you don't know.",
            signature,
        )
    returns = hints.get("return", signature.return_annotation)
    text = f"({', '.join(parts)}) -> {_results(returns, signature)}"
    return text if op_name is None else op_name + text


def _type_of(hint):
    """The schema's word for an annotation, or None."""
    if hint in _BASES:
        return _BASES[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        inner = [a for a in args if a is not type(None)]
        if len(inner) < len(args):
            found = _type_of(functools.reduce(operator.or_, inner))
            return found and f"{found}?"
        return "Scalar" if set(args) <= {int, float, bool} else None
    if origin in (list, collections.abc.Sequence) and len(args) == 1:
        found = _type_of(args[0])
        return found and f"{found}[]"
    return None


def _results(hint, signature):
    if hint is None or hint is type(None):
        return "()"
    if hint is inspect.Signature.empty:
        raise errors_extend.infer("No return type annotation was provided. Please add one.", signature)
    if typing.get_origin(hint) is tuple:
        return "(" + ", ".join(_results(a, signature) for a in typing.get_args(hint)) + ")"
    found = _type_of(hint)
    if found is None:
        raise errors_extend.infer(f"Return has unsupported type {hint}.", signature)
    return found
