"""torch.utils."""

import importlib

from . import data


def __getattr__(name):
    if name in ("checkpoint", "dlpack", "hooks", "serialization", "tensorboard", "viz"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["data"]
