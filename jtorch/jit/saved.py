"""Files of scripted and traced functions and modules: graphs, tensors and plain values. There is no code in them, and none is run.

The file is one that torch.save writes, of dicts. A graph's node says which function it calls by a name of targets.py; modules of torch.nn
are kept as their class and what their attributes are.
"""

import importlib
import inspect
import os
import sys

from .. import errors, serialization
from ..core.dtype import dtype
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..tensor import Tensor
from ..utils._pytree import treespec_dumps, treespec_loads
from . import calls, execute, parse, scripted, targets, traced, tracing, types
from .ir import Graph

__all__ = ["load", "save"]

_FORMAT = "jtorch.jit 1"
_PLAIN = (bool, int, float, complex, str, type(None), Tensor, dtype)
_NO_DEFAULT = "<none>"
_KINDS = {kind.name: kind for kind in type(inspect.Parameter.KEYWORD_ONLY)}


def save(of, f, extra=None) -> None:
    """Write a scripted or traced function or module. NotImplementedError: something of it can't be kept; it says what."""
    kept = _function(of) if isinstance(of, traced.ScriptFunction) else _module(of)
    serialization.save({"format": _FORMAT, "of": kept, "extra": dict(extra or {})}, f)


def _save(self, f, _extra_files=None) -> None:
    """Write it to a file that torch.jit.load reads without its Python code."""
    save(self, f, _extra_files)


# Classes that this file needs, and so cannot be needed by.
traced.ScriptFunction.save = traced.ScriptModule.save = _save


def load(f, map_location=None, extra=None):
    """What `save` has written. RuntimeError: the file is another's, or damaged."""
    if isinstance(f, (str, os.PathLike)) and not os.path.isfile(f):
        raise ValueError(f"The provided filename {f} {'is a directory' if os.path.isdir(f) else 'does not exist'}")
    try:
        found = serialization.load(f, map_location=map_location, weights_only=True)
    except (OSError, KeyError) as error:
        raise error if isinstance(error, OSError) else _foreign() from error
    except RuntimeError as error:
        raise _foreign() from error
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise _foreign()
    try:
        for name in extra or ():
            if name in found["extra"]:
                extra[name] = found["extra"][name]
        kept = found["of"]
        return _read_function(kept) if kept["is"] == "function" else _read_module(kept)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise _foreign() from error


def _foreign():
    return errors.unsupported(
        "archives of PyTorch's TorchScript, which hold compiled code",
        "the model's Python code and torch.load of its state_dict",
    )


def _cannot(what):
    return errors.unsupported(f"saving {what}", "torch.save(module.state_dict(), f) and the Python code")


# --- values and graphs


def _kept(x, where):
    """A value as the file has it."""
    if isinstance(x, _PLAIN) or type(x).__name__ == "device":
        return x
    if isinstance(x, (list, tuple, set, frozenset)):
        return {"is": type(x).__name__ if type(x) in (list, tuple) else "list", "of": [_kept(v, where) for v in x]}
    if isinstance(x, dict):
        return {"is": "dict", "of": [[_kept(k, where), _kept(v, where)] for k, v in x.items()]}
    name = targets.target_of(x)
    if name is None:
        raise _cannot(f"{where}, of type {type(x).__name__}")
    return {"is": "function", "of": name}


def _given(x):
    if not isinstance(x, dict):
        return x
    of = x["of"]
    if x["is"] == "dict":
        return {_given(k): _given(v) for k, v in of}
    if x["is"] == "function":
        return targets.named(of)
    return (list if x["is"] == "list" else tuple)(_given(v) for v in of)


def _call(node):
    """How a node is run, as plain values; None: by its kind."""
    recipe = node._recipe
    if recipe is None:
        return None
    name = targets.target_of(recipe.fn)
    if name is None:
        raise _cannot(f"a call of {getattr(recipe.fn, '__name__', recipe.fn)}")
    if isinstance(recipe, targets.Call):
        return [name, recipe.positional, list(recipe.names)]
    rest = {k: _kept(v, f"the argument {k}") for k, v in recipe.rest.items()}
    return [name, list(recipe.names), {n: k.name for n, k in recipe.kinds.items()}, rest]


def _called(of):
    fn = targets.named(of[0])
    if len(of) == 3:
        return targets.Call(fn, of[1], tuple(of[2]))
    kinds = {n: _KINDS[k] for n, k in of[2].items()}
    return calls.Recipe(fn, kinds, tuple(of[1]), {k: _given(v) for k, v in of[3].items()})


