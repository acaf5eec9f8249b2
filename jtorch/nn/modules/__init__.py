"""The layers, by family."""

# ruff: noqa: F403

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
from jtorch.nn.modules.module import Module
from jtorch.nn.modules.normalization import *
from jtorch.nn.modules.padding import *
from jtorch.nn.modules.pooling import *
from jtorch.nn.modules.reshape import *
from jtorch.nn.modules.rnn import *
from jtorch.nn.modules.sparse import *
