"""torch._C: the names of PyTorch's C++ module that packages use."""

import contextlib
import enum

from ... import accelerator, functions
from ...autograd.mode import is_grad_enabled, is_inference_mode_enabled, set_grad_enabled
from ...core.device import Device as device
from ...core.dtype import dtype
from ...core.spec import Size
from ...creation import Generator, default_generator
from ...jit import ScriptFunction, ScriptModule
from ...tensor import Tensor, TensorMeta
from . import nn as _nn

TensorBase = _TensorBase = Tensor
_TensorMeta = TensorMeta
ScriptObject = ScriptModule
_VariableFunctions = functions
get_default_dtype = functions.get_default_dtype


class _Absent:
    """A class of which nothing is."""


class Graph(_Absent):
    """A TorchScript graph: there is none."""


class Value(_Absent):
    """A value of a TorchScript graph: there is none."""


class Node(_Absent):
    """A node of a TorchScript graph: there is none."""


_BACKENDS = ("CPU", "CUDA", "HIP", "XLA", "MPS", "IPU", "XPU", "HPU", "Meta", "PrivateUse1")
DispatchKey = enum.Enum("DispatchKey", [
    "Undefined", "Python", "PythonTLSSnapshot", "Functionalize", "BackendSelect", "ADInplaceOrView", "CompositeImplicitAutograd",
    "CompositeExplicitAutograd", "FuncTorchBatched", "Tracer", "Autograd", "AutogradOther", "Autocast", *_BACKENDS,
    *(f"Autograd{b}" for b in _BACKENDS), *(f"Autocast{b}" for b in _BACKENDS),
])  # fmt: skip


class DispatchKeySet:
    """A set of dispatch keys."""

    def __init__(self, *keys):
        self._keys = frozenset(k for key in keys for k in (key._keys if isinstance(key, DispatchKeySet) else (key,)))

    def __or__(self, other):
        return DispatchKeySet(self, other)

    def has(self, key) -> bool:
        """Whether a key is in it."""
        return key in self._keys


class _ExcludeDispatchKeyGuard(contextlib.nullcontext):
    """Context: accepted, there is no dispatcher below the op table."""


def _get_tracing_state():
    """None: nothing is traced into TorchScript."""
    return None


def _log_api_usage_once(name) -> None:
    """Nothing is logged."""


def _is_tracing() -> bool:
    return False


_functorch_level = 0


def _get_deterministic_algorithms() -> bool:
    """Whether use_deterministic_algorithms was set."""
    return functions.are_deterministic_algorithms_enabled()


def _cuda_isInBadFork() -> bool:
    """False: see torch.multiprocessing."""
    return False


def _is_alias_of(data, other) -> bool:
    """Whether two tensors share storage."""
    return data._storage is other._storage


def _get_accelerator():
    """The kind of accelerator that is there, or the CPU."""
    return accelerator.current_accelerator() or device("cpu")


def _are_functorch_transforms_active() -> bool:
    """False: the transforms of torch.func are those of JAX, below the tensors."""
    return False


def _set_and_get(name):
    """A switch of TorchScript's executor: it is kept, and means nothing."""

    def switch(value=True) -> bool:
        before, _switches[name] = _switches.get(name, True), bool(value)
        return before

    switch.__name__ = name
    return switch


_switches: dict[str, bool] = {}
_jit_set_profiling_mode, _jit_set_profiling_executor, _jit_set_texpr_fuser_enabled = map(
    _set_and_get, ("_jit_set_profiling_mode", "_jit_set_profiling_executor", "_jit_set_texpr_fuser_enabled")
)
_jit_override_can_fuse_on_cpu, _jit_override_can_fuse_on_gpu = map(
    _set_and_get, ("_jit_override_can_fuse_on_cpu", "_jit_override_can_fuse_on_gpu")
)


def _get_privateuse1_backend_name() -> str:
    return "privateuseone"


__all__ = [
    "DispatchKey", "DispatchKeySet", "Generator", "Graph", "Node", "ScriptFunction", "ScriptModule", "ScriptObject", "Size", "TensorBase",
    "Value", "default_generator", "device", "dtype", "is_grad_enabled", "is_inference_mode_enabled", "set_grad_enabled",
]  # fmt: skip
_ = _nn