def _graph(graph):
    numbers = {}

    def outputs(values):
        return [[numbers.setdefault(id(v), len(numbers)), v._name, types.words(v.type())] for v in values]

    def block(of):
        inner = outputs(of.inputs())
        nodes = [node(n) for n in of.nodes()]
        return {"inputs": inner, "nodes": nodes, "outputs": [numbers[id(v)] for v in of.outputs()]}

    def node(n):
        made = {"kind": n.kind(), "inputs": [numbers[id(v)] for v in n.inputs()], "call": _call(n)}
        made["attributes"] = {k: [kind, _kept(v, k)] for k, (kind, v) in n._attributes.items()}
        if getattr(n, "_raw", None):
            made["raw"] = _kept(n._raw[0], "a constant")
        if getattr(n, "_argument_names", None):
            made["names"] = list(n._argument_names)
        made["outputs"] = outputs(n.outputs())
        made["blocks"] = [block(b) for b in n.blocks()]
        return made

    return block(graph.block())


def _read_graph(kept):
    made, known = Graph(), {}

    def declare(value, of):
        number, name, kind = of
        known[number] = value.setType(parse.read_type(kind))
        if name:
            value.setDebugName(name)

    def fill(block, of):
        for each in of["nodes"]:
            node = made.create(each["kind"], [known[k] for k in each["inputs"]], 0)
            node._attributes.update({k: (kind, _given(v)) for k, (kind, v) in each["attributes"].items()})
            node._recipe = None if each["call"] is None else _called(each["call"])
            node._argument_names = tuple(each.get("names", ()))
            if "raw" in each:
                node._raw = [_given(each["raw"])]
            node._into(block, len(block._nodes))
            for out in each["outputs"]:
                declare(node.addOutput(), out)
            for inner in each["blocks"]:
                added = node.addBlock()
                for v in inner["inputs"]:
                    declare(added.addInputToBlock(), v)
                fill(added, inner)
        for k in of["outputs"]:
            block.registerOutput(known[k])

    for v in kept["inputs"]:
        declare(made.addInput(), v)
    fill(made.block(), kept)
    return made


def _signature(fn, skip):
    found = list(inspect.signature(fn).parameters.values())[skip:]
    return [
        [p.name, _NO_DEFAULT if p.default is p.empty else _kept(p.default, f"the default of {p.name}")] for p in found
    ]


def _bound(signature, args, kwargs):
    given = dict(zip([n for n, _ in signature], args)) | kwargs
    missing = [n for n, default in signature if n not in given and default == _NO_DEFAULT]
    if missing or len(given) > len(signature):
        raise RuntimeError(
            f"forward() is missing value for argument '{missing[0]}'" if missing else "forward() got too many arguments"
        )
    return [given[n] if n in given else _given(default) for n, default in signature]


# --- functions


def _function(of):
    if hasattr(of, "_run"):
        return {"is": "function", "name": of.name, "traced": _traced(of._run)}
    return {"is": "function", "name": of.name, "graph": _graph(of.graph), "signature": _signature(of._scripted, 0)}


def _traced(run):
    if not isinstance(run, tracing.Traced):
        raise _cannot("a function that was made of a graph, or read from a file")
    nesting = [treespec_dumps(run.spec), treespec_dumps(run.out_spec), _kept(run.out_places, "a result")]
    return {"graph": _graph(run.graph), "nesting": nesting}


def _read_traced(kept):
    spec, out_spec, places = kept["nesting"]
    return tracing.Traced(
        _read_graph(kept["graph"]), treespec_loads(spec), None, treespec_loads(out_spec), _given(places)
    )


def _read_function(kept):
    if "traced" in kept:
        found = _read_traced(kept["traced"])
        return traced.ScriptFunction._new(kept["name"], found.graph, found)
    graph = _read_graph(kept["graph"])

    def run(first, args, kwargs):
        return execute.run(graph, _bound(kept["signature"], args, kwargs))[0]

    return traced.ScriptFunction._new(kept["name"], graph, run)


# --- modules


def _methods(of):
    """name -> graph of the methods that a scripted module has in its file: forward, those it calls, and those marked as exported."""
    found, wanted = {}, ["forward"]
    kind = type(of._inner)
    wanted += [n for n in dir(kind) if getattr(inspect.getattr_static(kind, n, None), "_jit_export", False)]
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        graph = found[name] = of.graph_of(name)
        me = next(iter(graph.inputs()))
        wanted += [n.s("name") for n in graph.findAllNodes("prim::CallMethod") if next(iter(n.inputs())) is me]
    return found


