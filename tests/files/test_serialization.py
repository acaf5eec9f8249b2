"""torch.serialization: options of save and load, the lists of allowed names, atomic saving, plain pickle."""

import collections
import copy
import io
import mmap
import os
import pickle
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import jtorch
from jtorch.serialization import CheckpointError
from tests.oracle import both, torch


def there_and_back(module, obj, **options):
    f = io.BytesIO()
    module.save(obj, f)
    f.seek(0)
    return module.load(f, **options)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file by PyTorch."""
    found = tmp_path_factory.mktemp("files") / "state.pt"
    x = torch.arange(12.0).view(3, 4)
    torch.save({"x": x, "t": x.t(), "n": torch.tensor([1, 2], dtype=torch.int16)}, found)
    return found


class Plain:
    """A class of the user."""

    def __init__(self):
        self.value = jtorch.ones(2)


class Sub(jtorch.Tensor):
    """A tensor subclass of the user."""


class Special(jtorch.nn.Parameter):
    """A parameter class of the user."""


def function():
    return 3


# --- values -----------------------------------------------------------------------------------------------------------------


def test_values_of_all_kinds():
    def program(torch):
        values = [
            torch.float32, torch.device("cpu"), torch.device("cuda", 1), torch.Size([2, 3]), torch.strided, 3, 2**80, 1.5, None, True,
            "text", b"bytes", bytearray(b"x"), 1 + 2j, {1, 2}, collections.Counter("aab"), collections.OrderedDict(a=1), (1, (2,)),
            torch.tensor(3), torch.empty(0, 3), torch.ones(2).bfloat16(), torch.tensor([True, False]), torch.tensor([1j]),
            torch.ones(3).expand(2, 3), torch.zeros(2, device="meta"), torch.float8_e5m2,
        ]  # fmt: skip
        got = there_and_back(torch, values)
        return [repr(v) for v in got], [v.stride() for v in got if torch.is_tensor(v)]

    both(program)


def test_conjugates_and_negatives_come_as_values():
    z, w = torch.tensor([1 + 2j, 3 - 1j]), torch.tensor([1 + 2j, 3 - 1j])
    for new in (True, False):
        f = io.BytesIO()
        torch.save([z.conj(), w.conj().imag, z], f, _use_new_zipfile_serialization=new)
        f.seek(0)
        assert [t.tolist() for t in jtorch.load(f)] == [[1 - 2j, 3 + 1j], [-2.0, 1.0], [1 + 2j, 3 - 1j]]


def test_a_result_is_saved_as_a_leaf():
    def program(torch):
        y = torch.ones(2, requires_grad=True) * 3
        got, again = there_and_back(torch, y), pickle.loads(pickle.dumps(y))
        return got, got.is_leaf, again, again.is_leaf

    both(program)


def test_refused():
    both(lambda torch: torch.save(1, 3))
    both(lambda torch: torch.save(1, "/nowhere/x.pt"))
    both(lambda torch: torch.load(3))
    both(lambda torch: torch.load("/nowhere/x.pt"))
    both(lambda torch: torch.load(io.BytesIO(), pickle_module=pickle, weights_only=True))

    def two_dtypes(torch):
        x = torch.ones(4)
        torch.save([x, x.view(torch.int32)], io.BytesIO())

    both(two_dtypes)


def test_what_is_ours_alone_is_not_saved():
    with pytest.raises(TypeError, match="PyTorch has no such object"):
        jtorch.save(jtorch.execution_mode, io.BytesIO())
    with pytest.raises(TypeError, match="cannot pickle 'torch.memory_format' object"):
        jtorch.save(jtorch.channels_last, io.BytesIO())
    with pytest.raises(TypeError, match="not a subclass of Python's own"):
        jtorch.save(1, io.BytesIO(), pickle_module=io)


# --- the allow-list ---------------------------------------------------------------------------------------------------------


def test_names_that_the_user_allows():
    f = io.BytesIO()
    jtorch.save({"a": Plain(), "f": function}, f)
    name = f"{__name__}.Plain"
    f.seek(0)
    assert jtorch.serialization.get_unsafe_globals_in_checkpoint(f) == [name, f"{__name__}.function"]
    f.seek(0)
    with pytest.raises(CheckpointError, match="was not an allowed global by default"):
        jtorch.load(f)
    f.seek(0)
    with jtorch.serialization.safe_globals([Plain, (function, f"{__name__}.function")]):
        assert jtorch.serialization.get_safe_globals() == [Plain, (function, f"{__name__}.function")]
        got = jtorch.load(f)
    assert type(got["a"]) is Plain and got["a"].value.tolist() == [1, 1] and got["f"]() == 3
    assert jtorch.serialization.get_safe_globals() == []
    numbers = io.BytesIO()
    jtorch.save([1], numbers)
    numbers.seek(0)
    with jtorch.serialization.safe_globals([3]):  # it has no name that a file could ask for
        assert jtorch.load(numbers) == [1]
    jtorch.serialization.add_safe_globals([Plain])
    jtorch.serialization.clear_safe_globals()
    f.seek(0)
    with pytest.raises(CheckpointError):
        jtorch.load(f)


def test_modules_are_allowed_under_pytorchs_names():
    f = io.BytesIO()
    torch.save(torch.nn.Flatten(), f)
    f.seek(0)
    with jtorch.serialization.safe_globals([jtorch.nn.Flatten, set]):
        assert type(jtorch.load(f)) is jtorch.nn.Flatten


def test_blocked_modules_stay_blocked():
    f = io.BytesIO()
    torch.save(os.getpid, f)
    f.seek(0)
    with (
        jtorch.serialization.safe_globals([os.getpid]),
        pytest.raises(CheckpointError, match="whose module posix is blocked"),
    ):
        jtorch.load(f)


def test_a_trusting_load():
    got = there_and_back(jtorch, Plain(), weights_only=False)
    assert type(got) is Plain and got.value.tolist() == [1, 1]


def test_tensor_subclasses_and_attributes():
    x = jtorch.arange(4.0).as_subclass(Sub)
    x.tag = "t"
    p = jtorch.nn.Parameter(jtorch.ones(2))
    p.tag = 3
    f = io.BytesIO()
    jtorch.save([x, p], f)
    f.seek(0)
    with jtorch.serialization.safe_globals([Sub]):
        a, b = jtorch.load(f)
    assert type(a) is Sub and a.tag == "t" and a.tolist() == [0, 1, 2, 3]
    assert type(b) is jtorch.nn.Parameter and b.tag == 3 and b.requires_grad


def test_a_parameter_of_a_users_class_comes_back_as_a_parameter():
    p = Special(jtorch.ones(2))
    p.tag = 3
    for got in (there_and_back(jtorch, p), there_and_back(torch, p_of_torch()), pickle.loads(pickle.dumps(p))):
        assert type(got).__name__ == "Parameter" and got.tag == 3 and got.requires_grad
    assert type(copy.deepcopy(p)) is Special


def p_of_torch():
    """The same in PyTorch, whose answer is the one wanted."""
    p = type("Special", (torch.nn.Parameter,), {})(torch.ones(2))
    p.tag = 3
    return p


def test_names_of_python_2_are_those_of_today():
    f = io.BytesIO()
    torch.save([range(3), int], f)
    for module in (torch, jtorch):
        f.seek(0)
        assert sorted(module.serialization.get_unsafe_globals_in_checkpoint(f)) == ["builtins.int", "builtins.range"]
        f.seek(0)
        with module.serialization.safe_globals([range, int]):
            assert module.load(f) == [range(3), int]


def test_names_of_storages_as_bytes():
    f = io.BytesIO()
    torch.save([torch.ones(2), "text"], f, _use_new_zipfile_serialization=False)
    # As Python 2 wrote text: SHORT_BINSTRING in the place of BINUNICODE.
    old = re.sub(rb"X(.)\0\0\0", rb"U\1", f.getvalue(), flags=re.DOTALL)
    for options in ({"weights_only": False, "encoding": "bytes"}, {"weights_only": False, "encoding": "latin1"}):
        got, want = (module.load(io.BytesIO(old), **options) for module in (jtorch, torch))
        assert got[0].tolist() == want[0].tolist() == [1, 1] and got[1] == want[1]


@pytest.mark.parametrize("safe", [True, False])
def test_unknown_arguments(safe, tmp_path):
    torch.save([1], tmp_path / "f.pt")
    both(lambda t: t.load(tmp_path / "f.pt", weights_only=safe, errorss="strict"))


@pytest.mark.parametrize(
    "value, want", [("TORCH_FORCE_WEIGHTS_ONLY_LOAD", True), ("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", False)]
)
def test_environment(monkeypatch, value, want):
    monkeypatch.setenv(value, "1")
    f = io.BytesIO()
    jtorch.save(Plain(), f)
    f.seek(0)
    if want:
        with pytest.raises(CheckpointError):
            jtorch.load(f, weights_only=False)
    else:
        with pytest.warns(UserWarning, match="forcing weights_only=False"):
            assert type(jtorch.load(f)) is Plain


# --- places -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "where",
    ["cpu", "meta", {"cpu": "meta"}, {"cuda:0": "cpu"}, lambda s, at: s, lambda s, at: None, lambda s, at: s.clone()],
)
@pytest.mark.parametrize("new", [True, False])
def test_map_location(where, new):
    def program(torch):
        f = io.BytesIO()
        x = torch.arange(6.0).view(2, 3)
        torch.save([x, x.t()], f, _use_new_zipfile_serialization=new)
        f.seek(0)
        a, b = torch.load(f, map_location=where)
        return str(a.device), a.stride(), b.stride(), "" if a.is_meta else a.tolist() + b.tolist()

    both(program)


def test_a_device_as_map_location():
    both(lambda torch: there_and_back(torch, torch.ones(2), map_location=torch.device("cpu")))
    both(lambda torch: str(there_and_back(torch, torch.ones(2), map_location=torch.device("meta")).device))


@pytest.mark.skipif(jtorch.cuda.is_available(), reason="asks for a device that is not there")
def test_a_place_that_is_not_there():
    both(lambda torch: there_and_back(torch, torch.ones(2), map_location="cuda:0"))
    with pytest.raises(RuntimeError, match="don't know how to restore data location"):
        there_and_back(jtorch, jtorch.ones(2), map_location="ipu")


def test_register_package():
    entry = (5, lambda s: "mine" if s.nbytes() == 12 else None, lambda s, at: s if at == "mine" else None)
    jtorch.serialization.register_package(*entry)
    try:
        f = io.BytesIO()
        jtorch.save(jtorch.ones(3), f)
        assert b"mine" in f.getvalue()
        f.seek(0)
        assert jtorch.load(f).tolist() == [1, 1, 1]
        with pytest.raises(RuntimeError, match="tagged with mine"):
            torch.load(io.BytesIO(f.getvalue()))
    finally:
        jtorch.files.locations._registry.remove(entry)


# --- files ------------------------------------------------------------------------------------------------------------------


class mappings:
    """The addresses at which this process has a file mapped."""

    def __init__(self, path):
        with open("/proc/self/maps") as f:
            self.spans = [line.split()[0].split("-") for line in f if line.rstrip().endswith(str(path))]

    def __contains__(self, address):
        return any(int(a, 16) <= address < int(b, 16) for a, b in self.spans)


@pytest.mark.skipif(sys.platform != "linux" or jtorch.cuda.is_available(), reason="looks at /proc, for host memory")
def test_mmap_reads_nothing_before_it_is_used(path):
    got = jtorch.load(path, mmap=True)
    storage = got["x"]._storage
    assert got["t"]._storage is storage and storage.value.unsafe_buffer_pointer() in mappings(path)
    assert got["t"].tolist() == torch.arange(12.0).view(3, 4).t().tolist()
    got["x"][0, 0] = 100  # stays in memory
    assert got["t"][0, 0].item() == 100 and (got["x"] + 1).sum().item() == 12 + 66 + 100
    assert jtorch.load(path)["x"][0, 0].item() == 0


def test_mmap_shared_writes_to_the_file(tmp_path):
    target = tmp_path / "x.pt"
    jtorch.save(jtorch.zeros(4), target)
    with jtorch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        x = jtorch.load(target, mmap=True)
        x[1] = 5
        x.add_(1)
    assert torch.load(target, weights_only=True).tolist() == [1, 6, 1, 1]
    both(lambda torch: torch.serialization.set_default_mmap_options(77))


def test_mmap_refuses(tmp_path, path):
    both(lambda torch: torch.load(io.BytesIO(path.read_bytes()), mmap=True))
    old = tmp_path / "old.pt"
    torch.save(torch.ones(2), old, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        jtorch.load(old, mmap=True)


def test_records_lie_where_pytorch_looks_for_them(tmp_path):
    """PyTorch computes the place of each storage from its own writer's layout, and checks it when asked to."""
    target = tmp_path / "ours.pt"
    jtorch.save([jtorch.ones(n) for n in (3, 0, 17, 64, 1)] + [jtorch.ones(5).bfloat16()], target)
    code = f"import torch\nfor o in ({{}}, {{'mmap': True}}, {{'map_location': 'meta'}}): print(len(torch.load({str(target)!r}, **o)))"
    env = {**os.environ, "TORCH_SERIALIZATION_DEBUG": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=300)
    assert done.stdout.split() == ["6", "6", "6"], done.stderr[-2000:]


