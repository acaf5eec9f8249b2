"""torch.fx.experimental.symbolic_shapes: the error that torch.export raises by its name. Sizes are numbers here."""

from ...export.errors import ConstraintViolationError

__all__ = ["ConstraintViolationError", "free_symbols", "guard_size_oblivious", "statically_known_true"]


def free_symbols(val) -> set:
    """Nothing: sizes are numbers."""
    return set()


def guard_size_oblivious(expr) -> bool:
    """The value itself."""
    return bool(expr)


statically_known_true = guard_size_oblivious
