"""Schedules made of schedules: one after the other, or all at once."""

import warnings
from bisect import bisect_right

from jtorch.optim.schedules.base import LRScheduler, split, write_lr
from jtorch.optim.schedules.plateau import ReduceLROnPlateau


def _check_parts(name, schedulers, optimizer):
    """Raises where a schedule cannot be part of `name`: it wants more than `step()`, or another optimizer."""
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it "
                "requires additional kwargs to be specified when calling `step`, "
                f"but got one at index {i} in the given schedulers sequence."
            )
        if optimizer != scheduler.optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but "
                f"got scheduler {scheduler.__class__.__name__} at index {i} has {scheduler.optimizer}, "
                f"which is different from {optimizer.__class__.__name__}."
            )


class SequentialLR(LRScheduler):
    """Several schedules, one after the other: the next begins at each of the `milestones`."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        name = self.__class__.__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
        _check_parts(name, schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more "
                f"than the number of milestone points, but got number of schedulers {len(schedulers)} and the "
                f"number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # making the schedules has stepped each of them: begin again with the one whose turn it is
        for group in self.optimizer.param_groups:
            write_lr(group, group["initial_lr"])
        for scheduler in self._schedulers:
            self.recursive_undo(scheduler)
        first = self._schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched=None):
        """Take back the step that making a schedule takes."""
        for inner in getattr(sched if sched is not None else self, "_schedulers", ()):
            self.recursive_undo(inner)
        target = self if sched is None else sched
        if not hasattr(target, "_schedulers"):
            target.last_epoch -= 1

    def step(self):
        """Step the schedule whose turn it is."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self):
        """Everything but the optimizer; the schedules as their own state dicts."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict):
        """Take back what `state_dict` gave."""
        saved, others = split(state_dict, "_schedulers")
        self.__dict__.update(others)
        for i, state in enumerate(saved):
            self._schedulers[i].load_state_dict(state)


class ChainedScheduler(LRScheduler):
    """Several schedules, all stepped at every step."""

    def __init__(self, schedulers, optimizer=None):
        name = self.__class__.__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        _check_parts(name, schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = self._schedulers[-1].optimizer and self._current()

    def step(self):
        """Step all schedules."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._current()

    state_dict = SequentialLR.state_dict
    load_state_dict = SequentialLR.load_state_dict
