"""ONNXProgram: an ONNX model, and the program of torch that it was made from."""

import contextlib
import os

import numpy as np
import onnx
from onnx import helper
from onnx.external_data_helper import set_external_data

from ..autograd.mode import no_grad
from ..convert import as_numpy
from ..creation import as_tensor
from ..files.saving import replacing
from ..tensor import Tensor
from ..utils import _pytree
from . import errors
from .builder import IR_VERSION, OPSET, TYPES
from .exporting import library
from .sizes import names_of
from .translate import Translation
from .versions import converted

_EXTERNAL = 1024  # bytes of an initializer from which on it goes to the file beside the model


class ONNXProgram:
    """What `torch.onnx.export` returns.

    exported_program: the program of torch. model_proto: the model, of the package onnx; model: the same.
    """

    def __init__(self, program, input_names=(), output_names=(), names=(), opset_version=None):
        self.exported_program = program
        self.model_proto = converted(_model(program, input_names, output_names, names), opset_version)
        self._session = None

    @property
    def model(self):
        """The model."""
        return self.model_proto

    def optimize(self) -> None:
        """Nothing: what parameters alone decide is folded already."""

    def _inputs(self, args, kwargs):
        leaves = self.exported_program.flatten(args, kwargs)
        given = [x for x, check in zip(leaves, self.exported_program.checks) if check[0] != "value"]
        return {i.name: as_numpy(x.detach()) for i, x in zip(self.model_proto.graph.input, given)}

    def call_reference(self, *args, **kwargs):
        """The results by onnx's own evaluator (numpy): slow, and without another package."""
        from onnx.reference import ReferenceEvaluator  # noqa: PLC0415  takes long to import

        found = ReferenceEvaluator(self.model_proto).run(None, self._inputs(args, kwargs))
        return _tensors(found)

    def initialize_inference_session(self, initializer=None) -> None:
        """Make the session of onnxruntime that a call uses; `initializer(bytes or path)` makes another one.

        ModuleNotFoundError: the package onnxruntime is not installed.
        """
        model = self.model_proto.SerializeToString()
        if initializer is None:
            runtime = library("onnxruntime", "onnxruntime")
            self._session = runtime.InferenceSession(model, providers=runtime.get_available_providers())
        else:
            self._session = initializer(model)

    def __call__(self, *args, **kwargs):
        """The results by onnxruntime, as a tuple of tensors."""
        if self._session is None:
            self.initialize_inference_session()
        return _tensors(self._session.run(None, self._inputs(args, kwargs)))

    def release(self) -> None:
        """Let the session of onnxruntime go."""
        self._session = None

    def verify(self, rtol=1e-3, atol=1e-4) -> None:
        """Compare the results for the example inputs with the module's. OnnxExporterError: they differ."""
        args, kwargs = self.exported_program.example_inputs
        want = [
            x for x in _pytree.tree_leaves(self.exported_program.module()(*args, **kwargs)) if isinstance(x, Tensor)
        ]
        for k, (w, found) in enumerate(zip(want, self.call_reference(*args, **kwargs))):
            if not np.allclose(as_numpy(w.detach()), as_numpy(found), rtol, atol, equal_nan=True):
                raise errors.different(k)

    def save(
        self, destination, *, include_initializers=True, keep_initializers_as_inputs=False, external_data=None
    ) -> None:
        """Write the model to a path or a file open for bytes.

        external_data: whether larger initializers go to a file of the same name and ".data"; None: where the model would not fit
        into one file of 2 GB.
        """
        model = onnx.ModelProto()
        model.CopyFrom(self.model_proto)
        graph = model.graph
        if keep_initializers_as_inputs or not include_initializers:
            graph.input.extend(
                helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in graph.initializer
            )
        if not include_initializers:
            del graph.initializer[:]
        if hasattr(destination, "write"):
            destination.write(model.SerializeToString())
            return
        path = os.fspath(destination)
        if external_data is None:
            external_data = sum(len(t.raw_data) for t in graph.initializer) > 2**31 - 2**20
        large = [t for t in graph.initializer if len(t.raw_data) >= _EXTERNAL] if external_data else ()
        with contextlib.ExitStack() as files:  # both are written before either takes its place
            if large:
                _move_apart(large, files.enter_context(replacing(path + ".data")), os.path.basename(path) + ".data")
            files.enter_context(replacing(path)).write(model.SerializeToString())

    def __repr__(self):
        return f"ONNXProgram(\n{onnx.printer.to_text(self.model_proto)}\n)"


