"""`python -m jtorch bench`: jtorch's modes against hand-written JAX and PyTorch on five models."""

import argparse
import functools
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import jax

from jtorch.bench import clock, report, runners
from jtorch.bench.models import WORKLOADS
from jtorch.bench.runners import READ_EVERY

TOGETHER = """\
steps/s, x jax, x torch: all ways in one process, blocks of steps in turn, median over the rounds of the ratio
within a round; x torch is against PyTorch eager. Every way reads its loss each {read} steps.
In that process hand-written JAX has jtorch's allocator settings too."""
HOW = f"""\
{TOGETHER}
first step, steady, alone, peak: each way in a process of its own; JAX and PyTorch without jtorch.
Seconds count from the start of the process, imports included, with empty compilation caches; 'cached' is the
same with jtorch's cache of the run before. Steady: the first {READ_EVERY} steps within 1.3x of the last."""
HOW_QUICK = f"""\
{TOGETHER}
first step: in that process, from building the model; what was compiled before may be reused. (--quick)"""
WORKER = Path(runners.__file__).with_name("worker.py")
ALONE = 8.0  # seconds that a way runs in its own process: what is compiled beside a loop is then there


def names_of(kind: str, known: tuple[str, ...]) -> Callable[[str], list[str]]:
    """An argparse type: names separated by commas, each one of `known`, in the order of `known`."""

    def parse(text: str) -> list[str]:
        given = [name for name in text.split(",") if name]
        for name in given:
            if name not in known:
                raise argparse.ArgumentTypeError(f"no {kind} {name!r}; there are {', '.join(known)}")
        return [name for name in known if name in given]

    return parse


def file_in_folder(text: str) -> str:
    """An argparse type: a file that can be written, said before the minutes of measuring and not after."""
    path = Path(text)
    folder = path.absolute().parent
    if not os.access(folder, os.W_OK):
        raise argparse.ArgumentTypeError(f"cannot write into {folder}")
    if path.exists() and not path.is_file():  # a device would be replaced by a file
        raise argparse.ArgumentTypeError(f"{text} is no file")
    return text


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not positive")
    return value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    models, modes, peers = tuple(WORKLOADS), runners.MODES, runners.PEERS
    parser.add_argument("--models", type=names_of("model", models), default=list(models), metavar="A,B",
                        help=f"of {', '.join(models)} (default: all)")  # fmt: skip
    parser.add_argument("--modes", type=names_of("mode", modes), default=list(modes), metavar="A,B",
                        help=f"of {', '.join(modes)} (default: all)")  # fmt: skip
    parser.add_argument("--peers", type=names_of("peer", peers), default=list(peers), metavar="A,B",
                        help=f"of {', '.join(peers)} (default: all that are installed)")  # fmt: skip
    parser.add_argument("--steps", type=positive, metavar="N",
                        help="timed steps of each way (default: 20 blocks of about 0.1 s)")  # fmt: skip
    parser.add_argument("--read", type=positive, default=READ_EVERY, metavar="N",
                        help=f"steps from one look at the loss to the next (default: {READ_EVERY})")  # fmt: skip
    parser.add_argument("--json", type=file_in_folder, metavar="FILE", help="also write the measurements here")
    parser.add_argument("--plot", type=file_in_folder, metavar="FILE", help="also draw them here (needs matplotlib)")
    parser.add_argument("--quick", action="store_true", help="no processes of their own: no memory, no steady time")


@contextmanager
def progress(total: int):
    """A function (text, advance) that shows where the measuring is: tqdm's bar, or lines without it."""
    if importlib.util.find_spec("tqdm") is None or not sys.stderr.isatty():
        yield lambda text, advance=0: None if advance else print(text, file=sys.stderr, flush=True)
        return
    with importlib.import_module("tqdm").tqdm(total=total, leave=False, file=sys.stderr) as bar:

        def show(text: str, advance: int = 0) -> None:
            bar.set_description_str(text)
            bar.update(advance)

        yield show


def measure_together(
    name: str, ways: list[str], steps: int | None, tick: Callable[[], None], read: int = READ_EVERY
) -> list[dict]:
    """Rows of one model: all ways in this process. A way that fails gets a row with its error."""
    rows = {way: {"model": name, "way": way} for way in ways}
    opened = {}
    for way, row in rows.items():
        try:
            opened[way], row["in_process_first_step_s"] = clock.first_step(name, way)
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
    rates = clock.interleave(opened, steps, tick, read) if opened else {}
    for way, found in rates.items():
        rows[way]["rates"] = found
        rows[way]["steps_per_s"] = clock.statistics.median(found)
        for base in ("jax", "torch"):
            if base in rates:
                rows[way][f"ratio_{base}"] = clock.paired_ratio(found, rates[base])
    return list(rows.values())


