"""Compile for a TPU, without one, what a program would have it run.

    pip install libtpu
    python tools/tpu.py SCRIPT [ARGS]

The script runs on the CPU, with jtorch behind `import torch`. Each program that it has jtorch make is made for a TPU v5e as well, by the
compiler in libtpu, and thrown away: what that compiler refuses is printed, and at the end how long it took. Where it ends the process
instead, the last line says what it was given.
"""

import os
import sys
import time

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TPU_SKIP_MDS_QUERY"] = "1"
os.environ["TPU_ACCELERATOR_TYPE"] = "v5litepod-1"
os.environ["TPU_WORKER_HOSTNAMES"] = "localhost"
os.environ["TPU_MIN_LOG_LEVEL"] = "3"
os.environ["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "1"

import jax
import numpy as np
from jax.experimental import topologies  # nothing public compiles for what is not there
from jax.sharding import SingleDeviceSharding

from jtorch.__main__ import main
from jtorch.core import program
from jtorch.core.device import Device

TOPOLOGY = "v5e:2x2"


class Compiler:
    """Makes for a TPU what jtorch makes here, and counts."""

    def __init__(self):
        self.place = topologies.get_topology_desc(TOPOLOGY, platform="tpu").devices[0]
        self.made = self.refused = 0
        self.seconds = 0.0
        self.at_work = False

    def like(self, value):
        """What an argument of this shape and dtype is on the TPU."""
        return jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=SingleDeviceSharding(self.place))

    def compile(self, state, live, dead, numbers):
        """A program of jtorch's once more, with the kernels for a TPU."""
        made = program.Program(state, live, dead, Device("tpu"))
        if not made.nodes:
            return
        operands = {
            ~i: self.like(spec.aval) for node in made.nodes for i, spec in zip(node.ids, node.plan.operands) if i < 0
        }
        args = [operands[i] for i in made.used]
        args += [self.like(np.asarray(x)) for x in made.pack.packed([x for k in made.pack.kept for x in numbers[k]])]
        names = [node.plan.name for node in made.nodes]
        label = f"{len(names)} nodes: {' '.join(names[:6])}{' ...' if len(names) > 6 else ''}"
        print(f"{label:<76}", end="", flush=True)
        started = time.perf_counter()
        try:
            with jax.default_device(self.place), jax.default_matmul_precision("highest"):
                made.traced().lower(*args).compile()
            self.made += 1
            print(f" {time.perf_counter() - started:6.1f} s", flush=True)
        except Exception as error:
            self.refused += 1
            print(f" refused: {str(error).splitlines()[0][:200]}", flush=True)
        self.seconds += time.perf_counter() - started

    def watch(self):
        """From now on, make for the TPU each program that jtorch makes."""
        run = program._run

        def and_for_a_tpu(graph, *rest):
            known = set(graph.state.programs or ())
            state, numbers = graph.state, list(graph.numbers)
            run(graph, *rest)
            if self.at_work:
                return
            self.at_work = True
            try:
                for live, dead in [key for key in state.programs or () if key not in known]:
                    self.compile(state, live, dead, numbers)
            finally:
                self.at_work = False

        program._run = and_for_a_tpu


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    compiler = Compiler()
    compiler.watch()
    try:
        status = main(["run", *sys.argv[1:]])
    finally:
        print(
            f"{compiler.made} programs made for a TPU {TOPOLOGY}, {compiler.refused} refused, {compiler.seconds:.0f} s"
        )
    sys.exit(status)
