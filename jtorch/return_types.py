"""torch.return_types: the named tuples of ops with several results."""

from .dispatch.plans import PUBLIC_RETURN_NAMES, RETURN_FIELDS, return_type


def _names():
    return {PUBLIC_RETURN_NAMES.get(op, op): op for op in RETURN_FIELDS}


def __getattr__(name):
    op = _names().get(name)
    if op is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return return_type(op, RETURN_FIELDS[op])


def __dir__():
    return sorted(_names())
