"""Helpers that PyTorch's modules keep beside their public names, and that subclasses and optimizers of packages import."""

import functools

from ... import functions as torch
from ...autograd.functional import _checked
from ...autograd.mode import no_grad
from ...nn import init as nn_init
from ...nn.modules import padding
from ...nn.modules.attention import _activation as _get_activation_fn
from ...nn.modules.attention import _causal_mask as _generate_square_subsequent_mask
from ...nn.modules.attention import _clones as _get_clones
from ...nn.modules.attention import _detect_causal
from ...nn.modules.conv import _LazyConv as _LazyConvXdMixin
from ...nn.modules.hooks import everywhere
from ...nn.modules.module import Module
from ...nn.modules.module import _indent as _addindent
from ...nn.modules.state import _IncompatibleKeys
from ...optim.lbfgs import _cubic_minimum as _cubic_interpolate
from ...optim.lbfgs import strong_wolfe as _strong_wolfe
from ...optim.lr_scheduler import LRScheduler as _LRScheduler
from ...tensor import Tensor

__all__ = []
_ = (
    _addindent,
    _get_activation_fn,
    _generate_square_subsequent_mask,
    _get_clones,
    _LazyConvXdMixin,
    _IncompatibleKeys,
    _LRScheduler,
    _strong_wolfe,
    _cubic_interpolate,
)

_ConstantPadNd, _CircularPadNd = padding._ConstantPad, padding._CircularPad
_ReflectionPadNd = _ReplicationPadNd = padding._Pad
_ConvTransposeMixin = object
_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


# --- layers --------------------------------------------------------------------------------------------------------


_forward_unimplemented = Module.forward


def _get_seq_len(src, batch_first):
    """The length of a sequence, batched or not."""
    return src.size(0) if src.dim() == 2 else src.size(1 if batch_first else 0)


def _detect_is_causal_mask(mask, is_causal=None, size=None):
    """Whether a mask hides what comes later, if that is not said."""
    return _detect_causal(mask, is_causal, mask.size(-2) if size is None and mask is not None else size)


def _in_place(name):
    def fill_in_place(tensor, *args, generator=None):
        with no_grad():
            options = {} if generator is None else {"generator": generator}
            return getattr(tensor, name)(*args, **options)

    fill_in_place.__name__ = f"_no_grad_{name}"
    return fill_in_place


_no_grad_uniform_, _no_grad_normal_, _no_grad_fill_, _no_grad_zero_ = map(
    _in_place, ("uniform_", "normal_", "fill_", "zero_")
)


def _no_grad_trunc_normal_(tensor, mean, std, a, b, generator=None):
    """Values of a normal distribution between a and b, in place."""
    return nn_init.trunc_normal_(tensor, mean, std, a, b, generator)


# The registries of hooks that run for every module.
_global_buffer_registration_hooks, _global_module_registration_hooks = (
    everywhere.buffer_registration,
    everywhere.module_registration,
)
_global_parameter_registration_hooks = everywhere.parameter_registration
_global_forward_hooks, _global_forward_pre_hooks = everywhere.forward, everywhere.forward_pre
_global_backward_hooks, _global_backward_pre_hooks = everywhere.backward, everywhere.backward_pre


# --- optimizers ----------------------------------------------------------------------------------------------------


def _use_grad_for_differentiable(func):
    """A step with gradients off, unless the optimizer is differentiable."""

    @functools.wraps(func)
    def step(self, *args, **kwargs):
        with torch.set_grad_enabled(bool(self.defaults.get("differentiable"))):
            return func(self, *args, **kwargs)

    return step


def _get_value(x):
    """A Python number of a number or a tensor with one element."""
    return x.item() if isinstance(x, Tensor) else x


_to_scalar = _get_value


def _stack_if_compiling(x):
    return x


def _default_to_fused_or_foreach(params, differentiable, use_fused=False):
    """(fused, foreach): neither, XLA fuses the loop over the parameters."""
    return False, False


def _disable_dynamo_if_unsupported(single_tensor_fn=None):
    return lambda fn: fn


def _get_scalar_dtype(is_fused=None):
    """The dtype of step counters."""
    return torch.float64 if torch.get_default_dtype() is torch.float64 else torch.float32


def _get_capturable_supported_devices(supports_xla=True):
    return ["cuda", "xpu", "hpu", "xla"]


def _view_as_real(params, *state_and_grads):
    """Complex parameters and what belongs to them as real views, in place of the lists' entries."""
    for i, p in enumerate(params):
        if torch.is_complex(p):
            params[i] = torch.view_as_real(p)
            for s in state_and_grads:
                s[i] = torch.view_as_real(s[i])


_foreach_doc = _fused_doc = _maximize_doc = _capturable_doc = _differentiable_doc = _params_doc = ""


# --- jacobians -----------------------------------------------------------------------------------------------------


def _construct_standard_basis_for(tensors, tensor_numels):
    """The unit vectors of the space of several tensors taken together: for each tensor its part of them (total, numel)."""
    whole = torch.eye(sum(tensor_numels))
    parts = whole.split(list(tensor_numels), 1)
    return tuple(p.to(dtype=t.dtype, device=t.device).clone() for p, t in zip(parts, tensors))


def _grad_preprocess(inputs, create_graph, need_graph):
    """Inputs of which gradients are taken: views of them on the graph, or detached ones."""

    def prepared(x):
        if create_graph:
            return x.view_as(x)
        return x.detach().requires_grad_(need_graph)

    return tuple(prepared(x) if isinstance(x, Tensor) else x for x in inputs)


def _grad_postprocess(inputs, create_graph):
    """Results, without their graph unless that is asked for; nested tuples too."""
    if create_graph:
        return inputs
    return tuple(x.detach() if isinstance(x, Tensor) else _grad_postprocess(x, create_graph) for x in inputs)


def _tuple_postprocess(res, to_unpack):
    """A tuple as it is, or its only entry, where the argument was no tuple; of (outer, inner) flags, each level so."""
    if isinstance(to_unpack, tuple):
        outer, inner = to_unpack
        res = res if inner else tuple(entry[0] for entry in res)
        return res if outer else res[0]
    return res if to_unpack else res[0]


def _as_tuple(inp, arg_name=None, fn_name=None):
    """(whether it was a tuple, its tensors), or PyTorch's error."""
    items, many = _checked(inp, arg_name, fn_name)
    return many, items
