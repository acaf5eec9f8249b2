"""Errors of what extends jtorch from outside: __torch_function__, __torch_dispatch__, custom operators."""


def no_override(name, types, modes) -> TypeError:
    """All that were asked returned NotImplemented."""
    lines = [f"  - mode object {m!r}" for m in modes] + [f"  - tensor subclass {t!r}" for t in types]
    return TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n\n"
        + "\n".join(lines)
    )


def not_a_subclass() -> TypeError:
    return TypeError(
        "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your class "
        "inherits from Tensor."
    )


def needs_torch_dispatch(cls) -> TypeError:
    return TypeError(f"{cls.__name__} must define __torch_dispatch__")


def no_value_of_wrapper(cls, name) -> RuntimeError:
    return RuntimeError(
        f"Cannot access data pointer of Tensor that doesn't have storage\n  {name} reads the elements of a {cls.__name__}, which "
        "was made by _make_wrapper_subclass: its __torch_dispatch__ has to answer, or unwrap it first"
    )
