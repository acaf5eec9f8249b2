"""A process that ends while a program runs, whose results nobody has, or while a daemon thread computes."""

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
    for _ in range(10):
        x = layer(x).relu()
    return x.sum()

images = torch.randn(8, 48, 48, 48)
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
    for _ in range(2):
        ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120)
        assert (ended.returncode, ended.stdout) == (0, "True\n"), ended.stderr


DAEMON = """
import threading
import jtorch as torch

turns = threading.Semaphore(0)
idle = threading.Event()

def compute():
    x = torch.ones(64, 64)
    while True:
        x = (x @ x).tanh()
        x.sum().item()
        turns.release()

def sleep():
    torch.ones(2).tolist()
    turns.release()
    idle.wait()

for target in (compute, sleep):
    threading.Thread(target=target, daemon=True).start()
for _ in range(100):
    turns.acquire()
print("end")
"""


def test_daemon_threads_may_compute_until_the_end():
    for _ in range(2):
        ended = subprocess.run([sys.executable, "-c", DAEMON], capture_output=True, text=True, timeout=120)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "end\n", "")


def test_nothing_is_waited_for_where_nothing_runs():
    (torch.ones(3) + 1).tolist()
    time.sleep(0.05)
    assert not ending.busy()
    started = time.perf_counter()
    ending.wait()
    assert time.perf_counter() - started < 1
