"""Each example runs at a small size, and its text is PyTorch's: it runs with the import swapped back."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import flags

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")


def run(script, *argv):
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    # PyTorch's threads wait by turning.
    env = os.environ | {"OMP_NUM_THREADS": "1", "XLA_FLAGS": flags.quick(), "PYTHONPATH": path}
    done = subprocess.run([sys.executable, str(script), *argv], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def under_torch(name, folder):
    """A copy of the example with the import swapped back."""
    text = (ROOT / "examples" / name).read_text()
    copy = folder / name
    copy.write_text(text.replace("import jtorch as torch", "import torch").replace("from jtorch", "from torch"))
    assert "jtorch" not in "".join(re.findall(r"^(?:import|from) .*$", copy.read_text(), re.MULTILINE))
    return copy


def digits_accuracy(out, model):
    return float(re.search(rf"{model}  test accuracy (\S+)%", out)[1])


def gpt_losses(out):
    return [float(loss) for loss in re.findall(r"loss (\S+)", out)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_short_enough(path):
    assert len(path.read_text().splitlines()) <= 150


def test_digits_table():
    out = run(ROOT / "examples" / "train_digits.py", "--quick", "--model", "mlp")
    assert digits_accuracy(out, "mlp") > 85
    head, row = out.splitlines()[-2:]
    assert head.split()[-3:] == ["eager", "auto", "compile"]
    assert all(int(rate) > 0 for rate in row.split()[1:])


# As few epochs as 97% need.
DIGITS = pytest.mark.parametrize("model, epochs", [("mlp", 30), ("cnn", 3)])


@DIGITS
def test_digits_are_learned(model, epochs):
    out = run(ROOT / "examples" / "train_digits.py", "--model", model, "--epochs", str(epochs), "--no-table")
    assert digits_accuracy(out, model) >= 97


@needs_torch
@DIGITS
def test_digits_under_torch(model, epochs, tmp_path):
    out = run(under_torch("train_digits.py", tmp_path), "--model", model, "--epochs", str(epochs), "--no-table")
    assert digits_accuracy(out, model) >= 97


GPT = "--steps", "10", "--sample", "20"


@pytest.fixture(scope="module")
def gpt():
    """What a short run of the GPT prints."""
    return run(ROOT / "examples" / "char_gpt.py", *GPT)


def test_char_gpt_learns(gpt):
    found = gpt_losses(gpt)
    assert found[-1] < found[0] - 0.8
    assert len(gpt.split("\nReturn the ")[1]) > 20


@needs_torch
def test_char_gpt_learns_as_under_torch(gpt, tmp_path):
    """No dropout, the same start and the same batches: the losses are the same numbers."""
    its = gpt_losses(run(under_torch("char_gpt.py", tmp_path), *GPT))
    assert len(its) == 10
    assert gpt_losses(gpt) == pytest.approx(its, abs=5e-3)


def vae_bounds(out):
    return [float(bound) for bound in re.findall(r"test +(\S+)", out)]


@pytest.fixture(scope="module")
def vae():
    """What three epochs of the VAE print."""
    return run(ROOT / "examples" / "vae.py", "--epochs", "3")


def test_vae_learns(vae):
    found = vae_bounds(vae)
    assert found[-1] > found[0] + 2
    assert len(vae.split("from the prior\n")[1].splitlines()) == 8


@needs_torch
def test_vae_learns_as_under_torch(vae, tmp_path):
    """The same start, the same batches and the same noise: the bounds are the same numbers."""
    its = vae_bounds(run(under_torch("vae.py", tmp_path), "--epochs", "3"))
    assert len(its) == 3
    assert vae_bounds(vae) == pytest.approx(its, abs=0.1)
