"""The layers, by family: what is public is in the family's `__all__`."""

# ruff: noqa: F403

from jtorch.nn.modules import (
    activation,
    adaptive,
    attention,
    batchnorm,
    container,
    conv,
    distance,
    dropout,
    linear,
    loss,
    normalization,
    padding,
    pooling,
    reshape,
    rnn,
    sparse,
)
from jtorch.nn.modules.activation import *
from jtorch.nn.modules.adaptive import *
from jtorch.nn.modules.attention import *
from jtorch.nn.modules.batchnorm import *
from jtorch.nn.modules.container import *
from jtorch.nn.modules.conv import *
from jtorch.nn.modules.distance import *
from jtorch.nn.modules.dropout import *
from jtorch.nn.modules.linear import *
from jtorch.nn.modules.loss import *
from jtorch.nn.modules.module import Module as Module
from jtorch.nn.modules.normalization import *
from jtorch.nn.modules.padding import *
from jtorch.nn.modules.pooling import *
from jtorch.nn.modules.reshape import *
from jtorch.nn.modules.rnn import *
from jtorch.nn.modules.sparse import *

__all__ = ["Module"]
__all__ += activation.__all__
__all__ += adaptive.__all__
__all__ += attention.__all__
__all__ += batchnorm.__all__
__all__ += container.__all__
__all__ += conv.__all__
__all__ += distance.__all__
__all__ += dropout.__all__
__all__ += linear.__all__
__all__ += loss.__all__
__all__ += normalization.__all__
__all__ += padding.__all__
__all__ += pooling.__all__
__all__ += reshape.__all__
__all__ += rnn.__all__
__all__ += sparse.__all__
