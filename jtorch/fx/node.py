"""Nodes of an fx graph: an operation with arguments among which are other nodes, in a doubly linked list."""

import builtins
import functools
import inspect
import operator
import sys
import types
import typing

from .. import overrides
from .immutable_collections import immutable_dict, immutable_list

Argument = Target = typing.Any
BaseArgumentTypes = typing.Any
base_types: tuple = ()  # set by proxy, which knows all of them

# Calls that have an effect although nobody reads their result.
_side_effectful_functions: set = {operator.setitem}
_DRAWING = "rand randn randint randperm rand_like randn_like randint_like normal poisson bernoulli multinomial".split()


@functools.cache
def _effectful_of_torch() -> frozenset:
    """Those of torch: what moves the generator along, and assertions."""
    torch = sys.modules[__package__.partition(".")[0]]
    return frozenset(getattr(torch, name) for name in (*_DRAWING, "_assert"))


def has_side_effect(fn):
    """Say that calls of a function must stay although nobody reads their result; also a decorator."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a, fn):
    """Apply a function to every leaf of nested tuples, lists, dicts and slices; the result is immutable."""
    if isinstance(a, tuple):
        parts = [map_aggregate(x, fn) for x in a]
        return tuple(parts) if not hasattr(a, "_fields") else type(a)(*parts)
    if isinstance(a, list):
        return immutable_list(map_aggregate(x, fn) for x in a)
    if isinstance(a, dict):
        return immutable_dict((k, map_aggregate(v, fn)) for k, v in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(x, fn) for x in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a, fn):
    """Apply a function to every node in nested arguments."""
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def _find_module_of_method(orig_method) -> str:
    name = orig_method.__name__
    module = orig_method.__module__
    if module is not None:
        return module
    raise RuntimeError(f"cannot find module for {name}")


def _get_qualified_name(func) -> str:
    """The name that generated code calls a function by: "torch.nn.functional.relu", "operator.add", "builtins.getattr"."""
    if hasattr(func, "_qualified_op_name"):
        return "torch.ops." + func._qualified_op_name.replace("::", ".")
    if hasattr(func, "overloadpacket"):
        return f"torch.ops.{func}"
    if isinstance(func, types.FunctionType):
        public = overrides.resolve_name(func)
        if public is not None and public.startswith("torch."):
            return public
    if getattr(builtins, getattr(func, "__name__", ""), None) is func:
        return func.__name__
    name = func.__name__
    if name == "<lambda>":
        try:
            name = inspect.getsource(func).split("=")[0].strip()
        except (OSError, TypeError) as error:
            raise RuntimeError("Unable to represent lambda") from error
    if getattr(sys.modules["jtorch"], name, None) is func:
        return f"torch.{name}"
    module = _find_module_of_method(func)
    module = "torch" if module == "jtorch" else module.replace("jtorch.", "torch.")
    return f"{module}.{name}"


def _type_repr(obj) -> str:
    """A type as generated code writes it."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        if obj.__module__ != "builtins" and getattr(sys.modules["jtorch"], obj.__name__, None) is obj:
            return f"torch.{obj.__name__}"
        return (
            obj.__qualname__
            if obj.__module__ == "builtins"
            else f"{obj.__module__.replace('jtorch', 'torch')}.{obj.__qualname__}"
        )
    if obj is ...:
        return "..."
    return obj.__name__ if isinstance(obj, types.FunctionType) else repr(obj)


_LEGAL_OPS = ("placeholder", "get_attr", "call_function", "call_module", "call_method", "output", "root")


def _writes(target) -> bool:
    """Whether an operator writes to an argument: by its schema, or, of ATen's, by its name."""
    schema, packet = getattr(target, "_schema", None), getattr(target, "overloadpacket", None)
    if schema is not None:
        return schema.is_mutable
    return packet is not None and packet.__name__.endswith("_")


