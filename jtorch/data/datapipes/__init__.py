"""Data pipes: datasets that are chains of steps. PyTorch keeps them for old programs and adds nothing to them."""

from .datapipe import DataChunk, DFIterDataPipe, IterDataPipe, MapDataPipe
from .decorators import (
    argument_validation,
    functional_datapipe,
    guaranteed_datapipes_determinism,
    non_deterministic,
    runtime_validation,
    runtime_validation_disabled,
)
from .steps import ITER, MAP

__all__ = [
    "ITER",
    "MAP",
    "DFIterDataPipe",
    "DataChunk",
    "IterDataPipe",
    "MapDataPipe",
    "argument_validation",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "runtime_validation",
    "runtime_validation_disabled",
]
