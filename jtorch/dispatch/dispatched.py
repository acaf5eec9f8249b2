"""__torch_dispatch__: operators as objects, and subclasses and modes that compute them their own way.

What both see are the op table's own ops, products and layers in the parts that PyTorch's dispatcher has (`parts.py`). Gradients go
through a subclass as `outer.py` records them.
"""

import math
import sys

import numpy as np

from .. import errors_extend
from ..core import dtype as dtypes
from ..core.layout import Layout
from ..core.record import tls
from ..core.shapes import wrap_dim
from ..core.tags import Tag
from ..ops import registry
from ..tensor import CONSTANTS, Tensor
from .parts import PARTS

_TENSOR = {"add", "sub", "mul", "rsub", "bitwise_and", "bitwise_or", "bitwise_xor"}
_TENSOR_OR_SCALAR = {"eq", "ne", "lt", "le", "gt", "ge", "fmod"}
_FIXED = {
    "where": "self", "transpose": "int", "select": "int", "unbind": "int", "slice": "Tensor",
    "index": "Tensor",
}  # fmt: skip
_BY_DIM = {
    "sum": "dim_IntList",
    "mean": "dim",
    "max": "dim",
    "min": "dim",
    "prod": "dim_int",
    "any": "dim",
    "all": "dim",
}


def _is_tensor(x, one="Tensor", other="default"):
    return one if isinstance(x, Tensor) else other


# Whose signature hangs on the values of its arguments: {name of the record: a function of these}.
_BY_ARGUMENTS = {
    **{name: lambda self, value: _is_tensor(value, other="Scalar") for name in ("assigned", "filled")},
    "bucketize": lambda values, *_: _is_tensor(values, other="Scalar"),
    "clamp": lambda self, *limits: "Tensor" if any(isinstance(x, Tensor) for x in limits) else "default",
    "clamp_max": lambda self, limit: _is_tensor(limit),
    "clamp_min": lambda self, limit: _is_tensor(limit),
    "div": lambda self, other, rounding_mode=None: "Tensor" if rounding_mode is None else "Tensor_mode",
    "index_fill": lambda self, dim, index, value: _is_tensor(value, "int_Tensor", "int_Scalar"),
    "isin": lambda a, b, *_: f"{_is_tensor(a, other='Scalar')}_{_is_tensor(b, other='Scalar')}",
    "lerp": lambda self, end, weight: _is_tensor(weight, other="Scalar"),
    "masked_fill": lambda self, mask, value: _is_tensor(value, other="Scalar"),
    "median_dim": lambda *_: "dim",
    "nanmedian_dim": lambda *_: "dim",
    "max_dim": lambda *_: "dim",
    "min_dim": lambda *_: "dim",
    "pow": lambda self, exponent: "Scalar"
    if not isinstance(self, Tensor)
    else _is_tensor(exponent, "Tensor_Tensor", "Tensor_Scalar"),
    "remainder": lambda self, other: _is_tensor(other, other="Scalar") if isinstance(self, Tensor) else "Scalar_Tensor",
    "round": lambda self, decimals=None: "default" if decimals is None else "decimals",
    "scatter": lambda self, dim, index, src=None, value=None, reduce=None: _is_tensor(src, "src", "value") if reduce is None
    else _is_tensor(src, "reduce", "value_reduce"),
    "searchsorted": lambda edges, values, *_: _is_tensor(values, other="Scalar"),
    "_split": lambda self, size, *_: "Tensor" if isinstance(size, int) else "default",
    "squeeze": lambda self, dim=None: "default" if dim is None else "dim" if isinstance(dim, int) else "dims",
    **{name: (lambda *_: "correction") for name in ("std", "std_mean", "var", "var_mean")},
}  # fmt: skip
# The operators of records that have names of their own.
_NAMES = {
    "_copied": "copy",
    "assigned": "fill",
    "filled": "fill",
    "zeroed": "zero",
    "max_all": "max",
    "max_dim": "max",
    "median_all": "median",
    "median_dim": "median",
    "min_all": "min",
    "min_dim": "min",
    "nanmedian_all": "nanmedian",
    "nanmedian_dim": "nanmedian",
    "nonzero_rows": "nonzero",
    "vector_norm": "linalg_vector_norm",
}


