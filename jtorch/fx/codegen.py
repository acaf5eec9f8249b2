"""Python source of an fx graph: a line a node, names that are legal and unique, and the globals that the source speaks of."""

import builtins
import dataclasses
import enum
import keyword
import math
import re
import sys
import types
import typing
from collections import defaultdict

from .. import overrides
from ..core import device as devices
from ..core.dtype import dtype
from ..creation import Layout_, MemoryFormat
from ..utils import _pytree
from . import _pytree as fx_pytree
from .node import Node, _get_qualified_name, _type_repr, map_arg

magic_methods = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}", "pos": "+{}", "neg": "-{}",
    "invert": "~{}", "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}", "div": "{} / {}",
    "mod": "{} % {}", "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}",
    "getitem": "{}[{}]", "matmul": "{} @ {}", "pow": "{} ** {}",
}  # fmt: skip
inplace_methods = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}", "imod": "{} %= {}", "imul": "{} *= {}",
    "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}", "irshift": "{} >>= {}", "isub": "{} -= {}", "itruediv": "{} /= {}",
    "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip
reflectable_magic_methods = {
    n: magic_methods[n]
    for n in (
        "add", "sub", "mul", "floordiv", "truediv", "div", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor", "getitem", "matmul"
    )
}  # fmt: skip


def torch_module():
    """What generated code calls torch."""
    return sys.modules["jtorch"]


# What generated code may speak of without being told: name -> (import line, object).
known_globals = {
    "inf": ("from math import inf", math.inf), "nan": ("from math import nan", math.nan), "NoneType": ("NoneType = type(None)", type(None)),
    "torch": ("import torch", None), "device": ("from torch import device", devices.Device),
    "fx_pytree": ("import torch.fx._pytree as fx_pytree", fx_pytree), "pytree": ("import torch.utils._pytree as pytree", _pytree),
}  # fmt: skip


def is_magic(name) -> bool:
    """Whether a name has two underscores at both ends."""
    return name.startswith("__") and name.endswith("__")


def snake_case(s) -> str:
    """CamelCase as camel_case."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", s).lower()


class _Namespace:
    """Names in use: every new one is legal and unique, and an object keeps its name."""

    def __init__(self):
        self._obj_to_name = {}
        self._used_names = set()
        self._base_count = defaultdict(int)

    def create_name(self, candidate, obj) -> str:
        """A name like the candidate; of an object that has one, that."""
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        found = re.match(r"(.*)_(\d+)$", candidate)
        base, number = (candidate, 0) if found is None else (found.group(1), int(found.group(2)))
        number = number or self._base_count[base]
        while candidate in self._used_names or self._is_illegal_name(candidate, obj):
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name, obj) -> None:
        """Say that a name is that of an object."""
        self._obj_to_name.setdefault(obj, name)

    def _is_illegal_name(self, name, obj) -> bool:
        if name in keyword.kwlist:
            return True
        if name in builtins.__dict__:
            return obj is not builtins.__dict__[name]
        if name in known_globals:
            return obj is not known_globals[name][1]
        return False


@dataclasses.dataclass
class PythonCode:
    """The source of a function, and the globals that it needs."""

    src: str
    globals: dict
    _lineno_map: dict | None = None


def _is_from_torch(obj) -> bool:
    module = getattr(obj, "__module__", None)
    if module is not None and module.partition(".")[0] in ("torch", "jtorch"):
        return True
    return isinstance(obj, types.FunctionType) and overrides.resolve_name(obj) is not None


def _reachable(path) -> bool:
    at = torch_module()
    for part in path.split(".")[1:]:
        at = getattr(at, part, None)
        if at is None:
            return False
    return True


class CodeGen:
    """Writes the code of a graph. Subclasses may change the signature and what stands around the body."""

    def __init__(self):
        self._body_transformer = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars, maybe_return_annotation) -> str:
        """The line of the signature, and lines that come first in the body."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args) -> str:
        """The return statement."""
        return f"return {_repr(output_args)}"

    def process_inputs(self, *args):
        """The arguments as the inputs of the graph."""
        return args

    def process_outputs(self, outputs):
        """The output of the graph as what is returned."""
        return outputs

    def additional_globals(self) -> list:
        """Further (name, object) that the code speaks of."""
        return []

    def _gen_python_code(self, nodes, root_module, namespace, *, verbose=False) -> PythonCode:
        writer = _Writer(self, namespace, root_module)
        for name, value in self.additional_globals():
            writer.add_global(name, value)
        writer.last_uses(nodes)
        for node in nodes:
            writer.emit(node)
            writer.delete_unused(node)
        body = writer.body or ["pass\n"]
        if self._body_transformer is not None:
            body = self._body_transformer(body)
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
        prologue = self.gen_fn_def(writer.free_vars, writer.returns)
        code = "".join(body)
        code = "\n".join("    " + line for line in code.split("\n"))
        source = f"\n{wraps}\n\n{prologue}\n{code}"
        return PythonCode(source, writer.globals)


