"""How each operator is written in ONNX: one short function an operator."""

from . import layers, pointwise, reductions, sequences, shaping
from .record import TABLE

__all__ = ["TABLE", "layers", "pointwise", "reductions", "sequences", "shaping"]
