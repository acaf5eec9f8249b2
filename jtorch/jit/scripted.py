"""torch.jit.script: functions and modules that run as the Python that they are, with a graph to be looked at and saved."""

import copy
import functools

from ..nn.modules.module import Module
from . import frontend, traced
from .raised import run

__all__ = ["ScriptFunction", "RecursiveScriptModule", "function", "module"]


class ScriptFunction(traced.ScriptFunction):
    """A scripted function: calls run its Python; `.graph` is made when asked for."""

    def __init__(self, fn):
        functools.update_wrapper(self, fn)
        self._scripted = fn
        self.name = self.qualified_name = getattr(fn, "__name__", "forward")

    def __call__(self, *args, **kwargs):
        return run(self._scripted, args, kwargs)

    @functools.cached_property
    def graph(self):
        """Its source as a graph. NotImplementedError: something in it has no place in one."""
        return frontend.graph_of(self._scripted)

    @property
    def inlined_graph(self):
        """The graph: functions that it calls are in it."""
        return self.graph

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return self._scripted.__qualname__

    def __repr__(self):
        return f"<torch.jit.ScriptFunction object at {id(self):#x}>"


def function(fn):
    """A scripted function."""
    return fn if isinstance(fn, traced.ScriptFunction) else ScriptFunction(fn)


class RecursiveScriptModule(traced.RecursiveScriptModule):
    """A scripted module: it has the parameters and buffers of a module, and runs the Python of a copy of it."""

    def __init__(self, of):
        super().__init__()
        inner = copy.copy(of)
        for name, held in of.__dict__.items():
            if isinstance(held, dict) and (name.endswith("_hooks") or name in ("_parameters", "_buffers", "_modules")):
                inner.__dict__[name] = held.copy()
        hooks = {name: held for name, held in inner.__dict__.items() if name.endswith("_hooks")}
        self.__dict__.update(
            hooks, _inner=inner, training=of.training, _parameters=inner._parameters, _buffers=inner._buffers,
            _non_persistent_buffers_set=of._non_persistent_buffers_set,
        )  # fmt: skip
        for name, child in of._modules.items():
            part = self._modules[name] = None if child is None else module(child)
            inner._modules[name] = getattr(part, "_inner", part)

    @property
    def original_name(self) -> str:
        """The name of the class that was scripted."""
        return type(self._inner).__name__

    def extra_repr(self) -> str:
        """The name of the class that was scripted."""
        return f"original_name={self.original_name}"

    def forward(self, *args, **kwargs):
        """Run the module's Python."""
        return run(self._inner.forward, args, kwargs)

    def __getattr__(self, name):
        here = self.__dict__
        for held in ("_parameters", "_buffers", "_modules"):
            if name in here.get(held, ()):
                return here[held][name]
        if "_inner" not in here:
            raise AttributeError(name)
        return getattr(here["_inner"], name)

    def __setattr__(self, name, value):
        if "_inner" not in self.__dict__ or name in self.__dict__:
            super().__setattr__(name, value)
            if name == "training" and "_inner" in self.__dict__:
                self._inner.__dict__["training"] = value
        elif isinstance(value, Module):
            part = self._modules[name] = module(value)
            self._inner._modules[name] = getattr(part, "_inner", part)
        else:
            setattr(self._inner, name, value)

    def __iter__(self):
        iter(self._inner)
        return iter(self._modules if hasattr(self._inner, "keys") else self._modules.values())

    def __len__(self):
        return len(self._inner)

    def __getitem__(self, at):
        return self._modules[at] if isinstance(at, str) else list(self._modules.values())[at]

    def __contains__(self, key):
        return key in self._inner

    def __bool__(self):
        return True  # though it may have a length of 0

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._inner)})

    def graph_of(self, name="forward"):
        """The graph of a method."""
        return frontend.graph_of(getattr(type(self._inner), name), self)

    @property
    def graph(self):
        """The graph of forward; calls of submodules are prim::CallMethod."""
        return self.graph_of()

    @property
    def inlined_graph(self):
        """The graph."""
        return self.graph

    def copy(self):
        """A module with the same tensors."""
        return module(self._inner)

    def __deepcopy__(self, memo):
        made = memo[id(self)] = module(copy.deepcopy(self._inner, memo))
        return made

    def __reduce_ex__(self, protocol):
        raise TypeError("a scripted module is saved with torch.jit.save and not with pickle")


def module(of) -> Module:
    """A scripted module; those that are scripted or traced already stay themselves."""
    return of if isinstance(of, traced.ScriptModule) else RecursiveScriptModule(of)
