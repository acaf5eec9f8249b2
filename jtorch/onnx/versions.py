"""Models for another version of ONNX's operators than the translations are written for."""

import warnings

import onnx
from onnx import helper, version_converter

from .builder import OPSET

# Dimensions that are an input since a version, and an attribute before it.
_AXES = {
    "ReduceSum": 13, "Squeeze": 13, "Unsqueeze": 13,
    **dict.fromkeys(("ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSumExp"), 18),
}  # fmt: skip
# Operators that mean something else before a version, though they look the same.
_CHANGED = {"GridSample": 20, "Pad": 19}


def converted(model, version):
    """The model with the operators of `version`, or as it is, with a warning, where that cannot be."""
    if version is None or version == OPSET:
        return model
    found = _lowered(model, version) if version < OPSET else None
    if found is not None:
        return found
    try:
        return version_converter.convert_version(model, version)
    except RuntimeError as error:
        warnings.warn(
            f"The model could not be converted to opset {version} ({str(error).strip()[:200]}); it has opset {OPSET}.",
            UserWarning,
            stacklevel=4,
        )
        return model


def _lowered(model, version):
    """The model with an earlier version, if its operators are the same there but for how they are written; else None."""
    low = onnx.ModelProto()
    low.CopyFrom(model)
    del low.opset_import[:]
    low.opset_import.append(helper.make_opsetid("", version))
    low.ir_version = helper.find_min_ir_version_for(low.opset_import)
    constants = {t.name: t for t in low.graph.initializer}
    for node in low.graph.node:
        if version < _AXES.get(node.op_type, 0) and len(node.input) > 1:
            axes = constants.get(node.input[1])
            if axes is None:
                return None
            node.attribute.append(helper.make_attribute("axes", onnx.numpy_helper.to_array(axes).tolist()))
            del node.input[1:]
        if version < _CHANGED.get(node.op_type, 0) and not _plain_pad(node):
            return None
        if version < 13 and node.op_type in ("Softmax", "LogSoftmax") and not _last(node):
            return None
    used = {name for node in low.graph.node for name in node.input}
    kept = [t for t in low.graph.initializer if t.name in used]
    del low.graph.initializer[:]
    low.graph.initializer.extend(kept)
    try:
        onnx.checker.check_model(low, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return None
    return low


def _plain_pad(node) -> bool:
    return node.op_type == "Pad" and all(a.name != "mode" or a.s != b"wrap" for a in node.attribute)


def _last(node) -> bool:
    """Whether a softmax goes along the last dimension, where the earlier one, over all from a dimension on, is the same."""
    return any(a.name == "axis" and a.i == -1 for a in node.attribute)
