"""Storages as objects: UntypedStorage, TypedStorage, torch.FloatStorage and its like, files mapped into memory."""

import copy
import os
import sys

import numpy as np
import pytest

import jtorch
from tests.oracle import both

UNTYPED = {
    "resize_ gives itself": lambda t: [(s.resize_(n) is s, s.nbytes(), s.tolist()[:1]) for s in [t.UntypedStorage([1, 2])] for n in (1, 5, 5)],
    "empty": lambda t: len(t.UntypedStorage()),
    "of a size": lambda t: t.UntypedStorage(3).size(),
    "of bytes": lambda t: str(t.UntypedStorage([1, 2, 300])),
    "of a range": lambda t: t.UntypedStorage(range(3)).tolist(),
    "of bytes object": lambda t: t.UntypedStorage(b"abc").tolist(),
    "on meta": lambda t: str(t.UntypedStorage(3, device="meta")),
    "of a text": lambda t: t.UntypedStorage("ab"),
    "of a float": lambda t: t.UntypedStorage(3.0),
    "item": lambda t: (t.UntypedStorage([1, 2, 3])[1], t.UntypedStorage([1, 2, 3])[-1]),
    "item outside": lambda t: t.UntypedStorage([1, 2, 3])[5],
    "item by a text": lambda t: t.UntypedStorage([1])["a"],
    "slice": lambda t: str(t.UntypedStorage([1, 2, 3])[0:2]),
    "slices share": lambda t: [(s[1:3].fill_(7), s.tolist())[1] for s in [t.UntypedStorage([1, 2, 3])]],
    "set": lambda t: [(s.__setitem__(slice(0, 2), 7), s.tolist())[1] for s in [t.UntypedStorage([1, 2, 3])]],
    "as numbers": lambda t: [str(t.UntypedStorage([0, 0, 128, 63]).float()), t.UntypedStorage([1, 0]).bool().tolist()],
    "copy_": lambda t: t.UntypedStorage([1, 2]).copy_(t.UntypedStorage([3, 4])).tolist(),
    "copy_ of another size": lambda t: t.UntypedStorage([1, 2, 3]).copy_(t.UntypedStorage([1, 2])),
    "clone": lambda t: [(s.clone().fill_(0), s.tolist())[1] for s in [t.UntypedStorage([1, 2])]],
    "resize_": lambda t: [(s.resize_(6), s.size(), s.resize_(2), s.tolist())[1::2] for s in [t.UntypedStorage([1, 2, 3])]],
    "byteswap": lambda t: [(s.byteswap(t.int16), s.tolist())[1] for s in [t.UntypedStorage([1, 2, 3, 4])]],
    "byteswap odd": lambda t: t.UntypedStorage(1).byteswap(t.int16),
    "from_buffer": lambda t: t.UntypedStorage.from_buffer(b"abcdef", dtype=t.int16, byte_order="big", count=2, offset=2).tolist(),
    "from_buffer odd": lambda t: t.UntypedStorage.from_buffer(b"abcdefghi", dtype=t.int32, byte_order="big"),
    "from_buffer without an order": lambda t: t.UntypedStorage.from_buffer(b"abcd", dtype=t.int32),
    "names": lambda t: (t.UntypedStorage(1).type(), t.UntypedStorage(1).filename, t.UntypedStorage(1).get_device()),
    "flags": lambda t: [f() for s in [t.UntypedStorage(1)] for f in (s.is_shared, s.is_pinned, s.resizable, s.element_size)],
    "is_storage": lambda t: [t.is_storage(x) for x in (t.UntypedStorage(1), t.FloatStorage(1), t.ones(1))],
    "of one tensor": lambda t: [x.untyped_storage() == x[1:].untyped_storage() for x in [t.ones(3)]],
    "memory of 40 bytes": lambda t: sys.getsizeof(t.UntypedStorage(40)) - sys.getsizeof(t.UntypedStorage(0)),
}  # fmt: skip
TYPED = {
    "memory of 10 floats": lambda t: sys.getsizeof(t.FloatStorage(10)) - sys.getsizeof(t.FloatStorage(0)),
    "empty": lambda t: str(t.FloatStorage()),
    "of numbers": lambda t: (str(t.FloatStorage([1, 2, 3])), t.LongStorage((1, 2)).tolist(), t.BFloat16Storage([1.5]).tolist()),
    "of a float": lambda t: t.FloatStorage(1.5),
    "of two": lambda t: t.FloatStorage(1, 2),
    "with a device": lambda t: t.FloatStorage(2, device="cpu"),
    "wrapped": lambda t: t.FloatStorage(wrap_storage=t.UntypedStorage([0, 0, 128, 63])).tolist(),
    "wrapped without a dtype": lambda t: t.TypedStorage(wrap_storage=t.UntypedStorage(4)),
    "of a dtype": lambda t: (t.TypedStorage(3, dtype=t.int8).size(), t.TypedStorage([1, 2]).dtype == t.float32),
    "classes": lambda t: [isinstance(t.ones(2).storage(), c) for c in (t.FloatStorage, t.DoubleStorage, t.TypedStorage)],
    "type": lambda t: (t.ones(2).storage().type(), t.ones(2, dtype=t.uint16).storage().type()),
    "item outside": lambda t: t.ones(2).storage()[4],
    "slice": lambda t: t.ones(2).storage()[0:1],
    "sizes": lambda t: [f() for s in [t.ones(3).double().storage()] for f in (s.size, s.nbytes, s.element_size, s.__len__)],
    "casts": lambda t: (str(t.FloatStorage([1.7, 2]).int()), t.FloatStorage([1]).complex_float().tolist()),
    "copy_": lambda t: t.FloatStorage([1, 2]).copy_(t.FloatStorage([5, 6])).tolist(),
    "fill_": lambda t: t.FloatStorage([1, 2]).fill_(3).tolist(),
    "resize_": lambda t: [(s.resize_(1), s.tolist())[1] for s in [t.FloatStorage([1, 2])]],
    "pickle name": lambda t: [t.tensor([], dtype=d).storage().pickle_storage_type() for d in (t.bool, t.complex64)],
    "tensors on it": lambda t: (t.FloatTensor(t.FloatStorage([1, 2])), t.empty(0).set_(t.FloatStorage([1, 2, 3]), 1, (2,), (1,))),
    "written through": lambda t: [(x.storage().__setitem__(1, 9), x)[1] for x in [t.zeros(2, 2)]],
    "from_buffer": lambda t: t.FloatStorage.from_buffer(b"\0\0\x80\x3f", "little").tolist(),
}  # fmt: skip


