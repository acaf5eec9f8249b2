"""functorch, the package that PyTorch installs beside torch: its transforms under their older names, and modules as functions."""

import copy
import functools
import warnings

from ... import func, version
from ...func import functional_call, stack_module_state
from ...nn.modules.module import Module
from . import functorch_experimental as experimental  # noqa: F401  an attribute of the package

__version__ = version.torch


def _deprecated(name, fn, instead):
    @functools.wraps(fn)
    def warned(*args, **kwargs):
        warnings.warn(
            f"We've integrated functorch into PyTorch. As the final step of the integration, `functorch.{name}` is deprecated as of PyTorch "
            f"2.0 and will be deleted in a future version of PyTorch >= 2.3. Please use `{instead}` instead; see the PyTorch 2.0 release notes "
            "and/or the `torch.func` migration guide for more details https://pytorch.org/docs/main/func.migrating.html",
            FutureWarning,
            stacklevel=2,
        )
        return fn(*args, **kwargs)

    return warned


for _name in ("functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp", "vmap"):
    globals()[_name] = _deprecated(
        _name, getattr(func, _name), "torch.vmap" if _name == "vmap" else f"torch.func.{_name}"
    )


class FunctionalModuleWithBuffers(Module):
    """A module as a function of its parameters, its buffers and the arguments."""

    def __init__(self, stateless_model, param_names, buffer_names=()):
        super().__init__()
        self.stateless_model, self.param_names, self.buffer_names = (
            stateless_model,
            tuple(param_names),
            tuple(buffer_names),
        )

    def forward(self, params, buffers, *args, **kwargs):
        """What the module gives with these parameters and buffers."""
        state = dict(zip(self.param_names, params)) | dict(zip(self.buffer_names, buffers))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without buffers as a function of its parameters and the arguments."""

    def forward(self, params, *args, **kwargs):
        """What the module gives with these parameters."""
        return super().forward(params, (), *args, **kwargs)


def _taken(model, untracked):
    """(stateless copy, names and values of parameters, of buffers)."""
    parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    values = tuple(p.detach() if untracked else p for p in copy.deepcopy(model).parameters())
    return (
        copy.deepcopy(model).to("meta"),
        tuple(parameters),
        values,
        tuple(buffers),
        tuple(b.clone() for b in buffers.values()),
    )


def _make_functional(model, disable_autograd_tracking=False):
    """(function of parameters and arguments, parameters) of a module without buffers."""
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    stateless, names, values, _, _ = _taken(model, disable_autograd_tracking)
    return FunctionalModule(stateless, names), values


def _make_functional_with_buffers(model, disable_autograd_tracking=False):
    """(function of parameters, buffers and arguments, parameters, buffers) of a module."""
    stateless, names, values, buffer_names, buffers = _taken(model, disable_autograd_tracking)
    return FunctionalModuleWithBuffers(stateless, names, buffer_names), values, buffers


def _combine_state_for_ensemble(models):
    """(function, stacked parameters, stacked buffers) of modules of one class, for vmap. RuntimeError: they are not."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    parameters, buffers = stack_module_state(list(models))
    function, _, _ = _make_functional_with_buffers(models[0])
    return function, tuple(p.detach() for p in parameters.values()), tuple(buffers.values())


make_functional = _deprecated("make_functional", _make_functional, "torch.func.functional_call")
make_functional_with_buffers = _deprecated(
    "make_functional_with_buffers", _make_functional_with_buffers, "torch.func.functional_call"
)
combine_state_for_ensemble = _deprecated(
    "combine_state_for_ensemble", _combine_state_for_ensemble, "torch.func.stack_module_state"
)
