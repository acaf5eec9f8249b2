"""torch.compile(backend=function): the function gets the graph of what runs, and what it returns runs instead."""

import functools
import warnings

from ..core.record import tls
from ..fx.capture import Capture, Uncapturable, put
from ..fx.node import Node, map_aggregate
from ..nn.modules.module import Module
from ..tensor import Tensor
from ..utils import _pytree
from . import region


class Captured:
    """A function whose calls go through a compiler of the program's own.

    Each call runs the Python and keeps its calls of torch as a graph (nothing of it is computed: results that nobody
    asks for are never run). A graph that was not met before goes to the backend; what that returned for this graph is then called, and its
    results take the place of those of the Python. So there are no guards, and side effects of the Python happen once a call.
    """

    def __init__(self, fn, options, name):
        self.fn, self.options, self.name = fn, options, name
        self.compiled = {}  # what a graph is -> what the backend made of it
        self.warned = False

    def forget(self):
        """Have the backend asked again."""
        self.compiled.clear()

    def __call__(self, *args, **kwargs):
        me = tls.me
        if me.scope is not None or me.function_modes or me.extra.get("transforms") or region.stance[0] == "force_eager":
            return self.fn(*args, **kwargs)
        capture = Capture(names_of(self.fn, args, kwargs), self.at_break)
        with capture:
            out = self.fn(*args, **kwargs)
        self.close(capture, [t for t in _pytree.tree_leaves(out) if isinstance(t, Tensor)])
        return out

    def at_break(self, capture, name):
        """Python needs a value: the graph ends here, and another one begins."""
        if self.options.fullgraph:
            raise RuntimeError(
                f"torch.compile(fullgraph=True): {self.name} breaks at {name}: a Python value is asked of a tensor there; "
                "use torch.where, masked_fill or keep the value as a tensor, or drop fullgraph=True"
            )
        results = self.close(capture)
        if capture.why is None:
            if name == "backward":
                capture.why = ""  # gradients and what is made of them are no part of a graph
            else:
                capture.begin(results)

    def close(self, capture, returned=()):
        """Compile the graph at hand if it is new, and run it in the place of what the Python has done; the results."""
        results = ()
        if capture.why is None and capture.segment.calls:
            try:
                module, inputs, results = capture.finish(returned)
            except (NotImplementedError, Uncapturable) as e:
                capture.why = str(e)
            else:
                self.run(capture, module, inputs, results)
        if capture.why and not self.warned:
            self.warned = True
            words = f"torch.compile(backend={_name(self.options.backend)}): {self.name} runs as it is, and the backend does not see it"
            if self.options.fullgraph:
                raise RuntimeError(f"{words}: {capture.why}")
            warnings.warn(f"{words}: {capture.why}", stacklevel=4)
        return results

    def run(self, capture, module, inputs, results):
        """Have the compiled graph make the results."""
        key = key_of(module.graph, inputs)
        capture.take_back()
        compiled = self.compiled.get(key)
        if compiled is None:
            options = self.options.options
            compiled = self.options.backend(module, inputs, **({"options": options} if options else {}))
            if not callable(compiled):
                raise RuntimeError(
                    f"compiler_fn did not return callable: the backend {_name(self.options.backend)} returned {type(compiled).__name__}"
                )
            self.compiled[key] = compiled
        values = compiled(*inputs)
        values = (values,) if isinstance(values, Tensor) else tuple(values)
        if len(values) != len(results) or not all(isinstance(v, Tensor) for v in values):
            raise RuntimeError(
                f"the function that the backend {_name(self.options.backend)} returned gave {len(values)} values where the graph has "
                f"{len(results)} tensors as its output"
            )
        put(results, values)


def _name(backend):
    return getattr(backend, "__name__", type(backend).__name__)


def key_of(graph, inputs):
    """What a compiled graph is good for: the same nodes on tensors of the same kind."""
    index = {}

    def constant(x):
        if isinstance(x, Node):
            return ("node", index[x])
        return (type(x), x if isinstance(x, (int, str, bool, type(None))) else repr(x))

    parts = []
    for node in graph.nodes:
        index[node] = len(index)
        args = map_aggregate((node.args, node.kwargs), constant)
        parts.append((node.op, node.target, repr(args)))
    kinds = tuple((t._spec, t.requires_grad, type(t)) for t in inputs)
    return tuple(parts), kinds, tls.me.grad


def names_of(fn, args, kwargs) -> dict:
    """{id of a tensor: the name that the graph has for it}, of what a function gets and can reach."""
    names = {}
    owner = getattr(fn, "__self__", None)
    if isinstance(owner, Module) and getattr(fn, "__name__", "") in ("__call__", "_call_impl"):
        fn = owner.forward
    fn = getattr(fn, "__wrapped__", fn)
    code = getattr(getattr(fn, "__func__", fn), "__code__", None)
    parameters = code.co_varnames[: code.co_argcount] if code is not None else ()
    skip = 0
    if owner is not None and parameters:
        _walk(names, f"L_{parameters[0]}", owner)
        skip = 1
    for k, value in enumerate(args):
        _walk(names, f"L_{parameters[k + skip]}" if k + skip < len(parameters) else f"L_args_{k}", value)
    for k, value in kwargs.items():
        _walk(names, f"L_{k}", value)
    plain = getattr(fn, "__func__", fn)
    if code is not None:
        for name, cell in zip(code.co_freevars, plain.__closure__ or ()):
            try:
                _walk(names, f"L_{name}", cell.cell_contents)
            except ValueError:  # not set yet
                continue
        for name in code.co_names:
            if name in plain.__globals__:
                _walk(names, f"G_{name}", plain.__globals__[name])
    return names


def _walk(names, prefix, value, depth=0):
    if isinstance(value, Tensor):
        names.setdefault(id(value), f"{prefix}_")
    elif isinstance(value, Module):
        for kind, own in (("parameters", value._parameters), ("buffers", value._buffers)):
            for k, t in own.items():
                if t is not None:
                    names.setdefault(id(t), f"{prefix}_{kind}_{k}_")
        for k, child in value._modules.items():
            _walk(names, f"{prefix}_modules_{k}", child, depth)
        for k, t in vars(value).items():
            if isinstance(t, Tensor):
                names.setdefault(id(t), f"{prefix}_{k}_")
    elif isinstance(value, (list, tuple)) and depth < 4:
        for k, x in enumerate(value):
            _walk(names, f"{prefix}_{k}", x, depth + 1)
    elif isinstance(value, dict) and depth < 4:
        for k, x in value.items():
            _walk(names, f"{prefix}_{k}", x, depth + 1)


def captured(fn, options):
    """The form of a function that a backend of the program's own compiles."""
    made = Captured(fn, options, getattr(fn, "__qualname__", repr(fn)))
    region._regions.add(made)

    @functools.wraps(fn)
    def compiled(*args, **kwargs):
        return made(*args, **kwargs)

    compiled._torchdynamo_orig_callable = fn
    compiled._region = made
    return compiled
