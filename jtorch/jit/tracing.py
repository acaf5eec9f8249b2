"""torch.jit.trace: one run of a function or module as a graph of its calls, which runs again without the Python in between."""

import inspect
import sys
import warnings

from .. import script_types
from ..autograd.mode import no_grad
from ..core.record import tls
from ..dispatch import override
from ..errors_extend import no_constructor
from ..nn import functional as F
from ..nn.modules.hooks import register_module_forward_hook, register_module_forward_pre_hook
from ..nn.modules.module import Module
from ..overrides import TorchFunctionMode
from ..tensor import Tensor
from ..testing.comparison import assert_close
from ..utils._pytree import tree_flatten, tree_leaves, tree_unflatten
from . import calls, execute, targets, types
from .ir import Graph


class TracerWarning(Warning):
    """What tracing warns with."""


class TracingState:
    """What a running trace has: its graph, and the scopes that it is in."""

    def __init__(self, *args):
        raise no_constructor("TracingState")

    @classmethod
    def _new(cls, graph):
        made = object.__new__(cls)
        made._graph, made._scopes = graph, []
        return made

    def graph(self) -> Graph:
        """The graph as far as it is recorded."""
        return self._graph

    def set_graph(self, graph) -> None:
        self._graph = graph

    def push_scope(self, name) -> None:
        """Enter a scope: nodes from here on say so."""
        self._scopes.append(name)

    def pop_scope(self) -> None:
        """Leave the innermost scope."""
        self._scopes.pop()

    def current_scope(self) -> str:
        return "/".join(self._scopes)

    def __repr__(self):
        return f"<TracingState of {len(list(self._graph.nodes()))} nodes>"


def state():
    """The TracingState of the trace that runs in this thread, or None."""
    return tls.me.extra.get("trace")


# Functions of PyTorch that are Python, and that a trace looks into.
_COMPOSITE = {F.multi_head_attention_forward}
_BOOLEAN = {"__bool__": "boolean", "__int__": "integer", "__float__": "float", "__index__": "index"}
_TO_HOST = {"numpy", "tolist", "item", "__array__"}


