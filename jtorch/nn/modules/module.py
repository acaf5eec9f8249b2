"""Module: a tree of parameters, buffers and submodules with a forward."""

import importlib
import inspect
import itertools
import warnings
from collections import OrderedDict

from jtorch import functions as torch
from jtorch.autograd.mode import no_grad
from jtorch.convert import typename
from jtorch.core.record import gradients_dropped
from jtorch.handles import mutations
from jtorch.nn.modules.conversion import CONVERSION, arguments_of_to, converted
from jtorch.nn.modules.hooks import (
    HookMixin,
    any_global_call_hook,
    everywhere,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from jtorch.nn.modules.state import StateMixin
from jtorch.nn.modules.unbound import leave_unbound
from jtorch.nn.parameter import Buffer, Parameter
from jtorch.tensor import Tensor

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

# Values of these types are never registered, so assigning them needs no further look.
_PLAIN = frozenset((int, float, bool, str, bytes, tuple, list, dict, set, complex))


def weight_and_bias(module):
    """`module.weight, module.bias`, without the detour that a failed attribute lookup is (1 us on every call)."""
    params = module.__dict__["_parameters"]
    try:
        return params["weight"], params["bias"]
    except KeyError:  # parametrized, or made plain attributes
        return module.weight, module.bias


def _indent(text: str, width: int) -> str:
    return text.replace("\n", "\n" + " " * width)


def _name_error(kind: str, name: str, detail: str = "") -> KeyError:
    if name == "":
        return KeyError(f'{kind} name can\'t be empty string ""')
    return KeyError(f'{kind} name can\'t contain "."{detail}')


class Module(HookMixin, StateMixin):
    """Base class of all layers and models.

    Parameters, buffers and modules that are assigned as attributes are registered: they show in `parameters()`,
    `state_dict()`, `repr`, and follow `to()`, `train()` and so on. A subclass calls `super().__init__()` first and
    defines `forward`.
    """

    dump_patches = False
    training: bool
    call_super_init = False
    _compiled_call_impl = None

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        leave_unbound(cls)

    def __init__(self, *args, **kwargs):
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _backward_pre_hooks=OrderedDict(),
            _backward_hooks=OrderedDict(),
            _is_full_backward_hook=None,
            _forward_hooks=OrderedDict(),
            _forward_hooks_with_kwargs=OrderedDict(),
            _forward_hooks_always_called=OrderedDict(),
            _forward_pre_hooks=OrderedDict(),
            _forward_pre_hooks_with_kwargs=OrderedDict(),
            _state_dict_hooks=OrderedDict(),
            _state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_post_hooks=OrderedDict(),
            _modules={},
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # calling

    def forward(self, *input):
        """What a call computes; every subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args, **kwargs):
        d = self.__dict__
        try:
            hooked = (
                d["_forward_hooks"]
                or d["_forward_pre_hooks"]
                or d["_backward_hooks"]
                or d["_backward_pre_hooks"]
                or any_global_call_hook[0]
                or "_compiled_call_impl" in d
            )
        except KeyError as e:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '_backward_hooks'") from e
        if not hooked:
            return self.forward(*args, **kwargs)
        compiled = d.get("_compiled_call_impl")
        if compiled is not None:
            return compiled(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def _call_impl(self, *args, **kwargs):
        return self._call_with_hooks(args, kwargs)

    def compile(self, *args, **kwargs):
        """Compile this module's forward in place; the arguments are those of `compile`."""
        # The package is a floor above, and loaded only where something is compiled.
        compiler = importlib.import_module("jtorch.compile")
        mutations[0] += 1
        self.__dict__["_compiled_call_impl"] = compiler(self._call_impl, *args, **kwargs)

    # registering

    def register_buffer(self, name, tensor, persistent=True):
        """Add a tensor that is saved and moved with the module but is no parameter.

        Args:
            name: the attribute it can be read as
            tensor: the tensor, or None for a buffer that is absent (and not in the state_dict)
            persistent: whether it is part of the `state_dict`. Default: True
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"buffer name should be a string. Got {typename(name)}")
        if "." in name or name == "":
            raise _name_error("buffer", name)
        if hasattr(self, name) and name not in self._buffers:
            raise KeyError(f"attribute '{name}' already exists")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        for hook in everywhere.buffer_registration.values():
            new = hook(self, name, tensor)
            if new is not None:
                tensor = new
        mutations[0] += 1
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name, param):
        """Add a parameter, or None for one that is absent (and not in the state_dict)."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"parameter name should be a string. Got {typename(name)}")
        if "." in name or name == "":
            raise _name_error("parameter", name)
        if hasattr(self, name) and name not in self._parameters:
            raise KeyError(f"attribute '{name}' already exists")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model "
                    f"parameters must be created explicitly. To express '{name}' "
                    "as a function of another Tensor, compute the value in "
                    "the forward() method."
                )
            for hook in everywhere.parameter_registration.values():
                new = hook(self, name, param)
                if new is not None:
                    param = new
        mutations[0] += 1
        self._parameters[name] = param

    def add_module(self, name, module):
        """Add a submodule under `name`."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {typename(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name or name == "":
            raise _name_error("module", name, f", got: {name}")
        self._put_module(name, module)

    def register_module(self, name, module):
        """Another name of add_module."""
        self.add_module(name, module)

    def _put_module(self, name, module):
        for hook in everywhere.module_registration.values():
            new = hook(self, name, module)
            if new is not None:
                module = new
        mutations[0] += 1
        self.__dict__["_modules"][name] = module

    def __getattr__(self, name):
        d = self.__dict__
        if "_parameters" in d:
            found = d["_parameters"]
            if name in found:
                return found[name]
            found = d["_modules"]
            if name in found:
                return found[name]
            found = d["_buffers"]
            if name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        d = self.__dict__
        params, modules, buffers = d.get("_parameters"), d.get("_modules"), d.get("_buffers")
        if params is not None:
            mutations[0] += 1
            if type(value) in _PLAIN and not (name in params or name in modules or name in buffers):
                mutations[1] += 1
                object.__setattr__(self, name, value)
                return
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, d, buffers, modules)
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, d, params, buffers)
            self._put_module(name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            self._put_module(name, value)
        elif isinstance(value, Buffer) or (buffers is not None and name in buffers):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            if buffers is None:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            if isinstance(value, Buffer):
                persistent = value.persistent
            else:
                persistent = name not in self._non_persistent_buffers_set
            self._put_buffer(name, value, persistent)
        else:
            mutations[1] += params is not None
            object.__setattr__(self, name, value)

    def _put_buffer(self, name, value, persistent):
        register = self.register_buffer
        own = getattr(register, "__func__", None) is not Module.register_buffer
        if not own or "persistent" in inspect.signature(register).parameters:
            register(name, value, persistent)
        elif persistent:  # a subclass's, from before there was such an argument
            register(name, value)
        else:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements "
                "register_buffer() without the persistent argument is not allowed."
            )

    def _forget(self, name, *places):
        for place in places:
            place.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name):
        mutations[0] += 1
        for place in (self._parameters, self._buffers, self._modules):
            if name in place:
                del place[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    # finding by dotted name

    def get_submodule(self, target):
        """The submodule with the dotted name `target`; the module itself for the empty string."""
        module = self
        for item in target.split(".") if target else ():
            if not hasattr(module, item):
                raise AttributeError(f"{module._get_name()} has no attribute `{item}`")
            module = getattr(module, item)
            if not isinstance(module, Module):
                raise AttributeError(f"`{item}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Put `module` in the place with the dotted name `target`.

        With `strict` there must be a module in that place already.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if hasattr(parent, name):
            if not isinstance(getattr(parent, name), Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        elif strict:
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        setattr(parent, name, module)

    def _get_member(self, target):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return module, name, getattr(module, name)

    def get_parameter(self, target):
        """The parameter with the dotted name `target`."""
        _, name, param = self._get_member(target)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target):
        """The buffer with the dotted name `target`."""
        module, name, buffer = self._get_member(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    # walking

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_prefix, module in modules:
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield (module_prefix + "." if module_prefix else "") + name, value

    def parameters(self, recurse=True):
        """All parameters, each once."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Pairs (dotted name, parameter)."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """All buffers, each once."""
        for _, buf in self.named_buffers(recurse=recurse):
            yield buf

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Pairs (dotted name, buffer)."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self):
        """The direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self):
        """Pairs (name, direct submodule)."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate=True):
        """This module and all its descendants, each once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Pairs (dotted name, module), this module first under the name `prefix`."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)

    def apply(self, fn):
        """Call `fn` on every submodule, then on this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # converting

    def _apply(self, fn, recurse=True):
        """Replace every parameter's, gradient's and buffer's data by `fn` of it; parameters stay the same objects."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        mutations[0] += 1
        for name, param in list(self._parameters.items()):
            if param is None:
                continue
            with no_grad():
                new = fn(param)
                # a tensor of another layout cannot lie in the same object
                if CONVERSION.swap or CONVERSION.overwrite or new.layout is not param.layout:
                    converted(self, name, param, new, fn)
                    continue
                param.data = new
                grad = param.grad
                if grad is not None:
                    grad.data = fn(grad)
        for name, buf in self._buffers.items():
            if buf is not None:
                self._buffers[name] = fn(buf)
        return self

    def cuda(self, device=None):
        """Move parameters and buffers to a GPU."""
        return self._apply(lambda t: t.cuda(device))

    def xpu(self, device=None):
        """Move parameters and buffers to an XPU."""
        return self._apply(lambda t: t.xpu(device))

    def ipu(self, device=None):
        """Move parameters and buffers to an IPU."""
        return self._apply(lambda t: t.ipu(device))

    def mtia(self, device=None):
        """Move parameters and buffers to an MTIA device."""
        return self._apply(lambda t: t.mtia(device))

    def cpu(self):
        """Move parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def type(self, dst_type):
        """Cast all parameters and buffers to `dst_type`."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self):
        """Cast floating-point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self):
        """Cast floating-point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self):
        """Cast floating-point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self):
        """Cast floating-point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def to_empty(self, *, device, recurse=True):
        """Move to a device without copying values: the new memory is uninitialised."""
        return self._apply(lambda t: torch.empty_like(t, device=device), recurse=recurse)

    def to(self, *args, **kwargs):
        """Move and/or cast in place: `to(device, dtype)`, `to(dtype)`, `to(tensor)`, `to(memory_format=...)`.

        Only floating-point and complex tensors are cast; integers and bools keep their dtype.
        """
        device, dtype, options, memory_format = arguments_of_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
                )
            if dtype.is_complex:
                warnings.warn(
                    "Complex modules are a new feature under active development whose design may change, "
                    "and some modules might not work as expected when using complex tensors as parameters or buffers. "
                    "Please file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml "
                    "if a complex module does not work as expected.",
                    stacklevel=2,
                )

        def convert(t):
            wanted = dict(options)
            if device is not None:
                wanted["device"] = device
            if dtype is not None and (t.is_floating_point() or t.is_complex()):
                wanted["dtype"] = dtype
            if memory_format is not None and t.dim() in (4, 5):
                wanted["memory_format"] = memory_format
            try:
                return t.to(**wanted) if wanted else t
            except NotImplementedError as e:
                if str(e) == "Cannot copy out of meta tensor; no data!":
                    raise NotImplementedError(
                        f"{e} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() "
                        "when moving module from meta to a different device."
                    ) from None
                raise

        return self._apply(convert)

    def share_memory(self):
        """Put parameters and buffers into memory that other processes can share."""
        return self._apply(lambda t: t.share_memory_())

    # training

    def train(self, mode=True):
        """Set training mode (or evaluation, with False) here and in all descendants."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Set evaluation mode: `train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Set `requires_grad` of all parameters."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Drop all gradients, or set them to zero with `set_to_none=False`."""
        for p in self.parameters():
            if p.grad is None:
                continue
            if set_to_none:
                p.grad = None
                continue
            if p.grad.grad_fn is not None:
                p.grad.detach_()
            else:
                p.grad.requires_grad_(False)
            p.grad.zero_()
        gradients_dropped()

    # showing

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """What `repr` shows between the parentheses besides the submodules."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [f"({name}): {_indent(repr(m), 2)}" for name, m in self._modules.items()]
        if len(extra_lines) == 1 and not child_lines:
            body = extra_lines[0]
        elif extra_lines or child_lines:
            body = "\n  " + "\n  ".join(extra_lines + child_lines) + "\n"
        else:
            body = ""
        return f"{self._get_name()}({body})"

    def __dir__(self):
        names = itertools.chain(dir(type(self)), self.__dict__, self._parameters, self._modules, self._buffers)
        return sorted(n for n in names if not n[0].isdigit())

    # copying

    def __getstate__(self):
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state):
        mutations[0] += 1
        self.__dict__.update(state)
        for name in (
            "_forward_pre_hooks",
            "_forward_pre_hooks_with_kwargs",
            "_forward_hooks_with_kwargs",
            "_forward_hooks_always_called",
            "_state_dict_hooks",
            "_state_dict_pre_hooks",
            "_load_state_dict_pre_hooks",
            "_load_state_dict_post_hooks",
            "_backward_pre_hooks",
        ):
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def _replicate_for_data_parallel(self):
        replica = self.__new__(type(self))
        replica.__dict__.update(self.__dict__)
        replica.__dict__["_parameters"] = {}
        replica.__dict__["_buffers"] = dict(self._buffers)
        replica.__dict__["_modules"] = dict(self._modules)
        replica.__dict__["_is_replica"] = True
        return replica
