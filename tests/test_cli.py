"""The command line: the benchmark trains the same model every way, its arithmetic, its words; the doctor."""

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

import jtorch
from jtorch.__main__ import main
from jtorch.bench import clock, models, peers, report, runners, worker
from jtorch.cli import bench, coverage, doctor

NAMES = list(models.WORKLOADS)


def losses(torch, name, state=None, count=4):
    training = models.build(torch, name)
    if state is not None:
        training.model.load_state_dict({key: torch.from_numpy(value) for key, value in state.items()})
    pairs = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in models.batches(name, count)]
    return [training.step(x, y).item() for x, y in pairs]


@pytest.fixture(scope="module")
def oracle():
    """PyTorch's start and losses of each model, computed when asked for."""
    torch = pytest.importorskip("torch")
    known = {}

    def ask(name):
        if name not in known:
            state = models.build(torch, name).model.state_dict()
            known[name] = {k: v.numpy().copy() for k, v in state.items()}, losses(torch, name)
        return known[name]

    return ask


@pytest.mark.parametrize("name", NAMES)
def test_peer_does_the_same_mathematics(name, oracle):
    state, expected = oracle(name)
    with peers.narrow():
        peer = peers.build(name, peers.from_torch(state))
        found = [peer.step(*peers.batch(x, y)).item() for x, y in models.batches(name, 4)]
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_peer_starts_with_the_same_tree(name, oracle):
    ours = peers.from_torch(oracle(name)[0])
    its = peers.INIT[name](np.random.default_rng(0))
    assert jax.tree.map(np.shape, ours) == jax.tree.map(np.shape, its)


@pytest.mark.parametrize("name", NAMES)
def test_jtorch_does_the_same_mathematics(name, oracle):
    state, expected = oracle(name)
    found = losses(importlib.import_module("jtorch"), name, state)
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("way", runners.MODES)
def test_modes_train_alike(way):
    """The runners of the modes begin with the same weights and batches: their losses are one number."""
    expected = runners.open_runner("mlp", "auto").run(12)
    assert runners.open_runner("mlp", way).run(12) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("name", ["lstm", "gpt"])
def test_peer_runs_in_32_bits(name):
    """64-bit types are on in jtorch's process; the hand-written peer must not pay for them."""
    with peers.narrow():
        peer = peers.build(name)
        batch = peers.batch(*models.batches(name, 1)[0])
        lowered = peer.update.lower(peer.params, peer.stats, peer.opt_state, *batch)
        program = lowered.as_text(dialect="hlo")
    assert "f32[" in program
    assert not re.findall(r"[fsu]64\[", program)


class Fake:
    """A runner of known speed on a clock that only it moves."""

    def __init__(self, now, seconds):
        self.now, self.seconds = now, seconds

    def run(self, steps):
        self.now[0] += steps * self.seconds


