"""Functions of each element that leave zero at zero: they act on the values of sparse tensors."""

from .. import errors_sparse
from .. import functions as F
from .base import HANDLERS, handles, into, is_sparse, like
from .conversions import coalesce
from .tape import step, values_of, with_values

# name of the function -> name of its step on the tape
ZERO_PRESERVING = {
    "abs": "Abs", "arcsin": "Asin", "arcsinh": "Asinh", "arctan": "Atan", "arctanh": "Atanh", "asin": "Asin", "asinh": "Asinh",
    "atan": "Atan", "atanh": "Atanh", "ceil": "Ceil", "conj_physical": "ConjPhysical", "deg2rad": "Deg2Rad", "erf": "Erf",
    "erfinv": "Erfinv", "expm1": "Expm1", "floor": "Floor", "frac": "Frac", "isinf": "", "isnan": "", "isneginf": "", "isposinf": "",
    "log1p": "Log1P", "nan_to_num": "NanToNum", "positive": "", "rad2deg": "Rad2Deg", "relu": "Relu",
    "round": "Round", "sgn": "Sgn", "sign": "Sign", "signbit": "", "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "square": "Pow",
    "tan": "Tan", "tanh": "Tanh", "trunc": "Trunc", "fix": "Trunc", "absolute": "Abs", "conj": "Conj", "real": "Real", "imag": "Imag",
    "resolve_conj": "", "angle": "Angle", "hardshrink": "Hardshrink", "softshrink": "Softshrink", "leaky_relu": "LeakyRelu",
}  # fmt: skip
_LINEAR = {"positive", "conj", "conj_physical", "deg2rad", "rad2deg", "real", "imag", "resolve_conj"}


def mapped(name, label):
    """The handler of a function of the values."""

    def handler(input, *args, out=None, **kwargs):
        pattern = input
        if input._kind == "coo" and name not in _LINEAR:  # of a sum, not a sum of each
            pattern = coalesce(input)
        fn = getattr(F, name, None) or getattr(F.functional, name)
        values = fn(values_of(pattern), *args, **kwargs)
        return into(out, with_values(pattern.detach(), values, f"{label}Backward0"))

    handler.__name__, handler.coalesces = name, name not in _LINEAR
    return handler


for _name, _label in ZERO_PRESERVING.items():
    handles(_name)(mapped(_name, _label))


@handles("neg", "negative", "__neg__")
def neg(input, *, out=None):
    """The values' negatives."""
    kept = input.detach()
    return into(
        out, step("NegBackward0", (input,), lambda: like(kept, kept._at, -kept._of, kept._whole), lambda g: -g, False)
    )


handles("__abs__")(HANDLERS["abs"])


@handles("pow", "__pow__")
def power(input, exponent, *, out=None):
    """Powers by a positive number."""
    if is_sparse(exponent) or not is_sparse(input) or not _positive(exponent):
        raise errors_sparse.power(exponent)
    return into(out, mapped("pow", "Pow")(input, exponent))


def _positive(x) -> bool:
    return isinstance(x, (int, float)) and x > 0


@handles("dropout", "native_dropout")
def dropout(input, p=0.5, training=True, train=None, inplace=False):
    """Dropout of the values."""
    pattern = coalesce(input) if input._kind == "coo" else input
    values = F.dropout(values_of(pattern), p, training if train is None else train)
    return with_values(pattern.detach(), values, "NativeDropoutBackward0")


for _name in (
    "is_floating_point",
    "is_complex",
    "is_signed",
    "is_inference",
    "is_conj",
    "is_neg",
    "numel",
    "detach",
    "detach_",
):
    handles(_name)(lambda input, _name=_name: getattr(input, _name)())
handles("is_nonzero")(bool)
handles("is_same_size")(lambda input, other: tuple(input.shape) == tuple(other.shape))
