"""DistributedDataParallel over a group of one process: the module, under the name `module`."""

import contextlib

from jtorch.distributed import single
from jtorch.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A module whose gradients all processes share; of one process they are its own.

    Raises ValueError before init_process_group, RuntimeError for a module without parameters to train.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
    """

    def __init__(
        self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, init_sync=True, process_group=None,
        bucket_cap_mb=None, find_unused_parameters=False, check_reduction=False, gradient_as_bucket_view=False, static_graph=False,
        **options,
    ):  # fmt: skip
        super().__init__()
        single.get_world_size(process_group)  # raises where there is no group
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        self.module = module
        self.device_ids = device_ids
        self.output_device = output_device if output_device is not None else (device_ids or [None])[0]
        self.device = next(module.parameters()).device
        self.process_group = single.GroupMember.WORLD if process_group is None else process_group
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = self.require_forward_param_sync = True

    def forward(self, *inputs, **kwargs):
        """The module's result."""
        return self.module(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self):
        """Context: gradients are not shared, as of one process they never are."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextlib.contextmanager
    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """Context for inputs of different number in each process: there is one."""
        yield

    def register_comm_hook(self, state, hook) -> None:
        """Accepted, and never called: nothing is communicated."""
