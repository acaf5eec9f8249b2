"""Functions that users wrote under other ways of differentiating: func's transformations and forward mode.

Inside transformations the innermost level goes first: it calls the Function again with that level taken away, and adds what
the user wrote for it (`backward`, `jvp` or `vmap`). So each level meets the user's rule, and the rules of the levels inside it
are what it differentiates.
"""

from collections import namedtuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from .. import complex_views, errors_autograd
from ..core import extend
from ..core.record import tls
from ..core.spec import Spec
from ..creation import from_jax
from ..tensor import Tensor, edge_of, wrap
from .derive import differentiable
from .levels import array_of, ask_tracing, constant, levels, without
from .saved import check_saved
from .transformed import history

VmapInfo = namedtuple("VmapInfo", ("batch_size", "randomness"))


def tangent_of(t):
    """The tangent of a dual tensor at the present level, or None."""
    entry = t.__dict__.get("_tangent")
    level = tls.me.extra.get("dual")
    if entry is not None and entry[0] is level:
        return entry[1]
    base = t._base
    if level is None or base is None or "_tangent" not in base.__dict__:
        return None
    return _seen_through(t, base)


def _seen_through(t, base):
    """A view's tangent, where its base became dual after the view was made."""
    whole = tangent_of(base)
    if whole is None or not base.is_contiguous() or not whole.is_contiguous():
        return None
    if base.is_complex() and not t.is_complex():
        whole = complex_views.view_as_real(whole)
    elif t.is_complex() and not base.is_complex():
        pairs = whole.numel() // 2
        whole = complex_views.view_as_complex(whole.reshape(-1)[: 2 * pairs].view(pairs, 2))
    start = base.storage_offset() * base.element_size() // t.element_size()
    offset = t.storage_offset() - start + whole.storage_offset()
    seen = whole.as_strided(t.shape, t.stride(), offset)
    set_tangent(t, seen)
    return seen


def set_tangent(t, tangent):
    """Make a tensor dual."""
    t.__dict__["_tangent"] = (tls.me.extra["dual"], tangent)


# --- in transformations -------------------------------------------------------------------------------------------------

_MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


def by_keyword_alone(kwargs) -> Exception:
    """The error about arguments that a `forward` beside a `setup_context` takes by keyword alone."""
    ask_tracing()
    around = levels()
    kind = around[-1].kind if around else None
    if kind == "vmap" and any(isinstance(v, Tensor) for v in kwargs.values()):
        return NotImplementedError(
            "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass kwarg-only Tensors to autograd.Function. "
            f"Got: {kwargs}"
        )
    name = {
        "vjp": "custom_function_call_grad",
        "jvp": "custom_function_call_jvp",
        "vmap": "custom_function_call_vmap",
    }.get(kind, "forward")
    return TypeError(f"{name}() got an unexpected keyword argument '{next(iter(kwargs))}'")


def apply(cls, args, base):
    """One application inside transformations. base: torch.autograd.Function, for what it has where a class has not."""
    if cls.setup_context is base.setup_context:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the "
            f"setup_context staticmethod. {_MORE}"
        )
    used = tls.me.extra.get("used")
    if used is not None:
        for a in args:
            if isinstance(a, Tensor):
                used.see(a)
    around = levels()
    if around[-1].kind == "vmap":
        own = cls.vmap is not base.vmap
        if own and cls.generate_vmap_rule:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
                "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity. "
                + _MORE
            )
        if own:
            output, written = _by_vmap(cls, args, around[-1])
            return _write_back(args, _on_tape(cls, args, output, None), written)
        if not cls.generate_vmap_rule:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the "
                f"vmap staticmethod or set generate_vmap_rule=True. {_MORE}"
            )
    # JAX batches the rules of the levels outside of a vmap: that is the generated rule.
    here = next((x for x in reversed(around) if x.kind != "vmap"), around[0])
    one = _Application(cls, args, here)
    return _write_back(args, _on_tape(cls, args, one.run(), one), one.written)


def _written(outs, full):
    """Which results are arguments that the function has written to: {number of the result: number of the argument}."""
    return {i: k for i, o in enumerate(outs) for k, a in enumerate(full) if o is a and isinstance(o, Tensor)}


