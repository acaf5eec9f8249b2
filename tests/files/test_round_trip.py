"""Files from torch to jtorch and back: bits, strides, sharing, classes; options of save and load."""

import copy
import io
import pickle
import warnings

import pytest

import jtorch
from tests.files.structures import OLD, build, describe, seen
from tests.oracle import both, torch

CHUNK = 25
FILES = 200


def carried(obj, writer, reader, **options):
    f = io.BytesIO()
    writer.save(obj, f, **options)
    f.seek(0)
    return reader.load(f)


@pytest.mark.parametrize("start", range(0, FILES, CHUNK))
@pytest.mark.parametrize("way", ["torch to jtorch", "jtorch to torch", "jtorch to jtorch"])
def test_random_state_dicts(way, start):
    writer, reader = ({"torch": torch, "jtorch": jtorch}[name] for name in way.split(" to "))
    for seed in range(start, start + CHUNK):
        described = describe(seed)
        given = build(described, writer)
        assert seen(carried(given, writer, reader)) == seen(given), seed


@pytest.mark.parametrize("way", ["torch to jtorch", "jtorch to torch", "jtorch to jtorch"])
def test_the_legacy_format(way):
    writer, reader = ({"torch": torch, "jtorch": jtorch}[name] for name in way.split(" to "))
    for seed in range(1000, 1060):
        given = build(describe(seed, OLD), writer)
        got = carried(given, writer, reader, _use_new_zipfile_serialization=False)
        assert seen(got) == seen(given), seed


@pytest.mark.parametrize("way", ["save", "pickle", "copy", "parameter", "marked"])
def test_hooks_that_are_left_out_are_said(way):
    def program(t):
        x = t.nn.Parameter(t.ones(2)) if way == "parameter" else t.ones(2, requires_grad=True)
        hook = t.utils.hooks.unserializable_hook(lambda g: g) if way == "marked" else len
        x.register_hook(hook)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if way == "copy":
                copy.deepcopy(x)
            elif way == "pickle":
                pickle.dumps(x)
            else:
                t.save({"x": x}, io.BytesIO())
        return [(str(w.message), w.category.__name__) for w in caught]

    both(program)
