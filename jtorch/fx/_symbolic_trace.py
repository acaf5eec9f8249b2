"""torch.fx.Tracer: runs a module's or function's Python with proxies, and keeps what happens as a Graph."""

import builtins
import collections
import functools
import inspect
import itertools
import math
import sys
import warnings

from .. import overrides
from ..dispatch import override
from ..dispatch.dispatched import OpOverload, OpOverloadPacket, dispatches
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..sundries import _assert
from ..tensor import Tensor
from ..utils import _pytree
from . import tracing_state
from .graph import Graph
from .graph_module import GraphModule
from .proxy import ParameterProxy, Proxy, TracerBase, base_types
from .tree_codegen import _PyTreeCodeGen, _PyTreeInfo

# Functions that `wrap` has named: (id of a module's globals, name) -> (globals, the module's name).
_wrapped_fns_to_patch: dict = {}
_wrapped_methods_to_patch: list = []

HAS_VARSTUFF = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class PHBase:
    """The class of PH."""

    def __repr__(self):
        return "PH"


PH = PHBase()


class ProxyableClassMeta(type):
    """The metaclass of a class whose making is recorded where its arguments are proxies."""

    def __call__(cls, *args, **kwargs):
        found = [a.tracer for a in (*args, *kwargs.values()) if isinstance(a, Proxy)]
        if found:
            if any(t is not found[0] for t in found):
                raise AssertionError("proxies of several tracers")
            return found[0].create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


def is_fx_tracing() -> bool:
    """Whether a Tracer runs."""
    return bool(tracing_state.running)


is_fx_symbolic_tracing = is_fx_tracing


def _assert_is_none(value, msg):
    if value is not None:
        raise AssertionError(msg)


def _find_proxy(*values):
    """A proxy anywhere among values, or None."""
    for leaf in _pytree.tree_leaves(values):
        if isinstance(leaf, Proxy):
            return leaf
    return None


def wrap(fn_or_name):
    """Say, at the top of a module, that calls of one of its functions are recorded as they are. A decorator, or given a name."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__code__.co_name
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[(id(frame.f_globals), name)] = frame.f_globals
    return fn_or_name


def _wrapped_call(original):
    @functools.wraps(original)
    def wrapped(*args, **kwargs):
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return original(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", original, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapped


class _Recording(overrides.TorchFunctionMode):
    """The mode in which functions of torch see proxies among their arguments, as they were written."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if _find_proxy(args, kwargs or {}) is not None:
            return Proxy.__torch_function__(func, types, args, kwargs)
        if isinstance(func, (OpOverload, OpOverloadPacket)) or any(map(dispatches, args)):
            return func(
                *args, **(kwargs or {})
            )  # an operator asks modes about itself, and such classes are asked by what looks
        with self:
            return override.real(func)(*args, **(kwargs or {}))


class _Patches:
    """Attributes and globals that are others while a trace runs."""

    def __init__(self):
        self.undo = []

    def attribute(self, holder, name, value):
        """Set an attribute until the end."""
        own = name in vars(holder)
        before = vars(holder).get(name)
        self.undo.append(lambda: setattr(holder, name, before) if own else delattr(holder, name))
        setattr(holder, name, value)

    def glob(self, space, name, value):
        """Set a global until the end."""
        own = name in space
        before = space.get(name)
        self.undo.append(lambda: space.__setitem__(name, before) if own else space.pop(name))
        space[name] = value

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        while self.undo:
            self.undo.pop()()