def test_deflated_and_shifted_archives_load():
    f = io.BytesIO()
    torch.save({"x": torch.arange(2000.0)}, f)
    import_zip = zipfile
    packed = io.BytesIO()
    with import_zip.ZipFile(f) as a, import_zip.ZipFile(packed, "w", import_zip.ZIP_DEFLATED) as b:
        for name in a.namelist():
            b.writestr(name, a.read(name))
    packed.seek(0)
    assert jtorch.load(packed)["x"].sum().item() == 1999000
    shifted = io.BytesIO(b"x" * 10 + f.getvalue())
    shifted.seek(10)
    assert jtorch.load(shifted)["x"].sum().item() == 1999000


def test_tables_that_other_packages_add_to_are_not_used(monkeypatch):
    """dill puts functions of its own into the table of Python's pickler, which write classes by value."""

    def wrong(*args):
        raise AssertionError

    monkeypatch.setattr(pickle._Pickler, "dispatch", dict.fromkeys([*pickle._Pickler.dispatch, classmethod], wrong))
    values = [
        None,
        1,
        2.0,
        True,
        b"x",
        bytearray(b"y"),
        "z",
        (1,),
        {1: 2},
        {3},
        frozenset((4,)),
        collections.OrderedDict,
        print,
    ]
    assert there_and_back(jtorch, values, weights_only=False) == values


