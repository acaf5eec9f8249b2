"""The safetensors format: against the safetensors package, pieces with an index, damaged files."""

import json
import random
import struct

import numpy as np
import pytest

import jtorch
from jtorch.files import safetensors
from jtorch.serialization import CheckpointError
from tests.files.structures import bits

package = pytest.importorskip("safetensors", reason="the package of the format is an extra of the tests")
theirs = pytest.importorskip("safetensors.numpy")


def tensors():
    draw = random.Random(0)
    made = {}
    for d in safetensors.DTYPES.values():
        for shape in ((), (3,), (2, 5), (0, 4)):
            raw = draw.randbytes(int(np.prod(shape)) * d.itemsize)
            raw = bytes(b & 1 for b in raw) if d.name == "bool" else raw
            made[f"{d.name}.{len(shape)}{shape}"] = jtorch.tensor(np.frombuffer(raw, d.np).reshape(shape))
    return made


def test_there_and_back(tmp_path):
    given = tensors()
    safetensors.save_file(given, tmp_path / "x.safetensors", {"format": "pt"})
    for got in (
        safetensors.load_file(tmp_path / "x.safetensors"), safetensors.load_file(tmp_path / "x.safetensors", mmap=True),
        safetensors.load(safetensors.save(given)), jtorch.load(tmp_path / "x.safetensors"),
    ):  # fmt: skip
        assert {k: (v.dtype, v.shape, bits(v)) for k, v in got.items()} == {
            k: (v.dtype, v.shape, bits(v)) for k, v in given.items()
        }


def test_the_package_reads_ours_and_the_reverse(tmp_path):
    plain = tensors()
    ours = dict(package.deserialize(safetensors.save(plain)))
    assert {k: (v["shape"], bytes(v["data"])) for k, v in ours.items()} == {
        k: (list(v.shape), bits(v)) for k, v in plain.items()
    }
    arrays = {
        "a": np.arange(6, dtype=np.int16).reshape(2, 3),
        "b": np.ones((), np.float64),
        "c": np.zeros((0, 2), np.float32),
    }
    theirs.save_file(arrays, tmp_path / "t.safetensors", {"k": "v"})
    with safetensors.safe_open(tmp_path / "t.safetensors", "pt") as f:
        assert f.keys() == ["a", "b", "c"] and f.metadata() == {"k": "v"}
        assert f.get_slice("a")[1, 1:].tolist() == [4, 5] and f.get_slice("a").get_shape() == [2, 3]
        assert {k: f.get_tensor(k).numpy().tobytes() for k in f.keys()} == {k: v.tobytes() for k, v in arrays.items()}


def test_models_with_tied_parameters(tmp_path):
    def made():
        net = jtorch.nn.Sequential(jtorch.nn.Linear(3, 3), jtorch.nn.Linear(3, 3))
        net[1].weight = net[0].weight
        return net

    a, b = made(), made()
    safetensors.save_model(a, tmp_path / "m.safetensors")
    assert safetensors.load_model(b, tmp_path / "m.safetensors").missing_keys == []
    assert b[1].weight is b[0].weight and jtorch.equal(b[0].weight, a[0].weight) and jtorch.equal(b[1].bias, a[1].bias)


def test_buffers_that_are_rows(tmp_path):
    module = jtorch.nn.Module()
    rows = jtorch.arange(6.0).reshape(3, 2) * 1
    module.register_buffer("best", rows[rows[:, 0].argmax()])
    module.register_buffer("again", rows[rows[:, 1].argmax()])
    safetensors.save_model(module, tmp_path / "m.safetensors")
    assert [x.tolist() for x in safetensors.load_file(tmp_path / "m.safetensors").values()] == [[4, 5]]


def test_refused():
    x = jtorch.ones(2, 3)
    for given, kind, words in (
        ({"x": x, "y": x}, RuntimeError, "Some tensors share memory"), ({"x": x.t()}, ValueError, "non contiguous tensor: `x`"),
        ({"x": 3}, ValueError, "expected torch.Tensor but received"), ([x], ValueError, "Expected a dict"),
        ({"x": jtorch.ones(2, dtype=jtorch.complex128)}, CheckpointError, "no dtype for torch.complex128"),
    ):  # fmt: skip
        with pytest.raises(kind, match=words):
            safetensors.save(given)
    for where in ({"cpu": "cpu"}, lambda s, at: s):
        with pytest.raises(RuntimeError, match="map_location is not supported"):
            jtorch.load("x.safetensors", map_location=where)


