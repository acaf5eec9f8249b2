"""The steps, under PyTorch's short names."""

from . import callable, combining, grouping, keyed, ordering, splitting, wrapping

__all__ = ["ITER", "MAP"]


def _short(ending, *modules):
    names = [(name, module) for module in modules for name in module.__all__ if name.endswith(ending)]
    return {name.removesuffix(ending): getattr(module, name) for name, module in sorted(names, key=lambda n: n[0])}


ITER = _short("IterDataPipe", callable, combining, grouping, ordering, splitting, wrapping)
MAP = {**_short("MapDataPipe", keyed), "Shuffler": keyed.ShufflerIterDataPipe}
