"""__torch_dispatch__: operators as objects, and subclasses and modes that compute them their own way.

What is seen is the op table's own ops: `linear` is one op here, not `t` and `addmm`. Gradients are not recorded through a subclass.
"""

from .. import errors, errors_extend
from ..core import dtype as dtypes
from ..core.record import tls
from ..tensor import Tensor, edge_of

_TENSOR = {"add", "sub", "mul", "div", "rsub", "bitwise_and", "bitwise_or", "bitwise_xor"}
_TENSOR_OR_SCALAR = {"eq", "ne", "lt", "le", "gt", "ge", "remainder", "fmod"}
_FIXED = {
    "where": "self", "transpose": "int", "select": "int", "unbind": "int", "slice": "Tensor", "split": "Tensor",
    "index": "Tensor", "masked_fill": "Scalar",
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


class OpOverload:
    """One signature of an operator: `torch.ops.aten.add.Tensor`."""

    def __init__(self, packet, overload, fn):
        self._packet = packet
        self._overloadname = overload
        self._fn = fn
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__qualname__ = self.__name__
        self.__doc__ = fn.__doc__
        self.__module__ = f"jtorch.ops.{packet.namespace}"

    def __call__(self, /, *args, **kwargs):
        return self._fn(*args, **kwargs)

    @property
    def overloadpacket(self):
        """The operator with all its signatures."""
        return self._packet

    @property
    def namespace(self) -> str:
        return self._packet.namespace

    @property
    def op(self):
        return self._fn

    def name(self) -> str:
        """The qualified name: "aten::add.Tensor"."""
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self._packet._qualified_op_name}{suffix}"

    def __str__(self):
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self):
        return f"<OpOverload(op='{self.namespace}.{self._packet.__name__}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """An operator; its overloads (`.default`, `.Tensor`) are all the same function here."""

    def __init__(self, namespace, name, fn):
        self.namespace = namespace
        self.__name__ = name
        self._qualified_op_name = f"{namespace}::{name}"
        self._fn = fn
        self.__doc__ = fn.__doc__

    def __call__(self, /, *args, **kwargs):
        return self._fn(*args, **kwargs)

    def __getattr__(self, overload):
        if overload.startswith("_"):
            raise AttributeError(overload)
        made = self.__dict__[overload] = OpOverload(self, overload, self._fn)
        return made

    def overloads(self) -> list[str]:
        """The names of the overloads asked for so far, "default" first."""
        return sorted(
            {"default", *(n for n, v in vars(self).items() if isinstance(v, OpOverload))}, key="default".__ne__
        )

    def __str__(self):
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self.namespace}.{self.__name__}')>"


packet_of = None  # (name, record) -> the packet torch.ops.aten has for it; set by aten


def overload_of(record, args, inplace=False):
    """The operator object for a call of a record with these argument values."""
    name = record.name + "_" if inplace else record.name
    packet = packet_of(name, record)
    given = {p.name: a for p, a in zip(record.params, args)}
    second = args[1] if len(args) > 1 else None
    if record.name in _TENSOR:
        overload = "Tensor"
    elif record.name in _TENSOR_OR_SCALAR:
        overload = "Tensor" if isinstance(second, Tensor) else "Scalar"
    elif record.name == "pow":
        overload = "Tensor_Tensor" if isinstance(second, Tensor) else "Tensor_Scalar"
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


def _classes(values):
    found = []
    for v in values:
        for x in v if type(v) in (list, tuple) else (v,):
            if isinstance(x, Tensor) and has_dispatch(type(x)) and type(x) not in found:
                found.append(type(x))
    return tuple(found)


def dispatch(record, values, inplace=False):
    """(handled, result): what the `__torch_dispatch__` of an operand's class gives for an op or view."""
    classes = _classes(values)
    if not classes:
        return False, None
    if tls.me.grad and any(isinstance(v, Tensor) and edge_of(v) is not None for v in values):
        raise errors.unsupported(
            f"gradients through the __torch_dispatch__ of {classes[0].__name__}",
            "torch.autograd.Function around the subclass, or __torch_function__",
        )
    func = overload_of(record, values, inplace)
    args, kwargs = schema_form(record, values)
    return True, _ask(func, classes, args, kwargs)


def _ask(func, classes, args, kwargs):
    for cls in classes:
        result = cls.__torch_dispatch__(func, classes, args, kwargs)
        if result is not NotImplemented:
            return result
    raise errors_extend.no_dispatch(func, classes)


# Methods written by hand, as the operators that a subclass with a `__torch_dispatch__` is asked for.
_METHODS = {
    "detach": "detach",
    "clone": "clone",
    "contiguous": "clone",
    "fill_": "fill_",
    "zero_": "zero_",
    "copy_": "copy_",
}
_CASTS = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "long": "int64", "int": "int32",
    "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool",
}  # fmt: skip
_VALUES = {"numpy", "tolist", "item", "__array__", "__float__", "__int__", "__bool__", "__complex__", "__index__"}


def dispatch_method(name, args, kwargs):
    """(handled, result) of a method written by hand, called on a tensor whose class has a `__torch_dispatch__`."""
    self = args[0]
    cls = type(self)
    if self._storage.value is not None and name in _VALUES:
        return False, None
    if name in _VALUES:
        raise errors_extend.no_values(name, cls)
    if name == "__repr__":
        return True, f"{cls.__name__}(size={tuple(self._spec.shape)}, dtype={self._spec.dtype})"
    if name == "to" and (kwargs.get("dtype") is not None or len(args) > 1 and isinstance(args[1], dtypes.dtype)):
        return True, _operator("_to_copy", cls, (self,), {"dtype": kwargs.get("dtype") or args[1]})
    if name in _CASTS:
        return True, _operator("_to_copy", cls, (self,), {"dtype": dtypes.ALL[_CASTS[name]]})
    if name in ("view", "reshape"):
        shape = args[1] if len(args) == 2 and isinstance(args[1], (tuple, list)) else args[1:]
        return True, _operator("view", cls, (self, list(shape)), {})
    if name == "__getitem__" and type(args[1]) is int:
        return True, _operator("select", cls, (self, 0, args[1]), {}, "int")
    if name == "T":
        return True, _operator("permute", cls, (self, list(range(self._spec.ndim))[::-1]), {})
    if name == "mT":
        return True, _operator("transpose", cls, (self, -2, -1), {}, "int")
    operator = _METHODS.get(name)
    return (True, _operator(operator, cls, args, kwargs)) if operator is not None else (False, None)


def _operator(name, cls, args, kwargs, overload="default"):
    packet = packet_of(name, None)
    return _ask(getattr(packet, overload), (cls,), args, kwargs)
