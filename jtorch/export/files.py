"""torch.export.save and load: a program as a file of its own kind, in which there is no code.

A zip of `program.json` (the nodes, by the names of what they call) and `state.pt` (what torch.save makes of the tensors).
"""

import contextlib
import io
import json
import operator
import zipfile

from .. import overrides
from ..core import device as devices
from ..core import dtype as dtypes
from ..creation import Layout_, MemoryFormat
from ..files.saving import replacing
from ..fx.codegen import torch_module
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..serialization import load as load_tensors
from ..serialization import save as save_tensors
from ..tensor import Tensor
from ..utils import _pytree
from . import errors
from .dim import UNBOUNDED, ValueRanges
from .program import (
    ConstantArgument,
    ExportedProgram,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

_SPACES = ("torch.nn.functional.", "torch.linalg.", "torch.fft.", "torch.special.", "torch.functional.", "torch.")


def save(ep, f, *, extra_files=None, opset_version=None) -> None:
    """Write an ExportedProgram to a path or an object with `write`.

    NotImplementedError: it calls what is not torch's. Only jtorch reads the file.
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead."
        )
    nodes = [
        {"op": n.op, "name": n.name, "target": _target(n), "args": _plain(n.args), "kwargs": _plain(n.kwargs)}
        for n in ep.graph.nodes
    ]
    body = {
        "version": 1,
        "nodes": nodes,
        "inputs": [[s.kind.name, _saved(s.arg), s.target, s.persistent] for s in ep.graph_signature.input_specs],
        "outputs": [_saved(s.arg) for s in ep.graph_signature.output_specs],
        "in_spec": _pytree.treespec_dumps(ep.in_spec),
        "out_spec": _pytree.treespec_dumps(ep.out_spec),
        "checks": _plain([list(c) for c in ep.checks]),
        "relations": ep.relations,
        "ranges": {
            name: [r.lower, None if r.upper is UNBOUNDED else r.upper] for name, r in ep.range_constraints.items()
        },
    }
    tensors = io.BytesIO()
    save_tensors(
        {"state": dict(ep.state_dict), "constants": ep.constants, "example_inputs": ep.example_inputs}, tensors
    )
    into = contextlib.nullcontext(f) if hasattr(f, "write") else replacing(f)
    with into as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("jtorch_program/program.json", json.dumps(body))
        archive.writestr("jtorch_program/state.pt", tensors.getvalue())
        for name, text in (extra_files or {}).items():
            archive.writestr(f"jtorch_program/extra/{name}", text)


def load(f, *, extra_files=None, expected_opset_version=None) -> ExportedProgram:
    """Read an ExportedProgram from a path or an object with `read`. RuntimeError: jtorch has not written it."""
    with zipfile.ZipFile(f) as archive:
        if "jtorch_program/program.json" not in archive.namelist():
            raise errors.foreign(f)
        body = json.loads(archive.read("jtorch_program/program.json"))
        found = load_tensors(io.BytesIO(archive.read("jtorch_program/state.pt")), weights_only=True)
        for name in extra_files or {}:
            extra_files[name] = archive.read(f"jtorch_program/extra/{name}").decode()
    graph, nodes = Graph(), {}
    for n in body["nodes"]:
        args, kwargs = _values(n["args"], nodes), _values(n["kwargs"], nodes)
        target = _function(n["target"]) if n["op"] == "call_function" else n["target"]
        name = args[1] if target is getattr else target if n["op"] == "call_method" else "T"
        if name.startswith("_") or name not in dir(Tensor):
            raise errors.unsavable(name)
        nodes[n["name"]] = graph.create_node(n["op"], target, args, kwargs, name=n["name"])
    inputs = [InputSpec(InputKind[kind], _argument(arg), *rest) for kind, arg, *rest in body["inputs"]]
    outputs = [OutputSpec(OutputKind.USER_OUTPUT, _argument(arg)) for arg in body["outputs"]]
    checks = [tuple(c) for c in _values(body["checks"], {})]
    program = ExportedProgram(
        GraphModule({}, graph), ExportGraphSignature(inputs, outputs), found["state"], found["constants"],
        _pytree.treespec_loads(body["in_spec"]), _pytree.treespec_loads(body["out_spec"]), found["example_inputs"], checks,
    )  # fmt: skip
    program.relations = body.get("relations", [])
    for name, (low, high) in body.get("ranges", {}).items():
        program.range_constraints[name] = ValueRanges(low, UNBOUNDED if high is None else high)
    return program


def _target(node):
    if isinstance(node.target, str):
        return node.target
    if getattr(node.target, "__module__", None) == "_operator":
        return f"operator.{node.target.__name__}"
    if node.target is getattr:
        return "getattr"
    name = overrides.resolve_name(node.target)
    if name is None:
        name = next((f"torch.{n}" for n in (getattr(node.target, "__name__", ""),) if hasattr(torch_module(), n)), None)
    if node.target.__name__ == "_set_grad_enabled":
        name = "torch.set_grad_enabled"
    try:
        if name is None or _function(name) is not node.target and name != "torch.set_grad_enabled":
            raise errors.unsavable(node.target)
    except AttributeError:
        raise errors.unsavable(node.target) from None
    return name


# What reads and writes files, or starts code, is no part of a program.
_NEVER = frozenset("load save compile import_ir_module from_file set_default_device manual_seed seed".split())


def _function(name):
    """The function of a name in a file: an operator, or a public function of torch."""
    if name == "getattr":
        return getattr
    if (
        name.startswith("operator.")
        and name[9:] in operator.__all__
        and name[9:] not in ("attrgetter", "methodcaller", "call")
    ):
        return getattr(operator, name[9:])
    space = next((s for s in _SPACES if name.startswith(s)), None)
    last = name[len(space) :] if space else "."
    if "." in last or last.startswith("_") or last in _NEVER:
        raise errors.unsavable(name)
    holder = torch_module()
    for part in (space or "").split(".")[1:-1]:
        holder = getattr(holder, part)
    found = getattr(holder, last)
    if isinstance(found, type) and last != "set_grad_enabled":
        raise errors.unsavable(name)
    return found


def _saved(arg):
    """A tensor's name, or the name and the value of another argument."""
    return [arg.name, _plain(arg.value)] if isinstance(arg, ConstantArgument) else arg.name


def _argument(saved):
    return TensorArgument(saved) if isinstance(saved, str) else ConstantArgument(saved[0], _values(saved[1], {}))


def _plain(x):
    """A value as JSON has it: what that does not know is {kind: text}."""
    if isinstance(x, Node):
        return {"node": x.name}
    if isinstance(x, (list, tuple)):
        parts = [_plain(v) for v in x]
        return parts if isinstance(x, list) else {"tuple": parts}
    if isinstance(x, dict):
        return {"dict": [[k, _plain(v)] for k, v in x.items()]}
    if isinstance(x, slice):
        return {"slice": [_plain(v) for v in (x.start, x.stop, x.step)]}
    if x is ...:
        return {"ellipsis": 0}
    if isinstance(x, complex):
        return {"complex": [x.real, x.imag]}
    if isinstance(x, float):
        return {"float": x.hex()}
    if isinstance(x, dtypes.dtype):
        return {"dtype": str(x).removeprefix("torch.")}
    if isinstance(x, devices.Device):
        return {"device": str(x)}
    if isinstance(x, (MemoryFormat, Layout_)):
        return {"format": str(x).removeprefix("torch.")}
    if x is None or isinstance(x, (bool, int, str)):
        return x
    raise errors.unsavable(f"something with an argument of type {type(x).__name__}")


def _values(x, nodes):
    if isinstance(x, list):
        return [_values(v, nodes) for v in x]
    if not isinstance(x, dict):
        return x
    ((kind, v),) = x.items()
    if kind == "dtype":
        return dtypes.ALL[v]
    if kind == "format":
        return getattr(torch_module(), v)
    made = {
        "node": lambda: nodes[v], "tuple": lambda: tuple(_values(v, nodes)), "ellipsis": lambda: ...,
        "dict": lambda: {k: _values(y, nodes) for k, y in v}, "slice": lambda: slice(*_values(v, nodes)),
        "complex": lambda: complex(*v), "float": lambda: float.fromhex(v), "device": lambda: devices.Device(v),
    }  # fmt: skip
    return made[kind]()
