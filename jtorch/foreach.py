"""torch._foreach_*: one operator on each tensor of a list. All of it is recorded, so a list costs one program, not one call a tensor."""

import functools

from . import functions
from .tensor import Tensor

_UNARY = (
    "abs", "acos", "asin", "atan", "ceil", "clone", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma", "log",
    "log10", "log1p", "log2", "max", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh",
    "trunc", "zero_",
)  # fmt: skip
_BINARY = ("add", "sub", "mul", "div", "pow", "clamp_max", "clamp_min", "maximum", "minimum", "copy_", "lerp", "mm")
_SCALED = ("addcmul", "addcdiv")
_NOT_IN_PLACE = ("clone", "max", "mm")
# Names of arguments by which the function of one tensor does not know them.
_NAMES = {"scalar": "other", "scalars": "other", "tensors1": "end", "weights": "weight", "src": "other"}
_BOUNDS = {"maximum": "min", "minimum": "max", "clamp_min": "min", "clamp_max": "max"}


def _tensors(name, given):
    if not isinstance(given, (list, tuple)) or not all(isinstance(t, Tensor) for t in given):
        raise TypeError(
            f"_foreach_{name}(): argument 'self' (position 1) must be tuple of Tensors, not {type(given).__name__}"
        )
    if not given:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return list(given)


def _spread(argument, n):
    """An argument for each of n tensors: lists give each its own, what is no list is for all."""
    if isinstance(argument, (list, tuple)):
        if len(argument) != n:
            if argument and isinstance(argument[0], Tensor):
                raise RuntimeError(f"Tensor lists must have the same number of tensors, got {n} and {len(argument)}")
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        return argument
    if isinstance(argument, Tensor) and argument.dim():
        raise RuntimeError(
            f"scalar tensor expected to be 0 dim but it has {argument.dim()} dimensions and {argument.numel()} elements."
        )
    return (argument,) * n


def _bound(base, t, other):
    return getattr(t, base)(other) if isinstance(other, Tensor) else t.clamp(**{_BOUNDS[base]: other})


def _method(name):
    """The function of one tensor, and of what belongs to it."""
    base = name.removesuffix("_")
    if base in _BOUNDS:
        bound = _BOUNDS[base]
        return (lambda t, other: t.clamp_(**{bound: other})) if name != base else functools.partial(_bound, base)
    if name == "powsum":
        return lambda t, ord: t.abs().pow(ord).sum()
    return functions.lookup("linalg", "vector_norm") if name == "norm" else getattr(Tensor, name)


@functools.cache
def function(name):
    """The function `_foreach_NAME`; None where PyTorch has none."""
    base = name if name in ("copy_", "zero_") else name.removesuffix("_")
    if base not in (*_UNARY, *_BINARY, *_SCALED, "norm", "powsum"):
        return None
    if base != name and base in (*_NOT_IN_PLACE, "norm", "powsum"):
        return None
    method = _method(name)

    def call(self, *args, **kwargs):
        if name == "pow" and isinstance(self, (int, float, complex)):
            return tuple(self**e for e in _tensors(name, args[0]))
        tensors = _tensors(name, self)
        if base in _SCALED and (len(args) == 3 or "scalars" in kwargs):
            value = args[2] if len(args) == 3 else kwargs.pop("scalars")
            args, kwargs = args[:2], {**kwargs, "value": value.tolist() if isinstance(value, Tensor) else value}
        n = len(tensors)
        spread = [_spread(a, n) for a in args]
        named = {_NAMES.get(k, k): _spread(v, n) for k, v in kwargs.items() if k != "non_blocking"}
        results = [
            method(t, *[a[i] for a in spread], **{k: v[i] for k, v in named.items()}) for i, t in enumerate(tensors)
        ]
        return self if name.endswith("_") else tuple(results)

    call.__name__ = call.__qualname__ = f"_foreach_{name}"
    return call
