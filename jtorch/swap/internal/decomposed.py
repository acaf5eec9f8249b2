"""torch.ao.quantization.fx._decomposed: quantisation in plain operators, `torch.ops.quantized_decomposed`.

https://docs.pytorch.org/docs/stable/quantization.html
"""

from ... import functions as torch
from ...autograd.function import Function
from ...core.dtype import ALL
from ...creation import as_tensor
from ...library import Library
from ...limits import iinfo

__all__ = [
    "choose_qparams_per_token", "choose_qparams_per_token_asymmetric", "choose_qparams_symmetric_tensor", "choose_qparams_tensor",
    "convert_element_type", "dequantize_per_channel", "dequantize_per_channel_group", "dequantize_per_tensor",
    "dequantize_per_tensor_tensor", "dequantize_per_tensor_tensor2", "dequantize_per_token", "fake_quant_per_channel",
    "quantize_per_channel", "quantize_per_channel_group", "quantize_per_tensor", "quantize_per_tensor_tensor",
    "quantize_per_tensor_tensor2", "quantize_per_token", "quantized_decomposed_lib",
]  # fmt: skip

quantized_decomposed_lib = Library("quantized_decomposed", "DEF")
_FLOATS = tuple(ALL[n] for n in ("float16", "float32", "bfloat16"))
_INTEGERS = tuple(ALL[n] for n in ("uint8", "int8", "uint16", "int16", "int32"))
_FLOAT8 = tuple(ALL[n] for n in ("float8_e5m2", "float8_e4m3fn"))
_PER = "Tensor input, {0} scale, {1} zero_point, {2} quant_min, {2} quant_max, ScalarType dtype"
_OUT = ", *, ScalarType? out_dtype=None"


def _operator(schema):
    """Define an operator and register the function for it."""

    def register(fn):
        name = schema.partition("(")[0]
        quantized_decomposed_lib.define(schema)
        quantized_decomposed_lib.impl(name, fn, "CompositeExplicitAutograd")
        return fn

    return register


def _check_bounds(quant_min, quant_max, dtype):
    if dtype in _INTEGERS:
        low, high = iinfo(dtype).min, iinfo(dtype).max
        low, high = (-(2**31), 2**31 - 1) if dtype is ALL["int32"] else (low, high)
    elif dtype in _FLOAT8:
        return
    else:
        raise ValueError(f"Unsupported dtype: {dtype}")
    if quant_min < low:
        raise AssertionError(f"quant_min out of bounds for dtype, quant_min_lower_bound: {low} quant_min: {quant_min}")
    if quant_max > high:
        raise AssertionError(f"quant_max out of bounds for dtype, quant_max_upper_bound: {high} quant_max: {quant_max}")


def _as_float(input):
    """The input in float32, which shorter floats are quantised in."""
    input = input.to(ALL["float32"]) if input.dtype in (ALL["float16"], ALL["bfloat16"]) else input
    if input.dtype is not ALL["float32"]:
        raise AssertionError(f"Expecting input to have dtype torch.float32, but got dtype: {input.dtype}")
    return input


def _check_quantized(input, dtype):
    if input.dtype is not dtype:
        raise AssertionError(f"Expecting input to have dtype: {dtype}, but got {input.dtype}")


def _rounded(input, inverse, zero_point, quant_min, quant_max, dtype):
    return ((input * inverse).round() + zero_point).clamp(quant_min, quant_max).to(dtype)


@_operator(f"quantize_per_tensor({_PER.format('float', 'int', 'int')}) -> Tensor")
def quantize_per_tensor(input, scale, zero_point, quant_min, quant_max, dtype):
    """round(input / scale) + zero_point, within the bounds."""
    input = _as_float(input)
    _check_bounds(quant_min, quant_max, dtype)
    return _rounded(input, 1.0 / scale, zero_point, quant_min, quant_max, dtype)


def _one(name, x):
    if x.numel() != 1:
        raise AssertionError(f"Expecting {name} tensor to be one element, but received : {x.numel()}")
    return x.item()