def _write_back(args, output, written):
    """The result, where arguments that were written to are themselves again, with the values of their copies."""
    if not written:
        return output
    outs = list(output) if isinstance(output, tuple) else [output]
    for i, k in written.items():
        if outs[i] is not args[k]:
            outs[i] = args[k].copy_(outs[i])
    return tuple(outs) if isinstance(output, tuple) else outs[0]


def _on_tape(cls, args, output, one):
    """A result with a place on the tape inside the transformations, for `autograd.grad` there."""
    if not tls.me.grad or not any(isinstance(a, Tensor) and edge_of(a) is not None for a in args):
        return output
    outs = output if isinstance(output, tuple) else (output,)
    results = [o for o in outs if isinstance(o, Tensor)]
    if one is not None and one.ctx is not None:
        smooth = iter(one.ctx.differentiable)
        results = [o for o in outs if next(smooth)]

    def again(*arrays):
        full = list(args)
        for k, a in zip(one.slots, arrays):
            full[k] = from_jax(a)
        made = _Application(cls, tuple(full), one.here)
        got = made.run()
        got = got if isinstance(got, tuple) else (got,)
        return [array_of(o) for o, kept in zip(got, outs) if any(kept is r for r in results)]

    history(results, None if one is None else again, [a for a in args if isinstance(a, Tensor)])
    return output


class _Application:
    """One application of a Function at one level, as a JAX function with the user's derivative."""

    def __init__(self, cls, args, here):
        self.cls, self.args, self.here = cls, args, here
        self.slots = [k for k, a in enumerate(args) if isinstance(a, Tensor)]
        self.ctx = self.outs = self.single = None
        self.written = {}

    def run(self):
        values = [array_of(self.args[k]) for k in self.slots]
        if self.here.kind == "vmap":
            arrays = self.plain(*values)
        elif self.here.kind == "jvp":
            fn = jax.custom_jvp(self.plain)
            fn.defjvp(self.jvp, symbolic_zeros=True)
            arrays = fn(*values)
        else:
            fn = jax.custom_vjp(self.plain)
            fn.defvjp(self.forward, self.backward, symbolic_zeros=True)
            arrays = fn(*values)
        given = iter(arrays)
        results = []
        for k, o in enumerate(self.outs):
            if not isinstance(o, Tensor):
                results.append(o)
                continue
            array = next(given)
            flat = self.here.kind == "vjp" and self.ctx is not None and not self.ctx.differentiable[k]
            results.append(from_jax(constant(array) if flat else array))
        return results[0] if self.single else tuple(results)

    def plain(self, *values):
        """The arrays of the results, computed as outside of the level."""
        with without(self.here):
            return self.compute(self.full(values))

    def full(self, values):
        full = list(self.args)
        for k, v in zip(self.slots, values):
            full[k] = from_jax(v)
        return tuple(full)

    def compute(self, full):
        output = self.cls.apply(*full)
        self.single = not isinstance(output, tuple)
        self.outs = (output,) if self.single else output
        self.written = _written(self.outs, full)
        return tuple(array_of(o) for o in self.outs if isinstance(o, Tensor))

    def context(self, full, needs):
        """What setup_context leaves at this level."""
        cls, outs = self.cls, self.outs
        needs = iter(needs)
        needs = tuple(isinstance(a, Tensor) and next(needs) for a in full)
        ctx = cls._backward_cls(
            cls, tuple(True if n else None for n, a in zip(needs, full) if isinstance(a, Tensor)), needs
        )
        ctx.arguments = tuple(a._spec if isinstance(a, Tensor) else None for a in full)
        output = outs[0] if self.single else tuple(outs)
        cls.setup_context(ctx, full, output)
        check_saved(ctx, full, output)
        ctx.specs = tuple(o._spec if isinstance(o, Tensor) else None for o in outs)
        ctx.differentiable = tuple(
            isinstance(o, Tensor) and differentiable(o._spec) and not any(o is f for f in ctx.non_differentiable)
            for o in outs
        )
        self.ctx = ctx
        return ctx

    # -- reverse mode

    def forward(self, *primals):
        with without(self.here):
            full = self.full([p.value for p in primals])
            arrays = self.compute(full)
            ctx = self.context(full, [p.perturbed for p in primals])
            saved = tuple(None if t is None else array_of(t) for t in ctx.saved_tensors)
            # Tensors that were left on ctx itself go the same way as saved ones: under vmap they are another trace's.
            left = {k: array_of(v) for k, v in vars(ctx).items() if isinstance(v, Tensor)}
        return arrays, (saved, left)

    def backward(self, kept, cotangents):
        ctx = self.ctx
        with without(self.here):
            saved, left = kept
            ctx.to_save = tuple(None if s is None else from_jax(s) for s in saved)
            for k, v in left.items():
                setattr(ctx, k, from_jax(v))
            given = iter(cotangents)
            grads = [None if s is None else _tensor(next(given)) for s in ctx.specs]
            got = ctx.apply(*grads)
            specs = [s for s in ctx.arguments if s is not None]
            found = tuple(_cotangent(g, s) for g, s in zip(got, specs))
            if getattr(self.cls.backward, "_once", False) and any(x.of_tape for x in levels()):
                incoming = [c for c in cotangents if not _is_zero(c)]
                found = tuple(None if g is None else _once(g, *incoming) for g in found)
            return found

    # -- forward mode

    def jvp(self, primals, tangents):
        with without(self.here):
            full = self.full(primals)
            arrays = self.compute(full)
            ctx = self.context(full, [not _is_zero(t) for t in tangents])
            ctx.to_save = getattr(ctx, "saved_for_forward", ())
            given = iter(tangents)
            moved = []
            for spec in ctx.arguments:
                t = None if spec is None else _tensor(next(given), conjugate=False)
                if t is None and spec is not None and ctx.materialize_grads and differentiable(spec):
                    t = _zeros(spec)
                moved.append(t)
            got = _tangents_of(self.outs, self.cls.jvp(ctx, *moved), ctx.differentiable)
            results = [_tangent(t, o._spec) for o, t in zip(self.outs, got) if isinstance(o, Tensor)]
        return arrays, tuple(results)


