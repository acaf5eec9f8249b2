"""DistributedDataParallel: a module in several processes, whose gradients are averaged at the end of each backward pass."""

import contextlib

from jtorch.autograd.engine import queue_callback
from jtorch.autograd.mode import is_grad_enabled, no_grad
from jtorch.creation import tensor
from jtorch.distributed import buckets, collectives, messages, world
from jtorch.distributed.join import Join, Joinable, JoinHook
from jtorch.distributed.process_group import GroupMember, ReduceOp
from jtorch.nn.modules.module import Module
from jtorch.tensor import Tensor
from jtorch.utils._pytree import tree_map

__all__ = ["DistributedDataParallel"]


class _Shadow(JoinHook):
    """What a process without inputs does for a DistributedDataParallel: it has no gradients, and its buffers are old."""

    def __init__(self, ddp):
        self.ddp = ddp

    def main_hook(self):
        """Take part in a forward and a backward pass of the others."""
        ddp = self.ddp
        ddp._take_buffers(False)
        ddp.require_forward_param_sync = shares = bool(ddp._largest(0))
        if shares:
            ddp._exchange((), False)

    def post_hook(self, is_last_joiner):
        """Become the module of one that has ended last."""
        ddp = self.ddp
        root = ddp._largest(ddp.process_group.rank() if is_last_joiner else -1)
        ddp._take(ddp._shared(ddp.module.named_parameters()), root)
        ddp._take(ddp._shared(ddp.module.named_buffers()), root)