# Beside the views of the op table, what may give its operand, or a view of it, back.
_OTHER_VIEWS = frozenset((
    "_conj", "_indices", "_neg_view", "_values", "adjoint", "broadcast_to", "ccol_indices", "coalesce", "col_indices", "conj",
    "contiguous", "cpu", "crow_indices", "cuda", "detach", "dsplit", "expand_as", "flatten", "hsplit", "imag", "indices", "lift_fresh",
    "linalg_diagonal", "mH", "mT", "matrix_H", "moveaxis", "narrow", "numpy_T", "pin_memory", "positive", "ravel", "real", "reshape",
    "reshape_as", "resolve_conj", "resolve_neg", "row_indices", "swapdims", "tensor_split", "to", "values", "view_as", "view_as_complex",
    "view_as_real", "vsplit",
))  # fmt: skip


def writes(func) -> bool:
    """Whether an operator writes to its first operand, by its name."""
    name = func._overloadpacket.__name__
    return name.endswith("_") and not name.endswith("__")


def is_view(name) -> bool:
    """Whether an operator of the op table, by its name, gives a view."""
    return (
        name in _OTHER_VIEWS
        or name in registry.VIEWS
        and not name.startswith(("unsafe_", "_unsafe_", "_narrow", "_split"))
    )


class OpOverload:
    """One signature of an operator: `torch.ops.aten.add.Tensor`."""

    def __init__(self, packet, overload, fn):
        self._overloadpacket = packet
        self._overloadname = overload
        self._fn = fn
        self._tags = None  # of torch.library: as it was defined
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__qualname__ = self.__name__
        self.__doc__ = fn.__doc__
        self.__module__ = f"jtorch.ops.{packet.namespace}"

    def __call__(self, /, *args, **kwargs):
        return called(self, args, kwargs)

    def __deepcopy__(self, memo):
        return self  # one object stands for an operator, also in a copy of a table

    @property
    def overloadpacket(self):
        """The operator with all its signatures."""
        return self._overloadpacket

    @property
    def namespace(self) -> str:
        return self._overloadpacket.namespace

    @property
    def op(self):
        return self._fn

    @property
    def tags(self) -> list:
        """What is known about the operator; of the op table's, all but which are PyTorch's core."""
        return list(_tags_of(self._overloadpacket.__name__) if self._tags is None else self._tags)

    @property
    def is_view(self) -> bool:
        """Whether the operator's schema lets its result share the operand's memory."""
        return self.namespace == "aten" and is_view(self._overloadpacket.__name__)

    def name(self) -> str:
        """The qualified name: "aten::add.Tensor"."""
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self._overloadpacket._qualified_op_name}{suffix}"

    def __str__(self):
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self):
        return f"<OpOverload(op='{self.namespace}.{self._overloadpacket.__name__}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """An operator; its overloads (`.default`, `.Tensor`) are all the same function here."""

    def __init__(self, namespace, name, fn):
        self.namespace = namespace
        self.__name__ = name
        self._qualified_op_name = f"{namespace}::{name}"
        self._fn = fn
        self.__doc__ = fn.__doc__

    def __call__(self, /, *args, **kwargs):
        return called(self, args, kwargs)

    def __getattr__(self, overload):
        if overload.startswith("_"):
            raise AttributeError(overload)
        if "_fixed" in self.__dict__:  # of torch.library: its overloads are those that were defined
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{overload}'")
        made = self.__dict__[overload] = OpOverload(self, overload, self._fn)
        return made

    def __deepcopy__(self, memo):
        return self

    def overloads(self) -> list[str]:
        """The names of the overloads asked for so far, "default" first."""
        return sorted(
            {"default", *(n for n, v in vars(self).items() if isinstance(v, OpOverload))}, key="default".__ne__
        )

    def __str__(self):
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self.namespace}.{self.__name__}')>"


_RECORDS = {operator: record for record, operator in _NAMES.items()}

called = None  # (operator, args, kwargs) -> its result, `__torch_function__` asked first; set by aten
packet_of = None  # (name, record) -> the packet torch.ops.aten has for it; set by aten


def _tags_of(name) -> list:
    """The tags of an operator of the op table."""
    plain = name.rstrip("_")
    record = registry.OPS.get(plain) or registry.OPS.get(_RECORDS.get(plain))
    said = {
        Tag.pointwise: record is not None and record.elementwise,
        Tag.inplace: name.endswith("_"),
        Tag.nondeterministic_seeded: plain.startswith(("rand", "bernoulli", "multinomial", "normal", "dropout")),
        Tag.dynamic_output_shape: record is not None and record.dynamic,
    }
    return [Tag.pt2_compliant_tag, *(tag for tag, so in said.items() if so)]


def overload_of(record, args, inplace=False):
    """The operator object for a call of a record with these argument values."""
    name = _NAMES.get(record.name, record.name)
    if name == "_split":
        name = "split" if isinstance(args[1], int) else "split_with_sizes"
    packet = packet_of(name + "_" if inplace else name, record)
    given = {p.name: a for p, a in zip(record.params, args)}
    second = args[1] if len(args) > 1 else None
    if record.name in _TENSOR:
        overload = "Tensor"
    elif record.name in _TENSOR_OR_SCALAR:
        overload = "Tensor" if isinstance(second, Tensor) else "Scalar"
    elif record.name in _BY_ARGUMENTS:
        overload = _BY_ARGUMENTS[record.name](*args)
    elif record.name in _BY_DIM and given.get("dim") is not None:
        overload = _BY_DIM[record.name]
    else:
        overload = _FIXED.get(record.name, "default")
    return getattr(packet, overload)


def schema_form(record, values):
    """Argument values as PyTorch's dispatcher passes them: by position, what equals its default at the end left out."""
    positional = [(p, v) for p, v in zip(record.params, values) if p.kind is not p.KEYWORD_ONLY]
    while positional and positional[-1][0].default is not positional[-1][0].empty:
        if positional[-1][1] is not positional[-1][0].default:
            break
        positional.pop()
    named = {p.name: v for p, v in zip(record.params, values) if p.kind is p.KEYWORD_ONLY and v is not p.default}
    named.pop("key", None)
    return tuple(v for _, v in positional), named


