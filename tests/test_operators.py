"""The operators of Tensor on what is no tensor, and the names under which subclasses are asked for them."""

import operator

import pytest

from tests.oracle import both


def operators_of_ducks(t):
    """Operators between a tensor and what is none. PyTorch's names differ where a method of Tensor is a function of Python."""

    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return [type(a).__name__ for a in args], sorted(kwargs or {})

    class Mute:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    p = t.ones(2)
    every = [
        getattr(operator, n) for n in "add sub mul floordiv mod pow matmul and_ or_ xor lshift rshift eq lt".split()
    ]
    there = [getattr(operator, n) for n in "iadd ifloordiv imod ipow imatmul iand ilshift".split()]
    found = [f(p, Duck()) for f in [*every, *there, operator.truediv]] + [f(Duck(), p) for f in every]
    for a, b in ((p, Mute()), (Mute(), p)):
        for f in (operator.matmul, operator.mod, operator.add):
            try:
                found.append(f(a, b))
            except TypeError as error:
                found.append(str(error).split(":")[0])
    return found


def names_of_operators(t):
    class Asked(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    x = t.ones(2).as_subclass(Asked)
    in_place = "iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor ilshift irshift".split()
    return [getattr(operator, n)(x, t.ones(2)) for n in in_place], reversed(x)


@pytest.mark.parametrize("program", [operators_of_ducks, names_of_operators])
def test_operators(program):
    both(program)