class DistributedDataParallel(Module, Joinable):
    """A module whose gradients all processes share: the mean of theirs is in `.grad` after each backward pass. Of one process they are
    its own.

    Parameters and buffers become those of rank 0 here, buffers again before each forward pass.

    Raises ValueError before init_process_group, RuntimeError for a module without parameters to train or whose parameters differ
    from those of another process.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
    """

    def __init__(
        self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, init_sync=True, process_group=None,
        bucket_cap_mb=None, find_unused_parameters=False, check_reduction=False, gradient_as_bucket_view=False, static_graph=False,
        **options,
    ):  # fmt: skip
        super().__init__()
        world.get_world_size(process_group)  # raises where there is no group
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        self.module = module
        self.device_ids = device_ids
        self.output_device = output_device if output_device is not None else (device_ids or [None])[0]
        self.device = next(module.parameters()).device
        self.process_group = GroupMember.WORLD if process_group is None else process_group
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.parameters_to_ignore = {*getattr(module, "_ddp_params_and_buffers_to_ignore", ())}
        self._hook = None
        self._ready = set()  # the numbers of the parameters that this backward pass has reached
        self._used = set()  # those that were reached since gradients were shared
        self._shares = False  # whether this backward pass shares
        self._count = self.process_group.size()  # what sums are divided by
        self._of_all = True  # whether that is always so
        self._begun = False  # whether there has been a forward pass
        self._without = ()  # those that the last backward pass has not reached
        self._trained = []
        if self.process_group.size() > 1:
            self._unite(init_sync)

    def _unite(self, init_sync):
        """Become the module of rank 0, and share gradients from now on."""
        named = [(name, p) for name, p in self.module.named_parameters() if name not in self.parameters_to_ignore]
        self._trained = [p for _, p in named if p.requires_grad]
        shapes = [(tuple(p.shape), str(p.dtype)) for _, p in named]
        found = [None] * self.process_group.size()
        messages.all_gather_object(found, shapes, self.process_group)
        for rank, other in enumerate(found):
            if other != found[0]:
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank 0 has {len(found[0])} params, while rank {rank} has inconsistent "
                    f"{len(other)} params: {[s for s, _ in found[0]]} and {[s for s, _ in other]}"
                )
        if init_sync:
            self._take([p for _, p in named])
            self._take(self._shared(self.module.named_buffers()))
        self._watch()

    def _watch(self):
        """Hear of the gradients of the parameters that are trained."""
        for k, p in enumerate(self._trained):
            p.register_post_accumulate_grad_hook(lambda p, k=k: self._arrived(k))

    def __getstate__(self):
        """All but the group, which is a matter of this process."""
        return {k: v for k, v in vars(self).items() if k not in ("process_group", "_hook")}

    def __setstate__(self, state):
        self.__dict__.update(state, process_group=world.group_of(None), _hook=None)
        self._watch()

    def _shared(self, named):
        return [t for name, t in named if name not in self.parameters_to_ignore]

    def _take(self, tensors, root=0):
        """Make tensors those of one of the group's processes."""
        for some in buckets.by_dtype(tensors):
            flat = buckets.packed(some)
            collectives.broadcast(flat, group=self.process_group, group_src=root)
            buckets.unpack(flat, some)

    def _take_buffers(self, has_inputs=True):
        """Make buffers those of the first process; in `join` of the last that has inputs."""
        if self.require_forward_param_sync and self.broadcast_buffers:
            root = self._largest(self.process_group.rank() if has_inputs else -1) if self._join_config.enable else 0
            self._take(self._shared(self.module.named_buffers()), root)

    def _largest(self, number):
        """The largest number of all processes."""
        found = tensor([number])
        collectives.all_reduce(found, ReduceOp.MAX, self.process_group)
        return found.item()

    def forward(self, *inputs, **kwargs):
        """The module's result. With `device_ids` tensors among the arguments come to the module's device."""
        self._begun = True
        if self.process_group.size() > 1:
            self._prepare()
        if self.device_ids:
            inputs, kwargs = tree_map(self._placed, (inputs, kwargs))
        return self.module(*inputs, **kwargs)

    def _placed(self, x):
        return x.to(self.device) if isinstance(x, Tensor) else x

    def _prepare(self):
        if self._without:
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your "
                "module has parameters that were not used in producing loss. You can enable unused parameter detection by passing the "
                "keyword argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`.\n"
                f"Parameter indices which did not receive grad for rank {self.process_group.rank()}: {' '.join(map(str, self._without))}"
            )
        here = Join.notify_join_context(self)
        self._count = self.process_group.size() if here is None or self._of_all else here.result()[0].item()
        self._take_buffers()
        self._shares = is_grad_enabled() and self.require_backward_grad_sync
        if self._join_config.enable:
            self._largest(int(self._shares))
        self._ready.clear()
        self.require_forward_param_sync = self.require_backward_grad_sync

    def _arrived(self, k):
        if self._shares and not self._ready:
            queue_callback(self._share)
        self._ready.add(k)
        self._used.add(k)

    def _share(self):
        """The mean of the gradients of all processes. A parameter that only some of them have used counts as zero in the others."""
        used, self._used, self._shares = self._used, set(), False
        missing = [k for k in range(len(self._trained)) if k not in self._ready]
        if missing and not self.find_unused_parameters and not self.static_graph:
            self._without = missing
            return
        self._exchange(used)

    def _exchange(self, used, has_inputs=True):
        """Put the means into `.grad`; without inputs this process counts as zero, and keeps its own."""
        trained = self._trained
        if self.find_unused_parameters or self.static_graph:
            anywhere = tensor([int(k in used) for k in range(len(trained))])
            collectives.all_reduce(anywhere, ReduceOp.MAX, self.process_group)
            trained = [p for p, u in zip(trained, anywhere.tolist()) if u]
        with no_grad():
            for p in trained:
                if p.grad is None:
                    p.grad = p.new_zeros(p.shape)
            found = {p: p.grad if has_inputs else p.grad * 0 for p in trained}
        for grad in [g for g in found.values() if g.is_sparse]:
            collectives.all_reduce(grad, group=self.process_group)
            grad /= self._count
        parts = buckets.by_dtype([p for p in trained if not found[p].is_sparse])
        for index, some in enumerate(parts):
            grads = [found[p] for p in some]
            bucket = buckets.GradBucket(index, buckets.packed(grads), some, index == len(parts) - 1)
            buckets.unpack(self._mean(bucket), grads)

    def _mean(self, bucket):
        if self._hook is not None:
            hook, state = self._hook
            found = hook(state, bucket).wait()
            return found[0] if isinstance(found, (list, tuple)) else found
        flat = bucket.buffer()
        collectives.all_reduce(flat, group=self.process_group)
        return flat / self._count

    @contextlib.contextmanager
    def no_sync(self):
        """Context: the gradients of forward passes in it stay each process's own, and add up until one outside is shared."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """Context for inputs of different number in each process: those that have none left count as zero in the others' means, which
        are those of all processes, or with `divide_by_initial_world_size=False` of those that have inputs. In the end all have the
        module of the last.
        """
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs):
        """What a process without inputs does for this module."""
        self._of_all = kwargs.get("divide_by_initial_world_size", True)
        return _Shadow(self)

    join_device = property(lambda self: self.device)
    join_process_group = property(lambda self: self.process_group)

    def _set_static_graph(self) -> None:
        if self._begun:
            raise RuntimeError(
                "set_static_graph() should be called before training loop starts and after DistributedDataParallel is constructed."
            )
        self.static_graph = True

    def _get_ddp_logging_data(self) -> dict:
        """What training frameworks ask for: parameters that get no gradient may be named before."""
        return {"can_set_static_graph": False}

    def register_comm_hook(self, state, hook) -> None:
        """Call hook(state, bucket) in the place of the mean: it returns a future of the bucket's new gradients.

        Of one process nothing is communicated, and it is never called. Raises TypeError, RuntimeError for a second one.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self._hook is not None:
            raise RuntimeError("register_comm_hook can only be called once.")
        self._hook = hook, state