class Recorder(TorchFunctionMode):
    """The mode in which calls become nodes of a graph."""

    def __init__(self, graph, module=None):
        super().__init__()
        self.graph, self.state = graph, TracingState._new(graph)
        self.values = {}  # id of a tensor -> its value in the graph
        self.kept = []
        self.paths = {id(t): name for name, t in _tensors_of(module)} if module is not None else {}
        self.module_value, self.modules = None, {}
        self.flat_parameters = False

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in _COMPOSITE or getattr(func, "__module__", None) == F.__name__ and func.__name__.startswith("_"):
            with self:
                return override.real(func)(*args, **(kwargs or {}))
        return self.call(func, args, kwargs or {})

    def call(self, func, args, kwargs):
        name = getattr(func, "__name__", "")
        if func is Tensor.__getitem__:
            return self.index(*args)
        if func is Tensor.__setitem__:
            return self.set_index(*args)
        if func is Tensor.__iter__:
            return iter(self.emit(Tensor.unbind, (args[0], 0)))
        before = [id(a) for a in tree_leaves((args, kwargs)) if isinstance(a, Tensor)]
        result = func(*args, **kwargs)
        self.note(func, args, kwargs, result, name, before)
        return result

    def note(self, func, args, kwargs, result, name, before):
        """Record a call that gave tensors."""
        if name in _BOOLEAN or name in _TO_HOST:
            self.leaves(name, args)
            return
        found = execute.tensors_of(result)
        if not found or name in ("requires_grad_", "__set__", "as_subclass", "grad") or _makes_constant(func):
            return
        if name == "__get__" and id(found[0]) in self.values:
            return
        self.record(func, args, kwargs, result, found)

    def leaves(self, name, args):
        """Warn of a value that Python takes: it is a constant of the graph from here on."""
        if any(id(a) in self.values for a in args):
            what = f"Python {_BOOLEAN.get(name, 'value')}" if name != "numpy" else "NumPy array"
            warnings.warn(
                f"Converting a tensor to a {what} might cause the trace to be incorrect. We can't record the data flow of Python "
                "values, so this value will be treated as a constant in the future. This means that the trace might not "
                "generalize to other inputs!",
                TracerWarning,
                stacklevel=_depth(),
            )

    def emit(self, func, args, kwargs=None):
        """Make a call and record it."""
        result = func(*args, **(kwargs or {}))
        self.record(func, args, kwargs or {}, result, execute.tensors_of(result))
        return result

    def record(self, func, args, kwargs, result, found):
        kind, placed, recipe = calls.described(func, args, kwargs, result)
        scope, source = self.state.current_scope(), _source()
        inputs = [self.value(v, source) for _, v in placed]
        node = self.graph.create(kind, inputs, 0)
        node._recipe, node._argument_names = recipe, tuple(n for n, _ in placed)
        node._scope, node._source = scope, source
        if kind.rpartition("::")[2] in calls.LISTS:
            node.addOutput().setType(script_types.ListType.ofTensors())
            self.graph.insertNode(node)
            node = self.graph.create("prim::ListUnpack", [node.output()], 0)
            node._scope, node._source = scope, source
        for t in found:
            self.values[id(t)] = node.addOutput().setType(types.of_tensor(t))
            self.kept.append(t)
        self.graph.insertNode(node)

    # operands

    def value(self, x, source=""):
        """The value of the graph that a Python value is."""
        raw = None
        if type(x) is calls.Raw:
            x, raw = x.shown, [x.value]
        if isinstance(x, Tensor) and raw is None:
            found = self.values.get(id(x))
            return self.unknown(x) if found is None else found
        if type(x) in (list, tuple):
            node = self.graph.create("prim::ListConstruct", [self.value(v, source) for v in x])
            inner = next(iter(node.inputs())).type() if x else script_types.IntType.get()
            inner = script_types.TensorType.get() if isinstance(inner, script_types.TensorType) else inner
            node.output().setType(script_types.ListType(inner))
        else:
            node = self.graph.constant(x)
            node._source = source
        if raw is not None:
            node._raw = raw
        node._scope = self.state.current_scope()
        return self.graph.insertNode(node).output()

    def unknown(self, t):
        """The value of a tensor that was there before: a parameter or buffer, or a constant."""
        self.kept.append(t)
        path = self.paths.get(id(t))
        if path is not None:
            made = self.values[id(t)] = self.attribute(path)
            return made
        if t.requires_grad and t.is_leaf:
            raise RuntimeError(
                "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or input, or detaching "
                f"the gradient\n  its shape is {tuple(t.shape)}"
            )
        node = self.graph.constant(t)
        made = self.values[id(t)] = self.graph.insertNode(node).output()
        return made

    def attribute(self, path):
        """The value of a module's parameter or buffer: prim::GetAttr from the module down."""
        *parents, name = path.split(".")
        at, here = self.module_value, ""
        for part in (*parents, name):
            here = f"{here}.{part}" if here else part
            if here not in self.modules:
                node = self.graph.create("prim::GetAttr", [at]).s_("name", part)
                if here != path:
                    node.output().setType(types.ClassType.of(self.root.get_submodule(here)))
                node.output().setDebugName(f"_{part}" if part[0].isdigit() else part)
                self.modules[here] = self.graph.insertNode(node).output()
            at = self.modules[here]
        return at

    # indexing, as the operators that it consists of

    def index(self, x, key):
        x, rest = self.basic(x, key)
        return x if rest is None else self.emit(_index, (x, rest))

    def set_index(self, x, key, value):
        into, rest = self.basic(x, key)
        if rest is not None:
            self.emit(_index_put_, (into, rest, value))
        elif isinstance(value, Tensor):
            self.emit(Tensor.copy_, (into, value if value.dim() <= into.dim() else value.reshape(into.shape)))
        else:
            self.emit(Tensor.fill_, (into, value))

    def basic(self, x, key):
        """(view by the integers, slices and None of a key, list of index tensors for what is left or None)."""
        parts = list(key) if isinstance(key, tuple) else [key]
        given = Ellipsis not in [p for p in parts if not isinstance(p, Tensor)]
        taken = sum(_consumes(p) for p in parts)
        at = next((k for k, p in enumerate(parts) if p is Ellipsis), None)
        if at is not None:
            parts[at : at + 1] = [slice(None)] * (x.dim() - taken)
        dim, tensors = 0, {}
        for part in parts:
            if part is None:
                x, dim = self.emit(Tensor.unsqueeze, (x, dim)), dim + 1
            elif isinstance(part, slice):
                if given or part != slice(None):
                    start, stop, step = (
                        d if v is None else v for v, d in zip((part.start, part.stop, part.step), _ALL)
                    )
                    x = self.emit(_slice, (x, dim, start, stop, step))
                dim += 1
            elif isinstance(part, int) and not isinstance(part, bool):
                x = self.emit(Tensor.select, (x, dim, part))
            else:
                tensors[dim] = part
                dim += (
                    part.dim()
                    if isinstance(part, Tensor) and not part.dtype.is_floating_point and _is_mask(part)
                    else 1
                )
        if not tensors:
            return x, None
        return x, [tensors.get(k) for k in range(max(tensors) + 1)]

    # the run

    def run(self, fn, args, kwargs):
        """Call a function with this as the trace of the thread."""
        me = tls.me
        outer = me.extra.get("trace")
        me.put("trace", self.state)
        try:
            with self:
                return fn(*args, **kwargs)
        finally:
            me.put("trace", outer)


