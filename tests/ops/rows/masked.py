"""Rows of public functions: masked."""

from . import row

ROWS = [
    row("masked.sum"),
    row("masked.prod"),
    row("masked.cumsum"),
    row("masked.cumprod"),
    row("masked.amax"),
    row("masked.amin"),
    row("masked.argmax"),
    row("masked.argmin"),
    row("masked.mean"),
    row("masked.median"),
    row("masked.norm"),
    row("masked.var"),
    row("masked.std"),
    row("masked.softmax"),
    row("masked.log_softmax"),
    row("masked.softmin"),
    row("masked.normalize"),
    row("masked.logaddexp"),
    row("masked.logsumexp"),
]
