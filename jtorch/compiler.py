"""torch.compiler: what code asks of the compiler, and tells it."""

from .compile import reset
from .core.record import tls

__all__ = [
    "allow_in_graph", "assume_constant_result", "cudagraph_mark_step_begin", "disable", "is_compiling", "is_dynamo_compiling",
    "is_exporting", "list_backends", "reset", "set_stance",
]  # fmt: skip


def is_compiling() -> bool:
    """Whether this call is being recorded for torch.compile."""
    return tls.me.scope is not None


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Whether this call is being recorded for torch.export."""
    return False


def _unchanged(fn=None):
    return fn if fn is not None else lambda made: made


def disable(fn=None, recursive=True, *, reason=None):
    """Accepted: a compiled region runs Python as it is, whatever it calls."""
    return _unchanged(fn)


def allow_in_graph(fn):
    """Accepted: every op is in the graph."""
    return fn


assume_constant_result = allow_in_graph


def cudagraph_mark_step_begin() -> None:
    """Accepted: programs own their buffers."""


def list_backends(exclude_tags=("debug", "experimental")) -> list[str]:
    """The names that torch.compile takes as `backend`."""
    return ["inductor", "xla"]


class set_stance:
    """Accepted: "default" is the only stance; also a context manager and a decorator."""

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        self.stance = stance

    def __call__(self, fn):
        return fn

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass
