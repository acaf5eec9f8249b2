"""Batches of sequences of unequal length, under PyTorch's name."""

# ruff: noqa: F403

from jtorch.nn.packed import *
