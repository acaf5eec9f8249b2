"""State dicts of models and optimizers by the names of parameters, so that one program's can be given to another.

Source: https://docs.pytorch.org/docs/stable/distributed.checkpoint.html
"""

import dataclasses
import warnings

from ... import functions as torch
from ...autograd.mode import no_grad
from ...nn.modules.state import _IncompatibleKeys as IncompatibleKeys
from ...nn.parallel import DistributedDataParallel
from ...optim.optimizer import Optimizer
from ...tensor import Tensor

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip


@dataclasses.dataclass
class StateDictOptions:
    """How state dicts are made and taken.

    Args:
        full_state_dict: nothing, one process has all
        cpu_offload: copies in the host's memory
        ignore_frozen_params: leave out parameters that have no gradient
        keep_submodule_prefixes: of submodules, names from the model on
        strict: as of load_state_dict
        broadcast_from_rank0: nothing, and only with full_state_dict
        flatten_optimizer_state_dict: one dict of names with dots
        dsd_fqn_modifiers: nothing
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _checked(options):
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


_WRAPPERS = ("_orig_mod", "_checkpoint_wrapped_module")


def _name(model, path):
    """The name of a parameter without the modules that only wrap others."""
    kept, at = [], model
    for part in path.split("."):
        if part not in _WRAPPERS and not (part == "module" and isinstance(at, DistributedDataParallel)):
            kept.append(part)
        at = getattr(at, part, None)
    return ".".join(kept)


def _names(model):
    """{id of a parameter: its name}."""
    return {id(p): _name(model, n) for n, p in model.named_parameters()}


def _optimizers(optimizers):
    return (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)


def _offloaded(x):
    if isinstance(x, dict):
        return type(x)((k, _offloaded(v)) for k, v in x.items())
    if isinstance(x, (list, tuple)):
        return type(x)(_offloaded(v) for v in x)
    return x.detach().cpu().clone() if isinstance(x, Tensor) else x


# --- models --------------------------------------------------------------------------------------------------------


def get_model_state_dict(model, *, submodules=None, options=None) -> dict:
    """The model's state_dict, with names that do not show DistributedDataParallel, compilation or checkpoints."""
    options = _checked(options)
    found = model.state_dict()
    for key in list(found):  # in its order
        found[_name(model, key)] = found.pop(key)
    if options.ignore_frozen_params:
        for name, p in model.named_parameters():
            if not p.requires_grad:
                found.pop(_name(model, name), None)
    if submodules:
        found = _of_submodules(model, submodules, found, options)
    return _offloaded(found) if options.cpu_offload else found


def _of_submodules(model, submodules, found, options):
    warnings.warn(
        "Getting submodules only model/optim state_dict is deprecated and will be removed in 2.5. This feature can be "
        "achieved by manually filtering out the state_dict returned from get_state_dict.",
        FutureWarning,
        stacklevel=3,
    )
    kept = {}
    for name, module in model.named_modules():
        if module in submodules:
            prefix = f"{_name(model, name)}." if name else ""
            for key, value in found.items():
                if key.startswith(prefix):
                    kept[key if options.keep_submodule_prefixes else key[len(prefix) :]] = value
    return kept


def set_model_state_dict(model, model_state_dict, *, options=None):
    """Load what get_model_state_dict gave; (missing_keys, unexpected_keys). RuntimeError: strict, and keys are wrong."""
    options = _checked(options)
    if not model_state_dict and options.strict:
        raise RuntimeError(
            "The option indicates that model state_dict is required to save or load, but model state_dict is empty."
        )
    if not model_state_dict:
        return IncompatibleKeys([], [])
    if any(not isinstance(key, str) for key in model_state_dict):  # {module: its state_dict}
        model_state_dict = _joined(model, model_state_dict)
    inner = {_name(model, key): key for key in model.state_dict()}
    given = {inner.get(key, key): value for key, value in model_state_dict.items()}
    return model.load_state_dict(given, strict=options.strict)


def _joined(model, by_module):
    prefixes = {module: f"{name}." if name else "" for name, module in model.named_modules()}
    return {f"{prefixes[module]}{key}": v for module, part in by_module.items() for key, v in part.items()}


# --- optimizers ----------------------------------------------------------------------------------------------------


def _begin(optimizer):
    """Have an optimizer make its state: a step of size 0 with gradients of 0, where it has taken none."""
    params = [p for group in optimizer.param_groups for p in group["params"]]
    if optimizer.state or any(p.grad is not None for p in params):
        return
    for p in params:
        if p.requires_grad:
            p.grad = torch.zeros_like(p)
    rates = [group.get("lr") for group in optimizer.param_groups]
    for group, lr in zip(optimizer.param_groups, rates):
        if lr is not None:
            group["lr"] = torch.zeros_like(lr) if isinstance(lr, Tensor) else 0.0
    try:
        with no_grad():
            optimizer.step(closure=None)
    finally:  # the user's rates, whatever a step of his own raises
        for group, lr in zip(optimizer.param_groups, rates):
            if lr is not None:
                group["lr"] = lr
        optimizer.zero_grad(set_to_none=True)


