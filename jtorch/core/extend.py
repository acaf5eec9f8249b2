"""The names of `jax.extend.core`, imported when one is first used: it brings Pallas along, which every `import jtorch` would wait for."""

import importlib


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    module = importlib.import_module("jax.extend.core")
    if name in ("find_top_trace", "set_current_trace") and not hasattr(module, name):  # until jax 0.8
        module = importlib.import_module("jax.core")
    found = globals()[name] = getattr(module, name)
    return found
