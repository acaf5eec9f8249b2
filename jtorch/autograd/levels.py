"""The transformations that run now (grad, jvp, vmap nested in each other) and what their borders do to grad mode."""

import contextlib
import functools
import itertools

import jax
from jax.interpreters import ad, batching, mlir

from .. import errors_func
from ..core import extend, lanes
from ..core import storage as storages
from ..core.lanes import ByTracing, Lane
from ..core.record import tls
from ..creation import from_jax
from ..dispatch import slow
from ..tensor import CONSTANTS, VERSION_BITS, Tensor, make, value_of
from . import whole
from .node import Node, _sequence


def array_of(t):
    """The array (or tracer) of a tensor."""
    return storages.realise(value_of(t))


# --- no_grad and detach where JAX differentiates ------------------------------------------------------------------------


@functools.cache
def _constant():
    """The primitive that is the identity for forward mode and a constant for reverse mode, at every level.

    What no_grad means to PyTorch's transformations (`jax.lax.stop_gradient` stops both).
    """
    made = extend.Primitive("no_grad")
    made.def_impl(lambda x: x)
    made.def_abstract_eval(lambda x: x)
    ad.primitive_jvps[made] = lambda primals, tangents: (
        made.bind(*primals),
        tangents[0] if type(tangents[0]) is ad.Zero else made.bind(*tangents),
    )
    ad.primitive_transposes[made] = lambda cotangent, x: [ad.Zero(x.aval)]
    batching.primitive_batchers[made] = lambda args, dims: (made.bind(*args), *dims)
    mlir.register_lowering(made, lambda ctx, x: [x])
    return made


def constant(array):
    """An array that no reverse mode differentiates."""
    return _constant().bind(array) if isinstance(array, jax.core.Tracer) else array


def stopped(t):
    """`detach` where JAX differentiates: no mode goes through."""
    array = array_of(t)
    if isinstance(array, jax.core.Tracer):
        array = jax.lax.stop_gradient(array)
        whole.watch(array)
        return from_jax(array)
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
    if not isinstance(array, jax.core.Tracer):
        return r
    array = _constant().bind(array)
    whole.watch(array)
    return from_jax(array)


# --- the levels ---------------------------------------------------------------------------------------------------------


class Level:
    """One transformation: its kind ("vjp", "jvp" or "vmap"), and what held outside of it.

    For "vmap" also its trace, size and what it thinks of random numbers. birth: the version of storages made inside.
    start: the sequence number of what came before. hooked: whether hooks have been put somewhere; None where that cannot be.
    given: references to the tensors that hooks got. of_tape: whether it is the tape around the outermost that differentiates here.
    """

    __slots__ = (
        "kind", "special", "grad", "born", "birth", "start", "hooked", "given", "trace", "size", "randomness", "of_tape",
    )  # fmt: skip

    def __init__(self, kind, me, size=None, randomness=None, hooked=None, of_tape=False):
        self.kind, self.special, self.grad, self.born = kind, me.special, me.grad, me.born
        self.birth = next(_levels) << VERSION_BITS
        self.start = next(_sequence)
        self.hooked, self.given = hooked, []
        self.trace = extend.find_top_trace(()) if kind == "vmap" else None
        self.size, self.randomness, self.of_tape = size, randomness, of_tape

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
            whole.watch(t._storage.value)
            if around:
                around[-1].given.append(reference)


def ask_tracing():
    """Called by what works otherwise inside transformations. Raises ByTracing where one goes without tracing."""
    if "taping" in tls.me.extra or "lanes" in tls.me.extra:
        raise ByTracing


def note_hook(edge):
    """A hook is being put on a tensor with this edge. Raises ByTracing inside a transformation to which it matters."""
    extra = tls.me.extra
    if "lanes" in extra:
        raise ByTracing
    if "taping" in extra:
        extra["taping"].hook(edge)


CONSTANTS["ask_tracing"] = ask_tracing
CONSTANTS["note_hook"] = note_hook


class Taping:
    """A transformation by the tape alone: as outside of transformations, but for what PyTorch refuses in them.

    birth: the version of storages made inside. start: the sequence number of what came before. hooked: whether there are hooks inside.
    """

    __slots__ = ("birth", "start", "hooked", "around", "born")

    def __init__(self):
        self.start = next(_sequence)
        self.hooked = False

    def __enter__(self):
        me = tls.me
        self.around, self.born = me.extra.get("taping"), me.born
        me.extra["taping"] = self
        self.birth = me.born = next(_levels) << VERSION_BITS
        return self

    def __exit__(self, *exc):
        me = tls.me
        me.born = self.born
        me.put("taping", self.around)

    def hook(self, edge):
        """A hook is being put somewhere. Raises ByTracing where it is not of this transformation."""
        if edge is None or not isinstance(edge[0], Node) or edge[0].sequence < self.start:
            raise ByTracing
        self.hooked = True


lanes.inside = lambda: "lanes" in tls.me.extra


class Lanes:
    """A vmap by lanes. birth: the version of storages made inside. start: the sequence number of what came before."""

    __slots__ = ("level", "size", "birth", "start", "outermost", "before", "born")

    def __init__(self, size):
        self.level, self.size = next(_levels), size
        self.start = next(_sequence)

    def __enter__(self):
        me = tls.me
        extra = me.extra
        self.before = {name: extra.get(name) for name in ("lanes", "keys", "vmap_random")}
        outer = extra.get("lanes")
        self.outermost = self if outer is None else outer.outermost
        extra.update(lanes=self, keys=_no_numbers, vmap_random=_NoNumbers)
        self.born = me.born
        self.birth = me.born = next(_levels) << VERSION_BITS
        return self

    def __exit__(self, *exc):
        me = tls.me
        me.born = self.born
        for name, value in self.before.items():
            me.put(name, value)


def _no_numbers(*args):
    raise ByTracing


class _NoNumbers:
    """Random numbers inside a vmap are jax's business."""

    host = allow = staticmethod(_no_numbers)


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
    extra = tls.me.extra
    here = extra.get("taping")
    if here is not None and storage.version < here.birth and ("statistics" not in extra or lanes.is_traced(value)):
        raise ByTracing
    vmap = extra.get("lanes")
    if vmap is not None and storage.version < vmap.outermost.birth:
        if type(value) is Lane:
            raise ByTracing
        whole.writes(storage, value)
    around = levels()
    for x in reversed(around):
        if storage.version >= x.birth:
            break
        if x.kind == "vmap":
            value = x.own(value)
        elif not x.of_tape or lanes.is_traced(value):
            raise errors_func.captured_write(name)
    if around and storage.version < around[0].birth:
        whole.writes(storage, value)
    return value


CONSTANTS["own"] = own


def refuse_nested_forward():
    """Forward mode of func and of forward_ad do not nest: PyTorch's rule."""
    dual = tls.me.extra.get("dual")
    if dual is not None and not dual.of_func:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
