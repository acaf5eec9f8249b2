"""The private names of torch.fx's modules that packages import."""

import typing

Argument = Target = typing.Any
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


class TraceError(ValueError):
    """What tracing raises."""


class _CodeOnlyModule:
    """A module made of generated code: nothing is of it."""


def _copy_attr(from_module, to_module, target) -> None:
    """Copy the attribute at a dotted path between modules."""
    *path, name = target.split(".")
    for part in path:
        from_module, to_module = getattr(from_module, part), getattr(to_module, part)
    setattr(to_module, name, getattr(from_module, name))


def is_fx_tracing() -> bool:
    """False."""
    return False


is_fx_symbolic_tracing = is_fx_tracing
