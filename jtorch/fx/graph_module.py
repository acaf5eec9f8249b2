"""GraphModule: a module whose forward is the code of a graph."""

import copy
import itertools
import linecache
import operator
import re
import sys
import traceback
from pathlib import Path

from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..serialization import save
from ..tensor import Tensor
from .codegen import PythonCode, known_globals, torch_module
from .graph import Graph
from .node import _get_qualified_name

_numbers = itertools.count()
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


def _exec_with_source(src, globals_, co_fields=None):
    """Run source text in its own file name, so that tracebacks show it."""
    key = f"<eval_with_key>.{next(_numbers)}"
    globals_ = dict(globals_)
    linecache.cache[key] = (len(src), None, src.splitlines(keepends=True), key)
    exec(compile(src, key, "exec"), globals_)
    return globals_


def _forward_from_src(src, globals_, co_fields=None):
    return _method_from_src("forward", src, globals_, co_fields)


def _method_from_src(method_name, src, globals_, co_fields=None):
    space = {"torch": torch_module(), **globals_}
    return _exec_with_source(src, space)[method_name]


class _CodeOnlyModule(Module):
    """A module made of generated code, to be traced again."""

    def __init__(self, body):
        super().__init__()
        self.__dict__ = body


def _copy_attr(from_module, to_module, target) -> None:
    """Put the attribute at a dotted path into another module, with modules in between."""
    *path, name = target.split(".")
    for part in path:
        there, here = getattr(from_module, part), getattr(to_module, part, None)
        if here is there:
            return
        if here is None:
            here = Module()
            setattr(to_module, part, here)
        from_module, to_module = there, here
    _assign_attr(getattr(from_module, name), to_module, name)


def _assign_attr(value, to_module, target) -> None:
    """Put a value at a dotted path of a module."""
    *path, name = target.split(".")
    for part in path:
        here = getattr(to_module, part, None)
        if here is None:
            here = Module()
            setattr(to_module, part, here)
        to_module = here
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        to_module.register_buffer(name, value)
    else:
        setattr(to_module, name, value)


def _has(module, target) -> bool:
    *path, name = target.split(".")
    for part in path:
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return hasattr(module, name)


