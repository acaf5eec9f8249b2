"""torch.jit: the questions that code asks of TorchScript, all answered with no. Scripting and tracing are not supported."""

from . import errors_extend
from .futures import fork, wait
from .unavailable import names

ScriptModule, ScriptFunction = names()["ScriptModule"], names()["ScriptFunction"]
RecursiveScriptModule = TopLevelTracedModule = TracedModule = ScriptModule

__all__ = [
    "Error", "Final", "ScriptFunction", "ScriptModule", "annotate", "export", "fork", "freeze", "ignore", "interface", "is_scripting",
    "is_tracing", "isinstance", "load", "onednn_fusion_enabled", "optimize_for_inference", "save", "script", "script_if_tracing",
    "script_method", "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip

from typing import Final  # noqa: E402  TorchScript's marker of constants is typing's


class Error(RuntimeError):
    """The errors of scripted code."""


def is_scripting() -> bool:
    """Whether this code is being compiled by TorchScript: never."""
    return False


def is_tracing() -> bool:
    """Whether this code is being traced by torch.jit.trace: never."""
    return False


def _unchanged(fn):
    return fn


export = interface = unused = script_if_tracing = _unchanged


def ignore(drop=False, **kwargs):
    """Accepted: there is nothing that would not be ignored."""
    return drop if callable(drop) else _unchanged


def annotate(the_type, the_value):
    """`the_value`."""
    return the_value


def _is(obj, target_type) -> bool:
    """Whether `obj` is of a type, or of one of several."""
    return builtin_isinstance(obj, target_type)


builtin_isinstance = isinstance
isinstance = _is


def _refusing(name, instead="torch.compile, which takes the function or module as it is"):
    def refuse(*args, **kwargs):
        raise errors_extend.unsupported(f"TorchScript, which torch.jit.{name} needs", instead)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Unsupported: TorchScript."
    refuse.__unsupported__ = True
    return refuse


script, trace, trace_module, freeze, optimize_for_inference, script_method = (
    _refusing(n) for n in ("script", "trace", "trace_module", "freeze", "optimize_for_inference", "script_method")
)
save, load = (_refusing(n, "torch.save and torch.load of a state_dict") for n in ("save", "load"))


def onednn_fusion_enabled() -> bool:
    """Whether oneDNN fuses scripted code: never."""
    return False


class strict_fusion:
    """Accepted."""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None
