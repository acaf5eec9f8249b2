"""A corpus of damaged and hostile files, made anew at each run, always the same."""

import io
import json
import pickle
import random
import struct
import zipfile
import zlib
from collections import OrderedDict

from jtorch.files.container import Writer
from tests.oracle import torch

CANARY = "tests_files_canary"  # a module that no file may import


def good(legacy=False) -> bytes:
    """A file as PyTorch writes it."""
    x = torch.arange(24, dtype=torch.float32).view(4, 6)
    state = OrderedDict(a=x, b=x.t(), c=torch.ones(3, dtype=torch.bfloat16), d={"n": 3, "l": [torch.tensor(5), "text"]})
    f = io.BytesIO()
    torch.save(state, f, _use_new_zipfile_serialization=not legacy)
    return f.getvalue()


def zipped(data, records=(), crc=True) -> bytes:
    """A container with this pickle and these records."""
    f = io.BytesIO()
    writer = Writer(f.write, "archive", crc=crc)
    writer.add("data.pkl", data)
    writer.add("byteorder", b"little")
    for name, raw in records:
        writer.add(name, raw)
    writer.add("version", b"3\n")
    writer.finish()
    return f.getvalue()


# --- pickles by hand ------------------------------------------------------------------------------------------------------


def g(module, name) -> bytes:
    return f"c{module}\n{name}\n".encode()


