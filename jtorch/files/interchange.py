"""Parameters as jax pytrees: to_jax and from_jax, and what load_state_dict takes besides tensors."""

import jax

from ..creation import from_jax as tensor_of
from ..nn.modules.module import Module
from ..tensor import Tensor


def to_jax(x):
    """Tensors as jax arrays; nothing is copied where a tensor is the whole of its storage.

    Args:
        x: a module (its parameters and buffers by name), a tensor, or any containers of tensors

    Returns a dict name -> array for a module, an array for a tensor, else the same containers.
    """
    if isinstance(x, Module):
        return {name: t.__jax_array__() for name, t in x.state_dict(keep_vars=True).items() if isinstance(t, Tensor)}
    if isinstance(x, Tensor):
        return x.__jax_array__()
    return jax.tree.map(lambda t: t.__jax_array__() if isinstance(t, Tensor) else t, x, is_leaf=_is_tensor)


def from_jax(x, into=None):
    """jax arrays, also those being traced, as tensors on the same memory.

    Args:
        x: an array, or any containers of arrays
        into: a module to load them into, by load_state_dict; nested dicts are names with dots. Default: only convert

    Returns a tensor, the same containers with tensors, or the module.
    """
    if into is not None:
        into.load_state_dict(x)
        return into
    return jax.tree.map(
        lambda a: tensor_of(a) if isinstance(a, (jax.Array, jax.core.Tracer)) else a, x, is_leaf=_is_tensor
    )


def _is_tensor(x):
    return isinstance(x, Tensor)