_ALL = (0, 9223372036854775807, 1)  # what a slice is without bounds


def _is_mask(part):
    return str(part.dtype) == "torch.bool"


def _consumes(part):
    if part is None or part is Ellipsis:
        return 0
    return part.dim() if isinstance(part, Tensor) and _is_mask(part) else 1


def _slice(self, dim, start, end, step):
    return self[(slice(None),) * (dim % self.dim()) + (slice(start, end, step),)]


def _key(indices):
    return tuple(slice(None) if i is None else i for i in indices)


def _index(self, indices):
    return self[_key(indices)]


def _index_put_(self, indices, values):
    self[_key(indices)] = values
    return self


_slice._qualified_op_name, _index._qualified_op_name = "aten::slice", "aten::index"
_index_put_._qualified_op_name = "aten::index_put_"


targets.OWN.update((fn.__name__, fn) for fn in (_slice, _index, _index_put_))


def _makes_constant(func):
    return getattr(func, "__name__", "") in (
        "tensor",
        "as_tensor",
        "from_numpy",
        "asarray",
        "scalar_tensor",
        "_make_subclass",
        "detach_",
    )


def _frame():
    """The innermost frame that is of a program, with how deep it is."""
    frame, depth = sys._getframe(2), 2
    while frame is not None:
        path = frame.f_code.co_filename
        if "/jtorch/" not in path and not path.startswith("<"):
            return frame, depth
        frame, depth = frame.f_back, depth + 1
    return None, depth


def _source():
    frame, _ = _frame()
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}:0"


def _depth():
    return _frame()[1]


def _tensors_of(module):
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)


def _names_of(fn, args, count):
    """Names for the inputs: those of the parameters, where each is one tensor."""
    try:
        given = inspect.signature(fn).bind(*args).arguments
    except (TypeError, ValueError):
        return [""] * count
    names = []
    for name, value in given.items():
        n = len([v for v in tree_leaves(value) if isinstance(v, Tensor)])
        names += [name] if n == 1 and isinstance(value, Tensor) else [""] * n
    return names if len(names) == count else [""] * count


class Traced:
    """A graph with what stands around it: how inputs and outputs are nested."""

    def __init__(self, graph, spec, fixed, out_spec, out_places):
        self.graph, self.spec, self.fixed, self.out_spec, self.out_places = graph, spec, fixed, out_spec, out_places

    def __call__(self, first, args, kwargs):
        leaves, spec = tree_flatten((args, kwargs))
        if spec != self.spec:
            raise RuntimeError(f"the trace was made with arguments nested otherwise: {self.spec}, got {spec}")
        given = [*first, *(v for v in leaves if isinstance(v, Tensor))]
        results = execute.run(self.graph, given)
        values = results[0] if self.out_places is not None else results
        values = values if isinstance(values, (tuple, list)) else [values]
        leaves = [values[p] if isinstance(p, int) else p[0] for p in self.out_places or [0]]
        return tree_unflatten(leaves, self.out_spec)


