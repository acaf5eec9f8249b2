"""Tools for modules and parameters: clipping, norms, packing, functional calls."""

# ruff: noqa: F403, F405

from jtorch.nn.utils import parametrizations as parametrizations
from jtorch.nn.utils import parametrize as parametrize
from jtorch.nn.utils import prune as prune
from jtorch.nn.utils import rnn as rnn
from jtorch.nn.utils import stateless as stateless
from jtorch.nn.utils.clip_grad import *
from jtorch.nn.utils.convert_parameters import *
from jtorch.nn.utils.fusion import *
from jtorch.nn.utils.init import skip_init as skip_init
from jtorch.nn.utils.memory_format import *
from jtorch.nn.utils.spectral_norm import remove_spectral_norm as remove_spectral_norm
from jtorch.nn.utils.spectral_norm import spectral_norm as spectral_norm
from jtorch.nn.utils.weight_norm import remove_weight_norm as remove_weight_norm
from jtorch.nn.utils.weight_norm import weight_norm as weight_norm

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format", "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights",
    "get_total_norm", "parameters_to_vector", "parametrizations", "parametrize", "remove_spectral_norm", "remove_weight_norm",
    "rnn", "skip_init", "spectral_norm", "stateless", "vector_to_parameters", "weight_norm",
]  # fmt: skip
