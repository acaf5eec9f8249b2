"""Small public names of `torch` that belong to no other subject: constants, enumerations, questions about the build."""

import enum
import importlib
import importlib.util
import os
import typing

import numpy as np

from . import errors, errors_extend, functions, overrides
from ._C import DisableTorchFunction, DisableTorchFunctionSubclass
from .amp.autocast import (
    _state,
    get_autocast_dtype,
    is_autocast_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from .amp.grad_scaler import GradScaler
from .autograd import anomaly_mode
from .core import device as devices
from .core import dtype as dtypes
from .core.tags import Tag  # noqa: F401  a public name
from .creation import contiguous_format, from_numpy, layout_of
from .errors_storage import OutOfMemoryError  # noqa: F401  a public name
from .futures import Future, fork, wait
from .streams import Event, Stream

TYPE_CHECKING = typing.TYPE_CHECKING
PRIVATE_OPS = ("unique_dim",)
USE_GLOBAL_DEPS, USE_RTLD_GLOBAL_WITH_LIBTORCH = True, False
has_lapack = has_spectral = True
has_mkl = has_openmp = has_cuda = has_cudnn = has_mps = has_mkldnn = False
legacy_contiguous_format = contiguous_format
jagged = layout_of("jagged")


class AggregationType(enum.Enum):
    """How values of several runs become one."""

    SUM = 0
    AVG = 1


SUM, AVG = AggregationType.SUM, AggregationType.AVG


_BACKENDS = ("CPU", "CUDA", "HIP", "XLA", "MPS", "IPU", "XPU", "HPU", "Meta", "PrivateUse1")
DispatchKey = enum.Enum("DispatchKey", [
    "Undefined", "Python", "PythonTLSSnapshot", "Functionalize", "BackendSelect", "ADInplaceOrView", "CompositeImplicitAutograd",
    "CompositeExplicitAutograd", "FuncTorchBatched", "Tracer", "Autograd", "AutogradOther", "Autocast", *_BACKENDS,
    *(f"Autograd{b}" for b in _BACKENDS), *(f"Autocast{b}" for b in _BACKENDS),
])  # fmt: skip
DispatchKey.__doc__ = "The keys under which torch.library takes implementations."


class DispatchKeySet:
    """A set of dispatch keys."""

    def __init__(self, *keys):
        self._keys = frozenset(k for key in keys for k in (key._keys if isinstance(key, DispatchKeySet) else (key,)))

    def __or__(self, other):
        return DispatchKeySet(self, other)

    add = __or__

    def __and__(self, other):
        return DispatchKeySet(*(self._keys & other._keys))

    def __sub__(self, other):
        return DispatchKeySet(*(self._keys - other._keys))

    def __eq__(self, other):
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self):
        return hash(self._keys)

    def remove(self, key):
        """The set without a key."""
        return DispatchKeySet(*(self._keys - {key}))

    def has(self, key) -> bool:
        """Whether a key is in it."""
        return key in self._keys

    def __repr__(self):
        return f"DispatchKeySet({', '.join(k.name for k in sorted(self._keys, key=lambda k: k.value))})"


class qscheme:
    """How the numbers of a quantized tensor are scaled; for comparisons alone, since there are none of these tensors."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"


per_tensor_affine, per_channel_affine = qscheme("per_tensor_affine"), qscheme("per_channel_affine")
per_tensor_symmetric, per_channel_symmetric = qscheme("per_tensor_symmetric"), qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")


class AcceleratorError(RuntimeError):
    """An error of the accelerator."""


class FatalError(RuntimeError):
    """An error after which nothing can go on."""


class JITException(RuntimeError):
    """An error of scripted code."""


class _ClassProperty:
    def __init__(self, fget):
        self.fget = fget

    def __get__(self, instance, owner=None):
        return self.fget.__get__(None, type(instance) if owner is None else owner)()


def classproperty(func):
    """Decorator: a property of the class."""
    return _ClassProperty(func if isinstance(func, (classmethod, staticmethod)) else classmethod(func))


def compiled_with_cxx11_abi() -> bool:
    """True, as PyTorch's binaries have it."""
    return True


def is_vulkan_available() -> bool:
    """Whether there is a Vulkan device: never."""
    return False


def init_num_threads() -> None:
    """Accepted: XLA has its own threads."""


def get_file_path(*path_components) -> str:
    """A path inside this package."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), *path_components)


def prepare_multiprocessing_environment(path) -> None:
    """Accepted: there are no libraries to find."""


def get_device_module(device=None):
    """The module of a kind of device (None: the accelerator that is there, or the CPU): torch.cuda, torch.accelerator."""
    kind = devices.accelerator() or "cpu" if device is None else devices.resolve(device).type
    there = importlib.util.find_spec(f"jtorch.{kind}") is not None
    return importlib.import_module(f"jtorch.{kind}" if there else "jtorch.accelerator")


def set_anomaly_enabled(mode, check_nan=True) -> None:
    """Turn anomaly detection on or off."""
    anomaly_mode.set_detect_anomaly(mode, check_nan)


def thread_safe_generator():
    """The generator of a data-loading thread; None outside one."""
    return


def to_dlpack(tensor):
    """A DLPack capsule of a tensor."""
    return tensor.__dlpack__()


def get_device(input) -> int:
    """The index of a tensor's device; -1 for the CPU."""
    return input.get_device()


def is_distributed(input) -> bool:
    """Whether a tensor is spread over processes: never."""
    return False


