"""torch._C: the names of PyTorch's C++ module that packages use."""

from ... import functions
from ...autograd.mode import is_grad_enabled, is_inference_mode_enabled, set_grad_enabled
from ...core.device import Device as device
from ...core.dtype import dtype
from ...core.spec import Size
from ...creation import Generator, default_generator
from ...jit import ScriptFunction, ScriptModule
from ...tensor import Tensor
from . import nn as _nn

TensorBase = _TensorBase = Tensor
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


def _get_privateuse1_backend_name() -> str:
    return "privateuseone"


__all__ = [
    "Generator", "Graph", "Node", "ScriptFunction", "ScriptModule", "ScriptObject", "Size", "TensorBase", "Value", "default_generator",
    "device", "dtype", "is_grad_enabled", "is_inference_mode_enabled", "set_grad_enabled",
]  # fmt: skip
_ = _nn
