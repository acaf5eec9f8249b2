"""Gradients of what a `__torch_dispatch__` computes: a node for the whole call, whose derivative calls operators as PyTorch's does.

`operated` calls an operator, perhaps with tensors of such classes. Its node keeps the operands that the rule of `outer_rules.py` names, and
its gradients are tensors, perhaps of these classes again: `autograd/outer_run.py` hands them on.
"""

from ..autograd.derive import differentiable
from ..autograd.engine import changed
from ..autograd.node import PythonNode, bridge, class_of, pack_one, unpack_one
from ..core.record import tls
from ..errors_autograd import freed, view_of_leaf
from ..ops import registry
from ..tensor import Tensor, edge_of, make
from . import dispatched, outer_views
from .write import check_inplace

STATE = {"made": False}  # whether there is a node of this kind, or a gradient for a tensor of such a class may come

# (operator, whether it writes to its operand) -> its derivative, and the one that any operator has; set by `outer_rules.py`
RULE_OF: list = [None, None]


class Saved:
    """An operand or result that a derivative reads, and the version that it had; or what `saved_tensors_hooks` made of it, and its edge."""

    __slots__ = ("tensor", "version", "edge", "unpack")

    def __init__(self, tensor):
        hooks = tls.me.extra.get("saved_hooks")
        self.unpack = self.edge = None
        self.version = tensor._storage.version
        if hooks:
            pack, self.unpack = hooks[-1]
            self.edge = edge_of(tensor)
            tensor = pack_one(pack, tensor)
        self.tensor = tensor

    def get(self, node):
        """The tensor. RuntimeError: it has been written to."""
        if self.unpack is not None:
            t = unpack_one(self.unpack, self.tensor)
            if self.edge is None or not tls.me.grad or edge_of(t) is not None:
                return t
            t = off_tape(t)
            t._edge = self.edge
            return t
        if self.tensor._storage.version != self.version:
            edge = edge_of(self.tensor)
            raise changed(edge, self.tensor._spec, self.tensor._storage.version, self.version, node.trace)
        return self.tensor


class OuterNode(PythonNode):
    """The node of one call of an operator.

    rule: its derivative; names: of each edge (argument, place in a list of tensors or None); kept: {name: argument as the rule reads it};
    specs_in: {name: spec, or specs, of tensor arguments}.
    """

    def __init__(self, label, edges, specs, rule, names, kept, specs_in):
        super().__init__(label, edges, specs)
        self.rule, self.names, self.kept, self.specs_in = rule, names, kept, specs_in
        self.results = None  # of each result that the rule reads: itself off the tape

    def release(self):
        self.kept = self.results = None

    def apply(self, *grads):
        if all(g is None for g in grads):
            return (None,) * len(self.edges)
        if self.kept is None:
            raise freed()
        known = {name: _read(value, self) for name, value in self.kept.items()}
        known.update(g=grads[0], gs=grads, specs=self.specs_in, out_specs=self.specs)
        if self.results is not None:
            known["outs"] = outs = [self._again(k, r) for k, r in enumerate(self.results)]
            known["out"] = outs[0]
        return self.rule.gradients(self, known)

    def _again(self, k, saved):
        """A result as the derivative reads it: with its place on the tape, should that be differentiated in turn."""
        if type(saved) is not Saved:
            return saved
        t = off_tape(saved.get(self))
        if tls.me.grad:
            t._edge = (self, k)
        return t


def _read(value, node):
    if type(value) is Saved:
        return value.get(node)
    return [_read(v, node) for v in value] if type(value) is list else value


def off_tape(t):
    """The same elements without a place on the tape: of a class with a `__torch_dispatch__` what it makes of `detach`."""
    if dispatched.has_dispatch(type(t)):
        before, tls.me.grad = tls.me.grad, False
        try:
            found = operated(dispatched.packet_of("detach", None).default, (t,), {})
        finally:
            tls.me.grad = before
        if found is not t:
            return found
    made = make(t._storage, t._spec, t._offset, type(t))
    made.__dict__.update(t.__dict__)
    return made


def op(name, *args, **kwargs):
    """Call an operator, `name` or `name.overload`, on tensors of any class."""
    name, _, overload = name.partition(".")
    return operated(getattr(dispatched.packet_of(name, None), overload or "default"), args, kwargs)


def part(name, *args):
    """As `op`, for a part of a function that a class with a `__torch_dispatch__` sees: all parts have nodes of this kind."""
    name, _, overload = name.partition(".")
    return operated(getattr(dispatched.packet_of(name, None), overload or "default"), args, {}, True)


