"""Calling a module with other parameters than its own."""

import contextlib
import warnings

from jtorch.handles import mutations
from jtorch.nn.modules.module import Module
from jtorch.tensor import Tensor

__all__ = ["functional_call"]


_NOTHING = object()  # in the place of an attribute that is not there


def _named_tensors(module):
    """{dotted name: tensor} of all parameters and buffers, duplicates included."""
    found = dict(module.named_parameters(remove_duplicate=False))
    found.update(module.named_buffers(remove_duplicate=False))
    return found


def _with_tied(tensors, given):
    """`given`, extended to the other names of tensors that occur under several."""
    by_tensor = {}
    for name, tensor in tensors.items():
        by_tensor.setdefault(id(tensor), []).append(name)
    result = dict(given)
    for names in by_tensor.values():
        present = [n for n in names if n in given]
        if len(present) > 1 and len({id(given[n]) for n in present}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, "
                "which are tied. Consider using tie_weights=False"
            )
        for n in names if present else ():
            result[n] = given[present[0]]
    return result


def _owner(module, path):
    """The submodule at a dotted path."""
    for at, name in enumerate(path.split(".") if path else ()):
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        module = getattr(module, name)
        if not isinstance(module, Module):
            path = ".".join(path.split(".")[: at + 1])
            raise TypeError(f"submodule `{path}`: {module} is not an instance of torch.nn.Module")
    return module


def _exchange(module, name, value):
    """Put a tensor (None, or _NOTHING) in the place with this dotted name; what was there."""
    path, _, key = name.rpartition(".")
    owner = _owner(module, path)
    if value is not _NOTHING and value is not None and not isinstance(value, Tensor):
        raise TypeError(f"{value} is not an instance of torch.Tensor")
    if key == "":
        raise KeyError('tensor name can\'t be empty string ""')
    for table in (owner._parameters, owner._buffers):
        if key in table:
            before = table[key]
            if value is _NOTHING:
                del table[key]
            else:
                table[key] = value
            return before
    before = getattr(owner, key, _NOTHING)
    if before is not _NOTHING and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{key}`: {before} is not an instance of torch.Tensor")
    if value is not _NOTHING:
        setattr(owner, key, value)
    elif hasattr(owner, key):
        delattr(owner, key)
    return before


def _exchange_all(module, values):
    """`_exchange` of several; all or, where one is refused, none."""
    before = {}
    try:
        for name, value in values.items():
            before[name] = _exchange(module, name, value)
    except Exception:
        for name, value in before.items():
            _exchange(module, name, value)
        raise
    return before


@contextlib.contextmanager
def _reparametrize_module(module, parameters_and_buffers, tie_weights=False, strict=False):
    """Put other tensors in the place of the module's for a while.

    A buffer that is replaced in the meantime is found in `parameters_and_buffers` afterwards.
    """
    tensors = _named_tensors(module) if tie_weights or strict else {}
    given = _with_tied(tensors, parameters_and_buffers) if tie_weights else dict(parameters_and_buffers)
    if strict:
        unexpected = sorted(set(given) - set(tensors))
        missing = sorted(set(tensors) - set(given))
        messages = []
        if unexpected:
            messages.append(f"Unexpected key(s): {', '.join(repr(k) for k in unexpected)}.")
        if missing:
            messages.append(f"Missing key(s): {', '.join(repr(k) for k in missing)}.")
        if messages:
            raise RuntimeError(
                "Error(s) in reparametrizing for {}:\n\t{}".format(module._get_name(), "\n\t".join(messages))
            )
    mutations[0] += 1
    before = _exchange_all(module, given)
    try:
        yield
    finally:
        mutations[0] += 1
        after = _exchange_all(module, before)
        parameters_and_buffers.update({k: after[k] for k in parameters_and_buffers if k in after})


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Deprecated under this name: use `torch.func.functional_call`."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version of "
        "PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def _functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Call `module` with the given tensors in the place of its parameters and buffers.

    Args:
        parameters_and_buffers: {dotted name: tensor}; what is not named stays
        args, kwargs: of the call; args may be a single value
        tie_weights: tensors tied in the module are replaced together
        strict: all must be named
    """
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))
