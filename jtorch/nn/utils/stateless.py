"""Calling a module with other parameters than its own."""

import contextlib
import warnings

from jtorch.handles import mutations
from jtorch.tensor import Tensor

__all__ = ["functional_call"]


def _places(module):
    """Where each parameter and buffer lives: {dotted name: (the dict, the key)}, duplicates included."""
    places = {}
    for prefix, m in module.named_modules(remove_duplicate=False):
        dot = prefix + "." if prefix else ""
        for table in (m._parameters, m._buffers):
            for name, value in table.items():
                if value is not None:
                    places[dot + name] = (table, name)
    return places


def _with_tied(places, given):
    """`given`, extended to the other names of tensors that occur under several."""
    by_tensor = {}
    for name, (table, key) in places.items():
        by_tensor.setdefault(id(table[key]), []).append(name)
    result = dict(given)
    for names in by_tensor.values():
        present = [n for n in names if n in given]
        if not present:
            continue
        if len({id(given[n]) for n in present}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(present)}, "
                "which are tied. Consider using tie_weights=False"
            )
        for n in names:
            result[n] = given[present[0]]
    return result


@contextlib.contextmanager
def _reparametrize_module(module, parameters_and_buffers, tie_weights=False, strict=False):
    """Put other tensors in the place of the module's for a while."""
    places = _places(module)
    given = _with_tied(places, parameters_and_buffers) if tie_weights else dict(parameters_and_buffers)
    if strict:
        unexpected = sorted(set(given) - set(places))
        missing = sorted(set(places) - set(given))
        messages = []
        if unexpected:
            messages.append(f"Unexpected key(s): {', '.join(repr(k) for k in unexpected)}.")
        if missing:
            messages.append(f"Missing key(s): {', '.join(repr(k) for k in missing)}.")
        if messages:
            raise RuntimeError(
                "Error(s) in reparametrizing for {}:\n\t{}".format(module._get_name(), "\n\t".join(messages))
            )
    old = []
    mutations[0] += 1
    try:
        for name, value in given.items():
            if name not in places:
                path, _, last = name.rpartition(".")
                owner = module.get_submodule(path)
                raise AttributeError(f"{owner._get_name()} has no attribute `{last}`")
            if not isinstance(value, Tensor):
                raise TypeError(f"{value} is not an instance of torch.Tensor")
            table, key = places[name]
            old.append((table, key, table[key], name))
            table[key] = value
        yield
    finally:
        mutations[0] += 1
        for table, key, value, name in reversed(old):
            # a buffer that forward replaced keeps its new value for the caller
            if isinstance(parameters_and_buffers, dict) and name in parameters_and_buffers:
                parameters_and_buffers[name] = table.get(key, parameters_and_buffers[name])
            table[key] = value


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Deprecated under this name: use `torch.func.functional_call`."""
    warnings.warn(
        "This API is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use torch.func.functional_call instead "
        "which is a drop-in replacement for this API.",
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
    with _reparametrize_module(module, dict(parameters_and_buffers), tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))
