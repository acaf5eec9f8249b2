"""Paths into nested containers: one key a step."""

import dataclasses
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
