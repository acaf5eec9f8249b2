"""The parts of a traced loop, where each version of jax says so."""


def scan_parts(eqn) -> tuple[int, int]:
    """How many operands of a `scan` are the same in all turns, and how many it carries from one to the next.

    Parameters say it until jax 0.10. The dimensions do in all: what is taken and made turn by turn has one more outside the loop.
    """
    body = getattr(eqn.params["jaxpr"], "jaxpr", eqn.params["jaxpr"])
    n_each = _differing(eqn.invars, body.invars)
    n_carry = len(eqn.outvars) - _differing(eqn.outvars, body.outvars)
    return len(eqn.invars) - n_each - n_carry, n_carry


def _differing(outside, inside) -> int:
    return sum(a.aval.ndim != b.aval.ndim for a, b in zip(outside, inside))
