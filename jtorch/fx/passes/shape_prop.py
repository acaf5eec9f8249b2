"""ShapeProp: runs a graph once and notes shape, dtype and strides at its nodes."""

from typing import NamedTuple

from ...core.dtype import dtype
from ...core.spec import Size
from ...creation import channels_last, channels_last_3d, contiguous_format
from ...tensor import Tensor
from ..interpreter import Interpreter
from ..node import map_aggregate


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values."""

    shape: Size
    dtype: dtype
    requires_grad: bool
    stride: tuple
    memory_format: object = None
    is_quantized: bool = False
    qparams: dict = {}


def _extract_tensor_metadata(result, include_contiguity=True) -> TensorMetadata:
    """The metadata of a tensor."""
    formats = (contiguous_format, channels_last, channels_last_3d) if include_contiguity else ()
    lying = next((f for f in formats if result.is_contiguous(memory_format=f)), None)
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), lying)


class ShapeProp(Interpreter):
    """An interpreter that leaves `tensor_meta` and `type` in the meta of each node."""

    def __init__(self, gm, fake_mode=None):
        super().__init__(gm)

    def run_node(self, n):
        """Run a node and note what it gave."""
        result = super().run_node(n)
        seen = []

        def note(x):
            if isinstance(x, Tensor):
                seen.append(x)
                return _extract_tensor_metadata(x)
            return x

        meta = map_aggregate(result, note)
        if seen:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args):
        """Run the graph on inputs; its result."""
        return self.run(*args)


__all__ = ["ShapeProp", "TensorMetadata"]
