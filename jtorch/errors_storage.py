"""What making and sharing storage objects raises, and warns of."""

import warnings


def bad_arguments(detail, kind, name="TypedStorage.__init__", forms=None) -> Exception:
    """A storage class was called with the wrong arguments; `kind`: the exception's class."""
    forms = forms or (
        "(*, torch.device device, torch.dtype dtype)",
        "(int size, *, torch.device device, torch.dtype dtype)",
        "(Sequence data, *, torch.device device, torch.dtype dtype)",
        "(*, UntypedStorage wrap_storage, torch.dtype dtype)",
    )
    lines = "\n".join(f" * {form}" for form in forms)
    return kind(f"{name} received an invalid combination of arguments. Expected one of:\n{lines}\n{detail}")


def refused(cls, detail, kind) -> Exception:
    """The same, of a class named after a dtype."""
    forms = ("no arguments", "(int size)", "(Sequence data)", "(*, UntypedStorage wrap_storage)")
    return bad_arguments(detail, kind, f"<class 'torch.{cls.__name__}'>.__new__", forms)


def not_shared(holder):
    """`holder` itself, with a warning: what other processes write to it is not seen here."""
    warnings.warn(
        "share_memory_(): jtorch's tensors belong to one process. Another process gets a copy, and what it writes stays there: send "
        "results back through a queue or a file, or train with threads.",
        stacklevel=3,
    )
    return holder
