"""torch.distributed.elastic: records of errors, and free ports. There are no agents: `launcher` and `run` start processes themselves."""

import importlib

__all__ = ["multiprocessing", "utils"]


def __getattr__(name):
    if name in __all__:
        return importlib.import_module(f".{name}", __package__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
