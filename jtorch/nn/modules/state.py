"""state_dict and load_state_dict of a Module, and the hooks around them."""

import copy
import itertools
import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Mapping

import jax
import numpy as np

from jtorch import creation, errors
from jtorch.autograd.mode import no_grad
from jtorch.core import device as devices
from jtorch.handles import RemovableHandle, mutations
from jtorch.nn.modules.conversion import CONVERSION, loaded
from jtorch.nn.parameter import Parameter, is_lazy
from jtorch.tensor import Tensor

__all__ = ["StateMixin"]

EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """The result of load_state_dict."""

    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _ModuleHook:
    """A load_state_dict pre-hook that also gets its module first, if it has one. It does not keep the module alive."""

    def __init__(self, hook, module):
        self.hook = hook
        self.owner = None if module is None else weakref.ref(module)

    @property
    def module(self):
        return None if self.owner is None else self.owner()

    def __call__(self, *args, **kwargs):
        if self.owner is None:
            return self.hook(*args, **kwargs)
        module = self.owner()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self):
        state = {"hook": self.hook, "with_module": self.owner is not None}  # as PyTorch's files have it
        return state if self.owner is None else {**state, "module": self.module}

    def __setstate__(self, state):
        self.__init__(state["hook"], state["module"] if state["with_module"] else None)

    def __deepcopy__(self, memo):
        # The copy of the hook belongs to the copy of the module.
        return _ModuleHook(copy.deepcopy(self.hook, memo), memo.get(id(self.module), self.module))


def _flat(state, module):
    """(name, value) of a mapping; the mapping, or the list, that stands for a submodule gives its own names with dots."""
    for name, value in state.items():
        if isinstance(value, (Mapping, list, tuple)) and (child := _submodule(module, name)) is not None:
            parts = value if isinstance(value, Mapping) else {str(i): x for i, x in enumerate(value)}
            yield from ((f"{name}.{rest}", x) for rest, x in _flat(parts, child))
        else:  # dicts that a module saves by itself are its own
            yield name, value


def _submodule(module, path):
    """The module with a dotted name, or None."""
    for name in str(path).split("."):
        module = module._modules.get(name)
        if module is None:
            return None
    return module


def _tensor_of(array):
    if isinstance(array, jax.Array):
        return creation.from_jax(array)
    return creation.from_array(np.array(array), devices.cpu)


