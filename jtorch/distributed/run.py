"""torchrun: start a program in several processes, and say in their environment which of them each is.

Run: python -m jtorch.distributed.run --nproc-per-node=2 script.py [arguments]
or, where the program says `import torch`: python -m jtorch run -m torch.distributed.run --nproc-per-node=2 script.py [arguments]

Source: https://docs.pytorch.org/docs/stable/elastic/run.html
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
import uuid

_PAUSE, _PATIENCE = 0.05, 15.0  # seconds: between two looks at the processes; for one that is to end


_TEXT, _COUNT, _FLAG = {}, {"type": int}, {"action": "store_true"}
# Where machines find each other in other ways, here they do by an address and a port.
_OPTIONS = {
    "nproc-per-node": (_TEXT, "1", "processes of this machine: a number, auto or cpu"),
    "nnodes": (_TEXT, "1", "machines"),
    "node-rank": (_COUNT, 0, "the number of this machine"),
    "master-addr": (_TEXT, None, "the first machine"),
    "master-port": (_COUNT, None, "a free port of it"),
    "standalone": (_FLAG, False, "one machine, any port: as without an address"),
    "rdzv-backend": (_TEXT, "static", "accepted"),
    "rdzv-endpoint": (_TEXT, "", "host:port of the first machine"),
    "rdzv-id": (_TEXT, None, "the name of the run"),
    "rdzv-conf": (_TEXT, "", "accepted"),
    "max-restarts": (_COUNT, 0, "how often all are started again when one fails"),
    "monitor-interval": ({"type": float}, 0.1, "accepted"),
    "start-method": (_TEXT, "spawn", "accepted"),
    "role": (_TEXT, "default", "a name"),
    "log-dir": (_TEXT, None, "a folder for what the processes print"),
    "redirects": (_TEXT, "0", "accepted: with --log-dir everything is redirected"),
    "tee": (_TEXT, "0", "accepted"),
    "module": (_FLAG, False, "the program is a module"),
    "no-python": (_FLAG, False, "the program is no Python script"),
    "use-env": (_FLAG, False, "the program's environment has LOCAL_RANK, and it gets no --local-rank"),
}
_SHORT = {"module": "-m", "redirects": "-r", "tee": "-t"}


def arguments(given=None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="torchrun", description="Start a program in several processes.")
    for name, (kind, default, words) in _OPTIONS.items():
        spelled = {f"--{name}": 0, f"--{name.replace('-', '_')}": 0} | ({_SHORT[name]: 0} if name in _SHORT else {})
        parser.add_argument(*spelled, default=default, help=words, **kind)
    parser.add_argument("program", help="the script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    return parser.parse_args(given)


def _processes(asked) -> int:
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    if asked in ("auto", "cpu"):
        return os.cpu_count() or 1
    if asked == "gpu":
        raise SystemExit(
            "torchrun: --nproc-per-node=gpu: one process computes on all GPUs; give a number for one process each"
        )
    raise SystemExit(f"torchrun: Unsupported nproc_per_node value: {asked}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def environments(asked) -> list[dict]:
    """What each process of this machine has in its environment."""
    n, nodes = _processes(asked.nproc_per_node), int(asked.nnodes.rpartition(":")[2])
    host, _, port = asked.rdzv_endpoint.rpartition(":")
    host = asked.master_addr or host or "127.0.0.1"
    port = asked.master_port or int(port or 0) or (29500 if nodes > 1 else _free_port())
    shared = {
        "MASTER_ADDR": host, "MASTER_PORT": port, "WORLD_SIZE": n * nodes, "LOCAL_WORLD_SIZE": n, "GROUP_RANK": asked.node_rank,
        "GROUP_WORLD_SIZE": nodes, "ROLE_NAME": asked.role, "ROLE_WORLD_SIZE": n * nodes, "TORCHELASTIC_RUN_ID": asked.rdzv_id or uuid.uuid4().hex,
        "TORCHELASTIC_MAX_RESTARTS": asked.max_restarts,
    }  # fmt: skip
    if n > 1:
        shared["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")
    made = []
    for local in range(n):
        rank = asked.node_rank * n + local
        made.append(shared | {"LOCAL_RANK": local, "RANK": rank, "ROLE_RANK": rank})
    return made


def _command(asked, own) -> list[str]:
    if asked.no_python:
        return [asked.program, *own, *asked.arguments]
    # Through jtorch's own `run`, so that the program may say `import torch`.
    start = [sys.executable, "-u", "-m", "jtorch", "run", *(["-m"] if asked.module else [])]
    return [*start, asked.program, *own, *asked.arguments]


def _started(asked, started, restart, own):
    made = []
    for env in started:
        output = {}
        if asked.log_dir is not None:
            folder = os.path.join(asked.log_dir, str(env["RANK"]))
            os.makedirs(folder, exist_ok=True)
            output = {name: open(os.path.join(folder, f"{name}.log"), "wb") for name in ("stdout", "stderr")}
        words = {k: str(v) for k, v in env.items()} | {"TORCHELASTIC_RESTART_COUNT": str(restart)}
        made.append(subprocess.Popen(_command(asked, own(env["LOCAL_RANK"])), env=os.environ | words, **output))
        for file in output.values():
            file.close()
    return made


def _end(processes):
    """End those that still run: asked first, then made to."""
    for p in processes:
        if p.poll() is None:
            p.terminate()
    until = time.monotonic() + _PATIENCE
    for p in processes:
        try:
            p.wait(max(until - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()


def _watched(processes) -> int | None:
    """Wait for all; the number of the first that failed, or None."""
    while True:
        codes = [p.poll() for p in processes]
        failed = [k for k, code in enumerate(codes) if code]
        if failed:
            return failed[0]
        if None not in codes:
            return None
        time.sleep(_PAUSE)


def main(given=None, own=lambda local_rank: ()) -> None:
    """torchrun's command. Ends with status 1 where a process failed; the others are ended then.

    Args:
        given: its arguments, those of the process by default
        own: what arguments each process gets first, by its local rank
    """
    asked = arguments(given)
    started = environments(asked)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for restart in range(asked.max_restarts + 1):
        processes = _started(asked, started, restart, own)
        try:
            failed = _watched(processes)
        finally:
            _end(processes)
        if failed is None:
            return
        code = processes[failed].returncode
        what = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        again = f"; starting all again ({restart + 1} of {asked.max_restarts})" if restart < asked.max_restarts else ""
        print(
            f"torchrun: rank {started[failed]['RANK']} (pid {processes[failed].pid}) ended with {what}{again}",
            file=sys.stderr,
        )
    sys.exit(1)


if __name__ == "__main__":
    main()
