"""PyTorch's dtypes, their numpy counterparts and the promotion lattice."""

import functools
import math
import re

import ml_dtypes
import numpy as np

from .. import errors
from ..errors import scalar_name
from .wide import check, is_wide

BOOL, INT, FLOAT, COMPLEX = range(4)  # the categories of promotion, in order


class Constants(type):
    """The class of PyTorch's constants, of which programs can make no more. Python's own errors call it torch.dtype, say."""

    __name__ = property(lambda cls: cls.__qualname__)

    def __call__(cls, *args, **kwargs):
        raise TypeError(f"cannot create '{cls._shown}' instances")


def constants(cls):
    """Close a class of constants; returns what makes one."""
    cls._shown = f"torch.{cls.__qualname__}"
    type.__dict__["__name__"].__set__(cls, cls._shown)
    return functools.partial(type.__call__, cls)


class dtype(metaclass=Constants):
    """An element type; one object per type, so compare with `is` or `==`.

    np: what arrays of it are made of; memory: what an element is in memory, which for complex32 alone is something else.
    """

    __slots__ = ("name", "np", "memory", "itemsize", "category", "is_floating_point", "is_complex", "is_signed")

    def __init__(self, name, np_type, category, *, signed=True, memory=None):
        self.name = name
        self.np = np.dtype(np_type)
        self.memory = self.np if memory is None else memory
        self.itemsize = self.memory.itemsize
        self.category = category
        self.is_floating_point = category == FLOAT
        self.is_complex = category == COMPLEX
        self.is_signed = signed

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return (_by_name, (self.name,))

    def to_real(self) -> "dtype":
        return {"complex32": float16, "complex64": float32, "complex128": float64}.get(self.name, self)

    def to_complex(self) -> "dtype":
        try:
            return _COMPLEX[self.name]
        except KeyError:
            raise errors.no_complex(self) from None

    @property
    def abbr(self) -> str:
        """The short name, f32 for float32."""
        kind, digits = _SPELLED.match(self.name.replace("_", "")).groups()
        return {"bool": "b8"}.get(self.name) or f"{_LETTERS.get(kind, kind)}{digits}"


_SPELLED = re.compile(r"([a-z]+?)(\d.*|)$")
_LETTERS = {"float": "f", "bfloat": "bf", "complex": "c", "int": "i", "uint": "u"}
_new = constants(dtype)