def text(s) -> bytes:
    raw = s.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(n) -> bytes:
    if isinstance(n, bool):
        return b"\x88" if n else b"\x89"
    if -(2**31) <= n < 2**31:
        return b"J" + struct.pack("<i", n)
    raw = n.to_bytes(20, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def plain(x) -> bytes:
    """The opcodes of numbers, texts and tuples."""
    if isinstance(x, bytes):
        return x
    if isinstance(x, str):
        return text(x)
    if isinstance(x, int):
        return number(x)
    if x is None:
        return b"N"
    return b"(" + b"".join(map(plain, x)) + b"t"


def protocol2(body) -> bytes:
    return b"\x80\x02" + body + b"."


FLOATS, EMPTY = g("torch", "FloatStorage"), g("collections", "OrderedDict") + b")R"


def storage(kind=FLOATS, key="0", location="cpu", numel=6, word="storage", more=()) -> bytes:
    return plain((word, kind, key, location, numel, *more)) + b"Q"


def tensor(
    store=None, offset=0, size=(2, 3), stride=(3, 1), requires_grad=False, hooks=EMPTY, name="_rebuild_tensor_v2"
) -> bytes:
    store = storage() if store is None else store
    return g("torch._utils", name) + plain((store, offset, size, stride, requires_grad, hooks)) + b"R"


SIX = [("data/0", struct.pack("<6f", *range(6)))]

FORBIDDEN = [
    ("os", "system"), ("posix", "system"), ("nt", "system"), ("builtins", "eval"), ("builtins", "exec"), ("builtins", "getattr"),
    ("builtins", "open"), ("builtins", "__import__"), ("__builtin__", "eval"), ("subprocess", "Popen"), ("sys", "exit"),
    ("shutil", "rmtree"), ("pickle", "loads"), ("pickle", "Unpickler"), ("functools", "partial"), ("operator", "attrgetter"),
    ("operator", "methodcaller"), ("importlib", "import_module"), ("runpy", "run_path"), ("socket", "socket"), ("code", "interact"),
    ("torch", "load"), ("torch", "save"), ("torch.hub", "load"), ("torch.serialization", "load"), ("torch.storage", "_load_from_bytes"),
    ("torch.utils.cpp_extension", "load"), ("jtorch", "load"), ("jtorch.serialization", "load"), ("jtorch.copying", "rebuild"),
    ("jtorch.files.names", "resolve"), ("numpy", "load"), ("numpy.core.multiarray", "_reconstruct"), ("numpy", "fromfile"),
    ("collections", "defaultdict"), ("collections", "namedtuple"), ("types", "FunctionType"), ("ctypes", "CDLL"),
    ("webbrowser", "open"), ("antigravity", "fly"), (CANARY, "fire"), ("asyncio", "run"), ("_codecs", "decode"),
    ("builtins", "object"), ("builtins", "type"), ("copyreg", "_reconstructor"), ("torch.nn.modules.linear", "Linear"),
    ("torch._C", "_cuda_init"), ("torch.nn.functional", "relu"), ("builtins", "bytearray.fromhex"), ("torch", "Size.numel"),
]  # fmt: skip


def _arguments(name):
    return plain((f"echo {name}",))


def pickles():
    """(name, data.pkl): each has to be refused."""
    for module, name in FORBIDDEN:
        yield f"global {module}.{name}", protocol2(g(module, name) + _arguments(name) + b"R")
    for module, name in FORBIDDEN[:12]:
        yield (
            f"stack_global {module}.{name}",
            b"\x80\x04" + text(module) + text(name) + b"\x93" + _arguments(name) + b"R.",
        )
        yield f"inst {module}.{name}", protocol2(b"(" + text("echo") + f"i{module}\n{name}\n".encode())
        yield f"obj {module}.{name}", protocol2(b"(" + g(module, name) + text("echo") + b"o")
        yield f"newobj {module}.{name}", protocol2(g(module, name) + b")\x81")
    yield "ext1", protocol2(b"\x82\x01")
    yield "ext2", protocol2(b"\x83\x01\x00")
    yield "newobj_ex", b"\x80\x04" + g("torch.nn.parameter", "Parameter") + b")}\x92."
    yield "persid", protocol2(b"Pstorage\n")
    yield "next_buffer", b"\x80\x05\x97."
    yield "reduce of a text", protocol2(text("os.system") + b")R")
    yield "reduce of a number", protocol2(number(3) + b")R")
    yield "reduce of a dtype", protocol2(g("torch", "float32") + b")R")
    yield "reduce of a storage class", protocol2(FLOATS + plain((2**40,)) + b"R")
    yield "reduce without a tuple", protocol2(g("collections", "OrderedDict") + b"]R")
    yield "a method of a tensor class", protocol2(g("torch", "Tensor") + plain((2**40,)) + b"R")
    yield "a tensor of a legacy class", protocol2(g("torch", "FloatTensor") + plain((2**40,)) + b"R")
    yield "newobj of a legacy class", protocol2(g("torch", "FloatTensor") + plain((2**40,)) + b"\x81")
    yield "untyped storage of a size", protocol2(g("torch.storage", "UntypedStorage") + plain((2**40,)) + b"R")
    yield "typed storage of a size", protocol2(g("torch.storage", "TypedStorage") + plain((2**40,)) + b"R")
    yield "bytearray of a size", protocol2(g("builtins", "bytearray") + plain((2**40,)) + b"R")
    yield "encode by a codec", protocol2(g("_codecs", "encode") + plain(("x", "zlib_codec")) + b"R")
    yield "encode of nothing", protocol2(g("_codecs", "encode") + b")R")
    yield "set of a number", protocol2(g("builtins", "set") + plain((3,)) + b"R")
    yield "set of lists", protocol2(g("builtins", "set") + b"(](]let\x85R".replace(b"et", b"t"))
    yield "complex of a text", protocol2(g("builtins", "complex") + plain(("1+1j",)) + b"R")
    yield "size of texts", protocol2(g("torch", "Size") + plain((("a", "b"),)) + b"R")
    yield "size of a number", protocol2(g("torch", "Size") + plain((2**40,)) + b"R")
    yield "device of a tuple", protocol2(g("torch", "device") + plain(((1,),)) + b"R")
    yield "device unknown", protocol2(g("torch", "device") + plain(("nowhere",)) + b"R")
    yield "counter of numbers", protocol2(g("collections", "Counter") + plain((3,)) + b"R")
    yield "ordered dict of texts", protocol2(g("collections", "OrderedDict") + plain((("abc",),)) + b"R")
    yield "build of a dict", protocol2(b"}" + b"}" + b"b")
    yield "build of a list", protocol2(b"]" + b"}" + b"b")
    yield "build of an ordered dict by a list", protocol2(EMPTY + plain((1, 2)) + b"b")
    yield "build of a class", protocol2(g("torch.nn.parameter", "Parameter") + b"}" + b"b")
    yield "build of a device", protocol2(g("torch", "device") + plain(("cpu",)) + b"R}b")
    yield "append to a tuple", protocol2(b")" + number(1) + b"a")
    yield "append to a set", protocol2(b"\x8f" + number(1) + b"a")
    yield "appends to a dict", protocol2(b"}(" + number(1) + b"e")
    yield "setitem of a list", protocol2(b"]" + number(1) + number(2) + b"s")
    yield "setitem of a tensor", protocol2(tensor() + number(1) + number(2) + b"s")
    yield "setitems without a value", protocol2(b"}(" + number(1) + b"u")
    yield "a list as key", protocol2(b"}]" + number(1) + b"s")
    yield "a tower of pairs as key", protocol2(b"}" + number(1) + b"2\x86" * 60 + number(1) + b"s")
    yield "a tower of ones as key", protocol2(b"}" + b")" + b"\x85" * 200_000 + number(1) + b"s")
    yield "a tower in a set", b"\x80\x04\x8f(" + number(1) + b"2\x86" * 60 + b"\x90."
    yield "a tower in a frozenset", b"\x80\x04(" + number(1) + b"2\x86" * 60 + b"\x91."
    yield "a tower in a call", protocol2(g("builtins", "set") + b"]" + number(1) + b"2\x86" * 60 + b"a\x85R")
    yield (
        "a tower in an ordered dict",
        protocol2(g("collections", "OrderedDict") + b"](" + number(1) + b"2\x86" * 60 + number(1) + b"\x86e\x85R"),
    )
    yield "no stop", b"\x80\x02N"
    yield "nothing", b""
    yield "only a protocol", b"\x80\x02"
    yield "protocol 9", b"\x80\x09N."
    yield "stop without a value", protocol2(b"")
    yield "two values", protocol2(b"NN")
    yield "a mark as value", protocol2(b"(")
    yield "pop of nothing", protocol2(b"0")
    yield "tuple without a mark", protocol2(b"t")
    yield "tuple3 of two", protocol2(b"NN\x87")
    yield "a mark in a tuple", protocol2(b"(N\x86")
    yield "memo without an entry", protocol2(b"h\x05")
    yield "long memo without an entry", protocol2(b"j\xff\xff\xff\xff")
    yield "put of nothing", protocol2(b"q\x00")
    yield "text longer than the file", protocol2(b"X\xff\xff\xff\x7f" + b"abc")
    yield "text of 8 bytes of length", b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b"abc."
    yield "bytes longer than the file", b"\x80\x03B\xff\xff\xff\xff" + b"abc."
    yield "bytearray longer than the file", b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b"abc."
    yield "a frame longer than the file", b"\x80\x04\x95" + struct.pack("<Q", 2**40) + b"N."
    yield "a long integer", protocol2(b"\x8b" + struct.pack("<i", 2**30) + b"\x01")
    yield "an integer of negative length", protocol2(b"\x8b" + struct.pack("<i", -5) + b"\x01")
    yield "an integer of many digits", protocol2(b"I" + b"9" * 100_000 + b"\n")
    yield "an integer of letters", protocol2(b"Iabc\n")
    yield "bad utf-8", protocol2(b"X\x02\x00\x00\x00\xc3\x28")
    yield "a name without an end", protocol2(b"c" + b"a" * 100_000)
    yield "persistent id of a number", protocol2(number(3) + b"Q")
    yield "persistent id of a text", protocol2(text("0") + b"Q")
    yield "persistent id of nothing", protocol2(b")Q")
    yield "module source", protocol2(plain(("module", "cls", "file", "source")) + b"Q")
    yield from tensors()


def tensors():
    """(name, data.pkl) of tensors that cannot be."""
    bad = 2**62
    cases = {
        "size too large": {"size": (7,), "stride": (1,)}, "size huge": {"size": (2**40,), "stride": (1,)},
        "size overflowing": {"size": (bad, bad), "stride": (1, 1)}, "size overflowing by stride 0": {"size": (bad, 4), "stride": (0, 0)},
        "size negative": {"size": (-1, 3)}, "size of texts": {"size": ("2", "3")}, "size of bools": {"size": (True, 3)},
        "size a number": {"size": 6}, "size none": {"size": None}, "stride negative": {"stride": (-3, 1)},
        "stride huge": {"stride": (bad, 1)}, "stride too large": {"stride": (4, 1)}, "stride short": {"stride": (1,)},
        "stride of texts": {"stride": ("3", "1")}, "stride none": {"stride": None}, "offset too large": {"offset": 1},
        "offset huge": {"offset": bad}, "offset beyond": {"offset": 2**70}, "offset negative": {"offset": -1},
        "offset a text": {"offset": "0"}, "offset none": {"offset": None}, "many dimensions": {"size": (1,) * 100, "stride": (1,) * 100},
        "storage a number": {"store": number(3)}, "storage none": {"store": b"N"}, "storage a dtype": {"store": g("torch", "float32")},
    }  # fmt: skip
    for name, changes in cases.items():
        yield f"tensor: {name}", protocol2(tensor(**changes))
    stores = {
        "missing record": {"key": "9"}, "key with a path": {"key": "../data.pkl"}, "key of another record": {"key": "../version"},
        "absolute key": {"key": "/etc/passwd"}, "key a tuple": {"key": ("0",)}, "key none": {"key": None}, "key long": {"key": "0" * 9000},
        "numel too large": {"numel": 7}, "numel too small": {"numel": 5}, "numel huge": {"numel": 2**40}, "numel overflowing": {"numel": 2**62},
        "numel beyond": {"numel": 2**100}, "numel negative": {"numel": -6}, "numel a text": {"numel": "6"}, "numel none": {"numel": None},
        "numel a bool": {"numel": True}, "wider type": {"kind": g("torch", "DoubleStorage")}, "narrower type": {"kind": g("torch", "HalfStorage")},
        "type a dtype": {"kind": g("torch", "float32")}, "type a text": {"kind": "FloatStorage"}, "type none": {"kind": None},
        "location a number": {"location": 3}, "location none": {"location": None}, "another word": {"word": "module"},
        "no word": {"word": None}, "too long": {"more": (1,)}, "quantized": {"kind": g("torch", "QInt8Storage")},
    }  # fmt: skip
    for name, changes in stores.items():
        yield f"storage: {name}", protocol2(tensor(storage(**changes)))
    yield "storage: two sizes", protocol2(b"(" + tensor() + tensor(storage(numel=3), size=(3,), stride=(1,)) + b"t")
    yield (
        "tensor: of integers that require grad",
        protocol2(tensor(storage(g("torch", "IntStorage")), requires_grad=True)),
    )
    yield "tensor: too few arguments", protocol2(g("torch._utils", "_rebuild_tensor_v2") + plain((1, 2)) + b"R")
    yield (
        "tensor: metadata a text",
        protocol2(
            g("torch._utils", "_rebuild_tensor_v2") + plain((storage(), 0, (6,), (1,), False, EMPTY, "conj")) + b"R"
        ),
    )
    yield (
        "tensor: v3 without a dtype",
        protocol2(
            g("torch._utils", "_rebuild_tensor_v3") + plain((storage(), 0, (6,), (1,), False, EMPTY, "float32")) + b"R"
        ),
    )
    yield "parameter of a number", protocol2(g("torch._utils", "_rebuild_parameter") + plain((3, True, EMPTY)) + b"R")
    yield "parameter by newobj", protocol2(g("torch.nn.parameter", "Parameter") + plain((3,)) + b"\x81")
    typed = g("torch._tensor", "_rebuild_from_type_v2")
    inner = (storage(), 0, (6,), (1,), False, EMPTY)
    rebuild = g("torch._utils", "_rebuild_tensor_v2")
    yield (
        "subclass: a function",
        protocol2(typed + plain((g("builtins", "set"), g("torch", "Tensor"), ((1,),), b"}")) + b"R"),
    )
    yield "subclass: a dtype", protocol2(typed + plain((rebuild, g("torch", "float32"), inner, b"}")) + b"R")
    yield "subclass: a set", protocol2(typed + plain((rebuild, g("builtins", "set"), inner, b"}")) + b"R")
    for key in ("__class__", "_spec", "_storage", "_edge", "shape", 3):
        state = b"}" + plain(key) + number(1) + b"s"
        yield f"subclass: state {key}", protocol2(typed + plain((rebuild, g("torch", "Tensor"), inner, state)) + b"R")
    yield "subclass: state a list", protocol2(typed + plain((rebuild, g("torch", "Tensor"), inner, b"]")) + b"R")
    meta = g("torch._utils", "_rebuild_meta_tensor_no_storage")
    yield "meta: huge", protocol2(meta + plain((g("torch", "float32"), (2**62, 2**62), (1, 1), False)) + b"R")
    yield "meta: no dtype", protocol2(meta + plain((3, (2,), (1,), False)) + b"R")
    for name in ("_rebuild_sparse_tensor", "_rebuild_qtensor", "_rebuild_nested_tensor", "_rebuild_wrapper_subclass"):
        yield f"unsupported: {name}", protocol2(g("torch._utils", name) + plain((1, 2)) + b"R")
    for name in ("qint8", "per_tensor_affine", "bits8"):
        yield f"unsupported: torch.{name}", protocol2(g("torch", name))
    yield (
        "unsupported: layout",
        protocol2(g("torch.serialization", "_get_layout") + plain(("torch._mkldnn",)) + b"R"),
    )
    yield (
        "numpy tensor",
        protocol2(
            g("torch._utils", "_rebuild_device_tensor_from_numpy")
            + plain((3, g("torch", "float32"), "cpu", False))
            + b"R"
        ),
    )


# --- containers -------------------------------------------------------------------------------------------------------------


def _edited(data, at, layout, value):
    raw = bytearray(data)
    struct.pack_into(layout, raw, at, value)
    return bytes(raw)


def _central(data, name):
    """Where the directory's entry of a record begins."""
    at = data.rfind(name.encode())
    return data.rfind(b"PK\x01\x02", 0, at)


def containers():
    """(name, bytes of a file) with a bad zip structure."""
    whole = zipped(protocol2(tensor()), SIX)
    end = whole.rfind(b"PK\x05\x06")
    entry = _central(whole, "archive/data/0")
    local = whole.find(b"PK\x03\x04", whole.find(b"archive/byteorder"))
    for name, at, layout, value in (
        ("directory elsewhere", end + 16, "<L", 12), ("directory outside", end + 16, "<L", 2**31), ("directory long", end + 12, "<L", 2**30),
        ("directory short", end + 12, "<L", 10), ("too many entries", end + 10, "<H", 60000), ("too few entries", end + 10, "<H", 1),
        ("no entries", end + 10, "<H", 0), ("second disk", end + 4, "<H", 1), ("comment", end + 20, "<H", 40),
        ("entry signature", entry, "<L", 0), ("encrypted", entry + 8, "<H", 0x0809), ("method 99", entry + 10, "<H", 99),
        ("method deflate", entry + 10, "<H", 8), ("check sum", entry + 16, "<L", 1), ("packed size", entry + 20, "<L", 2**31),
        ("size", entry + 24, "<L", 2**31), ("size wide", entry + 24, "<L", 2**32 - 1), ("name long", entry + 28, "<H", 60000),
        ("name short", entry + 28, "<H", 3), ("extra long", entry + 30, "<H", 60000), ("disk", entry + 34, "<H", 7),
        ("place outside", entry + 42, "<L", 2**31), ("place of another", entry + 42, "<L", 0), ("place off by one", entry + 42, "<L", local + 1),
        ("local signature", local, "<L", 0), ("local method", local + 8, "<H", 8), ("local name", local + 26, "<H", 200),
        ("local extra", local + 28, "<H", 60000),
    ):  # fmt: skip
        yield f"zip: {name}", _edited(whole, at, layout, value)
    yield "zip: both sizes huge", _edited(_edited(whole, entry + 20, "<L", 2**31), entry + 24, "<L", 2**31)
    for name in ("archive/../evil", "/etc/passwd", "archive\\evil", "..", "archive/a\0b", "other/data/0"):
        f = io.BytesIO(whole)
        with zipfile.ZipFile(f, "a") as z:
            info = zipfile.ZipInfo("archive/evil")
            z.writestr(info, b"evil")
            info.filename = name
        yield f"zip: a record {name!r}", f.getvalue()
    f = io.BytesIO(whole)
    with zipfile.ZipFile(f, "a") as z:
        z.filelist.append(z.getinfo("archive/data/0"))
        z._didModify = True
    yield "zip: a record twice", f.getvalue()
    yield "zip: no pickle", whole.replace(b"archive/data.pkl", b"archive/none.pkl")
    yield "zip: no storage", whole.replace(b"archive/data/0", b"archive/data/1")
    yield "zip: only the end", whole[end:]
    yield "zip: empty", b"PK\x05\x06" + bytes(18)
    yield "zip: head and end", b"PK\x03\x04" + bytes(60) + b"PK\x05\x06" + bytes(18)
    yield "zip: byte order", whole.replace(b"little", b"middle")
    f = io.BytesIO(whole)
    with zipfile.ZipFile(f, "a") as z:
        z.writestr("archive/constants.pkl", b"")
    yield "zip: TorchScript", f.getvalue()
    yield from bombs()


def _packed(data, records):
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        z.writestr("archive/data.pkl", data)
        for name, raw in records:
            z.writestr(f"archive/{name}", raw)
    return f.getvalue()


def bombs():
    """(name, bytes of a file) whose records unpack to much more than they are, or to something else than they say."""
    n = 80 << 20
    yield (
        "bomb: a storage",
        _packed(protocol2(tensor(storage(numel=n // 4), size=(n // 4,), stride=(1,))), [("data/0", bytes(n))]),
    )
    yield "bomb: the pickle", _packed(b"\x80\x02" + b"N0" * (n // 2) + b"N.", [])
    small = _packed(protocol2(tensor()), SIX)
    entry = _central(small, "archive/data/0")
    for name, size in (("longer", 24 * 3), ("shorter", 12), ("much longer", 2**31)):
        yield f"bomb: says it is {name}", _edited(small, entry + 24, "<L", size)
    yield "bomb: broken stream", small[:80] + bytes(4) + small[84:]
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    stream.compress(b"x")
    yield (
        "bomb: an unfinished stream",
        _edited(small, entry + 20, "<L", struct.unpack_from("<L", small, entry + 20)[0] - 2),
    )


def damaged(seed=0):
    """(name, bytes of a file): PyTorch's own files, cut short or with bits turned over."""
    draw = random.Random(seed)
    whole, old = good(), good(legacy=True)
    for n in sorted(draw.sample(range(len(whole)), 40)):
        yield f"zip cut at {n}", whole[:n]
    for n in sorted(draw.sample(range(len(old)), 40)):
        yield f"legacy cut at {n}", old[:n]
    with zipfile.ZipFile(io.BytesIO(whole)) as z:
        spans = []
        for info in z.infolist():
            if not info.filename.endswith((".format_version", ".storage_alignment", "version", "serialization_id")):
                n, extra = struct.unpack_from("<2H", whole, info.header_offset + 26)
                start = info.header_offset + 30 + n + extra
                spans += range(start, start + info.file_size)
    for at in draw.sample(spans, 60):
        raw = bytearray(whole)
        raw[at] ^= 1 << draw.randrange(8)
        yield f"zip with a bit of byte {at} turned", bytes(raw)
    for name, raw in (
        ("text", b"hello world"), ("zeros", bytes(1000)), ("html", b"<!DOCTYPE html>" * 30), ("gzip", b"\x1f\x8b\x08" + bytes(99)),
        ("empty", b""), ("one byte", b"\x80"), ("a pickle", pickle.dumps({"a": 1})), ("a pickle of a function", pickle.dumps(print)),
        ("tar", b"\0" * 257 + b"ustar" + bytes(300)), ("legacy magic only", old[:20]), ("json", json.dumps({"a": 1}).encode()),
        ("legacy, other magic", old.replace(old[4:8], b"\1\2\3\4", 1)), ("legacy, other version", old.replace(b"M\xe9\x03", b"M\xe8\x03", 1)),
    ):  # fmt: skip
        yield f"not a checkpoint: {name}", raw


def legacy(pickles_of):
    """Files of the old format with a bad object in them."""
    head = b"".join(pickle.dumps(x, 2) for x in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))
    tail = pickle.dumps(["0"], 2) + struct.pack("<q6f", 6, *range(6))
    for name, data in pickles_of:
        yield f"legacy: {name}", head + data + tail
    one = protocol2(tensor(storage(more=(None,))))
    yield "legacy: keys no list", head + one + pickle.dumps("0", 2) + tail[-32:]
    yield "legacy: a key too many", head + one + pickle.dumps(["0", "1"], 2) + tail[-32:]
    yield "legacy: another count", head + one + pickle.dumps(["0"], 2) + struct.pack("<q6f", 7, *range(6))
    yield "legacy: a negative count", head + one + pickle.dumps(["0"], 2) + struct.pack("<q6f", -6, *range(6))
    yield "legacy: a huge storage", head + protocol2(tensor(storage(numel=2**40, more=(None,)))) + tail
    yield "legacy: a view outside", head + protocol2(tensor(storage(more=(("1", 4, 4),)))) + tail
    yield "legacy: a view of texts", head + protocol2(tensor(storage(more=(("1", "0", "4"),)))) + tail


def corpus():
    """Everything: (name, bytes)."""
    every = list(pickles())
    for name, data in every:
        yield name, zipped(data, SIX)
    yield from legacy(every[:: max(1, len(every) // 40)])
    yield from containers()
    yield from damaged()
