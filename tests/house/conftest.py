"""What the tests of the house share."""

import pytest

from tests.house.test_layers import tree


@pytest.fixture(autouse=True, scope="package")
def _trees():
    """Syntax trees are millions of objects: every later collection would go through them."""
    yield
    tree.cache_clear()
