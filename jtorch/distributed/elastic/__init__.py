"""torch.distributed.elastic for one process: its records of errors. There are no agents: a launcher starts one process."""

import importlib

__all__ = ["multiprocessing"]


def __getattr__(name):
    if name == "multiprocessing":
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
