"""Stands for torch.onnx.symbolic_opset9 and its successors: no operator has an ONNX form here."""

from .symbolic_helper import parse_args

__all__ = ["parse_args"]
