"""Functions kept as attributes of a class: those that PyTorch has in C do not turn into methods of an instance there."""

import types

_IN_C = frozenset(("", "fft", "linalg", "special"))
# Of torch.nn.functional what PyTorch has in C; of torch what it has not.
FUNCTIONAL_IN_C = frozenset(
    "adaptive_avg_pool1d avg_pool1d avg_pool2d avg_pool3d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc "
    "conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity elu_ gelu hardshrink hardtanh_ leaky_relu_ linear "
    "logsigmoid native_channel_shuffle one_hot pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu relu_ rrelu_ "
    "scaled_dot_product_attention selu_ softplus softshrink threshold_".split()
)
_IN_PYTHON = frozenset(
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul einsum "
    "lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index".split()
)


def leave_unbound(cls) -> None:
    """Make the functions among a class's own attributes that PyTorch has in C static: `conv = torch.conv2d` is no method."""
    for name, value in list(vars(cls).items()):
        if type(value) is types.FunctionType and value.__module__ == "jtorch" and _in_c(value.__qualname__):
            setattr(cls, name, staticmethod(value))


def _in_c(qualname: str) -> bool:
    space, _, name = qualname.rpartition(".")
    return name in FUNCTIONAL_IN_C if space == "nn.functional" else space in _IN_C and name not in _IN_PYTHON
