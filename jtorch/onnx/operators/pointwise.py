"""Operators that work element by element."""

import math

import numpy as np

from ...core import dtype as dtypes
from ...dispatch.plans import result_dtype
from ..builder import TYPES, Value
from ..errors import option
from .record import TABLE, Operator, op

# Operators of the same name and meaning, whose operand has the result's dtype.
_SAME = {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "abs": "Abs", "absolute": "Abs", "neg": "Neg",
    "negative": "Neg", "ceil": "Ceil", "floor": "Floor", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan",
    "arcsin": "Asin", "arccos": "Acos", "arctan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh",
    "erf": "Erf", "sign": "Sign", "sgn": "Sign", "reciprocal": "Reciprocal", "softsign": "Softsign", "hardswish": "HardSwish", "mish": "Mish",
    "expit": "Sigmoid",
}  # fmt: skip
# Comparisons, whose operands have a dtype in common.
_COMPARED = {
    "eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual", "less": "Less", "greater": "Greater",
    "less_equal": "LessOrEqual", "greater_equal": "GreaterOrEqual",
}  # fmt: skip
_BOOLEAN = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
_BITS = {
    "bitwise_and": ("BitwiseAnd", "And"), "and_": ("BitwiseAnd", "And"), "bitwise_or": ("BitwiseOr", "Or"), "or_": ("BitwiseOr", "Or"),
    "bitwise_xor": ("BitwiseXor", "Xor"), "xor": ("BitwiseXor", "Xor"),
    "iand": ("BitwiseAnd", "And"), "ior": ("BitwiseOr", "Or"), "ixor": ("BitwiseXor", "Xor"),
}  # fmt: skip


def together(g, *operands):
    """Operands as values of the dtype that PyTorch computes in."""
    values = [x for x in operands if isinstance(x, Value)]
    dtype = result_dtype(values, [type(x) for x in operands if not isinstance(x, Value)])
    return [g.value(x, dtype) for x in operands]


def number(g, x):
    """A number as a constant of the result's dtype."""
    return g.value(x, g.dtype)


def _computed(g, x):
    """The operand with the dtype of the result, which is a number's where sizes are computed with."""
    return g.value(x, g.dtype)


def _enter(names, make):
    for name, kind in names.items():
        TABLE[name] = Operator(make(kind))


def _same(kind):
    return lambda g, input: g(kind, _computed(g, input))


def _comparison(kind):
    def compare(g, input, other):
        return g(kind, *together(g, input, other), dtype=dtypes.bool_, shape=g.shape)

    return compare


def _boolean(kind):
    def combine(g, input, other):
        return g(kind, *(g.value(x, dtypes.bool_) for x in (input, other)), shape=g.shape)

    return combine


def _bitwise(kinds):
    def combine(g, input, other):
        return g(kinds[g.dtype is dtypes.bool_], _computed(g, input), _computed(g, other), shape=g.shape)

    return combine


_enter(_SAME, _same)
_enter(_COMPARED, _comparison)
_enter(_BOOLEAN, _boolean)
_enter(_BITS, _bitwise)


@op("ne", "not_equal")
def ne(g, input, other):
    return g("Not", g("Equal", *together(g, input, other), dtype=dtypes.bool_, shape=g.shape))


@op("logical_not")
def logical_not(g, input):
    return g("Not", g.value(input, dtypes.bool_))


@op("bitwise_not", "invert")
def bitwise_not(g, input):
    return g("Not" if input.dtype is dtypes.bool_ else "BitwiseNot", input)


@op("isnan")
def isnan(g, input):
    return g("IsNaN", input, dtype=dtypes.bool_)


@op("isinf")
def isinf(g, input):
    return g("IsInf", input, dtype=dtypes.bool_)


@op("isfinite")
def isfinite(g, input):
    return g("Not", g("Or", isnan(g, input), isinf(g, input)))


def binary(g, kind, a, b):
    """A node of two operands in the result's dtype; sizes are computed with as int64."""
    dtype = g.dtype or dtypes.int64
    return g(kind, g.value(a, dtype), g.value(b, dtype), shape=g.shape, dtype=dtype)


@op("add", "iadd")
def add(g, input, other, alpha=1):
    return binary(g, "Add", input, other if alpha == 1 else binary(g, "Mul", other, alpha))


@op("sub", "isub", "subtract")
def sub(g, input, other, alpha=1):
    return binary(g, "Sub", input, other if alpha == 1 else binary(g, "Mul", other, alpha))


@op("rsub")
def rsub(g, input, other, alpha=1):
    return sub(g, other, input, alpha)


@op("mul", "imul", "multiply")
def mul(g, input, other):
    return binary(g, "And" if g.dtype is dtypes.bool_ else "Mul", input, other)


