"""core/hosted.py: operations run by numpy for their first times give what the compiled ones do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jtorch
from jtorch.core import device, hasty, record
from jtorch.core.dtype import float32
from jtorch.core.hosted import Hosted
from jtorch.core.program import Plan
from jtorch.core.spec import Spec

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


def part(x, begin, end):
    """Every second column; jax 0.7 has a gather for `x[:, ::2]`."""
    return jax.lax.slice(x, begin, end, (1, 2))


KERNELS = {
    "slices and joins": lambda x: jnp.concatenate([part(x, (1, 0), (3, 4)), part(x, (0, 1), (2, 4)) * 2], 1),
    "a write": lambda x: jax.lax.dynamic_update_slice(x, x[:1] + 1, (np.int32(2), np.int32(-9))),
    "a window": lambda x: jax.lax.dynamic_slice(x, (np.int32(7), np.int32(1)), (2, 2)),
    "a derivative": lambda x: jax.linear_transpose(lambda a: part(a, (0, 1), (3, 4)).T, x)(jnp.ones((2, 3), x.dtype))[
        0
    ],
    "padding inside": lambda x: jax.lax.pad(x, jnp.float32(7), [(1, 0, 2), (0, 2, 0)]),
    "choices": lambda x: jnp.where(x > 0, x, -x) / jnp.maximum(jnp.abs(x), 1),
    "no answers": lambda x: jnp.sqrt(x) / 0,
    "sums": lambda x: (x.sum(0), x.max(), (x > 0).any(1), x[:, :0].sum(1)),
    "parts": lambda x: tuple(jnp.split(x, [1, 2], axis=1)),
    "positions": lambda x: x + jax.lax.broadcasted_iota(jnp.int32, (3, 4), 1),
    "turned": lambda x: jnp.flip(x.T, 0).reshape(2, 6)[None],
    "one row": lambda x: x[1],
    "whole numbers": lambda x: (x > 0).astype(jnp.int32) & 3,
    "jax's own": lambda x: jax.nn.relu(x),
}


def plan_of(fn, *arrays):
    made = jax.eval_shape(fn, *arrays)
    outs = made if isinstance(made, tuple) else (made,)
    specs = tuple(Spec.dense(o.shape, jtorch.from_numpy(np.zeros((), o.dtype)).dtype, device.cpu) for o in outs)
    operands = tuple(Spec.dense(a.shape, float32, device.cpu) for a in arrays)
    return Plan(None, "kernel", fn, operands, specs=specs)


def refuse(*args):
    raise AssertionError("numpy was to run this")


@pytest.mark.parametrize("name", KERNELS)
def test_as_compiled(name):
    x = jnp.asarray(X)
    plan = plan_of(KERNELS[name], x)
    hosted = Hosted(plan, refuse)
    expected = jax.tree.leaves(jax.jit(plan.fn)(x))
    for _ in range(2):
        found = jax.tree.leaves(hosted(x))
        for e, f in zip(expected, found, strict=True):
            assert (e.dtype, e.shape, type(e)) == (f.dtype, f.shape, type(f))
            np.testing.assert_array_equal(e, f)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-4, 7), min_size=2, max_size=2), st.integers(1, 3), st.integers(1, 4))
def test_windows_that_leave_the_array(starts, rows, columns):
    x, value = jnp.asarray(X), jnp.ones((rows, columns), jnp.float32)
    for fn in (
        lambda x, v: jax.lax.dynamic_slice(x, list(map(np.int32, starts)), v.shape) * v,
        lambda x, v: jax.lax.dynamic_update_slice(x, v, list(map(np.int32, starts))),
    ):
        np.testing.assert_array_equal(Hosted(plan_of(fn, x, value), refuse)(x, value), fn(x, value))


@pytest.mark.parametrize(
    "fn",
    [
        jnp.tanh,
        lambda x: x @ x.T,
        lambda x: x.astype(jnp.int32),
        lambda x: x.astype(jnp.float8_e5m2),
        lambda x: x.T // 2,
        jnp.argmax,
    ],
)
def test_what_numpy_does_not_do_is_compiled(fn):
    """Once asked, the plan goes straight to what compiles it."""
    x = jnp.asarray(X)
    plan = Plan(
        None, "kernel", fn, (Spec.dense(x.shape, float32, device.cpu),), specs=(Spec.dense((), float32, device.cpu),)
    )
    compiled = jax.jit(fn)
    plan.first = Hosted(plan, compiled)
    np.testing.assert_array_equal(plan.first(x), compiled(x))
    assert plan.first is compiled


def test_values_that_numpy_has_other_results_for_are_compiled():
    """Integers divided by 0. The plan stays as it is, for other values."""

    def fn(x, y):
        return jax.lax.div(x, y)

    x, zeros, twos = (np.array(v, np.int32) for v in ([4, 0, 5], [0, 0, 5], [2, 2, 2]))
    plan = plan_of(lambda x: x, X)
    plan.fn, plan.jit = fn, jax.jit(fn)
    plan.first = Hosted(plan, plan.jit)
    for y in (zeros, twos, zeros):
        np.testing.assert_array_equal(plan.first(x, y), jax.jit(fn)(x, y))
    assert type(plan.first) is Hosted


@pytest.mark.usefixtures("own_programs")
@pytest.mark.parametrize("rounding", ["trunc", "floor"])
def test_integers_divided_by_0(rounding):
    x = jtorch.tensor([4, 0, 5])
    assert [x.div(x, rounding_mode=rounding).tolist()[::2] for _ in range(3)] == [[1, 1]] * 3


def test_numbers_and_traces():
    def fn(x, a, n):
        return x * a + n

    x = jnp.asarray(X)
    plan = plan_of(lambda x: x, x)
    plan.fn, plan.jit = fn, jax.jit(fn)
    hosted = Hosted(plan, fn)
    np.testing.assert_array_equal(hosted(x, 0.5, 3), fn(x, 0.5, 3))
    np.testing.assert_array_equal(jax.jit(lambda x: hosted(x, 0.5, 3))(x), fn(x, 0.5, 3))


@pytest.mark.usefixtures("own_programs")
def test_results_do_not_share_memory_with_what_is_donated():
    x = jtorch.ones(5)
    y = x.reshape(5, 1).expand(5, 1).clone()
    jtorch.synchronize()
    z = x.unsqueeze(0).clone()
    jtorch.synchronize()
    for _ in range(hasty.ENOUGH_BY_OP * 2):
        x.add_(1)
        jtorch.synchronize()
    assert z.tolist() == [[1.0] * 5]
    assert y.tolist() == [[1.0]] * 5


def test_results_are_committed_to_no_device():
    spec = Spec.dense((3, 4), float32, device.cpu)
    plan = Plan(None, "copy", lambda x: x[::-1], (spec,), specs=(spec,))
    run = Hosted(plan, plan.jit)
    assert not run(X).committed and not plan.jit(X).committed


@pytest.mark.usefixtures("own_programs")
def test_the_state_of_an_optimizer_is_not_compiled(request):
    """Zeros of each parameter's shape, made in the first step, and apart from it."""
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, _, **about: compiled.append(event) if "backend_compile" in event else None
    )
    request.addfinalizer(jax.monitoring.clear_event_listeners)
    param = jtorch.nn.Parameter(jtorch.ones(3, 337))
    jtorch.synchronize()
    compiled.clear()
    with record.at_once():
        made = jtorch.zeros_like(param)
    assert not compiled
    assert made.shape == (3, 337)
    assert not made.detach().numpy().any()
