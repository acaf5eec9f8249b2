"""In a worker, joining tensors is numpy's work: jax would compile a program for every new shape, and start for the first.

A worker's tensors live in host memory (`core.storage.on_host`); reading, slicing and writing them is numpy's work anyway.
"""

import functools
import sys

import numpy as np

from .. import creation, functions
from ..convert import as_elements
from ..core.storage import on_host
from ..tensor import Tensor
from . import collate

__all__ = ["install"]


def _plain(tensors):
    """Whether numpy can join these: tensors in host memory, of one dtype, off the tape."""
    if not tensors:
        return False
    d = tensors[0]._spec.dtype if type(tensors[0]) is Tensor else None
    return all(
        type(t) is Tensor
        and t._storage.host is not None
        and t._spec.dtype is d
        and t._edge is None
        and not t._rg
        and t._storage.host.spec.dtype is d
        for t in tensors
    )


def _stack(tensors, dim=0):
    shape = tensors[0]._spec.shape
    if any(t._spec.shape != shape for t in tensors) or not -len(shape) - 1 <= dim <= len(shape):
        return None
    dim %= len(shape) + 1
    full = (*shape[:dim], len(tensors), *shape[dim:])
    out = collate.allocate(full, tensors[0]._spec.dtype.memory)
    return np.stack([as_elements(t) for t in tensors], dim, out=out)


def _cat(tensors, dim=0):
    ndim = tensors[0]._spec.ndim
    if not -ndim <= dim < ndim:
        return None
    dim %= ndim
    kept = {(t._spec.ndim, *t._spec.shape[:dim], *t._spec.shape[dim + 1 :]) for t in tensors}
    if len(kept) > 1:
        return None
    return np.concatenate([as_elements(t) for t in tensors], dim)


def _before(fast, usual):
    """`fast` where it applies, else the usual op."""

    @functools.wraps(usual)
    def join(*args, **kwargs):
        if 1 <= len(args) <= 2 and set(kwargs) <= {"dim"} and isinstance(args[0], list | tuple) and _plain(args[0]):
            dim = args[1] if len(args) == 2 else kwargs.get("dim", 0)
            made = fast(args[0], dim) if type(dim) is int else None
            if made is not None:
                return creation.lent(made)
        return usual(*args, **kwargs)

    return join


def install() -> None:
    """Keep this process's tensors on the host from now on. There is no way back: a worker's process does nothing else."""
    on_host.always = on_host.at_home = True
    for name, fast in (("stack", _stack), ("cat", _cat), ("concat", _cat), ("concatenate", _cat)):
        join = _before(fast, getattr(functions, name))
        setattr(functions, name, join)
        setattr(sys.modules["jtorch"], name, join)
