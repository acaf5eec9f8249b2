"""Stepping other parameters with an optimizer, for a while."""

import contextlib

__all__ = ["swap_in_optimizer_params_and_state"]


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(optimizer, swapin_parameters, swapin_optim_state):
    """A context in which an optimizer has other parameters and another state.

    Args:
        optimizer: its own parameters and state are back at the end
        swapin_parameters: {name: parameter}, in the order of the optimizer's own
        swapin_optim_state: as `optimizer.state_dict()` has it, for these parameters; it sees writes to its tensors

    ValueError: the numbers of parameters differ.
    """
    given = list(swapin_parameters.values())
    own = [p for group in optimizer.param_groups for p in group["params"]]
    if len(given) != len(own):
        raise ValueError(f"expected {len(own)} parameters, got {len(given)}")
    groups, state = [dict(g) for g in optimizer.param_groups], optimizer.state
    packed = [k for group in swapin_optim_state["param_groups"] for k in group["params"]]
    at = iter(given)
    try:
        for group, other in zip(optimizer.param_groups, swapin_optim_state["param_groups"]):
            mine = [next(at) for _ in group["params"]]
            group.update({k: v for k, v in other.items() if k != "params"})
            group["params"] = mine
        optimizer.state = type(state)(getattr(state, "default_factory", dict))
        for p, k in zip(given, packed):
            if k in swapin_optim_state["state"]:
                optimizer.state[p] = dict(swapin_optim_state["state"][k])
        yield
    finally:
        optimizer.state = state
        for group, before in zip(optimizer.param_groups, groups):
            group.clear()
            group.update(before)
