"""The operators of torchvision's compiled library, written with jtorch's own: `torch.ops.torchvision.nms` and the like.

The library itself calls PyTorch's C++ code and cannot be loaded; when a program loads it (`torch.ops.load_library`) these are defined.
Regions of interest are read by rows: the image, channels last, is a table with one row for each pixel, and a bin of a region is a
weighted sum of rows, whose weights are products of one factor for each axis.
"""

import numpy as np

from . import errors, functions
from .autograd.entry import grad as grad_of
from .autograd.mode import enable_grad
from .core.dtype import int32
from .creation import arange, full_like, tensor
from .library import Library

_CHUNK = 1 << 24  # elements that are read at once


# Boxes.


def nms(dets, scores, iou_threshold):
    """The indices of the boxes that stay, best score first: a box goes where it overlaps a better one by more than the threshold."""
    if dets.dim() != 2:
        raise RuntimeError(f"boxes should be a 2d tensor, got {dets.dim()}D")
    if dets.shape[1] != 4:
        raise RuntimeError(f"boxes should have 4 elements in dimension 1, got {dets.shape[1]}")
    if scores.dim() != 1:
        raise RuntimeError(f"scores should be a 1d tensor, got {scores.dim()}D")
    if len(dets) != len(scores):
        raise RuntimeError(
            f"boxes and scores should have same number of elements in dimension 0, got {len(dets)} and {len(scores)}"
        )
    boxes, order = dets.detach().cpu().numpy(), np.argsort(-scores.detach().cpu().numpy(), kind="stable")
    low, high = boxes[order, :2], boxes[order, 2:]
    areas = (high - low).prod(1)
    kept, left = [], np.arange(len(order))
    with np.errstate(invalid="ignore", divide="ignore"):
        while len(left):
            first, left = left[0], left[1:]
            kept.append(order[first])
            sides = np.minimum(high[first], high[left]) - np.maximum(low[first], low[left])
            shared = np.maximum(sides, 0).prod(1)
            left = left[~(shared / (areas[first] + areas[left] - shared) > iou_threshold)]
    return tensor(np.array(kept, np.int64), device=dets.device)


# Regions of interest.


def _check(input, rois):
    if rois.dim() != 2 or rois.shape[1] != 5:
        raise RuntimeError("rois must have shape as Tensor[K, 5]")
    if input.dtype != rois.dtype:
        raise RuntimeError(f"input should have the same type as rois, not {input.dtype} beside {rois.dtype}")


def _count_up(n, like):
    return arange(n, device=like.device)


def _samples(start, size, bins, ratio):
    """Where bins of one axis are sampled: (positions [regions, bins, samples], which of them count, how many do)."""
    step = size / bins
    count = full_like(step, ratio) if ratio > 0 else step.ceil()
    k = _count_up(ratio if ratio > 0 else max(int(count.max()) if len(count) else 1, 1), start)
    offset = (k + 0.5) * (step / count)[:, None]
    at = start[:, None, None] + _count_up(bins, start)[:, None] * step[:, None, None] + offset[:, None]
    return at, (k < count[:, None])[:, None], count


def _corners(at, counts, size):
    """The two pixels beside each position and their weights; beyond a pixel's width outside the image the weights are 0."""
    counts = counts & (at >= -1) & (at <= size)
    at = at.clamp(min=0)
    low = at.long().clamp(max=size - 1)
    part = functions.where(low >= size - 1, 0, at - low)
    pixels = functions.cat([low, (low + 1).clamp(max=size - 1)], -1)
    return pixels, functions.where(counts.repeat(1, 1, 2), functions.cat([1 - part, part], -1), 0)


