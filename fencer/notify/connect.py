"""Connections to receivers, within the time of the whole call."""

from __future__ import annotations

import socket

from fencer.bounded import Bounds

_MOST_ADDRESSES = 8


def connect(host: str, port: int, bounds: Bounds) -> socket.socket:
    """Connect to the first address that lets us. Its timeout is what is then left of the time.

    Each address has an even share of the time, so that one that swallows everything leaves some to the next.

    Names are resolved by the C library, whose time nobody can bound from here: 5 seconds for each try, two
    tries for each name server and each search domain (resolv.conf(5)). Each receiver has a thread of its
    own, so only that one waits.

    Args:
        host: A name or an address, without brackets.
        port: Its port.
        bounds: Of the whole call.

    Raises:
        OSError: no address did.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[:_MOST_ADDRESSES]
    last: OSError = OSError("the name has no address")
    for tried, (family, kind, protocol, _, address) in enumerate(found):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(bounds.left_s() / (len(found) - tried))
            sock.connect(address)
            sock.settimeout(bounds.left_s())
        except OSError as error:
            sock.close()
            last = error
        else:
            return sock
    raise last