class StateMixin:
    """The part of Module that saves and restores parameters and persistent buffers."""

    _version = 1

    def _add_state_hook(self, hooks, hook):
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return handle

    def _register_state_dict_hook(self, hook):
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return self._add_state_hook(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook):
        """Call `hook(module, state_dict, prefix, local_metadata)` after each state_dict()."""
        hook._from_public_api = True
        return self._add_state_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook):
        """Call `hook(module, prefix, keep_vars)` before each state_dict()."""
        return self._add_state_hook(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        return self._add_state_hook(self._load_state_dict_pre_hooks, _ModuleHook(hook, self) if with_module else hook)

    def register_load_state_dict_pre_hook(self, hook):
        """Call `hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)` before loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """Call `hook(module, incompatible_keys)` after loading; it may edit the keys in place."""
        return self._add_state_hook(self._load_state_dict_post_hooks, hook)

    def get_extra_state(self):
        """What else belongs into the state_dict of this module; override together with set_extra_state."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. "
            "Please file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml "
            "to report this bug."
        )

    def set_extra_state(self, state):
        """Take back what get_extra_state gave."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. "
            "Please file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml "
            "to report this bug."
        )

    def _has_extra_state(self, method) -> bool:
        return getattr(type(self), method) is not getattr(StateMixin, method)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Put this module's own parameters and buffers, not its children's, into `destination`."""
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buf in self._buffers.items():
            if buf is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buf if keep_vars else buf.detach()
        if self._has_extra_state("get_extra_state"):
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """All parameters and persistent buffers by name; the tensors share storage with the module's.

        Args:
            destination: the mapping to fill. Default: a new OrderedDict
            prefix: put before every name
            keep_vars: give the parameters themselves, not detached tensors
        """
        if args:
            errors.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
            )
            destination = args[0] if destination is None else destination
            if len(args) > 1 and prefix == "":
                prefix = args[1]
            if len(args) > 2 and keep_vars is False:
                keep_vars = args[2]
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Take this module's own parameters and buffers, not its children's, out of `state_dict`."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = itertools.chain(
            self._parameters.items(),
            ((k, v) for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set),
        )
        for name, param in [(k, v) for k, v in own if v is not None]:
            key = prefix + name
            if key in state_dict:
                self._load_one(name, param, key, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)

        extra = prefix + EXTRA_STATE
        if self._has_extra_state("set_extra_state"):
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)

        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    head, *rest = key[len(prefix) :].split(".")
                    if rest:
                        if head not in self._modules:
                            unexpected_keys.append(key)
                    elif head not in self._local_state_names():
                        unexpected_keys.append(key)

    def _local_state_names(self):
        names = {k for k, v in self._parameters.items() if v is not None}
        names |= {k for k, v in self._buffers.items() if v is not None and k not in self._non_persistent_buffers_set}
        return names

    def _load_one(self, name, param, key, new, assign, error_msgs):
        if isinstance(new, (np.ndarray, jax.Array)):
            new = _tensor_of(new)
        if not isinstance(new, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", '
                "expected torch.Tensor or Tensor-like object from checkpoint but "
                f"received {type(new)}"
            )
            return
        lazy = is_lazy(param)
        # Checkpoints of version 0.3 and before keep scalars as one-element vectors.
        if not lazy and param.dim() == 0 and new.dim() == 1 and new.shape[0] == 1:
            new = new[0]
        if not lazy and new.shape != param.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {new.shape} from checkpoint, "
                f"the shape in current model is {param.shape}."
            )
            return
        if param.is_meta and not new.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter in the current model, which is a no-op. (Did you mean to "
                "pass `assign=True` to assign items in the state dictionary to their "
                "corresponding key in the module instead of copying them in place?)",
                stacklevel=2,
            )
        try:
            with no_grad():
                if CONVERSION.swap:
                    loaded(param, new, assign)
                    return
                if not assign:
                    param.copy_(new)
                    return
                if isinstance(param, Parameter):
                    if isinstance(new, Parameter):
                        new.requires_grad_(param.requires_grad)
                    else:
                        new = Parameter(new, requires_grad=param.requires_grad)
                setattr(self, name, new)
        except Exception as ex:
            error_msgs.append(
                f'While {"swapping" if CONVERSION.swap else "copying"} the parameter named "{key}", '
                f"whose dimensions in the model are {param.size()} and "
                f"whose dimensions in the checkpoint are {new.size()}, "
                f"an exception occurred : {ex.args}."
            )

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy parameters and buffers from `state_dict` into this module and its descendants.

        Args:
            state_dict: names and tensors, numpy arrays or jax arrays; a dict in it, or a list, holds the names below its own
            strict: the names must be exactly this module's. Default: True
            assign: take the tensors themselves in the place of the module's, instead of copying. Default: False

        Returns a pair (missing_keys, unexpected_keys).
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        mutations[0] += 1
        missing_keys, unexpected_keys, error_msgs = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(_flat(state_dict, self))  # hooks may edit it
        if metadata is not None:
            state_dict._metadata = metadata

        def load(module, local, prefix=""):
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            module._load_from_state_dict(local, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs)
            for name, child in module._modules.items():
                if child is not None:
                    child_prefix = prefix + name + "."
                    child_state = {k: v for k, v in local.items() if k.startswith(child_prefix)}
                    load(child, child_state, child_prefix)
            incompatible = _IncompatibleKeys(missing_keys, unexpected_keys)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, incompatible) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return "
                        "new values, if incompatible_keys need to be modified, it should be done inplace."
                    )

        load(self, state_dict)
        if strict:
            for kind, keys in (("Unexpected", unexpected_keys), ("Missing", missing_keys)):
                if keys:
                    names = ", ".join(f'"{k}"' for k in keys)
                    error_msgs.insert(0, f"{kind} key(s) in state_dict: {names}. ")
        if error_msgs:
            raise RuntimeError(
                "Error(s) in loading state_dict for {}:\n\t{}".format(self.__class__.__name__, "\n\t".join(error_msgs))
            )
        return _IncompatibleKeys(missing_keys, unexpected_keys)
