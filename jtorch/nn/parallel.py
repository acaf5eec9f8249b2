"""nn.DataParallel. One process sees one accelerator here, which is what PyTorch does where there is no second one."""

from jtorch.nn.modules.module import Module

__all__ = ["DataParallel"]


class DataParallel(Module):
    """A module that is called as it is: the batch is not split. Sharding over devices is what JAX's meshes are for.

    Args:
        module: the module
        device_ids, output_device, dim: accepted
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module = module
        self.device_ids = []
        self.output_device = output_device
        self.dim = dim

    def forward(self, *inputs, **kwargs):
        """module(*inputs, **kwargs)."""
        return self.module(*inputs, **kwargs)
