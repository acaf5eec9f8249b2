"""torch.ao.quantization's HistogramObserver: the range that loses least to rounding and clipping, sought in a histogram of all inputs."""

import math
import warnings

import numpy as np

from ... import functions as torch
from ...autograd.mode import no_grad
from .observers import _PER_TENSOR, UniformQuantizationObserverBase

__all__ = ["HistogramObserver", "default_histogram_observer"]

_FINER = 16  # parts that a bin is taken in where the range has grown
_STEP = 1e-5  # of all values, that one step of the search may clip


class HistogramObserver(UniformQuantizationObserverBase):
    """A histogram of all inputs.

    Args:
        bins: of the histogram
    """

    _schemes = _PER_TENSOR

    def __init__(self, bins=2048, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.bins = bins
        self.register_buffer("histogram", torch.zeros(bins, **self._made))
        self.register_buffer("min_val", torch.tensor(math.inf, **self._made))
        self.register_buffer("max_val", torch.tensor(-math.inf, **self._made))
        self.dst_nbins = 256 if "8" in str(self.dtype) else 2**32

    @no_grad()
    def forward(self, x_orig):
        """The input, after it has been counted."""
        x = x_orig.detach()
        if x.numel() and x.isinf().any():
            warnings.warn("torch.inf detected in input tensor, ignoring input", stacklevel=2)
            x = x[~x.isinf()]
        if not x.numel():
            return x_orig
        low, high = torch.aminmax(x)
        if self.min_val.item() != math.inf:
            low, high = torch.minimum(low, self.min_val), torch.maximum(high, self.max_val)
        counts = torch.histc(x, self.bins, min=low.item(), max=high.item())
        if self.min_val.item() != math.inf:
            counts = counts + self._moved(low, high)
        self.histogram.copy_(counts)
        self.min_val.copy_(low)
        self.max_val.copy_(high)
        return x_orig

    def _moved(self, low, high):
        """The histogram so far in the bins of a wider range."""
        before, after = self.min_val.item(), self.max_val.item()
        if (before, after) == (low.item(), high.item()):
            return self.histogram
        if before == after:
            return torch.histc(self.min_val, self.bins, min=low.item(), max=high.item()) * self.histogram.sum()
        n = self.bins * _FINER
        middles = torch.linspace(before, after, n + 1)[:-1] + 0.5 * ((self.max_val - self.min_val) / n)
        bounds = torch.linspace(low.item(), high.item(), self.bins + 1)
        to = (torch.bucketize(middles, bounds, right=True) - 1).clamp(0, self.bins - 1)
        return torch.bincount(to, weights=self.histogram.repeat_interleave(_FINER) / _FINER, minlength=self.bins)

    @no_grad()
    def calculate_qparams(self):
        """(scale, zero point) of the range that loses least."""
        if not self._seen():
            return torch.tensor([1.0]), torch.tensor([0])
        first, last = self._range(self.histogram.numpy().astype(np.float32))
        width = (self.max_val - self.min_val) / self.bins
        return self._calculate_qparams(self.min_val + width * first, self.min_val + width * (last + 1))

    def _range(self, counts):
        """The first and the last bin to keep: from the end that has more bins to give, as long as the loss falls."""
        below, total = np.cumsum(counts, dtype=np.float32), float(counts.sum())
        width = (self.max_val.item() - self.min_val.item()) / self.bins
        low, high, first, last, least = 0.0, 1.0, 0, self.bins - 1, math.inf
        while low < high:
            left = min(int(np.searchsorted(below, np.float32((low + _STEP) * total))), last)
            left = max(left, first)
            right = int(np.searchsorted(below, np.float32((high - _STEP) * total), side="right")) - 1
            right = min(max(right, first), last)
            if left - first > last - right:
                tried, low = (left, last), low + _STEP
            else:
                tried, high = (first, right), high - _STEP
            if tried == (first, last):
                continue
            loss = self._loss(counts, width, *tried)
            if loss > least:
                break
            least, (first, last) = loss, tried
        return first, last

    def _loss(self, counts, width, first, last):
        """What rounding to the numbers of this range loses: squares, of values spread evenly in each bin."""
        step = width * (last - first + 1) / self.dst_nbins
        if step == 0:
            return 0.0
        begin = (np.arange(self.bins, dtype=np.float32) - first) * np.float32(width)
        end = begin + np.float32(width)
        from_bin, to_bin = (np.clip(np.floor(x / np.float32(step)), 0, self.dst_nbins - 1) for x in (begin, end))
        density = counts / np.float32(width)
        square = lambda a, b: density * (b * b * b - a * a * a) / 3
        half = np.float32(step / 2)
        loss = square(begin - (from_bin + np.float32(0.5)) * np.float32(step), half)
        loss += (to_bin - from_bin - 1) * square(-half, half)
        loss += square(-half, end - (to_bin * np.float32(step) + half))
        return float(loss.sum())


default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
