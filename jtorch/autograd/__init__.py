"""torch.autograd. The tape itself is below Tensor; what needs Tensor is imported when it is asked for."""

import importlib
import sys

from ..namespaces import Package
from .mode import enable_grad, inference_mode, no_grad, set_grad_enabled

_HOMES = {
    "enforce_grad_layout_policy": "grad_mode", "is_multithreading_enabled": "grad_mode", "set_multithreading_enabled": "grad_mode",
    "variable": "variable", "Function": "function", "NestedIOFunction": "function", "Variable": "function", "detect_anomaly": "anomaly_mode", "set_detect_anomaly": "anomaly_mode",
    "gradcheck": "gradcheck", "gradgradcheck": "gradcheck", "backward": "entry", "grad": "entry",
}  # fmt: skip


def __getattr__(name):
    if name in ("functional", "graph", "forward_ad", "function", "grad_mode", "anomaly_mode"):
        return importlib.import_module(f".{name}", __package__)
    if name in ("profiler", "profiler_util"):
        return importlib.import_module(
            {"profiler": "..profiler.autograd", "profiler_util": "..profiler.events"}[name], __package__
        )
    if name in _HOMES:
        return getattr(importlib.import_module(f".{_HOMES[name]}", __package__), name)
    if name == "_is_checkpoint_valid":  # a function of PyTorch's by this private name, which fairscale calls
        return importlib.import_module(".function", __package__).Variable._execution_engine.is_checkpoint_valid
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Function", "NestedIOFunction", "Variable", "backward", "detect_anomaly", "enable_grad", "enforce_grad_layout_policy", "grad",
    "gradcheck", "gradgradcheck", "inference_mode", "no_grad", "set_detect_anomaly", "set_grad_enabled",
    "set_multithreading_enabled",
]  # fmt: skip

sys.modules[__name__].__class__ = Package
