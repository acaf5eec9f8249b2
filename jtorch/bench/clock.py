"""How steps are timed: interleaved blocks in one process, and a lone run from process start."""

import importlib
import statistics
import time
from collections.abc import Callable

from .runners import MODES, READ_EVERY, Runner, open_runner

BLOCK_SECONDS = 0.1  # a block is at least this long in the slowest way, so that reading the clock costs nothing
ROUNDS = 20
WARM_STEPS = 3 * READ_EVERY
WARM_BLOCKS = 6  # after each, what jtorch compiles beside the loop is waited for


def timed(runner: Runner, steps: int) -> float:
    """Steps per second over one block."""
    start = time.perf_counter()
    runner.run(steps)
    return steps / (time.perf_counter() - start)


def first_step(name: str, way: str) -> tuple[Runner, float]:
    """A runner that has taken its first step, and the seconds from building the model to having its loss."""
    start = time.perf_counter()
    runner = open_runner(name, way)
    runner.run(1)
    return runner, time.perf_counter() - start


def interleave(
    runners: dict[str, Runner], steps: int | None, tick: Callable[[], None], read: int = READ_EVERY
) -> dict[str, list[float]]:
    """Steps per second of each runner in each round; rounds of the same number are neighbours in time.

    `steps` is the number of timed steps of each runner, which reads its loss each `read` steps. Each block starts with
    untimed steps, which bring the runner's data back into the caches, and the order rotates, so nobody always follows
    the same neighbour.
    """
    for way, runner in runners.items():
        runner.read = read
        runner.run(WARM_STEPS)
        if way in MODES:  # hand-written JAX and PyTorch are timed without importing jtorch
            beside = importlib.import_module("jtorch.core.beside")
            for _ in range(WARM_BLOCKS):
                beside.compiled_beside()
                runner.run(WARM_STEPS)
    rates = [timed(runner, read) for runner in runners.values()]
    block = read * max(1, round(BLOCK_SECONDS * statistics.median(rates) / read))
    rounds = ROUNDS
    if steps is not None:
        block = min(block, max(1, steps))
        rounds = max(1, steps // block)
    result: dict[str, list[float]] = {way: [] for way in runners}
    order = list(runners)
    for _ in range(rounds):
        for way in order:
            runners[way].run(1)
            result[way].append(timed(runners[way], block))
        order = order[1:] + order[:1]
        tick()
    return result


def paired_ratio(rates: list[float], base: list[float]) -> float:
    """Median over the rounds of this way's speed over the other's in the same round."""
    return statistics.median(a / b for a, b in zip(rates, base, strict=True))


def lone(name: str, way: str, started: float, seconds: float) -> dict[str, float]:
    """Run one way alone: seconds from process start to the first loss and to steady speed; the final rate.

    Steady begins with the first block of READ_EVERY steps that takes at most 1.3 times the median of the blocks in the
    last third of the time. With `seconds` 0 only the first step is taken.
    """
    runner, _ = first_step(name, way)
    first = time.time() - started
    if seconds <= 0:
        return {"first_step_s": first}
    ends = [time.time()]
    while len(ends) < 9 or ends[-1] - ends[0] < seconds:
        runner.run(READ_EVERY)
        ends.append(time.time())
    blocks = [b - a for a, b in zip(ends, ends[1:])]
    late = ends[-1] - (ends[-1] - ends[0]) / 3
    steady = statistics.median(block for block, end in zip(blocks, ends[1:]) if end > late)
    at = next(i for i, block in enumerate(blocks) if block <= 1.3 * steady)
    return {
        "first_step_s": first,
        "steady_s": ends[at] - started,
        "own_steps_per_s": READ_EVERY / steady,
    }
