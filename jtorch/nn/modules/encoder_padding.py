"""Zeros where an encoder's input is padding: what PyTorch's inference path, which leaves the padding out, gives there."""

from jtorch import errors
from jtorch import functions as torch
from jtorch.autograd.mode import is_grad_enabled

__all__ = ["leaves_padding_out", "with_zeros_at_padding"]


def leaves_padding_out(layer, kind) -> bool:
    """Whether an encoder made of copies of `layer` (a `kind`, the usual layer) has that path; says why not."""
    if not isinstance(layer, kind):
        reason = " was not TransformerEncoderLayer"
    elif layer.norm_first:
        reason = ".norm_first was True"
    elif not layer.self_attn.batch_first:
        reason = ".self_attn.batch_first was not True(use batch_first for better inference performance)"
    elif not layer.self_attn._qkv_same_embed_dim:
        reason = ".self_attn._qkv_same_embed_dim was not True"
    elif layer.self_attn.in_proj_bias is None:
        reason = ".self_attn was passed bias=False"
    elif not layer.activation_relu_or_gelu:
        reason = ".activation_relu_or_gelu was not True"
    elif layer.norm1.eps != layer.norm2.eps:
        reason = ".norm1.eps was not equal to encoder_layer.norm2.eps"
    elif layer.self_attn.num_heads % 2 == 1:
        reason = ".self_attn.num_heads is odd"
    else:
        return True
    errors.warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because encoder_layer{reason}")
    return False


def with_zeros_at_padding(encoder, src, output, mask, padding):
    """`output` (N, L, E) with zeros where the additive mask `padding` (N, L) hides `src`, where PyTorch takes that path.

    With `encoder.mask_check` the padding must be at the end of each sequence, which is decided on the device.
    """
    layer = encoder.layers[0]
    if not encoder.use_nested_tensor or layer.training or src.dim() != 3 or padding is None or mask is not None:
        return output
    if is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in layer.parameters())):
        return output
    visible = padding == 0
    first = torch.arange(visible.shape[1], device=visible.device) < visible.sum(1, keepdim=True)
    kept = first | (visible != first).any() if encoder.mask_check else first
    return torch.where(kept.unsqueeze(-1), output, 0.0)