@_operator(f"quantize_per_tensor.tensor({_PER.format('Tensor', 'Tensor', 'int')}) -> Tensor")
def quantize_per_tensor_tensor(input, scale, zero_point, quant_min, quant_max, dtype):
    """quantize_per_tensor, scale and zero point as tensors of one element."""
    scale, zero_point = _one("scale", scale), _one("zero_point", zero_point)
    return quantize_per_tensor(input, scale, zero_point, quant_min, quant_max, dtype)


@_operator(f"quantize_per_tensor.tensor2({_PER.format('Tensor', 'Tensor', 'Tensor')}) -> Tensor")
def quantize_per_tensor_tensor2(input, scale, zero_point, quant_min, quant_max, dtype):
    """quantize_per_tensor, all of it as tensors of one element."""
    return quantize_per_tensor_tensor(input, scale, zero_point, quant_min.item(), quant_max.item(), dtype)


@_operator(f"dequantize_per_tensor({_PER.format('float', 'int', 'int')}{_OUT}) -> Tensor")
def dequantize_per_tensor(input, scale, zero_point, quant_min, quant_max, dtype, *, out_dtype=None):
    """(input - zero_point) * scale."""
    _check_quantized(input, dtype)
    if dtype not in (*_INTEGERS, *_FLOAT8):
        raise ValueError(f"Unsupported dtype in dequantize_per_tensor: {dtype}")
    return (input.to(out_dtype or ALL["float32"]) - zero_point) * scale


@_operator(f"dequantize_per_tensor.tensor({_PER.format('Tensor', 'Tensor', 'int')}{_OUT}) -> Tensor")
def dequantize_per_tensor_tensor(input, scale, zero_point, quant_min, quant_max, dtype, *, out_dtype=None):
    """dequantize_per_tensor, scale and zero point as tensors of one element."""
    scale, zero_point = _one("scale", scale), _one("zero_point", zero_point)
    return dequantize_per_tensor(input, scale, zero_point, quant_min, quant_max, dtype, out_dtype=out_dtype)


@_operator(f"dequantize_per_tensor.tensor2({_PER.format('Tensor', 'Tensor', 'Tensor')}{_OUT}) -> Tensor")
def dequantize_per_tensor_tensor2(input, scale, zero_point, quant_min, quant_max, dtype, *, out_dtype=None):
    """dequantize_per_tensor, all of it as tensors of one element."""
    low, high = quant_min.item(), quant_max.item()
    return dequantize_per_tensor_tensor(input, scale, zero_point, low, high, dtype, out_dtype=out_dtype)


def _chosen(low, high, quant_min, quant_max, eps, symmetric):
    """(scale, zero point) of a range."""
    low, high = low.clamp(max=0).reshape(1), high.clamp(min=0).reshape(1)
    if symmetric:
        scale = (torch.maximum(-low, high) / (float(quant_max - quant_min) / 2)).clamp(min=eps)
        return scale.to(ALL["float64"]), torch.zeros_like(scale).to(ALL["int64"])
    scale = ((high - low) / float(quant_max - quant_min)).clamp(min=eps)
    zero = (quant_min - (low / scale).round().to(ALL["int64"])).clamp(quant_min, quant_max)
    return scale.to(ALL["float64"]), zero


def _check_chosen(input, quant_min, quant_max):
    if input.dtype not in _FLOATS:
        raise AssertionError(f"Expecting input to have dtype torch.float32/16/b16, but got dtype: {input.dtype}")
    if not quant_min <= 0 <= quant_max:
        raise AssertionError("Used-specified quantization range must include 0.")
    if not quant_min < quant_max:
        raise AssertionError("qmin must be strictly less than qmax for user-specified quantization range.")


_CHOOSE = "(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)"


@_operator(f"choose_qparams.tensor{_CHOOSE}")
def choose_qparams_tensor(input, qmin, qmax, eps, dtype):
    """(scale, zero point) with which the bounds cover the input's range and zero."""
    _check_chosen(input, qmin, qmax)
    low, high = torch.aminmax(input)
    return _chosen(low, high, qmin, qmax, eps, False)


