"""torch._dynamo: the switches that packages set. A compiled region runs Python as it is, so none of them changes a result."""

import contextlib
import functools
import warnings
from collections import Counter, defaultdict

from ...compile import reset
from ...compile.breaks import ExplainOutput, explain
from ...compile.failures import (
    BackendCompilerFailed,
    FailOnRecompileLimitHit,
    InternalTorchDynamoError,
    InvalidBackend,
    RecompileLimitExceeded,
    TorchDynamoException,
    Unsupported,
    UserError,
)
from ...compile.region import optimized_class
from ...compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends
from .settings import Settings

__all__ = [
    "BackendCompilerFailed", "ExplainOutput", "FailOnRecompileLimitHit", "InternalTorchDynamoError", "InvalidBackend", "OptimizedModule",
    "RecompileLimitExceeded", "TorchDynamoException", "TransformGetItemToIndex", "Unsupported", "UserError",
    "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph", "explain", "forbid_in_graph",
    "graph_break", "is_compiling", "is_dynamo_supported", "list_backends", "mark_dynamic", "mark_static", "mark_static_address",
    "maybe_mark_dynamic", "reset",
]  # fmt: skip

config = Settings(
    "torch._dynamo.config",
    accumulated_cache_size_limit=256, allow_unspec_int_on_nn_module=False, assume_static_by_default=True,
    automatic_dynamic_shapes=True, cache_size_limit=8, capture_dynamic_output_shape_ops=False, capture_scalar_outputs=False,
    compiled_autograd=False, disable=False, dynamic_shapes=True, force_parameter_static_shapes=True,
    inline_inbuilt_nn_modules=True, optimize_ddp=True, recompile_limit=8, suppress_errors=False, verbose=False,
)  # fmt: skip


OptimizedModule = optimized_class()


def graph_break(msg="") -> None:
    """Accepted: a region breaks where Python needs a value, and nowhere else."""


def is_dynamo_supported() -> bool:
    """True: torch.compile works."""
    return True


def disallow_in_graph(fn):
    """Accepted: the function itself."""
    return fn


forbid_in_graph = disallow_in_graph


def mark_dynamic(t, index, **bounds) -> None:
    """Accepted: programs are made per shape."""


def mark_static(t, index=None) -> None:
    """Accepted: programs are made per shape."""


maybe_mark_dynamic = decorate_dynamic = mark_dynamic
mark_static_address = mark_static


class TransformGetItemToIndex:
    """Context: accepted, indexing by a tensor inside vmap works as it is."""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None


def is_compile_supported(device_type) -> bool:
    """True: every device has XLA."""
    return True


# --- torch._dynamo.utils -------------------------------------------------------------------------------------------

counters: defaultdict = defaultdict(Counter)


@functools.cache
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """A UserWarning, the first time that this message is given."""
    warnings.warn(msg, stacklevel=stacklevel + 1)


@contextlib.contextmanager
def disable_cache_limit():
    """Context: accepted, there is no limit."""
    yield
