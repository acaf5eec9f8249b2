"""Rows of jtorch/ops/windows.py."""

from . import row

ROWS = [
    row("signal.windows.hamming"),
    row("signal.windows.hann"),
    row("signal.windows.bartlett"),
    row("signal.windows.blackman"),
    row("signal.windows.cosine"),
    row("signal.windows.exponential"),
    row("signal.windows.gaussian"),
    row("signal.windows.kaiser"),
    row("signal.windows.general_cosine"),
    row("signal.windows.general_hamming"),
    row("signal.windows.nuttall"),
]
