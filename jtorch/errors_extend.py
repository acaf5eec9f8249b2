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


def no_values(name, cls) -> RuntimeError:
    return RuntimeError(
        f".{name}() is not supported for tensor subclasses.\n  a {cls.__name__} made by _make_wrapper_subclass has no elements of "
        "its own: unwrap it first"
    )


def no_dispatch(func, classes) -> TypeError:
    return TypeError(
        f"Multiple dispatch failed for '{func}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n"
        + "\n".join(f"  - tensor subclass {c!r}" for c in classes)
    )


def uninitialized(func) -> ValueError:
    return ValueError(
        f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a `LazyModule` or "
        "explicitly manipulating `torch.nn.parameter.UninitializedParameter` objects. When using LazyModules Call `forward` with a "
        "dummy batch to initialize the parameters before calling torch functions"
    )


def no_implementation(name, types, modes) -> TypeError:
    """As `no_override`, for functions that ask by themselves."""
    nor = "".join(f" nor was it found on the currently active mode {m}" for m in modes)
    return TypeError(
        f"no implementation found for '{name.replace('jtorch', 'torch', 1)}' on types that implement __torch_function__: "
        f"{list(types)}{nor}"
    )
