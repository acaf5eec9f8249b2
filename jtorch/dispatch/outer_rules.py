"""Derivatives of operators in terms of operators, for tensors of classes with a `__torch_dispatch__` (`outer.py`).

A rule is a function of what it reads: arguments of the operator by PyTorch's names, `out` or `outs` (the results), `g` or `gs` (their
gradients, None where there is none), `specs` ({argument: its Spec}). The operators that it calls are those of PyTorch's derivative as far
as a class may be asked for them. https://docs.pytorch.org/docs/stable/notes/extending.html#extending-torch-with-a-tensor-wrapper-type
"""

import functools
import inspect
import itertools

from .. import errors
from ..autograd.derive import differentiable
from ..ops import registry
from ..ops.registry import camel
from . import dispatched
from .dispatched import OpOverload, OpOverloadPacket
from .outer import RULE_OF, op, operated

_GIVEN = frozenset(("g", "gs", "specs", "out_specs"))  # what a rule reads without anything being kept
_OF_ALL = _GIVEN | {"out", "outs"}


def binder(arguments):
    """A function of these arguments, as they stand in a `def`, that gives {argument: value}. TypeError at its call: they are others."""
    names = inspect.signature(eval(f"lambda {arguments}: None")).parameters
    return eval(f"lambda {arguments}: dict({', '.join(f'{n}={n}' for n in names)})")


class Rule:
    """The derivative of one operator.

    signature: of its arguments; by: {argument: function}; together: the function for all of them, {argument: gradient}; constant: nothing
    has a gradient; flat: results that have none; first: the node's name, where it is not the operator's.
    """

    def __init__(self, signature, /, *, together=None, constant=False, flat=(), first=None, **by):
        self.name, _, self.arguments = signature[:-1].partition("(")
        self.by, self.together = by, together
        self.constant, self.flat, self.first = constant, flat, first

    @functools.cached_property
    def bound(self):
        """(args, kwargs) -> {argument: value}, in order."""
        return binder(self.arguments)

    @functools.cached_property
    def takes(self):
        """{function: what it reads}."""
        functions = [*self.by.values(), self.together]
        return {f: tuple(inspect.signature(f).parameters) for f in functions if f is not None}

    def reads(self, wanted) -> list:
        """What has to be kept for the gradients of these arguments, in the order in which PyTorch keeps it."""
        functions = [self.by[w] for w in wanted if w in self.by] + [self.together] * (self.together is not None)
        return [n for n in dict.fromkeys(n for f in functions for n in self.takes[f]) if n not in _GIVEN]

    def bind(self, args, kwargs):
        """{argument: value}, in order."""
        return self.bound(*args, **kwargs)

    def label(self, func) -> str:
        return self.first or camel(self.name.partition(".")[0]) + "Backward0"

    def gradients(self, node, known):
        """The gradient of each edge of a node, or None."""
        wanted = {argument for edge, (argument, _) in zip(node.edges, node.names) if edge is not None}
        found = self._call(self.together, known) if self.together else {}
        for argument in sorted(wanted):  # as PyTorch's derivatives are made
            function = self.by.get(argument)
            if function is not None:
                found[argument] = self._call(function, known)
        grads = []
        for edge, (argument, k) in zip(node.edges, node.names):
            g, spec = found.get(argument) if edge is not None else None, node.specs_in[argument]
            if k is not None:
                g, spec = g and g[k], spec[k]
            grads.append(None if g is None else _fit(g, spec))
        return grads

    def _call(self, function, known):
        return function(**{n: known.get(n) for n in self.takes[function]})


class Whole(Rule):
    """The derivative of an operator that has no rule: one operator more, `<name>_backward` of the gradients and of what it was called with."""

    def __init__(self, func):
        super().__init__(f"{func._overloadpacket.__name__}(*args, **kwargs)")
        self.func = func
        found = registry.OPS.get(self.name)
        self.draws = found is not None and any(p.name == "key" and p.kind is p.KEYWORD_ONLY for p in found.params)

    def bind(self, args, kwargs):
        return dict(enumerate(args)) | kwargs

    def reads(self, wanted):
        return None  # all arguments

    def gradients(self, node, known):
        if self.draws:  # it would draw others
            raise errors.unsupported(
                f"gradients of aten::{self.name} through a __torch_dispatch__", "an operator that is given the numbers"
            )
        args = [known[k] for k in itertools.takewhile(known.__contains__, itertools.count())]
        kwargs = {k: v for k, v in known.items() if type(k) is str and k not in _OF_ALL}
        gs = [_zeros_of(s, known["gs"]) if g is None and s is not None else g for g, s in zip(known["gs"], node.specs)]
        gs = [g for g, s in zip(gs, node.specs) if s is not None and differentiable(s)]
        wanted = [name for edge, name in zip(node.edges, node.names) if edge is not None]
        found = operated(backward_of(self.func, wanted, len(gs)), (*gs, *args), kwargs)
        given = iter(found if type(found) in (tuple, list) else (found,))
        return [None if edge is None else next(given) for edge in node.edges]


def _zeros_of(spec, gs):
    return op("new_zeros", next(g for g in gs if g is not None), list(spec.shape))


# Set by `aten_backward.py`: (function, arguments, their names, gradients of the results) -> the gradients of the arguments so named.
BY_TAPE: list = [None]


def backward_of(func, wanted, n):
    """The operator that computes the gradients of an operator's arguments `wanted`, (name or place, place in a list or None) each."""

    def backward(*args, **kwargs):
        return BY_TAPE[0](func, args[n:], kwargs, wanted, args[:n])

    name = f"{func._overloadpacket.__name__}_backward"
    return OpOverload(OpOverloadPacket("aten", name, backward), func._overloadname, backward)


def rule_of(func, written) -> Rule:
    """The derivative of an operator. written: whether it is the form that writes to its operand."""
    found = func.__dict__.get("_rule")
    if found is None:
        name = func._overloadpacket.__name__
        name = name[:-1] if written else name
        found = RULES.get(f"{name}.{func._overloadname}") or RULES.get(name) or whole(func, written)
        func._rule = found
    return found


def whole(func, written) -> Rule:
    """The derivative of an operator without a rule, of the form that gives a new tensor."""
    if written:
        func = getattr(dispatched.packet_of(func._overloadpacket.__name__[:-1], None), func._overloadname)
    return Whole(func)


def _fit(g, spec):
    """A gradient as that of an operand which was expanded or cast."""
    shape, have = tuple(spec.shape), tuple(g.shape)
    if have != shape:
        extra = len(have) - len(shape)
        dims = [d for d, n in enumerate(have) if d < extra or shape[d - extra] == 1 and n != 1]
        if dims:
            g = op("sum.dim_IntList", g, dims, True)
        if extra > 0:
            g = op("view", g, list(shape))
        elif tuple(g.shape) != shape:
            g = op("expand", g, list(shape))
    if g._spec.dtype is not spec.dtype:
        if g._spec.dtype.is_complex and not spec.dtype.is_complex:
            g = op("real", g)
        g = op("_to_copy", g, dtype=spec.dtype)
    return g


RULES: dict = {}  # filled by `outer_elements.py` and `outer_moves.py`


def rule(signature, /, **given):
    """Write down a derivative, with the arguments of Rule."""
    made = Rule(signature, **given)
    RULES[made.name] = made


RULE_OF[:] = rule_of, whole