def test_pieces(tmp_path):
    safetensors.save_file({"a": jtorch.ones(2), "b": jtorch.zeros(1)}, tmp_path / "m-1.safetensors")
    safetensors.save_file({"c": jtorch.full((2,), 7.0)}, tmp_path / "m-2.safetensors")
    places = {"a": "m-1.safetensors", "c": "m-2.safetensors", "b": "m-1.safetensors"}
    index = tmp_path / "m.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    got = safetensors.load_file(index)
    assert {k: v.tolist() for k, v in got.items()} == {"a": [1, 1], "c": [7, 7], "b": [0]}
    outside = tmp_path / "inside"
    outside.mkdir()
    for piece in (
        "../m-1.safetensors",
        str(tmp_path / "m-1.safetensors"),
        "..",
        "",
        "a/../m-1.safetensors",
        "..\\m-1.safetensors",
        "a\0b",
    ):
        (outside / "m.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": piece}}))
        with pytest.raises(CheckpointError, match="outside its folder"):
            safetensors.load_file(outside / "m.safetensors.index.json")
    for text in (
        "",
        "[]",
        "{}",
        '{"weight_map": 3}',
        '{"weight_map": {"a": 3}}',
        "[" * 100_000,
        '{"weight_map": {}, "weight_map": {}}',
    ):
        index.write_text(text)
        with pytest.raises(CheckpointError, match="is no index of safetensors files"):
            safetensors.load_file(index)


def raw(header, data=b"", length=None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape) if isinstance(shape, tuple) else shape, "data_offsets": offsets}


BAD = {
    "empty": b"", "short": b"\0" * 7, "no header": b"\0" * 8, "huge header": raw(b"{}", length=2**62), "long header": raw(b"{}", length=200_000_000),
    "no JSON": raw(b"hello"), "no object": raw([1]), "deep JSON": raw(b"[" * 200_000), "bad UTF-8": raw(b'{"\xff": 1}'),
    "a tensor twice": raw(b'{"a": {"dtype":"F32","shape":[1],"data_offsets":[0,4]}, "a": {"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', bytes(4)),
    "no dtype": raw({"a": {"shape": [2], "data_offsets": [0, 8]}}, bytes(8)), "a number": raw({"a": 3}), "unknown dtype": raw({"a": entry("F99")}, bytes(8)),
    "dtype a list": raw({"a": entry(["F32"])}, bytes(8)), "shape a number": raw({"a": entry(shape=2)}, bytes(8)), "shape of texts": raw({"a": entry(shape=("2",))}, bytes(8)),
    "shape negative": raw({"a": entry(shape=(-2,))}, bytes(8)), "shape of bools": raw({"a": entry(shape=(True, 2))}, bytes(8)), "shape huge": raw({"a": entry(shape=(2**40,))}, bytes(8)),
    "shape overflowing": raw({"a": entry(shape=(2**62, 4))}, bytes(8)), "many dimensions": raw({"a": entry(shape=(1,) * 99 + (2,))}, bytes(8)), "offsets one": raw({"a": entry(offsets=[0])}, bytes(8)),
    "offsets reversed": raw({"a": entry(offsets=[8, 0])}, bytes(8)), "offsets negative": raw({"a": entry(offsets=[-8, 0])}, bytes(8)), "offsets outside": raw({"a": entry(offsets=[8, 16])}, bytes(8)),
    "offsets of texts": raw({"a": entry(offsets=["0", "8"])}, bytes(8)), "too short": raw({"a": entry()}, bytes(7)), "too long": raw({"a": entry()}, bytes(9)),
    "overlapping": raw({"a": entry(), "b": entry(offsets=[4, 12])}, bytes(12)), "a hole": raw({"a": entry(), "b": entry(offsets=[12, 20])}, bytes(20)), "the same place": raw({"a": entry(), "b": entry()}, bytes(8)),
    "metadata a list": raw({"__metadata__": [], "a": entry()}, bytes(8)), "metadata of numbers": raw({"__metadata__": {"a": 1}, "a": entry()}, bytes(8)),
}  # fmt: skip


def test_damaged_files_are_refused(tmp_path):
    wrong = []
    good = safetensors.save({"a": jtorch.ones(3), "b": jtorch.zeros(2)})
    cases = {**BAD, **{f"cut at {n}": good[:n] for n in range(0, len(good), 7)}}
    for name, data in cases.items():
        (tmp_path / "x.safetensors").write_bytes(data)
        for load in (lambda data=data: safetensors.load(data), lambda: jtorch.load(tmp_path / "x.safetensors")):
            try:
                load()
                wrong.append(f"{name}: loaded")
            except CheckpointError:
                pass
            except Exception as error:
                wrong.append(f"{name}: {error!r:.100}")
    assert not wrong, "\n".join(wrong)
