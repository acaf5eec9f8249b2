"""torch.compiler: what code asks of the compiler, and tells it."""

import functools
import types

import numpy as np

from . import compile as _compile
from .compile import region, reset
from .core.record import tls
from .creation import from_numpy
from .tensor import Tensor
from .utils import _pytree

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "get_default_backend", "is_compiling", "is_dynamo_compiling",
    "is_exporting", "keep_portable_guards_unsafe", "keep_tensor_guards_unsafe", "list_backends", "load_cache_artifacts", "nested_compile_region", "reset",
    "save_cache_artifacts", "set_default_backend", "set_enable_guard_collectives", "set_stance", "skip_all_guards_unsafe",
    "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe", "skip_guard_on_inbuilt_nn_modules_unsafe",
    "substitute_in_graph", "wrap_numpy",
]  # fmt: skip


def compile(*args, **kwargs):
    """torch.compile."""
    return _compile(*args, **kwargs)


def is_compiling() -> bool:
    """Whether this call is being recorded for torch.compile."""
    me = tls.me
    if region.told.value is not None:
        return region.told.value
    return me.scope is not None or any(getattr(mode, "captures", None) for mode in me.function_modes)


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Whether this call is being recorded for torch.export."""
    return any(getattr(mode, "captures", None) == "export" for mode in tls.me.function_modes)


def _unchanged(fn=None):
    return fn if fn is not None else lambda made: made


def disable(fn=None, recursive=True, *, reason=None):
    """The same function, in which `is_compiling()` is False; a compiled region runs Python as it is, whatever it calls."""
    if fn is None:
        return lambda made: disable(made, recursive, reason=reason)
    if not isinstance(fn, (types.FunctionType, types.MethodType)):
        return fn

    @functools.wraps(fn)
    def call(*args, **kwargs):
        with region.compiling(False):
            return fn(*args, **kwargs)

    return call


def allow_in_graph(fn):
    """Accepted: every op is in the graph."""
    return fn


assume_constant_result = allow_in_graph


def cudagraph_mark_step_begin() -> None:
    """Accepted: programs own their buffers."""


def list_backends(exclude_tags=("debug", "experimental")) -> list[str]:
    """The names that torch.compile takes as `backend`."""
    return ["inductor", "xla"]


def get_default_backend() -> str:
    """The name of the backend that torch.compile takes where none is given."""
    return "inductor"


def set_default_backend(backend) -> None:
    """Accepted: XLA compiles under all of PyTorch's names."""
    if backend is not None and not isinstance(backend, str) and not callable(backend):
        raise TypeError("backend must be a name or a callable")


def substitute_in_graph(
    original_fn, *, can_constant_fold_through=False, skip_signature_check=False, is_embedded_type=False
):
    """Accepted: a decorator that gives back what it decorates; Python calls the original as always."""
    return _unchanged()


def save_cache_artifacts():
    """None: programs are kept on disk by themselves (JTORCH_CACHE_DIR)."""


def load_cache_artifacts(serialized_artifacts):
    """None, as PyTorch says where there are none."""


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Accepted; what was set before."""
    before, _collectives[0] = _collectives[0], enabled
    return before


_collectives = [False]


def keep_portable_guards_unsafe(guard_entries) -> list:
    """Which guards to keep: all that it is given, since regions have none of PyTorch's."""
    return [False for _ in guard_entries]


def keep_tensor_guards_unsafe(guard_entries, keep_parameters=False) -> list:
    """As `keep_portable_guards_unsafe`."""
    return [False for _ in guard_entries]


def skip_all_guards_unsafe(guard_entries) -> list:
    """As `keep_portable_guards_unsafe`."""
    return [False for _ in guard_entries]


def skip_guard_on_globals_unsafe(guard_entries) -> list:
    """Which guards to keep: those on no global. Regions have none of PyTorch's."""
    return [not entry.is_global for entry in guard_entries]


def skip_guard_on_all_nn_modules_unsafe(guard_entries) -> list:
    """Which guards to keep: all that it is given, since regions have none of PyTorch's."""
    return [True for _ in guard_entries]


skip_guard_on_inbuilt_nn_modules_unsafe = skip_guard_on_all_nn_modules_unsafe


def nested_compile_region(fn=None, *, options=None, max_reuse_entries=8, reuse_hash_fn=None):
    """Accepted: the function itself; also a decorator."""
    return _unchanged(fn)


def wrap_numpy(fn):
    """A function of tensors from one of numpy arrays: tensors become arrays for it, and its arrays tensors."""

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        args, kwargs = _pytree.tree_map(lambda x: x.numpy() if isinstance(x, Tensor) else x, (args, kwargs))
        return _pytree.tree_map(lambda x: from_numpy(x) if isinstance(x, np.ndarray) else x, fn(*args, **kwargs))

    return wrapped


class set_stance:
    """What compiled functions do from now on; also a context manager, and a decorator.

    Args:
        stance: "default"; "force_eager": run the function itself; "eager_on_recompile", "fail_on_recompile": do that, or raise,
            where the shapes or dtypes are ones that it was not compiled for; "eager_then_compile": compile at the second call

    RuntimeError: no such stance, or inside a compiled function.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.compiler.set_stance.html
    """

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        self.stance = stance
        self.before = self._set(stance)

    @staticmethod
    def _set(stance):
        if stance not in region.STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")
        if tls.me.scope is not None:
            raise RuntimeError("torch.compiler.set_stance cannot be called in a function that torch.compile compiles")
        before, region.stance[0] = region.stance[0], stance
        return before

    def __call__(self, fn):
        region.stance[0] = self.before  # of a decorator: not before a call

        @functools.wraps(fn)
        def within(*args, **kwargs):
            with set_stance(self.stance):
                return fn(*args, **kwargs)

        return within

    def __enter__(self):
        self._set(self.stance)
        return self

    def __exit__(self, *exc):
        self._set(self.before)
