"""The operators of Tensor: `a + b`, `a += b`, `-a`, `a == b`."""

import numpy as np

from .core.dtype import INT
from .core.record import tls
from .creation import tensor
from .dispatch import function_of, generate, override, twin
from .ops import registry
from .tensor import Tensor
from .tracebacks import shorten

_BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "pow": "pow",
    "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}  # fmt: skip
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_COMMUTES = ("add", "mul")


def lookup(name):
    """The function of a record of any kind."""
    for table in (registry.OPS, registry.VIEWS, registry.COMPOSITES):
        if name in table:
            return function_of(table[name])
    raise LookupError(f"no op named {name}")


def _reversed(fn, dunder):
    def apply(self, other):
        if dunder in _DESCRIPTORS:
            _check_self(self, dunder)
        if isinstance(other, np.ndarray):
            other = tensor(other)
        elif not isinstance(other, (Tensor, int, float, complex, np.generic)):
            return _asked(dunder, self, other)
        # PyTorch's bit operators keep the operands in the order of the method, which the result's strides show
        return fn(self, other) if dunder in _DESCRIPTORS else fn(other, self)

    return apply


def _commuted(fn, dunder):
    """other + self, where the order does not matter: the tensor comes first, which is the short way."""

    def apply(self, other):
        _check_self(self, dunder)
        return fn(self, other)

    return apply


# The reversed operators that are methods of the C class in PyTorch; the others are Python functions and take what comes.
_DESCRIPTORS = {"__radd__", "__rmul__", "__rand__", "__ror__", "__rxor__"}


def _check_self(self, dunder):
    """Tensor.__radd__(2, x), called by name: Python's operators never do that."""
    if not isinstance(self, Tensor):
        kind = type(self).__name__
        raise TypeError(f"descriptor '{dunder}' for 'torch._C.TensorBase' objects doesn't apply to a '{kind}' object")


def _in_place(name):
    def apply(self, other):
        if isinstance(other, np.ndarray):  # a new tensor, then: `self + other`
            return NotImplemented
        try:
            return getattr(self, name + "_")(other)
        except TypeError as error:
            if isinstance(other, (Tensor, int, float, complex, np.generic)):
                shorten(error)
                raise
            return NotImplemented
        except Exception as error:
            shorten(error)
            raise

    return apply


def install():
    """Attach the operators to Tensor."""
    generate.from_host = tensor
    for dunder, name in _BINARY.items():
        if dunder == "matmul":
            Tensor.__matmul__, Tensor.__rmatmul__ = (
                _between_tensors(lookup(name), "__matmul__"),
                _between_tensors(lambda a, b, product=lookup(name): product(b, a), "__rmatmul__"),
            )
            continue
        fn = generate.build_operator(registry.OPS[name]) if name in registry.OPS else _guarded(lookup(name))
        setattr(Tensor, f"__{dunder}__", fn)
        way = f"__r{dunder}__"
        setattr(Tensor, way, _commuted(fn, way) if name in _COMMUTES else _reversed(lookup(name), way))
        setattr(Tensor, f"__i{dunder}__", _in_place(name))
    Tensor.__rsub__ = generate.build_operator(registry.OPS["rsub"])
    Tensor.__rtruediv__ = Tensor.__rdiv__ = lambda self, other: self.reciprocal().__mul__(other)
    Tensor.__div__, Tensor.__idiv__ = Tensor.__truediv__, Tensor.__itruediv__  # Python 2's, which PyTorch has kept
    Tensor.__reversed__ = _reverse
    for name in _COMPARISONS:
        setattr(Tensor, f"__{name}__", generate.build_operator(registry.OPS[name]))
    Tensor.__neg__ = twin(lookup("neg"))
    Tensor.__abs__ = twin(lookup("abs"))
    Tensor.__invert__ = _invert(lookup("bitwise_not"))
    Tensor.__pos__ = _positive
    for name in ("eq", "rsub", "rtruediv", "floordiv", "rfloordiv", "rpow", "rmod", "and", "or", "xor", "lshift", "rshift",
        "rlshift", "rrshift", "rmatmul", "invert", "iand", "ior", "ixor", "ilshift", "irshift", "reversed"):  # fmt: skip
        vars(Tensor)[f"__{name}__"].__name__ = f"__{name}__"


def _reverse(self):
    """The first dimension turned round."""
    return lookup("flip")(self, (0,)) if self._spec.ndim else self


def _guarded(fn):
    def apply(self, other):
        if isinstance(other, (Tensor, int, float, complex, np.generic)):
            return fn(self, other)
        return NotImplemented

    return apply


def _between_tensors(fn, dunder):
    """a @ b, which takes no numbers. Reversed it is called only for operands that are no tensors."""

    def apply(self, other):
        try:
            return fn(self, other) if isinstance(other, Tensor) else _asked(dunder, self, other)
        except Exception as error:
            shorten(error)
            raise

    return apply


def _asked(dunder, self, other):
    """What the class of an operand that is neither tensor nor number makes of an operator, by its `__torch_function__`."""
    relevant = override.asked_now(tls.me, (self, other)) if override.has_override(type(other)) else ()
    if not relevant:
        return NotImplemented
    public = getattr(Tensor, override.OPERATORS.get(dunder, dunder))
    try:
        return override.override(public, relevant, (self, other), None)
    except TypeError:  # nor does it: Python then asks the operand itself
        return NotImplemented


def asked_of_items(public, *args):
    """What objects among an index and a value, neither tensors nor numbers, make of an access to items: that could not be done.

    public is Tensor's method, the arguments the tensor, the index and the value. NotImplemented: there is none to be asked.
    """
    inner = [x for a in args[1:2] if type(a) in (tuple, list) for x in a if type(x) in (tuple, list)]
    relevant = [x for x in override.asked_now(tls.me, (*args[1:], *inner)) if not isinstance(x, Tensor)]
    return override.override(public, relevant, args, None) if relevant else NotImplemented


def _invert(fn):
    def apply(self):
        if self._spec.dtype.category > INT:
            raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
        return fn(self)

    return apply


def _positive(self):
    if self._spec.dtype.category < INT:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self
