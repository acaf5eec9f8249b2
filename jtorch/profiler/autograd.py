"""torch.autograd.profiler: the profiler under its old name."""

import contextlib

from . import session
from .events import EventList, FunctionEvent, FunctionEventAvg
from .session import record_function

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "emit_itt", "emit_nvtx", "profile", "record_function"]


class profile(session.profile):
    """Context that records what runs, with the arguments of torch.autograd.profiler."""

    def __init__(
        self, enabled=True, *, use_cuda=False, use_device=None, record_shapes=False, with_flops=False, profile_memory=False,
        with_stack=False, with_modules=False, **options,
    ):  # fmt: skip
        super().__init__(record_shapes=record_shapes, with_stack=with_stack)
        self.enabled = enabled

    def __enter__(self):
        return super().__enter__() if self.enabled else self

    def __exit__(self, *exc):
        if self.enabled:
            super().__exit__(*exc)

    @property
    def function_events(self):
        """Everything that ran."""
        return self.events()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of everything that ran on the CPU."""
        return self.events().self_cpu_time_total

    def table(self, *args, **kwargs) -> str:
        """The table of the sums by name."""
        return self.key_averages().table(*args, **kwargs)


def emit_nvtx(enabled=True, record_shapes=False):
    """Context: accepted."""
    return contextlib.nullcontext()


emit_itt = emit_nvtx
