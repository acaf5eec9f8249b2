"""torch.types: names for annotations."""

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

from .core.device import Device as _Device
from .core.dtype import dtype as _dtype
from .core.spec import Size as _Size
from .storage_api import UntypedStorage as Storage
from .tensor import Tensor

__all__ = ["Device", "FileLike", "Number", "Storage"]

_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
_size: TypeAlias = _Size | list[int] | tuple[int, ...]
_symsize = _size
_dispatchkey: TypeAlias = str
_device, _dtype, _layout, _qscheme = _Device, _dtype, Any, Any

Number: TypeAlias = int | float | bool
PySymType: TypeAlias = int | float | bool
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool
py_sym_types = (int, float, bool)
Device: TypeAlias = _Device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrTensorsOrGradEdge: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