@_operator(f"choose_qparams_symmetric.tensor{_CHOOSE}")
def choose_qparams_symmetric_tensor(input, qmin, qmax, eps, dtype):
    """(scale, zero): choose_qparams with the range on both sides of zero."""
    _check_chosen(input, qmin, qmax)
    low, high = torch.aminmax(input)
    return _chosen(low, high, qmin, qmax, eps, True)


def _along(x, axis, ndim):
    """A vector along one dimension of `ndim`."""
    return x.view([-1 if d == axis % ndim else 1 for d in range(ndim)])


_BY_CHANNEL = "Tensor input, Tensor scales, Tensor{} zero_points, int axis, int quant_min, int quant_max"


@_operator(f"quantize_per_channel({_BY_CHANNEL.format('')}, ScalarType dtype) -> Tensor")
def quantize_per_channel(input, scales, zero_points, axis, quant_min, quant_max, dtype):
    """quantize_per_tensor with a scale and zero point for each place along a dimension."""
    input = _as_float(input)
    if axis >= input.dim():
        raise AssertionError(f"Expecting axis to be < {input.dim()}")
    _check_bounds(quant_min, quant_max, dtype)
    inverse, zero = 1.0 / _along(scales, axis, input.dim()), _along(zero_points, axis, input.dim())
    return _rounded(input, inverse, zero, quant_min, quant_max, dtype)


@_operator(f"dequantize_per_channel({_BY_CHANNEL.format('?')}, ScalarType dtype{_OUT}) -> Tensor")
def dequantize_per_channel(input, scales, zero_points, axis, quant_min, quant_max, dtype, *, out_dtype=None):
    """(input - zero point) * scale, with those of each place along a dimension."""
    _check_quantized(input, dtype)
    if axis >= input.dim():
        raise AssertionError(f"Expecting axis to be < {input.dim()}")
    _check_bounds(quant_min, quant_max, dtype)
    found = input if zero_points is None else input - _along(zero_points, axis, input.dim())
    return (found * _along(scales, axis, input.dim())).to(out_dtype or ALL["float32"])


_TOKEN = "(Tensor input, ScalarType dtype) -> (Tensor, Tensor)"


@_operator(f"choose_qparams_per_token{_TOKEN}")
def choose_qparams_per_token(input, dtype):
    """(scale, zero) of 8 bits for each row, symmetric."""
    scales = input.abs().amax(-1, True)
    if scales.dtype is ALL["float16"]:
        scales = scales.float()  # what is small there has few bits
    if dtype is not ALL["int8"]:
        raise Exception(f"unsupported dtype in choose_qparams_per_token: {dtype}")
    return scales.clamp(min=1e-5).div(127), torch.zeros_like(scales)


@_operator(f"_choose_qparams_per_token_asymmetric_impl{_TOKEN}")
def _choose_qparams_per_token_asymmetric_impl(input, dtype):
    low, high = input.amin(-1, True).clamp(max=0), input.amax(-1, True).clamp(min=0)
    scale = ((high - low) / 255.0).clamp(min=2.0**-23)
    below, above = low / scale, high / scale
    zero = torch.where((-128 + below) + (127 + above) > 0, -128 - below, 127 - above)
    return scale.to(ALL["float64"]), zero.clamp(-128, 127).round().to(ALL["int64"])


@_operator(f"choose_qparams_per_token_asymmetric{_TOKEN}")
def choose_qparams_per_token_asymmetric(input, dtype):
    """(scale, zero point) of 8 bits for each row."""
    return _choose_qparams_per_token_asymmetric_impl(input, dtype)


def _per_token_quant_qparam_dim_check(input, scales, zero_points):
    tokens = input.numel() // input.size(-1)
    for name, x in (("scales", scales), ("zero_points", zero_points)):
        if x.numel() != tokens:
            raise AssertionError(f"num_tokens: {tokens} {name}: {x.size()}")


