"""Which numbers of a call PyTorch takes as tensors, and which derivatives save one of those."""

from ..ops.registry import SCALAR

# These have a form of their own for a Python number in the place of a tensor.
_SCALAR_FORMS = (
    "pow", "clamp", "clamp_min", "clamp_max", "remainder", "fmod", "lerp", "masked_fill", "index_fill", "floor_divide",
)  # fmt: skip


def as_tensor(op, role) -> bool:
    """Whether a number given for an argument of this role is a tensor to PyTorch, as the 2 of `x * 2` is."""
    return role == SCALAR and op.name not in _SCALAR_FORMS


def saves_number(binding, positions) -> bool:
    """Whether the derivative by these operands saves such a number, so that it can be taken once only."""
    slots = getattr(binding, "slots", None)
    if slots is None:
        return False
    op = binding.op
    owners = [p.name for p, slot in zip(op.params, slots) if slot[0] == "o" and slot[1] in positions]
    taken = {name for owner in owners for name in op.rule_args.get(owner, [p.name for p in op.params])}
    return any(
        slot[0] == "n" and as_tensor(op, role) and param.name in taken
        for param, role, slot in zip(op.params, op.roles, slots)
    )
