"""elsewhere.py: modules of PyTorch that are under other names in jtorch, imported under PyTorch's after the swap of the import."""

import importlib
import subprocess
import sys

import pytest

import jtorch
from tests.oracle import torch

NAMES = {
    "cuda.amp": "GradScaler autocast",
    "cuda.amp.grad_scaler": "GradScaler",
    "cuda.amp.autocast_mode": "autocast custom_fwd",
    "cuda.random": "manual_seed",
    "autograd.profiler": "profile record_function",
    "nn._reduction": "get_enum",
    "nn.modules.transformer": "Transformer TransformerEncoderLayer",
    "ao.quantization": "quantize_dynamic",
    "_dynamo": "explain reset",
    "_dynamo.config": "cache_size_limit",
    "_utils": "_flatten_dense_tensors",
    "utils.data.dataloader": "DataLoader",
}


@pytest.mark.parametrize("name", NAMES)
def test_found_under_pytorchs_name(name):
    theirs, ours = (importlib.import_module(f"{lib.__name__}.{name}") for lib in (torch, jtorch))
    for attribute in NAMES[name].split():
        assert hasattr(theirs, attribute) and hasattr(ours, attribute), attribute


def test_same_objects():
    assert importlib.import_module("jtorch.cuda.amp") is jtorch.cuda.amp


@pytest.mark.parametrize("name", ["nowhere", "cuda.nowhere", "utils.nowhere", "nn.modules.nowhere"])
def test_not_found(name):
    with pytest.raises(ModuleNotFoundError, match=f"No module named 'jtorch.{name}'"):
        importlib.import_module(f"jtorch.{name}")


def test_the_hook_is_not_loaded_for_it():
    """Importing jtorch installs the finder, not what it asks."""
    program = "import sys, jtorch; jtorch.ones(2); print('jtorch.swap.hook' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.stdout == "False\n", done.stderr
