"""How kernel tests compare an op with PyTorch's: arrays in, values, dtypes, gradients and errors out."""

import inspect
import math
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jtorch.ops import registry
from jtorch.ops.registry import COMPOSITES, OPS, ZERO

torch = pytest.importorskip("torch")

if registry.tensor_type is type(None):  # no Tensor yet: None must not pass for one
    registry.tensor_type = type("NoTensor", (), {})


@dataclass
class Row:
    """One call of an op, numpy arrays for tensors; `ref`: torch's function where it has another name."""

    name: str
    args: tuple
    kw: dict = field(default_factory=dict)
    ref: Any = None
    grad: bool = True
    pick: Any = None  # what of the results to compare where vectors are free up to a phase
    tol: float = 2e-5


def row_id(row):
    shapes = [tuple(a.shape) for a in jax.tree.leaves(row.args) if isinstance(a, np.ndarray)]
    return f"{row.name}-{'x'.join(str(s) for s in shapes)}".replace(" ", "")


def rand(*shape, seed=0, dtype=np.float32):
    r = np.random.default_rng([seed, *shape])
    a = r.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        a = a + 1j * r.standard_normal(shape)
    return a.astype(dtype)


def is_array(a):
    return isinstance(a, (np.ndarray, np.generic))


def leaf(a):
    return a is None or is_array(a)


def record(name):
    return OPS.get(name) or COMPOSITES[name]


def reference(row_name, ref):
    if ref is not None:
        return ref
    for target in record(row_name).targets:
        space, _, last = target.rpartition(".")
        home = {"torch": torch, "Tensor": torch.Tensor}.get(space)
        if home is None:
            home = torch
            for part in space.split("."):
                home = getattr(home, part)
        if hasattr(home, last):
            return getattr(home, last)
    raise LookupError(row_name)


def to_torch(tree, grads):
    def one(a):
        if not is_array(a):
            return a
        t = torch.tensor(a)
        return t.requires_grad_() if grads and t.dtype.is_floating_point | t.dtype.is_complex else t

    return jax.tree.map(one, tree, is_leaf=leaf)


def flat(out):
    return list(out) if isinstance(out, (tuple, list)) else [out]


def sum_to(g, like):
    lead = g.ndim - like.ndim
    g = g.sum(tuple(range(lead))) if lead else g
    ones = tuple(d for d, n in enumerate(like.shape) if n == 1 and g.shape[d] != 1)
    return g.sum(ones, keepdims=True).astype(like.dtype)


def rule_grad(op, bound, out, name, g):
    """The op's own rule for one argument, run on arrays as the tape would."""
    rule = op.rules[name]
    if rule is ZERO:
        return jnp.zeros_like(bound[name])
    given = {**bound, "g": g, "out": out}
    return sum_to(rule(**{p: given[p] for p in op.rule_args[name]}), bound[name])


def differentiable(a):
    return jnp.issubdtype(a.dtype, jnp.inexact)


def numpy_type(t):
    return np.dtype(str(t.dtype).removeprefix("torch."))


