"""Paths into nested containers, one key a step, and the tuples that have names."""

import dataclasses
import functools
import types
from typing import Any


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """A position in a list or tuple."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        """The entry there."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """A key of a dict."""

    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        """The entry there."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """An attribute."""

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        """The entry there."""
        return getattr(obj, self.name)


def keystr(kp) -> str:
    """A path as text."""
    return "".join(map(str, kp))


def key_get(obj, kp):
    """What is at the end of a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def is_namedtuple_class(cls) -> bool:
    """Whether a class was made by namedtuple."""
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and type(fields) is tuple
        and all(type(f) is str for f in fields)
    )


def is_namedtuple(obj) -> bool:
    """Whether a value, or a class, is a namedtuple."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_instance(obj) -> bool:
    """Whether a value is a namedtuple."""
    return is_namedtuple_class(type(obj))


def is_structseq_class(cls) -> bool:
    """Whether a class is a C struct sequence, such as time.struct_time."""
    counts = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(isinstance(getattr(cls, c, None), int) for c in counts)
    )


def is_structseq(obj) -> bool:
    """Whether a value, or a class, is a C struct sequence."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_instance(obj) -> bool:
    """Whether a value is a C struct sequence."""
    return is_structseq_class(type(obj))


def map_only(type_or_types_or_pred, /):
    """A decorator: the function is applied to values of these types (or to those that a predicate picks) alone."""
    pick = type_or_types_or_pred
    if isinstance(pick, (type, tuple, types.UnionType)):
        wanted = lambda x: isinstance(x, pick)
    elif callable(pick):
        wanted = pick
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def wrapper(func):
        @functools.wraps(func)
        def wrapped(x):
            return func(x) if wanted(x) else x

        return wrapped

    return wrapper


def no_spec(found) -> TypeError:
    """The error about something in the place of a spec."""
    return TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(found)}.")


def no_name(cls) -> NotImplementedError:
    """The error about a spec to be written as text with a type that has no name there."""
    if is_namedtuple_class(cls):
        return NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {cls} because we didn't register a serializated_type_name. Please "
            "register using `_register_namedtuple`."
        )
    return NotImplementedError(
        f"No registered serialization name for {cls} found. Please update your _register_pytree_node call with a "
        "`serialized_type_name` kwarg."
    )
