"""What torch.export says of classes in its inputs, and of ATen's decompositions."""

from ..utils import _pytree
from . import errors
from .capturing import export

__all__ = ["default_decompositions", "draft_export", "register_dataclass", "unflatten"]


def register_dataclass(cls, *, serialized_type_name: str | None = None) -> None:
    """Have inputs and results of this class be taken apart into their fields."""
    _pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)


def draft_export(
    mod, args, kwargs=None, *, dynamic_shapes=None, preserve_module_call_signature=(), strict=False, prefer_deferred_runtime_asserts_over_guards=False
):  # fmt: skip
    """`export`: what cannot be captured raises here too."""
    return export(mod, args, kwargs, dynamic_shapes=dynamic_shapes, strict=strict)


def default_decompositions():
    """An empty table: ATen's operators are left whole."""
    return {}


def unflatten(module, flat_args_adapter=None):
    """Raises NotImplementedError: the modules that a call came from are not kept."""
    raise errors.unflattened()
