"""Names of sizes that may change, what can be computed of them, and hints in place of a name."""

import dataclasses

__all__ = ["Dim", "DimHint", "dims"]


class _Infinite:
    """The bound of what has none."""

    def __repr__(self):
        return "int_oo"


UNBOUNDED = _Infinite()


class DimHint:
    """In place of a name: a size that may change (AUTO: if it can), or must not (STATIC). Calling it gives it bounds."""

    def __init__(self, kind, min=None, max=None):
        self.kind, self.min, self.max = kind, min, max

    def __call__(self, min=None, max=None):
        return DimHint(self.kind, min, max)

    def __eq__(self, other):
        return isinstance(other, DimHint) and vars(self) == vars(other)

    def __hash__(self):
        return hash((self.kind, self.min, self.max))

    def __repr__(self):
        bounds = "".join(f", {n}={v}" for n, v in (("min", self.min), ("max", self.max)) if v is not None)
        return f"DimHint({self.kind}{bounds})"


class Dim:
    """The name of a size that may change from call to call. `2 * dim + 1` is the name of another that follows from it.

    Args:
        name: of the size
        min, max: what it may be

    AssertionError: the name is no identifier, the bounds leave nothing. NotImplementedError: another kind of arithmetic.
    """

    AUTO = DimHint("AUTO")
    DYNAMIC = DimHint("DYNAMIC")
    STATIC = DimHint("STATIC")

    def __init__(self, name, *, min=None, max=None):
        low, high = 0 if min is None else min, UNBOUNDED if max is None else max
        assert name.isidentifier(), f"Dim name must be a valid identifier, got {name}"
        assert max is None or max > low, f"Cannot create Dim with inconsistent min={low}, max={high}"
        self.__name__ = self.name = name
        self.min, self.max = low, high
        self.root, self.slope, self.offset = self, 1, 0

    def __add__(self, other):
        if type(other) is not int:
            raise _unsupported("add", other, self, "an integer")
        return _Derived(self.root, self.slope, self.offset + other)

    __radd__ = __add__

    def __sub__(self, other):
        if type(other) is not int:
            raise _unsupported("subtract", other, self, "an integer")
        return self + -other

    def __rsub__(self, other):
        raise NotImplementedError(
            f"Attempted to negate {self.__name__}. (Only increasing linear operations with integer coefficients are supported.)"
        )

    def __mul__(self, other):
        if type(other) is not int or other <= 0:
            raise _unsupported("multiply", other, self, "a positive integer")
        return _Derived(self.root, self.slope * other, self.offset * other)

    __rmul__ = __mul__

    def __repr__(self):
        low = "" if self.min == 2 else f", min={self.min}"  # 2 is what PyTorch takes for no bound
        return f"Dim('{self.__name__}'{low}{'' if self.max is UNBOUNDED else f', max={self.max}'})"


def _unsupported(what, other, dim, wanted):
    return NotImplementedError(
        f"Attempted to {what} {other} {'with' if what == 'multiply' else 'to' if what == 'add' else 'from'} {dim.__name__}, "
        f"where {wanted} was expected. (Only increasing linear operations with integer coefficients are supported.)"
    )


class _Derived(Dim):
    """slope * root + offset."""

    def __init__(self, root, slope, offset):
        self.root, self.slope, self.offset = root, slope, offset
        name = root.__name__ if slope == 1 else f"{slope}*{root.__name__}"
        self.__name__ = self.name = f"{name} {'-' if offset < 0 else '+'} {abs(offset)}" if offset else name
        self.min = slope * root.min + offset
        self.max = UNBOUNDED if root.max is UNBOUNDED else slope * root.max + offset

    def __repr__(self):
        return self.__name__


def dims(*names, min=None, max=None) -> tuple:
    """A Dim of each name, all with the same bounds."""
    return tuple(Dim(name, min=min, max=max) for name in names)


@dataclasses.dataclass(frozen=True)
class ValueRanges:
    """What a size may be."""

    lower: int
    upper: int | _Infinite

    def __repr__(self):
        return f"VR[{self.lower}, {self.upper}]"
