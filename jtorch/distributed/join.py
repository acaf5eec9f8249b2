"""torch.distributed.algorithms.join: processes with inputs of different number. Those that have none left take part in the others' steps.

Source: https://docs.pytorch.org/docs/stable/distributed.algorithms.join.html
"""

import abc
import typing

from ..creation import tensor
from . import collectives

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process without inputs does while others have some, and afterwards."""

    def main_hook(self) -> None:
        """Called once for each step of the others: what they start, it has to start too."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called when all have ended; `is_last_joiner`: this process was among those that ended last."""


class _Config(typing.NamedTuple):
    enable: bool
    throw: bool
    first: bool  # one object of a context counts for all


class Joinable(abc.ABC):
    """What can be given to Join."""

    _join_config = _Config(False, False, False)

    @abc.abstractmethod
    def join_hook(self, **kwargs) -> JoinHook:
        """What is to be done for it; the arguments are those of the context."""

    @property
    @abc.abstractmethod
    def join_device(self):
        """The device of what it communicates."""

    @property
    @abc.abstractmethod
    def join_process_group(self):
        """The processes that it communicates with."""


class Join:
    """Context for inputs of different number in each process.

    Args:
        joinables: what communicates in it; each tells the context of its steps by `notify_join_context`
        enable: False where all have as many inputs
        throw_on_early_termination: all raise RuntimeError as soon as one has no inputs
        kwargs: for their `join_hook`
    Raises ValueError for none, and for several with other groups.
    """

    def __init__(self, joinables, enable=True, throw_on_early_termination=False, **kwargs):
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables, self._enable, self._throw = list(joinables), enable, throw_on_early_termination
        self._hooks = [j.join_hook(**kwargs) for j in self._joinables]
        self._group, *others = (j.join_process_group for j in self._joinables)
        if any(group is not self._group for group in others):
            raise ValueError("Using join context manager with multiple process groups")

    def __enter__(self):
        for k, joinable in enumerate(self._joinables):
            joinable._join_config = _Config(self._enable, self._throw, k == 0)
        return self

    def __exit__(self, kind, error, trace):
        try:
            if self._enable and kind is None:
                self._accompany()
        finally:
            for joinable in self._joinables:
                joinable._join_config = Joinable._join_config

    def _accompany(self):
        """Take part in the others' steps until none has inputs."""
        last = True
        while _sum(0, self._group):
            if self._throw:
                _sum(1, self._group)
                raise RuntimeError(f"Rank {self._group.rank()} exhausted all inputs.")
            last = False
            for hook in self._hooks:
                hook.main_hook()
        for hook in self._hooks:
            hook.post_hook(last)

    @staticmethod
    def notify_join_context(joinable):
        """Say that this process has another input: to be called before what a step communicates.

        Returns the Work whose result is how many have one; None outside a context. Raises RuntimeError where one has none and the
        context says so.
        """
        config = joinable._join_config
        if not (config.enable and config.first):
            return None
        group = joinable.join_process_group
        work = collectives.all_reduce(tensor([1]), group=group, async_op=True)
        if config.throw and _sum(0, group):
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work


def _sum(number, group) -> int:
    """The sum of the numbers of all processes."""
    found = tensor([number])
    collectives.all_reduce(found, group=group)
    return found.item()
