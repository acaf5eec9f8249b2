"""torch.export.export: runs a module once on its example inputs and keeps what it calls."""

import inspect

from ..fx.capture import Capture, Uncapturable
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..nn.modules.module import Module
from ..tensor import Tensor
from ..utils import _pytree
from . import errors
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
from .sizes import generalise
from .specs import read


def export(
    mod, args, kwargs=None, *, dynamic_shapes=None, strict=False, preserve_module_call_signature=(), prefer_deferred_runtime_asserts_over_guards=False
) -> ExportedProgram:  # fmt: skip
    """Capture the forward of a module as one program.

    Args:
        mod: the module, in the mode (train, eval) in which it is
        args, kwargs: example inputs
        dynamic_shapes: sizes that may change, as PyTorch takes them. The forward is captured again with other sizes: what is the
            same in both holds for all, and what moves with one size is computed from it

    ValueError: `mod` is no module. torch._dynamo.exc.UserError: `args` is no tuple. RuntimeError: its forward needs a value of a tensor, or does what a graph cannot show.
    torch._dynamo.exc.UserError: dynamic_shapes do not fit the inputs, or name sizes that the forward fixes or equates.
    NotImplementedError: the forward computes with such sizes in another way.

    Source: https://docs.pytorch.org/docs/stable/export.html
    """
    if not isinstance(mod, Module):
        raise errors.not_module(mod)
    if not isinstance(args, tuple):
        raise errors.no_arguments(args)
    kwargs = dict(kwargs or {})
    wanted = None if dynamic_shapes is None else read(mod, args, kwargs, dynamic_shapes)
    state = _state(mod)
    first = _capture(mod, args, kwargs, state)
    checks = [("value", x) if not isinstance(x, Tensor) else (tuple(x.shape), x.dtype) for x in first.leaves]
    relations, ranges = [], {}
    if wanted is not None and any(wanted[0]):
        checks, relations, ranges = generalise(first, *wanted, lambda a, k: _capture(mod, a, k, state), checks)
    program = first.program(mod, state, args, kwargs, checks)
    program.relations, program.range_constraints = relations, ranges
    return program


def _state(mod):
    """{id of a tensor: (name of its placeholder, kind, target, persistent, the tensor)}."""
    found = {}
    for name, p in mod.named_parameters():
        found[id(p)] = (f"p_{_plain(name)}", InputKind.PARAMETER, name, None, p)
    kept = set(mod.state_dict(keep_vars=True))
    for name, b in mod.named_buffers():
        found.setdefault(id(b), (f"b_{_plain(name)}", InputKind.BUFFER, name, name in kept, b))
    for path, m in mod.named_modules():
        for k, v in vars(m).items():
            if isinstance(v, Tensor):
                name = f"{path}.{k}" if path else k
                found.setdefault(id(v), (f"c_{_plain(name)}", InputKind.CONSTANT_TENSOR, name, None, v))
    return found


def _plain(name):
    return "".join(c if c.isalnum() else "_" for c in name)


class _Given(str):
    """A result that is an argument, a parameter or a buffer, as it was given: the name of its placeholder."""

    __slots__ = ()


