"""torch.ao.quantization and torch.nn.quantized as a float model meets them: stubs pass on what they get, arithmetic is float."""

from ... import errors
from ... import functions as torch
from ...nn.modules.module import Module

__all__ = [
    "DeQuantStub",
    "FloatFunctional",
    "QuantStub",
    "convert",
    "fuse_modules",
    "fuse_modules_qat",
    "prepare",
    "prepare_qat",
]


class QuantStub(Module):
    """Where a quantized model would begin: passes its input on.

    Args:
        qconfig: kept
    """

    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        """x."""
        return x


class DeQuantStub(QuantStub):
    """Where a quantized model would end: passes its input on."""


class FloatFunctional(Module):
    """Arithmetic as a module, which quantization would replace: in float."""

    def forward(self, x):
        """Raises RuntimeError: call one of the operations."""
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x, y):
        """x + y."""
        return torch.add(x, y)

    add_scalar = add

    def mul(self, x, y):
        """x * y."""
        return torch.mul(x, y)

    mul_scalar = mul

    def matmul(self, x, y):
        """x @ y."""
        return torch.matmul(x, y)

    def cat(self, x, dim=0):
        """torch.cat."""
        return torch.cat(x, dim=dim)

    def add_relu(self, x, y):
        """The positive part of x + y."""
        return torch.relu(torch.add(x, y))


def _unsupported(name):
    def refuse(*args, **kwargs):
        raise errors.unsupported(f"quantization ({name})", instead="quantize_dynamic, or the float model")

    refuse.__name__ = name
    return refuse


convert, prepare, prepare_qat = map(_unsupported, ("convert", "prepare", "prepare_qat"))
fuse_modules, fuse_modules_qat = map(_unsupported, ("fuse_modules", "fuse_modules_qat"))


def _layer(name):
    def __init__(self, *args, **kwargs):
        raise errors.unsupported(f"layers of quantized tensors (torch.nn.quantized.{name})", instead=f"torch.nn.{name}")

    return type(
        name,
        (Module,),
        {"__init__": __init__, "__doc__": f"{name} of quantized tensors: there is none. For isinstance."},
    )


BatchNorm2d, BatchNorm3d, Conv1d, Conv2d, Conv3d = map(
    _layer, ("BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d")
)
