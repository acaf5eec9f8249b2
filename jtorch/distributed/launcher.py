"""torch.distributed.launcher: a function run by a launcher. There are no agents: one process of one node is this process."""

from dataclasses import dataclass, field
from typing import Any

from .. import errors

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


def launch_agent(config: LaunchConfig, entrypoint, args) -> dict:
    """{0: entrypoint(*args)}. NotImplementedError: more than one process is asked for."""
    if config.min_nodes > 1 or config.nproc_per_node > 1:
        raise errors.unsupported("starting several processes", "one process, which computes on all devices")
    return {0: entrypoint(*args)}


class elastic_launch:
    """A function that is run as a launcher would run it: `elastic_launch(config, function)(*args)`."""

    def __init__(self, config: LaunchConfig, entrypoint):
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args) -> dict:
        """launch_agent."""
        return launch_agent(self._config, self._entrypoint, list(args))
