"""torch.distributed.algorithms' local SGD: gradients averaged among some processes, parameters among all now and then.

Source: Lin, Stich, Patel, Jaggi, Don't Use Large Mini-batches, Use Local SGD, 2020
"""

from ..autograd.mode import no_grad
from ..futures import Future
from . import buckets
from .collectives import all_reduce
from .comm_hooks import allreduce_hook
from .world import group_of

__all__ = ["ModelAverager", "PeriodicModelAverager", "PostLocalSGDState", "average_parameters", "post_localSGD_hook"]


class PostLocalSGDState:
    """What post_localSGD_hook needs.

    Args:
        process_group: the processes that average at first; None: all
        subgroup: those that do later, `process_group` being the others as well
        start_localSGD_iter: the backward pass from which on they do
        post_local_gradient_allreduce: whether the subgroup does, or each process keeps its gradients
    """

    def __init__(self, process_group, subgroup, start_localSGD_iter, post_local_gradient_allreduce=True):
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket) -> None:
        """Count a backward pass, at its last bucket."""
        self.iter += bucket.is_last()


def post_localSGD_hook(state, bucket):
    """The mean over all processes at first, over the subgroup from the state's iteration on."""
    group, local = group_of(state.process_group), state.iter >= state.start_localSGD_iter
    state.maybe_increase_iter(bucket)
    if local and not state.post_local_gradient_allreduce:
        return _kept(bucket)
    return allreduce_hook(state.subgroup if local else group, bucket)


def _kept(bucket):
    made = Future()
    made.set_result(bucket.buffer())
    return made


def average_parameters(params, process_group) -> None:
    """Make parameters the mean of those of all processes of a group."""
    group = group_of(process_group)
    with no_grad():
        for some in buckets.by_dtype(list(params)):
            flat = buckets.packed(some)
            all_reduce(flat, group=group)
            buckets.unpack(flat / group.size(), some)


class ModelAverager:
    """What averages the parameters of processes; `step` counts its calls."""

    def __init__(self, process_group=None):
        self.process_group, self.step = group_of(process_group), 0

    def average_parameters(self, params):
        """Average, where it is time to."""
        raise NotImplementedError("an averager of its own needs average_parameters")


class PeriodicModelAverager(ModelAverager):
    """Averages at each `period`-th call after `warmup_steps`. Raises ValueError for a period below 1 or negative steps."""

    def __init__(self, period, warmup_steps=0, process_group=None):
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        self.period, self.warmup_steps = period, warmup_steps

    def average_parameters(self, params) -> None:
        """Average parameters, or those of an optimizer's groups, that have a gradient."""
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            each = (p for item in params for p in (item["params"] if isinstance(item, dict) else (item,)))
            average_parameters([p for p in each if p.grad is not None], self.process_group)
        self.step += 1
