"""Backward passes of graphs with tensors of classes that have a `__torch_dispatch__`: what travels is tensors."""

import functools
import re
from types import SimpleNamespace

from ..core.record import tls
from ..core.storage import Storage
from ..dispatch import outer
from ..dispatch.dispatched import OpOverload, OpOverloadPacket, has_dispatch, overload_of, schema_form
from ..dispatch.outer_rules import RULES
from ..errors_autograd import freed
from ..tensor import make
from . import engine
from .derive import Binding, differentiable
from .derive_views import ViewMap
from .node import bridge
from .saved import plain


class TensorRun(engine.Run):
    """A backward pass whose gradients are tensors, perhaps of such a class."""

    __slots__ = ()

    def tensor(self, value, spec):
        return value

    def untensor(self, tensor):
        return tensor

    def add(self, a, b, spec):
        return self._quietly(outer.op, "add.Tensor", a, b)

    def _quietly(self, call, *args):
        """A call within the derivative: on the tape only with create_graph."""
        me = tls.me
        before, me.grad = me.grad, self.create_graph
        try:
            return call(*args)
        finally:
            me.grad = before

    def accumulate_in(self, leaf, value):
        self._quietly(self._accumulate, leaf, value)

    def _accumulate(self, leaf, value):
        before = leaf._grad
        if not (self.create_graph or has_dispatch(type(value)) or has_dispatch(type(before))):
            leaf._accumulate(bridge.unwrap(value)[0], False)
        elif before is None:
            leaf._grad = value if self.create_graph else outer.off_tape(value)
        elif self.create_graph or has_dispatch(type(value)) and not has_dispatch(type(before)):
            leaf._grad = outer.op("add.Tensor", before, value)
        else:
            outer.op("add_.Tensor", before, value)

    def run_node(self, node, grads):
        """An op's node, whose derivative is a program: operators, where a class or a mode sees them."""
        bwd = node.bwd
        present = tuple(g is not None for g in grads)
        there = [g for g in grads if g is not None]
        seen = "dispatch_modes" in tls.me.extra or any(has_dispatch(type(g)) for g in there)
        if (
            seen
            and not (node.hooks or self.create_graph)
            and type(node.saved) is tuple
            and (found := self._quietly(by_rule, node, grads)) is not None
        ):
            for edge, g, spec in zip(node.edges, found, bwd.forward.operands):
                if edge is not None:
                    self.skip(edge) if g is None else self.give(edge, g, spec)
            return
        plan, passed = bwd.plan(present)
        outs = () if plan is None else self._quietly(_step, node, plan, there, seen)
        if node.hooks:
            outs, passed, there = self.after(node, bwd, outs, passed, there, grads)
        for i, p in zip(bwd.positions, passed):
            self.give(node.edges[i], outs[p] if p >= 0 else there[~p], bwd.forward.operands[i])


def _step(node, plan, there, seen):
    """The results of a node's plan for the gradients that came. seen: whether it is one operator, which a class or a mode is asked for."""
    n = len(there)

    def derivative(*tensors):
        values, edges = zip(*map(bridge.unwrap, (*tensors[n:], *tensors[:n])))
        if not tls.me.grad:
            edges = [None] * len(edges)
        edges = [e if differentiable(s) else None for e, s in zip(edges, plan.operands)]
        made = zip(*engine.apply_plan(plan, values, edges, node.numbers), plan.specs)
        outs = [bridge.wrap(value, plain(spec), edge) for value, edge, spec in made]
        return outs[0] if len(outs) == 1 else tuple(outs)

    given = *there, *_saved(node, there)
    if seen:
        func = OpOverload(OpOverloadPacket("aten", _name_of(node.bwd.name), derivative), "default", derivative)
        found = outer.operated(func, given, {})
    else:
        found = derivative(*given)
    return found if isinstance(found, (tuple, list)) else (found,)


@functools.cache
def _name_of(node):
    """The operator that stands for a node's derivative: select_backward of SelectBackward0."""
    return _CAPITAL.sub(lambda m: "_" + m[0].lower(), node.rstrip("0123456789")).lstrip("_")


_CAPITAL = re.compile("[A-Z]")


