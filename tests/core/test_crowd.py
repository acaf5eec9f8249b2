"""A process that makes programs for ever keeps room for the next."""

import math

import pytest

import jtorch
from jtorch import config
from jtorch.core import crowd

TIMES = 20


@pytest.mark.skipif(not crowd.maps(), reason="the system does not tell how many memory maps there are")
@pytest.mark.parametrize("mode, step, many", [("auto", 3, 300), ("eager", 5, 700)])  # with nothing dropped 360 and 1040
def test_shapes_that_never_come_back(mode, step, many, monkeypatch):
    start, looks, held = crowd.maps(), [], []
    monkeypatch.setattr(crowd, "EACH", 10)
    monkeypatch.setattr(crowd, "ROOM", 0)
    monkeypatch.setattr(crowd, "most", lambda: looks.append(None) or (start + 100) / crowd.SHARE)
    monkeypatch.setattr(crowd, "crowd", crowd._Crowd())
    monkeypatch.setattr(config, "deterministic", True)  # every graph is compiled at once
    x = jtorch.zeros(1, requires_grad=True)
    with jtorch.execution_mode(mode):
        for n in range(1000, 1000 + TIMES * step, step):
            y = (x + jtorch.full((n,), 0.5)).sin().cumsum(0)[-1]
            y.backward()
            assert y.item() == pytest.approx(n * math.sin(0.5), rel=1e-4)
            held.append(crowd.maps())
    assert looks and crowd.crowd.kept, "nothing was dropped"
    assert max(held) < start + many, held
    assert x.grad.item() == pytest.approx(math.cos(0.5) * sum(range(1000, 1000 + TIMES * step, step)), rel=1e-3)


@pytest.mark.skipif(
    not (crowd.resident() and crowd.memory()), reason="the system does not tell how much memory there is"
)
def test_what_fills_the_memory_is_dropped(monkeypatch):
    """Once, where what is left is the program's own: not at each look."""
    dropped, had = [], crowd.resident()
    monkeypatch.setattr(crowd, "EACH", 2)
    monkeypatch.setattr(crowd, "crowd", crowd._Crowd())
    monkeypatch.setattr(crowd, "most", lambda: 1 << 30)
    monkeypatch.setattr(crowd, "forgetters", [*crowd.forgetters, lambda: dropped.append(crowd.crowd.made)])
    monkeypatch.setattr(crowd, "memory", lambda: had * 4)  # a quarter is held, less than the half
    for _ in range(4):
        crowd.made()
    assert not dropped
    monkeypatch.setattr(crowd, "memory", lambda: had)
    for _ in range(8):
        crowd.made()
    assert dropped == [6]
    assert 0 < crowd.crowd.bytes <= crowd.resident() + had * crowd.MORE
    monkeypatch.setattr(crowd, "memory", int)  # the system does not tell
    crowd.crowd.bytes = 0
    crowd.made()
    crowd.made()
    assert dropped == [6]
