"""Learning-rate schedules: each writes the `lr` of an optimizer's groups at every step."""

from jtorch.optim.optimizer import Optimizer as Optimizer
from jtorch.optim.schedules.base import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from jtorch.optim.schedules.base import LRScheduler, _LRScheduler
from jtorch.optim.schedules.composed import ChainedScheduler, SequentialLR
from jtorch.optim.schedules.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from jtorch.optim.schedules.cycles import CyclicLR, OneCycleLR
from jtorch.optim.schedules.factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from jtorch.optim.schedules.plateau import ReduceLROnPlateau

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

# Their home is here, as in PyTorch: pickles name it, and so does what prints a class.
for _schedule in (_LRScheduler, *map(globals().get, __all__)):
    _schedule.__module__ = __name__
