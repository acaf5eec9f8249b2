"""Offsets that are not known yet: where the row lies that an index picks which has been recorded and not computed."""

import numpy as np


class Unasked(Exception):
    """Raised by the hash of a Somewhere: whoever can do without the number reads by `view_plans.plan_by_values`."""


class Index:
    """An index of 0 dimensions: the value, how many there are to pick from, and how far apart in memory they lie."""

    __slots__ = ("value", "spec", "size", "stride", "dim", "number")

    def __init__(self, value, spec, size, stride, dim):
        self.value, self.spec, self.size, self.stride, self.dim = value, spec, size, stride, dim
        self.number = None

    def known(self) -> int:
        """The number, waited for. IndexError where it is out of bounds."""
        if self.number is None:
            i = int(np.asarray(self.value.get()))
            if not -self.size <= i < self.size:
                raise IndexError(f"index {i} is out of bounds for dimension {self.dim} with size {self.size}")
            self.number = i % self.size
        return self.number


class Somewhere:
    """An offset: a number and what indices add to it. Whatever asks for the sum gets it, and waits."""

    __slots__ = ("start", "indices", "sum")

    def __init__(self, start, indices):
        self.start, self.indices, self.sum = start, indices, None

    def __index__(self):
        if self.sum is None:
            self.sum = self.start + sum(i.known() * i.stride for i in self.indices)
        return self.sum

    __int__ = __index__

    def __hash__(self):
        raise Unasked

    def __add__(self, other):
        return self.__index__() + other if self.sum is not None else Somewhere(self.start + other, self.indices)

    __radd__ = __add__

    def __sub__(self, other):
        return self.__index__() - other

    def __rsub__(self, other):
        return other - self.__index__()

    def __mul__(self, other):
        return self.__index__() * other

    __rmul__ = __mul__

    def __mod__(self, other):
        return self.__index__() % other

    def __floordiv__(self, other):
        return self.__index__() // other

    def __bool__(self):
        return bool(self.__index__())

    def __eq__(self, other):
        return self is other or self.__index__() == other

    def __lt__(self, other):
        return self.__index__() < other

    def __le__(self, other):
        return self.__index__() <= other

    def __gt__(self, other):
        return self.__index__() > other

    def __ge__(self, other):
        return self.__index__() >= other

    def __repr__(self):
        return repr(self.__index__())

    def __reduce__(self):
        return int, (self.__index__(),)


def beyond(offset, index) -> Somewhere:
    """The offset of a row: that of the first one, and what an Index adds."""
    if type(offset) is Somewhere and offset.sum is None:
        return Somewhere(offset.start, (*offset.indices, index))
    return Somewhere(int(offset), (index,))