def has_dispatch(cls) -> bool:
    return getattr(cls, "__torch_dispatch__", None) is not None


def dispatches(x) -> bool:
    """Whether something is a tensor of such a class."""
    return isinstance(x, Tensor) and has_dispatch(type(x))


def _classes(values):
    found = []
    for v in values:
        for x in v if type(v) in (list, tuple) else (v,):
            if dispatches(x) and type(x) not in found:
                found.append(type(x))
    return tuple(found)


def dispatch(record, values, inplace=False):
    """(handled, result): what the `__torch_dispatch__` of an operand's class gives for an op or view."""
    if not _classes(values):
        return False, None
    if record.name in PARTS and not inplace and not tls.me.inference:
        found = PARTS[record.name](OPERATED["part"], *values)
        if found is not None:
            return True, found
    func = overload_of(record, values, inplace)
    args, kwargs = schema_form(record, values)
    return True, as_result(OPERATED["whole"](func, args, kwargs))


# Set by `outer.py`: (func, args, kwargs) -> the result of an operator for tensors of such classes; the same of a part, by its name.
OPERATED: dict = {"whole": None, "part": None}


def as_result(found):
    """What a `__torch_dispatch__` gave for an operator of the op table, whose results are tensors."""
    if found is not None and not isinstance(found, (Tensor, tuple, list)):
        raise errors_extend.no_cast(found)
    return found


