"""torch.nn.utils._named_member_accessor: parameters and modules of a module, by dotted names."""

from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ...tensor import Tensor

__all__ = ["NamedMemberAccessor", "set_tensor", "swap_submodule", "swap_tensor"]
_MISSING = object()


def set_tensor(module, name, tensor) -> None:
    """Put a tensor in the place of a parameter, buffer or attribute of this name, whatever it is."""
    swap_tensor(module, name, tensor, allow_missing=True)


def swap_tensor(module, name, tensor, allow_missing=False):
    """The tensor of this name, in whose place another one is put (none, if it is the mark of one that was missing)."""
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not _MISSING and not isinstance(tensor, Tensor) and tensor is not None:
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if "." in name or not name:
        raise KeyError(f'tensor name can\'t contain "." or be empty, got {name!r}')
    table = next((t for t in (module._parameters, module._buffers) if name in t), module.__dict__)
    found = table.get(name, _MISSING)
    if found is _MISSING and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    if tensor is _MISSING:
        table.pop(name, None)
    elif isinstance(tensor, Parameter) and table is module.__dict__:
        module.register_parameter(name, tensor)
    else:
        table[name] = tensor
    return found


def swap_submodule(module, name, submodule):
    """The module of this name, in whose place another one is put."""
    if name not in module._modules:
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    found, module._modules[name] = module._modules[name], submodule
    return found


class NamedMemberAccessor:
    """The parts of a module by dotted names: "layer.0.weight"."""

    def __init__(self, module):
        self.module = module

    def _owner(self, name):
        path, _, last = name.rpartition(".")
        return self.get_submodule(path), last

    def get_submodule(self, name):
        return self.module.get_submodule(name)

    def swap_submodule(self, path, value):
        owner, last = self._owner(path)
        return swap_submodule(owner, last, value)

    def get_tensor(self, name):
        owner, last = self._owner(name)
        found = getattr(owner, last)
        if not isinstance(found, Tensor) and found is not None:
            raise TypeError(f"{found} is not an instance of torch.Tensor")
        return found

    def set_tensor(self, name, value) -> None:
        owner, last = self._owner(name)
        set_tensor(owner, last, value)

    def del_tensor(self, name) -> None:
        owner, last = self._owner(name)
        swap_tensor(owner, last, _MISSING)

    def swap_tensor(self, name, value, allow_missing=False):
        owner, last = self._owner(name)
        return swap_tensor(owner, last, value, allow_missing)

    def get_tensors(self, names) -> list:
        return [self.get_tensor(n) for n in names]

    def set_tensors(self, names, values) -> None:
        self.set_tensors_dict(dict(zip(names, values, strict=True)))

    def set_tensors_dict(self, named_tensors) -> None:
        for n, v in named_tensors.items():
            self.set_tensor(n, v)

    def del_tensors(self, names) -> None:
        for n in names:
            self.del_tensor(n)

    def swap_tensors(self, names, values, allow_missing=False) -> list:
        return [self.swap_tensor(n, v, allow_missing) for n, v in zip(names, values, strict=True)]

    def swap_tensors_dict(self, named_tensors, allow_missing=False):
        """({name: the tensor before}, names that were missing)."""
        found = {n: self.swap_tensor(n, v, True) for n, v in named_tensors.items()}
        missing = [n for n, v in found.items() if v is _MISSING]
        if missing and not allow_missing:
            raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        return found, missing

    def check_keys(self, keys):
        """(names that are missing, names that are unknown)."""
        given, have = set(keys), {n for n, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(have - given), sorted(given - have)

    def named_parameters(self, remove_duplicate=True):
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate=True):
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate=True):
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate=True):
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)
