"""torch._C._profiler: what programs hand to `torch.profiler.profile` from there."""

__all__ = []


class _ExperimentalConfig:
    """Settings of PyTorch's tracer: accepted, there is none here."""

    def __init__(
        self, profiler_metrics=(), profiler_measure_per_kernel=False, verbose=False, performance_events=(), **settings
    ):
        self.verbose = verbose
