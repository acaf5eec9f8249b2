"""The rows: for each op what is special about it; the properties that all must have are in test_rows.py."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field

PROPERTIES = ("value", "layout", "grad", "gradgrad", "inplace", "out", "modes", "traced", "errors")


@dataclass(frozen=True)
class T:
    """A tensor of normal random numbers in a hand-made sample; `kind`: "int" (indices below 2), "int8", "bool", "complex"."""

    shape: tuple
    kind: str = "float"

    def __init__(self, *shape, kind="float"):
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "kind", kind)


@dataclass(frozen=True)
class Row:
    """One op under its public name; see `row`."""

    name: str
    samples: list | None = None
    tol: dict = field(default_factory=dict)
    skip: tuple = ()
    only: Callable | None = None
    random: bool = False
    why: str = ""

    def __post_init__(self):
        departs = self.tol or self.skip or (self.only and not self.random)
        if departs and not self.why:
            raise ValueError(f"row {self.name} departs from the default and does not say why")
        if any(max(t) > 1e-2 for t in self.tol.values()):
            raise ValueError(f"row {self.name}: a tolerance past 1e-2 tests nothing; skip it and say so")
        unknown = set(self.skip) - set(PROPERTIES)
        if unknown:
            raise ValueError(f"row {self.name} skips what is not a property: {sorted(unknown)}")


def row(name, **special):
    """An op's row. Samples are those of PyTorch's OpInfo database unless given.

    samples: lists of arguments, T(3, 4) for a tensor; a dict at the end holds keyword arguments
    tol: dtype name -> (rtol, atol)
    skip: properties that are not checked
    only: (sample, result) -> what is well defined of the result, None when nothing is
    random: results are random numbers: `only` is compared, gradients and modes are not
    why: the reason for any of these
    """
    return Row(name, **special)


def all_rows():
    """family -> its rows, of all files in this folder."""
    families = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        if hasattr(module, "ROWS"):
            families[info.name] = module.ROWS
    return families
