"""Running programs in processes of their own: the import swap is for a whole process."""

import os
import pathlib
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(text, folder, *arguments, command=("run",), name="program.py", check=True):
    """Write a program into a folder and run it under `python -m jtorch run`; returns the finished process."""
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return call([*command, str(path), *arguments], folder, check)


def call(arguments, folder, check=True, given=None):
    """`python -m jtorch` with these arguments, in a folder; `given`: what it finds on its standard input."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-m", "jtorch", *arguments],
        capture_output=True,
        text=True,
        input=given,
        cwd=folder,
        env=environment,
        timeout=300,
    )
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


def python(text, folder, check=True):
    """A program under plain Python."""
    path = folder / "plain.py"
    path.write_text(textwrap.dedent(text))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, cwd=folder, env=environment, timeout=300
    )
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    return done
