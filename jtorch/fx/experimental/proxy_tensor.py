"""make_fx: the graph of the operators that a function calls, those of its derivatives too.

The function runs once, on tensors of a class with a `__torch_dispatch__`, which notes each call. A function mode makes such tensors
of those from elsewhere, so that calls on these alone are noted too, and notes the functions that make tensors.
"""

import functools
import inspect

from ... import creation, errors, random_tensors
from ..._C import DisableTorchFunction
from ...autograd.grad_mode import no_grad
from ...dispatch.dispatched import packet_of, writes
from ...nn.parameter import Parameter
from ...overrides import TorchFunctionMode
from ...tensor import Tensor, edge_of
from ...utils import _pytree
from .._symbolic_trace import PH, Tracer
from ..graph_module import GraphModule

__all__ = ["get_proxy_mode", "make_fx"]

_TRACES: list = []  # those that run, the innermost last


class ProxyTensor(Tensor):
    """A tensor and the node of the graph that gives it."""

    @staticmethod
    def __new__(cls, value, proxy):
        made = Tensor._make_wrapper_subclass(
            cls, value.size(), strides=value.stride(), storage_offset=value.storage_offset(), dtype=value.dtype,
            layout=value.layout, device=value.device,
        )  # fmt: skip
        made._inner, made._proxy = value, proxy
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _TRACES[-1].call(func, args, kwargs or {})

    def __repr__(self):
        return f"ProxyTensor({self._inner!r}, proxy={self._proxy!r})"


class _Tracer(Tracer):
    """Parameters are attributes where they meet a call; layers are what they call."""

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        return attr_val

    def call_module(self, m, forward, args, kwargs):
        return forward(*args, **kwargs)

    def create_arg(self, a):
        if isinstance(a, Parameter) and all(a is not p for p in self.root.parameters()):
            return self._constant(a, "_param_constant")
        return super().create_arg(a)


class _Calls(TorchFunctionMode):
    """Sees the functions that make tensors of numbers, and has tensors from elsewhere seen by the others."""

    def __init__(self, trace):
        self.trace = trace

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", None)
        if name in _FROM_DATA and func is getattr(creation, name) and not isinstance(args[0] if args else None, Tensor):
            made = func(*args, **kwargs)
            return made if isinstance(made, ProxyTensor) else self.trace.lifted(made)
        if name in _MADE and func is _MADE[name]:
            return self.trace.made(func, args, kwargs)
        if name not in _OF_THE_TENSOR:
            args, kwargs = _pytree.tree_map(self.trace.inside, (args, kwargs))
        return func(*args, **kwargs)


# Calls that are about a tensor itself, and not about what it holds.
_OF_THE_TENSOR = (
    "__get__", "__set__", "__delete__", "_make_subclass", "as_subclass", "backward", "register_hook", "requires_grad_", "retain_grad",
    "register_post_accumulate_grad_hook", "share_memory_",
)  # fmt: skip
_FROM_DATA = ("tensor", "scalar_tensor", "as_tensor", "asarray", "from_numpy", "frombuffer")
_MADE = {
    name: getattr(home, name)
    for home, names in (
        (creation, "arange empty eye full linspace logspace ones range zeros"),
        (random_tensors, "rand randint randn randperm normal"),
    )
    for name in names.split()
}
_SIZED = ("empty", "ones", "zeros", "rand", "randn")