def _ask(func, classes, args, kwargs, mode=None):
    for cls in classes:
        result = cls.__torch_dispatch__(func, classes, args, kwargs)
        if result is not NotImplemented:
            return result
    raise errors_extend.no_dispatch(func, classes, mode)


# Methods written by hand, as the operators that a subclass with a `__torch_dispatch__` is asked for.
_METHODS = {
    "detach": "detach",
    "clone": "clone",
    "zero_": "zero_",
    "copy_": "copy_",
    **{f"{n}_like": f"{n}_like" for n in ("empty", "full", "ones", "rand", "randn", "zeros")},
    **{f"new_{n}": f"new_{n}" for n in ("empty", "full", "ones", "zeros")},
    **{n: n for n in ("as_strided_", "resize_", "squeeze_", "t_", "transpose_", "unsqueeze_")},
    "equal": "equal",
    "view_as_real": "view_as_real",
    "view_as_complex": "view_as_complex",
}
_CASTS = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "long": "int64", "int": "int32",
    "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool",
}  # fmt: skip
_NUMBERS = {"__bool__": bool, "__float__": float, "__int__": int, "__index__": int, "__complex__": complex}
_VALUES = {"numpy", "tolist", "item", "__array__", "__float__", "__int__", "__bool__", "__complex__", "__index__"}


def dispatch_method(name, args, kwargs):
    """(handled, result) of a method written by hand, called on a tensor whose class has a `__torch_dispatch__`."""
    self = args[0]
    cls = type(self)
    if self._storage.value is not None and name in _VALUES:
        return False, None
    if name == "item" or name in _NUMBERS:
        found = _operator("_local_scalar_dense", (self,), {})
        return True, _NUMBERS[name](found) if name in _NUMBERS else found
    if name in _VALUES:
        raise errors_extend.no_values(name, cls)
    if name == "data_ptr" and self._storage.value is None:
        return True, 0
    if name == "__repr__":
        return True, f"{cls.__name__}(size={tuple(self._spec.shape)}, dtype={self._spec.dtype})"
    if name == "to" and (kwargs.get("dtype") is not None or len(args) > 1 and isinstance(args[1], dtypes.dtype)):
        return True, _operator("_to_copy", (self,), {"dtype": kwargs.get("dtype") or args[1]})
    if name in _CASTS:
        return True, _operator("_to_copy", (self,), {"dtype": dtypes.ALL[_CASTS[name]]})
    if name == "view" and (kwargs.get("dtype") is not None or isinstance(args[1], dtypes.dtype)):
        return True, _operator("view", (self, kwargs.get("dtype") or args[1]), {}, "dtype").detach()
    if name in ("view", "reshape"):
        shape = args[1] if len(args) == 2 and isinstance(args[1], (tuple, list)) else args[1:]
        return True, _reshaped(self, list(shape), name == "view")
    if name == "new_tensor" or name == "new_zeros" and kwargs.get("size") is not None:
        return False, None
    if name in ("new_zeros", "new_ones", "new_empty") and (len(args) > 2 or len(args) == 2 and type(args[1]) is int):
        args = (self, list(args[1:]))
    if name in ("flatten", "ravel"):
        return True, _reshaped(self, _joined(self._spec.shape, *args[1:], **kwargs))
    if name == "real" and not self._spec.dtype.is_complex:
        return True, self
    if name in ("real", "imag") and self._spec.dtype.is_complex:
        return True, _operator("view_as_real", (self,), {}).select(self._spec.ndim, int(name == "imag"))
    if name == "__getitem__":
        return True, _indexed(self, args[1])
    if name == "__setitem__":
        return True, _set(self, args[1], args[2])
    if name == "contiguous":
        wanted = args[1] if len(args) > 1 else kwargs.get("memory_format", CONSTANTS["contiguous"])
        if self.is_contiguous(memory_format=wanted):
            return True, self
        return True, _operator("clone", (self,), {"memory_format": wanted})
    if name == "fill_":
        value = args[1] if len(args) > 1 else kwargs.get("value")
        return True, _operator("fill_", args, kwargs, _is_tensor(value, other="Scalar"))
    if name == "T":
        return True, _operator("permute", (self, list(range(self._spec.ndim))[::-1]), {})
    if name == "data":
        return True, _operator("detach", (self,), {})
    if name == "mT" or name in ("H", "mH") and not self._spec.dtype.is_complex:
        return True, _operator("transpose", (self, -2, -1), {}, "int")
    operator = _METHODS.get(name)
    return (True, _operator(operator, args, kwargs)) if operator is not None else (False, None)