def _home(cls):
    """Where in torch.nn a class is; None: it is a program's own."""
    holders = ["jtorch.nn", *(n for n in sys.modules if n.startswith("jtorch.nn.modules."))]
    return next(
        (h.removeprefix("jtorch.") for h in holders if getattr(sys.modules[h], cls.__name__, None) is cls), None
    )


def _class(home, name):
    found = importlib.import_module(f"jtorch.{home}") if home == "nn" or home.startswith("nn.modules.") else None
    cls = getattr(found, name, None)
    if not (isinstance(cls, type) and issubclass(cls, Module)):
        raise _foreign()
    return cls


_KEPT_APART = ("_parameters", "_buffers", "_modules", "training", "_inner", "_non_persistent_buffers_set")


def _module(of):
    if isinstance(of, LoadedModule):
        raise _cannot("a module that was read from a file")
    inner = getattr(of, "_inner", of)
    home = _home(type(inner))
    kept = {
        "is": "module", "name": of.original_name, "training": of.training,
        "parameters": {n: p if p is None else [p.detach(), p.requires_grad] for n, p in inner._parameters.items()},
        "buffers": dict(inner._buffers), "transient": sorted(inner._non_persistent_buffers_set),
        "modules": {n: None if m is None else _module(m) for n, m in of._modules.items()},
    }  # fmt: skip
    if inner is of:
        kept["traced"] = {n: _traced(run) for n, run in of.__dict__.get("_traced", {}).items()}
        return kept | {"own": {}}
    own = {
        n: v
        for n, v in inner.__dict__.items()
        if n not in _KEPT_APART and not n.endswith("_hooks") and "hooks_" not in n
    }
    if home is not None:
        kept["class"] = home
        kept["own"] = {n: _kept(v, f"{type(inner).__name__}.{n}") for n, v in own.items()}
        return kept
    graphs = _methods(of)
    kept["methods"] = {
        n: {"graph": _graph(graph), "signature": _signature(getattr(type(inner), n), 1)} for n, graph in graphs.items()
    }
    used = {n.s("name") for graph in graphs.values() for n in graph.findAllNodes("prim::GetAttr")}
    kept["own"] = {n: _kept(v, f"{type(inner).__name__}.{n}") for n, v in own.items() if n in used}
    return kept


class LoadedModule(traced.RecursiveScriptModule):
    """A module from a file: it runs its graphs."""

    def __init__(self, name, methods):
        super().__init__()
        self.__dict__.update(_name=name, _methods=methods)

    @property
    def original_name(self) -> str:
        """The name of the class that was scripted."""
        return self._name

    def _get_name(self):
        return "RecursiveScriptModule"

    def extra_repr(self) -> str:
        """The name of the class that was scripted."""
        return f"original_name={self._name}"

    @property
    def graph(self):
        """The graph of forward."""
        return self._methods["forward"][0]

    inlined_graph = graph

    def _run(self, name, args, kwargs):
        graph, signature = self._methods[name]
        return execute.run(graph, [self, *_bound(signature, args, kwargs)])[0]

    def forward(self, *args, **kwargs):
        """Run the graph."""
        return self._run("forward", args, kwargs)

    def __getattr__(self, name):
        if name in self.__dict__.get("_methods", ()):
            return lambda *args, **kwargs: self._run(name, args, kwargs)
        return super().__getattr__(name)


def _read_module(kept):
    if "class" in kept:
        cls = _class(kept["class"], kept["name"])
        made = object.__new__(cls)
        Module.__init__(made)
    elif "traced" in kept:
        made = traced.TracedModule._named(kept["name"])
        if kept["traced"]:
            made = traced.TopLevelTracedModule._named(kept["name"])
            made.__dict__["_traced"] = {n: _read_traced(each) for n, each in kept["traced"].items()}
    else:
        methods = {n: (_read_graph(m["graph"]), m["signature"]) for n, m in kept["methods"].items()}
        made = LoadedModule(kept["name"], methods)
    for name, p in kept["parameters"].items():
        made.register_parameter(name, None if p is None else Parameter(*p))
    for name, b in kept["buffers"].items():
        made.register_buffer(name, b, persistent=name not in kept["transient"])
    for name, m in kept["modules"].items():
        made.add_module(name, None if m is None else _read_module(m))
    made.__dict__.update({n: _given(v) for n, v in kept["own"].items()})
    made.training = kept["training"]
    if hasattr(type(made), "flatten_parameters"):
        made.__setstate__(made.__dict__)  # what a recurrent layer keeps beside its parameters
    return scripted.module(made)