def operated(func, args, kwargs, always=False):
    """The result of an operator: what the classes of its operands make of it, on the tape.

    always: whether the node is of this kind where no operand is of such a class.
    """
    values = (*args, *kwargs.values()) if kwargs else args
    classes = dispatched._classes(values)
    me = tls.me
    if not classes and not (always and me.grad and any(map(edge_of, _tensors(values)))):
        return _seen(func, (), args, kwargs)
    tensors = list(_tensors(values))
    written = _written(func, args)
    edges = None
    if me.grad:
        for t in tensors:
            if "_outer_view" in t.__dict__:
                outer_views.refresh(t)
        edges = [edge_of(t) if differentiable(t._spec) else None for t in tensors]
        if written is not None and any(e is not None for e in edges):
            _check_written(written, tensors)
    if edges is None or not any(e is not None for e in edges):
        found = _below(func, classes, args, kwargs)
        if written is not None:
            outer_views.touched(written)
        elif _is_view(func):
            outer_views.mark(found, func, args, kwargs)
        return found
    STATE["made"] = True
    return _recorded(func, classes, args, kwargs, written)


def _tensors(values):
    for v in values:
        if isinstance(v, Tensor):
            yield v
        elif type(v) in (list, tuple):
            yield from (x for x in v if isinstance(x, Tensor))


def _written(func, args):
    """The tensor that an operator writes to, or None."""
    return args[0] if dispatched.writes(func) and args and isinstance(args[0], Tensor) else None


def _is_view(func):
    name = func._overloadpacket.__name__
    return name in registry.VIEWS and not name.lstrip("_").startswith("unsafe_")


def _check_written(t, tensors):
    check_inplace(t, [x for x in tensors if x is not t])
    seen = t.__dict__.get("_outer_view")
    if seen is not None and outer_views.root_of(t)._rg:
        raise view_of_leaf()


def _below(func, classes, args, kwargs):
    """The call with nothing on the tape."""
    me = tls.me
    before, me.grad = me.grad, False
    try:
        return _seen(func, classes, args, kwargs)
    finally:
        me.grad = before


def _seen(func, classes, args, kwargs):
    """What the innermost dispatch mode, the classes or the operator itself make of a call."""
    me = tls.me
    modes = me.extra.get("dispatch_modes")
    if modes:
        return modes[-1].see(func, args, kwargs)
    if classes:
        return dispatched._ask(func, classes, args, kwargs)
    before, me.overriding = me.overriding, 0  # as from C++: nobody is asked by `__torch_function__`
    try:
        return func.op(*args, **kwargs)
    finally:
        me.overriding = before


def _recorded(func, classes, args, kwargs, written):
    rule = RULE_OF[0](func, written is not None)
    try:
        given = rule.bind(args, kwargs)
    except TypeError:  # a form that no rule is written for
        rule = RULE_OF[1](func, written is not None)
        given = rule.bind(args, kwargs)
    edges, names, specs_in = [], [], {}
    for argument, value in given.items():
        members = value if type(value) in (list, tuple) else (value,)
        if any(isinstance(x, Tensor) for x in members):
            listed = members is value
            for k, x in enumerate(members):
                if isinstance(x, Tensor):
                    edges.append(edge_of(x) if differentiable(x._spec) else None)
                    names.append((argument, k if listed else None))
            specs = [x._spec if isinstance(x, Tensor) else None for x in members]
            specs_in[argument] = specs if listed else specs[0]
    reads = rule.reads([argument for edge, (argument, _) in zip(edges, names) if edge is not None])
    kept = {
        argument: _kept(given[argument], written)
        for argument in (given if reads is None else reads)
        if argument in given
    }
    found = _below(func, classes, args, kwargs)
    several = isinstance(found, (tuple, list))
    outs = found if several else (found,)
    if not any(isinstance(o, Tensor) and differentiable(o._spec) for o in outs) or rule.constant:
        return found
    label = rule.label(func)
    node = class_of(label, OuterNode)(label, tuple(edges), (), rule, names, kept, specs_in)
    if written is not None:
        outer_views.touched(written)
    results = []
    for k, o in enumerate(outs):
        if isinstance(o, Tensor) and differentiable(o._spec) and k not in rule.flat:
            if o is not written and (o._edge is not None or o._rg or any(o is t for t in _tensors(args))):
                o = off_tape(o)
            o._edge, o._rg = (node, k), False
        results.append(o)
    if _is_view(func):
        outer_views.mark(results if several else results[0], func, args, kwargs)
    node.specs = tuple(o._spec if isinstance(o, Tensor) else None for o in results)
    if reads is not None and ("out" in reads or "outs" in reads):
        node.results = [
            Saved(off_tape(o)) if isinstance(o, Tensor) and differentiable(o._spec) and k not in rule.flat else o
            for k, o in enumerate(results)
        ]
    if written is not None and dispatched.has_dispatch(type(written)):
        outer_views.written(written)
    return type(found)(results) if several else results[0]


def _kept(value, written):
    if isinstance(value, Tensor):
        if value is written:  # what it was before
            value = op("clone", value)
        return Saved(value)
    return [_kept(v, written) for v in value] if type(value) in (list, tuple) else value


outer_views.OPERATED[:] = operated, op
bridge.outer = off_tape
dispatched.OPERATED.update(whole=operated, part=part)
__all__ = ["STATE", "OuterNode", "off_tape", "op", "operated", "part"]
