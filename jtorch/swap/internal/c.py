"""torch._C: the names of PyTorch's C++ module that packages use."""

import contextlib
import types

from ... import accelerator, functions, lowbit, schema, script_containers, script_types
from ..._C import _get_tracing_state
from ...autograd import forward_ad
from ...autograd.mode import is_grad_enabled, is_inference_mode_enabled, set_grad_enabled
from ...core.device import Device as device
from ...core.dtype import dtype
from ...core.spec import Size
from ...files import records
from ...jit import NAMES, ScriptFunction, ScriptModule, _create_function_from_graph
from ...overrides import _is_torch_function_mode_enabled, _len_torch_function_stack
from ...random_tensors import Generator, default_generator
from ...sundries import DispatchKey, DispatchKeySet, Tag  # noqa: F401
from ...tensor import Tensor, TensorMeta
from ...testing import file_check
from ...utils import throughput_benchmark
from ...utils._python_dispatch import _DisableTorchDispatch
from . import c_autograd as _autograd
from . import c_functions as _functions
from . import nn as _nn
from .c_autograd import current_graph_task_id as _current_graph_task_id
from .c_autograd import set_fwd_grad_enabled as _set_fwd_grad_enabled
from .c_autograd import will_engine_execute_node as _will_engine_execute_node

TensorBase = _TensorBase = Tensor
_TensorMeta = TensorMeta
_VariableFunctions = functions
get_default_dtype = functions.get_default_dtype

# What the build has: none of these, beside which packages choose their own kernels.
_has_cuda = _has_cudnn = _has_cusparselt = _has_eigen_sparse = _has_kleidiai = _has_magma = _has_mkldnn = (
    _has_mkldnn_acl
) = False
_has_mps = _has_xpu = has_mkl = has_openmp = False
has_lapack = has_spectral = True
_cpu = types.SimpleNamespace(_get_cpu_capability=dict, _init_amx=bool)


class _ExcludeDispatchKeyGuard(contextlib.nullcontext):
    """Context: accepted, there is no dispatcher below the op table."""


def _jit_pass_inline(graph) -> None:
    """Nothing: the graphs of traces are inlined."""


def _log_api_usage_once(name) -> None:
    """Nothing is logged."""


def _is_tracing() -> bool:
    return _get_tracing_state() is not None


def _get_deterministic_algorithms() -> bool:
    """Whether use_deterministic_algorithms was set."""
    return functions.are_deterministic_algorithms_enabled()


def _cuda_isInBadFork() -> bool:
    """False: see torch.multiprocessing."""
    return False


_mps_is_available = _mps_is_in_bad_fork = _mps_is_on_macos_or_newer = _cuda_isInBadFork


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
    "DispatchKey", "DispatchKeySet", "Generator", "ScriptFunction", "ScriptModule", "Size", "TensorBase",
    "default_generator", "device", "dtype", "is_grad_enabled", "is_inference_mode_enabled", "set_grad_enabled",
]  # fmt: skip
_is_fwd_grad_enabled = forward_ad._is_fwd_grad_enabled
_ = (
    _nn,
    _autograd,
    _functions,
    _current_graph_task_id,
    _set_fwd_grad_enabled,
    _will_engine_execute_node,
    _is_torch_function_mode_enabled,
    _len_torch_function_stack,
    _create_function_from_graph,
    _get_tracing_state,
    _DisableTorchDispatch,
)


# What PyTorch defines in C++ and torch has from there: name -> its module.
_MORE = {n: m for m in (lowbit, records, script_containers, script_types, throughput_benchmark) for n in m.__all__} | {
    "Argument": schema, "FileCheck": file_check, "FunctionSchema": schema, "parse_schema": schema,
}  # fmt: skip


def __getattr__(name):
    if name in NAMES:
        return NAMES[name]
    if name in _MORE:
        return getattr(_MORE[name], name)
    raise AttributeError(f"module 'torch._C' has no attribute {name!r}")
