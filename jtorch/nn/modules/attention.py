"""Multi-head attention and the Transformer."""

import copy

from jtorch import functions as torch
from jtorch.core import dtype as dtypes
from jtorch.nn import functional as F
from jtorch.nn import init
from jtorch.nn.modules.container import ModuleList
from jtorch.nn.modules.dropout import Dropout
from jtorch.nn.modules.encoder_padding import leaves_padding_out, with_zeros_at_padding
from jtorch.nn.modules.linear import Linear, NonDynamicallyQuantizableLinear
from jtorch.nn.modules.module import Module
from jtorch.nn.modules.normalization import LayerNorm
from jtorch.nn.parameter import Parameter

__all__ = [
    "MultiheadAttention",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


class MultiheadAttention(Module):
    """Attention in several heads, with learned projections (Vaswani et al., 2017).

    Args:
        embed_dim: size of queries and results, a multiple of num_heads
        num_heads: number of heads
        dropout: probability for the attention weights. Default: 0
        bias: biases in the projections. Default: True
        add_bias_kv: add a learned row to keys and values
        add_zero_attn: add a row of zeros to keys and values
        kdim, vdim: sizes of keys and values. Default: embed_dim
        batch_first: inputs are (N, L, E), not (L, N, E)

    Start: in-projections Xavier uniform, biases zero, bias rows Xavier normal
    """

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0,"
                f" got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        if self._qkv_same_embed_dim:
            self.in_proj_weight = Parameter(torch.empty((3 * embed_dim, embed_dim), **factory))
            self.register_parameter("q_proj_weight", None)
            self.register_parameter("k_proj_weight", None)
            self.register_parameter("v_proj_weight", None)
        else:
            self.q_proj_weight = Parameter(torch.empty((embed_dim, embed_dim), **factory))
            self.k_proj_weight = Parameter(torch.empty((embed_dim, self.kdim), **factory))
            self.v_proj_weight = Parameter(torch.empty((embed_dim, self.vdim), **factory))
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = Parameter(torch.empty(3 * embed_dim, **factory))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **factory)
        if add_bias_kv:
            self.bias_k = Parameter(torch.empty((1, 1, embed_dim), **factory))
            self.bias_v = Parameter(torch.empty((1, 1, embed_dim), **factory))
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self):
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            init.xavier_uniform_(self.q_proj_weight)
            init.xavier_uniform_(self.k_proj_weight)
            init.xavier_uniform_(self.v_proj_weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            init.xavier_normal_(self.bias_v)

    def __setstate__(self, state):
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        """Attend from `query` to `key`, and mix `value` accordingly.

        Args:
            key_padding_mask: (N, S), True (or minus infinity) where a key is to be ignored
            need_weights: also give the attention weights. Default: True
            attn_mask: (L, S) or (N * heads, L, S), True (or minus infinity) where attention is forbidden
            average_attn_weights: give the mean of the weights over the heads. Default: True
            is_causal: `attn_mask` is the causal mask, so the kernel may make it itself

        Returns the output, shaped like `query`, and the weights or None.
        """
        transposed = self.batch_first and query.dim() == 3
        if transposed:
            # equal inputs stay one object: the projection is one matmul then
            q = query.transpose(1, 0)
            k = q if key is query else key.transpose(1, 0)
            value = k if value is key else (q if value is query else value.transpose(1, 0))
            query, key = q, k
        out, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (out.transpose(1, 0) if transposed else out), weights

    def merge_masks(self, attn_mask, key_padding_mask, query):
        """Both masks as one, and its kind: 0 (L, L), 1 (N, S), 2 (N, heads, L, S), or None for no mask."""
        merged, kind = None, None
        if key_padding_mask is not None:
            kind, merged = 1, key_padding_mask
        if attn_mask is not None:
            batch, length, _ = query.shape
            kind = 2
            if attn_mask.dim() == 3:
                merged = attn_mask.view(batch, -1, length, length)
            else:
                merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
            if key_padding_mask is not None:
                padding = key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
                merged = merged + padding
        return merged, kind


def _causal_mask(size, device=None, dtype=None):
    return torch.triu(torch.full((size, size), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _sequence_length(src, batch_first):
    sizes = src.size()
    return sizes[0] if len(sizes) == 2 else sizes[1 if batch_first else 0]


def _detect_causal(mask, is_causal, size) -> bool:
    """Whether `mask` is the causal mask, when the caller did not say."""
    if is_causal is None:
        if mask is None:
            return False
        if tuple(mask.size())[-2:] != (size, size):
            return False
        causal = _causal_mask(size, device=mask.device, dtype=mask.dtype if mask.is_floating_point() else None)
        if mask.dtype is dtypes.bool_:
            causal = causal != 0
        return bool((mask == causal).all())
    return is_causal is True


def _as_additive(mask, padding, name, dtype):
    """An encoder's mask, called `name`, and its padding as numbers to add; of two kinds of masks is warned."""
    kind = None if mask is None else mask.dtype
    padding = F._additive_mask(padding, "src_key_padding_mask", kind, name, dtype)
    return F._additive_mask(mask, name, None, "", dtype, check_other=False), padding


def _activation(activation):
    if activation == "relu":
        return F.relu
    if activation == "gelu":
        return F.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _clones(module, n) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


class Transformer(Module):
    """Encoder and decoder of the Transformer (Vaswani et al., 2017).

    Args:
        d_model, nhead: size of the features, number of heads
        num_encoder_layers, num_decoder_layers: Default: 6
        dim_feedforward: size of the hidden layer. Default: 2048
        dropout: Default: 0.1
        activation: "relu", "gelu" or a function. Default: relu
        custom_encoder, custom_decoder: modules in the place of the built ones
        layer_norm_eps: Default: 1e-5
        batch_first: inputs are (N, L, E), not (L, N, E)
        norm_first: normalise before each block, not after
        bias: biases in linear layers and layer norms. Default: True
    """

    def __init__(
        self,
        d_model=512,
        nhead=8,
        num_encoder_layers=6,
        num_decoder_layers=6,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        custom_encoder=None,
        custom_decoder=None,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        layer_options = dict(
            layer_norm_eps=layer_norm_eps, batch_first=batch_first, norm_first=norm_first, bias=bias, **factory
        )
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            layer = TransformerEncoderLayer(d_model, nhead, dim_feedforward, dropout, activation, **layer_options)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            layer = TransformerDecoderLayer(d_model, nhead, dim_feedforward, dropout, activation, **layer_options)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
            self.decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self):
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)

    def forward(
        self,
        src,
        tgt,
        src_mask=None,
        tgt_mask=None,
        memory_mask=None,
        src_key_padding_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        src_is_causal=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        """Encode `src`, decode `tgt` with it."""
        batched = src.dim() == 3
        if batched:
            where = 0 if self.batch_first else 1
            if src.size(where) != tgt.size(where):
                raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """The causal mask: minus infinity above the diagonal, 0 elsewhere."""
        return _causal_mask(sz, device, dtype)


class TransformerEncoder(Module):
    """A stack of encoder layers.

    Args:
        encoder_layer: the layer that is copied
        num_layers: how often
        norm: a module applied at the end
        enable_nested_tensor: give zeros for padding in evaluation without gradients, as PyTorch's nested tensors do
        mask_check: only where the padding is at the end
    """

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers = _clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor and leaves_padding_out(encoder_layer, TransformerEncoderLayer)
        self.mask_check = mask_check

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        """Encode `src`; the masks are those of MultiheadAttention."""
        mask, src_key_padding_mask = _as_additive(mask, src_key_padding_mask, "mask", src.dtype)
        layer = self.layers[0]
        batch_first = layer.self_attn.batch_first if hasattr(layer, "self_attn") else False
        is_causal = _detect_causal(mask, is_causal, _sequence_length(src, batch_first))
        output = src
        for module in self.layers:
            output = module(output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=src_key_padding_mask)
        output = with_zeros_at_padding(self, src, output, mask, src_key_padding_mask)
        return output if self.norm is None else self.norm(output)


class TransformerDecoder(Module):
    """A stack of decoder layers.

    Args:
        decoder_layer: the layer that is copied
        num_layers: how often
        norm: a module applied at the end
    """

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        """Decode `tgt` with the encoder's `memory`; the masks are those of MultiheadAttention."""
        length = _sequence_length(tgt, self.layers[0].self_attn.batch_first)
        tgt_is_causal = _detect_causal(tgt_mask, tgt_is_causal, length)
        output = tgt
        for module in self.layers:
            output = module(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward block, each with a residual and a layer norm.

    Args:
        d_model, nhead: size of the features, number of heads
        dim_feedforward: size of the hidden layer. Default: 2048
        dropout: Default: 0.1
        activation: "relu", "gelu" or a function. Default: relu
        layer_norm_eps: Default: 1e-5
        batch_first: inputs are (N, L, E), not (L, N, E)
        norm_first: normalise before each block, not after
        bias: biases in linear layers and layer norms. Default: True
    """

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **factory
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **factory)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        if isinstance(activation, str):
            activation = _activation(activation)
        self.activation_relu_or_gelu = {F.relu: 1, F.gelu: 2}.get(activation, 0) if not isinstance(
            activation, Module
        ) else 0  # fmt: skip
        self.activation = activation

    def __setstate__(self, state):
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        """Encode `src`; the masks are those of MultiheadAttention."""
        src_mask, src_key_padding_mask = _as_additive(src_mask, src_key_padding_mask, "src_mask", src.dtype)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        x = self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            need_weights=False,
            is_causal=is_causal,
        )[0]
        return self.dropout1(x)

    def _ff_block(self, x):
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(Module):
    """Self-attention, attention to the encoder and a feed-forward block, each with residual and layer norm.

    The arguments are those of TransformerEncoderLayer.
    """

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **factory
        )
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **factory
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **factory)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation(activation) if isinstance(activation, str) else activation

    def __setstate__(self, state):
        state.setdefault("activation", F.relu)
        super().__setstate__(state)

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=False,
        memory_is_causal=False,
    ):
        """Decode `tgt` with the encoder's `memory`; the masks are those of MultiheadAttention."""
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, *other))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        x = self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )[0]
        return self.dropout1(x)

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        x = self.multihead_attn(
            x,
            mem,
            mem,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )[0]
        return self.dropout2(x)

    def _ff_block(self, x):
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))