@jax.custom_vjp
def _once(g, *incoming):
    """A gradient that cannot be differentiated by those that it was computed from."""
    return g


def _refuse_twice(_, g):
    raise errors_autograd.once()


_once.defvjp(lambda g, *incoming: (g, None), _refuse_twice)


def _tangents_of(outs, got, smooth):
    """What a `jvp` returned for these results, one for each, checked; smooth: which of them are differentiable."""
    got = got if isinstance(got, tuple) else (got,)
    if len(got) != len(outs):
        raise errors_autograd.jvp_number(len(outs), len(got))
    for k, (o, t) in enumerate(zip(outs, got)):
        if t is not None and not isinstance(t, Tensor):
            raise errors_autograd.jvp_kind(k, t)
        if not smooth[k]:
            if t is not None and isinstance(o, Tensor):
                raise errors_autograd.jvp_unasked(k)
        elif t is None or not differentiable(t._spec):
            raise errors_autograd.tangent_kind(k, t)
        elif tuple(t._spec.shape) != tuple(o._spec.shape):
            raise errors_autograd.tangent_size(o._spec.shape, t._spec.shape)
    return got


def _is_zero(x):
    return type(x) is SymbolicZero or x.dtype == jax.dtypes.float0


def _tensor(x, conjugate=True):
    """A gradient or tangent that JAX gives, as the user's function wants it; None where there is none."""
    if _is_zero(x):
        return None
    # JAX's cotangent of a complex value is the conjugate of PyTorch's gradient.
    return from_jax(jnp.conj(x) if conjugate and jnp.iscomplexobj(x) else x)


def _zeros(spec):
    return wrap(jnp.zeros(tuple(spec.shape), spec.dtype.np), Spec.dense(tuple(spec.shape), spec.dtype, spec.device))


def _cotangent(g, spec):
    if not differentiable(spec):
        return None
    if g is None:
        return jnp.zeros(tuple(spec.shape), spec.dtype.np)
    array = array_of(g)
    return jnp.conj(array) if jnp.iscomplexobj(array) else array


def _tangent(t, spec):
    shape = tuple(spec.shape)
    if not differentiable(spec):
        return np.zeros(shape, jax.dtypes.float0)
    return jnp.zeros(shape, spec.dtype.np) if t is None else array_of(t).astype(spec.dtype.np)


