"""distributed/run.py: torchrun."""

import subprocess
import sys

import pytest

from jtorch.distributed import run

PROGRAM = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
t = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(t)
found = [None] * dist.get_world_size()
names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK OMP_NUM_THREADS TORCHELASTIC_RESTART_COUNT".split()
dist.all_gather_object(found, [os.environ[n] for n in names])
if dist.get_rank() == 0:
    print(t.item(), dist.is_torchelastic_launched(), sys.argv[1:], found)
dist.barrier()
if "fail" in sys.argv and dist.get_rank() == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    sys.exit(3)
dist.destroy_process_group()
"""


def torchrun(tmp_path, *given, module="torch.distributed.run", start=("-m", "jtorch", "run", "-m")):
    """(status, standard output, standard error) of the launcher."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    given = [str(program) if a == "PROGRAM" else a for a in given]
    done = subprocess.run(
        [sys.executable, *start, module, *given], capture_output=True, text=True, timeout=200, cwd=tmp_path
    )
    return done.returncode, done.stdout, done.stderr


def seen(restarts, *arguments):
    found = [[str(r), str(r), "2", "2", "0", "1", str(restarts)] for r in range(2)]
    return f"3.0 True {list(arguments)} {found}\n"


def test_two_processes_one_of_which_fails_at_first(tmp_path):
    status, out, err = torchrun(
        tmp_path, "--nproc_per_node=2", "--nnodes=1", "--max-restarts=1", "PROGRAM", "fail", "-x"
    )
    assert (status, out) == (0, seen(0, "fail", "-x") + seen(1, "fail", "-x")), err
    assert "rank 1" in err and "exit code 3; starting all again (1 of 1)" in err


def test_files_of_what_is_printed_and_the_older_launcher(tmp_path):
    given = ("--nproc-per-node", "2", "--log-dir", "logs", "PROGRAM", "fail")
    status, out, err = torchrun(tmp_path, *given, module="torch.distributed.launch")
    assert (status, out) == (1, "") and "rank 1" in err and "exit code 3" in err
    assert (tmp_path / "logs" / "0" / "stdout.log").read_text() == seen(0, "--local-rank=0", "fail")


def testenvironments():
    asked = run.arguments(["--nproc-per-node=2", "--nnodes=3", "--node-rank=1", "--master-addr=first", "x.py"])
    made = run.environments(asked)
    keys = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")
    assert [[env[k] for k in keys] for env in made] == [
        [2, 0, 6, 2, 1, "first", 29500],
        [3, 1, 6, 2, 1, "first", 29500],
    ]
    asked = run.arguments(["--rdzv-backend=c10d", "--rdzv-endpoint=host:1234", "-m", "module", "--flag"])
    [env] = run.environments(asked)
    assert (env["MASTER_ADDR"], env["MASTER_PORT"], asked.module, asked.arguments) == ("host", 1234, True, ["--flag"])
    assert "OMP_NUM_THREADS" not in env


@pytest.mark.parametrize("count", ["0", "gpu", "many"])
def test_numbers_of_processes(count):
    with pytest.raises(SystemExit, match="torchrun: .*nproc.per.node"):
        run.environments(run.arguments([f"--nproc-per-node={count}", "x.py"]))


def test_a_function_launched_in_two_processes(tmp_path):
    """The results come back, longer ones than a pipe holds too."""
    (tmp_path / "program.py").write_text(
        "import torch, torch.distributed as dist\n"
        "from torch.distributed.launcher.api import LaunchConfig, elastic_launch\n"
        "def summed(k):\n"
        "    dist.init_process_group('gloo')\n"
        "    t = torch.ones(1) * (dist.get_rank() + k)\n"
        "    dist.all_reduce(t)\n"
        "    return t.item(), 'x' * 200000\n"
        "if __name__ == '__main__':\n"
        "    found = elastic_launch(LaunchConfig(1, 1, 2), summed)(3)\n"
        "    print({rank: (value, len(text)) for rank, (value, text) in found.items()})\n"
    )
    start = [sys.executable, "-m", "jtorch", "run", "program.py"]
    done = subprocess.run(start, capture_output=True, text=True, timeout=200, cwd=tmp_path)
    assert done.stdout == "{0: (7.0, 200000), 1: (7.0, 200000)}\n", done.stderr
