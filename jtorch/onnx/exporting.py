"""torch.onnx.export: writes a module as an ONNX model. It needs the package onnx (`pip install onnx`)."""

import contextlib
import importlib
import warnings

from .. import export as torch_export
from ..export.program import ExportedProgram
from ..nn.modules.module import Module
from ..tensor import Tensor
from . import errors
from .sizes import changing

running = False  # whether a forward is being captured for ONNX


@contextlib.contextmanager
def _running():
    global running
    before, running = running, True
    try:
        yield
    finally:
        running = before


def library(name, extra="onnx"):
    """A package, imported; ModuleNotFoundError says how to get it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == name.partition(".")[0]:
            raise errors.no_package(name.partition(".")[0], extra) from None
        raise


def export(
    model, args=(), f=None, *, kwargs=None, verbose=None, input_names=None, output_names=None, opset_version=None, dynamo=True, external_data=True,
    dynamic_shapes=None, custom_translation_table=None, report=False, optimize=True, verify=False, profile=False, dump_exported_program=False,
    artifacts_dir=".", export_params=True, keep_initializers_as_inputs=False, dynamic_axes=None, training=None, operator_export_type=None,
    do_constant_folding=True, custom_opsets=None, export_modules_as_functions=False, autograd_inlining=True,
):  # fmt: skip
    """Write a module as an ONNX model; returns the `ONNXProgram`.

    Args:
        model: the module in the mode (eval, mostly) in which it is to run, or an `ExportedProgram`
        args, kwargs: example inputs; a last dict in `args` holds keyword arguments, unless `kwargs` is given
        f: where to write: a path, a file open for bytes, or None. Initializers of a path's model go to `f` + ".data" beside it
            where `external_data` is true
        input_names, output_names: names in their order, in place of the arguments' and of the nodes'
        opset_version: the version of ONNX's operators, 20 if not given; others are converted to by the package onnx
        dynamic_shapes: sizes that may change, as for `torch.export.export`
        dynamic_axes: the same by `input_names`: {name: {dimension: its name}}, or {name: [dimension]}
        verify: compare the results for the example inputs with the module's

    What follows from parameters alone (weight_norm, masks) becomes a constant. Results that are None are left out.

    OnnxExporterError: an operator has no translation, or the forward writes in place to a tensor seen through several views.
    ModuleNotFoundError: the package onnx is not installed. RuntimeError: the forward needs a tensor's value.

    Source: https://docs.pytorch.org/docs/stable/onnx_export.html
    """
    library("onnx")
    if custom_translation_table:
        raise errors.foreign_translations()
    if isinstance(model, ExportedProgram):
        program, names = model, []
    else:
        args, kwargs = _arguments(args, kwargs)
        if isinstance(model, Module) and model.training:
            warnings.warn(
                "Exporting a model while it is in training mode. Dropout and the statistics of batches are part of the result then; "
                "call model.eval() before, if that is not meant.",
                UserWarning,
                stacklevel=2,
            )
        args, kwargs, shapes, names = changing(
            model, args, kwargs, dynamic_shapes, dynamic_axes, list(input_names or [])
        )
        with _running():
            program = torch_export.export(model, args, kwargs, dynamic_shapes=shapes)
    from .program import ONNXProgram  # noqa: PLC0415  needs the package onnx

    made = ONNXProgram(program, list(input_names or []), list(output_names or []), names, opset_version)
    if verify:
        made.verify()
    if f is not None:
        made.save(
            f,
            include_initializers=export_params,
            keep_initializers_as_inputs=keep_initializers_as_inputs,
            external_data=external_data,
        )
    return made


def _arguments(args, kwargs):
    args = (args,) if isinstance(args, Tensor) or not isinstance(args, (list, tuple)) else tuple(args)
    if kwargs is None and args and isinstance(args[-1], dict) and all(isinstance(k, str) for k in args[-1]):
        return args[:-1], dict(args[-1])
    return args, dict(kwargs or {})