def _operator(name, args, kwargs, overload="default"):
    return OPERATED["whole"](getattr(packet_of(name, None), overload), args, kwargs)


def _reshaped(self, shape, as_view=False):
    """A view, or else a copy where the strides cannot say it."""
    try:
        Layout(tuple(self._spec.shape), self._spec.strides, 0).view(tuple(shape))
    except RuntimeError:
        if not as_view:
            return _operator(
                "_unsafe_view", (_operator("clone", (self,), {"memory_format": CONSTANTS["contiguous"]}), shape), {}
            )
    return _operator("view", (self, shape), {})


def _joined(shape, start_dim=0, end_dim=-1):
    """The shape of `flatten`."""
    first, last = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
    return [*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]]


# --- indexing, in the operators that PyTorch makes of it ----------------------------------------------------------------


def _parts(self, index):
    """(the view that ints, slices, None and Ellipsis pick, the indices by tensor of that view or None)."""
    index = index if isinstance(index, tuple) else (index,)
    used = sum(_dims_of(i) for i in index)
    if any(i is Ellipsis for i in index):
        at = next(k for k, i in enumerate(index) if i is Ellipsis)
        index = (*index[:at], *[slice(None)] * (self._spec.ndim - used), *index[at + 1 :])
    found, dim, by_tensor = self, 0, []
    for i in index:
        if isinstance(i, (int, np.integer)) and not isinstance(i, bool):
            found = _operator("select", (found, dim, int(i)), {}, "int")
            continue
        if i is None:
            found = _operator("unsqueeze", (found, dim), {})
        elif isinstance(i, slice):
            if i != slice(None):
                stop = sys.maxsize if i.stop is None else i.stop
                given = (found, dim, i.start or 0, stop, *(() if i.step is None else (i.step,)))
                found = _operator("slice", given, {}, "Tensor")
        else:
            i = i if isinstance(i, Tensor) else FROM_HOST[0](np.asarray(i))
            by_tensor += [None] * (dim - len(by_tensor)) + [i]
            dim += _dims_of(i) - 1
        dim += 1
    return found, by_tensor


def _dims_of(i):
    if i is None or i is Ellipsis:
        return 0
    return i._spec.ndim if isinstance(i, Tensor) and i._spec.dtype.category == dtypes.BOOL else 1


def _indexed(self, index):
    found, by_tensor = _parts(self, index)
    if by_tensor:
        return _operator("index", (found, by_tensor), {}, "Tensor")
    return _operator("alias", (found,), {}) if found is self else found


def _set(self, index, value):
    found, by_tensor = _parts(self, index)
    if by_tensor:
        value = value if isinstance(value, Tensor) else FROM_HOST[0](value, dtype=self._spec.dtype)
        _operator("index_put_", (found, by_tensor, value), {})
    elif isinstance(value, Tensor):
        _operator("copy_", (found, value), {})
    else:
        _operator("fill_", (found, value), {}, "Scalar")


FROM_HOST: list = [None]  # numpy array -> Tensor, set by the creation functions
