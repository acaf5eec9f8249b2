"""torch.distributed.launcher: a function run in several processes of this machine. One process is this one."""

import argparse
import os
from dataclasses import dataclass, field
from typing import Any

from .. import errors
from ..multiprocessing.context import CONTEXT
from ..multiprocessing.spawn import start_processes
from . import run

_PAUSE = 0.05  # seconds between two looks at the processes

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclass
class LaunchConfig:
    """How many processes a launcher is to start, and how; all but the numbers is kept and unused.

    Args:
        min_nodes: machines at least
        max_nodes: machines at most
        nproc_per_node: processes of each
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None


def _one(local_rank, environments, entrypoint, args, results):
    os.environ.update({k: str(v) for k, v in environments[local_rank].items()})
    results.put((int(os.environ["RANK"]), entrypoint(*args)))


def launch_agent(config: LaunchConfig, entrypoint, args) -> dict:
    """What entrypoint(*args) gives in each process, by rank. Several are started anew: the function is pickled.

    Raises ProcessRaisedException where it raises in one of several, NotImplementedError for several machines.
    """
    if config.min_nodes > 1:
        raise errors.unsupported("launching a function on several machines", "torchrun on each of them")
    n = config.nproc_per_node
    if n == 1:
        return {0: entrypoint(*args)}
    asked = argparse.Namespace(
        nproc_per_node=str(n), nnodes="1", node_rank=0, master_addr=config.local_addr, master_port=None, role=config.role,
        rdzv_endpoint=config.rdzv_endpoint, rdzv_id=config.run_id or None, max_restarts=0,
    )  # fmt: skip
    results = CONTEXT.get_context("spawn").SimpleQueue()
    started = start_processes(_one, (run.environments(asked), entrypoint, args, results), n, join=False)
    found = {}
    ended = False
    while not ended:
        ended = started.join(_PAUSE)
        while not results.empty():  # a process with a long result ends when it is read
            found.update([results.get()])
    return dict(sorted(found.items()))


class elastic_launch:
    """A function that is run as a launcher would run it: `elastic_launch(config, function)(*args)`."""

    def __init__(self, config: LaunchConfig, entrypoint):
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args) -> dict:
        """launch_agent."""
        return launch_agent(self._config, self._entrypoint, list(args))
