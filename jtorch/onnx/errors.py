"""What torch.onnx refuses, in words."""

from ..errors import unsupported


class OnnxExporterError(RuntimeError):
    """A model cannot be written as ONNX."""


class UnsupportedOperatorError(OnnxExporterError):
    """An operator has no translation."""


def no_operator(name) -> UnsupportedOperatorError:
    return UnsupportedOperatorError(
        f"Exporting the operator {name!r} to ONNX is not supported by jtorch\n"
        "  use operators that ONNX has, or jax.export for a program that jax runs"
    )


def arguments(name, error) -> UnsupportedOperatorError:
    return UnsupportedOperatorError(
        f"Exporting the operator {name!r} to ONNX is not supported with these arguments: {error}"
    )


def option(name, why) -> UnsupportedOperatorError:
    return UnsupportedOperatorError(f"Exporting the operator {name!r} to ONNX is not supported {why}")


def shared_write(node) -> OnnxExporterError:
    return OnnxExporterError(
        f"{node.name} writes in place to a tensor that is seen again through another view, which ONNX cannot express\n"
        "  write to a copy (clone), or compute the result out of place"
    )


def no_package(name, extra) -> ModuleNotFoundError:
    return ModuleNotFoundError(f"No module named {name!r}: torch.onnx needs it\n  pip install {extra}", name=name)


def foreign_translations() -> NotImplementedError:
    return unsupported(
        "custom_translation_table: its functions are of onnxscript", "operators of torch in the module's forward"
    )


def different(k) -> OnnxExporterError:
    return OnnxExporterError(f"The result {k} of the ONNX model is not what the module computes for the example inputs")