class _Writer:
    """What writing the code of one graph keeps."""

    def __init__(self, codegen, namespace, root):
        self.codegen, self.namespace, self.root = codegen, namespace, root
        self.free_vars, self.body, self.globals, self.wrapped = [], [], {}, {}
        self.returns = ""
        self.users_last = {}

    def add_global(self, hint, obj) -> str:
        """The name by which the code reaches an object."""
        if _is_from_torch(obj) and obj is not devices.Device:
            path = _type_repr(obj) if isinstance(obj, type) else _get_qualified_name(obj)
            if _reachable(path):
                self.globals["torch"] = torch_module()
                return path
        name = self.namespace.create_name(hint.replace(".", "_"), obj)
        if self.globals.get(name) is not obj:
            self.globals[name] = obj
        return name

    def last_uses(self, nodes):
        """Where each value is used last, after which the code lets it go."""
        last = {}
        for node in reversed(nodes):
            for given in (*node.args, *node.kwargs.values()):
                map_arg(given, lambda n, node=node: self._note(last, n, node))

    def _note(self, last, n, node):
        if n not in last:
            last[n] = node
            self.users_last.setdefault(node, []).append(n)

    def delete_unused(self, user):
        if user.op == "placeholder":
            return
        if user.op == "output":
            self.body.append("\n")
            return
        gone = list(self.users_last.get(user, ()))
        if not user.users:
            gone.append(user)
        self.body.append(f";  {' = '.join([*map(repr, gone), 'None'])}\n" if gone else "\n")

    def typed(self, kind) -> str:
        """A type, its globals made known."""
        if kind is None or kind == ():
            return "()" if kind == () else "None"
        name = _type_repr(kind)
        origin = getattr(kind, "__origin__", None)
        if origin is not None:
            base = {list: "List", tuple: "Tuple", dict: "Dict"}.get(origin)
            if origin is typing.Union:
                for part in kind.__args__:
                    self.typed(part)
                self.globals.setdefault("typing", typing)
                return name
            head = (
                self.add_global(f"typing_{base}", getattr(typing, base))
                if base
                else self.add_global(_type_repr(origin), origin)
            )
            arguments = [self.typed(a) for a in getattr(kind, "__args__", ()) if not isinstance(a, typing.TypeVar)]
            return f"{head}[{', '.join(arguments)}]" if arguments else head
        if isinstance(kind, str):
            return repr(kind)
        if getattr(builtins, name, None) is kind:
            return name
        return self.add_global(name, kind)

    def emit(self, node):
        """Write the line of a node, without its end."""
        annotation = "" if node.type is None else f" : {self.typed(node.type)}"
        write = self.body.append
        if node.op == "placeholder":
            default = "" if not node.args else f" = {_repr(node.args[0])}"
            self.free_vars.append(f"{node.target}{annotation}{default}")
            raw = node.target.replace("*", "")
            if raw != repr(node):
                write(f"{node!r} = {raw}\n")
        elif node.op == "call_method":
            first, *rest = node.args
            write(
                f"{node!r}{annotation} = {_format_target(_repr(first), node.target)}({self.arguments(rest, node.kwargs)})"
            )
        elif node.op == "call_function":
            self.function(node, annotation)
        elif node.op == "call_module":
            write(
                f"{node!r}{annotation} = {_format_target(self.root, node.target)}({self.arguments(node.args, node.kwargs)})"
            )
        elif node.op == "get_attr":
            write(f"{node!r}{annotation} = {_format_target(self.root, node.target)}")
        elif node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self.typed(node.type)}"
            self.globals |= _mentioned(node.args)
            write(self.codegen.generate_output(node.args[0]))

    def function(self, node, annotation):
        write, target = self.body.append, node.target
        name = getattr(target, "__name__", "")
        if getattr(target, "__module__", None) == "_operator":
            self.globals |= _mentioned(node.args)
            if name in magic_methods and not node.kwargs:
                write(f"{node!r}{annotation} = {magic_methods[name].format(*map(_repr, node.args))}")
                return
            if name in inplace_methods:
                write(
                    f"{inplace_methods[name].format(*map(_repr, node.args))};  {node!r}{annotation} = {_repr(node.args[0])}"
                )
                return
        qualified = _get_qualified_name(target)
        called = self.add_global(qualified, target)
        if (
            called == "getattr"
            and len(node.args) == 2
            and isinstance(node.args[1], str)
            and node.args[1].isidentifier()
        ):
            write(f"{node!r}{annotation} = {_format_target(_repr(node.args[0]), node.args[1])}")
            return
        write(f"{node!r}{annotation} = {called}({self.arguments(node.args, node.kwargs)})")
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(called)

    def arguments(self, args, kwargs) -> str:
        self.globals |= _mentioned((tuple(args), kwargs))
        for v in (*args, *kwargs.values()):
            if (
                isinstance(v, type)
                or hasattr(v, "overloadpacket")
                or isinstance(v, (types.FunctionType, types.BuiltinFunctionType))
            ):
                self.add_global(_type_repr(v) if isinstance(v, type) else _get_qualified_name(v), v)
        return ", ".join([*map(_repr, args), *(f"{k} = {_repr(v)}" for k, v in kwargs.items())])


