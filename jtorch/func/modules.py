"""Modules as functions of their parameters: functional_call and stack_module_state."""

import jax

from ..files.interchange import from_jax, to_jax
from ..nn.utils.stateless import _reparametrize_module
from ..ops import registry


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Call a module with these tensors in the place of its parameters and buffers.

    Args:
        parameter_and_buffer_dicts: name -> tensor, or several such dicts with no name in common
        tie_weights: give tied parameters the value of any one of their names
        strict: raise when names are missing or unknown

    Given jax arrays (also those being traced), it is a function of arrays: arguments may be arrays, and the result is.
    """
    dicts = parameter_and_buffer_dicts
    if isinstance(dicts, dict):
        values = dicts
    elif isinstance(dicts, (list, tuple)):
        if not all(isinstance(d, dict) for d in dicts):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [n for d in dicts for n in d]
        repeated = sorted({n for n in names if names.count(n) > 1})
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        values = {n: v for d in dicts for n, v in d.items()}
    else:
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    kwargs = kwargs or {}
    arrays = any(isinstance(v, jax.Array) for v in values.values())
    if arrays:
        values, args, kwargs = from_jax(values), from_jax(args), from_jax(kwargs)
    with _reparametrize_module(module, values, tie_weights, strict):
        result = module(*args, **kwargs)
    return to_jax(result) if arrays else result


def stack_module_state(models):
    """(parameters, buffers) of several modules of one kind, stacked along a new first dimension."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = {
        k: _stack(k, [dict(m.named_parameters())[k] for m in models]) for k, _ in models[0].named_parameters()
    }
    buffers = {k: _stack(k, [dict(m.named_buffers())[k] for m in models]) for k, _ in models[0].named_buffers()}
    return parameters, buffers


def _stack(name, tensors):
    needs = {t.requires_grad for t in tensors}
    if len(needs) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    stacked = registry.tensor_call(registry.OPS["stack"], ([t.detach() for t in tensors], 0), {})
    return stacked.requires_grad_(needs.pop())


def replace_all_batch_norm_modules_(root):
    """Let every batch norm below `root` do without running statistics, in place."""
    for m in root.modules():
        if hasattr(m, "running_mean") and hasattr(m, "num_batches_tracked"):
            m.running_mean = m.running_var = m.num_batches_tracked = None
            m.track_running_stats = False
    return root


__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]
