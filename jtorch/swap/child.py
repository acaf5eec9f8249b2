"""What a process spawned under `python -m jtorch run` imports in the place of its main module."""

from .hook import install_as_torch
from .main import run_again

install_as_torch()
globals().update(run_again())
