"""The transformations that run now (grad, jvp, vmap nested in each other) and what their borders do to grad mode."""

import contextlib
import itertools

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from .. import errors_func
from ..core import storage as storages
from ..core.record import tls
from ..core.traces import find_top_trace
from ..creation import from_jax
from ..dispatch import slow
from ..tensor import CONSTANTS, VERSION_BITS, Tensor, make, value_of
from .node import _sequence


def array_of(t):
    """The array (or tracer) of a tensor."""
    return storages.realise(value_of(t))


# --- no_grad and detach where JAX differentiates ------------------------------------------------------------------------

# The identity for forward mode, a constant for reverse mode, at every level: what no_grad means to PyTorch's transformations.
# (jax.lax.stop_gradient stops both.)
_constant = Primitive("no_grad")
_constant.def_impl(lambda x: x)
_constant.def_abstract_eval(lambda x: x)
ad.primitive_jvps[_constant] = lambda primals, tangents: (
    _constant.bind(*primals),
    tangents[0] if type(tangents[0]) is ad.Zero else _constant.bind(*tangents),
)
ad.primitive_transposes[_constant] = lambda cotangent, x: [ad.Zero(x.aval)]
batching.primitive_batchers[_constant] = lambda args, dims: (_constant.bind(*args), *dims)
mlir.register_lowering(_constant, lambda ctx, x: [x])


def constant(array):
    """An array that no reverse mode differentiates."""
    return _constant.bind(array) if isinstance(array, jax.core.Tracer) else array


def stopped(t):
    """`detach` where JAX differentiates: no mode goes through."""
    array = array_of(t)
    if isinstance(array, jax.core.Tracer):
        return from_jax(jax.lax.stop_gradient(array))
    return make(t._storage, t._spec, t._offset)


CONSTANTS["stopped"] = stopped


class _Stopping:
    """no_grad inside a differentiated function: what is computed there is a constant."""

    def __init__(self, outer):
        self.outer = outer

    def special(self, op, args, out=None, inplace=False):
        me = tls.me
        if self.outer is not None:
            handled, result = self.outer(op, args, out, inplace)
            if handled:
                return True, result
        if me.grad or inplace or out is not None:
            return False, None
        here, me.special = me.special, None
        try:
            result = slow(op, args)
        finally:
            me.special = here
        return True, jax.tree.map(_constant_tensor, result, is_leaf=lambda r: isinstance(r, Tensor))


def _constant_tensor(r):
    if not isinstance(r, Tensor):
        return r
    array = array_of(r)
    return from_jax(_constant.bind(array)) if isinstance(array, jax.core.Tracer) else r


# --- the levels ---------------------------------------------------------------------------------------------------------


class Level:
    """One transformation: its kind ("vjp", "jvp" or "vmap"), and what held outside of it.

    For "vmap" also its trace, size and what it thinks of random numbers. birth: the version of storages made inside.
    start: the sequence number of what came before. hooked: whether hooks have been put somewhere; None where that cannot be.
    given: references to the tensors that hooks got.
    """

    __slots__ = (
        "kind", "special", "grad", "born", "birth", "start", "hooked", "given", "trace", "size", "randomness",
    )  # fmt: skip

    def __init__(self, kind, me, size=None, randomness=None, hooked=None):
        self.kind, self.special, self.grad, self.born = kind, me.special, me.grad, me.born
        self.birth = next(_levels) << VERSION_BITS
        self.start = next(_sequence)
        self.hooked, self.given = hooked, []
        self.trace = find_top_trace(()) if kind == "vmap" else None
        self.size, self.randomness = size, randomness

    def own(self, value):
        """A value as it is outside of this vmap, which must not have made slices of it."""
        if isinstance(value, jax.core.Tracer):
            value, dim = self.trace.to_batch_info(value)
            if dim is not None:
                raise errors_func.batched_write()
        return value

    def sliced(self, value) -> bool:
        """Whether a value differs from slice to slice of this vmap."""
        return isinstance(value, jax.core.Tracer) and self.trace.to_batch_info(value)[1] is not None


_levels = itertools.count(1)


def levels():
    """The transformations around what runs now, outermost first."""
    return tls.me.extra.get("transforms", ())


@contextlib.contextmanager
def level(kind, **about):
    """One more transformation around the code inside."""
    me = tls.me
    here = Level(kind, me, **about)
    special = _Stopping(me.special).special if kind == "vjp" else me.special
    with _within((*levels(), here), special, kind == "vjp" or me.grad, here.birth):
        yield here
    if here.given:
        _settle(here.given)


def _settle(references):
    """Give tensors that outlive a level the values that they have outside of it."""
    around = levels()
    for reference in references:
        t = reference()
        if t is not None:
            t._edge = None
            t._storage.value = getattr(t._storage.value, "primal", t._storage.value)
            if around:
                around[-1].given.append(reference)


@contextlib.contextmanager
def without(gone):
    """The code inside as seen from outside of one of the levels."""
    me = tls.me
    around = levels()
    if gone not in around:  # a pullback that is called after its level has ended
        yield
        return
    inner = around[around.index(gone) + 1 :]
    special = me.special if any(x.kind == "vjp" for x in inner) else gone.special
    with _within(
        tuple(x for x in around if x is not gone), special, gone.grad, inner[-1].birth if inner else gone.born
    ):
        yield


@contextlib.contextmanager
def _within(around, special, grad, born):
    me = tls.me
    extra = me.extra
    before = extra.get("transforms"), me.special, me.grad, me.born
    _set(extra, around)
    me.special, me.grad, me.born = special, grad, born
    try:
        yield
    finally:
        around, me.special, me.grad, me.born = before
        _set(extra, around)


def _set(extra, around):
    if around:
        extra["transforms"] = around
    else:
        extra.pop("transforms", None)


def own(storage, value, name="copy_"):
    """The value that may be written to a storage inside the levels: PyTorch's rules for what was made outside of them."""
    for x in reversed(levels()):
        if storage.version >= x.birth:
            break
        if x.kind != "vmap":
            raise errors_func.captured_write(name)
        value = x.own(value)
    return value


CONSTANTS["own"] = own


def refuse_nested_forward():
    """Forward mode of func and of forward_ad do not nest: PyTorch's rule."""
    if tls.me.extra.get("dual") is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
