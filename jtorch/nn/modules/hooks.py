"""The hooks of a Module: handles, registries local and global, and the call that runs them."""

import functools
import warnings
import weakref
from collections import OrderedDict

from jtorch import errors
from jtorch.autograd.engine import replaced
from jtorch.autograd.function import Function
from jtorch.autograd.levels import levels
from jtorch.autograd.mode import is_grad_enabled
from jtorch.handles import RemovableHandle, mutations
from jtorch.tensor import Tensor

__all__ = [
    "BackwardHook",
    "HookMixin",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


class _Globals:
    """Hooks that run for every module."""

    def __init__(self):
        self.buffer_registration = OrderedDict()
        self.module_registration = OrderedDict()
        self.parameter_registration = OrderedDict()
        self.forward_pre = OrderedDict()
        self.forward = OrderedDict()
        self.forward_with_kwargs = OrderedDict()
        self.forward_always_called = OrderedDict()
        self.backward_pre = OrderedDict()
        self.backward = OrderedDict()
        self.is_full_backward = None


everywhere = _Globals()
any_global_call_hook = [False]  # sticky: once a global hook was registered, every call checks properly


def _add(hooks: OrderedDict, hook, *extra, prepend=False) -> RemovableHandle:
    """Put a hook into a registry, its id into the extra ones."""
    mutations[0] += 1
    handle = RemovableHandle(hooks, extra_dict=list(extra))
    hooks[handle.id] = hook
    for ids in extra:
        ids[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
        for ids in extra:
            ids.move_to_end(handle.id, last=False)
    return handle


def register_module_buffer_registration_hook(hook):
    """Call `hook(module, name, buffer)` whenever any module registers a buffer; its result replaces the buffer."""
    return _add(everywhere.buffer_registration, hook)


def register_module_module_registration_hook(hook):
    """Call `hook(module, name, submodule)` whenever any module registers a submodule."""
    return _add(everywhere.module_registration, hook)


def register_module_parameter_registration_hook(hook):
    """Call `hook(module, name, param)` whenever any module registers a parameter."""
    return _add(everywhere.parameter_registration, hook)


def register_module_forward_pre_hook(hook):
    """Call `hook(module, args)` before every module's forward."""
    any_global_call_hook[0] = True
    return _add(everywhere.forward_pre, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Call `hook(module, args, output)` after every module's forward."""
    any_global_call_hook[0] = True
    extra = []
    if with_kwargs:
        extra.append(everywhere.forward_with_kwargs)
    if always_call:
        extra.append(everywhere.forward_always_called)
    return _add(everywhere.forward, hook, *extra)


def _global_backward_kind(full: bool):
    if everywhere.is_full_backward is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
            "Please use only one of them."
        )
    everywhere.is_full_backward = full
    any_global_call_hook[0] = True


def register_module_backward_hook(hook):
    """Deprecated: the gradient of the node that made the output, not of the module's inputs."""
    _global_backward_kind(False)
    return _add(everywhere.backward, hook)


def register_module_full_backward_pre_hook(hook):
    """Call `hook(module, grad_output)` before every module's backward."""
    any_global_call_hook[0] = True
    return _add(everywhere.backward_pre, hook)


def register_module_full_backward_hook(hook):
    """Call `hook(module, grad_input, grad_output)` after every module's backward."""
    _global_backward_kind(True)
    return _add(everywhere.backward, hook)


class BackwardHookFunction(Function):
    """The identity, whose backward shows `callback` the gradients of a module's inputs (or outputs) all at once."""

    @staticmethod
    def forward(ctx, callback, missing_as_zeros, *args):
        ctx.callback = callback
        ctx.set_materialize_grads(missing_as_zeros)
        results = tuple(a.view_as(a) for a in args)
        ctx.mark_non_differentiable(*[r for r, a in zip(results, args) if not a.requires_grad])
        return results

    @staticmethod
    def backward(ctx, *grads):
        return None, None, *ctx.callback(grads)


class BackwardHook:
    """Joins the node around a module's inputs with the one around its outputs, and calls the hooks."""

    def __init__(self, module, hooks, pre_hooks):
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs = None
        self.inputs, self.n_inputs = None, 0  # positions of the input tensors; None: no gradient flows there
        self.outputs, self.n_outputs = None, 0

    def setup_input_hook(self, args):
        args, self.inputs = self._wrap(args, self._after_inputs, True)
        self.n_inputs = len(args)
        return args

    def setup_output_hook(self, result):
        single = isinstance(result, Tensor)
        if single:
            result = (result,)
        result, self.outputs = self._wrap(result, self._before_outputs, False)
        self.n_outputs = len(result)
        return result[0] if single else result

    @staticmethod
    def _wrap(values, callback, missing_as_zeros):
        where = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
        tensors = [values[i] for i in where]
        if not (any(t.requires_grad for t in tensors) and is_grad_enabled()):
            return values, None
        around = levels()
        if around and around[-1].kind == "vmap":  # where PyTorch's tensors do not say that they require gradients
            return values, None
        new = BackwardHookFunction.apply(callback, missing_as_zeros, *tensors)
        out = list(values)
        for i, t in zip(where, new):
            out[i] = t
        return (tuple(out) if type(values) is tuple else type(values)(*out)), where

    def _after_inputs(self, grad_input):
        if self.grad_outputs is None:
            return grad_input  # the gradient reached the inputs without passing the outputs (double backward)
        grads = _placed(self.inputs, grad_input, self.n_inputs)
        for hook in self.hooks:
            new = hook(self.module, grads, self.grad_outputs)
            if new is None:
                continue
            if len(new) != len(grads):
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(new)}, but expected {len(grads)}"
                )
            grads = new
        self.grad_outputs = None
        return replaced(_joint, grad_input, tuple(grads[i] for i in self.inputs))

    def _before_outputs(self, grad_output):
        grads = _placed(self.outputs, grad_output, self.n_outputs)
        self.grad_outputs = grads
        for hook in self.pre_hooks:
            new = hook(self.module, self.grad_outputs)
            if new is None:
                continue
            if len(new) != self.n_outputs:
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, "
                    f"got {len(new)}, but expected {self.n_outputs}"
                )
            self.grad_outputs = new
        new = self.grad_outputs
        if self.inputs is None:
            self._without_input_gradient()
        if new is grads:
            return grad_output
        return replaced(_joint, grad_output, tuple(new[i] for i in self.outputs))

    def _without_input_gradient(self):
        errors.warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require "
            "gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
            "#torch.nn.Module.register_full_backward_hook for more details."
        )
        nothing = (None,) * self.n_inputs
        for hook in self.hooks:
            new = hook(self.module, nothing, self.grad_outputs)
            if new is not None and not (isinstance(new, tuple) and all(g is None for g in new)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires "
                    "gradient should always return None or None for all gradients."
                )
        self.grad_outputs = None


