"""torch.autograd.Function: derivatives that users write."""

import functools
import inspect

from .. import errors
from ..core.record import tls
from ..dispatch import check_inplace, zeros_value
from ..dispatch.write import copy_slices
from ..errors_autograd import (
    dirty_no_input,
    dirty_view_among_several,
    freed,
    once,
    seen_already,
)
from ..tensor import Tensor, edge_of, make, seen_now, wrap
from . import custom
from .derive import differentiable
from .engine import queue_callback
from .levels import ask_tracing
from .mode import no_grad
from .node import PythonNode, class_of
from .saved import SavedNone, SavedTensor, check_saved, plain


class FunctionCtx:
    """What `forward` leaves for `backward`. It is the node of the tape itself."""

    def save_for_backward(self, *tensors):
        """Keep tensors for backward; afterwards they are in `saved_tensors`."""
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        """Keep tensors for `jvp`."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *args):
        """Say which inputs `forward` has written to."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args):
        """Say which results have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value):
        """Whether missing gradients arrive in `backward` as zeros (the default) or as None."""
        self.materialize_grads = value


_SEEN = ((),)  # what a node keeps after its only look at saved_tensors


class _Context(PythonNode, FunctionCtx):
    """The node of one application of a Function."""

    def __init__(self, cls, edges, needs):
        super().__init__(cls.__name__ + "Backward", edges, ())
        self.function = cls
        self.needs_input_grad = needs
        self.to_save = None
        self.dirty_tensors = ()
        self.non_differentiable = ()
        self.materialize_grads = True
        self.kept = ()
        self.arguments = ()
        self.differentiable = ()

    def __repr__(self):
        return f"<torch.autograd.function.{type(self).__name__} object at {id(self):#x}>"

    def keep(self, results, records):
        """Turn what save_for_backward got into entries guarded by versions."""
        if self.to_save is None:
            return
        kept = []
        hooks = tls.me.extra.get("saved_hooks") if records else None
        for k, t in enumerate(self.to_save):
            if t is None:
                kept.append(None)
            elif not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {k} is of type {type(t).__name__}"
                )
            else:
                number = next((i for i, r in enumerate(results) if r is t), None) if records else None
                kept.append(SavedTensor(t, number, hooks))
        self.kept = tuple(kept)
        self.to_save = None

    @property
    def saved_tensors(self):
        """What save_for_backward kept."""
        if self.to_save is not None:
            return tuple(self.to_save)
        if self.kept is _SEEN:
            raise seen_already()
        if self.kept is None:
            raise freed()
        got = tuple(None if s is None else s.get(self) for s in self.kept)
        if got and self.function.clear_saved_tensors_on_access:
            self.kept = _SEEN
        return got

    @property
    def saved_variables(self):
        """The old name of saved_tensors."""
        errors.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self):
        if self.kept is None:
            raise freed()
        return tuple(SavedNone() if s is None else s for s in self.kept)

    def release(self):
        if self.kept:
            self.kept = None

    def apply(self, *grads):
        grads = list(grads)
        if self.materialize_grads:
            for k, g in enumerate(grads):
                if g is None and self.specs[k] is not None:
                    grads[k] = make_zeros(self.specs[k])
        backward = self.function.backward
        if self.function.vjp is not Function.vjp:
            if backward is not Function.backward:
                raise RuntimeError(
                    "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."
                )
            backward = self.function.vjp
        got = backward(self, *grads)
        return self.fitted(got if isinstance(got, tuple) else (got,))

    def fitted(self, got):
        """The gradients of the tensor arguments out of what `backward` returned, checked."""
        n = len(self.arguments)
        if len(got) > n and all(g is None for g in got[n:]):
            got = got[:n]
        if len(got) != n:
            raise RuntimeError(
                f"function {self.label} returned an incorrect number of gradients (expected {n}, got {len(got)})"
            )
        result = []
        for k, (g, spec) in enumerate(zip(got, self.arguments)):
            if spec is None:
                if g is not None:
                    raise RuntimeError(
                        f"function {self.label} returned a gradient different than None at position {k + 1}, but the "
                        "corresponding forward input was not a Variable"
                    )
            else:
                result.append(self.checked(len(result), g, spec))
        return result

    def checked(self, k, g, spec):
        if g is None:
            return None
        if not isinstance(g, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(g).__name__})")
        if self.edges[k] is None:
            return None
        if not g.dtype.is_floating_point and g.dtype.is_complex != spec.dtype.is_complex:
            raise RuntimeError(
                "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true, but got false.  "
                "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
            )
        if tuple(g.shape) != tuple(spec.shape):
            if not _expandable(tuple(spec.shape), tuple(g.shape)):
                raise RuntimeError(
                    f"Function {self.label} returned an invalid gradient at index {k} - got {list(g.shape)} but expected shape "
                    f"compatible with {list(spec.shape)}"
                )
            g = sum_to_size(g, spec)
        return g if g.dtype is spec.dtype else g.to(spec.dtype)


def sum_to_size(g, spec):
    extra = g.ndim - spec.ndim
    if extra:
        g = g.sum(tuple(range(extra)))
    dims = tuple(d for d, n in enumerate(spec.shape) if n == 1 and g.shape[d] != 1)
    return g.sum(dims, keepdim=True) if dims else g


def _expandable(shape, desired):
    return len(shape) <= len(desired) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(desired)))


def make_zeros(spec):
    spec = plain(spec)
    return wrap(zeros_value(spec), spec)


class FunctionMeta(type):
    """Gives every Function the class of its nodes, under its own name."""

    @property
    def _backward_cls(cls):
        return class_of(cls.__name__ + "Backward", _Context)


class Function(metaclass=FunctionMeta):
    """Base of functions with a derivative of their own.

    A subclass defines static methods `forward(ctx, ...)` and `backward(ctx, *grads)`, or `forward(...)` with
    `setup_context(ctx, inputs, output)`; for forward mode also `jvp(ctx, *tangents)`. Call it as `F.apply(...)`.
    """

    generate_vmap_rule = False
    clear_saved_tensors_on_access = (
        False  # let go of saved tensors with the first look at them, which is then the only one
    )

    def __init__(self, *args, **kwargs):
        errors.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them "
            "on the class itself. Instantiating an autograd function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
            "with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args, **kwargs):
        """The value. Must be overridden."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Fill `ctx` where `forward` does not take it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """The gradients of the arguments from those of the results."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward "
            "mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """The tangents of the results from those of the arguments."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info, in_dims, *args):
        """Accepted for PyTorch's sake: a Function is vmapped through the ops that it calls."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args, **kwargs):
        """Compute, and put a node on the tape that calls `backward`."""
        if cls.setup_context is not Function.setup_context:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            if bound.kwargs:
                raise custom.by_keyword_alone(bound.kwargs)
            args = bound.args
        elif kwargs:
            args = _positional(cls.forward, args, kwargs)
        me = tls.me
        if me.extra:
            ask_tracing()
        if me.extra.get("transforms"):
            return custom.apply(cls, args, Function)
        tensors = [a for a in args if isinstance(a, Tensor)]
        edges = [edge_of(t) if differentiable(t._spec) else None for t in tensors]
        records = me.grad and any(e is not None for e in edges)
        ctx, output = run_forward(cls, args, edges, records)
        if me.extra.get("dual") and any(custom.tangent_of(t) is not None for t in tensors):
            custom.push(cls, ctx, args, output)
        return output


def _positional(forward, args, kwargs):
    """The arguments of a `forward(ctx, ...)` with those given by name in their places: there are only such arguments."""
    signature = inspect.signature(forward)
    try:
        bound = signature.bind(None, *args, **kwargs)
    except TypeError:
        if kwargs.keys() <= signature.parameters.keys():
            forward(None, *args, **kwargs)  # says itself what it lacks
        unknown = [name for name in kwargs if name not in signature.parameters]
    else:
        unknown = list(bound.kwargs)
    if unknown:
        raise TypeError(f"forward() got an unexpected keyword argument '{unknown[0]}'")
    return bound.args[1:]


def run_forward(cls, args, edges, records):
    """(context, output) of one application."""
    given = iter(edges)
    needs = tuple(isinstance(a, Tensor) and next(given, None) is not None for a in args)
    ctx = cls._backward_cls(cls, tuple(edges) if records else (None,) * len(edges), needs)
    ctx.arguments = tuple(a._spec if isinstance(a, Tensor) else None for a in args)
    me = tls.me
    hooks, special = me.extra.pop("saved_hooks", None), me.special
    if me.extra.get("dual") is not None:
        me.special = me.extra["dual"].before
    try:
        with no_grad():
            if cls.setup_context is not Function.setup_context:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
                check_saved(ctx, args, output)
            else:
                output = cls.forward(ctx, *args)
    finally:
        me.special = special
        if hooks is not None:
            me.extra["saved_hooks"] = hooks
    return ctx, _finish(ctx, output, [a for a in args if isinstance(a, Tensor)], records)


def _finish(ctx, output, inputs, records):
    single = not isinstance(output, tuple)
    outs = (output,) if single else output
    dirty = ctx.dirty_tensors
    if any(not any(d is o for o in outs) for d in dirty):
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
            "inplace must all be outputs of the Function."
        )
    _check_dirty(outs, inputs, dirty, records)
    results = [_result(o, inputs, dirty, ctx.non_differentiable) for o in outs]
    ctx.specs = tuple(r._spec if isinstance(r, Tensor) else None for r in results)
    ctx.differentiable = tuple(
        isinstance(r, Tensor) and differentiable(r._spec) and not any(o is f for f in ctx.non_differentiable)
        for o, r in zip(outs, results)
    )
    if records:
        for k, (o, r) in enumerate(zip(outs, results)):
            if ctx.differentiable[k]:
                _attach(ctx, k, r, any(o is d for d in dirty))
    ctx.keep(results, records)
    return results[0] if single else tuple(results)


def _check_dirty(outs, inputs, dirty, records):
    """What `mark_dirty` may not be given."""
    for o in dirty:
        if not any(o is t for t in inputs):
            if records and o._base is not None:
                raise dirty_no_input()
            errors.warn(str(dirty_no_input()))
        elif records and o._base is not None and sum(isinstance(t, Tensor) for t in outs) > 1:
            raise dirty_view_among_several()


def _result(o, inputs, dirty, constant):
    """What stands for one output: itself, or an alias of an input that comes back untouched."""
    if not isinstance(o, Tensor):
        return o
    written, given = any(o is d for d in dirty), any(o is t for t in inputs)
    if written:
        o._storage.version += 1
    if given and any(o is t for t in constant):
        return o.detach()
    if written:
        return o
    if given:
        made = make(o._storage, o._spec, o._offset)
        made._base = o if o._base is None else o._base
        made._seen = seen_now(made._base)
        return made
    return o


def _attach(ctx, k, r, dirty):
    """Give result k its place on the tape."""
    if dirty and r._rg and r._base is None:
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    if dirty and r._base is not None:
        check_inplace(r)
        base = r._base
        base._edge = copy_slices(base, edge_of(base), r, (ctx, k))
        base._rg = False
        edge_of(r)
        return
    r._rg = False
    r._edge = (ctx, k)
    if r._base is not None:
        r._seen = seen_now(r._base)
        r.__dict__["_made"] = ("function", k)


def once_differentiable(fn):
    """Decorate a `backward` that cannot itself be differentiated."""

    @functools.wraps(fn)
    def wrapper(ctx, *grads):
        with no_grad():
            got = fn(ctx, *grads)
        if not tls.me.grad or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return got
        outs = got if isinstance(got, tuple) else (got,)
        outs = tuple(o if o is None else _refusing(o) for o in outs)
        return outs if isinstance(got, tuple) else outs[0]

    wrapper._once = True
    return wrapper


def behind(t, node, k=0):
    """The same tensor as a result of a node."""
    made = make(t._storage, t._spec, t._offset)
    made._edge = (node, k)
    return made


class Undefined(PythonNode):
    """Lets no gradient through."""

    __slots__ = ()

    def apply(self, *grads):
        return (None,) * len(self.edges)


class Refusal(PythonNode):
    """Raises its message in the place of a gradient."""

    __slots__ = ()
    message = str(once())

    def apply(self, *grads):
        raise RuntimeError(self.message)


def _refusing(t):
    return behind(t, class_of("Error", Refusal)("torch::autograd::Error", (), (plain(t._spec),)))


BackwardCFunction = _Context


class InplaceFunction(Function):
    """A Function with an `inplace` flag, from older programs."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Kept for old programs, as in PyTorch, where its own nested form runs no more: a subclass with static forward and backward does."""

    def forward_extended(self, *input):
        """For a subclass to define."""
        raise NotImplementedError

    def backward_extended(self, *grad_output):
        """For a subclass to define."""
        raise NotImplementedError


class _VariableMeta(type):
    def __instancecheck__(cls, other):
        return isinstance(other, Tensor)


class _Engine:
    """The engine, as far as programs reach for it."""

    queue_callback = staticmethod(queue_callback)

    @staticmethod
    def is_checkpoint_valid():
        """Whether a layer may be computed again by a backward pass of its own: not in one that was asked for some gradients only."""
        run = tls.me.extra.get("run")
        return run is None or run.wanted is None


class Variable(metaclass=_VariableMeta):
    """The old name of a tensor with history: `Variable(x, requires_grad=True)`."""

    _execution_engine = _Engine()

    def __new__(cls, data=None, requires_grad=False, volatile=None):
        if volatile:
            errors.warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.")
        t = data.detach() if isinstance(data, Tensor) else data
        return t.requires_grad_() if requires_grad else t


__all__ = ["Function", "FunctionCtx", "InplaceFunction", "NestedIOFunction", "Variable", "once_differentiable"]
