"""Runs a program from standard input beside a simulated accelerator: of two devices of the host the first, jax's default device, is "cuda"."""

import os
import sys

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"

import jax

import jtorch
from jtorch.core import device
from jtorch.ops import backend

there, here = jax.devices()
FAKES = {
    device.accelerator: lambda: "cuda",
    device._find: lambda d: {"cuda": there, "cpu": here, "meta": None}[d.type],
    device._of_jax: lambda found: device.cpu if found is here else device.Device("cuda", 0),
    backend.on_cpu: lambda: jax.config.jax_default_device is here,
}


def simulate():
    """Put the fakes wherever the functions are known."""
    for module in [m for name, m in sys.modules.items() if name.partition(".")[0] == "jtorch"]:
        for name, value in list(vars(module).items()):
            if callable(value) and getattr(value, "__hash__", None) and value in FAKES:
                setattr(module, name, FAKES[value])


if __name__ == "__main__":
    simulate()
    exec(sys.stdin.read(), {"torch": jtorch, "jax": jax})
