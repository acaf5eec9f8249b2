"""torch.utils.swap_tensors and set_module: what an object is, changed under its name."""

import weakref

from ..handles import Reference

__all__ = ["set_module", "swap_tensors"]


def set_module(obj, mod) -> None:
    """Say that an object is from this module. TypeError: that is no string."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def swap_tensors(t1, t2) -> None:
    """Put two tensors in each other's place, for everybody who holds them. RuntimeError: one has weak references.

    Class, attributes and everything that makes the tensor change places; the objects stay.
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if any(type(reference) is not Reference for reference in weakref.getweakrefs(t)):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    first, second = type(t1), type(t2)
    slots = sorted({s for c in (first, second) for k in c.__mro__ for s in _slots(k)})
    for s in slots:
        a, b = getattr(t1, s, _NONE), getattr(t2, s, _NONE)
        for t, v in ((t1, b), (t2, a)):
            if v is not _NONE:
                object.__setattr__(t, s, v)
            elif getattr(t, s, _NONE) is not _NONE:
                object.__delattr__(t, s)
    t1.__class__, t2.__class__ = second, first
    if hasattr(t1, "__dict__") and hasattr(t2, "__dict__"):
        t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__


_NONE = object()


def _slots(cls):
    found = cls.__dict__.get("__slots__", ())
    return [s for s in ((found,) if isinstance(found, str) else found) if s not in ("__weakref__", "__dict__")]