def dequantize(input):
    """The tensor (or tensors) as float32: none is quantized."""
    if isinstance(input, (tuple, list)):
        return type(input)(dequantize(t) for t in input)
    return input.to(dtypes.float32)


def slice_inverse(input, src, dim=0, start=None, end=None, step=1):
    """The storage of `input`, read in the layout of `src`, of which `input` was a slice."""
    return input.as_strided(tuple(src.shape), src.stride(), src.storage_offset())


def native_norm(input, p=2, dim=None, keepdim=False, dtype=None):
    """NotImplementedError, as for every dense tensor: use torch.norm."""
    raise errors_extend.no_kernel("native_norm")


_BAG_MODES = ("sum", "mean", "max")


def embedding_bag(
    weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None, include_last_offset=False,
    padding_idx=None,
):  # fmt: skip
    """nn.functional.embedding_bag with its by-products: (result, bag of each index, size of each bag, indices of the maxima).

    mode: 0 sum, 1 mean, 2 max. The indices of the maxima are empty unless that is the mode.
    """
    result = functions.lookup("nn.functional", "embedding_bag")(
        indices, weight, offsets, scale_grad_by_freq=scale_grad_by_freq, mode=_BAG_MODES[mode], sparse=sparse,
        per_sample_weights=per_sample_weights, include_last_offset=include_last_offset, padding_idx=padding_idx,
    )  # fmt: skip
    starts = offsets[: result.shape[0]]
    at = functions.arange(indices.shape[0], dtype=offsets.dtype)
    bag = functions.searchsorted(starts, at, right=True).to(offsets.dtype) - 1
    counted = functions.ones_like(bag) if padding_idx is None else (indices != padding_idx).to(bag.dtype)
    size = functions.zeros(result.shape[0], dtype=offsets.dtype).index_add(0, bag, counted)
    maxima = functions.zeros(0, dtype=offsets.dtype)
    if mode == 2:
        rows, outside = weight.detach()[indices], functions.full((), -float("inf"), dtype=weight.dtype)
        picks = []
        for b in range(result.shape[0]):
            mask = ((bag == b) & counted.bool()).unsqueeze(1)
            best = functions.where(mask, rows, outside).argmax(0)
            picks.append(functions.where(size[b] > 0, indices[best], -1).to(offsets.dtype))
        maxima = functions.stack(picks) if picks else maxima.reshape(0, weight.shape[1])
    return result, bag, size, maxima


def spmm(input, mat2):
    """The matrix product; for dense tensors torch.mm."""
    return functions.mm(input, mat2)


dsmm = spmm


def from_file(
    filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """A tensor of the first `size` numbers in a file.

    NotImplementedError: `shared=True`; what is written to a tensor does not reach the file.
    """
    if shared:
        raise errors.unsupported("tensors that write to a file", "torch.from_file without shared=True, and torch.save")
    dtype = dtypes.default.dtype if dtype is None else dtype
    made = from_numpy(np.fromfile(filename, dtype.np, size))
    if made.numel() < size:
        raise errors_extend.short_file(filename, size * dtype.itemsize)
    return (made if device is None else made.to(device)).requires_grad_(requires_grad)


def _old_autocast():
    """The names of autocast's switches before they took a device type."""
    new = (is_autocast_enabled, get_autocast_dtype, set_autocast_enabled, set_autocast_dtype)
    kinds = (("cpu", "cpu"), ("gpu", "cuda"), ("xla", "xla"), ("ipu", "ipu"))
    made = [_with_type(fn, kind, of) for kind, of in kinds for fn in new]
    return {fn.__name__: fn for fn in made}


def _with_type(fn, kind, of):
    """A switch of autocast for one device type, by its old name."""
    verb, what = fn.__name__.split("autocast_")
    name, value = f"{verb}autocast_{kind}_{what}", what if verb == "set_" else ""
    instead = f"torch.{fn.__name__}('{of}'{value and ', ' + value})"

    def old(*args):
        errors.warn(f"torch.{name}({value}) is deprecated. Please use {instead} instead.", DeprecationWarning)
        return fn(of, *args)

    old.__name__ = old.__qualname__ = name
    old.__doc__ = f"Deprecated by PyTorch: {fn.__name__} with a device type."
    return old


globals().update(_old_autocast())


def autocast_increment_nesting() -> int:
    """One more autocast context around this code; how many there are."""
    _state.depth += 1
    return _state.depth


def autocast_decrement_nesting() -> int:
    """One autocast context less; how many there are."""
    _state.depth -= 1
    return _state.depth


__all__ = sorted(
    n for n in globals() if not n.startswith("_") and n not in
    {"enum", "importlib", "os", "typing", "errors", "errors_extend", "functions", "overrides", "autocast", "anomaly_mode", "devices", "dtypes",
     "layout_of", "contiguous_format", "from_numpy", "np"}
)  # fmt: skip
_ = DisableTorchFunction, DisableTorchFunctionSubclass, GradScaler, Future, fork, wait, Event, Stream


def _assert(condition, message) -> None:
    """AssertionError(message) unless `condition`; of one that has a `__torch_function__`, that is asked."""
    if type(condition) is not bool and overrides.has_torch_function_unary(condition):
        return overrides.handle_torch_function(_assert, (condition,), condition, message)
    assert condition, message


def set_vital(*args) -> None:
    """Nothing: PyTorch has let its counters go and kept the name, which loaders call."""
    errors.warn("'set_vital' is deprecated, please do not call")
