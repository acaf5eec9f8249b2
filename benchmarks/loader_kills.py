"""Does anything hang or stay behind when loading is cut short? Runs of start, kill something at random, stop.

Run: python benchmarks/loader_kills.py [--runs 200] [--seed 0] [--programs 40]

Most runs are in this process: a loader is started and a worker, or now and then the process that workers are forked
from, gets SIGKILL at a random moment. `--programs` of them are programs of their own that end in the middle of an
epoch: by their last line, by Ctrl-C, or by SIGKILL. Afterwards it counts runs that took longer than a minute, processes
that are still there, and shared memory that is mapped by anybody or has a name in /dev/shm.
"""

import argparse
import gc
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
import uuid

import numpy as np

import jtorch
from jtorch.data.helper import helper

LIMIT, SETTLE = 60, 12
_MARK = "JTORCH_KILLS"
# A program started in the background of a shell ignores SIGINT, and so would all that it starts.
_PROGRAM = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
import jtorch
class Data:
    def __len__(self): return 10_000
    def __getitem__(self, i):
        time.sleep(0.001)
        return np.full((64, 64), i, np.float32)
loader = jtorch.utils.data.DataLoader(Data(), batch_size=8, num_workers=2)
kept = []
for k, batch in enumerate(loader):
    kept = [batch, *kept[:3]]
    if k == 0:
        print("started", flush=True)
    if k == {batches}:
        break
{ending}
"""


class Data:
    """Slow enough to be killed in the middle of it."""

    def __len__(self):
        return 400

    def __getitem__(self, i):
        time.sleep(0.0005)
        return np.full((64, 64), i, np.float32)


def marked():
    """pids of all processes that came from this run, without this one."""
    mark = f"{_MARK}={os.environ[_MARK]}".encode()
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state = (path / "stat").read_text().rpartition(")")[2].split()[0]
            if mark in (path / "environ").read_bytes() and state != "Z" and int(path.name) != os.getpid():
                found.append(int(path.name))
        except OSError:
            continue
    return found


def mapped():
    """Segments that any process of this run maps, this one included."""
    found = set()
    for pid in [*marked(), os.getpid()]:
        try:
            lines = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
        except OSError:
            continue
        found |= {
            (pid, m[0]) for line in lines if (m := re.search(r"(\S+) \S+ \S+ \S+ \S+\s+/memfd:jtorch-data", line))
        }
    return found


def named():
    return set(os.listdir("/dev/shm"))


def kill_in_process(rng):
    """One run here; the words of the error, or None where the epoch ended before the kill."""
    loader = jtorch.utils.data.DataLoader(
        Data(), batch_size=8, num_workers=2, shuffle=True, persistent_workers=rng.random() < 0.3,
        in_order=rng.random() < 0.7, prefetch_factor=rng.choice((1, 2, 4)),
    )  # fmt: skip
    batches = iter(loader)
    next(batches)
    victim = helper._process.pid if rng.random() < 0.1 else rng.choice(batches._workers).pid
    timer = threading.Timer(rng.random() * 0.15, lambda: os.kill(victim, signal.SIGKILL))
    timer.start()
    try:
        kept = [batch for batch in batches]
        if rng.random() < 0.5:
            del kept
    except RuntimeError as error:
        return str(error)
    finally:
        timer.join()
    return None


def kill_program(rng):
    """One program that ends in one of three ways; its exit code."""
    how = rng.choice(("end", "exit", "interrupt", "kill"))
    ending = "sys.exit(0)" if how == "exit" else "" if how == "end" else "time.sleep(600)"
    batches = rng.randrange(1, 60) if ending != "time.sleep(600)" else 100_000
    child = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM.format(batches=batches, ending=ending)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    child.stdout.readline()
    if ending == "time.sleep(600)":
        time.sleep(rng.random() * 0.3)
        if how == "interrupt":
            os.killpg(child.pid, signal.SIGINT)  # as a terminal does: to all of them
        else:
            child.kill()
    code = child.wait(LIMIT)
    child.stdout.close()
    return code


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--programs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    programs = args.runs // 5 if args.programs is None else args.programs
    os.environ[_MARK] = uuid.uuid4().hex
    rng = random.Random(args.seed)
    before = named()
    hangs = died = 0
    kinds = [kill_program] * programs + [kill_in_process] * (args.runs - programs)
    rng.shuffle(kinds)

    def too_long(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, too_long)
    for kind in kinds:
        signal.alarm(LIMIT)
        try:
            got = kind(rng)
            died += isinstance(got, str)
            assert not isinstance(got, str) or "exited unexpectedly" in got or "ended (exit code" in got, got
        except (TimeoutError, subprocess.TimeoutExpired):
            hangs += 1
            traceback.print_exc()
        finally:
            signal.alarm(0)
    gc.collect()
    helper.stop()
    deadline = time.monotonic() + SETTLE
    while marked() and time.monotonic() < deadline:
        time.sleep(0.05)
    processes, segments = marked(), mapped() | (named() - before)
    print(
        f"{args.runs} runs ({programs} programs), {died} met a dead worker: "
        f"{hangs} hangs, {len(processes)} processes left, {len(segments)} segments left"
    )
    return int(bool(hangs or processes or segments))


if __name__ == "__main__":
    sys.exit(main())
