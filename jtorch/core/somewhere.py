"""Offsets that are not known yet: where the row lies that an index picks which has been recorded and not computed."""

import jax.numpy as jnp
import numpy as np

from . import crowd
from .program import Plan

_NONE = object()


class Unasked(Exception):
    """Raised by the hash of a Somewhere, which is its argument: whoever can do without the number reads by `read`."""


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
        raise Unasked(self)

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


_plans: dict[tuple, Plan | None] = {}
crowd.forgetters += (_plans.clear,)


def read(storage, spec, where, graph, read_at, view_plan):
    """The value of a spec at an offset that is not known, recorded with the indices' values where that can be.

    read_at: the function that reads at a number. view_plan: the plan that does, and the numbers that it takes.
    """
    base, indices = storage.spec, where.indices
    if where.sum is None:
        key = (base, spec, where.start, *[(i.spec, i.size, i.stride) for i in indices])
        plan = _plans.get(key, _NONE)
        if plan is _NONE:
            plan = _plans[key] = _plan(base, spec, where, view_plan)
        if plan is not None:
            return graph.recn(plan, (storage.value, *[i.value for i in indices]))[0]
    return read_at(storage, spec, int(where))


def _plan(base, spec, where, view_plan):
    """The plan that reads by values, where each index adds as much to each number that the known one takes, up to the last row of all."""
    sizes, strides = [i.size for i in where.indices], [i.stride for i in where.indices]
    first, starts = view_plan(base, spec, where.start, 0)
    if first is None:
        return None
    steps = []
    for size, stride in zip(sizes, strides):
        plan, others = view_plan(base, spec, where.start + (stride if size > 1 else 0), 0)
        if plan is not first:
            return None
        steps.append([b - a for a, b in zip(starts, others)])
        if min(steps[-1], default=0) < 0:  # a carry, as of rows that begin in the middle of the storage's own
            return None
    plan, last = view_plan(base, spec, where.start + sum((n - 1) * s for n, s in zip(sizes, strides)), 0)
    if plan is not first or list(last) != [
        a + sum((n - 1) * d[k] for n, d in zip(sizes, steps)) for k, a in enumerate(starts)
    ]:
        return None

    def kernel(array, *indices):
        whole = [i.astype(jnp.int64) for i in indices]
        whole = [jnp.clip(jnp.where(i < 0, i + n, i), 0, n - 1) for i, n in zip(whole, sizes)]
        return first.fn(array, *[a + sum(i * d[k] for i, d in zip(whole, steps)) for k, a in enumerate(starts)])

    return Plan(None, "read", kernel, (base, *[i.spec for i in where.indices]), specs=first.specs)
