"""One trainable loop for each way to run a model: jtorch's modes, hand-written JAX, PyTorch."""

import importlib
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from . import models

MODES = ("eager", "auto", "compile")
PEERS = ("jax", "torch", "torch-compile")
READ_EVERY = 10  # steps between two `loss.item()`, as a training loop that logs would do


class Runner:
    """Trains one model one way: `run(steps)` returns the last loss, read on the host.

    Every way reads its loss at the same steps, each `read` ones: asynchronous dispatch helps each as much as it helps a user.
    """

    read = READ_EVERY

    def __init__(self, step: Callable, batches: list, scope: Callable[[], AbstractContextManager]):
        self.step = step
        self.scope = scope
        self.batches: Iterator = itertools.cycle(batches)

    def run(self, steps: int) -> float:
        value = float("nan")
        with self.scope():
            for i in range(1, steps + 1):
                x, y = next(self.batches)
                loss = self.step(x, y)
                if i % self.read == 0 or i == steps:
                    value = loss.item()
        return value


def torch_device(torch: Any) -> str:
    """The accelerator when there is one, as the module `torch` names it."""
    if torch.accelerator.is_available():
        return torch.accelerator.current_accelerator().type
    return "cpu"


def open_runner(name: str, way: str) -> Runner:
    """The loop of model `name` run as `way`, one of MODES or PEERS."""
    host = models.batches(name)
    if way == "jax":
        peers = importlib.import_module(f"{__package__}.peers")
        with peers.narrow():
            peer = peers.build(name)
            return Runner(peer.step, [peers.batch(x, y) for x, y in host], peers.narrow)
    torch = importlib.import_module("torch" if way.startswith("torch") else "jtorch")
    device = torch_device(torch)
    training = models.build(torch, name, device, wrap=torch.compile if way == "torch-compile" else None)
    batches = [(torch.from_numpy(x).to(device), torch.from_numpy(y).to(device)) for x, y in host]
    if way in PEERS:
        return Runner(training.step, batches, nullcontext)
    step = torch.compile(training.step) if way == "compile" else training.step
    mode = "eager" if way == "eager" else "auto"
    return Runner(step, batches, lambda: torch.execution_mode(mode))