@_operator(
    "quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype) -> Tensor"
)
def quantize_per_token(input, scales, zero_points, quant_min, quant_max, dtype):
    """quantize_per_tensor with a scale and zero point for each row."""
    _check_bounds(quant_min, quant_max, dtype)
    _per_token_quant_qparam_dim_check(input, scales, zero_points)
    found = input.mul(1.0 / scales).add(zero_points).round().clamp(quant_min, quant_max)
    return found.to(dtype)


@_operator(
    "dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, "
    "ScalarType output_dtype) -> Tensor"
)
def dequantize_per_token(input, scales, zero_points, quant_min, quant_max, dtype, output_dtype=ALL["float32"]):
    """(input - zero point) * scale, with those of each row."""
    return ((input - zero_points) * scales).to(output_dtype)


_GROUP = (
    "Tensor input, Tensor scales, Tensor{} zero_points, int quant_min, int quant_max, ScalarType dtype, int group_size"
)


def _groups(input, scales, zero_points, group_size):
    """(the input in rows of one group, scales, zero points of each)."""
    if not (group_size == input.shape[-1] and scales.shape[-1] == 1):
        if group_size <= 1:
            raise AssertionError(f"group_size must be > 1, got {group_size}")
        if input.shape[-1] % group_size:
            raise AssertionError("input.shape[-1] must be divisible by group_size")
        if input.dim() != 2:
            raise AssertionError(f"input must be 2D, got {input.dim()}D")
    zero = None if zero_points is None else zero_points.reshape(-1, 1)
    return input.reshape(-1, group_size), scales.reshape(-1, 1), zero


@_operator(f"quantize_per_channel_group({_GROUP.format('')}) -> Tensor")
def quantize_per_channel_group(input, scales, zero_points, quant_min, quant_max, dtype, group_size=128):
    """quantize_per_tensor with a scale and zero point for each group of neighbours in a row."""
    rows, scale, zero = _groups(input, scales, zero_points, group_size)
    return rows.div(scale).add(zero).round().clamp(quant_min, quant_max).to(dtype).reshape_as(input)


@_operator(f"dequantize_per_channel_group({_GROUP.format('?')}, ScalarType output_dtype) -> Tensor")
def dequantize_per_channel_group(
    w_int8, scales, zero_points, quant_min, quant_max, dtype, group_size=128, output_dtype=ALL["float32"]
):
    """(input - zero point) * scale, with those of each group."""
    rows, scale, zero = _groups(w_int8, scales, zero_points, group_size)
    found = rows if zero is None else rows.sub(zero.to(output_dtype))
    return found.mul(scale).reshape_as(w_int8).to(output_dtype)


class FakeQuantPerChannel(Function):
    """Quantised and back, with the gradient of what lies within the bounds."""

    @staticmethod
    def forward(ctx, input, scales, zero_points, axis, quant_min, quant_max):
        """See fake_quant_per_channel."""
        if scales.dtype is not ALL["float32"]:
            scales = scales.to(ALL["float32"])
        inverse, zero = 1.0 / _along(scales, axis, input.dim()), _along(as_tensor(zero_points), axis, input.dim())
        levels = (input * inverse).round() + zero
        ctx.save_for_backward((levels >= quant_min).logical_and(levels <= quant_max))
        return (levels.clamp(quant_min, quant_max) - zero) * _along(scales, axis, input.dim())

    @staticmethod
    def backward(ctx, gy):
        """The gradient where nothing was cut off."""
        (within,) = ctx.saved_tensors
        return gy * within, None, None, None, None, None


@_operator(f"fake_quant_per_channel({_BY_CHANNEL.format('')}) -> Tensor")
def fake_quant_per_channel(input, scales, zero_points, axis, quant_min, quant_max):
    """quantize_per_channel and back, differentiable."""
    return FakeQuantPerChannel.apply(input, scales, zero_points, axis, quant_min, quant_max)


@_operator("convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor")
def convert_element_type(input, dtype):
    """The input in another dtype."""
    return input.to(dtype)