class Trace:
    """One run of a function. decompositions: {operator: the function that is called in its place}."""

    def __init__(self, decompositions):
        self.decompositions = decompositions
        self.tracer = _Tracer()
        self.known = {}  # id of a tensor that came from elsewhere -> (it, the tensor that stands for it)

    def run(self, f, args):
        """The graph of f(*args)."""

        def traced(*proxies):
            leaves = _pytree.tree_leaves(proxies)
            given, tree = _pytree.tree_flatten(args)
            inside = [self.input(x, p) if isinstance(x, Tensor) else x for x, p in zip(given, leaves)]
            _TRACES.append(self)
            try:
                with _Calls(self):
                    out = f(*_pytree.tree_unflatten(inside, tree))
            finally:
                _TRACES.pop()
            return _pytree.tree_map(self.outside, out)

        function = _with_signature(traced, f, len(args))
        graph = self.tracer.trace(function, tuple(_pytree.tree_map(lambda x: PH, a) for a in args))
        return GraphModule(self.tracer.root, graph, getattr(f, "__name__", type(f).__name__))

    def input(self, x, proxy):
        """What stands for an argument inside."""
        made = ProxyTensor(x.detach(), proxy)
        made.requires_grad_(x.requires_grad)
        self.known[id(x)] = x, made
        return made

    def inside(self, x):
        """A tensor as calls see it: one from elsewhere is an attribute of the graph, with its place on the tape."""
        if not isinstance(x, Tensor) or isinstance(x, ProxyTensor):
            return x
        found = self.known.get(id(x))
        if found is None:
            made = ProxyTensor(x.detach(), None)
            made._edge = edge_of(x)
            self.known[id(x)] = found = x, made
            made._source = x
        return found[1]

    def outside(self, x):
        """A result, or an argument of a call, as the graph writes it."""
        if isinstance(x, ProxyTensor):
            return x._source if x._proxy is None else x._proxy
        return x

    def lifted(self, made):
        """A tensor of data: each run of the graph has a copy of its own."""
        node = self.tracer.create_arg(made.detach())
        return ProxyTensor(made, self.note(packet_of("lift_fresh_copy", None).default, (node,), {})).requires_grad_(
            made.requires_grad
        )

    def made(self, func, args, kwargs):
        """A call of a function that makes a tensor of numbers alone."""
        before = _pytree.tree_leaves((args, kwargs))
        if any(isinstance(x, ProxyTensor) for x in before) or kwargs.get("out") is not None:
            return func(*args, **kwargs)
        value = func(*args, **kwargs)
        requires = kwargs.pop("requires_grad", False)
        if func.__name__ in _SIZED:
            size = args[0] if args and not isinstance(args[0], int) else kwargs.pop("size", args)
            args = (list(size),)
        else:
            args = tuple(list(a) if isinstance(a, (tuple, list)) else a for a in args)
        kwargs = {"device": value.device, "pin_memory": False} | {k: v for k, v in kwargs.items() if v is not None}
        packet = packet_of(func.__name__, None)
        return ProxyTensor(value, self.note(packet.default, args, kwargs)).requires_grad_(requires)

    def note(self, func, args, kwargs):
        """The proxy of a call."""
        name = self.tracer.graph._target_to_str(func.overloadpacket.__name__)
        return self.tracer.create_proxy("call_function", func, args, kwargs, name=name)

    def call(self, func, args, kwargs):
        """A call of an operator: what it gives, noted."""
        if func in self.decompositions:
            found = self.decompositions[func](*args, **kwargs)
            if found is not NotImplemented:
                return found
        if func.overloadpacket.__name__ == "_local_scalar_dense":
            raise RuntimeError(
                "It appears that you're trying to get value out of a tracing tensor with aten._local_scalar_dense.default - "
                "erroring out! It's likely that this is caused by data-dependent control flow or similar."
            )
        args, kwargs = _pytree.tree_map(self.inside, (args, kwargs))
        values = _pytree.tree_map(lambda x: x._inner if isinstance(x, ProxyTensor) else x, (args, kwargs))
        given = _pytree.tree_map(self.outside, (args, kwargs))
        proxy = self.note(func, *_written(func, *given))
        with no_grad(), DisableTorchFunction():
            out = func(*values[0], **values[1])
        if writes(func) and isinstance(args[0], ProxyTensor):
            self_ = args[0]
            self_._proxy, self_._spec, self_._offset = (
                proxy,
                self_._inner._spec,
                self_._inner._offset,
            )  # it may be turned
            return self_
        if isinstance(out, Tensor):
            return ProxyTensor(out, proxy)
        if isinstance(out, (tuple, list)):
            parts = [ProxyTensor(o, proxy[k]) if isinstance(o, Tensor) else o for k, o in enumerate(out)]
            return type(out)(*parts) if hasattr(out, "_fields") else type(out)(parts)
        return out


def _written(func, args, kwargs):
    """Arguments as PyTorch's dispatcher has them: sizes and dimensions are lists."""
    as_list = lambda x: list(x) if isinstance(x, tuple) and all(type(i) is int for i in x) else x
    args = [as_list(x) for x in args]
    if func._overloadname in _OF_DIMS and len(args) > 1 and type(args[1]) is int:
        args[1] = [args[1]]
    return tuple(args), {k: as_list(v) for k, v in kwargs.items()}


_OF_DIMS = ("dim_IntList", "correction")


def _with_signature(traced, f, count):
    """`traced` with the names of f's arguments."""
    try:
        names = [p.name for p in inspect.signature(f).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD][:count]
    except (TypeError, ValueError):
        names = []
    if len(names) < count:
        names = [f"arg{k}" for k in range(count)]
    space = {"traced": traced}
    exec(f"def function({', '.join(names)}):\n    return traced({', '.join(names)})", space)
    return space["function"]


def make_fx(f, decomposition_table=None, tracing_mode="real", *args, **options):
    """A function of f's arguments that gives the GraphModule of the operators f calls for them, those of gradients too.

    decomposition_table: {operator: function called in its place}. Numbers, sizes and what Python decides by them are those of these
    arguments. RuntimeError: f asks for the value of a tensor. NotImplementedError: tracing_mode="symbolic".
    Source: https://docs.pytorch.org/docs/stable/generated/torch.fx.experimental.proxy_tensor.make_fx.html
    """
    if tracing_mode == "symbolic":
        raise errors.unsupported('make_fx(tracing_mode="symbolic")', 'tracing_mode="real", once for each size')
    if tracing_mode not in ("real", "fake"):
        raise AssertionError(f"Unexpected tracing type: {tracing_mode}")

    @functools.wraps(f)
    def wrapped(*args):
        return Trace(decomposition_table or {}).run(f, args)

    return wrapped


def get_proxy_mode():
    """What traces at the moment, or None."""
    return _TRACES[-1] if _TRACES else None
