"""torch.utils.model_zoo: downloads, by names from before torch.hub."""

import importlib

_NAMES = {"load_url": "load_state_dict_from_url", "_download_url_to_file": "download_url_to_file"}

try:
    from tqdm.auto import tqdm
except ImportError:

    class tqdm:
        """A progress bar that shows nothing, where the package tqdm is not installed."""

        def __init__(self, iterable=None, *args, **kwargs):
            self.iterable = iterable

        def __iter__(self):
            return iter(self.iterable)

        def update(self, n=1) -> None:
            """Nothing is shown."""

        def __enter__(self):
            return self

        def __exit__(self, *exc):
            return None


__all__ = ["tqdm"]


def __getattr__(name):
    if name in _NAMES:
        return getattr(importlib.import_module("jtorch.hub"), _NAMES[name])
    raise AttributeError(f"module 'torch.utils.model_zoo' has no attribute {name!r}")
