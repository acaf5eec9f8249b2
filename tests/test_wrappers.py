"""Wrappers made by _make_wrapper_subclass, whose class leaves `__torch_function__` to Tensor: everything reaches `__torch_dispatch__`."""

import pickle

import pytest

import jtorch
from tests.oracle import both, torch

PROGRAM = """
import copy, pickle, torch
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_map_only
class W(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, strides=inner.stride(), dtype=inner.dtype)
    def __init__(self, inner):
        self.inner = inner
    def __repr__(self):
        return f"W({self.inner})"
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        plain = func(*tree_map_only(W, lambda t: t.inner, args), **tree_map_only(W, lambda t: t.inner, kwargs or {}))
        return return_and_correct_aliasing(func, args, kwargs or {}, tree_map_only(torch.Tensor, W, plain))
def attempt(f):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, str(e).split(chr(10))[0])
w = W(torch.arange(4.).view(2, 2))
inner = w.inner
for f in (
    lambda: w[0], lambda: w[1:], lambda: w[:, 0], lambda: w[None], lambda: w[..., 0], lambda: w[0, 1], lambda: w[torch.tensor([1, 0])],
    lambda: w[inner > 1], lambda: w[::2, [0]], lambda: w[:, torch.tensor([1])], lambda: w[...], lambda: w.view(4), lambda: w.view(-1, 1),
    lambda: w.reshape(-1), lambda: w.flatten(), lambda: torch.flatten(w), lambda: w.ravel(), lambda: w.unsqueeze(0), lambda: w.T, lambda: w.H, lambda: w.real,
    lambda: w.data, lambda: w.detach(), lambda: torch.zeros_like(w), lambda: torch.empty_like(w).shape, lambda: w.new_zeros(2), lambda: w.new_ones((2, 1)),
    lambda: w.to(torch.float64), lambda: w.double(), lambda: w.clone(), lambda: w.contiguous(), lambda: torch.equal(w, w), lambda: torch.allclose(w, w),
    lambda: w.numpy(), lambda: w.tolist(), lambda: w.data_ptr(), lambda: W(torch.ones(1)).item(), lambda: bool(W(torch.ones(1))), lambda: float(W(torch.ones(1))),
    lambda: copy.deepcopy(w), lambda: copy.copy(w), lambda: type(copy.deepcopy(w).inner) is torch.Tensor, lambda: list(w), lambda: w.split(1),
    lambda: torch.nn.functional.linear(w, w), lambda: torch.cat([w, w]), lambda: w.sum(), lambda: w @ w,
):
    attempt(f)
def write(i, v):
    w[i] = v
    return w
for i, v in ((0, 5.), ((slice(None), 1), torch.tensor([7., 8.])), ((0, 0), W(torch.tensor(3.))), (inner > 7, 0.), (torch.tensor([0]), torch.ones(2)),
             (None, 2), ((slice(1, None), slice(None, 1)), 9), (..., torch.zeros(2))):
    attempt(lambda: write(i, v))
for f in (lambda: w.fill_(2.), lambda: w.add_(1) is w, lambda: w.copy_(torch.ones(2, 2)), lambda: w.masked_fill_(inner > 0, 9.), lambda: w.zero_()):
    attempt(f)
    print(w)
names = []
class Named(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        names.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)
n = torch.ones(2, 2).as_subclass(Named)
n[0]
n[0] = 1
del w, inner, n, i, v, f
"""


def test_wrappers():
    both(PROGRAM, layout=False)


class Held(jtorch.Tensor):
    """A wrapper that pickle finds by its name."""

    @staticmethod
    def __new__(cls, inner):
        return jtorch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError


def test_wrappers_are_pickled():
    made = pickle.loads(pickle.dumps(Held(jtorch.arange(4.0))))
    assert type(made) is Held and made.shape == (4,) and made.inner.tolist() == [0, 1, 2, 3]


SAVED = """
import io, sys, types
import torch
class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner, grad=False):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, strides=inner.stride(), dtype=torch.float16, requires_grad=grad)
    def __init__(self, inner, grad=False):
        self.inner, self.kind = inner, "mine"
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.detach.default:
            return Wrapped(args[0].inner)
        raise NotImplementedError(str(func))
home = sys.modules["home_of_wrapped"] = types.ModuleType("home_of_wrapped")
home.Wrapped, Wrapped.__module__, Wrapped.__qualname__ = Wrapped, home.__name__, "Wrapped"
torch.serialization.add_safe_globals([Wrapped])
f = io.BytesIO()
torch.save({"w": torch.nn.Parameter(Wrapped(torch.arange(6.).view(2, 3).t()), False), "g": Wrapped(torch.ones(2), True)}, f)
for safe in (True, False):
    f.seek(0)
    found = torch.load(f, weights_only=safe)
    for w in found.values():
        print(type(w).__name__, w.dtype, tuple(w.shape), w.stride(), w.requires_grad, w.device, w.kind, w.inner.tolist(), isinstance(w, torch.nn.Parameter))
torch.serialization.clear_safe_globals()
del sys.modules["home_of_wrapped"], home, Wrapped, w, found, f
"""


def test_saving():
    """torch.save and torch.load of a wrapper: what it wraps comes with its attributes, in both ways of loading."""
    both(SAVED, layout=False)


@pytest.mark.parametrize("t", [torch, jtorch], ids=["torch", "jtorch"])
def test_redispatch_skips_one_call(t):
    seen = []

    class Sub(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args, kwargs=None):
            seen.append(func.__name__)
            return t.overrides.redispatch_function(func, types, args, kwargs)

    def scaled(a, b):
        if t.overrides.has_torch_function((a, b)):
            return t.overrides.handle_torch_function(scaled, (a, b), a, b)
        return a * b + 1

    made = scaled(Sub(t.tensor([3.0])), t.tensor([4.0]))
    assert (type(made), made.tolist(), seen) == (t.Tensor, [13.0], ["scaled", "mul"])
