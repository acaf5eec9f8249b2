"""Tools for modules and parameters: clipping, norms, packing, functional calls."""

# ruff: noqa: F403

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
