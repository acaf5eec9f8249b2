"""Python ints that int64 does not hold, as PyTorch reads them: 64 bits without a sign, else OverflowError."""

LOW, HIGH = -(2**63), 2**63 - 1


def is_wide(x) -> bool:
    """Whether a number is finite and past the range of int64: it may be past that of a dtype too."""
    return type(x) is not complex and not LOW <= x <= HIGH and x - x == 0


def check(x: int) -> int:
    """The int, once 64 bits hold it."""
    if x < LOW:
        raise OverflowError("can't convert negative int to unsigned")
    if x > 2 * HIGH + 1:
        raise OverflowError("int too big to convert")
    return x


def wrapped(x: int) -> int:
    """The int64 of the same bits."""
    return check(x) if x <= HIGH else check(x) - 2**64
