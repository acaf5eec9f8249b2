"""torch.onnx: modules written as ONNX models, by way of torch.export."""

import contextlib
import enum

from . import exporting
from .errors import OnnxExporterError, UnsupportedOperatorError
from .exporting import export

__all__ = [
    "OnnxExporterError",
    "UnsupportedOperatorError",
    "export",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]


class OperatorExportTypes(enum.Enum):
    """How operators would be exported."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode(enum.Enum):
    """In which mode a module would be exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class TensorProtoDataType(enum.IntEnum):
    """ONNX's numbers of dtypes."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    BFLOAT16 = 16


def is_in_onnx_export() -> bool:
    """Whether a module's forward is running to be written as ONNX."""
    return exporting.running


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version) -> None:
    """Accepted, without effect: what torch.export captures is translated, for which PyTorch's exporter does not ask these either."""


def unregister_custom_op_symbolic(symbolic_name, opset_version) -> None:
    """Accepted, without effect, as what registers them."""


def select_model_mode_for_export(model, mode):
    """Context: accepted."""
    return contextlib.nullcontext()


def __getattr__(name):
    if name == "ONNXProgram":
        from .program import ONNXProgram  # noqa: PLC0415  needs the package onnx

        return ONNXProgram
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
