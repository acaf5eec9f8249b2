"""What torch.compile raises, by the classes of torch._dynamo.exc that programs catch."""

__all__ = [
    "BackendCompilerFailed", "FailOnRecompileLimitHit", "InternalTorchDynamoError", "InvalidBackend", "RecompileLimitExceeded",
    "TorchDynamoException", "Unsupported", "UserError",
]  # fmt: skip


class TorchDynamoException(RuntimeError):
    """The base of what a compiled call raises."""


class InternalTorchDynamoError(TorchDynamoException):
    """An error of the compiler itself: nothing here raises it."""


class InvalidBackend(TorchDynamoException):
    """A backend of an unknown name."""


class Unsupported(TorchDynamoException):
    """A region that was to be one graph breaks."""


class UserError(Unsupported):
    """What a program has asked for cannot be: dynamic_shapes that do not fit."""


class BackendCompilerFailed(TorchDynamoException):
    """An error of a backend: nothing here raises it."""


class RecompileLimitExceeded(Unsupported):
    """Too many programs of one function: nothing here raises it."""


class FailOnRecompileLimitHit(Exception):
    """The same, where a program asked for an error."""


def invalid_backend(name, known) -> InvalidBackend:
    """The error of an unknown backend."""
    return InvalidBackend(
        f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.\n  {', '.join(known)}"
    )


def unrecognized_mode(mode, known) -> RuntimeError:
    """The error of an unknown mode."""
    return RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(known)}")


def not_callable(model) -> AssertionError:
    """The error of what is neither a function nor a module."""
    return AssertionError(f"A callable function is expected, but {type(model)} is provided.")


def breaks(name, line, cause) -> Unsupported:
    """The error of a break in a region that was to be one graph."""
    return Unsupported(
        f"torch.compile(fullgraph=True): {name} breaks at {line}: {cause}\n"
        "  a Python value was asked of a tensor there (item, bool, print, numpy, a shape that depends on data); "
        "use torch.where, masked_fill or keep the value as a tensor, or drop fullgraph=True"
    )
