"""What all tests share: one cache of compiled programs, fixed seeds, rows of one op next to each other."""

import gc
import os
import pathlib
import random

import pytest

from tests import flags
from tests.known import KNOWN
from tests.memory import crowded, forget_programs

_CACHE = pathlib.Path(__file__).resolve().parent.parent / ".pytest_cache" / "d" / "jtorch_programs"
# Before jtorch is imported, which is when it is read; xdist's workers inherit the same folder.
os.environ.setdefault("JTORCH_CACHE_DIR", str(_CACHE))
# Of each of the hundred processes that tests start a third went into compiling jtorch's sources once more.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def _compile_quickly():
    """A small program compiles in half the time. Processes that a test starts compile as users' do."""
    before = os.environ.get("XLA_FLAGS")
    os.environ["XLA_FLAGS"] = f"{flags.quick()} {before or ''}"
    from tests.lean import jax, lean  # noqa: PLC0415  after the flag is set

    lean()
    jax.devices()  # which reads the flags, once
    del os.environ["XLA_FLAGS"]
    if before is not None:
        os.environ["XLA_FLAGS"] = before


_compile_quickly()


def _settle():
    """What is there now is not gone through at each collection: there are millions of objects, and a collection took seconds."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Modules and tests are made to stay: a third of the time went into looking for what of them is garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        _settle()


@pytest.fixture(autouse=True, scope="module")
def _memory():
    """Programs of earlier modules are dropped when they fill the memory; they are on disk if they are needed again."""
    if crowded():
        forget_programs()
    yield
    _settle()


# Thousands of programs of a few ops, each run once or twice: compiling them is most of the time there is.
# Loops and traces ask for numbers alone; test_cli and test_examples train the same models optimised, in processes of their own.
_QUICKLY_COMPILED = (
    "amp",
    "autograd",
    "distributions",
    "func",
    "nn",
    "onnx",
    "ops",
    "optim",
    "sparse",
    "test_aside_of_regions.py",
    "test_aten_backward.py",
    "test_aten_orders.py",
    "test_audio.py",
    "test_c_names.py",
    "test_channel_order.py",
    "test_cli.py",
    "test_families.py",
    "test_folds.py",
    "test_foreach.py",
    "test_indexing.py",
    "test_maps.py",
    "test_methods.py",
    "test_names.py",
    "test_outer.py",
    "test_parcel.py",
    "test_parts.py",
    "test_prologue.py",
    "test_proof.py",
    "test_random_loops.py",
    "test_reads.py",
    "test_region.py",
    "test_strided.py",
    "test_tensor.py",
    "test_traces.py",
    "test_vision.py",
    "test_waiting.py",
)


@pytest.fixture(autouse=True, scope="module")
def _optimised(request):
    """All other modules are tested as users run them, with XLA's optimisations, and without them at first."""
    import jax  # noqa: PLC0415  after the environment above is set

    from jtorch.core import hasty  # noqa: PLC0415  as above

    quick = request.path.parent.name in _QUICKLY_COMPILED or request.path.name in _QUICKLY_COMPILED
    with pytest.MonkeyPatch.context() as patch:
        if quick:
            patch.setattr(hasty, "HASTE", {})  # what is made in haste is the same program, and made once
        jax.config.update("jax_disable_most_optimizations", quick)
        yield
        jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(autouse=True)
def _seed():
    random.seed(0)
    yield


@pytest.fixture(autouse=True)
def _nothing_unusual_is_left():
    """What a mode or a hook notes for its duration is taken away again: calls are slower while it is there."""
    yield
    from jtorch.core.record import tls  # noqa: PLC0415  after the environment above is set

    left = dict(tls.me.extra)
    tls.me.extra.clear()
    assert not left


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


@pytest.fixture(autouse=True)
def _nothing_seen():
    """What numpy runs at first depends on no other test."""
    from jtorch.core import sight  # noqa: PLC0415  after the settings above

    sight.seen.forget()


@pytest.fixture
def own_programs():
    """Auto mode, in which no program of an earlier test is found again."""
    import jtorch  # noqa: PLC0415  after the settings above
    from jtorch.core import paths  # noqa: PLC0415

    jtorch.synchronize()
    paths.forget()
    with jtorch.execution_mode("auto"):
        yield
