"""Modules that hold other modules, or parameters, in order or by name."""

import operator
from collections import OrderedDict
from collections import abc as collections_abc
from itertools import chain, islice

from jtorch.handles import mutations
from jtorch.nn.modules.hooks import everywhere
from jtorch.nn.modules.module import Module, _indent, typename
from jtorch.nn.parameter import Parameter
from jtorch.tensor import Tensor

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _part(container, named):
    """A container of the same class with some of its modules.

    Where that is the library's, it is filled by hand: nothing that anybody has seen is changed, as `mutations` would say of each module.
    """
    kind = type(container)
    if kind is not Sequential and kind is not ModuleList or everywhere.module_registration:
        return kind(OrderedDict(named) if isinstance(container, Sequential) else [module for _, module in named])
    made = kind()
    made.__dict__["_modules"].update(named)
    return made


class Container(Module):
    """Deprecated: a module whose keyword arguments become its submodules."""

    def __init__(self, **kwargs):
        super().__init__()
        for key, value in kwargs.items():
            self.add_module(key, value)


class Sequential(Module):
    """Modules called one after the other, each with the result of the one before.

    Args:
        args: the modules, or one OrderedDict that names them
    """

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for key, module in args[0].items():
                self.add_module(key, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def _key(self, idx):
        n = len(self)
        idx = operator.index(idx)
        if not -n <= idx < n:
            raise IndexError(f"index {idx} is out of range")
        return next(islice(self._modules, idx % n, None))

    def _renumber(self, modules):
        mutations[0] += 1
        self.__dict__["_modules"] = {str(i): module for i, module in enumerate(modules)}

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return _part(self, list(self._modules.items())[idx])
        return self._modules[self._key(idx)]

    def __setitem__(self, idx, module):
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx):
        if isinstance(idx, slice):
            for key in list(self._modules)[idx]:
                delattr(self, key)
        else:
            delattr(self, self._key(idx))
        # The rest is renumbered, so that str indexing stays without holes.
        self._renumber(list(self._modules.values()))

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __dir__(self):
        return [key for key in super().__dir__() if not key.isdigit()]

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {str(type(other))} is given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {str(type(other))} is given."
            )
        for module in list(other):
            self.append(module)
        return self

    def _check_factor(self, other):
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")

    def __mul__(self, other):
        self._check_factor(other)
        return Sequential(*(list(self) * other))

    __rmul__ = __mul__

    def __imul__(self, other):
        self._check_factor(other)
        modules = list(self)
        for _ in range(other - 1):
            for module in modules:
                self.append(module)
        return self

    def forward(self, input):
        for module in self.__dict__["_modules"].values():
            input = module(input)
        return input

    def append(self, module):
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index, module):
        """Put a module before the one at `index`."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self._modules)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        mutations[0] += 1
        index += n if index < 0 else 0
        for i in range(n, index, -1):  # names that are no numbers stay
            self._modules[str(i)] = self._modules[str(i - 1)]
        self._modules[str(index)] = module
        return self

    def extend(self, sequential):
        """Add all modules of an iterable at the end."""
        for module in sequential:
            self.append(module)
        return self

    def pop(self, key):
        """Remove a module and return it."""
        value = self[key]
        del self[key]
        return value


class ModuleList(Module):
    """A list of modules, properly registered.

    Args:
        modules: an iterable of modules
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self += modules

    def _key(self, idx):
        n = len(self)
        idx = operator.index(idx)
        if not -n <= idx < n:
            raise IndexError(f"index {idx} is out of range")
        return str(idx % n)

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return _part(self, [(str(i), module) for i, module in enumerate(list(self._modules.values())[idx])])
        return self._modules[self._key(idx)]

    def __setitem__(self, idx, module):
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx):
        modules = list(self._modules.values())
        if not isinstance(idx, slice):
            idx = int(self._key(idx))
        del modules[idx]
        mutations[0] += 1
        self.__dict__["_modules"] = {str(i): module for i, module in enumerate(modules)}

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        both = ModuleList()
        for i, module in enumerate(chain(self, other)):
            both.add_module(str(i), module)
        return both

    def __dir__(self):
        return [key for key in super().__dir__() if not key.isdigit()]

    def __repr__(self):
        """Runs of equal modules are shown once."""
        reprs = [repr(item) for item in self]
        if not reprs:
            return self._get_name() + "()"
        runs = []
        for i, text in enumerate(reprs):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = []
        for start, end, text in runs:
            label = f"({start})" if start == end else f"({start}-{end})"
            count = "" if start == end else f"{end - start + 1} x "
            lines.append(_indent(f"{label}: {count}{text}", 2))
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"

    def insert(self, index, module):
        """Put a module before the one at `index`."""
        for i in range(len(self._modules), index, -1):
            self._modules[str(i)] = self._modules[str(i - 1)]
        mutations[0] += 1
        self._modules[str(index)] = module

    def append(self, module):
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key):
        """Remove a module and return it."""
        value = self[key]
        del self[key]
        return value

    def extend(self, modules):
        """Add all modules of an iterable at the end."""
        if not isinstance(modules, collections_abc.Iterable):
            raise TypeError("ModuleList.extend should be called with an iterable, but got " + type(modules).__name__)
        offset = len(self)
        for i, module in enumerate(modules):
            self.add_module(str(offset + i), module)
        return self


