"""A graph of what a function does, taken while it runs: each call of torch that it makes is a node. Knows no compiler."""

import contextlib
import dis
import functools
import operator
import sys
import types
import weakref

from .. import overrides
from ..autograd.function import Function
from ..core import storage as storages
from ..core.record import Pending, tls
from ..core.rng import default_generator
from ..nn.modules.module import Module
from ..tensor import Tensor
from .graph import Graph
from .graph_module import GraphModule
from .proxy import TracerBase

# What Python needs a value for: the graph ends before it.
BREAKS = frozenset(
    "item tolist numpy backward __bool__ __int__ __float__ __complex__ __index__ __array__ __repr__ __format__ __contains__ allclose equal "
    "is_nonzero save".split()
)
# What a graph of calls cannot show.
REFUSED = frozenset("register_hook register_post_accumulate_grad_hook retain_grad as_subclass share_memory_".split())
_FIELDS = ("_storage", "_spec", "_offset", "_edge", "_rg", "_grad", "_base", "_seen", "_hooks")
_INFIX = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "**": operator.pow, "@": operator.matmul, "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift,
    ">>": operator.rshift, "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv,
    "//=": operator.ifloordiv, "%=": operator.imod, "**=": operator.ipow, "&=": operator.iand, "|=": operator.ior,
    "^=": operator.ixor, "@=": operator.imatmul, "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_UNARY = {"UNARY_NEGATIVE": operator.neg, "UNARY_INVERT": operator.invert}


class Uncapturable(RuntimeError):
    """Why a function has no graph."""


class Segment:
    """The graph from one place where Python needs a value to the next, and what it began with."""

    def __init__(self, me):
        self.graph = Graph()
        self.inputs = []  # tensors, in the order of the placeholders
        self.placed = {}  # id of an input -> its placeholder
        self.held = {}  # id of a tensor -> (weak reference, node, path in the node's result)
        self.results = []  # weak references to the tensors that nodes have made, in order
        self.before = []  # (input, its fields, what its storage held)
        self.versions = {}  # id of an input's storage -> (the storage, its version after the last node)
        self.random = default_generator.state_bytes()
        self.grad = self.grad_now = me.grad
        self.first = None  # the node that placeholders come before
        self.calls = 0