def test_interleaved_ratio(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(clock.time, "perf_counter", lambda: now[0])
    ticks = []
    rates = clock.interleave({"a": Fake(now, 0.01), "b": Fake(now, 0.02)}, 100, lambda: ticks.append(1))
    assert len(rates["a"]) == len(rates["b"]) == len(ticks) == 10
    assert clock.paired_ratio(rates["a"], rates["b"]) == pytest.approx(2)


def test_paired_ratio_forgives_a_slow_round():
    assert clock.paired_ratio([2.0, 0.2, 2.0], [1.0, 0.1, 10.0]) == pytest.approx(2)


def test_lone_run_is_steady_once_it_has_sped_up(monkeypatch):
    """What is compiled beside a loop slows two thirds of its blocks down, and those are not its speed."""
    now = [100.0]
    runner = Fake(now, 0.01)
    monkeypatch.setattr(clock.time, "time", lambda: now[0])
    monkeypatch.setattr(clock, "first_step", lambda name, way: (runner, 0.0))

    def run(steps):
        now[0] += steps * (0.01 if now[0] < 103 else 0.002)

    runner.run = run
    found = clock.lone("mlp", "auto", 99.0, 8.0)
    assert found["first_step_s"] == pytest.approx(1)
    assert found["own_steps_per_s"] == pytest.approx(500)
    assert found["steady_s"] == pytest.approx(4.05, abs=0.1)


def test_table_leaves_out_what_nobody_measured():
    rows = [{"model": "mlp", "way": "auto", "steps_per_s": 12.34}, {"model": "mlp", "way": "jax"}]
    assert report.table(rows).splitlines() == [
        "model  way               steps/s",
        "mlp    jtorch auto          12.3",
        "mlp    hand-written jax        -",
    ]


def test_replace_keeps_the_old_file_when_writing_fails(tmp_path):
    path = tmp_path / "found.json"
    report.replace(path, b"old")
    with pytest.raises(TypeError):
        report.replace(path, "not bytes")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["found.json"]
    report.replace(path, b"new")
    assert path.read_bytes() == b"new"


def test_names():
    parse = bench.names_of("model", ("mlp", "cnn"))
    assert parse("cnn,mlp") == ["mlp", "cnn"]
    with pytest.raises(argparse.ArgumentTypeError, match="no model 'x'; there are mlp, cnn"):
        parse("x")


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"jtorch {jtorch.__version__} (PyTorch {jtorch.version.torch})\n"


@pytest.mark.parametrize(
    "argv, words",
    [
        (["bench", "--steps", "0"], "0 is not positive"),
        (["bench", "--json", "/nowhere/file.json"], "cannot write into /nowhere"),
        (["bench", "--json", "."], ". is no file"),
        (["bench", "--plot", os.devnull], f"{os.devnull} is no file"),
        (["bench", "--peers", "keras"], "no peer 'keras'"),
        ([], "required: command"),
    ],
)
def test_wrong_arguments(argv, words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(argv)
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv, words",
    [
        (["--models", ""], "nothing to measure"),
        (["--modes", "", "--peers", ""], "nothing to measure"),
        (["--plot", "found.xyz"], "no pictures in .xyz files; there are "),
    ],
)
def test_said_before_measuring(argv, words, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench, "measure", lambda *args: pytest.fail("measured"))
    assert main(["bench", *argv]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "error, status, words",
    [
        (KeyboardInterrupt(), 130, "python -m jtorch coverage: interrupted\n"),
        (OSError(28, "No space left on device"), 2, "python -m jtorch coverage: [Errno 28] No space left on device\n"),
        (BrokenPipeError(), 141, ""),
    ],
)
def test_commands_that_cannot_end(error, status, words, capsys, monkeypatch, tmp_path):
    def fail(*args):
        raise error

    monkeypatch.setattr(coverage, "run", fail)
    assert main(["coverage", str(tmp_path)]) == status
    assert capsys.readouterr().err == words


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a device that is always full")
def test_output_that_cannot_be_written():
    command = [sys.executable, "-m", "jtorch", "coverage", "nowhere.py"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "python -m jtorch coverage: [Errno 28] No space left on device\n"


def test_bench_without_torch(monkeypatch, capsys, tmp_path):
    """The peers that need PyTorch are left out, and it is said; the files are written all the same."""
    find = importlib.util.find_spec
    monkeypatch.setattr(bench.importlib.util, "find_spec", lambda name: None if name == "torch" else find(name))
    file, picture = tmp_path / "found.json", tmp_path / "found.png"
    argv = ["bench", "--quick", "--models", "mlp", "--modes", "auto", "--steps", "20", "--read", "5"]
    assert main([*argv, "--json", str(file), "--plot", str(picture)]) == 0
    out = capsys.readouterr().out
    assert "PyTorch is not installed" in out
    assert "reads its loss each 5 steps" in out
    rows = {row["way"]: row for row in json.loads(file.read_text())["results"]}
    assert set(rows) == {"auto", "jax"}
    assert rows["jax"]["ratio_jax"] == 1
    assert rows["auto"]["ratio_jax"] > 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_bench_says_which_way_failed(monkeypatch, capsys):
    def fail(name, way):
        raise ImportError("no such thing")

    monkeypatch.setattr(clock, "open_runner", fail)
    assert main(["bench", "--quick", "--models", "mlp", "--modes", "auto", "--peers", "jax"]) == 1
    assert "mlp, jtorch auto: ImportError: no such thing" in capsys.readouterr().out


def run_by_path(module, *argv, folder):
    """Run a file of the package by its path, where importing jtorch raises."""
    (folder / "jtorch.py").write_text("raise RuntimeError('jtorch is broken')")
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-P", str(Path(module.__file__)), *argv]
    return subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)


def test_hand_written_jax_is_measured_without_jtorch(tmp_path):
    done = run_by_path(worker, "mlp", "jax", str(time.time()), "0.01", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert 0 < found["first_step_s"] <= found["steady_s"]
    assert found["own_steps_per_s"] > 0
    assert found["peak_memory_mb"] > 50


def test_doctor_prints_every_part(capsys):
    doctor.run()
    out = capsys.readouterr().out
    for title in doctor.CHECKS:
        assert f"{title}\n" in out
    assert "could not be checked" not in out
    assert f"jax {jax.__version__}" in out


def test_doctor_where_jtorch_is_broken(tmp_path):
    done = run_by_path(doctor, folder=tmp_path)
    assert done.returncode == 1, done.stderr
    assert f"jax {jax.__version__}" in done.stdout
    assert "could not be checked: RuntimeError: jtorch is broken" in done.stdout
    assert "To fix\n" in done.stdout


@pytest.mark.parametrize(
    "name, value, part, words",
    [
        ("JTORCH_CACHE", "0", "cache", "unset JTORCH_CACHE=0"),
        ("JTORCH_CACHE_DIR", f"{__file__}/programs", "cache", "set JTORCH_CACHE_DIR to a folder that can be written"),
        ("JAX_PLATFORMS", "nowhere", "devices", "unset JAX_PLATFORMS, or install what it asks for"),
    ],
)
def test_doctor_says_what_to_change(name, value, part, words):
    program = f"from jtorch.cli import doctor; print([fix for _, fix in doctor.{part}()])"
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {name: value}, capture_output=True, text=True, timeout=300
    )
    assert words in done.stdout, done.stderr


def test_doctor_tells_what_is_too_old(monkeypatch):
    have = {"jax": "0.7.1", "jaxlib": "0.10.0", "optax": "0.2.8"}
    monkeypatch.setattr(doctor, "version_of", have.get)
    fixes = [fix for _, fix in doctor.versions() if fix]
    assert fixes == [
        "jax 0.7.1 is too old: pip install -U 'jax>=0.7.2'",
        "numpy is missing: pip install numpy",
        "ml_dtypes is missing: pip install ml_dtypes",
        "opt_einsum is missing: pip install opt_einsum",
        "jax refuses a newer jaxlib: pip install -U jax jaxlib",
    ]
