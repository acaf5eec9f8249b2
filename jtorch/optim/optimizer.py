"""Optimizer: parameter groups, state, hooks, and the one recorded node that is a step of a group."""

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from copy import deepcopy
from types import SimpleNamespace

from jtorch import errors_sparse
from jtorch import functions as torch
from jtorch.autograd.mode import enable_grad, no_grad, set_grad_enabled
from jtorch.core.record import at_once, begin_training, end_step, gradients_dropped
from jtorch.dispatch import outer
from jtorch.dispatch.dispatched import has_dispatch
from jtorch.dispatch.override import LAYOUTS, STATE, has_override
from jtorch.handles import RemovableHandle, mutations
from jtorch.nn.modules.module import typename
from jtorch.optim.fused import FusedGroup
from jtorch.optim.steps import numbers_as_tensors, scalar_dtype, share_steps, with_own_step
from jtorch.tensor import Tensor

__all__ = [
    "Optimizer",
    "ParamsT",
    "StateDict",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "required",
]

ParamsT, StateDict = Iterable, dict[str, object]


class _Required:
    """Marks a default that every group must give."""

    def __repr__(self):
        return "<required parameter>"


required = _Required()

_global_pre_hooks = OrderedDict()
_global_post_hooks = OrderedDict()


def _register(hooks, hook, prepend=False):
    mutations[0] += 1
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook):
    """Call `hook(optimizer, args, kwargs)` before every optimizer's step."""
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """Call `hook(optimizer, args, kwargs)` after every optimizer's step."""
    return _register(_global_post_hooks, hook)


