"""torch._jit_internal: helpers that modules written for TorchScript import."""

import types
from typing import Any, Dict, Final, List, Optional, Tuple, Union  # noqa: UP035  names that are imported from here

from ...futures import Future
from ...jit import _overload, _overload_method, export, ignore, is_scripting, is_tracing, unused

__all__ = [
    "Any", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "Final", "Future", "List", "Optional", "Tuple", "Union",
    "_overload", "_overload_method", "boolean_dispatch", "export", "ignore", "is_scripting", "is_tracing", "unused",
]  # fmt: skip


_enabled = types.SimpleNamespace(enabled=True)  # torch.jit._state: whether torch.jit does anything


class _Broadcasting:
    def __getitem__(self, types):
        return types


BroadcastingList1 = _Broadcasting()
BroadcastingList2 = BroadcastingList3 = BroadcastingList1


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """A function that calls one of two by a boolean argument."""

    def fn(*args, **kwargs):
        chosen = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    fn.__name__, fn.__module__, fn.__doc__ = func_name or "fn", module_name, if_false.__doc__
    return fn


def _copy_to_script_wrapper(fn):
    """The function itself."""
    return fn