bool_ = _new("bool", np.bool_, BOOL, signed=False)
uint8 = _new("uint8", np.uint8, INT, signed=False)
uint16 = _new("uint16", np.uint16, INT, signed=False)
uint32 = _new("uint32", np.uint32, INT, signed=False)
uint64 = _new("uint64", np.uint64, INT, signed=False)
int8 = _new("int8", np.int8, INT)
int16 = _new("int16", np.int16, INT)
int32 = _new("int32", np.int32, INT)
int64 = _new("int64", np.int64, INT)
float8_e4m3fn = _new("float8_e4m3fn", ml_dtypes.float8_e4m3fn, FLOAT)
float8_e5m2 = _new("float8_e5m2", ml_dtypes.float8_e5m2, FLOAT)
float8_e4m3fnuz = _new("float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz, FLOAT)
float8_e5m2fnuz = _new("float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz, FLOAT)
float8_e8m0fnu = _new("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu, FLOAT, signed=False)
float16 = _new("float16", np.float16, FLOAT)
bfloat16 = _new("bfloat16", ml_dtypes.bfloat16, FLOAT)
float32 = _new("float32", np.float32, FLOAT)
float64 = _new("float64", np.float64, FLOAT)
# Arrays of complex32 are of complex64, and every number in them is one of two float16: XLA has no such type.
complex32 = _new("complex32", np.complex64, COMPLEX, memory=np.dtype([("real", np.float16), ("imag", np.float16)]))
complex64 = _new("complex64", np.complex64, COMPLEX)
complex128 = _new("complex128", np.complex128, COMPLEX)
_COMPLEX = {
    "float16": complex32, "bfloat16": complex64, "float32": complex64, "float64": complex128,
    "complex32": complex32, "complex64": complex64, "complex128": complex128,
}  # fmt: skip

ALL = {d.name: d for d in list(globals().values()) if isinstance(d, dtype)}
# Python's types as dtypes: `dtype=float` is double, whatever the default is.
PYTHON = {bool: bool_, int: int64, float: float64, complex: complex128}
ALIASES = {
    "half": float16, "float": float32, "double": float64, "chalf": complex32, "cfloat": complex64, "cdouble": complex128,
    "short": int16, "int": int32, "long": int64,
}  # fmt: skip
_OF_NP = {d.memory: d for d in ALL.values()}


def held(array: np.ndarray, d: dtype) -> np.ndarray:
    """The numbers of a numpy array as a tensor of dtype `d` holds them."""
    if d is complex32:
        return values(to_memory(array), d)
    return array if array.dtype == d.np else array.astype(d.np)


def values(array: np.ndarray, d: dtype) -> np.ndarray:
    """Elements as they are in memory, as numbers: for complex32 a copy, for all others the array itself."""
    if array.dtype != complex32.memory:
        return array
    made = np.empty(array.shape, d.np)
    made.real, made.imag = array["real"], array["imag"]
    return made


def to_memory(array: np.ndarray) -> np.ndarray:
    """Numbers as the elements of complex32 that are closest to them."""
    made = np.empty(array.shape, complex32.memory)
    with np.errstate(over="ignore"):
        made["real"], made["imag"] = array.real, array.imag
    return made


class _NameOnly(dtype):
    """An element type that can be named, compared and printed; there are no tensors of it."""

    __slots__ = ()

    def __init__(self, name, itemsize, category, words=None, signed=True):
        self.name = name
        self.itemsize = itemsize
        self.category = category
        self.is_floating_point = category == FLOAT
        self.is_complex = category == COMPLEX
        _SIGNED[name] = words or signed

    @property
    def np(self):
        raise errors.unsupported(f"tensors of dtype torch.{self.name}", _INSTEAD.get(self.category, "int8 or uint8"))

    memory = np

    @property
    def abbr(self):
        return _ABBREVIATIONS.get(self.name, self.name)

    @property
    def is_signed(self):
        found = _SIGNED[self.name]
        if isinstance(found, str):
            raise RuntimeError(found)
        return found


_name_only = functools.partial(type.__call__, _NameOnly)
_SIGNED: dict = {}
_ABBREVIATIONS = {
    "bits16": "b16x1",
    "bits8": "b8x1",
    "bits1x8": "b1x8",
    "bits2x4": "b2x4",
    "bits4x2": "b4x2",
    "float4_e2m1fn_x2": "f4e2m1fnx2",
}


def power_codes(bits):
    """The bits of float32 numbers (uint32) -> those of float8_e8m0fnu: signs are left out, halves go up, what is too large is nan."""
    power = (bits >> 23) & 0xFF
    return power + ((bits & 0x400000 != 0) & ((power > 0) | (bits & 0x3FFFFF != 0)) & (power < 0xFF))


_INSTEAD = {FLOAT: "float8_e4m3fn or float16"}
_QUANTIZED, _BITS = "isSignedType not supported for quantized types", "Bits types are undefined"
NAME_ONLY = {
    d.name: d
    for d in (
        *(_name_only(f"uint{n}", 1, INT, signed=False) for n in range(1, 8)),
        *(_name_only(f"int{n}", 1, INT) for n in range(1, 8)),
        *(_name_only(name, 2 if name == "bits16" else 1, INT, _BITS) for name in ("bits1x8", "bits2x4", "bits4x2", "bits8", "bits16")),
        *(_name_only(name, 4 if name == "qint32" else 1, INT, _QUANTIZED) for name in ("qint8", "quint8", "qint32", "quint4x2", "quint2x4")),
        _name_only("float4_e2m1fn_x2", 1, FLOAT),
    )
}  # fmt: skip
NAME_ONLY["bit"] = NAME_ONLY["uint1"]


def _by_name(name: str) -> dtype:
    return ALL.get(name) or NAME_ONLY[name]


def of(np_type) -> dtype:
    """The torch dtype of a numpy dtype; TypeError when there is none."""
    try:
        return _OF_NP[np.dtype(np_type)]
    except KeyError:
        supported = "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool"
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{np.dtype(np_type).type.__name__}. The only supported types are: {supported}."
        ) from None


class _Default:
    __slots__ = ("dtype", "complex")

    def __init__(self):
        self.dtype = float32
        self.complex = complex64


default = _Default()  # changed by torch.set_default_dtype alone, which also drops the op plans


def of_number(x) -> dtype:
    """The dtype that a tensor made from this Python number has."""
    if isinstance(x, bool):
        return bool_
    if isinstance(x, int):
        return int64
    if isinstance(x, float):
        return default.dtype
    return default.complex


_INTS = (int8, int16, int32, int64)
_FLOAT_RANK = {"float16": 1, "bfloat16": 1, "float32": 2, "float64": 3}


def promote(a: dtype, b: dtype) -> dtype:
    """The smallest dtype that holds both, by PyTorch's table (torch.promote_types)."""
    if a is b:
        return a
    if (a.itemsize == 1 and a.is_floating_point) or (b.itemsize == 1 and b.is_floating_point):
        raise RuntimeError(
            f"Promotion for Float8 Types is not supported, attempted to promote {scalar_name(a)} and {scalar_name(b)}"
        )
    given = (a, b)
    if a.category > b.category:
        a, b = b, a
    if b.category == COMPLEX:
        if a in (uint16, uint32, uint64):
            raise _unsigned(*given)
        return b if a.category < FLOAT else max(a.to_complex(), b, key=lambda d: d.itemsize)
    if b.category == FLOAT:
        if a.category != FLOAT:
            return b
        ra, rb = _FLOAT_RANK[a.name], _FLOAT_RANK[b.name]
        if ra == rb:
            return float32
        return a if ra > rb else b
    if a is bool_ and b not in (uint16, uint32, uint64):
        return b
    # two integer types
    if a in _INTS and b in _INTS:
        return a if a.itemsize > b.itemsize else b
    unsigned, other = (a, b) if not a.is_signed else (b, a)
    if unsigned is uint8 and other.is_signed:
        return int16 if other is int8 else other
    raise _unsigned(*given)


def _unsigned(a, b):
    return RuntimeError(
        "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
        f"{scalar_name(a)} and {scalar_name(b)}"
    )


def fits(x: int, d: dtype) -> bool:
    """Whether an integer is a value of an integer dtype or of bool."""
    info = np.iinfo(d.np) if d.category == INT else None
    return x in (0, 1) if info is None else int(info.min) <= x <= int(info.max)


def check_number(x, d: dtype) -> None:
    """Raise PyTorch's error for a number that elements of a dtype cannot be; a negative int wraps where there are no signs."""
    if type(x) is int and is_wide(x):
        check(x)
    if isinstance(x, complex):
        if d.category in (INT, FLOAT):
            raise errors.not_representable(d)
    elif d.category == INT:
        info = np.iinfo(d.np)
        low = -info.max if isinstance(x, int) and not d.is_signed else info.min
        if not low <= x <= info.max:
            raise errors.not_representable(d)
    elif _LARGEST.get(d.name, np.inf) < abs(x) < float("inf"):
        raise errors.not_representable(d)


_DOUBLE, _SINGLE = float(np.finfo(np.float64).max), float(np.finfo(np.float32).max)
_LARGEST = {"float32": _SINGLE, "complex64": _SINGLE, "float16": 65504.0, "bfloat16": float.fromhex("0x1.fep+127")}


def largest(d: dtype) -> float:
    """The largest finite number of a dtype of floats."""
    return _LARGEST.get(d.name, _DOUBLE)


def element(x, d: dtype):
    """A number as an element of a dtype has it: beyond a float of 16 bits it is infinite, beyond others it raises PyTorch's error."""
    if d is bool_:
        return bool(x)
    if d.itemsize == 2 and d.is_floating_point:
        if isinstance(x, complex):
            raise errors.not_representable(float64)
        return math.copysign(math.inf, x) if abs(x) > largest(d) else x
    check_number(x, d)
    return x


def can_cast(a: dtype, b: dtype) -> bool:
    """Whether a result of dtype `a` may be written to a tensor of dtype `b` (torch.can_cast)."""
    return b.category >= a.category
