"""The order of arguments that PyTorch has deprecated and still takes: a number before its tensor, as in x.add_(alpha, other).

Programs and optimizers of its first years call so. Names with a line before them stand for what comes after the tensors in such
a call; they have a number's default otherwise, and a plain call does not look at them.
"""

import inspect

from .. import errors
from ..ops.registry import NUMBER
from ..tensor import Tensor
from . import call

_THREE = dict.fromkeys(("TNT", "TNN", "NNT", "NNN"), "Number {2}, Tensor {1}")  # a number serves as a tensor
_FOUR = {"TNTT": "Number {3}, Tensor {1}, Tensor {2}"}
_FIVE = {
    "NTNTT": "Number {3}, Tensor {0}, Number {4}, Tensor {1}, Tensor {2}", "NTTT": "Number {3}, Tensor {0}, Tensor {1}, Tensor {2}",
    "TNNTT": "Number {3}, Number {4}, Tensor {1}, Tensor {2}", "TNTT": "Number {3}, Tensor {1}, Tensor {2}",
}  # fmt: skip
# The kinds of arguments of each form, and how a warning writes it.
FORMS = {"add": _THREE, "sub": _THREE, "addcmul": _FOUR, "addcdiv": _FOUR} | dict.fromkeys(
    ("addmm", "addmv", "addr", "addbmm", "baddbmm"), _FIVE
)
_said = [False]  # PyTorch says it once in a process


def names(op):
    """Names for arguments that come after the tensors in this order."""
    return [f"_{p.name}" for p, r in zip(op.params, op.roles) if r == NUMBER] if op.name in FORMS else []


def put(parts, op, late):
    """Put the names into a parameter list, after the tensors."""
    if late:
        at = len(op.params) - len(late)
        parts[at:at] = [f"{n}=_d_{late[0][1:]}" for n in late]


def hidden(late, fn):
    """The function, whose signature does not show these names."""
    if late:
        signature = inspect.signature(fn)
        fn.__signature__ = signature.replace(
            parameters=[p for p in signature.parameters.values() if p.name not in late]
        )
    return fn


def slow(op, args, late, out, public):
    """A call out of the ordinary, or one in the old order. late: what was given after the tensors, or a number's default."""
    default = next(p.default for p, r in zip(op.params, op.roles) if r == NUMBER)
    if all(a is default for a in late):
        return call.slow(op, args, out, public)
    given, named = args[: len(args) - len(late)], args[len(args) - len(late) :]
    return reordered(op, (*given, *late), named, out, public)


def reordered(op, given, named, out, public):
    """The call as it is written today. named: the numbers given by name. Raises TypeError for arguments of no form."""
    default = next(p.default for p, r in zip(op.params, op.roles) if r == NUMBER)
    while given[-1] is default:
        given = given[:-1]
    kinds = "".join(
        "T" if isinstance(a, Tensor) else "N" if isinstance(a, (int, float, complex)) else "?" for a in given
    )
    form = FORMS[op.name].get(kinds)
    params, name = [p.name for p in op.params], public.__name__
    now = [f"{'Tensor' if r != NUMBER else '*, Number'} {n}" for n, r in zip(params, op.roles)][1:]
    wanted = f"({', '.join(now)})"
    if form is None or any(a is not default for a in named):
        raise errors.combination(name, given, wanted)
    if not _said[0]:
        _said[0] = True
        errors.warn(
            f"This overload of {name} is deprecated:\n\t{name}({form.format(*params)})\n"
            f"Consider using one of the following signatures instead:\n\t{name}{wanted}"
        )
    kinds = "TNT" if FORMS[op.name] is _THREE else kinds
    tensors = [a for a, k in zip(given, kinds) if k == "T"]
    numbers = [n for n, r in zip(params, op.roles) if r == NUMBER]
    named = dict(zip(numbers, [a for a, k in zip(given, kinds) if k == "N"]))
    return public(*tensors, **named, **({} if out is None else {"out": out}))