class ModuleDict(Module):
    """A dictionary of modules, properly registered.

    Args:
        modules: a mapping from names to modules, or an iterable of pairs
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        mutations[0] += 1
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Remove all modules."""
        mutations[0] += 1
        self._modules.clear()

    def pop(self, key):
        """Remove a module and return it."""
        value = self[key]
        del self[key]
        return value

    def keys(self):
        """The names."""
        return self._modules.keys()

    def items(self):
        """Pairs (name, module)."""
        return self._modules.items()

    def values(self):
        """The modules."""
        return self._modules.values()

    def update(self, modules):
        """Add the modules of a mapping or of an iterable of pairs."""
        if not isinstance(modules, collections_abc.Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an "
                "iterable of key/value pairs, but got " + type(modules).__name__
            )
        if isinstance(modules, (OrderedDict, ModuleDict, collections_abc.Mapping)):
            for key, module in modules.items():
                self[key] = module
            return
        for i, pair in enumerate(modules):
            if not isinstance(pair, collections_abc.Iterable):
                raise TypeError(
                    "ModuleDict update sequence element #" + str(i) + " should be Iterable; is" + type(pair).__name__
                )
            if len(pair) != 2:
                raise ValueError(
                    "ModuleDict update sequence element #"
                    + str(i)
                    + " has length "
                    + str(len(pair))
                    + "; 2 is required"
                )
            self[pair[0]] = pair[1]


def _as_parameter(value):
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _describe(value, kind=None) -> str:
    if isinstance(value, Tensor):
        size = "x".join(str(n) for n in value.size())
        where = "" if value.device.type == "cpu" else f" ({value.device})"
        name = "Parameter" if isinstance(value, Parameter) else "Tensor"
        if kind == "list":
            return f"{name} containing: [{value.dtype} of size {size}{where}]"
        return f"{name} containing: [{typename(value)} of size {size}{where}]"
    return f"Object of type: {type(value).__name__}"


class ParameterList(Module):
    """A list of parameters (tensors become parameters; other objects are kept as they are).

    Args:
        values: an iterable
    """

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    _key = ModuleList._key

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            out = self.__class__()
            for i in range(*idx.indices(len(self))):
                out.append(self[i])
            return out
        return getattr(self, self._key(idx))

    def __setitem__(self, idx, param):
        setattr(self, self._key(idx), _as_parameter(param))

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def __iadd__(self, parameters):
        return self.extend(parameters)

    def __dir__(self):
        return [key for key in super().__dir__() if not key.isdigit()]

    def append(self, value):
        """Add a value at the end."""
        new = len(self)
        self._size += 1
        self[new] = value
        return self

    def extend(self, values):
        """Add all values of an iterable at the end."""
        if not isinstance(values, collections_abc.Iterable) or isinstance(values, Tensor):
            raise TypeError("ParameterList.extend should be called with an iterable, but got " + type(values).__name__)
        for value in values:
            self.append(value)
        return self

    def extra_repr(self):
        return "\n".join(f"  ({i}): {_describe(p, 'list')}" for i, p in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters (tensors become parameters; other objects are kept as they are).

    Args:
        parameters: a mapping, or an iterable of pairs
    """

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def _attr(self, key):
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is "
                f"not a string (type is '{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key):
        return getattr(self, self._attr(key))

    def __setitem__(self, key, value):
        self._keys[key] = None
        setattr(self, self._attr(key), _as_parameter(value))

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._attr(key))

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def copy(self):
        """A new ParameterDict with the same parameters."""
        return ParameterDict(OrderedDict((k, self[k]) for k in self._keys))

    def setdefault(self, key, default=None):
        """The value of `key`, which becomes `default` if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        """Remove everything."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key):
        """Remove a value and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Remove the pair (key, value) added last and return it."""
        key, _ = self._keys.popitem()
        self._keys[key] = None
        value = self[key]
        del self[key]
        return key, value

    def get(self, key, default=None):
        """The value of `key`, or `default`."""
        return self[key] if key in self else default

    def fromkeys(self, keys, default=None):
        """A new ParameterDict in which all `keys` have the value `default`."""
        return ParameterDict((k, default) for k in keys)

    def keys(self):
        """The names."""
        return self._keys.keys()

    def items(self):
        """Pairs (name, value)."""
        return ((k, self[k]) for k in self._keys)

    def values(self):
        """The values."""
        return (self[k] for k in self._keys)

    def update(self, parameters):
        """Add the values of a mapping (a plain dict in the order of its keys) or of an iterable of pairs."""
        if not isinstance(parameters, collections_abc.Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an "
                "iterable of key/value pairs, but got " + type(parameters).__name__
            )
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            for key, value in parameters.items():
                self[key] = value
            return
        if isinstance(parameters, collections_abc.Mapping):
            for key, value in sorted(parameters.items()):
                self[key] = value
            return
        for i, pair in enumerate(parameters):
            if not isinstance(pair, collections_abc.Iterable):
                raise TypeError(
                    "ParameterDict update sequence element #" + str(i) + " should be Iterable; is" + type(pair).__name__
                )
            if len(pair) != 2:
                raise ValueError(
                    "ParameterDict update sequence element "
                    "#" + str(i) + " has length " + str(len(pair)) + "; 2 is required"
                )
            self[pair[0]] = pair[1]

    def extra_repr(self):
        return "\n".join(f"  ({k}): {_describe(p)}" for k, p in self.items())

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other):
        both = self.copy()
        both.update(other)
        return both

    def __ror__(self, other):
        both = other.copy()
        both.update(self)
        return both

    def __ior__(self, other):
        self.update(other)
        return self
