"""torch.utils.ThroughputBenchmark: calls of a module from several threads, per second."""

import itertools
import random
import threading
import time

from ..streams import wait

__all__ = ["BenchmarkConfig", "BenchmarkExecutionStats", "ExecutionStats", "ThroughputBenchmark", "format_time"]


class BenchmarkConfig:
    """How a ThroughputBenchmark runs."""

    def __init__(self):
        self.num_calling_threads, self.num_worker_threads = 1, 1
        self.num_warmup_iters, self.num_iters = 1, 100
        self.profiler_output_path = ""


class BenchmarkExecutionStats:
    """What a run measured: the mean time of a call in milliseconds, as a caller sees it, and how many calls there were."""

    def __init__(self, latency_avg_ms, num_iters):
        self.latency_avg_ms, self.num_iters = latency_avg_ms, num_iters


def format_time(time_us=None, time_ms=None, time_s=None) -> str:
    """A time given in one unit, in the one that suits it."""
    given = [(t, f) for t, f in ((time_us, 1e-6), (time_ms, 1e-3), (time_s, 1.0)) if t is not None]
    if len(given) != 1:
        raise AssertionError(f"format_time takes one time, got {len(given)}")
    us = given[0][0] * given[0][1] * 1e6
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


class ExecutionStats:
    """The measurements of a run, and what follows from them."""

    def __init__(self, c_stats, benchmark_config):
        self._c_stats, self.benchmark_config = c_stats, benchmark_config

    @property
    def latency_avg_ms(self):
        return self._c_stats.latency_avg_ms

    @property
    def num_iters(self):
        return self._c_stats.num_iters

    @property
    def total_time_seconds(self):
        return self.num_iters * (self.latency_avg_ms / 1000.0) / self.benchmark_config.num_calling_threads

    @property
    def iters_per_second(self):
        return self.num_iters / self.total_time_seconds

    def __str__(self):
        return "\n".join([
            "Average latency per example: " + format_time(time_ms=self.latency_avg_ms),
            f"Total number of iterations: {self.num_iters}",
            f"Total number of iterations per second (across all threads): {self.iters_per_second:.2f}",
            "Total time: " + format_time(time_s=self.total_time_seconds),
        ])  # fmt: skip


class ThroughputBenchmark:
    """Calls a module with the inputs that were added, chosen at random, from several threads."""

    def __init__(self, module):
        self._module, self._inputs = module, []

    def add_input(self, *args, **kwargs) -> None:
        """Arguments to call the module with."""
        self._inputs.append((args, kwargs))

    def run_once(self, *args, **kwargs):
        """One call, as the benchmark makes it: its result."""
        return self._module(*args, **kwargs)

    def benchmark(
        self, config=None, num_calling_threads=1, num_warmup_iters=10, num_iters=100, profiler_output_path=""
    ):
        """Run; ExecutionStats. With a BenchmarkConfig, the bare BenchmarkExecutionStats."""
        if not self._inputs:
            raise RuntimeError("add_input first: there is nothing to call the module with")
        bare = isinstance(config, BenchmarkConfig)
        if not bare:
            given, config = config, BenchmarkConfig()
            config.num_calling_threads = num_calling_threads if given is None else given
            config.num_warmup_iters, config.num_iters = num_warmup_iters, num_iters
            config.profiler_output_path = profiler_output_path
        stats = BenchmarkExecutionStats(self._measure(config) * 1e3, config.num_iters)
        return stats if bare else ExecutionStats(stats, config)

    def _measure(self, config):
        """The mean time of a call, in seconds."""
        left, spent, failed = itertools.count(), [], []
        ready = threading.Barrier(config.num_calling_threads)

        def calls():
            choose = random.Random(threading.get_ident())
            try:
                for _ in range(config.num_warmup_iters):
                    self._call(choose)
                ready.wait()
                while next(left) < config.num_iters:
                    start = time.perf_counter()
                    self._call(choose)
                    spent.append(time.perf_counter() - start)
            except BaseException as error:
                failed.append(error)
                ready.abort()

        threads = [threading.Thread(target=calls) for _ in range(config.num_calling_threads)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if failed:
            raise next((e for e in failed if not isinstance(e, threading.BrokenBarrierError)), failed[0])
        return sum(spent) / max(len(spent), 1)

    def _call(self, choose):
        args, kwargs = choose.choice(self._inputs)
        self._module(*args, **kwargs)
        wait()