def get_optimizer_state_dict(model, optimizers, *, submodules=None, options=None) -> dict:
    """{"state": {name of a parameter: its state}, "param_groups": [...]} of optimizers of the model's parameters.

    KeyError: a parameter is not the model's.
    """
    options = _checked(options)
    names, whole = _names(model), {"state": {}, "param_groups": []}
    for optimizer in _optimizers(optimizers):
        for k, p in enumerate(p for group in optimizer.param_groups for p in group["params"]):
            if id(p) not in names:
                raise KeyError(k)
        _begin(optimizer)
        whole["state"] |= _named_state(optimizer, names)
        for group in optimizer.state_dict()["param_groups"]:
            whole["param_groups"].append({**group})
        for group, own in zip(whole["param_groups"][-len(optimizer.param_groups) :], optimizer.param_groups):
            group["params"] = [names[id(p)] for p in own["params"]]
    if options.ignore_frozen_params:
        _without(whole, {_name(model, n) for n, p in model.named_parameters() if not p.requires_grad})
    if options.flatten_optimizer_state_dict:
        whole = _flat(whole)
    return _offloaded(whole) if options.cpu_offload else whole


def _named_state(optimizer, names):
    packed = optimizer.state_dict()["state"]
    params = [p for group in optimizer.param_groups for p in group["params"]]
    return {names[id(p)]: packed[k] for k, p in enumerate(params) if k in packed}


def _without(whole, frozen):
    for name in frozen:
        whole["state"].pop(name, None)
    for group in whole["param_groups"]:
        group["params"] = [n for n in group["params"] if n not in frozen]


def _flat(whole):
    found = {f"state.{name}.{k}": v for name, state in whole["state"].items() for k, v in state.items()}
    for group in whole["param_groups"]:
        for name in group["params"]:
            found |= {f"param_groups.{name}.{k}": v for k, v in group.items() if k != "params"}
    return found


def _unflat(flat, optimizer, names):
    """The nested form of what an optimizer can take from the flat one."""
    whole = {"state": {}, "param_groups": []}
    for group in optimizer.param_groups:
        own = [names[id(p)] for p in group["params"]]
        for name, p in zip(own, group["params"]):
            keys = [k for k in optimizer.state.get(p, {}) if f"state.{name}.{k}" in flat]
            if keys:
                whole["state"][name] = {k: flat[f"state.{name}.{k}"] for k in keys}
        values = {"params": own}
        for k in group:
            found = [flat[f"param_groups.{n}.{k}"] for n in own if f"param_groups.{n}.{k}" in flat]
            if any(v != found[0] for v in found[1:]):
                raise RuntimeError(f"All the parameters in the same parameter group should have the same {k}")
            if found:
                values[k] = found[0]
        whole["param_groups"].append(values)
    return whole


def set_optimizer_state_dict(model, optimizers, optim_state_dict, *, options=None) -> None:
    """Load what get_optimizer_state_dict gave, in either form. RuntimeError: it is empty."""
    _checked(options)
    optimizers, names = _optimizers(optimizers), _names(model)
    if optimizers and not optim_state_dict:
        raise RuntimeError(
            "The option indicates that model state_dict is required to save, or load but optim state_dict is empty. "
            f"{optim_state_dict}"
        )
    for optimizer in optimizers:
        _begin(optimizer)
        nested = optim_state_dict
        if "state" not in optim_state_dict:
            nested = _unflat(optim_state_dict, optimizer, names)
        _take(optimizer, names, nested)


def _take(optimizer, names, whole):
    given = optimizer.state_dict()
    state, count = {}, 0
    for group, own in zip(given["param_groups"], optimizer.param_groups):
        fqns = [names[id(p)] for p in own["params"]]
        for name in fqns:
            if name in whole["state"]:
                state[count] = whole["state"][name]
            count += 1
        for theirs in whole["param_groups"]:
            if set(theirs["params"]) & set(fqns):
                group.update({k: v for k, v in theirs.items() if k != "params"})
    optimizer.load_state_dict({"state": state, "param_groups": given["param_groups"]})


# --- both ----------------------------------------------------------------------------------------------------------


def get_state_dict(model, optimizers, *, submodules=None, options=None) -> tuple:
    """(get_model_state_dict, get_optimizer_state_dict)."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(model, optimizers, *, model_state_dict, optim_state_dict, options=None):
    """Load both; the model's (missing_keys, unexpected_keys)."""
    keys = set_model_state_dict(model, model_state_dict, options=options)
    if _optimizers(optimizers):
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return keys
