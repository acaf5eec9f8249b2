"""quiet.py: what jax says stays out of a program's log."""

import subprocess
import sys


def said(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert not done.returncode, done.stderr
    return done.stdout


def test_a_programs_log_is_its_own():
    """Programs that log everything, as many do, see neither jax looking for devices nor its compilations."""
    start = "import logging, sys; logging.basicConfig(stream=sys.stdout, level=logging.DEBUG)\n"
    step = "import jtorch\nlogging.debug('mine')\nx = jtorch.ones(3, requires_grad=True)\n(x.sin() * x).sum().backward()\nprint(x.grad.sum().item() > 0)\n"
    assert said(start + step) == "DEBUG:root:mine\nTrue\n"


def test_jaxs_log_is_left_as_it_was_set():
    program = "import logging; logging.getLogger('jax').setLevel(logging.INFO)\nimport jtorch\nprint(logging.getLogger('jax').level)"
    assert said(program) == "20\n"