def test_file_objects(tmp_path, path):
    class Bare:
        """A reader with the least that is asked for."""

        def __init__(self, raw):
            self.inner = io.BytesIO(raw)
            self.seek, self.tell, self.read = self.inner.seek, self.inner.tell, self.inner.read

    assert jtorch.load(Bare(path.read_bytes()))["n"].tolist() == [1, 2]
    with open(path, "rb") as f:
        assert jtorch.load(f)["n"].tolist() == [1, 2]
    parts = []
    writer = type("Writer", (), {"write": lambda self, data: parts.append(bytes(data))})()
    jtorch.save(jtorch.ones(2), writer)
    assert torch.load(io.BytesIO(b"".join(parts))).tolist() == [1, 1]


def test_byte_order():
    f = io.BytesIO()
    torch.save([torch.arange(3.0), torch.tensor([1 + 2j]), torch.tensor([258], dtype=torch.int16)], f)
    with zipfile.ZipFile(f) as z:
        records = {n.removeprefix("archive/"): z.read(n) for n in z.namelist()}
    for k, item in (("0", 4), ("1", 4), ("2", 2)):
        records[f"data/{k}"] = np.frombuffer(records[f"data/{k}"], f"u{item}").byteswap().tobytes()
    for mark in (b"big", None):
        g = io.BytesIO()
        writer = jtorch.files.container.Writer(g.write, "archive")
        for name, raw in {**records, "byteorder": mark}.items():
            if raw is not None:
                writer.add(name, raw)
        writer.finish()
        jtorch.serialization.set_default_load_endianness(None if mark else jtorch.serialization.LoadEndianness.BIG)
        try:
            g.seek(0)
            assert [t.tolist() for t in jtorch.load(g)] == [[0, 1, 2], [1 + 2j], [258]]
        finally:
            jtorch.serialization.set_default_load_endianness(None)
    f = io.BytesIO()
    jtorch.save(jtorch.arange(3.0), f, _disable_byteorder_record=True)
    assert zipfile.ZipFile(f).namelist()[-2:] == ["archive/byteorder", "archive/.data/serialization_id"]
    with pytest.raises(TypeError, match="Invalid argument type in function set_default_load_endianness"):
        jtorch.serialization.set_default_load_endianness("big")


