"""torch.optim: optimizers and learning-rate schedules."""

from jtorch.optim.adam import Adam as Adam
from jtorch.optim.adamw import AdamW as AdamW
from jtorch.optim.optimizer import Optimizer as Optimizer
from jtorch.optim.sgd import SGD as SGD
