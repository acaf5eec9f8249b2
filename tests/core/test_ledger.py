"""The ledger: lines, counts, and that it stays small."""

import jtorch
from jtorch.core import ledger


def test_user_line_is_outside_jtorch():
    assert "test_ledger.py:" in ledger.user_line()


def test_entries_are_bounded(monkeypatch):
    monkeypatch.setattr(ledger, "_KEEP", 10)
    monkeypatch.setattr(ledger, "entries", [])
    x = jtorch.ones(3)
    for n in range(30):
        y = x
        for _ in range(n % 15 + 1):
            y = y + 1
        y.tolist()
        jtorch.core.paths.forget()
    assert len(ledger.entries) <= 11


def test_counters_clear():
    counters = ledger.Counters()
    counters.flushes += 3
    counters.data_wait += 1.0
    counters.clear()
    assert counters.flushes == 0 and counters.data_wait == 0.0


def test_every_flush_is_counted_once():
    x = jtorch.ones(19)
    jtorch.synchronize()
    c = ledger.counters
    before = c.flushes, c.by_op + c.reused + c.compiles
    for _ in range(5):
        (x + 1).tolist()
    assert c.flushes - before[0] == 5
    assert c.by_op + c.reused + c.compiles - before[1] == 5
