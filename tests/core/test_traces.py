"""core/traces.py: the parts of a traced loop, whatever the version of jax calls them."""

import jax
import jax.numpy as jnp

from jtorch.core import traces


def parts(f, *args):
    return [traces.scan_parts(e) for e in jax.make_jaxpr(f)(*args).jaxpr.eqns if e.primitive.name == "scan"]


def test_parts_of_a_loop():
    """Also of one that carries what has the shape of what it takes, and of one that takes nothing."""
    x, c = jnp.ones(2), jnp.ones(2)
    assert parts(lambda x, c: jax.lax.scan(lambda s, v: (s + v * c, (s, v)), x, jnp.stack([x, x])), x, c) == [(1, 1)]
    assert parts(lambda x: jax.lax.scan(lambda s, _: ((s[1], s[0]), s[0]), (x, x), None, length=3), x) == [(0, 2)]
    assert parts(lambda x: jax.lax.scan(lambda s, v: (s, v.sum()), None, jnp.stack([x, x])), x) == [(0, 0)]
