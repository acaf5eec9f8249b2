"""startup.py: what is set before jax starts."""

import gc

import pytest

from jtorch import startup


@pytest.fixture
def collector():
    """How the process collects, put back in the end."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(
    "given, kept", [((700, 10, 10), (700, 10, 30)), ((900, 10, 20), (900, 10, 20)), ((0, 10, 0), (0, 10, 0))]
)
def test_full_collections_are_seldom_unless_the_program_says_how_often(given, kept, collector):
    gc.set_threshold(*given)
    startup._tune_collector()
    assert gc.get_threshold() == kept
