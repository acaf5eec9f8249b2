"""Numbers as parts of keys: equal keys mean the same bits."""


class NegativeZero(float):
    """-0.0 as part of a key: it must not be found under 0.0."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other):
        return self is other

    def __ne__(self, other):
        return self is not other


MINUS_ZERO = NegativeZero(-0.0)
NAN = float("nan")


def number_key(x):
    """A number as it may stand in a key: equal keys mean the same bits."""
    if x != x:
        return NAN if type(x) is float else (str(x),)
    if not x and type(x) is float and str(x) == "-0.0":
        return MINUS_ZERO
    return x
