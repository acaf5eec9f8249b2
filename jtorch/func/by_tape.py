"""grad and vjp by the tape: outside of all transformations nothing has to be traced, since the tape records the same.

The function gets tensors that share the values of the caller's, each with a node between the two, so that what it is differentiated
by is this use of them and no other. Values are known inside, hooks run, and what it uses besides its arguments is on the tape as
always. Where a gradient goes on beyond these nodes (an argument that needs one, a parameter of a module), it is recorded too.
"""

import contextlib

import jax

from ..autograd import entry
from ..autograd.custom import set_tangent, tangent_of
from ..autograd.derive import differentiable
from ..autograd.graph import disable_saved_tensors_hooks
from ..autograd.levels import Taping, levels
from ..autograd.node import Node, PythonNode
from ..autograd.whole import Undo
from ..core.lanes import ByTracing
from ..core.record import tls
from ..core.spec import Spec
from ..dispatch.dispatched import dispatches
from ..dispatch.outer import off_tape
from ..tensor import Tensor, edge_of, value_of, wrap
from .hooked import SAVING
from .trees import flatten, unflatten


def possible(tensors) -> bool:
    """Whether a call with these tensors can go by the tape."""
    if any(map(dispatches, tensors)):
        return True  # a class sees operators, and there are none in a trace
    dual = tls.me.extra.get("dual")
    return (
        not levels()
        and (dual is None or dual.of_func)
        and not any(isinstance(t._storage.value, jax.core.Tracer) for t in tensors)
    )


class Attempt(Undo):
    """Around what goes without tracing: what it did is undone if it turns out that it has to be traced.

    anything: any error says so.
    """

    __slots__ = ("given_up",)

    def __init__(self, anything=False):
        self.given_up = (ByTracing, Exception) if anything else ByTracing

    def __exit__(self, failed, *exc):
        super().__exit__(failed)
        of_values = tls.me.extra.get("of_values", False)  # where the function is traced they are not known
        if self.before is None:
            tls.me.extra.pop("of_values", None)
        if failed is None or of_values or not issubclass(failed, self.given_up):
            return False
        self.all()
        return True


class _Use(PythonNode):
    """A tensor's use as an argument."""

    __slots__ = ("here",)
    _of_leaf = True  # the tensor is a leaf to whoever asks

    def __init__(self, t, edge, here):
        super().__init__("UseBackward", (edge,), (t._spec,))
        self.here = here

    def apply(self, *grads):
        return grads


class Forward:
    """A function called with tensors of its own. leads: whether the results need gradients beyond those asked for, which a pullback
    gives that is called where there are gradients, though the function ran without (outer).

    uses: the tensors that it is differentiated by. out: what it gave.
    """

    __slots__ = ("uses", "out", "leads", "tensors", "versions", "outer", "here")

    def __init__(self, func, split):
        me = tls.me
        self.outer = me.grad
        arguments = split.arguments
        wanted = set(split.flat)
        self.here = Taping()
        with inside(self.here):
            self.tensors = [self._use(t, k in wanted) for k, t in enumerate(arguments.tensors)]
            self.uses = [self.tensors[k] for k in split.flat]
            self.versions = [(t._storage, t._storage.version) for t in self.tensors]
            self.out = arguments.run(func, self.tensors)
        if any(t._storage.version != self.here.birth for t in self.uses):
            raise ByTracing  # PyTorch refuses some writes to what is differentiated by

    def _use(self, t, wanted):
        spec = t._spec
        if t._storage.spec is not spec:
            spec = Spec.dense(tuple(spec.shape), spec.dtype, spec.device)
        made = off_tape(t) if dispatches(t) else wrap(value_of(t), spec)
        edge = edge_of(t) if (self.outer or wanted) and differentiable(spec) else None
        if wanted or edge is not None:
            made._edge = (_Use(made, edge, self.here), 0)
        tangent = tangent_of(t)
        if tangent is not None:
            set_tangent(made, tangent)
        return made

    def look(self, leaves):
        """Find out whether what these results depend on needs gradients elsewhere."""
        self.leads = _leads([edge_of(x) for x in leaves if isinstance(x, Tensor)], self.here)
        if self.leads and self.here.hooked:
            raise ByTracing  # hooks are of one level of gradients, and the tape has one for all

    def outside(self, t):
        """A result as it is outside: it needs a gradient if there is more to differentiate."""
        if not isinstance(t, Tensor) or edge_of(t) is None:
            return t
        if t._storage.version < self.here.birth if t._rg else self.outer and self.leads:
            return t  # a leaf from outside, or what depends on one
        if dispatches(t):
            return off_tape(t)
        made = wrap(value_of(t), _plain(t._spec))
        tangent = tangent_of(t)
        if tangent is not None:
            set_tangent(made, self.outside(tangent))
        return made

    def everywhere(self, out):
        """The same of all tensors of a result."""
        leaves, tree = flatten(out)
        return unflatten(tree, [self.outside(x) for x in leaves])

    def write_back(self, originals):
        """Give the caller's tensors what the function has written to its own."""
        for t, (storage, version), original in zip(self.tensors, self.versions, originals):
            times = t._storage.version - version if t._storage is storage else 0
            if times:
                original.copy_(self.outside(t))
                original._storage.version += times - 1


def _plain(spec):
    return spec if spec.contiguous else Spec.dense(tuple(spec.shape), spec.dtype, spec.device)


def _leads(edges, here):
    """Whether a leaf can be reached on the tape, or an argument of a function around."""
    around, outer = set(), here.around
    while outer is not None:
        around.add(outer)
        outer = outer.around
    stack, seen = [e for e in edges if e is not None], set()
    while stack:
        target, _ = stack.pop()
        if not isinstance(target, Node):
            if target._storage.version < here.birth:
                return True
        elif target not in seen:
            if type(target) is _Use and target.here in around:
                return True
            seen.add(target)
            stack += [e for e in target.edges if e is not None]
    return False


@contextlib.contextmanager
def inside(here):
    """In the function of a transformation."""
    me = tls.me
    before, me.grad = me.grad, True
    try:
        with disable_saved_tensors_hooks(SAVING), here:
            yield
    finally:
        me.grad = before


def gradients(outs, forward, grads, leads, keep=False):
    """The gradients by the uses, zeros where there is none."""
    there = [k for k, o in enumerate(outs) if edge_of(o) is not None]
    uses = forward.uses
    found = [None] * len(uses)
    if there:
        grads = None if grads is None else [grads[k] for k in there]
        with inside(forward.here):
            found = entry.grad([outs[k] for k in there], uses, grads, keep or leads, leads, allow_unused=True)
    return [t.new_zeros(t.shape) if g is None else g for g, t in zip(found, uses)]
