"""Operators defined outside: what torch.library makes and torch.ops.<namespace> calls.

A kernel is Python over tensors. It is recorded like any code; where it needs values (numpy) it gets them. Inside a transformation of
JAX, whose values are not known, a kernel that needs them becomes a call back to the host, with shapes from the fake kernel.
"""

import functools

import jax
import jax.numpy as jnp

from . import errors_extend
from .amp.autocast import autocast, is_autocast_enabled
from .aten import OpOverload, OpOverloadPacket, namespace
from .autograd.function import Function
from .autograd.levels import array_of, levels
from .autograd.mode import no_grad
from .core.lanes import ByTracing, is_traced
from .core.record import tls
from .creation import from_jax
from .dispatch import override
from .schema import Schema
from .tensor import Tensor, edge_of
from .utils._pytree import tree_flatten, tree_leaves, tree_unflatten

OPERATORS: dict[str, "Operator"] = {}
EARLY: dict = {}  # name -> kernels of what is not defined yet
_COMPOSITE = ("CompositeExplicitAutograd", "CompositeImplicitAutograd", "CompositeExplicitAutogradNonFunctional")


class Operator:
    """An operator's schema, and everything registered for it."""

    def __init__(self, schema: Schema, opaque: bool):
        self.schema = schema
        self.opaque = opaque  # from custom_op: its kernels run below autograd
        key = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        self.kernels = EARLY.pop(key, {})  # device type, dispatch key, or "default"
        self.disabled = set()
        self.backward = self.setup = self.vmap = None
        # What returns nothing has no results whose shapes would have to be known.
        self.fake = (lambda *args, **kwargs: None) if opaque and schema.results == "()" else self.kernels.get("meta")
        self.autocast = {}
        self.classes = {}  # subclass or mode -> function of __torch_dispatch__
        space, _, name = schema.name.partition("::")
        packet = getattr(namespace(space), name, None)
        if packet is None:
            packet = OpOverloadPacket(space, name, self)
            setattr(namespace(space), name, packet)
        word = schema.overload_name or "default"
        self.overload = packet.__dict__[word] = OpOverload(packet, word, self)
        self.overload._schema = schema
        packet._fixed = True
        if packet._fn is not self:
            packet._fn = _Overloads([*getattr(packet._fn, "operators", (packet._fn,)), self])
        self.__doc__ = None
        OPERATORS[key] = self

    def __call__(self, *args, **kwargs):
        values = self.schema.bind(args, kwargs)
        relevant = override.overloaded(values) if tls.me.overriding == 2 else ()
        if relevant or tls.me.function_modes and tls.me.overriding:
            return override.override(self.overload, relevant, args, kwargs)
        modes = tls.me.extra.get("dispatch_modes")
        if modes:
            return modes[-1].see(self.overload, args, kwargs, self.classes)
        return self.run(values)

    def run(self, values):
        """The result for the values of all arguments."""
        tensors = leaves(values)
        kind = _device_type(tensors)
        if kind in self.autocast and is_autocast_enabled(kind):
            return self._cast(kind, values)
        if any(isinstance(t._storage.value, jax.core.Tracer) for t in tensors):
            return self._traced(values)
        if tls.me.extra and any(is_traced(t._storage.value) for t in tensors):
            raise ByTracing  # what the operator says of vmap is for jax's
        taped = tls.me.grad and any(edge_of(t) is not None for t in tensors)
        for key in (f"Autograd{kind.upper()}", "Autograd"):
            if key in self.kernels:
                return self.schema.call(self.kernels[key], values)
        if taped and (self.opaque or self.backward is not None) and not any(a.writes for a in self.schema.arguments):
            return self._on_tape(values)
        if self.opaque or self.backward is not None:
            with no_grad():
                return self.compute(values)
        return self.compute(values)

    def compute(self, values):
        """The kernel's result, below autograd."""
        tensors = leaves(values)
        kind = _device_type(tensors)
        if kind == "meta" and "meta" not in self.kernels:
            if self.fake is None:
                raise errors_extend.no_fake(f"<CustomOpDef({self.schema.name})>" if self.opaque else self.schema.name)
            return self.schema.call(self.fake, values)
        if not self.opaque:
            return self.schema.result(self.schema.call(self.kernel(kind), values))
        result = self.schema.result(self._whole(kind, values))
        for a, v in zip(self.schema.arguments, values):
            for t in leaves([v]) if a.writes else ():
                t._storage.version += 1
        given = {id(t._storage) for t in tensors}
        for r in tree_leaves(result):
            if not isinstance(r, Tensor):
                continue
            if id(r._storage) in given:
                raise errors_extend.aliasing_output(self.schema.name)
            given.add(id(r._storage))
        return result

    def _whole(self, kind, values):
        """The kernel's result; a compiled region around it does not see into it."""
        scope = tls.me.scope
        if scope is None or scope.operator is not None:
            return self.schema.call(self.kernel(kind), values)
        scope.operator = self.schema.name
        try:
            return self.schema.call(self.kernel(kind), values)
        finally:
            scope.operator = None

    def kernel(self, kind):
        """The function for a device type."""
        for key in (kind, kind.upper(), "default", *_COMPOSITE):
            found = self.kernels.get(key)
            if found is not None and (key not in self.disabled or "default" not in self.kernels):
                return found
        raise errors_extend.no_implementation_of(self.schema.name, kind.upper())

    def _cast(self, kind, values):
        dtype = self.autocast[kind]
        low = [
            [v.to(dtype) if _castable(v) else v for v in x]
            if isinstance(x, (list, tuple))
            else x.to(dtype)
            if _castable(x)
            else x
            for x in values
        ]
        with autocast(kind, enabled=False):
            return self.run(low)

    # -- the tape -------------------------------------------------------------------------------------------------------

    def _on_tape(self, values):
        flat, shape = _flatten(values)
        made = []
        results = _function_of(self, shape, made).apply(*flat)
        return tree_unflatten(results if isinstance(results, tuple) else (results,), made[0])

    # -- inside a transformation ----------------------------------------------------------------------------------------

    def _traced(self, values):
        if self.vmap is not None:
            return self._on_tape(values) if levels()[-1:] and levels()[-1].kind == "vmap" else self._batched(values)
        if self.backward is not None:
            return self._on_tape(values)
        return self.compute_traced(values)

    def compute_traced(self, values):
        """The kernel on tracers; where it asks for their values, a call to the host."""
        try:
            return self.schema.call(self.kernel(_device_type(leaves(values))), values)
        except (jax.errors.JAXTypeError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "not known" not in str(error) and "trace" not in str(error).lower():
                raise
            if self.fake is None:
                raise errors_extend.no_fake(self.schema.name) from error
        return self._on_host(values)

    def _on_host(self, values):
        flat, shape = _flatten(values)
        slots = [k for k, x in enumerate(flat) if isinstance(x, Tensor)]
        made = []

        def fake(*arrays):
            return _taken(self.schema.call(self.fake, _with(flat, shape, slots, arrays)), made)

        arrays = [array_of(flat[k]) for k in slots]
        specs = jax.eval_shape(fake, *arrays)

        def host(*concrete):
            with no_grad():
                result = self.compute(_with(flat, shape, slots, [jnp.asarray(c) for c in concrete]))
            return [array_of(r).__array__() for r in tree_leaves(result) if isinstance(r, Tensor)]

        outs = jax.pure_callback(host, specs, *arrays, vmap_method="sequential")
        return _given(outs, made[0])

    def _batched(self, values):
        """A call with its own rule for vmap."""
        flat, shape = _flatten(values)
        slots = [k for k, x in enumerate(flat) if isinstance(x, Tensor)]
        made = []

        def plain(*arrays):
            return _taken(self.compute_traced(_with(flat, shape, slots, arrays)), made)

        call = jax.custom_batching.custom_vmap(plain)

        @call.def_vmap
        def rule(size, batched, *arrays):
            dims = [None] * len(flat)
            for k, there in zip(slots, batched):
                dims[k] = 0 if there else None
            result, out_dims = self.schema.call(
                lambda *a, **k: self.vmap(VmapInfo(size), self._dims(dims, shape), *a, **k),
                _with(flat, shape, slots, arrays),
            )
            found = tree_leaves(result)
            placed = [(r, d) for r, d in zip(found, _dims_of(out_dims, len(found))) if isinstance(r, Tensor)]
            results, at = [r for r, _ in placed], [d for _, d in placed]
            moved = [array_of(r) if d in (None, 0) else jnp.moveaxis(array_of(r), d, 0) for r, d in zip(results, at)]
            return moved, [d is not None for d in at]

        outs = call(*[array_of(flat[k]) for k in slots])
        return _given(outs, made[0])

    def _dims(self, dims, shape) -> tuple:
        """Where the slices lie in each argument that is given by position."""
        return tuple(d for a, d in zip(self.schema.arguments, _unflatten(iter(dims), shape)) if not a.by_name)


class _Overloads:
    """An operator of several signatures: the first that takes the arguments runs."""

    def __init__(self, operators):
        self.operators = operators
        self.__doc__ = None

    def __call__(self, *args, **kwargs):
        refused = None
        for operator in self.operators:
            try:
                operator.schema.bind(args, kwargs)
            except RuntimeError as error:
                refused = refused or error
                continue
            return operator(*args, **kwargs)
        raise refused


class VmapInfo:
    """What a rule for vmap is told."""

    def __init__(self, batch_size):
        self.batch_size = batch_size
        self.randomness = "error"


def _castable(v):
    return isinstance(v, Tensor) and v.dtype.is_floating_point and v.dtype.name != "float64"


def leaves(values) -> list[Tensor]:
    """The tensors among values and in their lists."""
    return [t for v in values for t in (v if isinstance(v, (list, tuple)) else (v,)) if isinstance(t, Tensor)]


def _dims_of(out_dims, n) -> tuple:
    """Where the slices lie in each of n results."""
    if not isinstance(out_dims, (tuple, list)):
        return (out_dims,) * n
    return tuple(d for x in out_dims for d in (x if isinstance(x, (tuple, list)) else (x,)))


def _device_type(tensors) -> str:
    kinds = {t._spec.device.type for t in tensors}
    return "meta" if "meta" in kinds else next((k for k in sorted(kinds) if k != "cpu"), "cpu")


def _flatten(values):
    """(what is in the values and in their lists, the lengths of the lists; None for what is none)."""
    flat, shape = [], []
    for v in values:
        if isinstance(v, (list, tuple)):
            flat.extend(v)  # += asks a torch.Size, which takes whole numbers alone
            shape.append((type(v), len(v)))
        else:
            flat.append(v)
            shape.append(None)
    return flat, shape


def _unflatten(each, shape):
    return [next(each) if s is None else s[0](next(each) for _ in range(s[1])) for s in shape]


def _taken(result, made):
    """The arrays of a result's tensors; what else it is goes to `made`."""
    found, tree = tree_flatten(result)
    made.append(([None if isinstance(r, Tensor) else r for r in found], tree, [isinstance(r, Tensor) for r in found]))
    return [array_of(r) for r in found if isinstance(r, Tensor)]


def _given(arrays, made):
    """The result with these arrays."""
    arrays = iter(arrays)
    others, tree, there = made
    return tree_unflatten([from_jax(next(arrays)) if t else o for o, t in zip(others, there)], tree)


def _with(flat, shape, slots, arrays):
    """The values with other arrays for the tensors."""
    full = list(flat)
    for k, a in zip(slots, arrays):
        full[k] = from_jax(a)
    return _unflatten(iter(full), shape)


def _function_of(operator, shape, made):
    """The autograd.Function of one call of an operator."""
    schema = operator.schema
    by_position = sum(not a.by_name for a in schema.arguments)

    class Generated(Function):
        generate_vmap_rule = operator.vmap is None  # then the kernel is one jax calls, which batches it

        @staticmethod
        def forward(*flat):
            values = _unflatten(iter(flat), shape)
            with no_grad():
                traced = any(isinstance(t._storage.value, jax.core.Tracer) for t in leaves(values))
                result = operator.compute_traced(values) if traced else operator.compute(values)
            results, tree = tree_flatten(result)
            made.append(tree)
            return result if tree.is_leaf() else tuple(results)

        @staticmethod
        def setup_context(ctx, inputs, output):
            if operator.setup is not None:
                values = _unflatten(iter(inputs), shape)
                given = tuple(v for a, v in zip(schema.arguments, values) if not a.by_name)
                named = {a.name: v for a, v in zip(schema.arguments, values) if a.by_name}
                result = tree_unflatten(output if isinstance(output, tuple) else (output,), made[-1])
                operator.setup(
                    ctx=ctx, inputs=given, output=result, **({"keyword_only_inputs": named} if named else {})
                )

        @staticmethod
        def backward(ctx, *grads):
            if operator.backward is None:
                raise errors_extend.no_formula(operator.overload)
            grads = tree_unflatten(grads, made[0])
            got = operator.backward(ctx, *(grads if isinstance(grads, tuple) else (grads,)))
            got = list(got) if isinstance(got, tuple) else [got]
            _check_count(Generated.__name__, by_position, got)
            got += [None] * (len(shape) - len(got))
            given = []
            for g, s in zip(got, shape):
                given += [g] if s is None else [None] * s[1] if g is None else list(g)
            return tuple(given)

    if operator.vmap is not None:

        def batched(info, in_dims, *flat):
            dims = operator._dims(in_dims, shape)
            values = _unflatten(iter(flat), shape)
            result, out_dims = schema.call(functools.partial(operator.vmap, info, dims), values)
            results, tree = tree_flatten(result)
            made.append(tree)
            return (result, out_dims) if tree.is_leaf() else (tuple(results), _dims_of(out_dims, len(results)))

        Generated.vmap = staticmethod(batched)
    space, _, name = schema.name.partition("::")
    Generated.__name__ = f"GeneratedBackwardFor_{space}_{name}_{schema.overload_name or 'default'}"
    return Generated


def _check_count(name, n, got):
    """Refuse another number of gradients than that of the arguments by position."""
    if len(got) < n:  # PyTorch counts an argument of its own too
        raise RuntimeError(
            f"function {name}Backward returned an incorrect number of gradients (expected {n + 1}, got {len(got) + 1})"
        )
    if any(g is not None for g in got[n:]):
        raise RuntimeError(
            f"function {name}Backward returned a gradient different than None at position {n + 1}, but the corresponding forward "
            "input was not a Variable"
        )
