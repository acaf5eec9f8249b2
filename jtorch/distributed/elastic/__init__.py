"""torch.distributed.elastic for one process: its records of errors, and free ports. There are no agents: a launcher starts one process."""

import importlib

__all__ = ["multiprocessing", "utils"]


def __getattr__(name):
    if name in __all__:
        return importlib.import_module(f".{name}", __package__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
