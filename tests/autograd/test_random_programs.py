"""Random programs of views, writes in place, clones, detaches and backward passes: every observable equals torch's.

JTORCH_PROGRAMS sets how many are tried (CI: few; the long run: 2000 and more).
"""

import os
import warnings

import pytest

pytest.importorskip("torch")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jtorch
from tests.oracle import torch

COUNT = int(os.environ.get("JTORCH_PROGRAMS", "40"))


def _in_no_grad(module, f):
    with module.no_grad():
        return f()


def _fits(t, u):
    """Whether u may be written to t: torch's result is undefined where they share memory in part."""
    return t.shape == u.shape and t.untyped_storage().data_ptr() != u.untyped_storage().data_ptr()


def _cloned(t):
    return None if t is None else t.contiguous().clone()


def _set(t, index, value):
    t[index] = value


def _data_added(t):
    """A write through `.data` to what nobody has saved: saved tensors are values here, and stay as they were."""
    t.data.add_(1)
    return t


def _set_grad_none(t):
    t.grad = None


# name -> (module, t, u, k) -> new tensors, or None. `u` is another tensor, k a small number.
VIEWS = {
    "select": lambda m, t, u, k: t.select(k % t.dim(), 0),
    "slice": lambda m, t, u, k: t[k % 2 :],
    "narrow": lambda m, t, u, k: t.narrow(k % t.dim(), 0, 1),
    "t": lambda m, t, u, k: t.transpose(0, -1),
    "flat": lambda m, t, u, k: t.view(-1),
    "reshape": lambda m, t, u, k: t.reshape(-1),
    "unsqueeze": lambda m, t, u, k: t.unsqueeze(k % (t.dim() + 1)),
    "expand": lambda m, t, u, k: t.expand(2, *t.shape),
    "diagonal": lambda m, t, u, k: t.diagonal(),
    "view_as": lambda m, t, u, k: t.view_as(t),
    "unbind": lambda m, t, u, k: t.unbind(0),
    "split": lambda m, t, u, k: t.split(1, k % t.dim()),
    "detach": lambda m, t, u, k: t.detach(),
    "alias": lambda m, t, u, k: t[...],
    "squeeze": lambda m, t, u, k: t.squeeze(),
    "as_strided": lambda m, t, u, k: t.as_strided((2,), (1,), k),
    "unfold": lambda m, t, u, k: t.unfold(0, 1, 1),
    "chunk": lambda m, t, u, k: t.chunk(2, k % t.dim()),
    "permute": lambda m, t, u, k: t.permute(tuple(reversed(range(t.dim())))),
}
VALUES = {
    "double": lambda m, t, u, k: t * 2,
    "plus": lambda m, t, u, k: t + u,
    "times": lambda m, t, u, k: t * u,
    "clone": lambda m, t, u, k: t.clone(),
    "contiguous": lambda m, t, u, k: t.contiguous(),
    "minus": lambda m, t, u, k: k - t,
    "relu": lambda m, t, u, k: t.relu(),
    "no_grad": lambda m, t, u, k: _in_no_grad(m, lambda: t + 1),
    "cat": lambda m, t, u, k: m.stack([t, t]),
}
WRITES = {
    "add_": lambda m, t, u, k: t.add_(k),
    "mul_": lambda m, t, u, k: t.mul_(2),
    "add_ other": lambda m, t, u, k: t.add_(u) if _fits(t, u) else None,
    "mul_ other": lambda m, t, u, k: t.mul_(u) if _fits(t, u) else None,
    "copy_": lambda m, t, u, k: t.copy_(u) if _fits(t, u) else None,
    "zero_": lambda m, t, u, k: t.zero_(),
    "fill_": lambda m, t, u, k: t.fill_(k),
    "neg_": lambda m, t, u, k: t.neg_(),
    "relu_": lambda m, t, u, k: t.relu_(),
    "set": lambda m, t, u, k: _set(t, 0, float(k)),
    "set all": lambda m, t, u, k: _set(t, slice(None), u) if u.numel() > 1 and _fits(t, u) else None,
    "no_grad add_": lambda m, t, u, k: _in_no_grad(m, lambda: t.add_(1)),
    "no_grad mul_": lambda m, t, u, k: _in_no_grad(m, lambda: t.mul_(2)),
    "detached add_": lambda m, t, u, k: t.detach().add_(1),
    "data add_": lambda m, t, u, k: _data_added(t.detach().clone()),
    "t_": lambda m, t, u, k: t.t_(),
    "masked_fill_": lambda m, t, u, k: t.masked_fill_(t > k, k),
    "addcmul_": lambda m, t, u, k: t.addcmul_(u, u) if _fits(t, u) else None,
    "sub_ column": lambda m, t, u, k: t[..., 0].sub_(k),
    "squeeze_": lambda m, t, u, k: t.squeeze_(),
    "unsqueeze_": lambda m, t, u, k: t.unsqueeze_(0),
    "transpose_": lambda m, t, u, k: t.transpose_(0, -1),
    "detach_": lambda m, t, u, k: t.detach_(),
}
OTHER = {
    "backward": lambda m, t, u, k: (t * t).sum().backward(retain_graph=True) if t.requires_grad else None,
    "backward once": lambda m, t, u, k: t.sum().backward() if t.requires_grad else None,
    "leaf": lambda m, t, u, k: m.ones(2, 3, dtype=m.float64) * 1 if k % 2 else m.ones(2, 3, dtype=m.float64),
    "parameter": lambda m, t, u, k: m.ones(3, dtype=m.float64, requires_grad=True),
    "requires_grad_": lambda m, t, u, k: t.requires_grad_(bool(k % 2)),
    # Without `grad_fn` PyTorch crashes for a view that does not know yet that its base has a history.
    "hook": lambda m, t, u, k: (t.grad_fn, t.register_hook(lambda g: g * 2)) and None if t.requires_grad else None,
    "forget grad": lambda m, t, u, k: _set_grad_none(t),
    "grad": lambda m, t, u, k: _cloned(m.autograd.grad((t * 2).sum(), u, allow_unused=True, retain_graph=True)[0]) if t.requires_grad and u.requires_grad else None,
    "retain": lambda m, t, u, k: t.retain_grad() if t.requires_grad and not t.is_leaf else None,
}  # fmt: skip
STEPS = {**VIEWS, **VALUES, **WRITES, **OTHER}
NAMES = tuple(STEPS)


