"""An op of the table as a JAX function of arrays, differentiated by the op's own rules. No Tensor is involved."""

import jax
import jax.numpy as jnp

from jtorch.ops.registry import OPTIONAL, TENSOR, ZERO


def derived(op, **static):
    """A function of the arrays of `op`, in order, with everything else given in `static`."""
    names = [p.name for p, role in zip(op.params, op.roles) if p.name not in static and role in (TENSOR, OPTIONAL)]
    static = {p.name: p.default for p in op.params if p.default is not p.empty and p.name not in names} | static

    def call(*arrays):
        return op.fn(**dict(zip(names, arrays)), **static)

    def visible(out):
        if not op.hidden:
            return out
        n = len(out) - op.hidden
        return out[0] if n == 1 else out[:n]

    if not op.rules:
        return lambda *arrays: visible(call(*arrays))

    run = jax.custom_vjp(lambda *arrays: visible(call(*arrays)))

    def forward(*arrays):
        out = call(*arrays)
        return visible(out), (arrays, out)

    def backward(saved, g):
        arrays, out = saved
        known = static | dict(zip(names, arrays)) | {"g": g, "out": out}
        if isinstance(out, (tuple, list)):
            known |= {f"out{k}": o for k, o in enumerate(out)}
        return tuple(_gradient(op, name, array, known) for name, array in zip(names, arrays))

    run.defvjp(forward, backward)
    return run


def _gradient(op, name, array, known):
    rule = op.rules.get(name, ZERO)
    if rule is ZERO or array is None or not jnp.issubdtype(array.dtype, jnp.inexact):
        return None
    grad = rule(**{p: known[p] for p in op.rule_args[name]})
    grad = grad.sum(tuple(range(grad.ndim - array.ndim)))
    axes = tuple(i for i, n in enumerate(array.shape) if grad.shape[i] != n)
    return grad.sum(axes, keepdims=True).astype(array.dtype)
