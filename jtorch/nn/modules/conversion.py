"""How a module's parameters become others: new data, new objects, or the insides of new objects (torch.__future__)."""

import importlib

from ... import errors
from ...autograd.mode import no_grad
from ...core.device import device as device_type
from ...core.dtype import PYTHON
from ...core.dtype import dtype as dtype_type
from ...creation import MemoryFormat
from ...tensor import Tensor
from ..parameter import Parameter


class _Conversion:
    __slots__ = ("overwrite", "swap")


CONVERSION = _Conversion()
CONVERSION.overwrite = CONVERSION.swap = False


def _swap(first, second):
    # torch.utils has the loaders with it: `import jtorch.nn` does without them
    importlib.import_module("jtorch.utils.identity").swap_tensors(first, second)


def converted(module, name, param, new, fn) -> Parameter:
    """`param` of a module after `fn`, which made `new`: swapped with it where that has been asked for, else replaced by it.

    Raises RuntimeError where a tensor cannot be swapped.
    """
    with no_grad():
        new = Parameter(new, requires_grad=param.requires_grad)
        grad = param.grad
        new_grad = None if grad is None else fn(grad).requires_grad_(grad.requires_grad)
    if not CONVERSION.swap:
        new.grad = new_grad
        module._parameters[name] = new
        return new
    param.grad = None
    try:
        _swap(param, new)
        if grad is not None:
            _swap(grad, new_grad)
    except Exception as error:
        raise RuntimeError(f"_apply(): Couldn't swap {module._get_name()}.{name}") from error
    finally:
        param.grad = grad
    return param


def loaded(param, new, assign) -> None:
    """Swap a parameter with what `module_load` makes of an entry of a state dict."""
    made = param.module_load(new, assign=assign)
    if made is param or made is new:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in module_load"
        )
    if isinstance(param, Parameter):
        made = made if isinstance(made, Parameter) else Parameter(made, requires_grad=param.requires_grad)
        made.requires_grad_(param.requires_grad)
    _swap(param, made)


_FORMS_OF_TO = (
    ("device", "dtype", "non_blocking", "copy"),
    ("dtype", "non_blocking", "copy"),
    ("tensor", "non_blocking", "copy"),
)
_KINDS_OF_TO = {
    "dtype": (dtype_type, type),
    "tensor": Tensor,
    "non_blocking": bool,
    "copy": bool,
    "memory_format": (MemoryFormat, type(None)),
}
_WORDS_OF_TO = (
    "(torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, ",
    "(torch.dtype dtype, bool non_blocking = False, bool copy = False, *, ",
    "(Tensor tensor, bool non_blocking = False, bool copy = False, *, ",
)


def _fits(form, name, value) -> bool:
    """Whether an argument of `to` may be given in a form of its call."""
    if name not in form and name != "memory_format":
        return False
    if name == "device":
        return value is None or isinstance(value, (str, int, device_type)) and not isinstance(value, bool)
    if name == "dtype" and value is None:
        return form is _FORMS_OF_TO[0]
    return isinstance(value, _KINDS_OF_TO[name])


def arguments_of_to(*args, **kwargs):
    """The arguments of `Module.to` as (device, dtype, options, memory_format). TypeError: they fit none of its forms."""
    if len(args) > 4:
        raise TypeError(f"to() takes from 0 to 4 positional arguments but {len(args)} were given")
    for form in _FORMS_OF_TO:
        given = dict(zip(form, args))
        both = {**given, **kwargs}
        if (
            len(args) <= len(form)
            and len(both) == len(args) + len(kwargs)
            and all(_fits(form, *x) for x in both.items())
        ):
            break
    else:
        wanted = "\n * ".join(f"{form}torch.memory_format memory_format = None)" for form in _WORDS_OF_TO)
        raise errors.combination("to", args, f"* {wanted}\n", kwargs, indent=1)
    if both.pop("copy", None) is not None:
        raise RuntimeError(".to() does not accept copy argument")
    device, dtype, other = both.pop("device", None), both.pop("dtype", None), both.pop("tensor", None)
    memory_format = both.pop("memory_format", None)
    if other is not None:
        device, dtype = other.device, other.dtype
    if device is not None and not isinstance(device, device_type):
        device = device_type(device)
    return device, PYTHON.get(dtype, dtype), both, memory_format
