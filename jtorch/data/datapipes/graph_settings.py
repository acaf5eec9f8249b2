"""What a loader says to all pipes of a graph: their share of the samples, whether to shuffle, and their seeds."""

import inspect
import warnings

from ...core import rng
from ..sampler import random_seed
from .graph import traverse_dps
from .steps.ordering import SHARDING_PRIORITIES, Sharding

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_seed",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
    "reseed",
]


def get_all_graph_pipes(graph: dict) -> list:
    """The pipes of a graph, each once, from its end."""
    found: dict[int, object] = {}

    def collect(part):
        for key, (pipe, below) in part.items():
            if key not in found:
                found[key] = pipe
                collect(below)

    collect(graph)
    return list(found.values())


def _has(pipe, *methods):
    return all(inspect.ismethod(getattr(pipe, name, None)) for name in methods)


def apply_sharding(datapipe, num_of_instances: int, instance_id: int, sharding_group=SHARDING_PRIORITIES.DEFAULT):
    """Have each pipe that can be told so give one share of its samples; the pipe itself.

    Raises RuntimeError where two on one way would.
    """

    def apply(graph, applied):
        for pipe, below in graph.values():
            now = applied
            if isinstance(pipe, Sharding) or _has(pipe, "apply_sharding"):
                if applied is not None:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and will cause data loss. "
                        f"Sharding already applied to {applied} while trying to apply to {pipe}"
                    )
                if len(inspect.signature(pipe.apply_sharding).parameters) < 3:
                    pipe.apply_sharding(num_of_instances, instance_id)
                else:
                    pipe.apply_sharding(num_of_instances, instance_id, sharding_group=sharding_group)
                now = pipe
            apply(below, now)

    apply(traverse_dps(datapipe), None)
    return datapipe


def apply_shuffle_settings(datapipe, shuffle: bool | None = None):
    """Tell the pipes that shuffle whether to; the pipe, with a step that shuffles at its end where there was none."""
    if shuffle is None:
        return datapipe
    shufflers = [p for p in get_all_graph_pipes(traverse_dps(datapipe)) if _has(p, "set_shuffle", "set_seed")]
    if shuffle and not shufflers:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. "
            "Be aware that the default buffer size might not be sufficient for your task.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for pipe in shufflers:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe, rng):
    """Seed the pipes that draw random numbers from a generator, from the end on; the pipe itself."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if _has(pipe, "set_seed"):
            pipe.set_seed(random_seed(rng))
    return datapipe


def reseed(pipe, shared: int) -> None:
    """Seed the pipes of a graph from one number."""
    generator = rng.Generator()
    generator.manual_seed(shared)
    apply_random_seed(pipe, generator)


def apply_shuffle_seed(datapipe, rng):
    """`apply_random_seed`. Deprecated."""
    warnings.warn(
        "`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future releases. "
        "Please use `apply_random_seed` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return apply_random_seed(datapipe, rng)
