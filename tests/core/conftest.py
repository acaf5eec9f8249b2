"""What several test modules of the core need."""

import pytest

from jtorch.compile import waiting
from jtorch.core import chain, costs, gather, program


@pytest.fixture
def runs(monkeypatch):
    """Chains are made early, however slow the machine is; the lengths of those that have run."""
    monkeypatch.setattr(program, "LATE", 2)
    monkeypatch.setattr(costs, "AT_MOST_OFTEN", 12)
    monkeypatch.setattr(chain, "SHORT", 60.0)
    monkeypatch.setattr(chain, "WATCHED", 8)
    monkeypatch.setattr(gather, "WATCHED", 4)
    lengths = []

    def run(one, gathering, calls, results, *parcel):
        lengths.append(len(calls))
        return chain.run_chained(one, gathering, calls, results, *parcel)

    monkeypatch.setattr(gather, "run_chained", run)
    monkeypatch.setattr(waiting, "run_chained", run)
    return lengths