class Node:
    """One operation of a Graph.

    op: placeholder (an input), get_attr (of the module), call_function, call_method (target is the method's name, the first argument the
        object), call_module (target is its path), output (the first argument is what is returned)
    """

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        if op not in _LEGAL_OPS:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a Callable is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a str is expected"
            )
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self._input_nodes, self.users = {}, {}
        self._prev = self._next = self
        self._erased = False
        self._repr_fn = None
        self.meta = {}
        self._args, self._kwargs = (), {}
        self._update(args, kwargs)

    def _update(self, args, kwargs):
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def use(n):
            self._input_nodes.setdefault(n)
            n.users.setdefault(self)
            return n

        self._args, self._kwargs = map_arg(tuple(args), use), map_arg(dict(kwargs), use)

    @property
    def args(self) -> tuple:
        """The positional arguments; assign to change them."""
        return self._args

    @args.setter
    def args(self, args):
        self._update(args, self._kwargs)

    @property
    def kwargs(self) -> dict:
        """The keyword arguments; assign to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs):
        self._update(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    @property
    def next(self):
        """The node after it in the graph."""
        return self._next

    @property
    def prev(self):
        """The node before it in the graph."""
        return self._prev

    @property
    def stack_trace(self):
        """Where it was traced, if that was recorded."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace):
        self.meta["stack_trace"] = trace

    def _link(self, before, after):
        self._prev, self._next = before, after
        before._next = after._prev = self

    def _remove_from_list(self):
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x) -> None:
        """Put a node of this graph before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        x._link(self._prev, self)

    def append(self, x) -> None:
        """Put a node of this graph after this one."""
        self._next.prepend(x)

    def update_arg(self, idx, arg) -> None:
        """Put another value in the place of a positional argument."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx, arg) -> None:
        """Put a further positional argument in."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key, arg) -> None:
        """Put another value in the place of a keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_all_uses_with(self, replace_with, delete_user_cb=lambda user: True, *, propagate_meta=False) -> list:
        """Use another node in its place, in all users for which `delete_user_cb` is true; those that were changed."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = []
        for user in list(self.users):
            if delete_user_cb(user):
                user.replace_input_with(self, replace_with)
                changed.append(user)
        return changed

    def replace_input_with(self, old_input, new_input) -> None:
        """Use another node in the place of one of its inputs."""
        swap = lambda n: new_input if n is old_input else n
        self._update(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def is_impure(self, impure_random=True) -> bool:
        """Whether it must stay although nobody reads it."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return (
                self.target in _side_effectful_functions or self.target in _effectful_of_torch() or _writes(self.target)
            )
        if self.op == "call_module":
            module = self.graph.owning_module
            if module is not None:
                target = module.get_submodule(self.target)
                return getattr(target, "_is_impure", False)
        return False

    def normalized_arguments(self, root, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
        """The arguments in the order of the target's parameters, or all by keyword; None where that cannot be told."""
        if self.op == "call_function":
            fn = self.target
        elif self.op == "call_module":
            fn = root.get_submodule(self.target).forward
        else:
            return None
        try:
            signature = inspect.signature(fn)
            given = signature.bind(*self.args, **self.kwargs)
        except (TypeError, ValueError):
            return None
        given.apply_defaults()
        if normalize_to_only_use_kwargs:
            return ArgsKwargsPair((), dict(given.arguments))
        return ArgsKwargsPair(given.args, given.kwargs)

    def format_node(self, placeholder_names=None, maybe_return_typename=None, *, include_tensor_metadata=False):
        """The node as a line of text."""
        typed = f" : {_type_repr(self.type)}" if self.type else ""
        users = f"[num_users={len(self.users)}]"
        head = f"%{self.name}{typed or ' :'} {users}"
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(self.target + typed)
                return None
            default = f"(default={self._args[0]})" if self._args else ""
            return f"{head} = placeholder[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{head} = get_attr[target={self._pretty_target()}]"
        if self.op == "output":
            if self.type and maybe_return_typename is not None:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        return (
            f"{head} = {self.op}[target={self._pretty_target()}](args = {_shown(self._args)}, "
            f"kwargs = {_shown(self._kwargs)})"
        )

    def _pretty_target(self):
        if isinstance(self.target, str):
            return self.target
        if getattr(self.target, "__module__", None) == "_operator":
            return f"operator.{self.target.__name__}"
        name = _get_qualified_name(self.target)
        return f"builtins.{name}" if "." not in name else name

    def __repr__(self):
        return self._repr_fn(self) if self._repr_fn else self.name

    def __lt__(self, other):
        return self._order() < other._order()

    def __le__(self, other):
        return self._order() <= other._order()

    def __gt__(self, other):
        return self._order() > other._order()

    def __ge__(self, other):
        return self._order() >= other._order()

    def _order(self):
        return next(k for k, n in enumerate(self.graph.nodes) if n is self)

    def _rename(self, candidate) -> None:
        """Take another name, made unique."""
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)


class ArgsKwargsPair(typing.NamedTuple):
    """Positional and keyword arguments."""

    args: tuple
    kwargs: dict


def _shown(arg):
    """Nested arguments as text, nodes with a %."""
    if isinstance(arg, list):
        return f"[{', '.join(_shown(a) for a in arg)}]"
    if isinstance(arg, tuple):
        items = ", ".join(_shown(a) for a in arg)
        return f"({items},)" if len(arg) == 1 else f"({items})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_shown(v)}" for k, v in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]
