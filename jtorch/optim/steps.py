"""The step counts in the states of optimizers: shared while they run together, one each in what is saved."""

from jtorch import functions as torch
from jtorch.copying import apart
from jtorch.core import dtype as dtypes
from jtorch.tensor import Tensor

__all__ = ["numbers_as_tensors", "scalar_dtype", "share_steps", "with_own_step"]


def scalar_dtype():
    """The dtype of step counts: the default one where it is a wide float."""
    return dtypes.float64 if dtypes.default.dtype is dtypes.float64 else dtypes.float32


def with_own_step(state, shared):
    """The state of a parameter with a step count of its own, in memory of its own once it is copied or saved: whoever loads it may
    count each of them. Until then it counts on with the optimizer, as PyTorch's does."""
    step = state.get("step") if isinstance(state, dict) else None
    if not isinstance(step, Tensor):
        return state
    if id(step) in shared:
        return {**state, "step": apart(step)}
    shared.add(id(step))
    return state


def share_steps(states):
    """Let parameters that have made the same number of steps share one count, as those that start together do.

    What has been loaded counts on with the optimizer, as PyTorch's does: all of its counts are of one memory then.
    """
    known = {}
    for state in states.values():
        step = state.get("step") if isinstance(state, dict) else None
        if isinstance(step, Tensor) and step.numel() == 1:
            shared = state["step"] = known.setdefault((step.device, step.dtype, step.item()), step)
            if shared is not step and all(_is_alone(t) for t in (step, shared)) and step._spec is shared._spec:
                step._storage = shared._storage


def _is_alone(t) -> bool:
    """Whether a tensor is all of its memory, and neither numpy nor a history knows it."""
    storage = t._storage
    return storage.spec is t._spec and storage.host is None and t._base is None and t._edge is None


def numbers_as_tensors(names, states, params):
    """Make tensors of what is a number in the states of old files."""
    steps = {}  # those that have made the same number share their count
    for p in params:
        state = states.get(p, ())
        for name in names if len(state) else ():
            value = state[name]
            if not isinstance(value, Tensor):
                made = torch.tensor(float(value), dtype=scalar_dtype(), device=p.device)
                state[name] = steps.setdefault((p.device, value), made) if name == "step" else made
