"""torch.export.export: runs a module once on its example inputs and keeps what it calls."""

import inspect
import operator

from ..fx.capture import Capture, Uncapturable
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..nn.modules.module import Module
from ..tensor import Tensor
from ..utils import _pytree
from . import errors
from .program import ExportedProgram, ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec


class Dim:
    """The name of a size that may change from call to call.

    Args:
        name: of the size
        min, max: what it may be
    """

    AUTO = DYNAMIC = "auto"
    STATIC = None

    def __init__(self, name, *, min=None, max=None):
        low = 0 if min is None else min
        assert name.isidentifier(), f"Dim name must be a valid identifier, got {name}"
        assert max is None or max > low, f"Cannot create Dim with inconsistent min={low}, max={max}"
        self.__name__ = self.name = name
        self.min, self.max = low, max

    def __repr__(self):
        return f"Dim('{self.name}', min={self.min}, max={self.max})"


def dims(*names, min=None, max=None) -> tuple:
    """A Dim of each name, all with the same bounds."""
    return tuple(Dim(name, min=min, max=max) for name in names)


def export(
    mod, args, kwargs=None, *, dynamic_shapes=None, strict=False, preserve_module_call_signature=(), prefer_deferred_runtime_asserts_over_guards=False
) -> ExportedProgram:  # fmt: skip
    """Capture the forward of a module as one program.

    Args:
        mod: the module, in the mode (train, eval) in which it is
        args, kwargs: example inputs
        dynamic_shapes: sizes that may change, as PyTorch takes them. The forward is captured again with other sizes: what is the
            same in both holds for all, and what moves with one size is computed from it

    ValueError: `mod` is no module. RuntimeError: its forward needs a value of a tensor, or does what a graph cannot show.
    NotImplementedError: dynamic_shapes where the forward computes with the sizes in another way.

    Source: https://docs.pytorch.org/docs/stable/export.html
    """
    if not isinstance(mod, Module):
        raise errors.not_module(mod)
    args, kwargs = tuple(args), dict(kwargs or {})
    state = _state(mod)
    first = _capture(mod, args, kwargs, state)
    checks = [("value", x) if not isinstance(x, Tensor) else (tuple(x.shape), x.dtype) for x in first.leaves]
    if dynamic_shapes is not None:
        wanted = _sizes(mod, args, kwargs, dynamic_shapes)
        if any(wanted):
            checks = _generalise(mod, args, kwargs, state, first, wanted, checks)
    return first.program(mod, state, args, kwargs, checks)


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
        graph, given, specs = Graph(), {}, []
        for key, (name, kind, target, persistent, t) in state.items():
            node = graph.create_node("placeholder", name, name=name)
            specs.append(InputSpec(kind, node.name, target, persistent))
            if key in old:
                given[old[key]] = node
            if kind is InputKind.CONSTANT_TENSOR or persistent is False:
                constants[target] = t
        for leaf, name in zip(self.leaves, self.names):
            node = graph.create_node("placeholder", name, name=name)
            if isinstance(leaf, Tensor) and id(leaf) in old:
                given[old[id(leaf)]] = node
            specs.append(InputSpec(InputKind.USER_INPUT, name))
        for node in self.graph.nodes:
            if node.op not in ("placeholder", "output"):
                given[node] = graph.node_copy(node, given.__getitem__)
        outputs = tuple(given[x] if isinstance(x, Node) else x for x in self.outputs)
        graph.output(outputs)
        kinds = [OutputSpec(OutputKind.USER_OUTPUT, x.name if isinstance(x, Node) else "") for x in outputs]
        own = mod.state_dict(keep_vars=True)
        whole = {s.target: own[s.target] for s in specs if s.target in own}
        return ExportedProgram(
            GraphModule({}, graph), ExportGraphSignature(specs, kinds), whole, constants, self.in_spec, self.out_spec, (args, kwargs), checks,
        )  # fmt: skip


def _names(mod, args, kwargs):
    """A name for each leaf of the arguments: that of its parameter, with where it is inside."""
    parameters = list(inspect.signature(mod.forward).parameters.values())
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    tops = [*((named[k] if k < len(named) else f"args_{k - len(named)}") for k in range(len(args))), *kwargs]
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
        if isinstance(x, Tensor) and id(x) not in nodes:
            raise errors.not_captured("a result is a tensor that no call of torch has made, and no argument")
        outputs.append(nodes[id(x)] if isinstance(x, Tensor) else x)
    return _Captured(module.graph, inputs, outputs, leaves, names, in_spec, out_spec)


# --- sizes that may change -----------------------------------------------------------------------------------------------