def _tensors(arrays):
    return tuple(as_tensor(np.array(x)) for x in arrays)


def _move_apart(initializers, file, name):
    """Move the bytes of initializers to an open file of that name."""
    at = 0
    for t in initializers:
        gap = -at % 64
        file.write(bytes(gap) + t.raw_data)
        set_external_data(t, name, offset=at + gap, length=len(t.raw_data))
        at += gap + len(t.raw_data)
        t.ClearField("raw_data")


def _model(program, input_names, output_names, names):
    found = Translation(program)
    sizes = names_of(program, names)
    graph, results = _graph(found, input_names, output_names, sizes)
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="jtorch",
    )
    if found.builder.dynamic:
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        _settle(model.graph.output, results, program, sizes)
    onnx.checker.check_model(model)
    return model


def _graph(found, input_names, output_names, sizes):
    builder = found.builder
    renamed = {v.name: n for v, n in zip(found.inputs, input_names)}
    fixed = {v.name for v in found.inputs} | {t.name for t in builder.initializers}
    results = []
    for k, (x, own) in enumerate(found.outputs):
        value = builder.value(x)
        if value.name in fixed or any(value is c for c in builder.constants.values()):
            value = builder("Identity", value)  # an input, a constant, or a result that comes out twice
        fixed.add(value.name)
        results.append(value)
        name = output_names[k] if k < len(output_names) else own
        renamed[value.name] = name if name not in builder.names else builder.name(name)
    for node in builder.nodes:
        node.input[:] = [renamed.get(n, n) for n in node.input]
        node.output[:] = [renamed.get(n, n) for n in node.output]
    used = {n for node in builder.nodes for n in node.input}
    constants = [t for t in builder.initializers if t.name in used]
    inputs = [_info(renamed.get(v.name, v.name), v, shape) for v, shape in zip(found.inputs, sizes)]
    outputs = [_info(renamed[v.name], v, None if builder.dynamic else list(v.shape)) for v in results]
    return helper.make_graph(builder.nodes, "main_graph", inputs, outputs, constants), results


def _info(name, value, shape):
    return helper.make_tensor_value_info(name, TYPES[value.dtype], shape)


def _settle(outputs, values, program, sizes):
    """Sizes of results that onnx could not tell: named as the inputs' that they follow, or by names of their own."""
    known = {n for shape in sizes for n in shape}
    unsure = []
    for k, (info, value) in enumerate(zip(outputs, values)):
        if len(info.type.tensor_type.shape.dim) != value.ndim:
            info.CopyFrom(_info(info.name, value, [None] * value.ndim))
        for d, dim in enumerate(info.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value") and dim.dim_param not in known:
                dim.dim_param = f"{info.name}_dim_{d}"
                unsure.append((k, d, dim))
    for name in sorted(n for n in known if isinstance(n, str)) if unsure else ():
        shapes = _shapes_with(program, sizes, name)
        if shapes is not None:
            size, shapes = shapes
            for k, d, dim in unsure:
                if values[k].shape[d] == size and shapes[k][d] == size + 1:
                    dim.dim_param = name


def _shapes_with(program, sizes, name):
    """(a size, the shapes of the results where it is one more); None where the program does not hold for that."""
    leaves, spec = _pytree.tree_flatten(program.example_inputs)
    rows, size = iter(sizes), None
    for k, leaf in enumerate(leaves):
        if not isinstance(leaf, Tensor):
            continue
        for d, n in enumerate(next(rows)):
            if n == name:
                size = leaf.shape[d]
                leaf = leaf.index_select(d, as_tensor(np.minimum(np.arange(size + 1), size - 1)))
        leaves[k] = leaf
    args, kwargs = _pytree.tree_unflatten(leaves, spec)
    try:
        with no_grad():
            found = _pytree.tree_leaves(program.module()(*args, **kwargs))
    except (RuntimeError, AssertionError, ValueError, IndexError):
        return None
    return size, [tuple(x.shape) if isinstance(x, Tensor) else () for x in found if isinstance(x, (Tensor, int, float))]
