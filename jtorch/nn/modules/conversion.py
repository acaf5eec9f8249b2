"""How a module's parameters become others: new data, new objects, or the insides of new objects (torch.__future__)."""

import importlib

from ...autograd.mode import no_grad
from ..parameter import Parameter


class _Conversion:
    __slots__ = ("overwrite", "swap")


CONVERSION = _Conversion()
CONVERSION.overwrite = CONVERSION.swap = False


def _swap(first, second):
    # torch.utils has the loaders with it: `import jtorch.nn` does without them
    importlib.import_module("jtorch.utils.identity").swap_tensors(first, second)


def converted(module, name, param, fn) -> Parameter:
    """`param` of a module after `fn`: swapped with the result where that has been asked for, else a new one in its place.

    Raises RuntimeError where a tensor cannot be swapped.
    """
    with no_grad():
        new = Parameter(fn(param), requires_grad=param.requires_grad)
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