def _sizes(mod, args, kwargs, dynamic_shapes):
    """For each leaf of the arguments {dimension: name of its size}."""
    if isinstance(dynamic_shapes, dict):
        named = list(inspect.signature(mod.forward).parameters)
        dynamic_shapes = [dynamic_shapes.get(named[k] if k < len(named) else None) for k in range(len(args))] + [
            dynamic_shapes.get(k) for k in kwargs
        ]
    found = []

    def walk(value, wanted, path):
        if isinstance(value, Tensor):
            pairs = wanted.items() if isinstance(wanted, dict) else enumerate(wanted or ())
            found.append({d: getattr(n, "name", f"{path}_{d}") for d, n in pairs if n is not None and n != -1})
        elif isinstance(value, dict):
            for k in value:
                walk(value[k], None if wanted is None else wanted.get(k), f"{path}_{k}")
        elif isinstance(value, (list, tuple)):
            for k, x in enumerate(value):
                walk(x, None if wanted is None else wanted[k], f"{path}_{k}")
        else:
            found.append({})

    for k, (value, wanted) in enumerate(zip((*args, *kwargs.values()), dynamic_shapes)):
        walk(value, wanted, f"s{k}")
    return found


def _generalise(mod, args, kwargs, state, first, wanted, checks):
    """Make sizes of the first capture nodes of it, by two more captures with other sizes."""
    names = sorted({n for sizes in wanted for n in sizes.values()})
    base = {n: x.shape[d] for x, sizes in zip(first.leaves, wanted) for d, n in sizes.items()}
    # sizes that tell which of them a number comes from
    others = [{n: base[n] + step * (2 * k + 3) for k, n in enumerate(names)} for step in (1, 5)]
    runs = [first] + [_capture(mod, *_resized(first, wanted, sizes), state) for sizes in others]
    nodes = [list(run.graph.nodes) for run in runs]
    if (
        len({len(n) for n in nodes}) > 1
        or len({tuple((n.op, n.target if n.op != "placeholder" else 0) for n in ns) for ns in nodes}) > 1
    ):
        raise errors.dynamic("it makes other calls for other sizes")
    points = [base, *others]
    sources = {n: (k, d) for k, sizes in enumerate(wanted) for d, n in sizes.items()}
    for column in zip(*nodes):
        _merge(first, column, points, sources)
    outputs = [_merged(first, values, points, sources, None) for values in zip(*(r.outputs for r in runs))]
    first.outputs = outputs
    return [
        (tuple(None if d in sizes else n for d, n in enumerate(c[0])), c[1]) if c[0] != "value" else c
        for c, sizes in zip(checks, wanted)
    ]


def _resized(first, wanted, sizes):
    """The arguments with other sizes: rows again from the beginning."""
    leaves = []
    for x, dims in zip(first.leaves, wanted):
        for d, n in dims.items():
            repeats = -(-sizes[n] // max(x.shape[d], 1))
            x = x.repeat(*(repeats if k == d else 1 for k in range(x.dim()))).narrow(d, 0, sizes[n])
        leaves.append(x)
    args, kwargs = _pytree.tree_unflatten(leaves, first.in_spec)
    return args, kwargs


def _merge(first, column, points, sources):
    node = column[0]
    if node.op in ("placeholder", "output"):
        return
    flat = [_pytree.tree_flatten((list(n.args), dict(n.kwargs)), is_leaf=lambda x: isinstance(x, Node)) for n in column]
    if len({len(leaves) for leaves, _ in flat}) > 1:
        raise errors.dynamic(f"{node.name} takes another number of arguments for other sizes")
    merged = [_merged(first, values, points, sources, node) for values in zip(*(leaves for leaves, _ in flat))]
    args, kwargs = _pytree.tree_unflatten(merged, flat[0][1])
    node.args, node.kwargs = tuple(args), kwargs


def _merged(first, values, points, sources, node):
    """A value that is the same in all captures, or a node that computes it from one size."""
    value = values[0]
    if isinstance(value, (Node, Tensor)) or all(type(v) is type(value) and v == value for v in values):
        return value
    if not all(type(v) is int for v in values):
        raise errors.dynamic(f"{'a result' if node is None else node.name} depends on a size: {values[:2]}")
    for name, (leaf, d) in sources.items():
        sizes = [p[name] for p in points]
        slope, rest = divmod(values[1] - value, sizes[1] - sizes[0])
        offset = value - slope * sizes[0]
        if rest == 0 and values[2] == slope * sizes[2] + offset:
            return _computed(first, leaf, d, slope, offset, node)
    raise errors.dynamic(
        f"{'a result' if node is None else node.name} takes {value}, which follows from no single size"
    )


def _computed(first, leaf, d, slope, offset, node):
    tensor = first.leaves[leaf]
    holder = dict(zip(map(id, first.inputs), first.graph.find_nodes(op="placeholder")))[id(tensor)]
    graph = first.graph
    with graph.inserting_before(node if node is not None else graph.output_node()):
        found = graph.call_method("size", (holder, d))
        if slope != 1:
            found = graph.call_function(operator.mul, (found, slope))
        if offset:
            found = graph.call_function(operator.add, (found, offset))
    return found
