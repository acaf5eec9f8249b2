"""The graph of an ONNX file while it grows: its nodes, its constants, and what is known of each value.

Sources: https://onnx.ai/onnx/operators/, https://onnx.ai/onnx/repo-docs/IR.html
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from ..convert import as_numpy
from ..core import dtype as dtypes
from ..tensor import Tensor

OPSET = 20  # the operators' version that the translations are written for
IR_VERSION = 10

TYPES = {
    dtypes.float32: TensorProto.FLOAT, dtypes.float64: TensorProto.DOUBLE, dtypes.float16: TensorProto.FLOAT16, dtypes.bfloat16: TensorProto.BFLOAT16,
    dtypes.bool_: TensorProto.BOOL, dtypes.uint8: TensorProto.UINT8, dtypes.int8: TensorProto.INT8, dtypes.int16: TensorProto.INT16,
    dtypes.int32: TensorProto.INT32, dtypes.int64: TensorProto.INT64, dtypes.uint16: TensorProto.UINT16, dtypes.uint32: TensorProto.UINT32,
    dtypes.uint64: TensorProto.UINT64, dtypes.complex64: TensorProto.COMPLEX64, dtypes.complex128: TensorProto.COMPLEX128,
    dtypes.float8_e4m3fn: TensorProto.FLOAT8E4M3FN, dtypes.float8_e5m2: TensorProto.FLOAT8E5M2,
}  # fmt: skip


class Value:
    """A value of the graph: its name, its dtype, and the shape that it has for the example inputs."""

    __slots__ = ("name", "dtype", "shape")

    def __init__(self, name: str, dtype: dtypes.dtype, shape: tuple):
        self.name, self.dtype, self.shape = name, dtype, tuple(shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


class Builder:
    """Adds nodes and constants. `dtype` and `shape` are those of the result of the call that is being translated.

    dynamic: whether some sizes may change. Then no size but those that are given as numbers may be written down.
    """

    def __init__(self, dynamic: bool):
        self.dynamic = dynamic
        self.nodes, self.initializers = [], []
        self.names = set()
        self.constants = {}
        self.arrays = {}  # of initializers, by name
        self.dtype, self.shape = None, ()

    def name(self, wanted: str) -> str:
        """`wanted`, or with a number behind it where that is taken."""
        name, k = wanted, 0
        while name in self.names:
            k += 1
            name = f"{wanted}_{k}"
        self.names.add(name)
        return name

    def node(self, kind: str, inputs, count: int = 1, **attributes) -> list[str]:
        """Add a node; returns the names of its results. An input None is left out; a number or an array is a constant."""
        given = ["" if x is None else self.value(x).name for x in inputs]
        while given and not given[-1]:  # onnxruntime dies of an empty name at the end
            given.pop()
        outs = [self.name(f"val_{len(self.names)}") for _ in range(count)]
        attributes = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(kind, given, outs, name=f"node_{kind}_{len(self.nodes)}", **attributes))
        return outs

    def __call__(self, kind: str, *inputs, dtype=None, shape=None, **attributes) -> Value:
        """Add a node of one result, which is like the first input where nothing else is said."""
        first = inputs[0] if inputs and isinstance(inputs[0], Value) else None
        [name] = self.node(kind, inputs, **attributes)
        dtype = dtype or (first.dtype if first else self.dtype)
        return Value(name, dtype, (first.shape if first else self.shape) if shape is None else shape)

    def value(self, x, dtype=None) -> Value:
        """A value as it is; a tensor, array or number as a constant, of `dtype` if that is given."""
        if isinstance(x, Value):
            return x if dtype is None or x.dtype is dtype else self.cast(x, dtype)
        if isinstance(x, Tensor):
            return self.value(self.constant("constant", x), dtype)
        array = np.asarray(x if dtype is None else np.asarray(x).astype(dtype.np))
        if dtype is None and isinstance(x, float):
            array = array.astype(np.float32)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            self.constants[key] = self.constant(f"const_{len(self.constants)}", array)
        return self.constants[key]

    def constant(self, name: str, x) -> Value:
        """An initializer, of a tensor or an array."""
        name = self.name(name)
        array = as_numpy(x.detach()) if isinstance(x, Tensor) else x
        array = np.ascontiguousarray(array).reshape(array.shape)
        proto = numpy_helper.from_array(array, name)
        self.initializers.append(proto)
        self.arrays[name] = array
        return Value(name, dtypes.of(array.dtype), array.shape)

    def cast(self, x: Value, dtype: dtypes.dtype) -> Value:
        """`x` with another dtype."""
        if x.dtype is dtype:
            return x
        return self("Cast", x, dtype=dtype, to=TYPES[dtype])

    def ints(self, sizes) -> Value:
        """Sizes as one tensor of int64: numbers, or values of which some are computed."""
        if all(isinstance(n, int) for n in sizes):
            return self.value(np.array(sizes, np.int64))
        parts = [
            self.value(np.array([n], np.int64))
            if isinstance(n, int)
            else self("Reshape", n, np.array([1], np.int64), shape=(1,))
            for n in sizes
        ]
        return self("Concat", *parts, axis=0, shape=(len(parts),)) if len(parts) > 1 else parts[0]

    def size(self, x: Value, dim: int):
        """A size: a number, or a value where sizes may change."""
        dim %= x.ndim
        if not self.dynamic:
            return x.shape[dim]
        found = self("Shape", x, start=dim, end=dim + 1, dtype=dtypes.int64, shape=(1,))
        return self("Squeeze", found, dtype=dtypes.int64, shape=())

    def sizes(self, x: Value) -> Value:
        """All sizes, as one tensor."""
        if not self.dynamic:
            return self.ints(list(x.shape))
        return self("Shape", x, dtype=dtypes.int64, shape=(x.ndim,))

    def reshape(self, x: Value, sizes, shape=None) -> Value:
        """`x` in another shape; `sizes` may hold one -1. shape: what it is for the example inputs, if not the call's."""
        if shape is None:
            shape = self.shape
        zero = any(isinstance(n, int) and n == 0 for n in sizes)
        return self("Reshape", x, self.ints(list(sizes)), shape=shape, allowzero=1 if zero else None)

    def unsqueeze(self, x: Value, *dims) -> Value:
        """Sizes of 1 put in at `dims`, which count in the result and are not negative."""
        if x.name in self.arrays:
            return self.value(np.expand_dims(self.arrays[x.name], dims))
        shape = list(x.shape)
        for d in sorted(dims):
            shape.insert(d, 1)
        return self("Unsqueeze", x, np.array(dims, np.int64), shape=shape)

    def squeeze(self, x: Value, *dims) -> Value:
        """Sizes of 1 taken out."""
        dims = [d % x.ndim for d in dims]
        return self("Squeeze", x, np.array(dims, np.int64), shape=[n for d, n in enumerate(x.shape) if d not in dims])

    def transpose(self, x: Value, *order) -> Value:
        """Dimensions in another order."""
        return self("Transpose", x, perm=list(order), shape=[x.shape[d] for d in order])

    def slice(self, x: Value, dim: int, start, end, step: int = 1) -> Value:
        """A slice along one dimension."""
        dim %= x.ndim
        known = isinstance(start, int) and isinstance(end, int)
        if known and x.name in self.arrays:
            return self.value(self.arrays[x.name][(slice(None),) * dim + (slice(start, end, step),)])
        bounds = [self.ints([n]) for n in (start, end, dim, step)]
        n = len(range(x.shape[dim])[start:end:step]) if known else x.shape[dim]
        return self("Slice", x, *bounds, shape=(*x.shape[:dim], n, *x.shape[dim + 1 :]))

    def concat(self, values, dim: int) -> Value:
        """Values put together along one dimension."""
        if len(values) == 1:
            return values[0]
        if all(v.name in self.arrays for v in values):
            return self.value(np.concatenate([self.arrays[v.name] for v in values], dim))
        dim %= values[0].ndim
        shape = [*values[0].shape[:dim], sum(v.shape[dim] for v in values), *values[0].shape[dim + 1 :]]
        return self("Concat", *values, axis=dim, shape=shape)