def test_memory_of_numpy_does_not_grow():
    held = np.ones(2)
    both(lambda t: t.from_numpy(held).untyped_storage().resizable())
    both(lambda t: t.ones(2).untyped_storage().resizable())
    both(lambda t: t.from_numpy(held).resize_(4))


@pytest.mark.parametrize("name", UNTYPED)
def test_untyped(name):
    both(UNTYPED[name])


@pytest.mark.parametrize("name", TYPED)
def test_typed(name):
    both(TYPED[name])


def test_from_file(tmp_path):
    path = tmp_path / "x.bin"

    def program(torch):
        path.write_bytes(np.arange(6, dtype=np.float32).tobytes())
        x = torch.from_file(str(path), size=6)
        x[0] = 50
        y = torch.from_file(str(path), shared=True, size=4)
        y.mul_(2)
        y[3] = -1
        del y
        whole = torch.UntypedStorage.from_file(str(path), False, 24)
        return x.tolist(), np.fromfile(path, np.float32).tolist(), whole.float().size(), whole.nbytes(), whole.filename

    both(program)
    both(lambda torch: torch.from_file(str(tmp_path / "none"), size=3))
    both(lambda torch: torch.from_file(str(path), size=3, dtype=torch.int16).tolist())
    grown = jtorch.from_file(str(tmp_path / "new"), shared=True, size=5, dtype=jtorch.int32)
    grown.fill_(3)
    assert np.fromfile(tmp_path / "new", np.int32).tolist() == [3] * 5 and os.path.getsize(tmp_path / "new") == 20


def test_copies():
    s = jtorch.FloatStorage([1, 2])
    a, b = copy.copy(s), copy.deepcopy([s, s.untyped()])
    s[0] = 9
    assert a.tolist() == [1, 2] and b[0].tolist() == [1, 2] and b[0].data_ptr() == b[1].data_ptr()
