"""Numpy's rules where complex numbers or floats of 16 bits are in play.

Complex numbers are numpy's where nothing depends on how a product of infinities or a quotient is made. Floats of 16 bits are computed
with in float32 and rounded after each operation, as XLA does when it may not keep more.
"""

from types import SimpleNamespace

import jax
import numpy as np

from .numpy_rules import ALIKE, COMPLEX, SHORT
from .numpy_windows import NotHere

_UNUSUAL = COMPLEX | SHORT
_MOVES = {
    "transpose", "rev", "concatenate", "reshape", "squeeze", "expand_dims", "slice", "dynamic_slice", "dynamic_update_slice", "pad",
    "broadcast_in_dim", "select_n", "copy", "copy_p", "gather", "scatter", "stop_gradient",
}  # fmt: skip
_COMPLEX = _MOVES | {
    "add", "add_any", "sub", "neg", "eq", "ne", "real", "imag", "complex", "conj", "convert_element_type",
}  # fmt: skip
_ROUNDED_COMPLEX = {
    "mul", "square", "abs", "reduce_sum", "dot_general", "scatter-add", "scatter_add", "cumsum", "fft", "integer_pow",
}  # fmt: skip
_ADDED_ONE_BY_ONE = {  # XLA rounds each sum
    "scatter-add", "scatter_add", "scatter-mul", "scatter_mul", "cumsum", "cumprod", "reduce_window_sum",
}  # fmt: skip


def function_of(eqn, rules):
    """What gives the result of an equation, by such rules. Raises NotHere where there is none."""
    name = eqn.primitive.name
    rule = rules.get(name)
    if rule is None:
        raise NotHere
    dtypes = {v.aval.dtype for v in (*eqn.invars, *eqn.outvars)}
    if dtypes.isdisjoint(_UNUSUAL):
        return rule(eqn)
    made = eqn.outvars[0].aval.dtype
    if not dtypes.isdisjoint(COMPLEX):
        if name not in _COMPLEX and not (rules is ALIKE and name in _ROUNDED_COMPLEX):
            raise NotHere
        if name == "convert_element_type" and made not in COMPLEX:
            raise NotHere
        return rule(eqn)
    if name in _MOVES or name == "bitcast_convert_type":
        return rule(eqn)
    if name == "convert_element_type" and made in SHORT:
        return lambda x: x.astype(made)
    if name in _ADDED_ONE_BY_ONE:
        raise NotHere
    return _by_float32(rule, eqn, made)


def _by_float32(rule, eqn, made):
    run = rule(
        SimpleNamespace(
            primitive=eqn.primitive,
            params=eqn.params,
            invars=list(map(_wide, eqn.invars)),
            outvars=list(map(_wide, eqn.outvars)),
        )
    )
    short = [v.aval.dtype in SHORT for v in eqn.invars]

    def rounded(*operands):
        value = run(*[x.astype(np.float32) if is_short else x for x, is_short in zip(operands, short)])
        return value.astype(made) if made in SHORT else value

    return rounded


def _wide(v):
    aval = v.aval
    dtype = np.dtype(np.float32) if aval.dtype in SHORT else aval.dtype
    return SimpleNamespace(aval=jax.ShapeDtypeStruct(aval.shape, dtype))