@op("div", "divide", "true_divide", "truediv", "itruediv")
def div(g, input, other, rounding_mode=None):
    if rounding_mode is None:
        return binary(g, "Div", input, other)
    if rounding_mode == "floor":
        return floor_divide(g, input, other)
    found = binary(g, "Div", input, other)
    return trunc(g, found) if g.dtype.is_floating_point else found  # ONNX's integers are cut off towards zero


@op("floor_divide", "floordiv", "ifloordiv")
def floor_divide(g, input, other):
    if g.dtype is not None and g.dtype.is_floating_point:
        return g("Floor", binary(g, "Div", input, other))
    rest = binary(g, "Mod", input, other)
    return binary(g, "Div", binary(g, "Sub", input, rest), other)


@op("remainder", "mod", "imod")
def remainder(g, input, other):
    if g.dtype is not None and g.dtype.is_floating_point:
        return binary(g, "Sub", input, binary(g, "Mul", g("Floor", binary(g, "Div", input, other)), other))
    return binary(g, "Mod", input, other)


@op("fmod")
def fmod(g, input, other):
    return g("Mod", _computed(g, input), _computed(g, other), fmod=1, shape=g.shape)


@op("pow", "ipow", "float_power")
def power(g, input, exponent):
    return binary(g, "Pow", input, exponent)


@op("maximum")
def maximum(g, input, other):
    return binary(g, "Max", input, other)


@op("minimum")
def minimum(g, input, other):
    return binary(g, "Min", input, other)


@op("where")
def where(g, condition, input, other):
    a, b = together(g, input, other)
    return g("Where", condition, a, b, dtype=a.dtype, shape=g.shape)


@op("masked_fill")
def masked_fill(g, input, mask, value):
    return g("Where", mask, g.value(value, input.dtype), input, dtype=input.dtype, shape=g.shape)


@op("lerp")
def lerp(g, input, end, weight):
    return binary(g, "Add", input, binary(g, "Mul", binary(g, "Sub", end, input), weight))


@op("addcmul")
def addcmul(g, input, tensor1, tensor2, value=1):
    return binary(g, "Add", input, binary(g, "Mul", binary(g, "Mul", tensor1, tensor2), value))


@op("addcdiv")
def addcdiv(g, input, tensor1, tensor2, value=1):
    return binary(g, "Add", input, binary(g, "Mul", binary(g, "Div", tensor1, tensor2), value))


@op("clamp", "clip")
def clamp(g, input, min=None, max=None):
    found = _computed(g, input)
    if min is not None:
        found = g("Max", found, _computed(g, min), shape=g.shape)
    return found if max is None else g("Min", found, _computed(g, max), shape=g.shape)


@op("clamp_min")
def clamp_min(g, input, min):
    return clamp(g, input, min)


@op("clamp_max")
def clamp_max(g, input, max):
    return clamp(g, input, None, max)


@op("round")
def rounded(g, input, decimals=0):
    if decimals == 0:
        return g("Round", input) if input.dtype.is_floating_point else input
    return g("Div", g("Round", g("Mul", input, number(g, 10.0**decimals))), number(g, 10.0**decimals))


@op("trunc", "fix")
def trunc(g, input):
    return g("Mul", g("Sign", input), g("Floor", g("Abs", input)))


@op("frac")
def frac(g, input):
    return g("Sub", input, trunc(g, input))


@op("square")
def square(g, input):
    return g("Mul", input, input)


@op("rsqrt")
def rsqrt(g, input):
    return g("Reciprocal", g("Sqrt", _computed(g, input)))


@op("log2")
def log2(g, input):
    return g("Mul", g("Log", _computed(g, input)), number(g, 1 / math.log(2)))


@op("log10")
def log10(g, input):
    return g("Mul", g("Log", _computed(g, input)), number(g, 1 / math.log(10)))


@op("log1p")
def log1p(g, input):
    return g("Log", g("Add", _computed(g, input), number(g, 1)))


@op("expm1")
def expm1(g, input):
    return g("Sub", g("Exp", _computed(g, input)), number(g, 1))


@op("exp2")
def exp2(g, input):
    return g("Pow", number(g, 2), _computed(g, input), shape=g.shape)


@op("erfc")
def erfc(g, input):
    return g("Sub", number(g, 1), g("Erf", _computed(g, input)), shape=g.shape)


@op("logit")
def logit(g, input, eps=None):
    x = input if eps is None else clamp(g, input, eps, 1 - eps)
    return g("Log", g("Div", x, g("Sub", number(g, 1), x, shape=g.shape)))


@op("atan2", "arctan2")
def atan2(g, input, other):
    x = g("Atan", binary(g, "Div", input, other))
    pi = g(
        "Where",
        g("Less", _computed(g, input), number(g, 0), dtype=dtypes.bool_),
        number(g, -math.pi),
        number(g, math.pi),
    )
    turned = g("Add", x, Value(pi.name, g.dtype, g.shape))
    return g(
        "Where",
        g("Less", _computed(g, other), number(g, 0), dtype=dtypes.bool_),
        turned,
        x,
        dtype=g.dtype,
        shape=g.shape,
    )


