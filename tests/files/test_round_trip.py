"""Files from torch to jtorch and back: bits, strides, sharing, classes; options of save and load."""

import copy
import io
import pickle
import warnings

import pytest

import jtorch
from jtorch.serialization import CheckpointError
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


@pytest.mark.parametrize("reader", [jtorch, torch])
@pytest.mark.parametrize("legacy", [False, True])
def test_rows_that_an_index_picks_which_is_not_computed_yet(legacy, reader):
    x = jtorch.arange(12.0).reshape(4, 3) * 1
    best = x[x[:, 0].argmax()]
    row, of_row = carried([best, best[1:]], jtorch, reader, _use_new_zipfile_serialization=not legacy)
    assert (row.tolist(), row.storage_offset(), of_row.tolist()) == ([9, 10, 11], 9, [10, 11])
    assert row.untyped_storage().data_ptr() == of_row.untyped_storage().data_ptr()


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


def test_a_class_that_asks_above_how_it_is_pickled():
    def program(torch):
        class Asks(torch.Tensor):
            def __reduce_ex__(self, protocol):
                return super().__reduce_ex__(protocol)

        Asks.__module__, Asks.__qualname__ = __name__, "Asks"
        globals()["Asks"] = Asks
        x = torch.ones(2).as_subclass(Asks)
        x.tag = "t"
        for new in (True, False):
            f = io.BytesIO()
            torch.save(x, f, _use_new_zipfile_serialization=new)
            f.seek(0)
            with torch.serialization.safe_globals([Asks]):
                got = torch.load(f)
            yield type(got).__name__, got.tag, got.tolist()
        yield pickle.loads(pickle.dumps(x)).tag

    both(lambda torch: list(program(torch)))


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_sparse_tensors_have_attributes_and_both_formats():
    def program(torch, reader):
        made = []
        for layout, block in (("coo", ()), ("csr", ()), ("csc", ()), ("bsr", ((1, 1),)), ("bsc", ((1, 1),))):
            x = getattr(torch.eye(3), "to_sparse" if layout == "coo" else f"to_sparse_{layout}")(*block)
            for tag in (None, "t"):
                if tag:
                    x.tag = tag
                for new in (True, False):
                    f = io.BytesIO()
                    torch.save([x], f, _use_new_zipfile_serialization=new)
                    f.seek(0)
                    (got,) = reader.load(f)
                    made.append(
                        (
                            str(got.layout),
                            got.to_dense().tolist(),
                            got.__dict__.get("tag"),
                            (got + got).to_dense().tolist(),
                        )
                    )
        return made

    want = program(torch, torch)
    for writer, reader in ((torch, jtorch), (jtorch, torch), (jtorch, jtorch)):
        assert program(writer, reader) == want


def test_an_old_file_with_wrong_indices_is_refused():
    class Spoof:
        def __init__(self, *parts):
            self.parts = parts

        def __reduce__(self):
            return torch._utils._rebuild_sparse_tensor, self.parts

    coo = torch.sparse_coo, (torch.tensor([[3]]), torch.ones(1), torch.Size([3]), False)
    csr = torch.sparse_csr, (torch.tensor([3, 0, 1]), torch.tensor([0]), torch.ones(1), torch.Size([2, 2]))
    for parts in (coo, csr):
        for new in (True, False):
            f = io.BytesIO()
            torch.save(Spoof(*parts), f, _use_new_zipfile_serialization=new)
            f.seek(0)
            with pytest.raises(CheckpointError, match="do not fit"):
                jtorch.load(f)
