"""torch.jit without TorchScript: what is scripted runs as the Python that it is, which the recorder fuses, and its graph is for looking at
and for files. Tracing makes a graph that can be looked at, changed and run again.
"""

import builtins
import contextlib
import inspect
from typing import Any, Final

from .. import errors
from ..futures import Future, fork, wait
from ..nn.modules.module import Module
from . import opaque, saved, scripted, traced, tracing
from .alias import AliasDb
from .comments import merge_type_from_type_comment, parse_type_comment
from .ir import Block, Graph, Node
from .opaque import CallStack, ErrorReport, ExcludeDispatchKeyGuard, LiteScriptModule
from .parse import parse_ir
from .raised import Error
from .traced import RecursiveScriptModule, ScriptFunction, ScriptModule, TopLevelTracedModule, trace, trace_module
from .tracing import TracerWarning, TracingState
from .types import ClassType, InterfaceType
from .values import Use, Value

__all__ = [
    "Attribute", "CompilationUnit", "Error", "Final", "Future", "RecursiveScriptModule", "ScriptFunction", "ScriptModule", "TracerWarning", "annotate",
    "export", "fork", "freeze", "fuser", "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "last_executed_optimized_graph",
    "load", "onednn_fusion_enabled", "enable_onednn_fusion", "optimize_for_inference", "optimized_execution", "save", "script",
    "script_if_tracing", "script_method", "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip


def _get_trace_graph(
    f, args=(), kwargs=None, strict=True, _force_outplace=False, return_inputs=False, _return_inputs_states=False
):
    """(graph, result) of one run; the parameters and buffers of a module are inputs of the graph, after those of `args`."""
    return tracing.legacy_graph(f, args, kwargs)


class CompilationUnit:
    """TorchScript source cannot be compiled: raises RuntimeError."""

    def __init__(self, lang=None, _frames_up=0):
        if lang is not None:
            raise errors.unsupported("TorchScript source", instead="the same function in Python")


class Attribute:
    """A value with a type annotation: the value alone is used."""

    def __new__(cls, value, type=None):
        return value


def script(obj=None, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """A function or module that runs the same Python, recorded and fused like everything else, with `.graph` and `.save`.

    A class, and what is neither function nor module but can be called, is returned as it is.
    """
    if obj is None:
        return script
    if type(obj).__module__ == "builtins" and not callable(obj) and not builtins.isinstance(obj, (list, dict)):
        raise TypeError(f"{type(obj)} is a built-in class")
    if builtins.isinstance(obj, Module):
        return scripted.module(obj)
    return scripted.function(obj) if inspect.isfunction(obj) else obj


def script_if_tracing(fn):
    """The function itself."""
    return fn


script_method = interface = script_if_tracing


def export(fn):
    """The function itself, marked: a saved module has it as a method."""
    fn._jit_export = True
    return fn


def unused(fn):
    """The function itself."""
    return fn


def ignore(drop=False, **kwargs):
    """A decorator that changes nothing."""
    return drop if callable(drop) else (lambda fn: fn)


def _overload(func):
    """One of several signatures: the last definition is what runs."""
    return func


_overload_method = _script_if_tracing = _overload


def annotate(the_type, the_value):
    """The value."""
    return the_value


def isinstance(obj, target_type) -> bool:
    """isinstance, for type annotations too: of a generic alias, its origin counts."""
    kinds = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    return any(builtins.isinstance(obj, getattr(k, "__origin__", None) or k) for k in kinds if k is not Any)


def is_scripting() -> bool:
    """False: this is Python."""
    return False


def is_tracing() -> bool:
    """Whether torch.jit.trace runs in this thread."""
    return tracing.state() is not None


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """The module itself."""
    return mod


def optimize_for_inference(mod, other_methods=None):
    """The module itself."""
    return mod


@contextlib.contextmanager
def optimized_execution(should_optimize):
    """Context: accepted."""
    yield


@contextlib.contextmanager
def fuser(name):
    """Context: accepted, XLA fuses."""
    yield


class strict_fusion(contextlib.nullcontext):
    """Context: accepted."""


def set_fusion_strategy(strategy) -> list:
    """Accepted; the strategy before is none."""
    return []


def enable_onednn_fusion(enabled) -> None:
    """Accepted: XLA fuses."""


def onednn_fusion_enabled() -> bool:
    """False."""
    return False


def last_executed_optimized_graph():
    """Raises: there is no TorchScript graph."""
    raise errors.unsupported("a TorchScript graph", instead="torch.compile and its report")


def save(m, f, _extra_files=None):
    """Write a scripted or traced function or module to a file. NotImplementedError: something of it can't be kept; it says what."""
    saved.save(m, f, _extra_files)


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """What `save` has written: functions and modules that run their graphs, without the Python that they were made of.

    Raises RuntimeError for archives of PyTorch's TorchScript, which hold compiled code.
    """
    return saved.load(f, map_location, _extra_files)


# What torch and torch._C have from here.
NAMES = {
    **opaque.NAMED, "AliasDb": AliasDb, "Block": Block, "CallStack": CallStack, "ClassType": ClassType, "ErrorReport": ErrorReport,
    "ExcludeDispatchKeyGuard": ExcludeDispatchKeyGuard, "Graph": Graph, "InterfaceType": InterfaceType, "LiteScriptModule": LiteScriptModule,
    "Node": Node, "TracingState": TracingState, "Use": Use, "Value": Value, "merge_type_from_type_comment": merge_type_from_type_comment,
    "parse_ir": parse_ir, "parse_type_comment": parse_type_comment,
}  # fmt: skip
_create_function_from_graph = traced.function_of_graph
_ = RecursiveScriptModule, ScriptFunction, ScriptModule, TopLevelTracedModule, TracerWarning, trace, trace_module
