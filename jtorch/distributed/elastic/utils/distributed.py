"""torch.distributed.elastic.utils.distributed: ports that nobody listens on."""

import contextlib
import socket

__all__ = ["get_free_port", "get_socket_with_port"]


def get_socket_with_port() -> socket.socket:
    """A socket that listens on a free port of this machine. RuntimeError: none can be had."""
    places = socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM)
    for family, kind, protocol, _, _ in places:
        found = socket.socket(family, kind, protocol)
        try:
            found.bind(("localhost", 0))
            found.listen(0)
        except OSError:
            found.close()
            continue
        return found
    raise RuntimeError("Failed to create a socket")


def get_free_port() -> int:
    """A port that was free a moment ago."""
    with contextlib.closing(get_socket_with_port()) as found:
        return found.getsockname()[1]
