"""Calling an op: find its plan, read the operands, record the node, wrap the result, put it on the tape."""

from .call import KeyTensor, inplace, slow
from .fused import Update
from .generate import FAST, build_inplace, copy_of, forget_plans, function_of, spread
from .kinds import of_tensor
from .plans import RETURN_FIELDS, result_dtype, return_type
from .results import finish
from .twins import twin
from .view import call_view
from .write import (
    cast_value,
    check_inplace,
    copy_to_out,
    overlaps,
    overwritten,
    write,
    write_on_tape,
    zeros_value,
)

__all__ = [
    "Update",
    "FAST",
    "RETURN_FIELDS",
    "KeyTensor",
    "build_inplace",
    "call_view",
    "cast_value",
    "check_inplace",
    "copy_of",
    "copy_to_out",
    "finish",
    "forget_plans",
    "function_of",
    "inplace",
    "of_tensor",
    "overlaps",
    "overwritten",
    "result_dtype",
    "return_type",
    "slow",
    "spread",
    "twin",
    "write",
    "write_on_tape",
    "zeros_value",
]
