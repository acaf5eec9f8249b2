"""torch.distributed with several processes: the same program in both libraries, process by process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("two_processes.py")
PATIENCE = 240


def run(command, folder, *more, size=2):
    """What each process of a program wrote."""
    env = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")} | {"OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [*command, str(PROGRAM), str(rank), str(size), f"file://{folder}/store", str(folder), *more],
            env=env,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    said = [p.communicate(timeout=PATIENCE)[1] for p in processes]
    assert [p.returncode for p in processes] == [0] * size, "\n".join(said)[-4000:]
    return [(folder / f"{rank}.txt").read_text().splitlines() for rank in range(size)]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """(jtorch's lines, torch's lines) of each process."""
    ours = run([sys.executable, "-m", "jtorch", "run"], tmp_path_factory.mktemp("ours"), "all")
    return list(zip(ours, run([sys.executable], tmp_path_factory.mktemp("its"))))


@pytest.mark.parametrize("rank", range(2))
def test_every_process_finds_what_pytorchs_does(both, rank):
    ours, its = both[rank]
    ours = [line for line in ours if not line.startswith("ours")]
    assert len(ours) == len(its) > 80
    wrong = [f"{a}\n  torch: {b}" for a, b in zip(ours, its) if a != b]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("rank", range(2))
def test_what_pytorch_has_for_other_devices_alone(both, rank):
    found = [line for line in both[rank][0] if line.startswith("ours")]
    assert len(found) == 7 and not [line for line in found if "False" in line]
