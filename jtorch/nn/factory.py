"""The arguments with which a module makes its tensors."""

__all__ = ["factory_kwargs"]

_NAMES = ("device", "dtype", "memory_format")


def factory_kwargs(kwargs):
    """The factory arguments among `kwargs`, joined with those in `kwargs["factory_kwargs"]`, as one dict.

    Raises TypeError where something else is there, or where one of them is given twice.
    """
    if kwargs is None:
        return {}
    unknown = kwargs.keys() - {*_NAMES, "factory_kwargs"}
    if unknown:
        raise TypeError(f"unexpected kwargs {unknown}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in _NAMES:
        if name in kwargs:
            if name in found:
                raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
            found[name] = kwargs[name]
    return found
