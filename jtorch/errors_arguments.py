"""Errors about arguments where ints or flags belong."""

from .errors import type_name


def int_element(function: str, name: str, position: int, at: int, got) -> TypeError:
    """Several ints, with something among them that is none."""
    return TypeError(
        f"{function}(): argument '{name}' (position {position}) must be tuple of ints, but found element of type "
        f"{type_name(got)} at pos {at}"
    )


def size_element(name, at: int, got, spread: bool) -> TypeError:
    """A size with something in it that is no int; `spread`: given one by one."""
    kind = type_name(got)
    if name is None:
        return TypeError(f"size must be a tuple of ints, but found element of type {kind}")
    if not spread:
        return TypeError(
            f"{name}(): argument 'size' (position 1) must be tuple of ints, but found element of type {kind} at pos {at}"
        )
    if not at:
        return TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, not {kind}")
    return TypeError(
        f"{name}(): argument 'size' failed to unpack the object at pos {at + 1} with error "
        f'"type must be tuple of ints,but got {kind}"'
    )


def flag(name: str, got) -> TypeError:
    """A flag of any factory that is no bool."""
    return TypeError(f"argument '{name}' must be bool, not {type_name(got)}")
