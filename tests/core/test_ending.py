"""A process that ends while a program runs, whose results nobody has."""

import subprocess
import sys
import time

import jtorch as torch
from jtorch.core import ending

SCRIPT = """
import time
import jtorch as torch
from jtorch.core import ending

layer = torch.nn.Conv2d(48, 48, 3, padding=1)

def forward(x):
    for _ in range(20):
        x = layer(x).relu()
    return x.sum()

images = torch.randn(16, 48, 48, 48)
for _ in range(3):
    forward(images).item()
started = time.perf_counter()
for _ in range(4):
    loss = forward(images)
    loss._storage.value.get()  # started, not looked at
del loss
print(ending.busy())
"""


def test_the_process_ends_once_what_runs_is_done():
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120)
        assert (ended.returncode, ended.stdout) == (0, "True\n"), ended.stderr


def test_nothing_is_waited_for_where_nothing_runs():
    (torch.ones(3) + 1).tolist()
    time.sleep(0.05)
    assert not ending.busy()
    started = time.perf_counter()
    ending.wait()
    assert time.perf_counter() - started < 1
