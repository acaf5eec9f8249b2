"""The public names of `jtorch`: submodules, functions, classes, settings."""

import importlib
import importlib.util

import numpy as np

from . import aten as aten  # what torch.ops.aten and dispatch modes call operators
from . import creation, dlpack, functions, legacy, printing, settings
from . import errors as _errors
from .convert import typename
from .core import device as devices
from .core import dtype as dtypes
from .core import record
from .core.record import tls
from .core.spec import Size
from .dispatch import forget_plans, result_dtype
from .dispatch.statics import numpy_number
from .handles import mutations
from .streams import wait
from .tensor import Tensor

SUBMODULES = (
    "_C", "__future__", "accelerator", "amp", "autograd", "backends", "compile", "compiler", "config", "core", "cpu", "cuda", "data",
    "distributed", "distributions", "errors", "export", "fft", "files", "func", "functional", "futures", "fx", "hub", "jit", "library",
    "linalg", "masked", "mps", "mtia", "multiprocessing", "nested", "nn", "onnx", "ops", "optim", "overrides", "profiler", "quasirandom", "random",
    "return_types", "serialization", "signal", "sparse", "special", "storage", "swap", "testing", "torch_version", "types", "typing",
    "utils", "version", "xpu",
)  # fmt: skip


class execution_mode:
    """How ops run in this thread: "auto" (recorded and fused) or "eager" (one by one). Also a context manager."""

    def __init__(self, mode):
        self._before = tls.me.mode
        tls.me.set_mode(mode)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        tls.me.set_mode(self._before)


def get_execution_mode() -> str:
    """The mode of this thread."""
    return tls.me.mode


def synchronize() -> None:
    """Run everything that this thread has recorded and wait until it is done."""
    wait()


def set_default_dtype(d) -> None:
    """The dtype of tensors made from Python floats: float32, or another float type."""
    if not isinstance(d, dtypes.dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if d is not dtypes.default.dtype:
        dtypes.default.dtype = d
        dtypes.default.complex = d.to_complex()
        mutations[0] += 1  # compiled regions make tensors of it
        forget_plans()


def set_default_tensor_type(t) -> None:
    """Deprecated by PyTorch: set the default dtype and device by a class such as torch.cuda.FloatTensor, or its name."""
    legacy.set_default_tensor_type(t, set_default_dtype, set_default_device)


def set_default_device(device) -> None:
    """The device of tensors made without saying where."""
    devices.set_default(device)
    mutations[0] += 1


def get_default_device():
    """The device of tensors made without saying where."""
    return devices.get_default()


def result_type(tensor1, tensor2=None, *, other=None):
    """The dtype of a binary op on these tensors or numbers."""
    tensor2 = other if tensor2 is None else tensor2
    if tensor2 is None:
        raise _errors.combination("result_type", [tensor1], "(two tensors or numbers)")
    both = (tensor1, tensor2)
    kinds = [_number_kind(t) for t in both if not isinstance(t, Tensor)]
    if None in kinds:
        raise _errors.combination("result_type", both, "(two tensors or numbers)")
    return result_dtype([t._spec for t in both if isinstance(t, Tensor)], kinds)


def _number_kind(x) -> type | None:
    """The kind of number that something is: a member of an enum and one of numpy's too."""
    x = numpy_number(x) if isinstance(x, (np.number, np.bool_)) else x
    return next((kind for kind in (bool, int, float, complex) if isinstance(x, kind)), None)


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """`jtorch.func.vmap`: `func` for every slice along `in_dims` at once, its results stacked along `out_dims`."""
    return importlib.import_module("jtorch.func").vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)


