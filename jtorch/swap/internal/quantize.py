"""torch.ao.quantization.quantize_dynamic: layers exchanged for those with weights of 8 or 16 bits."""

import copy

from ... import errors
from ... import functions as torch
from ...nn.modules import linear, rnn
from . import quantized_recurrent
from .quantized_dynamic import Linear

__all__ = ["quantize_dynamic"]

_LAYERS = {
    linear.Linear: Linear,
    **{getattr(rnn, name): getattr(quantized_recurrent, name) for name in quantized_recurrent.__all__},
}


def quantize_dynamic(model, qconfig_spec=None, dtype=None, mapping=None, inplace=False):
    """The model with its linear and recurrent layers as layers with weights of 8 or 16 bits, for evaluation.

    Args:
        qconfig_spec: classes of layers, or names of submodules, to quantize: a set. Default: Linear, LSTM, GRU and the cells
        dtype: torch.qint8 or torch.float16 of the weights
        inplace: change the model itself instead of a copy

    NotImplementedError: configurations (a dict, `mapping`), other dtypes, an LSTM with proj_size.
    """
    dtype = torch.qint8 if dtype is None else dtype
    if dtype not in (torch.qint8, torch.float16):
        raise errors.unsupported(f"quantize_dynamic to {dtype}", "torch.qint8 or torch.float16")
    if isinstance(qconfig_spec, dict) or mapping is not None:
        raise errors.unsupported("quantize_dynamic with configurations", "a set of classes or names: {torch.nn.Linear}")
    wanted = set(_LAYERS) if qconfig_spec is None else set(qconfig_spec)
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    found = [
        (parent, name, child)
        for prefix, parent in model.named_modules()
        for name, child in parent._modules.items()
        if child is not None and _chosen(f"{prefix}.{name}" if prefix else name, child, wanted)
    ]
    for parent, name, child in found:
        if type(child) in _LAYERS:
            parent._modules[name] = _quantized(child, dtype)
    return _quantized(model, dtype) if type(model) in _LAYERS and type(model) in wanted else model


def _quantized(layer, dtype):
    return _LAYERS[type(layer)].from_float(layer, dtype).eval()


def _chosen(path, child, wanted):
    return type(child) in wanted or any(path == w or path.startswith(f"{w}.") for w in wanted if isinstance(w, str))