class Tracer(TracerBase):
    """Traces modules and functions.

    Args:
        autowrap_modules: modules whose functions are recorded as calls
        autowrap_functions: functions that are recorded as calls
        param_shapes_constant: shapes of parameters are numbers of the trace
    """

    def __init__(self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False):
        super().__init__()
        self._autowrap_function_ids = {
            id(v) for m in autowrap_modules for n, v in vars(m).items() if not n.startswith("_") and callable(v)
        } | {id(f) for f in autowrap_functions}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths = None
        self.root_module_name = ""
        self.scope, self.module_stack, self.num_calls = None, collections.OrderedDict(), {}
        self.tensor_attrs = {}

    # what subclasses override

    def is_leaf_module(self, m, module_qualified_name) -> bool:
        """Whether a submodule's call is one node. Here: the layers of torch.nn, but not Sequential."""
        home = type(m).__module__
        inside = home.startswith(("torch.nn", "torch.ao.nn", "jtorch.nn"))
        return inside and type(m).__name__ != "Sequential"

    def path_of_module(self, mod) -> str:
        """The path of a submodule of the root. NameError: it is none."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for n, p in self.root.named_modules():
            if mod is p:
                return n
        raise NameError("module is not installed as a submodule")

    def call_module(self, m, forward, args, kwargs):
        """What a call of a submodule does: a node for a leaf, else what is inside."""
        path = self.path_of_module(m)
        calls = self.num_calls.get(path, 0)
        self.num_calls[path] = calls + 1
        self.module_stack[f"{path}@{calls}" if calls else path] = path, type(m)
        try:
            if not self.is_leaf_module(m, path):
                return forward(*args, **kwargs)
            return self.create_proxy("call_module", path, args, kwargs)
        finally:
            self.module_stack.popitem()

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """What reading an attribute of a module gives: a parameter becomes a node."""
        return self._module_getattr(attr, attr_val, parameter_proxy_cache)

    def _module_getattr(self, attr, attr_val, cache):
        def among(pairs):
            for n, p in pairs:
                if attr_val is p:
                    if n not in cache:
                        more = {}  # a tracer of the user's may have a `create_proxy` without it
                        if self.param_shapes_constant:
                            more["proxy_factory_fn"] = functools.partial(ParameterProxy.of, self, n, attr_val)
                        cache[n] = self.create_proxy("get_attr", n, (), {}, **more)
                    return cache[n]
            return None

        found = None
        if isinstance(attr_val, Parameter):
            found = among(self.root.named_parameters())
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            found = among(self.root.named_buffers())
        return attr_val if found is None else found

    def create_arg(self, a):
        """A value as the argument of a node: tensors and modules become attributes of the root."""
        if isinstance(a, Parameter):
            path = next((n for n, p in self.root.named_parameters() if a is p), None)
            if path is None:
                raise NameError("parameter is not a member of this module")
            return self.create_node("get_attr", path, (), {})
        if isinstance(a, Tensor):
            path = next((n for n, b in self.root.named_buffers() if a is b), None)
            return self._constant(a, "_tensor_constant") if path is None else self.create_node("get_attr", path, (), {})
        if isinstance(a, Module):
            path = next((n for n, m in self.root.named_modules() if a is m), None)
            if path is not None:
                return self.create_node("get_attr", path, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            args = tuple(self.create_arg(x) for x in a)
            return self.create_node("call_function", type(a), args, {})
        if type(type(a)) is ProxyableClassMeta or type(a) not in base_types and isinstance(type(a), ProxyableClassMeta):
            return self._constant(a, f"_{type(a).__name__}_constant_")
        return super().create_arg(a)

    def _constant(self, value, prefix):
        name = self.tensor_attrs.get(id(value), (None,))[0]
        if name is None:
            k = 0
            while hasattr(self.root, f"{prefix}{k}"):
                k += 1
            name = f"{prefix}{k}"
            self.tensor_attrs[id(value)] = (name, value)
            setattr(self.root, name, value)
        return self.create_node("get_attr", name, (), {})

    # tracing

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """(function to call, its arguments): a placeholder for each parameter."""
        fn = inspect.unwrap(root_fn)
        code, signature = override.plain_code(fn), inspect.signature(fn)
        total = code.co_argcount + code.co_kwonlyargcount
        names = iter(code.co_varnames)
        args, skip = [], 0
        if is_module:
            if total == 0:
                raise RuntimeError("`self` argument cannot be part of *args expansion!")
            skip = 1
            next(names)
            args.append(self.root)
        names = [next(names) for _ in range(skip, total)]
        if isinstance(concrete_args, tuple):
            if len(names) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(names)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(names, concrete_args))
        fixed = concrete_args or {}
        args += [self._placeholder(n, fixed, signature, fn) for n in names]
        if code.co_kwonlyargcount > 0 or code.co_flags & HAS_VARSTUFF:
            rest = list(code.co_varnames[total:])
            if code.co_flags & inspect.CO_VARARGS:
                args.append(self.create_proxy("placeholder", "*" + rest.pop(0), (), {}))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(self.create_proxy("placeholder", "**" + rest.pop(0), (), {}))
            root_fn = _all_by_position(fn, len(args))
        if all(_pytree.tree_is_leaf(value) for value in fixed.values()):
            return root_fn, args
        flat, in_spec = _pytree.tree_flatten(tuple(args))
        self.graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(list(code.co_varnames[:total]), in_spec, None)))

        def flattened(*leaves):
            results, out_spec = _pytree.tree_flatten(root_fn(*in_spec.unflatten(leaves)))
            codegen = self.graph._codegen
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return results

        return flattened, flat

    def _placeholder(self, name, fixed, signature, fn):
        default = signature.parameters[name].default
        default = () if default is inspect.Parameter.empty else (default,)
        if name not in fixed:
            return self.create_proxy("placeholder", name, default, {}, type_expr=fn.__annotations__.get(name))
        count = itertools.count(1)
        return _pytree.tree_map(lambda leaf: self._specialized(name, next(count), leaf, default), fixed[name])

    def _specialized(self, name, number, value, default):
        """What stands for a leaf of a concrete argument: a placeholder, or the value itself with a look at what is given."""
        out = self.create_proxy("placeholder", f"{name}_{number}", default, {})
        if isinstance(value, PHBase):
            return out
        if value is None:
            words = f"{name} has been specialized to have value None but got another value"
            self.create_proxy("call_function", _assert_is_none, (out, words), {})
        elif isinstance(value, base_types) and not isinstance(value, Tensor):
            words = f"{name} has been specialized to have value {value} but got another value"
            self.create_proxy("call_function", _assert, (out == value, words), {})
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the user to make sure "
                "that your inputs match the inputs you specialized the function with.",
                stacklevel=4,
            )
        return value

    def trace(self, root, concrete_args=None) -> Graph:
        """The graph of a module or function."""
        override.arm()
        if isinstance(root, Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
            fn = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {mod: name for name, mod in root.named_modules()}
        else:
            self.root, fn = Module(), root
        self.graph = Graph(tracer_cls=getattr(self, "__class__", None))
        self.module_stack, self.num_calls = collections.OrderedDict(), {}
        self.tensor_attrs = {
            id(v): (n, v) for path, m in self.root.named_modules() for k, v in vars(m).items()
            if isinstance(v, Tensor) and (n := f"{path}.{k}" if path else k)
        }  # fmt: skip
        space = getattr(inspect.unwrap(fn), "__globals__", {})
        fn, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
        with _Patches() as patches, _Recording():
            tracing_state.running.append(self)
            patches.undo.append(tracing_state.running.pop)
            self._patch(patches, space)
            self.create_node(
                "output",
                "output",
                (self.create_arg(fn(*args)),),
                {},
                type_expr=getattr(fn, "__annotations__", {}).get("return"),
            )
        self.submodule_paths = None
        return self.graph

    def _patch(self, patches, space):
        cache = {}
        original_call, original_getattr = Module.__call__, Module.__getattr__

        def module_getattr(mod, name):
            value = original_getattr(mod, name)
            return self.getattr(name, value, cache)

        def module_call(mod, *args, **kwargs):
            def forward(*args, **kwargs):
                return original_call(mod, *args, **kwargs)

            return self.call_module(mod, forward, args, kwargs)

        patches.attribute(Module, "__getattr__", module_getattr)
        patches.attribute(Module, "__call__", module_call)
        for (_, name), where in list(_wrapped_fns_to_patch.items()):
            original = where.get(name, getattr(builtins, name, None))
            if original is not None:
                patches.glob(where, name, _wrapped_call(original))
        for name, value in list(space.items()):
            if not name.startswith("_") and callable(value) and id(value) in self._autowrap_function_ids:
                patches.glob(space, name, _wrapped_call(value))
        for module in self._autowrap_search:
            for name, value in list(vars(module).items()):
                if not name.startswith("_") and callable(value) and id(value) in self._autowrap_function_ids:
                    patches.attribute(module, name, _wrapped_call(value))

    def __deepcopy__(self, memo):
        made = object.__new__(type(self))
        made.__dict__.update({k: v for k, v in self.__dict__.items() if k != "_autowrap_search"})
        made._autowrap_search = self._autowrap_search
        return made


def _all_by_position(fn, count):
    """A function whose every parameter, `*args` and keyword-only ones too, is an argument by position."""
    code = fn.__code__.replace(
        co_flags=fn.__code__.co_flags & ~HAS_VARSTUFF, co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0
    )
    made = type(fn)(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    made.__annotations__ = fn.__annotations__
    return made


def symbolic_trace(root, concrete_args=None) -> GraphModule:
    """A GraphModule of a module or function: its Python runs once, with proxies; the graph is what was done with them."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root.__class__.__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


__all__ = ["PH", "ProxyableClassMeta", "Tracer", "symbolic_trace", "wrap"]