def _weighted(table, base, width, rows, columns):
    """Sums [regions, bins, bins, channels] of the table's rows, at base [regions, bins or 1, bins or 1] plus y * width + x."""
    (y, wy), (x, wx) = rows, columns
    each = y[0].numel() * x[0].numel() * table.shape[1] if len(y) else 1
    step, sums = max(_CHUNK // max(each, 1), 1), []
    for lo in range(0, max(len(y), 1), step):
        part = slice(lo, lo + step)
        at = base[part, :, None, :, None] + y[part, :, :, None, None] * width + x[part, None, None]
        along = (table[at] * wx[part, None, None, :, :, None]).sum(4)
        sums.append((along * wy[part, :, :, None, None]).sum(2))
    return sums[0] if len(sums) == 1 else functions.cat(sums)


def _pixels(input):
    return input.permute(0, 2, 3, 1).flatten(0, 2)


def _pixels_by_bin(input, ph, pw):
    """The table of an image whose channels belong to a bin each: [images * bins * pixels, channels of a bin]."""
    n, c, h, w = input.shape
    if c % (ph * pw):
        raise RuntimeError("input channels must be a multiple of pooling height * pooling width")
    return input.reshape(n, c // (ph * pw), ph, pw, h, w).permute(0, 2, 3, 4, 5, 1).flatten(0, 4)


def _base_by_bin(image, ph, pw, pixels):
    return ((image[:, None, None] * ph + _count_up(ph, image)[:, None]) * pw + _count_up(pw, image)) * pixels


def _channel_map(rois, channels, ph, pw):
    each = arange(channels, dtype=int32, device=rois.device)
    return each.view(channels // (ph * pw), ph, pw).expand(len(rois), -1, -1, -1).contiguous()


def roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    """Averages of samples, interpolated, in each bin of each region (image, x1, y1, x2, y2)."""
    _check(input, rois)
    h, w = input.shape[2:]
    x1, y1, x2, y2 = (rois[:, 1:] * spatial_scale - (0.5 if aligned else 0)).unbind(1)
    high, wide = (y2 - y1, x2 - x1) if aligned else ((y2 - y1).clamp(min=1), (x2 - x1).clamp(min=1))
    y, real_y, county = _samples(y1, high, pooled_height, sampling_ratio)
    x, real_x, countx = _samples(x1, wide, pooled_width, sampling_ratio)
    base = (rois[:, 0].long() * (h * w))[:, None, None]
    sums = _weighted(_pixels(input), base, w, _corners(y, real_y, h), _corners(x, real_x, w))
    return (sums / (county * countx).clamp(min=1)[:, None, None, None]).permute(0, 3, 1, 2).contiguous()


def ps_roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio):
    """`roi_align` where each bin has channels of its own; and the channel that each result is from."""
    _check(input, rois)
    h, w = input.shape[2:]
    table = _pixels_by_bin(input, pooled_height, pooled_width)
    x1, y1, x2, y2 = (rois[:, 1:] * spatial_scale - 0.5).unbind(1)
    y, real_y, county = _samples(y1, y2 - y1, pooled_height, sampling_ratio)
    x, real_x, countx = _samples(x1, x2 - x1, pooled_width, sampling_ratio)
    base = _base_by_bin(rois[:, 0].long(), pooled_height, pooled_width, h * w)
    sums = _weighted(table, base, w, _corners(y, real_y, h), _corners(x, real_x, w))
    count = (county * countx)[:, None, None, None]
    means = functions.where(count > 0, sums / count.clamp(min=1), float("nan")).permute(0, 3, 1, 2).contiguous()
    return means, _channel_map(rois, input.shape[1], pooled_height, pooled_width)


def _span(start, end, bins, least, size, last):
    """The pixels of each bin of one axis: (how many, indices [regions, bins, most], which of them count)."""
    step = (end - start + (1 if least else 0)).clamp(min=1) / bins
    k = _count_up(bins, start)
    first = ((k * step[:, None]).floor() + start[:, None]).clamp(0, last).long()
    beyond = (((k + 1) * step[:, None]).ceil() + start[:, None]).clamp(0, last).long()
    count = (beyond - first).clamp(min=0)
    each = _count_up(max(int(count.max()) if count.numel() else 1, 1), start)
    at = (first[:, :, None] + each).clamp(max=size - 1)
    return count, at, each < count[:, :, None]


def _rounded(rois, spatial_scale):
    scaled = rois[:, 1:] * spatial_scale
    return (scaled.sign() * (scaled.abs() + 0.5).floor()).unbind(1)  # halves away from zero, as in C


def roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    """The largest value in each bin of each region, and its pixel; 0 and -1 where a bin is empty."""
    _check(input, rois)
    h, w = input.shape[2:]
    x1, y1, x2, y2 = _rounded(rois, spatial_scale)
    _, y, real_y = _span(y1, y2, pooled_height, True, h, h)
    _, x, real_x = _span(x1, x2, pooled_width, True, w, w)
    pixel = y[:, :, None, :, None] * w + x[:, None, :, None, :]
    real = (real_y[:, :, None, :, None] & real_x[:, None, :, None, :]).flatten(3)
    pixel, image = pixel.flatten(3), rois[:, 0].long()[:, None, None, None]
    values = functions.where(real[..., None], _pixels(input)[image * (h * w) + pixel], float("-inf"))
    best, at = values.max(3)
    at = pixel[..., None].expand_as(values).gather(3, at[:, :, :, None])[:, :, :, 0]
    there = real.any(3)[..., None]
    best, at = functions.where(there, best, 0), functions.where(there, at, -1).to(int32)
    return best.permute(0, 3, 1, 2).contiguous(), at.permute(0, 3, 1, 2).contiguous()


def ps_roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    """The mean of each bin of each region, where each bin has channels of its own; and the channel that each result is from."""
    h, w = input.shape[2:]
    means = _bin_means(input, rois, spatial_scale, pooled_height, pooled_width, (h - 1, w - 1))
    return means, _channel_map(rois, input.shape[1], pooled_height, pooled_width)


def _bin_means(input, rois, spatial_scale, pooled_height, pooled_width, ends):
    _check(input, rois)
    h, w = input.shape[2:]
    table = _pixels_by_bin(input, pooled_height, pooled_width)
    x1, y1, x2, y2 = _rounded(rois, spatial_scale)
    county, y, real_y = _span(y1, y2, pooled_height, False, h, ends[0])
    countx, x, real_x = _span(x1, x2, pooled_width, False, w, ends[1])
    base = _base_by_bin(rois[:, 0].long(), pooled_height, pooled_width, h * w)
    sums = _weighted(table, base, w, (y, real_y.to(input.dtype)), (x, real_x.to(input.dtype)))
    means = sums / (county[:, :, None] * countx[:, None]).clamp(min=1)[..., None]
    return means.permute(0, 3, 1, 2).contiguous()


# Deformable convolution.


def _taps(at, size):
    """(pixel, weight) of the two neighbours of each position; outside the image the weight is 0."""
    low = at.floor()
    for pixel, weight in ((low, 1 - (at - low)), (low + 1, at - low)):
        there = (pixel >= 0) & (pixel < size)
        yield pixel.clamp(0, size - 1).long(), functions.where(there, weight, 0)


def deform_conv2d(
    input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups,
    use_mask,
):  # fmt: skip
    """A convolution whose taps are read beside their places, by `offset`, and weighed by `mask`."""
    (n, c, h, w), (out, _, kh, kw), (high, wide) = input.shape, weight.shape, offset.shape[2:]
    moved = offset.view(n, offset_groups, kh, kw, 2, high, wide)
    tap_y, tap_x = _count_up(kh, input)[:, None, None, None], _count_up(kw, input)[:, None, None]
    place_y, place_x = _count_up(high, input)[:, None], _count_up(wide, input)
    y = moved[:, :, :, :, 0] + (place_y * stride_h - pad_h + tap_y * dilation_h)
    x = moved[:, :, :, :, 1] + (place_x * stride_w - pad_w + tap_x * dilation_w)
    table = input.view(n, offset_groups, c // offset_groups, h * w).transpose(2, 3).flatten(0, 2)
    base = (_count_up(n * offset_groups, input) * (h * w)).view(n, offset_groups, 1, 1, 1, 1)
    columns = 0
    for row, weight_y in _taps(y, h):
        for column, weight_x in _taps(x, w):
            columns = columns + table[base + row * w + column] * (weight_y * weight_x)[..., None]
    if use_mask:
        columns = columns * mask.view(n, offset_groups, kh, kw, high, wide, 1)
    columns = columns.permute(0, 1, 6, 2, 3, 4, 5).reshape(n, groups, c // groups * kh * kw, high * wide)
    sums = weight.reshape(groups, out // groups, -1) @ columns
    return sums.view(n, out, high, wide) + bias[:, None, None]


# Derivatives under their own names: torchvision registers them for the operators above.


def _pulled(call, inputs, cotangent):
    with enable_grad():
        leaves = [x.detach().requires_grad_() for x in inputs]
        return grad_of(call(*leaves), leaves, cotangent, allow_unused=True)


def _roi_align_backward(
    grad, rois, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width, sampling_ratio, aligned
):
    image = grad.new_zeros(batch_size, channels, height, width)
    settings = spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned
    return _pulled(lambda x: roi_align(x, rois, *settings), [image], grad)[0]


def _roi_pool_backward(
    grad, rois, argmax, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width
):
    plane = (rois[:, 0].long()[:, None] * channels + _count_up(channels, grad))[:, :, None, None] * (height * width)
    at = (plane + argmax.long().clamp(min=0)).flatten()
    image = grad.new_zeros(batch_size * channels * height * width)
    return image.index_add(0, at, (grad * (argmax >= 0)).flatten()).view(batch_size, channels, height, width)


def _ps_roi_align_backward(
    grad, rois, channel_mapping, spatial_scale, pooled_height, pooled_width, sampling_ratio, batch_size, channels,
    height, width,
):  # fmt: skip
    image = grad.new_zeros(batch_size, channels, height, width)
    settings = spatial_scale, pooled_height, pooled_width, sampling_ratio
    return _pulled(lambda x: ps_roi_align(x, rois, *settings)[0], [image], grad)[0]


def _ps_roi_pool_backward(
    grad, rois, channel_mapping, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width
):
    image = grad.new_zeros(batch_size, channels, height, width)
    ends = height, width  # torchvision's forward leaves out the last pixels, its derivative does not
    settings = spatial_scale, pooled_height, pooled_width, ends
    return _pulled(lambda x: _bin_means(x, rois, *settings), [image], grad)[0]


def _deform_conv2d_backward(grad, input, weight, offset, mask, bias, *settings):
    given = [input, weight, offset, mask, bias]
    found = _pulled(lambda *each: deform_conv2d(*each, *settings), given, grad)
    return tuple(functions.zeros_like(x) if g is None else g for x, g in zip(given, found))


def _cuda_version():
    return -1


def _quantized(*args):
    raise errors.unsupported("torchvision's operators on quantized tensors", "floating point tensors")


qnms = qroi_align = _quantized

_ROIS = "Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_GRAD_OF = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_BINS = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_CONV = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, "
    "SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask"
)
_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"roi_align(Tensor input, {_ROIS}, int sampling_ratio, bool aligned) -> Tensor",
    f"_roi_align_backward(Tensor grad, {_ROIS}, {_GRAD_OF}, int sampling_ratio, bool aligned) -> Tensor",
    f"ps_roi_align(Tensor input, {_ROIS}, int sampling_ratio) -> (Tensor, Tensor)",
    f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_BINS}, int sampling_ratio, {_GRAD_OF}) -> Tensor",
    f"roi_pool(Tensor input, {_ROIS}) -> (Tensor, Tensor)",
    f"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {_BINS}, {_GRAD_OF}) -> Tensor",
    f"ps_roi_pool(Tensor input, {_ROIS}) -> (Tensor, Tensor)",
    f"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_BINS}, {_GRAD_OF}) -> Tensor",
    f"deform_conv2d({_CONV}) -> Tensor",
    f"_deform_conv2d_backward(Tensor grad, {_CONV}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale, int rois_zero_point, "
    "float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
    "_cuda_version() -> int",
)

_library = Library("torchvision", "FRAGMENT")
for _schema in _SCHEMAS:
    _name = _library.define(_schema)
    _library.impl(_name, globals()[_name], "CompositeExplicitAutograd")