class GraphModule(Module):
    """A module that runs a graph.

    Args:
        root: the module that the graph's targets are of, or {path: value}; what the graph uses is taken over
        graph: the Graph; it is the module's own afterwards
        class_name: the name that it shows
    """

    def __new__(cls, *args, **kwargs):
        """An instance of a class of its own, which has its forward."""
        for base in cls.__mro__:
            if "_is_own" not in vars(base):
                cls = base
                break
        # programs know these classes by what PyTorch prints of them
        qualname = "GraphModule.__new__.<locals>.GraphModuleImpl"
        own = type(cls.__name__, (cls,), {"_is_own": True, "__module__": cls.__module__, "__qualname__": qualname})
        return super().__new__(own)

    def __init__(self, root, graph, class_name="GraphModule"):
        super().__init__()
        self.__class__.__name__ = class_name
        users = {n.target: n for n in graph.nodes if n.op in ("get_attr", "call_module")}
        used = list(users)
        if isinstance(root, Module):
            if hasattr(root, "training"):
                self.training = root.training
            for target in used:
                if _has(root, target):
                    _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for target in used:
                if target not in root:
                    raise RuntimeError(
                        f"Node {users[target]} referenced target {target} but that target was not provided in ``root``!"
                    )
            for target in sorted(used, key=lambda t: t.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        self._tracer_cls = None
        if self.graph._tracer_cls and "<locals>" not in self.graph._tracer_cls.__qualname__:
            self._tracer_cls = self.graph._tracer_cls
        self.meta = {}

    __jit_unused_properties__ = ["graph"]

    @property
    def graph(self) -> Graph:
        """The graph: assign another, or change it and call `recompile`."""
        return self._graph

    @graph.setter
    def graph(self, g):
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source of forward."""
        return self._code

    def recompile(self) -> PythonCode:
        """Make forward from the graph as it is now."""
        info = getattr(self._graph._codegen, "pytree_info", None)
        if info is not None:
            self._in_spec, self._out_spec = info.in_spec, info.out_spec
        found = self._graph.python_code("self")
        self._code = found.src
        forward = _forward_from_src(found.src, found.globals)
        cls = type(self)
        cls.forward = forward
        cls.__call__ = _explaining_call
        return found

    def add_submodule(self, target, m) -> bool:
        """Put a module at a path, with modules in between. False: something else is in the way."""
        *path, name = target.split(".")
        at = self
        for part in path:
            below = getattr(at, part, None)
            if below is None:
                below = Module()
                setattr(at, part, below)
            if not isinstance(below, Module):
                return False
            at = below
        at.add_module(name, m)
        return True

    def delete_submodule(self, target) -> bool:
        """Take the module at a path out. False: there is none."""
        *path, name = target.split(".")
        at = self
        for part in path:
            if not hasattr(at, part):
                return False
            at = getattr(at, part)
            if not isinstance(at, Module):
                return False
        if not isinstance(getattr(at, name, None), Module):
            return False
        delattr(at, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take out the modules that the graph does not use."""
        used = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used |= {".".join(parts[:k]) for k in range(1, len(parts) + 1)}
                if node.op == "call_module" and _has(self, node.target):
                    used |= {f"{node.target}.{n}" for n, _ in self.get_submodule(node.target).named_modules() if n}
        for name in [n for n, _ in self.named_modules() if n and n not in used]:
            self.delete_submodule(name)

    def print_readable(
        self, print_output=True, include_stride=False, include_device=False, colored=False, **kwargs
    ) -> str:
        """The code as that of a class; printed too."""
        body = self._graph.python_code("self").src.strip("\n").split("\n")
        first = next(k for k, line in enumerate(body) if line.startswith("def "))
        lines = [
            f"class {self._get_name()}(torch.nn.Module):",
            *("    " + line if line else "" for line in body[first:]),
        ]
        text = "\n".join(lines).rstrip() + "\n"
        if print_output:
            print(text)
        return text

    def to_folder(self, folder, module_name="FxModule") -> None:
        """Write the module as a package: its code, and its tensors in a file."""
        folder = Path(folder)
        folder.mkdir(exist_ok=True)
        save(self.state_dict(), folder / "state_dict.pt")
        lines = [
            "import torch",
            "from torch.nn import *",
            "",
            f"class {module_name}(torch.nn.Module):",
            "    def __init__(self):",
        ]
        lines.append("        super().__init__()")
        for name, module in self.named_children():
            file = folder / f"{name}.pt"
            save(module, file)
            lines.append(
                f"        setattr(self, {name!r}, torch.load(r'{file}', weights_only=False))  # {module!r}".split("\n")[
                    0
                ]
            )
        for kind, pairs in (("Parameter", self._parameters), ("Buffer", self._buffers)):
            for name, value in pairs.items():
                if value is not None:
                    made = f"torch.empty({list(value.shape)}, dtype={value.dtype})"
                    made = (
                        f"setattr(self, {name!r}, torch.nn.Parameter({made}))"
                        if kind == "Parameter"
                        else f"self.register_buffer({name!r}, {made})"
                    )
                    lines.append(f"        {made}")
        lines.append(f"        self.load_state_dict(torch.load(r'{folder / 'state_dict.pt'}'))")
        lines += ["    " + line for line in self.code.strip("\n").split("\n")]
        (folder / "module.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (folder / "__init__.py").write_text("from .module import *\n", encoding="utf-8")

    def __reduce__(self):
        info = getattr(self._graph._codegen, "pytree_info", None)
        if info is not None:
            self._in_spec, self._out_spec = info.in_spec, info.out_spec
        found = self._graph.python_code("self")
        body = {k: v for k, v in self.__dict__.items() if k != "_graph"}
        body["_graphmodule_cls_name"] = type(self).__name__
        return reduce_graph_module, (body, "\n".join(import_line(k, v) for k, v in found.globals.items()) + "\n")

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        fake = Module()
        fake.__dict__ = copy.deepcopy({k: v for k, v in self.__dict__.items() if k != "_graph"}, memo)
        GraphModule.__init__(made, fake, copy.deepcopy(self.graph), self._get_name())
        for name, value in fake.__dict__.items():
            if name not in made.__dict__ and not name.startswith("_"):
                made.__dict__[name] = value
        for registry in ("_modules", "_parameters", "_buffers"):
            for name, value in fake.__dict__[registry].items():
                made.__dict__[registry].setdefault(name, value)
        for hooks in ("_forward_hooks", "_forward_pre_hooks", "_state_dict_hooks"):
            if hooks in fake.__dict__:
                made.__dict__[hooks] = fake.__dict__[hooks]
        made.training = self.training
        made.meta = copy.copy(self.meta)
        return made

    def __copy__(self):
        made = GraphModule(self, copy.deepcopy(self.graph), self._get_name())
        made.meta = copy.copy(self.meta)
        return made

    def __str__(self):
        return "\n".join(
            [super().__str__(), self._code, "# To see more debug info, please use `graph_module.print_readable()`"]
        )


def _explaining_call(self, *args, **kwargs):
    """Run forward; an error in generated code is shown with its line."""
    try:
        return super(type(self), self).__call__(*args, **kwargs)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        last = frames[-1] if frames else None
        if last is not None and last.filename.startswith("<eval_with_key>"):
            lines = linecache.cache[last.filename][2]
            shown = (
                "".join(lines[max(last.lineno - 3, 0) : last.lineno])
                + f"~~~ <--- HERE\n{''.join(lines[last.lineno : last.lineno + 2])}"
            )
            print(
                f"Call using an FX-traced Module, line {last.lineno} of the traced Module's generated forward function:\n{shown}",
                file=sys.stderr,
            )
        raise


def import_line(name, obj) -> str:
    """The statement that imports a global of generated code."""
    if name in known_globals:
        return known_globals[name][0]
    module, _, base = _get_qualified_name(obj).rpartition(".")
    if isinstance(obj, type):
        module, base = obj.__module__.replace("jtorch", "torch", 1), obj.__qualname__
    return f"from {module} import {base} as {name}" if module else f"{name} = {base}"


def _imported(block) -> dict:
    """The globals of a block of import statements: what is of torch, from here."""
    found = {name: obj for name, (_, obj) in known_globals.items() if obj is not None}
    for line in block.splitlines():
        words = re.match(r"from (torch[\w.]*) import (\S+) as (\S+)$", line)
        if words is not None:
            path = f"{words[1]}.{words[2]}".partition(".")[2]
            found[words[3]] = operator.attrgetter(path)(torch_module())
        elif "torch" not in line:
            exec(line, found)
    return found


def reduce_graph_module(body, import_block) -> GraphModule:
    """A GraphModule from what pickling it wrote: its code is traced again."""
    src, class_name = body["_code"], body.get("_graphmodule_cls_name", "GraphModule")
    from_code = type(class_name, (_CodeOnlyModule,), {"forward": _forward_from_src(src, _imported(import_block))})
    module = from_code(body)
    tracer_cls = body.get("_tracer_cls") or sys.modules["jtorch.fx._symbolic_trace"].Tracer

    class KeepModules(tracer_cls):
        def is_leaf_module(self, m, module_qualified_name):
            return True

    graph = KeepModules().trace(module)
    graph._tracer_cls = tracer_cls
    made = GraphModule(module, graph, class_name)
    for k, v in body.items():
        if not hasattr(made, k):
            setattr(made, k, v)
    return made


__all__ = ["GraphModule", "reduce_graph_module"]
