"""torch.onnx without an exporter: nothing is ever being exported, and asking for it says what to do."""

import contextlib
import enum

from .. import errors

__all__ = [
    "OnnxExporterError",
    "export",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]


class OnnxExporterError(RuntimeError):
    """What an export raises."""


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
    """False."""
    return False


def export(model, args=(), f=None, **options):
    """Raises NotImplementedError: models are not written as ONNX."""
    raise errors.unsupported("export to ONNX", instead="jax.export of the jitted function, or jax2tf and tf2onnx")


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version) -> None:
    """Accepted: nothing is exported."""


def unregister_custom_op_symbolic(symbolic_name, opset_version) -> None:
    """Accepted: nothing is exported."""


def select_model_mode_for_export(model, mode):
    """Context: accepted."""
    return contextlib.nullcontext()
