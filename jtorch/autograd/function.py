"""torch.autograd.Function: derivatives that users write."""

from ..core.record import tls
from ..core.spec import Spec
from ..dispatch import call_view, zeros_value
from ..ops import registry
from ..tensor import Tensor, edge_of, make, value_of, wrap
from .derive import differentiable
from .engine import freed
from .mode import no_grad
from .node import PythonNode

Variable = Tensor


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
        self.kept = None
        self.arguments = ()

    def keep(self, results):
        """Turn what save_for_backward got into values with their edges, guarded by versions."""
        if self.to_save is None:
            return
        kept = []
        for t in self.to_save:
            if t is None:
                kept.append(None)
            elif not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {len(kept)} is of type {type(t).__name__}"
                )
            elif any(t is r for r in results):
                kept.append((value_of(t), t._spec, None, results.index(t) if t._edge is None else t._edge[1], t._storage, t._storage.version))
            else:
                kept.append((value_of(t), t._spec, edge_of(t), None, t._storage, t._storage.version, t if t._rg else None))
        self.kept = kept
        self.to_save = None

    @property
    def saved_tensors(self):
        if self.kept is None:
            if self.to_save is not None:
                return tuple(self.to_save)
            if self.saved is None:
                raise freed()
            return ()
        out = []
        for entry in self.kept:
            if entry is None:
                out.append(None)
                continue
            value, spec, edge, k, storage, version = entry[:6]
            if storage.version != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: "
                    f"[torch.{spec.dtype.name} {list(spec.shape)}] is at version {storage.version}; expected version "
                    f"{version} instead."
                )
            if len(entry) == 7 and entry[6] is not None:
                out.append(entry[6])
                continue
            t = wrap(value, Spec.of(tuple(spec.shape), spec.strides, spec.dtype, spec.device) if _dense(spec) else _plain(spec))
            t._edge = (self, k) if k is not None else edge
            out.append(t)
        return tuple(out)

    saved_variables = saved_tensors

    def release(self):
        self.saved = None
        self.kept = None

    def apply(self, *grads):
        grads = list(grads)
        if self.materialize_grads:
            for k, g in enumerate(grads):
                if g is None:
                    spec = self.specs[k]
                    grads[k] = make_zeros(spec)
        if self.saved is None:
            raise freed()
        got = self.function.backward(self, *grads)
        got = got if isinstance(got, (tuple, list)) else (got,)
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
                        f"function {self.label} returned a gradient different from None at position {k + 1}, but the "
                        "corresponding forward input was not a Variable"
                    )
                continue
            result.append(self.checked(k, g, spec))
        return result

    def checked(self, k, g, spec):
        if g is None:
            return None
        if not isinstance(g, Tensor):
            raise TypeError(f"expected Variable or None (got {type(g).__name__})")
        if tuple(g.shape) != tuple(spec.shape):
            if not _expandable(tuple(spec.shape), tuple(g.shape)):
                raise RuntimeError(
                    f"Function {self.label} returned an invalid gradient at index {k} - got {list(g.shape)} but expected shape "
                    f"compatible with {list(spec.shape)}"
                )
            g = sum_to_size(g, spec)
        if g.dtype is not spec.dtype:
            g = g.to(spec.dtype)
        return g


def sum_to_size(g, spec):
    extra = g.ndim - spec.ndim
    if extra:
        g = g.sum(tuple(range(extra)))
    dims = tuple(d for d, n in enumerate(spec.shape) if n == 1 and g.shape[d] != 1)
    return g.sum(dims, keepdim=True) if dims else g


def _expandable(shape, desired):
    if len(shape) > len(desired):
        return False
    return all(a in (1, b) for a, b in zip(reversed(shape), reversed(desired)))


def _dense(spec):
    return spec.contiguous


def _plain(spec):
    return Spec.dense(tuple(spec.shape), spec.dtype, spec.device)


def make_zeros(spec):
    spec = _plain(spec)
    return wrap(zeros_value(spec), spec)


class FunctionMeta(type):
    """Gives every Function its own backward class name."""


class Function(metaclass=FunctionMeta):
    """Base of functions with a derivative of their own.

    A subclass defines static methods `forward(ctx, ...)` and `backward(ctx, *grads)`, or `forward(...)` with
    `setup_context(ctx, inputs, output)`. Call it as `F.apply(...)`.
    """

    generate_vmap_rule = False

    def __init__(self, *args, **kwargs):
        raise RuntimeError(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them "
            "on the class itself. Instantiating an autograd function will raise an error in a future version of PyTorch."
        )

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward "
            "mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @classmethod
    def apply(cls, *args, **kwargs):
        me = tls.me
        tensors = [a for a in args if isinstance(a, Tensor)]
        edges = tuple(edge_of(t) if differentiable(t._spec) else None for t in tensors) if me.grad else (None,) * len(tensors)
        records = any(e is not None for e in edges)
        needs = []
        given = iter(edges)
        for a in args:
            needs.append(next(given) is not None if isinstance(a, Tensor) else False)
        ctx = _Context(cls, edges, tuple(needs))
        ctx.arguments = tuple(a._spec if isinstance(a, Tensor) else None for a in args)
        with no_grad():
            if cls.setup_context is not Function.setup_context:
                output = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **kwargs)
        return _finish(ctx, output, tensors, records)


def _finish(ctx, output, inputs, records):
    single = not isinstance(output, (tuple, list))
    outs = [output] if single else list(output)
    dirty = ctx.dirty_tensors
    flat = ctx.non_differentiable
    results, specs = [], []
    for k, o in enumerate(outs):
        if not isinstance(o, Tensor):
            results.append(o)
            specs.append(None)
            continue
        specs.append(_plain(o._spec))
        fresh = not any(o is t for t in inputs)
        if any(o is d for d in dirty):
            if o._rg and records:
                raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
            results.append(o)
        elif not fresh:
            results.append(call_view(registry.VIEWS["alias"], o, ()) if not records else make(o._storage, o._spec, o._offset))
        else:
            results.append(o)
    ctx.specs = tuple(s for s in specs if s is not None)
    if records:
        k = 0
        for o, r in zip(outs, results):
            if not isinstance(r, Tensor):
                continue
            if differentiable(r._spec) and not any(o is f for f in flat):
                r._rg = False
                r._edge = (ctx, k)
            k += 1
    ctx.keep([r for r in results if isinstance(r, Tensor)])
    return results[0] if single else tuple(results)


def once_differentiable(fn):
    """Decorate a `backward` that cannot itself be differentiated."""

    def wrapper(ctx, *grads):
        with no_grad():
            got = fn(ctx, *grads)
        if not tls.me.grad:
            return got
        outs = got if isinstance(got, tuple) else (got,)
        outs = tuple(o if o is None else _refuses(o) for o in outs)
        return outs if isinstance(got, tuple) else outs[0]

    return wrapper


class _Refusal(PythonNode):
    def apply(self, *grads):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def _refuses(t):
    made = make(t._storage, t._spec, t._offset)
    made._edge = (_Refusal("NotImplemented", (), (_plain(t._spec),)), 0)
    return made


__all__ = ["Function", "FunctionCtx", "Variable", "once_differentiable"]