def _mentioned(arguments) -> dict:
    """The globals that constants among arguments need."""
    found = {}

    def look(x):
        if isinstance(x, (tuple, list)):
            if hasattr(x, "_fields"):
                found[_named_type(x)] = type(x)
            for y in x:
                look(y)
        elif isinstance(x, dict):
            for y in x.values():
                look(y)
        elif isinstance(x, slice):
            look((x.start, x.stop, x.step))
        elif isinstance(x, (dtype, Layout_, MemoryFormat)):
            found["torch"] = torch_module()
        elif isinstance(x, devices.Device):
            found["device"] = devices.Device
        elif isinstance(x, float) and not math.isfinite(x):
            found.update(inf=math.inf, nan=math.nan)
        elif isinstance(x, enum.Enum):
            found[type(x).__name__] = type(x)

    look(arguments)
    return found


def _named_type(x):
    return f"{type(x).__module__}_{type(x).__qualname__}".replace(".", "_")


def _repr(arg) -> str:
    """A constant or node as code writes it."""
    if isinstance(arg, tuple):
        items = [_repr(a) for a in arg]
        if hasattr(arg, "_fields"):
            return f"{_named_type(arg)}({', '.join(f'{k} = {v}' for k, v in zip(arg._fields, items))})"
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if isinstance(arg, list):
        return f"[{', '.join(_repr(a) for a in arg)}]"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k!r}: {_repr(v)}" for k, v in arg.items()) + "}"
    if isinstance(arg, slice):
        return f"slice({_repr(arg.start)}, {_repr(arg.stop)}, {_repr(arg.step)})"
    if isinstance(arg, enum.Enum):
        return f"{type(arg).__name__}.{arg.name}"
    if isinstance(arg, type):
        return (
            _type_repr(arg)
            if getattr(builtins, arg.__name__, None) is arg or _is_from_torch(arg)
            else _type_repr(arg).replace(".", "_")
        )
    if not isinstance(arg, Node) and (
        hasattr(arg, "overloadpacket") or isinstance(arg, (types.FunctionType, types.BuiltinFunctionType))
    ):
        return _get_qualified_name(arg) if _is_from_torch(arg) else _get_qualified_name(arg).replace(".", "_")
    return repr(arg)


def _format_target(base, target) -> str:
    """`base.a.b`, with getattr for parts that are no identifiers."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


__all__ = ["CodeGen", "PythonCode"]
