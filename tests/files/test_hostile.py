"""Damaged and hostile files: one class of errors, nothing run, little memory, no file touched."""

import io
import os
import pickle
import random
import sys
import time
import tracemalloc
import types

import pytest

import jtorch
from jtorch.serialization import CheckpointError
from tests.files import hostile
from tests.files.structures import build, describe
from tests.oracle import torch


@pytest.fixture(scope="module")
def corpus():
    return dict(hostile.corpus())


@pytest.fixture
def canary(monkeypatch, tmp_path):
    """Anything that runs where nothing may fails the test; the working folder has to stay empty."""
    fired = []
    module = types.ModuleType(hostile.CANARY)
    module.fire = lambda *a: fired.append(a)
    monkeypatch.setitem(sys.modules, hostile.CANARY, module)
    monkeypatch.setattr(os, "system", lambda *a: fired.append(a))
    monkeypatch.chdir(tmp_path)
    yield
    assert not fired
    assert not list(tmp_path.iterdir())


def test_the_corpus_is_large(corpus):
    assert len(corpus) >= 300


@pytest.mark.filterwarnings("error")
def test_every_file_is_refused(canary, corpus):
    wrong = []
    for name, raw in corpus.items():
        before, start = set(sys.modules), time.monotonic()
        try:
            got = jtorch.load(io.BytesIO(raw))
        except CheckpointError:
            pass
        except BaseException as error:
            wrong.append(f"{name}: {type(error).__name__}: {error!s:.80}")
        else:
            wrong.append(f"{name}: gave {got!r:.80}")
        if time.monotonic() - start > 10:
            wrong.append(f"{name}: took too long")
        wrong += [f"{name}: imported {m}" for m in set(sys.modules) - before if not m.startswith(("jtorch", "jax"))]
    assert not wrong, f"{len(wrong)} of {len(corpus)}\n" + "\n".join(wrong)


def test_no_file_takes_more_memory_than_it_has(corpus):
    jtorch.load(io.BytesIO(hostile.good()))
    wrong = []
    tracemalloc.start()
    try:
        for name, raw in corpus.items():
            tracemalloc.reset_peak()
            base = tracemalloc.get_traced_memory()[0]
            with pytest.raises(CheckpointError):
                jtorch.load(io.BytesIO(raw))
            used = tracemalloc.get_traced_memory()[1] - base
            if used > (1 << 20) + 80 * len(raw):  # an opcode of one byte makes an object of some 60
                wrong.append(f"{name}: {used} bytes for a file of {len(raw)}")
    finally:
        tracemalloc.stop()
    assert not wrong, "\n".join(wrong)


def test_the_error_is_pytorchs_two(corpus):
    with pytest.raises(pickle.UnpicklingError, match="GLOBAL eval was not an allowed global by default"):
        jtorch.load(io.BytesIO(corpus["global builtins.eval"]))
    with pytest.raises(
        RuntimeError, match="PytorchStreamReader failed reading zip archive: failed finding central directory"
    ):
        jtorch.load(io.BytesIO(hostile.good()[:200]))
    with pytest.raises(EOFError):
        jtorch.load(io.BytesIO(b""))


def test_turned_bits_anywhere_change_nothing_or_raise(canary):
    """Some bytes of a file mean nothing (padding, dates); everything else is covered by a sum or checked."""
    whole = hostile.good()
    want = repr(jtorch.load(io.BytesIO(whole)))
    draw = random.Random(1)
    for _ in range(300):
        raw = bytearray(whole)
        raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
        try:
            got = jtorch.load(io.BytesIO(bytes(raw)))
        except CheckpointError:
            continue
        assert repr(got) == want


def test_random_pickles_give_a_value_or_the_error(canary):
    """The sums are right, the opcodes are not: what a deliberate attacker can do."""
    draw = random.Random(2)
    outcomes = set()
    for seed in range(40):
        f = io.BytesIO()
        torch.save(build(describe(seed), torch), f)
        import_zip = hostile.zipfile.ZipFile(f)
        data = import_zip.read("archive/data.pkl")
        records = [(n.removeprefix("archive/"), import_zip.read(n)) for n in import_zip.namelist() if "/data/" in n]
        for _ in range(12):
            raw = bytearray(data)
            for _ in range(draw.randint(1, 3)):
                kind, at = draw.randrange(3), draw.randrange(len(raw))
                if kind == 0:
                    raw[at] = draw.randrange(256)
                elif kind == 1:
                    del raw[at : at + draw.randint(1, 4)]
                else:
                    raw[at:at] = raw[draw.randrange(len(raw)) :][: draw.randint(1, 9)]
            try:
                jtorch.load(io.BytesIO(hostile.zipped(bytes(raw), records)))
                outcomes.add("value")
            except CheckpointError:
                outcomes.add("error")
    assert outcomes == {"value", "error"}
