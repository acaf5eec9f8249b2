"""What all tests share: one cache of compiled programs, fixed seeds, rows of one op next to each other."""

import os
import pathlib
import random

import pytest

from tests.known import KNOWN

_CACHE = pathlib.Path(__file__).resolve().parent.parent / ".pytest_cache" / "d" / "jtorch_programs"
# Before jtorch is imported, which is when it is read; xdist's workers inherit the same folder.
os.environ.setdefault("JTORCH_CACHE_DIR", str(_CACHE))


@pytest.fixture(autouse=True)
def _seed():
    random.seed(0)
    yield


def pytest_collection_modifyitems(items):
    """All properties of one row in a row, so that they share programs and an xdist worker gets them together."""

    def place(item):
        callspec = getattr(item, "callspec", None)
        return callspec.id if callspec is not None and "case" in callspec.params else ""

    for item in items:
        reason = KNOWN.get(item.nodeid)
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=not reason.startswith("order-dependent")))

    first = {}
    order = {item: first.setdefault((item.path, place(item) or item.name), len(first)) for item in items}
    items.sort(key=order.__getitem__)
