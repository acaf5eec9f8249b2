"""torch.distributed.optim: an optimizer whose state is spread over the processes, each of which updates a part of the parameters.

Source: https://docs.pytorch.org/docs/stable/distributed.optim.html
"""

from collections import defaultdict

from .. import errors
from ..optim.optimizer import Optimizer
from ..tensor import Tensor
from . import buckets, collectives, messages
from .join import Join, Joinable, JoinHook
from .process_group import GroupMember
from .world import group_of

__all__ = ["ZeroRedundancyOptimizer"]


class _Shadow(JoinHook):
    """What a process without inputs does: it updates its part as the others do theirs."""

    def __init__(self, optimizer):
        self.optimizer = optimizer

    def main_hook(self):
        """A step of the others."""
        self.optimizer.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer of which each process has the state of a part of the parameters, and sends the others what it has made of them.

    Args:
        params: parameters, or groups of them, in the same order in all processes
        optimizer_class: the optimizer, which gets `defaults`
        process_group: the processes; all by default
        parameters_as_bucket_view: accepted: parameters travel packed in any case
        overlap_with_ddp: True is refused
    Raises ValueError for no parameters, and for those of several dtypes or sparse ones.
    """

    def __init__(
        self, params, optimizer_class, process_group=None, parameters_as_bucket_view=False, overlap_with_ddp=False, **defaults
    ):  # fmt: skip
        if overlap_with_ddp:
            raise errors.unsupported("overlap_with_ddp=True", instead="False: the same steps, without overlap")
        self.process_group = group_of(process_group)
        self._whole = None  # the state of all parameters, once it has been gathered
        self._loads = [0] * self.process_group.size()  # elements that each process updates
        self._owner = {}
        self.optim = None
        super().__init__(_checked(params), defaults)
        own = [self._own(group) for group in self.param_groups]
        self.optim = optimizer_class(own, **defaults)
        for group, part in zip(self.param_groups, self.optim.param_groups):
            group |= {k: v for k, v in part.items() if k != "params"}

    def add_param_group(self, param_group):
        """Add a group, whose parameters go to those that have the fewest elements."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for p in _largest_first(group):
            owner = self._owner[p] = self._loads.index(min(self._loads))
            self._loads[owner] += p.numel()
        if self.optim is not None:
            self.optim.add_param_group(self._own(group))
            group |= {k: v for k, v in self.optim.param_groups[-1].items() if k != "params"}

    def _own(self, group):
        """The part of a group that this process updates."""
        mine = self.process_group.rank()
        return group | {"params": [p for p in _largest_first(group) if self._owner[p] == mine]}

    def step(self, closure=None, **kwargs):
        """Update the parameters of this process, and take those of the others."""
        Join.notify_join_context(self)
        for group, part in zip(self.param_groups, self.optim.param_groups):
            part |= {k: v for k, v in group.items() if k != "params"}  # schedules change those of all parameters
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure, **kwargs)
        owned = defaultdict(list)
        for group in self.param_groups:
            for p in group["params"]:
                owned[self._owner[p]].append(p)
        for rank in sorted(owned) if self.process_group.size() > 1 else ():
            for some in buckets.by_dtype(owned[rank]):
                flat = buckets.packed(some)
                collectives.broadcast(flat, group=self.process_group, group_src=rank)
                buckets.unpack(flat, some)
        return loss

    def _numbers(self):
        """parameter -> its number, in the order of the groups"""
        return {p: k for k, p in enumerate(p for group in self.param_groups for p in group["params"])}

    def consolidate_state_dict(self, to=0):
        """Gather the state of all parameters in one process, whose state_dict() then has it; all processes call it."""
        numbers = self._numbers()
        own = {numbers[p]: dict(s) for p, s in self.optim.state.items()}
        found = [None] * self.process_group.size()
        messages.all_gather_object(found, own, self.process_group)
        here = self.process_group.ranks[self.process_group.rank()] == to
        self._whole = {k: s for part in found for k, s in part.items()} if here else None

    def state_dict(self):
        """State and options of all parameters. RuntimeError where the state has not been gathered here."""
        if self._whole is None:
            raise RuntimeError(
                f"Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to="
                f"{GroupMember.WORLD.rank()})` on all ranks beforehand if you meant to save the global state."
            )
        return super().state_dict() | {"state": dict(sorted(self._whole.items()))}

    def load_state_dict(self, state_dict):
        """Take state and options of all parameters; this process keeps the state of its own."""
        super().load_state_dict(state_dict)
        mine = self.process_group.rank()
        own = defaultdict(dict, ((p, s) for p, s in self.state.items() if self._owner.get(p) == mine))
        self.state = defaultdict(dict)
        groups = [self._own(group) for group in self.param_groups]
        self.optim.__setstate__({"state": own, "param_groups": groups})

    def join_hook(self, **kwargs):
        """What a process without inputs does for this optimizer."""
        return _Shadow(self)

    join_device = property(lambda self: self.param_groups[0]["params"][0].device)
    join_process_group = property(lambda self: self.process_group)


def _largest_first(group):
    return sorted(group["params"], key=Tensor.numel, reverse=True)


def _checked(params):
    """Parameters or groups, as a list."""
    if isinstance(params, Tensor) or not hasattr(params, "__iter__"):
        raise TypeError(f"`params` argument should be an iterable of Tensors or dicts, but got {type(params).__name__}")
    params = list(params)
    if not params:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    if any(not isinstance(x, (Tensor, dict)) for x in params):
        raise TypeError("`params` argument should be an iterable of Tensors or dicts")
    params = [x | {"params": list(x["params"])} if isinstance(x, dict) else x for x in params]
    kinds = [t.type() for x in params for t in (x["params"] if isinstance(x, dict) else [x])]
    only = "ZeroRedundancyOptimizer only supports using the same dense type for all parameters but got"
    for kind in kinds:
        if "sparse" in kind:
            raise ValueError(f"{only} {kind}")
        if kind != kinds[0]:
            raise ValueError(f"{only} both {kinds[0]} and {kind}")
    return params