# -- vmap that the user wrote


def _by_vmap(cls, args, here):
    """(what the user's `vmap` gives for the whole batch, outside of the level, which results are arguments)."""
    trace = here.trace
    full, dims = list(args), [None] * len(args)
    for k, a in enumerate(args):
        if isinstance(a, Tensor):
            value, dims[k] = trace.to_batch_info(array_of(a))
            full[k] = a if dims[k] is None else from_jax(value)
    with without(here), extend.set_current_trace(trace.parent_trace):
        if all(d is None for d in dims):
            return cls.apply(*full), {}
        got = cls.vmap(VmapInfo(here.size, here.randomness), tuple(dims), *full)
        if not isinstance(got, tuple) or len(got) != 2:
            raise RuntimeError(
                "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with "
                f"the output. Got a {type(got)} instead"
            )
        output, out_dims = got
        outs = output if isinstance(output, tuple) else (output,)
        arrays = [array_of(o) if isinstance(o, Tensor) else None for o in outs]
    if (
        not isinstance(output, tuple)
        and isinstance(out_dims, tuple)
        or (isinstance(out_dims, tuple) and len(out_dims) != len(outs))
    ):
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={out_dims} to be compatible with the structure of `output`. out_dims has structure {_show(out_dims)} but "
            f"output has structure {_show(output)}. {_MORE}"
        )
    dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(outs)
    placed = [o if a is None else from_jax(_batched(trace, a, d)) for o, a, d in zip(outs, arrays, dims)]
    return tuple(placed) if isinstance(output, tuple) else placed[0], _written(outs, full)


def _show(x):
    inner = ",\n  ".join("*" for _ in x) if isinstance(x, tuple) else None
    return "*" if inner is None else f"TreeSpec(tuple, None, [{inner}])"


def _batched(trace, array, dim):
    """The slice that each lane of a vmap sees of a whole array."""
    if dim is None:
        return array
    kind = type(jax.lax.axis_index(trace.axis_data.name))
    return kind(trace, array, dim % array.ndim)


# --- in forward mode ----------------------------------------------------------------------------------------------------


def push(cls, ctx, args, output):
    """Forward mode: tangents of the results from those of the arguments."""
    kept = getattr(ctx, "saved_for_forward", None)
    before = ctx.kept
    ctx.to_save = kept or ()
    tangents = [tangent_of(a) if isinstance(a, Tensor) else None for a in args]
    if ctx.materialize_grads:
        tangents = [
            _zeros(a._spec) if t is None and isinstance(a, Tensor) and differentiable(a._spec) else t
            for t, a in zip(tangents, args)
        ]
    me = tls.me
    special, me.special = me.special, me.extra["dual"].before  # what is kept may be dual, the tangents are not
    versions = [isinstance(t, Tensor) and t._storage.version for t in tangents]
    try:
        got = cls.jvp(ctx, *tangents)
    finally:
        me.special = special
    ctx.to_save, ctx.kept = None, before
    outs = output if isinstance(output, tuple) else (output,)
    given = [a for a in args if isinstance(a, Tensor)]
    moved = {id(a): (t, v) for a, t, v in zip(args, tangents, versions)}
    for o, t in zip(outs, got if isinstance(got, tuple) else (got,)):
        if not isinstance(t, Tensor) or not isinstance(o, Tensor):
            continue
        if any(o is d for d in ctx.dirty_tensors):
            before_it, version = moved.get(id(o), (None, None))
            if before_it is not t or version == t._storage.version:
                raise errors_autograd.jvp_not_in_place()
        elif o._base is not None:
            seen = next((moved[id(a)][0] for a in given if o._storage is a._storage), None)
            if seen is not None and t._base is not (seen if seen._base is None else seen._base):
                raise errors_autograd.jvp_no_view(t._base is not None, seen._base is not None)
    for o, t in zip(outs, _tangents_of(outs, got, ctx.differentiable)):
        if t is not None and isinstance(o, Tensor):
            set_tangent(o, t)
    for s in before or ():
        if s is not None and s.number is not None:
            s.tangent = outs[s.number].__dict__.get("_tangent")