def _with_hooks(step):
    """`step` with the hooks around it; and the graph recorded so far is run at its end."""

    @functools.wraps(step)
    def call(self, *args, **kwargs):
        if _global_pre_hooks or self._optimizer_step_pre_hooks:
            full = (self, *args)
            for hook in (*_global_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
                result = hook(self, full, kwargs)
                if result is not None:
                    if not (isinstance(result, tuple) and len(result) == 2):
                        raise RuntimeError(
                            f"{step} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                        )
                    full, kwargs = result
            self, *args = full
        out = step(self, *args, **kwargs)
        if _global_post_hooks or self._optimizer_step_post_hooks:
            for hook in (*self._optimizer_step_post_hooks.values(), *_global_post_hooks.values()):
                hook(self, (self, *args), kwargs)
        end_step(self._params)
        return out

    call.hooked = True
    return call


class Optimizer:
    """Base class of all optimizers.

    A subclass with one formula for one parameter defines

        state_names(group, kind) names of its state tensors, without "step"
        init(p, group)          their start, as tensors
        flags(group)            what is fixed when the step is compiled, as a dict of hashable values
        numbers(group)          the hyper-parameters that may change from step to step, as a dict of numbers
        scalars(hp, step)       numbers that follow from those and from the step count, in double precision
        update(p, g, s, hp)     -> (new p, dict of new state)

    and gets groups, hooks, state dicts, loss scaling and a single recorded node for each group from this class.
    A subclass may instead define `step` itself.

    Args:
        params: parameters, or (name, parameter) pairs, or dicts that are groups with options of their own
        defaults: options of the groups that do not give them
    """

    counts_steps = True  # the state has a "step"
    old_numbers = ()  # tensors of the state that are numbers in files of before PyTorch 1.12
    added_options = {}  # options that groups of old files lack, and what they mean there
    _began = False  # whether it has dropped gradients

    def __init__(self, params, defaults):
        self.defaults = defaults
        if defaults.get("fused"):
            self._step_supports_amp_scaling = True  # asked by trainers, which then clip no gradients
        self._init_hooks()
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be "
                "an iterable of Tensors or dicts, but got " + typename(params)
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if len(groups) == 0:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)
        begin_training()

    def _init_hooks(self):
        self._optimizer_step_pre_hooks = OrderedDict()
        self._optimizer_step_post_hooks = OrderedDict()
        self._optimizer_state_dict_pre_hooks = OrderedDict()
        self._optimizer_state_dict_post_hooks = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks = OrderedDict()
        self._optimizer_load_state_dict_post_hooks = OrderedDict()
        self._fused = FusedGroup()

    def _patch_step_function(self):
        step = type(self).step
        if not getattr(step, "hooked", False):
            type(self).step = _with_hooks(step)

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        mutations[0] += 1
        self.__dict__.update(state)
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._init_hooks()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)
        for group in self.param_groups:
            for name, value in self.added_options.items():
                group.setdefault(name, value)
            if self.old_numbers:
                numbers_as_tensors(self.old_numbers, self.state, group["params"])
        self._fused = FusedGroup()

    def __repr__(self):
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            options = (f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
            text += f"\nParameter Group {i}\n" + "".join(options)
        return text + ")"

    # hooks

    def register_step_pre_hook(self, hook):
        """Call `hook(optimizer, args, kwargs)` before each step; it may return new ones."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Call `hook(optimizer)` before each state_dict()."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Call `hook(optimizer, state_dict)` after each state_dict(); it may return another one."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Call `hook(optimizer, state_dict)` before loading; it may return another state_dict."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Call `hook(optimizer)` after loading."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # saving

    def state_dict(self):
        """State and options; parameters are numbered in the order of the groups."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        index = {}
        groups = []
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            for p in group["params"]:
                index.setdefault(id(p), len(index))
            packed["params"] = [index[id(p)] for p in group["params"]]
            groups.append(packed)
        shared = set()
        state = {
            (index[id(k)] if isinstance(k, Tensor) else k): with_own_step(v, shared) for k, v in self.state.items()
        }
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            new = hook(self, result)
            if new is not None:
                result = new
        return result

    @staticmethod
    def _fit(param, value, group, key=None):
        """A loaded state value, moved and cast to its parameter."""
        if isinstance(value, Tensor):
            if key == "step":
                return value.to(device=param.device)
            if param.is_floating_point():
                return value.to(dtype=param.dtype, device=param.device)
            return value.to(device=param.device)
        if isinstance(value, dict):
            return {k: Optimizer._fit(param, v, group, key=k) for k, v in value.items()}
        if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
            return type(value)(Optimizer._fit(param, v, group) for v in value)
        return value

    def load_state_dict(self, state_dict):
        """Take state and options from a `state_dict()` of an optimizer over the same parameters."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            new = hook(self, state_dict)
            if new is not None:
                state_dict = new
        groups = self.param_groups
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved_groups)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        owner = {}
        for group, saved in zip(groups, saved_groups):
            for i, p in zip(saved["params"], group["params"]):
                owner[i] = (p, saved)
        state = defaultdict(dict)
        with no_grad():
            for key, value in state_dict["state"].items():
                if key in owner:
                    p, group = owner[key]
                    state[p] = self._fit(p, value, group)
                else:
                    state[key] = value
        if self.counts_steps:
            share_steps(state)
        new_groups = []
        for group, saved in zip(groups, saved_groups):
            saved["params"] = group["params"]
            if "param_names" in group and "param_names" not in saved:
                saved["param_names"] = group["param_names"]
            new_groups.append(saved)
        self.__setstate__({"state": state, "param_groups": new_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # groups

    def add_param_group(self, param_group):
        """Add a group: a dict with "params" and the options that differ from the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, "
                "but the ordering of tensors in sets will change between runs. Please use a list instead."
            )
        params = list(params)
        names = [p[0] for p in params if isinstance(p, tuple)]
        params = [p[1] if isinstance(p, tuple) else p for p in params]
        if names:
            if len(names) != len(params):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group = {"params": params, "param_names": names} | {
                k: v for k, v in param_group.items() if k != "params"
            }
        param_group["params"] = params
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + typename(p))
            if not self.defaults.get("differentiable", None) and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        if len(params) != len({id(p) for p in params}):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; "
                "in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(p) in known for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in param_group) != ("param_names" in self.param_groups[0]):
            now = "with" if "param_names" in param_group else "without"
            raise ValueError(
                "all optimizer param groups should be with/without names. "
                f"cannot add param group {now} names to the optimizer"
            )
        mutations[0] += 1
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none=True):
        """Drop the gradients of all parameters, or set them to zero."""
        for group in self.param_groups:
            if set_to_none:
                ask = STATE.armed
                for p in group["params"]:
                    if ask and has_override(type(p)):  # which may keep its gradient elsewhere
                        p.grad = None
                    else:
                        p._grad = None
                continue
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.grad.grad_fn is not None:
                    p.grad.detach_()
                else:
                    p.grad.requires_grad_(False)
                p.grad.zero_()
        gradients_dropped(not self._began)
        self._began = True

    # stepping

    def kind(self, p):
        """Parameters whose state has other names are of another kind, and updated by another node."""
        return None

    def state_names(self, group, kind=None):
        """Names of the state tensors of one parameter, without "step"."""
        return ()

    def init(self, p, group):
        """The state of one parameter before the first step."""
        return {name: torch.zeros_like(p) for name in self.state_names(group)}

    def flags(self, group):
        """What the compiled step is specialised to."""
        return {}

    def numbers(self, group):
        """The run-time numbers of the step."""
        return {"lr": group["lr"]}

    @staticmethod
    def scalars(hp, step):
        """Numbers that follow from the others, in double precision."""
        return {}

    def update(self, p, g, s, hp):
        """The formula, for one parameter."""
        raise NotImplementedError

    def update_sparse(self, p, g, group):
        """The step of one parameter with a sparse gradient."""
        raise errors_sparse.no_sparse_gradients(type(self).__name__)

    def _step_sparse(self, params, group):
        """Update those that have a sparse gradient; returns the others."""
        with no_grad():
            for p in params:
                if type(p._grad) in LAYOUTS:
                    self.update_sparse(p, -p._grad if group.get("maximize") else p._grad, group)
        return [p for p in params if type(p._grad) not in LAYOUTS]

    def step(self, closure=None):
        """Update all parameters that have a gradient.

        Args:
            closure: evaluates the model again and returns the loss
        """
        if type(self).update is Optimizer.update:
            raise NotImplementedError
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [p for p in group["params"] if p._grad is not None]
            if LAYOUTS:  # not before the first sparse tensor
                params = self._step_sparse(params, group)
            if not params:
                continue
            self._init_state(params, group)
            if group.get("differentiable"):
                with set_grad_enabled(True):
                    self._step_on_tape(params, group)
                continue
            if outer.STATE["made"]:  # not before the first class with a `__torch_dispatch__`
                params = self._step_outer(params, group)
            if params:
                self._fused.step(self, params, group)
        return loss

    def _step_outer(self, params, group):
        """Update those whose values are seen by a `__torch_dispatch__` only; returns the others."""
        asking = [p for p in params if has_dispatch(type(p)) or has_dispatch(type(p._grad))]
        if asking:
            with no_grad():
                self._step_on_tape(asking, group, True)
        return [p for p in params if not (has_dispatch(type(p)) or has_dispatch(type(p._grad)))]

    def _params(self):
        """The parameters whose gradients are values of the recorder: sparse ones are not."""
        return [p for group in self.param_groups for p in group["params"] if type(p._grad) not in LAYOUTS]

    def _init_state(self, params, group):
        fresh = [p for p in params if not self.state[p]]
        if not fresh:
            return
        step = {}
        with no_grad(), at_once():  # recorded, this would make the first step another program than all others
            for p in fresh:
                state = self.state[p]
                if self.counts_steps:
                    # parameters that start together share one count: one input of the step, not hundreds
                    if p.device not in step:
                        step[p.device] = torch.zeros((), dtype=scalar_dtype(), device=p.device)
                    state["step"] = step[p.device]
                state.update(self.init(p, group))

    def _step_on_tape(self, params, group, in_place=False):
        """The same formula, on tensors. in_place: whether the state's tensors stay, of whatever class the new ones are."""
        flags = self.flags(group)
        for p in params:
            state = self.state[p]
            hp = SimpleNamespace(**flags, **self.numbers(group))
            step = None
            if self.counts_steps:
                step = state["step"] = state["step"] + 1
            for k, v in self.scalars(hp, step).items():
                setattr(hp, k, v)
            g = -p.grad if group.get("maximize") else p.grad
            names = self.state_names(group, self.kind(p))
            # of a copy, which derivatives of tensors among the numbers may keep: the parameter itself is written below
            new, changed = self.update(p.clone(), g, {k: state[k] for k in names}, hp)
            for k, v in changed.items():
                state[k] = state[k].copy_(v) if in_place else v
            p.copy_(new)


def check_nonnegative(value, what):
    """Raise PyTorch's error for a hyper-parameter below zero."""
    if not value >= 0.0:
        raise ValueError(f"Invalid {what}: {value}")


def check_lr(lr, foreach=False, capturable=False):
    """The learning rate: a number, or a tensor with one element, at least zero."""
    if isinstance(lr, Tensor):
        if foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    check_nonnegative(lr, "learning rate")


def check_betas(betas):
    """The decay rates of running means: numbers in [0, 1)."""
    for i in range(2):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def check_fused(fused, foreach, differentiable):
    """Raise if flags contradict each other that choose an implementation (there is only one here)."""
    if fused:
        if differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
