"""What the tests of the house share."""

import gc

import pytest

from tests.house.test_layers import tree


@pytest.fixture(autouse=True, scope="package")
def _trees():
    """Syntax trees are a million objects: collections would go through them again and again, which takes longer than all else here."""
    gc.disable()
    yield
    tree.cache_clear()
    gc.enable()
