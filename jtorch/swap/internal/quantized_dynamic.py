"""torch.ao.nn.quantized.dynamic: linear layers with weights of 8 bits.

The numbers are PyTorch's (fbgemm's): a weight has one scale, an input the scale of its own smallest and largest element, products are summed
exactly. The sums run in floating point, so nothing gets faster by it; the weights take a quarter of the memory.
"""

import numpy as np

from ... import functions as torch
from ...nn import functional as F
from ...nn.modules.module import Module
from ...nn.parameter import Parameter

__all__ = ["Linear"]

_INPUT_LEVELS = 127  # of 255: the products of two such numbers fit 16 bits
_LEAST_SCALE = 6.1e-5
_EXACT_IN_FLOAT32 = 512  # sums of that many products of a byte and a signed byte stay below 2**24


class Linear(Module):
    """A linear layer with a weight of 8 bits (torch.qint8), or of 16 (torch.float16, computed in float32).

    Args:
        in_features, out_features, bias_: as of torch.nn.Linear
        dtype: torch.qint8 or torch.float16
    """

    def __init__(self, in_features, out_features, bias_=True, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.dtype = torch.qint8 if dtype is None else dtype
        half = self.dtype is torch.float16
        self.register_buffer(
            "codes", torch.zeros(out_features, in_features, dtype=torch.float16 if half else torch.int8)
        )
        self.register_buffer("scale", torch.ones(()))
        self.register_parameter("_bias", Parameter(torch.zeros(out_features)) if bias_ else None)

    @classmethod
    def from_float(cls, mod, dtype=None, use_precomputed_fake_quant=False):
        """The layer made of a torch.nn.Linear."""
        return cls.from_weights(mod.weight, mod.bias, dtype)

    @classmethod
    def from_weights(cls, weight, bias, dtype=None):
        """The layer of a weight (out, in) and a bias or None."""
        made = cls(weight.shape[1], weight.shape[0], bias is not None, torch.qint8 if dtype is None else dtype)
        weight = weight.detach().float()
        if made.dtype is torch.float16:
            made.codes = weight.to(torch.float16)
        else:
            # in numpy: XLA makes a product with 1 / 127.5 of the quotient, and a scale that is one bit off moves codes
            array = weight.cpu().numpy()
            scale = np.maximum(np.abs(array).max(initial=0) / np.float32(127.5), np.finfo(np.float32).eps)
            codes = np.clip(np.rint(array * (np.float32(1) / scale)), -128, 127)
            made.scale = torch.tensor(float(scale), dtype=torch.float32, device=weight.device)
            made.codes = torch.tensor(codes.astype(np.int8), device=weight.device)
        if bias is not None:
            made._bias = Parameter(bias.detach().clone())
        return made

    def weight(self):
        """The weight that is computed with, as a dense float tensor (PyTorch: a quantized one)."""
        return self.codes.float() * self.scale

    def bias(self):
        """The bias."""
        return self._bias

    def forward(self, x):
        """The product with the weight, plus the bias: shapes as of torch.nn.Linear, in float32."""
        if self.dtype is torch.float16:
            return F.linear(x, self.codes.float(), self._bias)
        scale, zero = input_scale(x)
        exact = torch.float32 if self.in_features <= _EXACT_IN_FLOAT32 else torch.float64
        codes = torch.clamp(torch.round(x.detach() * scale.reciprocal()) + zero, 0, 255)
        sums = F.linear((codes - zero).to(exact), self.codes.to(exact)).float()
        out = sums * (scale * self.scale)
        return (out if self._bias is None else out + self._bias).detach()  # PyTorch's kernel has no gradient either

    def _get_name(self):
        return "DynamicQuantizedLinear"

    def extra_repr(self):
        """The sizes, and how the weight is kept."""
        scheme = "" if self.dtype is torch.float16 else ", qscheme=torch.per_tensor_affine"
        return f"in_features={self.in_features}, out_features={self.out_features}, dtype={self.dtype}{scheme}"


def input_scale(x):
    """(scale, zero point) of an input: its range, with 0 in it, in 127 steps."""
    low, high = (v.double() for v in torch.aminmax(x.detach().float()))
    low, high = low.clamp(max=0), high.clamp(min=0)
    scale = (high - low) / _INPUT_LEVELS
    single = scale.float()
    unusable = (single == 0) | single.reciprocal().isinf()
    scale = torch.where(unusable, 0.1, scale)
    small = scale < _LEAST_SCALE
    grow = _LEAST_SCALE / scale
    low = torch.where(small, torch.where(high == 0, -_LEAST_SCALE * _INPUT_LEVELS, low * grow), low)
    scale = torch.where(small, _LEAST_SCALE, scale)
    # the zero point from the end where rounding loses less: from the low end unless that is the larger
    from_low, from_high = -low / scale, _INPUT_LEVELS - high / scale
    zero = torch.where(-(low / scale).abs() < _INPUT_LEVELS - (high / scale).abs(), from_low, from_high)
    return scale.float(), torch.round(zero.clamp(0, _INPUT_LEVELS)).float()
