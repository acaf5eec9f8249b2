"""Reads Python source for the torch names that it uses, and says which of them jtorch lacks. Nothing of it is run."""

import ast
import pathlib
import types
from dataclasses import dataclass

from . import hook
from .advice import advice

_GUARDS = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException", "RuntimeError"}
# Functions whose result is a Tensor, so that a method called on it is Tensor's.
_MAKES_TENSORS = frozenset(
    f"torch.{name}" for name in ("arange", "as_tensor", "cat", "empty", "eye", "from_numpy", "full", "linspace", "ones", "ones_like",
    "rand", "randint", "randn", "randperm", "stack", "tensor", "where", "zeros", "zeros_like")
)  # fmt: skip


@dataclass(frozen=True, order=True)
class Use:
    """A torch name that jtorch lacks: where it is used, whether the program can do without, and what to do."""

    path: str
    line: int
    name: str
    optional: bool
    advice: str


class _Reader(ast.NodeVisitor):
    """Collects (line, dotted name, optional) of one file."""

    def __init__(self):
        self.known = {}  # local name -> dotted torch name
        self.found = []
        self._optional = 0

    def use(self, node, name):
        self.found.append((node.lineno, name, bool(self._optional)))

    def visit_Import(self, node):
        for alias in node.names:
            if alias.name.partition(".")[0] == "torch":
                self.use(node, alias.name)
                self.known[alias.asname or "torch"] = alias.name if alias.asname else "torch"

    def visit_ImportFrom(self, node):
        if node.level or (node.module or "").partition(".")[0] != "torch":
            return
        for alias in node.names:
            if alias.name == "*":
                self.use(node, node.module)
                continue
            self.known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            self.use(node, f"{node.module}.{alias.name}")

    def visit_Assign(self, node):
        self.generic_visit(node)
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = self.dotted(node.value)
            if name:
                self.known.setdefault(node.targets[0].id, name)

    def visit_FunctionDef(self, node):
        outside = [*getattr(node, "decorator_list", ()), *node.args.defaults, *node.args.kw_defaults]
        for child in filter(None, (*outside, getattr(node, "returns", None))):
            self.visit(child)
        known, self.known = self.known, {k: v for k, v in self.known.items() if k not in _own(node)}
        self.visit(node.args)
        for child in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(child)
        self.known = known

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def visit_Attribute(self, node):
        name = self.dotted(node)
        if name is None:
            self.generic_visit(node)
        elif isinstance(node.ctx, ast.Load):
            self.use(node, name)

    def visit_Call(self, node):
        probe = isinstance(node.func, ast.Name) and node.func.id in ("hasattr", "getattr") and len(node.args) >= 2
        if probe and isinstance(node.args[1], ast.Constant) and self.dotted(node.args[0]):
            if node.func.id == "getattr" and len(node.args) == 2 and isinstance(node.args[1].value, str):
                self.use(node, f"{self.dotted(node.args[0])}.{node.args[1].value}")
            return
        self.generic_visit(node)

    def visit_Try(self, node):
        guarded = any(_caught(h) for h in node.handlers)
        self._optional += guarded
        for child in node.body:
            self.visit(child)
        self._optional -= guarded
        for child in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(child)

    def visit_If(self, node):
        test = ast.unparse(node.test)
        if "TYPE_CHECKING" in test:
            for child in node.orelse:
                self.visit(child)
            return
        probes = "hasattr(" in test or "is_available" in test or "version" in test.lower()
        self.visit(node.test)
        self._optional += probes
        for child in (*node.body, *node.orelse):
            self.visit(child)
        self._optional -= probes

    def dotted(self, node):
        """The torch name that an expression spells, or None."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node.id in self.known:
            return ".".join([self.known[node.id], *reversed(parts)])
        if parts and isinstance(node, ast.Call) and self.dotted(node.func) in _MAKES_TENSORS:
            self.visit(node)
            return f"torch.Tensor.{parts[-1]}"
        return None


def _own(function):
    """The names that a function has for itself: its arguments, and what it binds other than by import."""
    arguments = function.args
    names = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    names |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None}
    shared, waiting = set(), list(function.body) if isinstance(function.body, list) else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Global | ast.Nonlocal):
            shared.update(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))
    return names - shared


def _caught(handler):
    names = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(n is None or ast.unparse(n).rpartition(".")[2] in _GUARDS for n in names)


def names(source: str, path: str = "<source>") -> list[tuple[int, str, bool]]:
    """(line, torch name, whether its lack is provided for) of a program's text, in its order. Raises SyntaxError."""
    reader = _Reader()
    reader.visit(ast.parse(source, path))
    return sorted(set(reader.found))


def lacking(name: str) -> str | None:
    """The shortest part of a dotted torch name that jtorch does not have, or has only to refuse its call, or None.

    The import hook must be on.
    """
    found, path = hook.facade(), ""
    parts = name.split(".")[1:]
    for i, part in enumerate(parts):
        if not isinstance(found, (types.ModuleType, type)):
            return None  # an attribute of a value: it depends on what the value is
        path = f"{path}.{part}".lstrip(".")
        try:
            found = getattr(found, part)
        except AttributeError:
            if not isinstance(found, types.ModuleType) or not hook.exists(path):
                return f"torch.{path}"
            found = __import__(f"torch.{path}", fromlist=["*"])
        except (RuntimeError, ImportError):
            return f"torch.{path}"
        if isinstance(found, (types.FunctionType, type)) and getattr(found, "__unsupported__", False) is True:
            return f"torch.{path}"
        if i < len(parts) - 1 and isinstance(found, types.FunctionType):
            return None
    return None


def files(path: pathlib.Path) -> list[pathlib.Path]:
    """The Python files of a script or folder. Raises FileNotFoundError."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise FileNotFoundError(f"no file or folder {str(path)!r}")
    return sorted(p for p in path.rglob("*.py") if "__pycache__" not in p.parts)


def scan(path) -> tuple[list[Use], dict[str, str], int]:
    """(uses of names that jtorch lacks, files that could not be read and why, how many torch names were looked up)."""
    found, unread, known = set(), {}, {}
    for file in files(pathlib.Path(path)):
        try:
            used = names(file.read_text(encoding="utf-8", errors="replace"), str(file))
        except (SyntaxError, ValueError, OSError) as error:
            unread[str(file)] = f"{type(error).__name__}: {error}"
            continue
        for line, name, optional in used:
            if name not in known:
                known[name] = lacking(name)
            if known[name]:
                found.add(Use(str(file), line, known[name], optional, advice(known[name])))
    return sorted(found), unread, len(known)
