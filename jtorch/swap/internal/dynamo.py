"""torch._dynamo: the switches that packages set. A compiled region runs Python as it is, so none of them changes a result."""

import contextlib
import functools
import warnings
from collections import Counter, defaultdict

from ...compile import compile, named, reset
from ...compile import failures as exc
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
from ...compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    set_stance,
    substitute_in_graph,
)
from .settings import Settings

__all__ = [
    "BackendCompilerFailed", "ExplainOutput", "FailOnRecompileLimitHit", "InternalTorchDynamoError", "InvalidBackend", "OptimizedModule",
    "RecompileLimitExceeded", "TorchDynamoException", "TransformGetItemToIndex", "Unsupported", "UserError",
    "allow_in_graph", "assume_constant_result", "config", "disable", "disable_nested_graph_breaks", "disallow_in_graph", "dont_skip_tracing",
    "error_on_graph_break", "explain", "is_dynamo_disable_recursive", "lookup_backend", "nonstrict_trace", "optimize", "optimize_assert",
    "patch_dynamo_config", "register_backend", "set_recursion_limit", "skip_frame", "forbid_in_graph",
    "graph_break", "is_compiling", "is_dynamo_supported", "list_backends", "mark_dynamic", "mark_static", "mark_static_address",
    "maybe_mark_dynamic", "reset", "reset_code_caches", "set_stance", "substitute_in_graph", "exc",
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


def optimize(backend="inductor", *args, **kwargs):
    """torch.compile as a decorator, as programs wrote it before there was that name."""
    return lambda fn: compile(fn, backend=backend)


def optimize_assert(backend, **kwargs):
    """The same, where a break is an error."""
    return lambda fn: compile(fn, backend=backend, fullgraph=True)


def register_backend(compiler_fn=None, name=None, tags=()):
    """Give a function of a graph and example inputs a name; also a decorator."""
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    named[name or compiler_fn.__name__] = compiler_fn
    return compiler_fn


def lookup_backend(compiler_fn):
    """The backend of a name: a registered function, or what runs a graph as it is."""
    if not isinstance(compiler_fn, str):
        return compiler_fn
    return named.get(compiler_fn, lambda gm, example_inputs, **kwargs: gm)


class error_on_graph_break:
    """Context, and decorator: accepted; torch.compile(fullgraph=True) says whether a break is an error."""

    def __init__(self, error_on_graph_break):
        self.error_on_graph_break = error_on_graph_break

    def __call__(self, fn):
        return fn

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None


def patch_dynamo_config(*args, **kwargs):
    """torch._dynamo.config.patch."""
    return config.patch(*args, **kwargs)


def set_recursion_limit(limit: int) -> None:
    """Accepted."""


def skip_frame(msg="") -> None:
    """Accepted."""


reset_code_caches = reset


def nonstrict_trace(traceable_fn):
    """Accepted: the function itself."""
    return traceable_fn


dont_skip_tracing = disable_nested_graph_breaks = nonstrict_trace


def is_dynamo_disable_recursive(method):
    """None: nothing is marked."""


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


maybe_mark_dynamic = mark_dynamic
mark_static_address = mark_static


class TransformGetItemToIndex(contextlib.nullcontext):
    """Context: accepted, indexing by a tensor inside vmap works as it is."""


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