_NAMES = {
    "Tensor": Tensor, "Size": Size, "device": devices.Device, "dtype": dtypes.dtype, "execution_mode": execution_mode,
    "get_execution_mode": get_execution_mode, "synchronize": synchronize, "set_default_dtype": set_default_dtype,
    "set_default_device": set_default_device, "get_default_device": get_default_device, "result_type": result_type,
    "set_printoptions": printing.set_printoptions, "typename": typename, "inf": float("inf"), "nan": float("nan"),
    "pi": 3.141592653589793, "e": 2.718281828459045, "newaxis": None, "flush": record.flush, "vmap": vmap,
    "memory_format": creation.MemoryFormat, "layout": creation.Layout_, "from_dlpack": dlpack.from_dlpack,
    "set_default_tensor_type": set_default_tensor_type, **legacy.CLASSES,
}  # fmt: skip
_SETTINGS = (
    "are_deterministic_algorithms_enabled", "get_deterministic_debug_mode", "get_float32_matmul_precision",
    "get_num_interop_threads", "get_num_threads", "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled",
    "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal", "set_num_interop_threads",
    "set_num_threads", "set_warn_always", "use_deterministic_algorithms",
)  # fmt: skip
_NAMES |= {name: getattr(settings, name) for name in _SETTINGS}
_AUTOCAST = (
    "autocast", "clear_autocast_cache", "get_autocast_dtype", "is_autocast_available", "is_autocast_cache_enabled",
    "is_autocast_enabled", "set_autocast_cache_enabled", "set_autocast_dtype", "set_autocast_enabled",
)  # fmt: skip

# Of modules that take time to import: name -> module.
_LATE = {
    "_assert": "sundries", "set_vital": "sundries", "CompilationUnit": "jit", "Event": "streams", "ScriptFunction": "jit", "ScriptModule": "jit", "Stream": "streams",
    "as_torch": "swap", "from_jax": "files.interchange", "install_as_torch": "swap", "load": "serialization",
    "save": "serialization", "to_jax": "files.interchange",
    "FileCheck": "testing.file_check", "PyTorchFileReader": "files.records", "PyTorchFileWriter": "files.records",
    "Argument": "schema", "FunctionSchema": "schema", "parse_schema": "schema",
    **dict.fromkeys((
        "sparse_coo_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor", "sparse_compressed_tensor",
    ), "sparse.constructors"),
    **dict.fromkeys(("hspmm", "hsmm", "smm", "saddmm", "sspaddmm", "resize_as_sparse_"), "sparse.named"),
    **dict.fromkeys(("BenchmarkConfig", "BenchmarkExecutionStats", "ThroughputBenchmark"), "utils.throughput_benchmark"),
}  # fmt: skip

# Modules of PyTorch that programs reach as attributes of `torch` without importing them.
_INTERNAL = {"_dynamo": "dynamo", "_higher_order_ops": "higher_order_package"}

# Modules with more public names of torch, looked into when a name is nowhere else.
_MORE = (
    "sundries",
    "symbolic",
    "control",
    "batch_stats",
    "script_types",
    "script_containers",
    "vendor",
    "lowbit",
    "jit",
    "unavailable",
)


def _more():
    for each in _MORE:
        module = importlib.import_module(f"jtorch.{each}")
        if each == "unavailable":
            yield module.names()
        else:
            yield module.NAMES if each == "jit" else {n: getattr(module, n) for n in module.__all__}


def find(name):
    """The public object of this name; AttributeError when there is none."""
    if name in _NAMES:
        return _NAMES[name]
    if name in _LATE:
        return getattr(importlib.import_module(f"jtorch.{_LATE[name]}"), name)
    if name in _AUTOCAST:
        return getattr(importlib.import_module("jtorch.amp.autocast"), name)
    if name in _INTERNAL:
        return importlib.import_module(f"jtorch.swap.internal.{_INTERNAL[name]}")
    if name in SUBMODULES:
        try:
            return importlib.import_module(f"jtorch.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"jtorch.{name}":
                raise
            raise AttributeError(f"module 'jtorch' has no attribute {name!r}") from None
    if name.startswith("_foreach_"):
        made = importlib.import_module("jtorch.foreach").function(name.removeprefix("_foreach_"))
        if made is not None:
            return made
    try:
        return getattr(functions, name)
    except AttributeError:
        for found in _more():
            if name in found:
                return found[name]
        raise AttributeError(f"module 'jtorch' has no attribute {name!r}") from None


def names():
    return sorted(
        {
            *_NAMES,
            *_AUTOCAST,
            *_LATE,
            *(n for n in SUBMODULES if _exists(n) and not n.startswith("_")),
            *dir(functions),
            *(name for found in _more() for name in found),
        }
    )


def _exists(name):
    return bool(functions.names(name)) or importlib.util.find_spec(f"jtorch.{name}") is not None
