"""torch.compile: the recorder with promises. The package is also the function: `jtorch.compile(fn)`."""

import sys

from ..core import ledger
from ..core.beside import compiled_beside
from ..namespaces import Namespace
from . import explain as _explain
from . import failures
from .region import Options, compile_function, compile_module, compile_with, reset

explain = _explain.explain
report = _explain.report
wait = compiled_beside
named: dict = {}  # backends that programs have registered


def compile(
    model=None, *, fullgraph=False, dynamic=None, backend="xla", mode=None, options=None, disable=False, name=None,
):  # fmt: skip
    """Compile a function or module: its whole region becomes one XLA program at the first call.

    Args:
        model: a function, a Module or None (then a decorator is returned)
        fullgraph: raise where the region would break (a value is needed in Python) instead of splitting it there
        dynamic: accepted; programs are made per shape
        backend: "xla" (also "inductor", "eager" and "aot_eager": "eager" runs op by op), or a function that is called with a
            torch.fx.GraphModule of the region and its inputs, and returns what runs instead (see compile/custom.py)
        mode: "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "lite": all the same on XLA
        options: backend options, accepted
        disable: return `model` unchanged

    Raises RuntimeError for an unknown mode, InvalidBackend (a RuntimeError too) for an unknown backend, AssertionError for what cannot
    be called, and Unsupported (a RuntimeError) at the call where `fullgraph` was asked and the region breaks.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
    """
    backend = named.get(backend, backend) if isinstance(backend, str) else backend
    settings = Options(fullgraph, dynamic, backend, mode, options)
    if model is None:
        return lambda m: compile(
            m, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if disable:
        return model
    if callable(backend) and (callable(model) or hasattr(model, "named_parameters")):
        return compile_with(model, settings)
    if hasattr(model, "named_parameters"):
        return compile_module(model, settings)
    if not callable(model):
        raise failures.not_callable(model)
    return compile_function(model, settings)


class _CallablePackage(Namespace):
    def __call__(self, *model, **options):
        return compile(*model, **options)


sys.modules[__name__].__class__ = _CallablePackage

__all__ = ["Options", "compile", "explain", "ledger", "named", "report", "reset", "wait"]
