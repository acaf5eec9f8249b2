"""Any optax gradient transformation as a torch-style optimizer."""

import jax
import jax.numpy as jnp
import optax

from jtorch import functions as torch
from jtorch.autograd.mode import enable_grad, no_grad
from jtorch.core import dtype as dtypes
from jtorch.dispatch import Update
from jtorch.optim.optimizer import Optimizer

__all__ = ["Optax"]


class Optax(Optimizer):
    """Updates parameters by an `optax.GradientTransformation`, one fused node a step.

    Args:
        params: parameters, one group (a transformation sees all parameters at once)
        transformation: for example `optax.adamw(1e-3)` or a chain

    >>> optimizer = Optax(model.parameters(), optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3)))
    """

    def __init__(self, params, transformation):
        super().__init__(params, {})
        if len(self.param_groups) != 1:
            raise ValueError("Optax doesn't support per-parameter options (parameter groups)")
        self.transformation = transformation
        with no_grad():
            self._start()

    def _start(self):
        params = self.param_groups[0]["params"]
        shapes = [jax.ShapeDtypeStruct(tuple(p.shape), p.dtype.np) for p in params]
        leaves, self._tree = jax.tree.flatten(jax.eval_shape(self.transformation.init, shapes))
        state = [torch.zeros(leaf.shape, dtype=dtypes.of(leaf.dtype), device=params[0].device) for leaf in leaves]
        init = self.transformation.init
        if state:
            start = Update(lambda arrays, numbers: jax.tree.leaves(init(arrays)), ("optax.init", self.transformation))
            start.record(params, (), state)
        self.state["optax"] = {"leaves": state}

    def __getstate__(self):
        return super().__getstate__() | {"transformation": self.transformation, "_tree": self._tree}

    def step(self, closure=None):
        """Update all parameters; one without a gradient has a gradient of zero."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        params = self.param_groups[0]["params"]
        leaves = self.state["optax"]["leaves"]
        having = tuple(p.grad is not None for p in params)
        if not any(having):
            return loss
        n, tree, transformation = len(params), self._tree, self.transformation

        def update(arrays, numbers):
            old = arrays[:n]
            given = iter(arrays[n + len(leaves) :])
            grads = [next(given) if has else jnp.zeros_like(p) for p, has in zip(old, having)]
            state = jax.tree.unflatten(tree, arrays[n : n + len(leaves)])
            changes, state = transformation.update(grads, state, old)
            return [*optax.apply_updates(old, changes), *jax.tree.leaves(state)]

        grads = [p.grad for p in params if p.grad is not None]
        # the transformation itself is in the key: it stays alive, and another one is another program
        key = ("optax", transformation, having)
        Update(update, key).record([*params, *leaves, *grads], (), [*params, *leaves])
        return loss
