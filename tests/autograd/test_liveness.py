"""What a derivative keeps: the arguments that a jaxpr's results depend on, through calls and loops; and the same numbers without the others."""

import jax
import jax.numpy as jnp
import pytest

from jtorch.autograd.liveness import used_inputs


@jax.custom_jvp
def first(a, b):
    return jnp.sin(a)


first.defjvp(lambda primals, tangents: (first(*primals), tangents[0]))


@jax.custom_vjp
def second(a, b):
    return b * 2


second.defvjp(lambda a, b: (b * 2, ()), lambda kept, g: (g, g))


def counted(a, b, c):
    """The turns of a loop that carries all three: what is asked for comes from the first alone, and from the second after a turn."""
    return jax.lax.scan(lambda s, _: ((s[0] + s[1], s[1] * 2, s[2] + s[0]), None), (a, b, c), None, length=3)[0]


CASES = {
    "passed on": (lambda a, b, c: b, {1}),
    "no value": (lambda a, b, c: jnp.zeros(a.shape), set()),
    "dead code": (lambda a, b, c: [jnp.sin(a) * b, c][1], {2}),
    "a literal": (lambda a, b, c: a * 2.0 + 1.0, {0}),
    "twice": (lambda a, b, c: a * a + c, {0, 2}),
    "jit": (lambda a, b, c: jax.jit(lambda x, y, z: (x * y, z))(a, b, c)[1], {2}),
    "jit in jit": (lambda a, b, c: jax.jit(lambda x, y: jax.jit(lambda p, q: (p, q * 2))(x, y)[1])(a, c), {2}),
    "custom_jvp, whose rule may read all": (lambda a, b, c: first(a, b), {0, 1}),
    "custom_vjp": (lambda a, b, c: second(a, b), {0, 1}),
    "checkpoint": (lambda a, b, c: jax.checkpoint(lambda x, y: (x + 1, y * y))(a, c)[1], {2}),
    "scan of what it carries": (lambda a, b, c: counted(a, b, c)[0], {0, 1}),
    "scan of all": (lambda a, b, c: counted(a, b, c)[2], {0, 1, 2}),
    "scan over": (lambda a, b, c: jax.lax.scan(lambda s, x: (s + x[0], x[1]), c[0], (a, b))[0], {0, 2}),
    "scan, a start that no turn reads": (lambda a, b, c: jax.lax.scan(lambda s, x: (x, None), c[0], a)[0], {0, 2}),
    "cond": (lambda a, b, c: jax.lax.cond(a[0] > 0, lambda y, z: (y, z), lambda y, z: (y + 1, y), b, c)[0], {0, 1}),
    "while": (lambda a, b, c: jax.lax.while_loop(lambda s: s[0][0] < 9, lambda s: (s[0] + 1, s[1]), (a, b))[0], {0, 1}),
    "reduce": (lambda a, b, c: jax.lax.reduce(a, c[0], lambda x, y: y, (0,)), {0, 2}),
    "derivative": (lambda a, b, c: jax.vjp(lambda x: x * b, a)[1](c)[0], {1, 2}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_used_inputs(name):
    function, used = CASES[name]
    args = [jnp.arange(1.0, 4.0) + k for k in range(3)]
    traced = jax.make_jaxpr(function)(*args)
    assert used_inputs(traced.jaxpr) == used
    others = [v if k in used else jnp.full_like(v, jnp.nan) for k, v in enumerate(args)]
    assert jnp.array_equal(function(*args), function(*others))
