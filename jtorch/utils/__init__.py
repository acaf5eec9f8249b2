"""torch.utils."""

import importlib

from . import data

_MODULES = (
    "_python_dispatch", "_pytree", "benchmark", "checkpoint", "collect_env", "cpp_extension", "deterministic", "dlpack", "flop_counter", "hooks", "mobile_optimizer", "module_tracker",
    "serialization", "tensorboard", "throughput_benchmark", "viz", "weak",
)  # fmt: skip


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f".{name}", __package__)
    if name == "ThroughputBenchmark":
        return importlib.import_module(".throughput_benchmark", __package__).ThroughputBenchmark
    if name == "cmake_prefix_path":
        return ""  # there is nothing to build against
    if name in ("generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"):
        return getattr(importlib.import_module(".backend_registration", __package__), name)
    if name in ("set_module", "swap_tensors"):
        return getattr(importlib.import_module(".identity", __package__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["data"]