class Capture(overrides.TorchFunctionMode, TracerBase):
    """A context: what runs inside is computed as always, and kept as graphs.

    Args:
        names: {id of a tensor: its name}; others are named by the order in which they are met
        on_segment: called with this capture at each place where Python needs a value (its name is given too)
    """

    captures = "compile"  # what for

    def __init__(self, names, on_segment):
        super().__init__()
        self.me = tls.me
        self.names, self.on_segment = names, on_segment
        self.why = None  # set: from here on nothing is kept
        self.me.flush("before a graph is captured")
        self.special, self.inference = self.me.special, self.me.inference
        self.begin()

    def begin(self, results=()):
        """A new graph, of what comes from here on. `results` of the last are named as the program has them."""
        if results:
            own = {id(v): k for k, v in _user_frame().f_locals.items() if isinstance(v, Tensor)}
            self.names |= {id(t): f"L_{own.get(id(t), f'stack{k}')}_" for k, t in enumerate(results)}
        self.segment = Segment(self.me)
        self.graph = self.segment.graph

    def give_up(self, why):
        """Keep nothing from here on: the function goes on as it is."""
        self.why = f"{why}, at {_line(_user_frame())}"

    # --- what runs ---

    def __enter__(self):
        self._iter, self._apply = Tensor.__iter__, Function.__dict__["apply"]
        plain, inner = self._iter, self._apply.__func__
        Tensor.__iter__ = lambda t: iter(t.unbind(0)) if type(t) is Tensor and t.dim() else plain(t)
        Function.apply = classmethod(lambda cls, *args, **kwargs: self.custom(cls, inner, args, kwargs))
        return super().__enter__()

    def __exit__(self, *exc):
        super().__exit__(*exc)
        Tensor.__iter__, Function.apply = self._iter, self._apply

    def custom(self, cls, apply, args, kwargs):
        """A call of an autograd.Function: one node."""
        super().__exit__(None, None, None)
        try:
            own = types.MethodType(apply, cls)
            return self.__torch_function__(own, (), args, kwargs, target=own)
        finally:
            super().__enter__()

    def __torch_function__(self, func, types, args=(), kwargs=None, target=None):
        kwargs = kwargs or {}
        if self.why is not None:
            return func(*args, **kwargs)
        name = _method_name(func)
        accessor = getattr(func, "__self__", None)
        setter = isinstance(accessor, property) and func.__name__ == "__set__"
        if (name or getattr(func, "__name__", "")) in BREAKS:
            self.on_segment(self, name or func.__name__)
            return func(*args, **kwargs)
        if name in REFUSED or setter or name in ("grad", "grad_fn", "data_ptr", "untyped_storage"):
            self.give_up(f"Tensor.{name} is used")
            return func(*args, **kwargs)
        if self.me.special is not self.special or self.me.inference is not self.inference:
            self.give_up("autocast, inference mode or a dispatch mode begins or ends inside")
            return func(*args, **kwargs)
        try:
            call = self.call_of(func, name, args, kwargs, target)
        except (NotImplementedError, Uncapturable) as e:
            self.give_up(str(e))
            return func(*args, **kwargs)
        out = func(*args, **kwargs)
        self.note(call, out)
        return out

    def call_of(self, func, name, args, kwargs, target):
        """(kind, target, args, kwargs) of a node; the tensors among the arguments are known afterwards."""
        given, named = self.create_arg(tuple(args)), self.create_arg(dict(kwargs))
        if target is not None:
            return "call_function", target, given, named
        if isinstance(getattr(func, "__self__", None), property):
            return "call_function", getattr, (given[0], name), {}
        found = _written(func)
        if found is not None:
            reflected = func.__name__.strip("_") in _REFLECTED
            return "call_function", found, given[::-1] if reflected else given, {}
        if name is None:
            return "call_function", func, given, named
        if name in ("__getitem__", "__setitem__", "getitem", "setitem"):
            return "call_function", getattr(operator, name.strip("_")), given, {}
        if name.startswith("__") and hasattr(operator, name):
            return "call_function", getattr(operator, name), given, named
        return "call_method", name, given, named

    def note(self, call, out):
        """Add the node of a call that has been made, if tensors came out of it or were written to."""
        seg = self.segment
        found = [(t, path) for t, path in _tensors(out)]
        if not found and call[1] is not operator.setitem and not str(call[1]).endswith("_"):
            return  # a size, a dtype
        if self.me.grad is not seg.grad_now:
            seg.grad_now = self.me.grad
            self.add("call_function", _set_grad_enabled(), (seg.grad_now,), {})
        node = self.add(*call)
        seg.calls += 1
        for t, path in found:
            if id(t) not in seg.held or seg.held[id(t)][0]() is not t:
                seg.results.append(weakref.ref(t))
            seg.held[id(t)] = weakref.ref(t), node, path
        for key, (storage, _) in list(seg.versions.items()):
            seg.versions[key] = storage, storage.version

    def add(self, kind, target, args, kwargs, name=None):
        """A node of the graph."""
        node = self.create_node(kind, target, args, kwargs, name)
        if self.segment.first is None:
            self.segment.first = node
        return node

    def create_arg(self, a):
        """A value as the argument of a node. Uncapturable: it cannot be one."""
        if isinstance(a, Tensor):
            return self.node_of(a)
        if isinstance(a, Module):
            raise Uncapturable("a module is the argument of a function of torch")
        return super().create_arg(a)

    def node_of(self, t):
        """The node that a tensor is the result of; of one from outside, a placeholder."""
        seg = self.segment
        ref, node, path = seg.held.get(id(t), (None, None, ()))
        if ref is not None and ref() is t:
            for step in path:
                node = self.add("call_function", operator.getitem, (node, step), {})
            seg.held[id(t)] = ref, node, ()
            return node
        storage = t._storage
        if id(t) not in self.names and type(storage.value) is Pending:
            raise Uncapturable("a tensor comes from a call that is not seen")
        name = self.names.get(id(t), f"L_input_{len(seg.inputs)}_")
        with contextlib.nullcontext() if seg.first is None else self.graph.inserting_before(seg.first):
            node = self.create_node("placeholder", name, (), {}, name=name.lower(), type_expr=type(t))
        node.meta["example_value"] = node.meta["val"] = t
        seg.before.append((t, [getattr(t, f, None) for f in _FIELDS], storages.noted(storage)))
        seg.versions.setdefault(id(storage), (storage, storage.version))
        seg.inputs.append(t)
        seg.placed[id(t)] = node
        seg.held[id(t)] = weakref.ref(t), node, ()
        return node

    # --- what is made of it ---

    def outputs(self, returned=()):
        """The tensors that nodes have made and that somebody still holds: those of `returned` first."""
        seg = self.segment
        made = [t for r in seg.results if (t := r()) is not None and not any(t is i for i in seg.inputs)]
        first = [t for t in returned if any(t is m for m in made)]
        found = []
        for t in (*first, *made):
            if not any(t is f for f in found):
                found.append(t)
        return found

    def finish(self, returned=()):
        """(graph module, inputs, outputs) of what has been kept since the last time. Uncapturable: it is not all there is."""
        seg = self.segment
        for storage, version in seg.versions.values():
            if storage.version != version:
                raise Uncapturable("a tensor is written to by a call that is not seen")
        results = self.outputs(returned)
        nodes = tuple(self.node_of(t) for t in results)
        if self.me.grad is not seg.grad_now or seg.grad_now is not seg.grad:
            self.add("call_function", _set_grad_enabled(), (seg.grad,), {})
        self.graph.output(nodes)
        used = []
        for t in seg.inputs:  # a tensor whose size alone was asked for is no input
            node = seg.placed[id(t)]
            if node.users:
                used.append(t)
            else:
                self.graph.erase_node(node)
        return GraphModule({}, self.graph), used, results

    def take_back(self):
        """Undo what the calls have written and drawn: whatever runs the graph does it again."""
        for t, fields, held in self.segment.before:
            storages.put_back(fields[0], held)
            for f, x in zip(_FIELDS, fields):
                if f != "_grad":
                    setattr(t, f, x)
        default_generator.set_state(self.segment.random)