def record(fn, args, kwargs, module=None, parameters_are_inputs=False, scopes=None):
    """(Traced, result of the run, Recorder)."""
    graph = Graph()
    recorder = Recorder(graph, None if parameters_are_inputs else module)
    recorder.root = module
    leaves, spec = tree_flatten((args, kwargs))
    tensors = [v for v in leaves if isinstance(v, Tensor)]
    if module is not None and not parameters_are_inputs:
        recorder.module_value = graph.addInput("self.1").setType(types.ClassType.of(module))
    names = [""] * len(tensors) if parameters_are_inputs else _names_of(fn, args, len(tensors))
    for t, name in zip(tensors, names):
        recorder.values[id(t)] = graph.addInput(name).setType(types.of_tensor(t))
    if parameters_are_inputs:
        for t in module.state_dict(keep_vars=True).values():
            if id(t) not in recorder.values:
                recorder.values[id(t)] = graph.addInput().setType(types.of_tensor(t))
    recorder.kept += tensors
    handles = _scoped(recorder.state, scopes) if scopes else []
    try:
        result = recorder.run(fn, args, kwargs)
    finally:
        for handle in handles:
            handle.remove()
    return _finished(recorder, spec, result), result, recorder


def _scoped(state, names):
    def before(module, args):
        name = names.get(module)
        if name is not None:
            state.push_scope(name)

    def after(module, args, result):
        if names.get(module) is not None:
            state.pop_scope()

    return [register_module_forward_pre_hook(before), register_module_forward_hook(after, always_call=True)]


def _finished(recorder, spec, result):
    graph = recorder.graph
    leaves, out_spec = tree_flatten(result)
    tensors = [v for v in leaves if isinstance(v, Tensor)]
    if not tensors:
        raise RuntimeError(
            f"Type '{type(result).__name__}' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples of Tensors "
            "can be traced"
        )
    values = [recorder.value(v) for v in tensors]
    if isinstance(result, Tensor):
        graph.registerOutput(values[0])
        places = None
    else:
        node = graph.create("prim::ListConstruct" if isinstance(result, list) else "prim::TupleConstruct", values)
        kinds = [v.type() for v in values]
        node.output().setType(
            script_types.ListType.ofTensors() if isinstance(result, list) else script_types.TupleType(kinds)
        )
        graph.registerOutput(graph.insertNode(node).output())
        numbers = iter(range(len(tensors)))
        places = [next(numbers) if isinstance(v, Tensor) else [v] for v in leaves]
    return Traced(graph, spec, None, out_spec, places)


def checked(traced, first, args, kwargs, result, tolerance):
    """Run a new graph once, and warn where it gives other values than the run that it comes from."""
    with no_grad():
        again = tree_leaves(traced(first, _copies(args), _copies(kwargs)))
    for k, (mine, its) in enumerate(zip(again, tree_leaves(result)), 1):
        try:
            assert_close(mine, its, rtol=tolerance, atol=tolerance, equal_nan=True, check_stride=False)
        except AssertionError as error:
            warnings.warn(
                f"Output nr {k}. of the traced function does not match the corresponding output of the Python function. Detailed "
                f"error:\n{error}",
                TracerWarning,
                stacklevel=_depth(),
            )


def _copies(tree):
    leaves, spec = tree_flatten(tree)
    return tree_unflatten([v.clone() if isinstance(v, Tensor) else v for v in leaves], spec)


def legacy_graph(f, args=(), kwargs=None):
    """(graph, result) of a module whose parameters and buffers become inputs, after those of `args`."""
    args = args if isinstance(args, tuple) else (args,)
    if not isinstance(f, Module):
        traced, result, _ = record(f, args, kwargs or {})
    else:
        traced, result, _ = record(f, args, kwargs or {}, f, parameters_are_inputs=True)
    return traced.graph, result