class _Captured:
    """One run of the forward: its graph with placeholders for state and arguments, and the form of the results."""

    def __init__(self, graph, inputs, outputs, leaves, names, in_spec, out_spec):
        self.graph, self.inputs, self.outputs = graph, inputs, outputs
        self.leaves, self.names, self.in_spec, self.out_spec = leaves, names, in_spec, out_spec

    def program(self, mod, state, args, kwargs, checks):
        """The ExportedProgram, with the placeholders in PyTorch's order: parameters, buffers, constants, the caller's."""
        constants = {}
        for k, t in enumerate(self.inputs):
            if id(t) not in state and not any(t is x for x in self.leaves):
                state[id(t)] = (f"c_lifted_tensor_{k}", InputKind.CONSTANT_TENSOR, f"lifted_tensor_{k}", None, t)
        old = dict(zip(map(id, self.inputs), self.graph.find_nodes(op="placeholder")))
        graph, given, specs, placeholders = Graph(), {}, [], {}
        for key, (name, kind, target, persistent, t) in state.items():
            node = placeholders[name] = graph.create_node("placeholder", name, name=name)
            specs.append(InputSpec(kind, TensorArgument(node.name), target, persistent))
            if key in old:
                given[old[key]] = node
            if kind is InputKind.CONSTANT_TENSOR or persistent is False:
                constants[target] = t
        for leaf, name in zip(self.leaves, self.names):
            node = placeholders[name] = graph.create_node("placeholder", name, name=name)
            if isinstance(leaf, Tensor) and id(leaf) in old:
                given[old[id(leaf)]] = node
            is_tensor = isinstance(leaf, Tensor)
            specs.append(
                InputSpec(InputKind.USER_INPUT, TensorArgument(name) if is_tensor else ConstantArgument(name, leaf))
            )
        for node in self.graph.nodes:
            if node.op not in ("placeholder", "output"):
                given[node] = graph.node_copy(node, given.__getitem__)
        given |= {_Given(name): node for name, node in placeholders.items()}
        outputs = tuple(given[x] if isinstance(x, Node | _Given) else x for x in self.outputs)
        graph.output(outputs)
        args_out = [TensorArgument(x.name) if isinstance(x, Node) else ConstantArgument("", x) for x in outputs]
        kinds = [OutputSpec(OutputKind.USER_OUTPUT, arg) for arg in args_out]
        own = mod.state_dict(keep_vars=True)
        whole = {s.target: own[s.target] for s in specs if s.target in own}
        return ExportedProgram(
            GraphModule({}, graph), ExportGraphSignature(specs, kinds), whole, constants, self.in_spec, self.out_spec, (args, kwargs), checks,
        )  # fmt: skip


def _names(mod, args, kwargs):
    """A name for each leaf of the arguments: that of its parameter, with where it is inside."""
    parameters = list(inspect.signature(mod.forward).parameters.values())
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    more = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    tops = [*((named[k] if k < len(named) else f"{more}_{k - len(named)}") for k in range(len(args))), *kwargs]
    found = []
    for top, value in zip(tops, (*args, *kwargs.values())):
        for path, _ in _pytree.tree_flatten_with_path(value)[0]:
            inside = "_".join(_plain(str(getattr(k, "key", getattr(k, "idx", getattr(k, "name", k))))) for k in path)
            found.append(f"{top}_{inside}" if inside else top)
    return found


def _capture(mod, args, kwargs, state):
    leaves, in_spec = _pytree.tree_flatten((args, kwargs))
    names = _names(mod, args, kwargs)
    known = {i: s[0] for i, s in state.items()}
    known |= {id(x): n for x, n in zip(leaves, names) if isinstance(x, Tensor)}

    def at_break(capture, name):
        raise errors.needs_value(name)

    capture = Capture(known, at_break)
    capture.captures = "export"
    with capture:
        out = mod(*args, **kwargs)
    if capture.why is not None:
        raise errors.not_captured(capture.why)
    flat, out_spec = _pytree.tree_flatten(out)
    try:
        module, inputs, results = capture.finish([t for t in flat if isinstance(t, Tensor)])
    except (NotImplementedError, Uncapturable) as e:
        raise errors.not_captured(e) from None
    capture.take_back()
    nodes = {id(t): n for t, n in zip(results, module.graph.output_node().args[0])}
    nodes |= dict(zip(map(id, inputs), module.graph.find_nodes(op="placeholder")))
    outputs = []
    for x in flat:
        if not isinstance(x, Tensor):
            outputs.append(x)
        elif id(x) in nodes:
            outputs.append(nodes[id(x)])
        elif id(x) in known:
            outputs.append(_Given(known[id(x)]))
        else:
            raise errors.not_captured("a result is a tensor that no call of torch has made, and no argument")
    return _Captured(module.graph, inputs, outputs, leaves, names, in_spec, out_spec)
