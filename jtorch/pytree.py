"""Tensors as jax pytrees: one leaf, the array; `requires_grad` travels along."""

import jax

from .core import dtype as dtypes
from .core import storage as storages
from .creation import from_jax
from .tensor import Tensor, value_of


def _flatten(t):
    return (storages.realise(value_of(t)),), (t._rg,)


def _unflatten(aux, children):
    (value,) = children
    if not isinstance(value, jax.Array):
        return value  # a placeholder of jax's own, or what a tree_map made of the leaf
    made = from_jax(value)
    made._rg = aux[0] and made._spec.dtype.category >= dtypes.FLOAT
    return made


def register(cls) -> None:
    """Let jax look into tensors of this class; what it rebuilds are plain tensors."""
    jax.tree_util.register_pytree_node(cls, _flatten, _unflatten)


register(Tensor)
