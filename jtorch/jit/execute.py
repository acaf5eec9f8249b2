"""Runs a graph: node by node, each by the call that a trace recorded, or by its operator's name."""

import inspect

from .. import aten, errors
from ..core.dtype import dtype
from ..nn.modules.module import Module
from ..ops import registry
from ..tensor import Tensor
from ..utils._pytree import tree_leaves


def run(graph, inputs) -> list:
    """The outputs of a graph for its inputs."""
    known = dict(zip(map(id, graph.inputs()), inputs))
    _block(graph.block(), known)
    return [known[id(v)] for v in graph.outputs()]


def _block(block, known):
    for node in block.nodes():
        results = _node(node, [known[id(v)] for v in node.inputs()], known)
        known |= zip(map(id, node.outputs()), results)


def _node(node, given, known):
    kind = node.kind()
    prim = _PRIM.get(kind)
    if prim is not None:
        return prim(node, given, known)
    if node._recipe is not None:
        return _results(node, node._recipe(given))
    return _results(node, _operator(kind)(*given))


def _results(node, result):
    if node.outputsSize() == 1:
        return [result]
    found = tensors_of(result)
    return found if len(found) == node.outputsSize() else list(result)


def tensors_of(result) -> list:
    """The tensors of a result, in order."""
    return [v for v in tree_leaves(result) if isinstance(v, Tensor)]


def _operator(kind):
    """A function that takes an operator's arguments by position, as graphs have them."""
    space, _, name = kind.partition("::")
    holder = aten if space == "aten" else aten.namespace(space)
    try:
        packet = getattr(holder, name)
    except AttributeError:
        raise errors.unsupported(f"running the operator {kind} of a graph", "an operator of torch.ops") from None
    record = next(
        (t[name.rstrip("_")] for t in (registry.OPS, registry.VIEWS, registry.COMPOSITES) if name.rstrip("_") in t),
        None,
    )
    if record is None:
        return packet
    named = [p.name for p in record.params if p.kind is inspect.Parameter.KEYWORD_ONLY and p.name != "key"]
    positional = sum(p.kind is not inspect.Parameter.KEYWORD_ONLY for p in record.params)
    return lambda *args: packet(*args[:positional], **dict(zip(named, args[positional:])))


def _constant(node, given, known):
    if getattr(node, "_raw", None):
        return node._raw
    value = node._attributes.get("value", (None, None))[1]
    return [value if isinstance(value, dtype) else node.output().toIValue()]


def _if(node, given, known):
    block = list(node.blocks())[0 if given[0] else 1]
    _block(block, known)
    return [known[id(v)] for v in block.outputs()]


def _loop(node, given, known):
    count, going, *carried = given
    (block,) = node.blocks()
    step = 0
    while going and step < count:
        known |= zip(map(id, block.inputs()), (step, *carried))
        _block(block, known)
        going, *carried = [known[id(v)] for v in block.outputs()]
        step += 1
    return carried


def _method(node, given):
    module, *args = given
    names = node._argument_names[1:]
    positional = sum(n is None for n in names)
    name = node.s("name")
    if not isinstance(module, Module) or name != "forward" and name not in module.__dict__.get("_methods", ()):
        raise errors.unsupported(f"{type(module).__name__}.{name} in a graph", "the Python code")
    fn = module if name == "forward" else getattr(module, name)
    return fn(*args[:positional], **dict(zip(names[positional:], args[positional:])))


def _attribute(node, given, known):
    module, name = given[0], node.s("name")
    found = getattr(module, name) if isinstance(module, Module) and not name.startswith("__") else len
    if callable(found) and not isinstance(found, (Module, Tensor)):
        raise errors.unsupported(f"{type(module).__name__}.{name} in a graph", "the Python code")
    return [found]


_PRIM = {
    "prim::Constant": _constant,
    "prim::If": _if,
    "prim::Loop": _loop,
    "prim::GetAttr": _attribute,
    "prim::ListConstruct": lambda node, given, known: getattr(node, "_raw", None) or [list(given)],
    "prim::DictConstruct": lambda node, given, known: [dict(zip(given[::2], given[1::2]))],
    "prim::CallMethod": lambda node, given, known: _results(node, _method(node, given)),
    "prim::TupleConstruct": lambda node, given, known: [tuple(given)],
    "prim::ListUnpack": lambda node, given, known: list(given[0]),
    "prim::TupleUnpack": lambda node, given, known: list(given[0]),
    "aten::Int": lambda node, given, known: [int(given[0])],
}