def by_rule(node, grads):
    """The gradients of a node's operands by the operators that PyTorch's derivative calls, where they are written down; else None."""
    bwd, binding = node.bwd, node.bwd.forward.extra
    if type(binding) is ViewMap and binding.call is not None:
        view, statics = binding.call
        return _by_rule_of(node, grads, view, [_empty(bwd.forward.operands[0]), *statics], {}, {}, ())
    if type(binding) is not Binding:
        return None
    saved = _saved(node, [g for g in grads if g is not None])
    operands = dict(zip(bwd.save_in, saved))
    outs = dict(zip(bwd.save_out, saved[len(bwd.save_in) :]))
    lacking = []

    def lack(stand_in):
        lacking.append(stand_in)
        return stand_in

    def argument(slot):
        kind, what, *_ = slot
        if kind == "o":
            if what not in operands:
                operands[what] = lack(_empty(bwd.forward.operands[what]))
            return operands[what]
        if kind == "n":
            return node.numbers[what] if node.numbers else lack(float("nan"))
        return [argument(s) for s in what] if kind == "l" else what

    values = [argument(slot) for slot in binding.slots]
    return _by_rule_of(node, grads, binding.op, values, operands, outs, lacking)


def _by_rule_of(node, grads, op, values, operands, outs, lacking):
    """See `by_rule`. op, values: the operation and its arguments; operands: {position: tensor}; lacking: those of unknown value."""
    bwd = node.bwd
    func = overload_of(op, values)
    name = func._overloadpacket.__name__
    rule = RULES.get(f"{name}.{func._overloadname}") or RULES.get(name)
    try:
        given = None if rule is None else rule.bind(*schema_form(op, values))
    except TypeError:  # a form of the op table's own
        given = None
    if given is None:
        return None
    places = {id(x): (n, k) for n, v in given.items() for k, x in (enumerate(v) if type(v) is list else [(None, v)])}
    operands = operands or {0: values[0]}
    names = [places.get(id(operands.get(i)), (None, None)) for i in range(len(node.edges))]
    reads = set(rule.reads([n for (n, _), edge in zip(names, node.edges) if edge is not None]))
    unknown = set(map(id, lacking))
    if any(
        id(x) in unknown for n in reads & given.keys() for x in (given[n] if type(given[n]) is list else [given[n]])
    ):
        return None
    if not reads.isdisjoint(("out", "outs")) and len(outs) < bwd.forward.public:
        return None
    known = {n: v for n, v in given.items() if n in reads}
    known.update(g=grads[0], gs=grads, out=outs.get(0), outs=outs, out_specs=bwd.specs)
    spec_of = {id(t): bwd.forward.operands[i] for i, t in operands.items()}
    known["specs"] = {
        n: [spec_of.get(id(x)) for x in v] if type(v) is list else spec_of.get(id(v)) for n, v in given.items()
    }
    return rule.gradients(SimpleNamespace(edges=node.edges, names=names, specs_in=known["specs"]), known)


def _empty(spec):
    """What stands for an operand that was not saved."""
    return make(Storage(None, spec), spec)


def _saved(node, there):
    """What a node has saved, as tensors with their places on the tape."""
    bwd, saved = node.bwd, node.saved
    if saved is None:
        raise freed()
    for storage, version in node.guards:
        if storage.version != version:
            raise engine.modified(node, storage, version)
    if type(saved) is not tuple:
        saved = saved.unpack([(bridge.unwrap(g)[0], g._spec) for g in there if not has_dispatch(type(g))])
    specs = [bwd.forward.operands[i] for i in bwd.save_in] + [bwd.specs[k] for k in bwd.save_out]
    edges = [node.edges[i] for i in bwd.save_in] + [(node, k) for k in bwd.save_out]
    kept = [e if e is not None and differentiable(s) and tls.me.grad else None for e, s in zip(edges, specs)]
    return [bridge.wrap(v, plain(s), e) for v, s, e in zip(saved, specs, kept)]


def concerns(roots, started) -> bool:
    """Whether a pass that starts with these gradients meets such tensors."""
    if any(
        has_dispatch(type(x)) or isinstance(x, outer.OuterNode) for x in (*started, *(target for target, _ in roots))
    ):
        return True
    seen = engine.Run(False, True, False)
    order = seen.collect(roots)
    return any(isinstance(node, outer.OuterNode) for node in order) or any(
        has_dispatch(type(t)) for t in seen.leaf_counts
    )


def backward(roots, started, keep, create_graph, accumulate=True, inputs=None):
    """As `engine.backward`, of tensors and for tensors: what is captured for `inputs`, or None."""
    run = TensorRun(create_graph, keep, accumulate)
    engine.through(run, roots, started, inputs)
    return None if accumulate else [run.captures[e] for e in inputs]


__all__ = ["backward", "concerns"]
