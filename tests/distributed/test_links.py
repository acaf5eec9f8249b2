"""distributed/links.py: connections between processes, each here a thread."""

import concurrent.futures
import datetime
import json
import socket
import time

import numpy as np
import pytest

from jtorch.distributed import HashStore
from jtorch.distributed.links import Links
from jtorch.distributed.status import DistNetworkError

SOON = datetime.timedelta(seconds=20)


def joined(size, timeout=SOON):
    """The ends of all connections of so many processes."""
    store = HashStore()
    with concurrent.futures.ThreadPoolExecutor(size) as pool:
        return list(pool.map(lambda rank: Links(store, rank, size, timeout), range(size)))


def test_messages_keep_their_order_by_sender_group_and_tag():
    first, second, third = joined(3)
    for k in range(3):
        second.send(0, 0, 7, np.array([k], np.uint8))
    second.send(0, 1, 7, b"another group")
    third.send(0, 0, 7, b"")
    assert not first.there([2], 5, 7)
    assert first.receive([1], 1, 7, SOON)[1].tobytes() == b"another group"
    assert [first.receive([1], 0, 7, SOON)[1].tolist() for _ in range(3)] == [[0], [1], [2]]
    sender, message = first.receive([1, 2], 0, 7, SOON)
    assert (sender, len(message)) == (2, 0)


def test_large_messages_cross_each_other():
    """Sending does not wait for the other side to receive."""
    links, size = joined(2), 1 << 24
    for rank in range(2):
        links[rank].send(1 - rank, 0, 0, np.full(size, rank, np.uint8))
    for rank in range(2):
        assert np.unique(links[rank].receive([1 - rank], 0, 0, SOON)[1]).tolist() == [1 - rank]


def test_what_was_sent_before_the_end_arrives():
    first, second = joined(2)
    first.send(1, 0, 0, b"last")
    first.close()
    assert second.receive([0], 0, 0, SOON)[1].tobytes() == b"last"
    with pytest.raises(DistNetworkError, match="Connection closed by rank 0"):
        second.receive([0], 0, 0, SOON)
    second.close()
    deadline = time.monotonic() + 10
    with pytest.raises(DistNetworkError, match="Connection closed by rank 0"):
        while time.monotonic() < deadline:
            second.send(0, 0, 0, b"to nobody")


def test_nothing_comes():
    first, _second = joined(2)
    with pytest.raises(DistNetworkError, match="Timed out waiting 50ms for a message of rank 1"):
        first.receive([1], 0, 0, datetime.timedelta(seconds=0.05))


def test_others_do_not_come():
    with pytest.raises(DistNetworkError, match=r"waiting for the ranks \[1, 2\]"):
        Links(HashStore(), 0, 3, datetime.timedelta(seconds=0.1))


def test_strangers_are_sent_away():
    """A connection that does not know the token is no process of the world."""
    store = HashStore()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        waits = pool.submit(Links, store, 0, 2, SOON)
        host, port, _ = json.loads(store.get("links/0"))
        with socket.create_connection((host, port)) as stranger:
            stranger.sendall(bytes(7) + b"\x01" + b"x" * 32)
            assert stranger.recv(1) == b""
        second = pool.submit(Links, store, 1, 2, SOON).result()
        first = waits.result()
    first.send(1, 0, 0, b"hello")
    assert second.receive([0], 0, 0, SOON)[1].tobytes() == b"hello"


def test_empty_messages_are_sent_in_one_piece():
    """A receiver that has the head of an empty message has all of it, and may have closed before anything else is sent."""
    first, second = joined(2)
    sent = []
    own = second._sockets[0]
    second._sockets[0] = type(
        "Counting", (), {"sendall": lambda self, data: (sent.append(len(data)), own.sendall(data))}
    )()
    second.send(0, 0, 0, b"")
    second.send(0, 0, 0, np.arange(5, dtype=np.uint8))
    assert [len(first.receive([1], 0, 0, SOON)[1]) for _ in range(2)] == [0, 5]
    assert sent == [24, 29]
