"""Proxies: what stands for a value while a function is traced. Everything done with one becomes a node."""

import copy
import dis
import inspect
import operator
import sys
import types

from .. import overrides
from ..core import device as devices
from ..core.dtype import dtype
from ..core.spec import Size
from ..creation import Layout_, MemoryFormat
from ..dispatch import override
from ..nn import functional as F
from ..nn.modules.unbound import FUNCTIONAL_IN_C
from ..sundries import _assert
from ..tensor import Tensor
from . import node as nodes
from .codegen import magic_methods, reflectable_magic_methods
from .graph import Graph
from .node import Node, map_aggregate

base_types = (
    str, int, float, bool, complex, dtype, Tensor, devices.Device, MemoryFormat, Layout_, type(None), type(Ellipsis), range, type(NotImplemented),
)  # fmt: skip
nodes.base_types = base_types


class TraceError(ValueError):
    """What tracing cannot do."""


class TracerBase:
    """Makes nodes and proxies. What a subclass decides by overriding is said at each method."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"
    module_stack: dict = {}  # {path, with @n from the second call on: (path, class)} of the modules that run

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None) -> Node:
        """A node of the graph: to check or change all nodes, override this."""
        made = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if self.module_stack:
            made.meta["nn_module_stack"] = copy.copy(self.module_stack)
        return made

    def proxy(self, node):
        """The proxy of a node: a subclass may return its own kind."""
        return Proxy(node, self)

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        """A new node, as a proxy."""
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        made = self.create_node(kind, target, args, kwargs, name, type_expr)
        found = self.proxy(made) if proxy_factory_fn is None else proxy_factory_fn(made)
        if self.record_stack_traces:
            frame = _user_frame()
            if frame is not None:
                made.stack_trace = (
                    f'  File "{frame.f_code.co_filename}", line {frame.f_lineno}, in {frame.f_code.co_name}'
                )
        return found

    def create_arg(self, a):
        """A value as the argument of a node: for values of other types, override this. NotImplementedError: of no known type."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, Size):
            return tuple(self.create_arg(x) for x in a)
        if isinstance(a, tuple):
            parts = [self.create_arg(x) for x in a]
            return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            return {self._key(k): self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(a.start, a.stop, a.step)
        known = (*base_types, Node, type, types.FunctionType, types.BuiltinFunctionType)
        if isinstance(a, known) or hasattr(a, "overloadpacket") or a is ... or callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, k):
        k = self.create_arg(k)
        if any(isinstance(x, Node) for x in (k if isinstance(k, tuple) else (k,))):
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {k}")
        return k

    def to_bool(self, obj) -> bool:
        """What an `if` gets: override it to decide."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj):
        """What a `for` gets: override it to decide."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs function "
            "argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what types of control flow can be traced, and "
            "check out the Proxy docstring for help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj):
        """What `**` gets: override it to decide."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """A tracer that adds to a graph that is there: of proxies that are made by hand."""

    def __init__(self, graph):
        self.graph = graph
        self.module_stack, self.scope = {}, None


def _user_frame():
    frame = sys._getframe(2)
    while frame is not None and "/jtorch/" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame


class Proxy:
    """A value while tracing. Attributes, calls, operators and functions of torch on it become nodes."""

    def __init__(self, node, tracer=None):
        override.arm()  # functions written by hand look for proxies from now on
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self):
        return f"Proxy({self.node.name})"

    def __getattr__(self, k):
        if k in ("node", "tracer"):  # while it is copied or unpickled
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self):
        return self.__dict__

    def __setstate__(self, state):
        self.__dict__ = state

    def __deepcopy__(self, memo):
        made = object.__new__(type(self))
        made.__dict__ = dict(self.__dict__)
        return made

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self):
        frame = sys._getframe(1)
        for instruction in dis.get_instructions(frame.f_code):
            if instruction.offset == frame.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
                return (self[k] for k in range(instruction.argval))
        return self.tracer.iter(self)

    def __abs__(self):
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self):
        if self.tracer.trace_asserts:
            frame = sys._getframe(1)
            instructions = list(dis.get_instructions(frame.f_code))
            at = next((k for k, i in enumerate(instructions) if i.offset == frame.f_lasti), None)
            after = [i.opname for i in instructions[at + 1 : at + 3]] if at is not None else []
            if after and after[0].startswith("POP_JUMP") and "LOAD_ASSERTION_ERROR" in after:
                self.tracer.create_proxy("call_function", _assert, (self, "assertion error"), {})
                return True
        return self.tracer.to_bool(self)

    def keys(self):
        """The keys, for `**`: as the tracer decides."""
        return self.tracer.keys(self)

    def __len__(self):
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call torch.fx.wrap('len') "
            "at module scope"
        )

    @classmethod
    def __torch_function__(cls, orig_method, types, args=None, kwargs=None):
        args, kwargs = args or (), kwargs or {}
        tracers = {}

        def look(a):
            if isinstance(a, cls):
                tracers[a.tracer] = None

        map_aggregate((tuple(args), kwargs), look)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}"
            )
        (tracer,) = tracers
        if overrides.is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", _method_name(orig_method), args, kwargs)
        args, kwargs = _as_written(orig_method, args, kwargs)
        return tracer.create_proxy(
            "call_function", orig_method, args, kwargs, name=tracer.graph._target_to_str(orig_method.__name__)
        )


def _method_name(method):
    holder = getattr(method, "__self__", None)
    return holder.fget.__name__ if isinstance(holder, property) else method.__name__


def _as_written(fn, args, kwargs):
    name = getattr(fn, "__name__", "")
    if name == "einsum" and len(args) == 2 and isinstance(args[1], (tuple, list)):
        return (args[0], *args[1]), kwargs  # operands given as one tuple are recorded one by one
    if name in FUNCTIONAL_IN_C or getattr(F, name, None) is not fn:
        return args, kwargs  # what PyTorch has in C is recorded as it was written, of the others all arguments
    try:
        given = inspect.signature(override.real(fn)).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return args, kwargs
    given.apply_defaults()
    parameters = given.signature.parameters
    values = {n: v for n, v in given.arguments.items() if n not in ("out", "key", "cudnn_enable")}
    free = [n for n in values if parameters[n].default is inspect.Parameter.empty]
    return tuple(values[n] for n in free), {n: v for n, v in values.items() if n not in free}


class Attribute(Proxy):
    """An attribute of a proxy: a call of a method if it is called, else a node of its own once it is used."""

    def __init__(self, root, attr):
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node = None

    @property
    def node(self):
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A proxy of a parameter, whose shape and dimensions are those that it has."""

    def __init__(self, tracer, node, name, param):
        super().__init__(node, tracer)
        self.param, self.name = param, name

    @classmethod
    def of(cls, tracer, name, param, node):
        """The proxy of a parameter's node."""
        return cls(tracer, node, name, param)

    def __repr__(self):
        return f"ParameterProxy({self.name})"

    @property
    def shape(self):
        return self.param.shape

    def size(self):
        return self.param.size()

    def dim(self):
        return self.param.dim()

    @property
    def ndim(self):
        return self.param.ndim

    def numel(self):
        return self.param.numel()

    def nelement(self):
        return self.param.nelement()


def _forward(name):
    target = getattr(operator, name)

    def method(*args, **kwargs):
        return args[0].tracer.create_proxy("call_function", target, args, kwargs)

    return method


def _reflected(name):
    target = getattr(operator, name)

    def method(self, rhs):
        return self.tracer.create_proxy("call_function", target, (rhs, self), {})

    return method


for _name in magic_methods:
    if _name != "div":
        setattr(Proxy, f"__{_name.strip('_')}__", _forward(_name))
for _name in reflectable_magic_methods:
    if _name not in ("div", "getitem"):
        setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(_name))

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError", "TracerBase"]
