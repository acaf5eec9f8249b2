"""Random state dicts, described without a tensor library, built in either, and compared bit by bit."""

import random
from collections import OrderedDict

import jax
import numpy as np

import jtorch
from jtorch.core import dtype as dtypes
from jtorch.core import storage as storages
from tests.oracle import torch

DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "bool",
    "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip
FLOATS = tuple(d for d in DTYPES if d.startswith(("float", "bfloat", "complex")))
OLD = tuple(d for d in DTYPES if not d.startswith(("uint16", "uint32", "uint64", "float8")))


class Described:
    """A tensor: which storage of the file, and how it lies there."""

    def __init__(self, storage, offset, size, stride, requires_grad, kind, attributes):
        self.storage, self.offset, self.size, self.stride = storage, offset, size, stride
        self.requires_grad, self.kind, self.attributes = requires_grad, kind, attributes


def describe(seed, names=DTYPES):
    """(storages as (dtype, bytes), tree with Described leaves)."""
    draw = random.Random(seed)
    pool = []
    for _ in range(draw.randint(1, 5)):
        name = draw.choice(names)
        count = draw.choice((0, 1, 2, 7, 24, 60))
        raw = draw.randbytes(count * dtypes.ALL[name].itemsize)
        pool.append((name, bytes(b & 1 for b in raw) if name == "bool" else raw))
    return pool, _tree(draw, pool, 0)


def _tree(draw, pool, depth):
    def inner():
        if depth < 3 and draw.random() < 0.35:
            return _tree(draw, pool, depth + 1)
        if draw.random() < 0.25:
            return draw.choice(
                (
                    None,
                    True,
                    3,
                    -(2**40),
                    2**70,
                    1.5,
                    float("inf"),
                    "text",
                    "ключ",
                    b"bytes",
                    2 + 1j,
                    (1, "a"),
                    {1, 2},
                    [],
                )
            )
        return _leaf(draw, pool)

    n = draw.randint(1, 4)
    kind = draw.choice((dict, OrderedDict, list, tuple)) if depth else dict
    if kind in (dict, OrderedDict):
        keys = draw.sample(["weight", "bias", "layer.0.weight", 3, (1, 2), "running_mean", "", "глубина"], n)
        return kind((k, inner()) for k in keys)
    return kind(inner() for _ in range(n))


def _leaf(draw, pool):
    k = draw.randrange(len(pool))
    name, raw = pool[k]
    count = len(raw) // dtypes.ALL[name].itemsize
    ndim = draw.randint(0, 4)
    if not count:
        size = [draw.randint(0, 3) for _ in range(ndim)] if ndim else [0]
        size[draw.randrange(len(size))] = 0
        stride, offset = [draw.randint(0, 3) for _ in size], 0
    else:
        left = count - 1
        size, stride = [], []
        for _ in range(ndim):
            s = draw.choice((0, 1, 1, 2, 3, 5, 12))
            most = left // s if s else 3
            n = draw.randint(1, max(1, min(most + 1, 6)))
            left -= (n - 1) * s
            size.append(n)
            stride.append(s)
        offset = draw.randint(0, left)
        if draw.random() < 0.4:  # the whole of it
            size, stride, offset = [count], [1], 0
            if count % 2 == 0:
                size, stride = draw.choice(([2, count // 2], [count // 2, 2])), [1, 1]
                stride = [size[1], 1] if draw.random() < 0.5 else [1, size[0]]
    floating = name in FLOATS
    kind = draw.choice(("tensor", "tensor", "parameter")) if floating else "tensor"
    # PyTorch cannot read its own files with plain float8 tensors that require grad (2.13: set_ of a leaf).
    needs_grad = floating and (kind == "parameter" or name in OLD) and draw.random() < 0.3
    attributes = {"tag": draw.randint(0, 9)} if draw.random() < 0.1 else {}
    return Described(k, offset, tuple(size), tuple(stride), needs_grad, kind, attributes)


def build(described, module):
    """The tree, with tensors of torch or of jtorch."""
    pool, tree = described
    made = [_storage(module, name, raw) for name, raw in pool]

    def one(x):
        if isinstance(x, Described):
            t = made[x.storage].as_strided(x.size, x.stride, x.offset).detach()
            t = module.nn.Parameter(t, x.requires_grad) if x.kind == "parameter" else t.requires_grad_(x.requires_grad)
            for name, value in x.attributes.items():
                setattr(t, name, value)
            return t
        if isinstance(x, dict):
            return type(x)((k, one(v)) for k, v in x.items())
        return type(x)(map(one, x)) if isinstance(x, (list, tuple)) else x

    return one(tree)


def _storage(module, name, raw):
    if module is jtorch:
        return jtorch.from_jax(jax.device_put(np.frombuffer(raw, dtypes.ALL[name].np)))  # which compiles nothing
    dtype = getattr(torch, name)
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(dtype) if raw else torch.empty(0, dtype=dtype)


# --- what can be seen of a structure -----------------------------------------------------------------------------------------


def seen(tree):
    """All that can be seen of a structure, the same for both libraries: bits, layouts, classes, and who shares with whom."""
    groups = {}

    def tensor(t):
        key = t.untyped_storage()._cdata
        group = groups.setdefault(key, len(groups)) if t.untyped_storage().nbytes() else "empty"
        return (
            "Parameter" if isinstance(t, (torch.nn.Parameter, jtorch.nn.Parameter)) else "Tensor", str(t.dtype), tuple(t.shape),
            tuple(t.stride()), t.storage_offset(), bool(t.requires_grad), t.is_leaf, group, t.untyped_storage().nbytes(), bits(t),
            attributes(t),
        )  # fmt: skip

    def one(x):
        if isinstance(x, (torch.Tensor, jtorch.Tensor)):
            return tensor(x)
        if isinstance(x, dict):
            return (type(x).__name__, [(k, one(v)) for k, v in x.items()])
        if isinstance(x, (list, tuple)):
            return (type(x).__name__, [one(v) for v in x])
        return (type(x).__name__, repr(x))

    return one(tree)


def attributes(t):
    return {k: v for k, v in t.__dict__.items() if not k.startswith("_")}


def bits(t) -> bytes:
    """The elements of a tensor, in order, as bytes."""
    if not t.numel():
        return b""
    if isinstance(t, jtorch.Tensor):
        return np.ascontiguousarray(storages.numpy_of(t._storage, t._spec, t._offset)).tobytes()
    t = t.detach().clone(memory_format=torch.contiguous_format).reshape(-1)
    return (t.view(torch.uint8) if t.numel() else t.to(torch.uint8)).numpy().tobytes()
