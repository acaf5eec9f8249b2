"""data/segments.py, channel.py, handover.py: memory is given back and used again, frames and descriptors arrive whole."""

import gc
import inspect
import os
import pickle
import threading

import numpy as np
import pytest

import jtorch
from jtorch.data import handover, segments
from jtorch.data.channel import Channel, pair
from jtorch.data.failures import Failure


@pytest.fixture(autouse=True)
def torch_tensors():
    """Here the tensors are jtorch's own."""


def batch(arena, *sizes):
    """Write arrays of these sizes as a worker does; (segment's number, whether it is new, the arrays placed inside)."""
    arena.begin()
    arrays = [arena.empty((n,), np.uint8) for n in sizes]
    for k, a in enumerate(arrays):
        a[:] = k + 1
    number, size, fd, starts = arena.place([memoryview(a) for a in arrays])
    memory = np.frombuffer(arena.segments[number].lend(), np.uint8)
    for k, (n, start) in enumerate(zip(sizes, starts)):
        assert start % segments.ALIGNMENT == 0 and start + n <= size
        assert (memory[start : start + n] == k + 1).all()
    if fd is not None:
        os.close(fd)
    return number, fd is not None


def test_segments_are_used_again_when_given_back():
    arena = segments.Arena()
    assert batch(arena, 5000, 70) == (0, True)
    assert batch(arena, 5000, 70) == (1, True)  # the reader still has the first
    arena.given_back([0])
    assert batch(arena, 5000, 70) == (0, False)
    arena.given_back([0, 1])
    assert batch(arena, 90_000) == (2, True)
    assert batch(arena, 100, 4000) == (0, False) or arena.total > 90_000


def test_the_second_batch_is_written_in_place():
    arena = segments.Arena()
    batch(arena, 5000)
    arena.begin()
    made = arena.empty((5000,), np.uint8)
    _, _, fd, starts = arena.place([memoryview(made)])
    os.close(fd)
    here = arena._current
    assert made.ctypes.data == here.address + starts[0]


def test_a_segment_in_use_here_is_not_written_over():
    arena = segments.Arena()
    number, _ = batch(arena, 5000)
    arena.begin()
    kept = arena.empty((5000,), np.uint8)
    kept[:] = 9
    number, _, fd, _ = arena.place([memoryview(kept)])
    os.close(fd)
    arena.begin()
    arena.given_back([number])
    other, _ = batch(arena, 5000)
    assert other != number and (kept == 9).all()


def test_no_room():
    arena = segments.Arena(limit=10_000)
    assert batch(arena, 5000) == (0, True)
    arena.begin()
    with pytest.raises(segments.NoRoom):
        arena.place([memoryview(bytearray(5000))])
    arena.given_back([0])
    assert batch(arena, 5000) == (0, False)
    with pytest.raises(segments.NoRoom):
        segments.create(1 << 60)


def test_a_batch_given_up_leaves_nothing():
    arena = segments.Arena()
    batch(arena, 5000)
    arena.begin()
    arena.empty((5000,), np.uint8)
    fd = arena._new_fd
    arena.give_up()
    assert list(arena.segments) == [0] and arena.total == arena.segments[0].size
    with pytest.raises(OSError):
        os.fstat(fd)


def test_returned_when_the_last_array_goes():
    fd = segments.create(8192)
    segment, back = segments.Segment(3, fd, 8192), []
    os.close(fd)
    whole = np.frombuffer(segment.lend(back.append), np.uint8)
    part = whole[10:20].reshape(2, 5)
    del whole
    gc.collect()
    assert back == [] and segment.lent
    del part
    gc.collect()
    assert [lease.number for lease in back] == [3] and not segment.lent


def test_frames_arrive_whole_with_their_descriptors():
    a, b = map(Channel, pair())
    big = os.urandom(3_000_000)
    read, write = os.pipe()
    sender = threading.Thread(target=lambda: [a.send(b"first"), a.send(big, [write]), a.send(b"")])
    sender.start()
    frames = [b.receive() for _ in range(3)]
    sender.join()
    assert [f[0] for f in frames] == [b"first", big, b""] and [len(f[1]) for f in frames] == [0, 1, 0]
    os.close(write)
    os.write(frames[1][1][0], b"x")
    assert os.read(read, 1) == b"x"
    os.close(frames[1][1][0])
    os.close(read)
    a.close()
    assert b.receive() is None and b.send(b"late") is False
    b.close()


def test_two_that_send_at_once_do_not_block():
    a, b = map(Channel, pair())
    big = bytes(2_000_000)
    got = []
    threads = [
        threading.Thread(target=lambda c=c: got.append(c.send(big) and c.receive()), daemon=True) for c in (a, b)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join(20)
    assert got == [(big, []), (big, [])]
    a.close()
    b.close()


TENSORS = {
    "whole": lambda: jtorch.arange(6000.0).reshape(2, 3000),
    "small": lambda: jtorch.tensor([1, 2]),
    "scalar": lambda: jtorch.tensor(True),
    "empty": lambda: jtorch.zeros(0, 3),
    "transposed": lambda: jtorch.arange(6000.0).reshape(2, 3000).t(),
    "part": lambda: jtorch.arange(6000.0).reshape(2, 3000)[:, 5:],
    "expanded": lambda: jtorch.ones(3, 1).expand(3, 2000),
    "bfloat16": lambda: jtorch.arange(5000).to(jtorch.bfloat16),
    "complex": lambda: jtorch.ones(900, dtype=jtorch.complex64) * 2j,
    "parameter": lambda: jtorch.nn.Parameter(jtorch.ones(2000)),
    "leaf": lambda: jtorch.ones(2000, requires_grad=True),
    "shared": lambda: jtorch.from_numpy(np.arange(2000)),
}


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("apart", [True, False])
def test_tensors_cross(name, apart):
    t = TENSORS[name]()
    beside = [] if apart else None
    data = handover.dumps({"t": [t]}, beside)
    buffers = [memoryview(bytearray(b)) for b in beside or ()]
    (made,) = handover.loads(data, buffers)["t"]
    assert type(made) is type(t) and made.dtype is t.dtype and made.shape == t.shape
    assert made.requires_grad == t.requires_grad
    assert made.detach().tolist() == t.detach().tolist()
    if name == "transposed":
        assert made.stride() == t.stride()
    if apart and t.numel() > 1000 and name != "bfloat16":
        assert len(data) < 2000 and len(buffers) == 1  # beside the pickle, not in it
        if not t.requires_grad and not t.is_complex():
            made += 1
            assert made.tolist() == (t + 1).tolist()


def test_own_attributes_cross():
    t = jtorch.ones(3)
    t.note = "n"
    assert handover.loads(handover.dumps(t)).note == "n"


def test_functions_keep_their_file():
    """So that a traceback of a worker shows the program's lines."""

    def outer():
        return lambda: 1 / 0

    made = handover.loads(handover.dumps(outer))
    assert made.__code__.co_filename == made().__code__.co_filename == __file__
    assert made.__code__.co_firstlineno == outer.__code__.co_firstlineno and "return lambda" in inspect.getsource(made)


def test_failures_cross():
    made = pickle.loads(pickle.dumps(Failure(KeyError, "text", "here")))
    with pytest.raises(KeyError, match="Caught KeyError here.\nOriginal text"):
        made.reraise()
