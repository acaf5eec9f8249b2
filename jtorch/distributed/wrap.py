"""torch.distributed.fsdp.wrap: the policies that choose which submodules are wrapped. Wrapping by them works with any class of module."""

import contextlib

from ..nn.modules import attention, container
from ..nn.modules.module import Module

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy", "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy", "wrap",
]  # fmt: skip


def always_wrap_policy(*args, **kwargs) -> bool:
    """True."""
    return True


def lambda_auto_wrap_policy(module, recurse, nonwrapped_numel, lambda_fn) -> bool:
    """Whether lambda_fn(module) holds."""
    return True if recurse else lambda_fn(module)


def transformer_auto_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls) -> bool:
    """Whether the module is of one of these classes."""
    return True if recurse else isinstance(module, tuple(transformer_layer_cls))


def _or_policy(module, recurse, nonwrapped_numel, policies) -> bool:
    """Whether one of the policies holds."""
    return any(
        policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies
    )  # fmt: skip


def size_based_auto_wrap_policy(
    module, recurse, nonwrapped_numel, min_num_params=int(1e8), force_leaf_modules=None, exclude_wrap_modules=None
) -> bool:
    """Whether the parameters that are not wrapped yet are so many."""
    leaves = size_based_auto_wrap_policy.FORCE_LEAF_MODULES if force_leaf_modules is None else force_leaf_modules
    excluded = (
        size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES if exclude_wrap_modules is None else exclude_wrap_modules
    )
    many = nonwrapped_numel >= min_num_params
    return many and not isinstance(module, tuple(leaves if recurse else excluded))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {container.ModuleList, container.ModuleDict}
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {attention.MultiheadAttention}


class ModuleWrapPolicy:
    """The policy by which modules of these classes are wrapped."""

    def __init__(self, module_classes):
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def __call__(self, module, recurse, *args, **kwargs):
        """Whether the module is of one of them."""
        return True if recurse else isinstance(module, tuple(self._module_classes))

    def __repr__(self):
        return f"{super().__repr__()}({self._module_classes_str})"


class CustomPolicy:
    """The policy by which a function decides: what it returns is False, True, or the options of the wrapper."""

    def __init__(self, lambda_fn):
        self._lambda_fn = lambda_fn


_wrapping: list = []


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls, **wrapper_kwargs):
    """Context: `wrap` wraps by this class with these options."""
    _wrapping.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _wrapping.pop()


def wrap(module: Module, **wrap_overrides) -> Module:
    """The module, wrapped by the class of the `enable_wrap` around this call; as it is where there is none."""
    if not _wrapping:
        return module
    wrapper, options = _wrapping[-1]
    return wrapper(module, **{**options, **wrap_overrides})
