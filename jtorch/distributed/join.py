"""torch.distributed.algorithms.join: processes with inputs of different number, which is for one process only."""

from .. import errors

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process without inputs does while others have some, and afterwards."""

    def main_hook(self) -> None:
        """Called in each of the others' steps."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called when all have ended."""


class Joinable:
    """What can be given to Join. For isinstance."""


class Join:
    """Context for inputs of different number in each process. Raises NotImplementedError where there are several processes."""

    def __init__(self, joinables, enable=True, throw_on_early_termination=False, **kwargs):
        if enable and any(
            getattr(j, "process_group", None) is not None and j.process_group.size() > 1 for j in joinables
        ):
            raise errors.unsupported(
                "torch.distributed.algorithms.join.Join",
                instead="as many batches in each process (DistributedSampler, drop_last=True)",
            )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    @staticmethod
    def notify_join_context(joinable) -> None:
        """Nothing: no process has ended before the others."""