def measure_alone(name: str, way: str, seconds: float, cache: str) -> dict:
    """The same way in a fresh process, with its compilation caches in the folder `cache`."""
    caches = {"JTORCH_CACHE_DIR": f"{cache}/jtorch", "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor"}
    root = str(Path(runners.__file__).parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    # -P: the folder of the script must not shadow other modules
    command = [sys.executable, "-P", str(WORKER), name, way, str(time.time()), str(seconds)]
    done = subprocess.run(command, env=os.environ | caches | {"PYTHONPATH": path}, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return {"error": f"in a process of its own: {last}"}
    return json.loads(done.stdout.splitlines()[-1])


def measure(args: argparse.Namespace, ways: list[str]) -> list[dict]:
    rows = []
    seconds = ALONE if args.steps is None else 0.2
    per_model = clock.ROUNDS if args.steps is None else 1
    with progress(len(args.models) * (per_model + (0 if args.quick else len(ways)))) as show:
        for name in args.models:
            show(f"{name}, interleaved")
            tick = functools.partial(show, f"{name}, interleaved", 1)
            found = measure_together(name, ways, args.steps, tick, args.read)
            for row in found:
                if args.quick:
                    row["first_step_s"] = row.get("in_process_first_step_s")
                    continue
                way = row["way"]
                show(f"{name}, {way} alone")
                with tempfile.TemporaryDirectory(prefix="jtorch-bench-") as cache:
                    row |= measure_alone(name, way, seconds, cache)
                    if way in runners.MODES and "error" not in row:
                        again = measure_alone(name, way, 0.0, cache)
                        row["warm_first_step_s"] = again.get("first_step_s")
                show(f"{name}, {way} alone", 1)
            rows += found
    return rows


def machine() -> dict:
    """Versions and devices, so that a file of measurements says what it measured."""
    installed = {}
    for package in ("jtorch-xla", "jax", "jaxlib", "optax", "numpy", "torch"):
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            installed[package] = None
    return {
        "python": sys.version.split()[0],
        "packages": installed,
        "device": str(jax.devices()[0].device_kind),
        "backend": jax.default_backend(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def run(args: argparse.Namespace) -> int:
    """Measure, print, write. 1 when a way could not be measured."""
    peers = args.peers
    if importlib.util.find_spec("torch") is None and any(peer.startswith("torch") for peer in peers):
        print("PyTorch is not installed: its columns are left out. pip install torch to compare with it.")
        peers = [peer for peer in peers if not peer.startswith("torch")]
    if not args.models or not args.modes + peers:
        print("python -m jtorch bench: nothing to measure: name a model, and a mode or a peer", file=sys.stderr)
        return 2
    if args.plot and importlib.util.find_spec("matplotlib") is None:
        print("--plot needs matplotlib: pip install 'jtorch-xla[examples]'", file=sys.stderr)
        return 2
    if args.plot and (refusal := report.no_such_picture(args.plot)):
        print(f"python -m jtorch bench: {refusal}", file=sys.stderr)
        return 2
    about = machine()
    if about["backend"] != "cpu" and "torch" in peers:
        on = runners.torch_device(importlib.import_module("torch"))
        if on == "cpu":
            print(f"PyTorch runs on the CPU here and JAX on {about['device']}: 'x torch' compares two machines.")
    if about["load"] is not None and about["load"] > 0.5 * about["cpus"]:
        print(f"The machine is busy (load {about['load']:.1f}): take the numbers as a rough guide.")
    rows = measure(args, args.modes + peers)
    how = (HOW_QUICK if args.quick else HOW).format(read=args.read)
    print(report.table(rows))
    failed = [row for row in rows if "error" in row]
    for row in failed:
        print(f"{row['model']}, {report.LABELS[row['way']]}: {row['error']}")
    print(f"\n{about['device']}, {about['cpus']} cpus, jax {about['packages']['jax']}\n{how}")
    if args.json:
        report.write_json(args.json, {"machine": about, "how": how, "results": rows})
    if args.plot:
        report.write_plot(args.plot, rows)
    return 1 if failed else 0