def put(results, values) -> None:
    """Have tensors be these ones instead, wherever they are held."""
    for t, value in zip(results, values):
        if value is t:
            continue
        for f in _FIELDS:
            if hasattr(value, f):
                setattr(t, f, getattr(value, f))
        if value._edge is value:
            t._edge = t


_REFLECTED = frozenset("radd rsub rmul rdiv rtruediv rfloordiv rmod rpow rmatmul rand ror rxor rlshift rrshift".split())


@functools.cache
def _set_grad_enabled():
    return sys.modules["jtorch"]._C._set_grad_enabled


@functools.cache
def _method_name(func):
    """The name under which a function is a method or property of Tensor, or None."""
    holder = getattr(func, "__self__", None)
    if isinstance(holder, property):
        return next((n for n, m in vars(Tensor).items() if m is holder or getattr(m, "property", None) is holder), "?")
    own = vars(Tensor)
    name = getattr(func, "__name__", None)
    if own.get(name) is func:
        return name
    return next((n for n, m in own.items() if m is func), None)


def _tensors(out, path=()):
    """(tensor, path) of each tensor in a result."""
    if isinstance(out, Tensor):
        yield out, path
    elif isinstance(out, (tuple, list)):
        for k, x in enumerate(out):
            yield from _tensors(x, (*path, k))
    elif isinstance(out, dict):
        for k, x in out.items():
            yield from _tensors(x, (*path, k))


_SEEN_INSIDE = ("/jtorch/nn/modules/", "/jtorch/distributions/", "/jtorch/nn/utils/")


def _user_frame():
    frame = sys._getframe(1)
    while frame.f_back is not None:
        file = frame.f_code.co_filename.replace("\\", "/")
        ours = "/jtorch/" in file or file.startswith("<jtorch ")  # the second: functions made from the op table
        if not ours or any(part in file for part in _SEEN_INSIDE):
            break
        frame = frame.f_back
    return frame


def _line(frame) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


@functools.lru_cache(1024)
def _instructions(code):
    return {i.offset: (i.opname, i.argrepr) for i in dis.get_instructions(code)}


def _written(func):
    """The operator that the program has written, if it is one."""
    frame = _user_frame()
    name, sign = _instructions(frame.f_code).get(frame.f_lasti, ("", ""))
    if name in _UNARY:
        return _UNARY[name] if func.__name__.strip("_") in ("neg", "bitwise_not", "invert") else None
    if name not in ("BINARY_OP", "COMPARE_OP"):
        return None
    found = _INFIX.get(sign)
    base = func.__name__.strip("_")
    return found if found is not None and base in _NAMES.get(found.__name__.strip("_"), ()) else None


def _spellings(*names):
    return {n for name in names for n in (name, f"i{name}", f"r{name}")}


_NAMES = {
    **{n: _spellings(n) for n in ("add", "sub", "mul", "mod", "pow", "matmul", "lt", "le", "eq", "ne", "gt", "ge", "lshift", "rshift")},
    "truediv": _spellings("truediv", "div"), "floordiv": _spellings("floordiv", "floor_divide"),
    "mod": _spellings("mod", "remainder"), "and": _spellings("and", "bitwise_and"), "or": _spellings("or", "bitwise_or"),
    "xor": _spellings("xor", "bitwise_xor"),
}  # fmt: skip
_NAMES["lshift"] |= {"bitwise_left_shift"}
_NAMES["rshift"] |= {"bitwise_right_shift"}
for _n in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"):
    _NAMES[f"i{_n}"] = _NAMES[_n]

__all__ = ["Capture", "Uncapturable", "put"]