@op("nan_to_num")
def nan_to_num(g, input, nan=0.0, posinf=None, neginf=None):
    high = float(np.finfo(input.dtype.np).max) if input.dtype is not dtypes.bfloat16 else 3.3895313892515355e38
    found = g("Where", isnan(g, input), number(g, nan or 0.0), input, dtype=input.dtype, shape=g.shape)
    for sign, value in ((1, high if posinf is None else posinf), (-1, -high if neginf is None else neginf)):
        there = g("IsInf", found, detect_positive=int(sign > 0), detect_negative=int(sign < 0), dtype=dtypes.bool_)
        found = g("Where", there, number(g, value), found, dtype=input.dtype, shape=g.shape)
    return found


@op("silu")
def silu(g, input):
    return g("Mul", input, g("Sigmoid", input))


@op("logsigmoid")
def logsigmoid(g, input):
    return g("Neg", g("Softplus", g("Neg", input)))


@op("softplus")
def softplus(g, input, beta=1.0, threshold=20.0):
    scaled = input if beta == 1 else g("Mul", input, number(g, beta))
    found = g("Softplus", scaled)
    found = found if beta == 1 else g("Div", found, number(g, beta))
    return g("Where", g("Greater", scaled, number(g, threshold), dtype=dtypes.bool_), input, found, dtype=g.dtype)


@op("elu")
def elu(g, input, alpha=1.0, inplace=False):
    return g("Elu", input, alpha=float(alpha))


@op("selu")
def selu(g, input, inplace=False):
    return g("Selu", input, alpha=1.6732632423543772, gamma=1.0507009873554805)


@op("celu")
def celu(g, input, alpha=1.0, inplace=False):
    return g("Celu", input, alpha=float(alpha))


@op("leaky_relu")
def leaky_relu(g, input, negative_slope=0.01, inplace=False):
    return g("LeakyRelu", input, alpha=float(negative_slope))


@op("rrelu")
def rrelu(g, input, lower=1 / 8, upper=1 / 3, training=False, inplace=False):
    if training:
        raise option("rrelu", "in training mode")
    return g("LeakyRelu", input, alpha=(lower + upper) / 2)


@op("prelu")
def prelu(g, input, weight):
    if weight.shape not in ((), (1,)) and input.ndim > 1:
        weight = g.reshape(
            weight, [weight.shape[0], *[1] * (input.ndim - 2)], (weight.shape[0], *[1] * (input.ndim - 2))
        )
    return g("PRelu", input, weight)


@op("gelu")
def gelu(g, input, approximate="none"):
    return g("Gelu", input, approximate=approximate)


@op("hardsigmoid")
def hardsigmoid(g, input, inplace=False):
    return g("HardSigmoid", input, alpha=1 / 6, beta=0.5)


@op("hardtanh")
def hardtanh(g, input, min_val=-1.0, max_val=1.0, inplace=False):
    return clamp(g, input, min_val, max_val)


@op("relu6")
def relu6(g, input, inplace=False):
    return clamp(g, input, 0, 6)


@op("threshold")
def threshold(g, input, threshold, value, inplace=False):
    over = g("Greater", input, number(g, threshold), dtype=dtypes.bool_)
    return g("Where", over, input, number(g, value), dtype=input.dtype)


@op("tanhshrink")
def tanhshrink(g, input):
    return g("Sub", input, g("Tanh", input))


@op("softshrink")
def softshrink(g, input, lambd=0.5):
    return g("Shrink", input, lambd=float(lambd), bias=float(lambd))


@op("hardshrink")
def hardshrink(g, input, lambd=0.5):
    return g("Shrink", input, lambd=float(lambd), bias=0.0)


@op("glu")
def glu(g, input, dim=-1):
    n = input.shape[dim] // 2
    a, b = (g.slice(input, dim, k * n, (k + 1) * n) for k in range(2))
    return g("Mul", a, g("Sigmoid", b))


@op("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_dropout", "feature_alpha_dropout")
def dropout(g, input, p=0.5, training=True, inplace=False):
    if not training:
        return input
    return g("Dropout", input, number(g, p), np.array(True))


@op("clone", "detach", "contiguous", "alias", "requires_grad_", "cpu", "cuda", "lift_fresh", "identity", "positive")
def same(g, input, *args, memory_format=None, **others):
    return input


@op("to", "type", "float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool", "type_as")
def cast(g, input, *args, **options):
    return g.cast(input, g.dtype) if g.dtype in TYPES else input


for name in ("silu", "relu", "mish", "hardswish", "sigmoid"):  # those of nn.functional have the argument `inplace`
    TABLE[name] = Operator(lambda g, input, inplace=False, fn=TABLE[name].fn: fn(g, input))
