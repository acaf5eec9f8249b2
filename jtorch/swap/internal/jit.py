"""torch._jit_internal: helpers that modules written for TorchScript import."""

import types
from typing import Any, Dict, Final, List, Optional, Tuple, Union  # noqa: UP035  names that are imported from here

from ...futures import Future
from ...jit import _overload, _overload_method, export, ignore, is_scripting, is_tracing, unused
from ...nn.functional import BroadcastingList1, BroadcastingList2, BroadcastingList3, boolean_dispatch

__all__ = [
    "Any", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "Final", "Future", "List", "Optional", "Tuple", "Union",
    "_overload", "_overload_method", "boolean_dispatch", "export", "ignore", "is_scripting", "is_tracing", "unused",
]  # fmt: skip


_enabled = types.SimpleNamespace(enabled=True)  # torch.jit._state: whether torch.jit does anything


def _copy_to_script_wrapper(fn):
    """The function itself."""
    return fn
