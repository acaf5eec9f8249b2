"""Linear layers and cells with weights of 8 or 16 bits, and how their scales are chosen: plain arithmetic on dense tensors.

The arithmetic is FBGEMM's: activations are rounded to 8 bits by their own range at each call, products are whole numbers.
D. Khudia et al., FBGEMM: Enabling High-Performance Low-Precision Deep Learning Inference, 2021.
"""

import math

import numpy as np

from . import errors_extend
from .core import dtype as dtypes
from .creation import tensor
from .functions import lookup

__all__ = [
    "choose_qparams_optimized", "fbgemm_linear_fp16_weight", "fbgemm_linear_fp16_weight_fp32_activation", "fbgemm_linear_int8_weight",
    "fbgemm_linear_int8_weight_fp32_activation", "fbgemm_linear_quantize_weight", "fbgemm_pack_gemm_matrix_fp16",
    "fbgemm_pack_quantized_matrix", "fused_moving_avg_obs_fake_quant", "quantized_gru_cell", "quantized_lstm_cell",
    "quantized_rnn_relu_cell", "quantized_rnn_tanh_cell",
]  # fmt: skip

_SMALLEST = 6.1e-5


def _grid(low, high, qmin, qmax, symmetric=False):
    """(scale, zero point) with which [qmin, qmax] holds the numbers from low to high, and zero exactly."""
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    if symmetric and low < 0 < high:
        below, above = -((qmax - qmin) // 2) - 1, (qmax - qmin) // 2
        half = max(abs(low / below), abs(high / above))
        low, high = half * below, half * above
    scale = (high - low) / (qmax - qmin)
    if np.float32(scale) == 0 or math.isinf(1 / np.float32(scale)):
        scale = 0.1
    if scale < _SMALLEST:
        low, high, scale = (
            (low, _SMALLEST * (qmax - qmin), _SMALLEST) if low == 0
            else (-_SMALLEST * (qmax - qmin), high, _SMALLEST) if high == 0
            else (low * _SMALLEST / scale, high * _SMALLEST / scale, _SMALLEST)
        )  # fmt: skip
    from_low, from_high = qmin - low / scale, qmax - high / scale
    at = from_low if abs(qmin) - abs(low / scale) < abs(qmax) - abs(high / scale) else from_high
    if symmetric and low < 0 < high:
        at = (qmin + qmax) / 2  # rounded to even, as everywhere
    return scale, int(np.clip(np.rint(at), qmin, qmax))


def fbgemm_linear_quantize_weight(input):
    """(the weights rounded to int8, sums of their rows less K times the zero point, scale, zero point)."""
    scale, zero = _grid(input.min().item(), input.max().item(), -128, 127)
    q = (input.float() * (1 / scale) + zero).round().clamp(-128, 127)
    offsets = q.sum(1) - zero * input.shape[1]
    return q.to(dtypes.int8), offsets.to(dtypes.int32), float(np.float32(scale)), zero


def fbgemm_pack_quantized_matrix(input, K=None, N=None):
    """The int8 weights as bytes, for fbgemm_linear_int8_weight."""
    return input.contiguous().view(dtypes.uint8).reshape(-1)


def fbgemm_pack_gemm_matrix_fp16(input):
    """The weights rounded to float16, as bytes, for fbgemm_linear_fp16_weight."""
    half = input.float().clamp(-65504.0, 65504.0).to(dtypes.float16)
    return half.contiguous().view(dtypes.uint8).reshape(-1)


def fbgemm_linear_fp16_weight_fp32_activation(input, packed_weight, bias):
    """input @ weight.T + bias with weights from fbgemm_pack_gemm_matrix_fp16."""
    weight = packed_weight.view(dtypes.float16).reshape(-1, input.shape[-1]).to(input.dtype)
    out = input @ weight.T
    return out if bias is None else out + bias


fbgemm_linear_fp16_weight = fbgemm_linear_fp16_weight_fp32_activation


def fbgemm_linear_int8_weight_fp32_activation(
    input, weight, packed, col_offsets, weight_scale, weight_zero_point, bias
):
    """input @ weight.T + bias in whole numbers: weights from fbgemm_linear_quantize_weight, the input rounded to 8 bits.

    input (*, K), weight (N, K) -> (*, N)
    """
    x = input.float()
    scale, zero = _grid(x.min().item(), x.max().item(), 0, 255)
    q = (x * (1 / np.float32(scale)).item() + zero).round().clamp(0, 255)
    whole = (q - zero).double() @ (weight.double() - weight_zero_point).T
    return whole.float() * float(np.float32(scale) * np.float32(weight_scale)) + bias


fbgemm_linear_int8_weight = fbgemm_linear_int8_weight_fp32_activation


def _gates(input, hx, weights):
    w_ih, w_hh, b_ih, b_hh, p_ih, p_hh, o_ih, o_hh, s_ih, s_hh, z_ih, z_hh = weights
    return (
        fbgemm_linear_int8_weight(input, w_ih, p_ih, o_ih, s_ih, z_ih, b_ih),
        fbgemm_linear_int8_weight(hx, w_hh, p_hh, o_hh, s_hh, z_hh, b_hh),
    )


def quantized_lstm_cell(input, hx, *weights):
    """torch.lstm_cell with int8 weights: (w_ih, w_hh, b_ih, b_hh, packed twice, column offsets twice, scales, zero points)."""
    i, f, g, o = sum(_gates(input, hx[0], weights)).chunk(4, 1)
    c = f.sigmoid() * hx[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def quantized_gru_cell(input, hx, *weights):
    """torch.gru_cell with int8 weights, given as to quantized_lstm_cell."""
    (ri, zi, ni), (rh, zh, nh) = (g.chunk(3, 1) for g in _gates(input, hx, weights))
    r, z = (ri + rh).sigmoid(), (zi + zh).sigmoid()
    n = (ni + r * nh).tanh()
    return (hx - n) * z + n


def quantized_rnn_relu_cell(input, hx, *weights):
    """torch.rnn_relu_cell with int8 weights, given as to quantized_lstm_cell."""
    return sum(_gates(input, hx, weights)).relu()


def quantized_rnn_tanh_cell(input, hx, *weights):
    """torch.rnn_tanh_cell with int8 weights, given as to quantized_lstm_cell."""
    return sum(_gates(input, hx, weights)).tanh()


def choose_qparams_optimized(input, numel, n_bins, ratio, bit_width):
    """(highest, lowest) number of a grid of 2**bit_width steps: the range is narrowed, from the end where that loses less.

    Greedily, by steps of range / n_bins, as long as more than 1 - ratio of the range is left.
    """
    if numel > input.numel():
        raise errors_extend.too_few(numel, input.numel())
    x = input.detach().cpu().numpy().astype(np.float32).reshape(-1)[:numel]
    f32, low, high = np.float32, x.min(), x.max()
    step = f32((high - low) / f32(n_bins))
    least = f32(n_bins * (1.0 - f32(ratio)))
    best, at_low, at_high = _loss(x, low, high, bit_width), low, high
    current = best
    while at_low + least * step < at_high:
        left, right = _loss(x, at_low + step, at_high, bit_width), _loss(x, at_low, at_high - step, bit_width)
        if left < right:
            current, at_low = left, at_low + step
        else:
            current, at_high = right, at_high - step
        if current < best:
            best, low, high = current, at_low, at_high
    return tensor([float(high)]), tensor([float(low)])


def _loss(x, low, high, bits):
    steps = np.float32(2**bits - 1)
    scale = (high - low) / steps if high != low else np.float32(1)
    q = np.clip(np.rint((x - low) * (np.float32(1) / scale)), 0, steps)
    return np.sqrt(np.sum(np.square(x - (q * scale + low), dtype=np.float32), dtype=np.float32))


def fused_moving_avg_obs_fake_quant(
    self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min, quant_max, ch_axis,
    per_row_fake_quant=False, symmetric_quant=False,
):  # fmt: skip
    """Fake quantization that follows the range of what it sees: running_min, running_max, scale and zero_point are written to.

    observer_on, fake_quant_on: tensors with one element, 1 or 0. per_row_fake_quant: one range for each slice along `ch_axis`, which must be 0.
    """
    if per_row_fake_quant and ch_axis != 0:
        raise errors_extend.fake_axis()
    if observer_on.item() == 1:
        seen = self.detach()
        rows = seen.flatten(1) if per_row_fake_quant else seen.reshape(1, -1)
        for running, now in ((running_min, rows.amin(1)), (running_max, rows.amax(1))):
            if per_row_fake_quant and running.numel() == 0:
                running.resize_(now.shape).fill_(math.inf)
            now = now if per_row_fake_quant else now.reshape(running.shape)
            running.copy_((running + averaging_const * (now - running)).where(~running.isinf(), now))
        found = [
            _grid(a, b, quant_min, quant_max, symmetric_quant)
            for a, b in zip(running_min.reshape(-1).tolist(), running_max.reshape(-1).tolist())
        ]
        for into, k in ((scale, 0), (zero_point, 1)):
            if into.numel() != len(found):
                into.resize_(len(found))
            into.copy_(into.new_tensor([f[k] for f in found]).reshape(into.shape))
    if fake_quant_on.item() != 1:
        return self
    if per_row_fake_quant:
        call = lookup("torch", "fake_quantize_per_channel_affine")
        return call(self, scale, zero_point, ch_axis, quant_min, quant_max)
    return lookup("torch", "fake_quantize_per_tensor_affine")(self, scale, zero_point, quant_min, quant_max)