def _placed(where, tensors, n):
    """A tuple of n with the tensors at their positions, None elsewhere."""
    values = [None] * n
    for i, t in zip(where, tensors):
        values[i] = t
    return tuple(values)


def _joint():
    """Stands for all hooks of a module in errors, under the name that PyTorch gives them there."""


_joint.__name__ = "hook"


class _BoundBackwardHook:
    """A legacy backward hook bound to its module; it must not keep the module alive."""

    def __init__(self, hook, module):
        self.hook = hook
        self.module = weakref.ref(module)
        functools.update_wrapper(self, hook)

    def __call__(self, grad_input, grad_output):
        return self.hook(self.module(), grad_input, grad_output)


class HookMixin:
    """The part of Module that registers hooks on one module and runs a call that has some."""

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call `hook(module, args)` before each forward; what it returns replaces the arguments."""
        extra = (self._forward_pre_hooks_with_kwargs,) if with_kwargs else ()
        return _add(self._forward_pre_hooks, hook, *extra, prepend=prepend)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Call `hook(module, args, output)` after each forward; what it returns replaces the output.

        `with_kwargs` adds the keyword arguments before the output; with `always_call` the hook runs even when
        forward raises.
        """
        extra = []
        if with_kwargs:
            extra.append(self._forward_hooks_with_kwargs)
        if always_call:
            extra.append(self._forward_hooks_always_called)
        return _add(self._forward_hooks, hook, *extra, prepend=prepend)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Call `hook(module, grad_output)` before the gradient enters the module; its result replaces it."""
        return _add(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Call `hook(module, grad_input, grad_output)` when the gradients of the inputs are known."""
        if self._is_full_backward_hook is False:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a "
                "single Module. Please use only one of them."
            )
        self._is_full_backward_hook = True
        return _add(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook):
        """Deprecated: sees the gradients of the node that made the output. Use register_full_backward_hook."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a "
                "single Module. Please use only one of them."
            )
        self._is_full_backward_hook = False
        return _add(self._backward_hooks, hook)

    def _get_backward_hooks(self):
        full, legacy = [], []
        if everywhere.is_full_backward is True:
            full += everywhere.backward.values()
        if self._is_full_backward_hook is True:
            full += self._backward_hooks.values()
        if everywhere.is_full_backward is False:
            legacy += everywhere.backward.values()
        if self._is_full_backward_hook is False:
            legacy += self._backward_hooks.values()
        return full, legacy

    def _get_backward_pre_hooks(self):
        return [*everywhere.backward_pre.values(), *self._backward_pre_hooks.values()]

    def _call_with_hooks(self, args, kwargs):
        """A call of forward with everything that hooks may want around it."""
        ran_always = set()
        result = None
        forward = self.forward  # as it is before a hook gives the module another class, like those of lazy modules
        try:
            full, legacy = self._get_backward_hooks()
            pre = self._get_backward_pre_hooks()
            args, kwargs = self._run_pre_hooks(args, kwargs)
            backward = None
            if full or pre:
                backward = BackwardHook(self, full, pre)
                args = backward.setup_input_hook(args)
            result = forward(*args, **kwargs)
            for i, hook in (*everywhere.forward.items(), *self._forward_hooks.items()):
                if i in self._forward_hooks_always_called or i in everywhere.forward_always_called:
                    ran_always.add(i)
                if i in self._forward_hooks_with_kwargs or i in everywhere.forward_with_kwargs:
                    new = hook(self, args, kwargs, result)
                else:
                    new = hook(self, args, result)
                if new is not None:
                    result = new
            if backward is not None:
                if not isinstance(result, (Tensor, tuple)):
                    warnings.warn(
                        "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors"
                        f" but received {type(result)}",
                        stacklevel=3,
                    )
                else:
                    result = backward.setup_output_hook(result)
            if legacy:
                self._attach_legacy_hooks(legacy, args, result)
            return result
        except Exception:
            self._run_always_hooks(ran_always, args, kwargs, result)
            raise

    def _run_pre_hooks(self, args, kwargs):
        for i, hook in (*everywhere.forward_pre.items(), *self._forward_pre_hooks.items()):
            if i in self._forward_pre_hooks_with_kwargs:
                new = hook(self, args, kwargs)
                if new is None:
                    continue
                if not (isinstance(new, tuple) and len(new) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {new}."
                    )
                args, kwargs = new
            else:
                new = hook(self, args)
                if new is not None:
                    args = new if isinstance(new, tuple) else (new,)
        return args, kwargs

    def _run_always_hooks(self, ran, args, kwargs, result):
        """forward raised: the hooks registered with always_call still see what there is."""
        for origin, hooks, always, with_kwargs in (
            (
                "global module forward",
                everywhere.forward,
                everywhere.forward_always_called,
                everywhere.forward_with_kwargs,
            ),
            (
                "module forward",
                self._forward_hooks,
                self._forward_hooks_always_called,
                self._forward_hooks_with_kwargs,
            ),
        ):
            for i, hook in hooks.items():
                if i not in always or i in ran:
                    continue
                try:
                    new = hook(self, args, kwargs, result) if i in with_kwargs else hook(self, args, result)
                    if new is not None:
                        result = new
                except Exception as e:
                    warnings.warn(
                        f"{origin} hook with ``always_call=True`` raised an exception "
                        f"that was silenced as another error was raised in forward: {e!s}",
                        stacklevel=2,
                    )

    def _attach_legacy_hooks(self, hooks, args, result):
        first = result
        while not isinstance(first, Tensor):
            if isinstance(first, dict):
                first = next(v for v in first.values() if isinstance(v, Tensor))
            else:
                first = first[0]
        node = first.grad_fn
        if node is None:
            return
        for hook in hooks:
            node.register_hook(_BoundBackwardHook(hook, self))
        self._warn_legacy_hook(args, result, node)

    @staticmethod
    def _warn_legacy_hook(inputs, result, node):
        """Say when a legacy hook will not see what its author expects."""
        results = (result,) if isinstance(result, Tensor) else result
        inputs = (inputs,) if isinstance(inputs, Tensor) else inputs
        plural, advice = "a non-full backward hook when", True
        if not _all_tensors(results):
            plural = "non-full backward hooks on a Module that"
            what, missing = "does not return a single Tensor or a tuple of Tensors", "some of the grad_output"
        elif not _all_tensors(inputs):
            plural = "non-full backward hooks on a Module that"
            what, missing = (
                "does not take as input a single Tensor or a tuple of Tensors",
                "some of the grad_input",
            )
        else:
            made_by = {r.grad_fn for r in results if r.grad_fn is not None}
            if len(made_by) > 1:
                what, missing = "outputs are generated by different autograd Nodes", "some grad_output"
            elif node not in made_by:
                what, missing, advice = (
                    "outputs are nested in python data structure",
                    "some grad_output",
                    False,
                )
            elif {i.grad_fn for i in inputs if i.grad_fn is not None} != {f[0] for f in node.next_functions}:
                what, missing = "the forward contains multiple autograd Nodes", "some grad_input"
            else:
                return
        warnings.warn(
            f"Using {plural} {what} is deprecated and will be removed in future versions. "
            f"This hook will be missing {missing}."
            + (" Please use register_full_backward_hook to get the documented behavior." if advice else ""),
            FutureWarning,
            stacklevel=5,
        )


def _all_tensors(values) -> bool:
    return isinstance(values, tuple) and all(isinstance(v, Tensor) for v in values)