def _name(t):
    return type(t.grad_fn).__name__ if t.grad_fn is not None else None


def _seen(t):
    return (
        t.detach().tolist(), tuple(t.shape), tuple(s for s, n in zip(t.stride(), t.shape) if n > 1) if t.numel() > 1 else None, t.storage_offset(), t.requires_grad, t.is_leaf,
        _name(t), t._version, t._base is not None, None if t.grad is None else t.grad.tolist(),
    )  # fmt: skip


def execute(module, steps, look=True):
    """The log of a program: after each step the state of every tensor, or the error that ended it.

    look: or only after the last, so that the whole program is recorded as one graph.
    """
    pool = [
        module.arange(6, dtype=module.float64).reshape(2, 3).clone().requires_grad_(),
        module.ones(2, 3, dtype=module.float64),
        module.tensor([1.0, 2.0, 3.0], dtype=module.float64, requires_grad=True),
    ]
    log = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, i, j, k in steps:
            t, u = pool[i % len(pool)], pool[j % len(pool)]
            try:
                got = STEPS[name](module, t, u, k)
                new = [] if got is None else list(got) if isinstance(got, tuple) else [got]
                pool += [x for x in new if not any(x is p for p in pool)][: 9 - len(pool)]
                if look:
                    log.append((name, [_seen(p) for p in pool]))
            except Exception as e:
                log.append((name, type(e).__name__, str(e).split("\n")[0]))
        for p in () if look else pool:
            try:
                log.append(_seen(p))
            except RuntimeError as e:
                log.append(str(e).split("\n")[0])
    return log


step = st.tuples(st.sampled_from(NAMES), st.integers(0, 8), st.integers(0, 8), st.integers(0, 3))


@settings(
    max_examples=COUNT, deadline=None, derandomize=COUNT <= 40, database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
@given(st.lists(step, min_size=1, max_size=10))
def test_random_programs(steps):
    expected, got = execute(torch, steps), execute(jtorch, steps)
    for n, (a, b) in enumerate(zip(expected, got)):
        assert a == b, f"step {n} {steps[n]} of {steps}\n  torch  {a}\n  jtorch {b}"
    assert len(expected) == len(got)


@settings(
    max_examples=COUNT, deadline=None, derandomize=COUNT <= 40, database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
@given(st.lists(step, min_size=1, max_size=10), st.integers(0, 8))
def test_a_program_that_comes_again(steps, i):
    """From the third time on a backward pass need not be run to be recorded."""
    steps = [*steps, ("backward once", i, 0, 0)]
    expected = execute(torch, steps, look=False)
    for time in range(4):
        assert execute(jtorch, steps, look=False) == expected, f"time {time} of {steps}"