def test_without_check_sums():
    config = jtorch.utils.serialization.config
    with config.patch("save.compute_crc32", False):
        assert not jtorch.serialization.get_crc32_options()
        f = io.BytesIO()
        jtorch.save(jtorch.ones(3), f)
    assert jtorch.serialization.get_crc32_options() and config.load.mmap is False
    for reader in (torch, jtorch):
        f.seek(0)
        assert reader.load(f).tolist() == [1, 1, 1]


def test_skip_data():
    def program(torch):
        f = io.BytesIO()
        with torch.serialization.skip_data():
            torch.save({"a": torch.ones(5), "b": torch.ones(2, 2).t()}, f)
        f.seek(0)
        holes = torch.load(f)
        full = io.BytesIO()
        torch.save(torch.ones(3), full)
        full.seek(0)
        with torch.serialization.skip_data():
            shape = torch.load(full).shape
        return holes, shape

    both(program)
    with jtorch.serialization.skip_data(), pytest.raises(RuntimeError, match="Cannot use skip_data=True"):
        jtorch.save(1, io.BytesIO(), _use_new_zipfile_serialization=False)


def test_saving_is_atomic(tmp_path):
    target = tmp_path / "x.pt"
    jtorch.save(jtorch.ones(2), target)
    os.chmod(target, 0o640)
    before = target.read_bytes()

    class Fails:
        def __reduce__(self):
            raise KeyError("no")

    for obj in ([jtorch.ones(2), Fails()],):
        for new in (True, False):
            with pytest.raises(KeyError):
                jtorch.save(obj, target, _use_new_zipfile_serialization=new)
    broken = jtorch.files.container.Writer.finish
    try:
        jtorch.files.container.Writer.finish = lambda self: (_ for _ in ()).throw(OSError("disk full"))
        with pytest.raises(OSError, match="disk full"):
            jtorch.save(jtorch.zeros(2), target)
    finally:
        jtorch.files.container.Writer.finish = broken
    assert target.read_bytes() == before and os.listdir(tmp_path) == ["x.pt"]
    link = tmp_path / "link.pt"
    link.symlink_to(target)
    jtorch.save(jtorch.zeros(2), link)
    assert link.is_symlink() and jtorch.load(target).tolist() == [0, 0] and target.stat().st_mode & 0o777 == 0o640