def check(row):
    """Values, dtypes and first gradients of one row, ours compiled."""
    op = record(row.name)
    grads = row.grad and getattr(op, "differentiable", True)
    targs, tkw = to_torch((row.args, row.kw), grads)
    want = flat(reference(row.name, row.ref)(*targs, **tkw))
    leaves, tree = jax.tree.flatten((row.args, row.kw), is_leaf=leaf)
    spots = [i for i, a in enumerate(leaves) if is_array(a)]
    arrays = [jnp.asarray(leaves[i]) for i in spots]

    def rebuild(values):
        full = list(leaves)
        for i, a in zip(spots, values):
            full[i] = a
        return jax.tree.unflatten(tree, full)

    def forward(*values):
        args, kw = rebuild(values)
        out = flat(op(*args, **kw))
        return out if row.pick is None else flat(row.pick(*out))

    dynamic = getattr(op, "dynamic", False) or row.name in (
        "nonzero",
        "argwhere",
        "one_hot",
        "repeat_interleave",
    )
    picked = want if row.pick is None else flat(row.pick(*want))
    outs = [i for i, b in enumerate(picked) if b.requires_grad]
    wrt = [i for i, a in enumerate(arrays) if differentiable(a)]
    derive = grads and outs and wrt
    given = [arrays[i] for i in wrt]
    rules = derive and row.pick is None and has_own_rules(op, rebuild, arrays, wrt)
    cot = [rand(*picked[i].shape, seed=9 + i, dtype=numpy_type(picked[i])) for i in outs] if derive else []
    by_rules = lambda *values: ruled(op, rebuild, values, forward(*values), cot[0])
    ours = None
    if not derive or dynamic:
        got = (forward if dynamic else jax.jit(forward))(*arrays)
    elif rules:
        got, ours = jax.jit(by_rules)(*arrays)
    else:
        got, ours = jax.jit(lambda *values: pull(forward, arrays, wrt, values, outs, cot))(*given)
    assert len(got) == len(picked)
    for a, b in zip(got, picked):
        same(a, b.detach(), row.tol)
    if not derive:
        return
    tleaves = [t for t in jax.tree.leaves((targs, tkw), is_leaf=leaf) if isinstance(t, torch.Tensor)]
    pulled = torch.autograd.grad(
        [picked[i] for i in outs], [tleaves[i] for i in wrt], [torch.tensor(c) for c in cot], allow_unused=True
    )
    if ours is None and rules:
        ours = by_rules(*arrays)[1]
    elif ours is None:
        ours = jax.jit(lambda *values: pull(forward, arrays, wrt, values, outs, cot)[1])(*given)
    for g, w in zip(ours, pulled):
        if w is not None:
            same(g, w, row.tol * 10)


def by_name(op, rebuild, arrays):
    """All arguments by name, and which of them to differentiate by."""
    args, kw = rebuild(arrays)
    bound = inspect.signature(op.fn).bind(*args, **kw)
    bound.apply_defaults()
    names = [n for n, a in bound.arguments.items() if isinstance(a, jax.Array) and differentiable(a)]
    return bound.arguments, names


def has_own_rules(op, rebuild, arrays, wrt) -> bool:
    """Whether the op has a rule of its own for each argument to differentiate by."""
    rules = getattr(op, "rules", {})
    names = by_name(op, rebuild, arrays)[1] if rules else []
    return bool(rules) and len(names) == len(wrt) and all(n in rules for n in names)


def ruled(op, rebuild, arrays, got, g):
    """The results `got` and the op's own derivatives: one program for both."""
    bound, names = by_name(op, rebuild, arrays)
    out = got[0] if len(got) == 1 else tuple(got)
    return got, [rule_grad(op, bound, out, n, jnp.asarray(g)) for n in names]


def pull(forward, arrays, wrt, values, outs, cot):
    """The results and jax's derivatives by some arguments: one program for both."""

    def part(*values):
        full = list(arrays)
        for i, a in zip(wrt, values):
            full[i] = a
        out = forward(*full)
        return [out[i] for i in outs], out

    _, back, out = jax.vjp(part, *values, has_aux=True)
    return out, [jnp.conj(g) for g in back([jnp.conj(jnp.asarray(c)) for c in cot])]


def same(a, b, tol):
    assert str(a.dtype) == str(b.dtype).removeprefix("torch."), (a.dtype, b.dtype)
    assert tuple(a.shape) == tuple(b.shape), (a.shape, b.shape)
    b = b.resolve_conj().resolve_neg()
    scale = max(1.0, float(np.nan_to_num(abs(b.numpy() * 1.0), posinf=0).max())) if b.numel() else 1.0
    scale = 1.0 if math.isinf(scale) else scale
    np.testing.assert_allclose(np.asarray(a), b.numpy(), rtol=tol, atol=tol * scale)


def check_error(name, args, ref=None):
    """The same exception type and first line as torch, checks of values on the host included."""
    with pytest.raises(Exception) as want:
        reference(name, ref)(*to_torch(args, False))
    op = record(name)
    with pytest.raises(Exception) as got:
        for fn in getattr(op, "value_checks", ()):
            fn(*args)
        op(*jax.tree.map(lambda a: jnp.asarray(a) if is_array(a) else a, args, is_leaf=leaf))
    assert str(got.value).split("\n")[0] == str(want.value).split("\n")[0]
    assert type(got.value) is type(want.value)
