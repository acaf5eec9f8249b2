"""Numbers that multiply tensors: `alpha`, `beta`, `value`."""

from ..core import dtype as dtypes
from ..ops.registry import NUMBER

FACTORS = {"alpha", "beta", "value"}


def check_factors(op, call, dtype):
    """Raise for a factor that is too large for what it multiplies, of this dtype."""
    for p, role, slot in zip(op.params, op.roles, call.slots):
        if role == NUMBER and slot[0] == "n" and p.name in FACTORS and dtype is not None:
            # PyTorch computes halves in float32, some of them
            dtypes.check_number(
                call.numbers[slot[1]], dtypes.float32 if dtype.itemsize == 2 and dtype.is_floating_point else dtype
            )