# --- plain pickle -----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_pickle_keeps_sharing():
    """Which PyTorch's plain pickle does not."""
    x = jtorch.arange(6.0).view(2, 3)
    a, b, c = pickle.loads(pickle.dumps([x, x.t(), jtorch.nn.Parameter(x)]))
    a[0, 0] = 9
    assert b[0, 0].item() == c[0, 0].item() == 9 and a.data_ptr() == b.data_ptr() and b.stride() == (1, 3)
    x = jtorch.arange(6.0)
    t, s, y = pickle.loads(pickle.dumps([x.storage(), x.untyped_storage(), x[2:]]))
    s[8] = 64
    assert t.tolist()[2] == y[0].item() and t.data_ptr() == s.data_ptr() and y[0].item() != 2


def test_copies_of_storages_share_as_the_tensors_do():
    x = jtorch.arange(4.0)
    y, s = copy.deepcopy([x, x.untyped_storage()])
    y[0] = 1
    assert s.float()[0] == 0 and s.data_ptr() == y.data_ptr() and x[0].item() == 0


def test_load_state_dict_takes_arrays_and_trees():
    net = jtorch.nn.Sequential(jtorch.nn.Linear(2, 3), jtorch.nn.Linear(3, 1))
    want = {k: np.asarray(v.tolist(), np.float32) + 1 for k, v in net.state_dict().items()}
    net.load_state_dict(want)
    assert all(np.array_equal(net.state_dict()[k].numpy(), v) for k, v in want.items())
    tree = [
        {"weight": want["0.weight"] * 2, "bias": want["0.bias"]},
        {"weight": want["1.weight"], "bias": want["1.bias"]},
    ]
    net.load_state_dict(dict(enumerate(tree)))
    assert np.array_equal(net[0].weight.detach().numpy(), want["0.weight"] * 2)
    with pytest.raises(RuntimeError, match="size mismatch for 0.bias"):
        net.load_state_dict({**want, "0.bias": np.zeros(7, np.float32)})
