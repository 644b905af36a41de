"""HTTP answers within bounds: how long one may take, and how large it may be, whatever its status says.

Timeouts of sockets bound each piece alone: a server that drips, even one header at a time, outlasts them for
hours. And an answer may never end. So the bounds are set where bytes come in, for status line, headers and
body alike. Nothing compressed is asked for, and nothing is unpacked: a few bytes could become any number.
"""

from __future__ import annotations

import io
import math
import socket
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPResponse
from time import monotonic
from typing import Any

import urllib3
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import ReadTimeoutError

LARGEST_BYTES = 32 << 20
"""The largest answer, headers included.

Lists come in pages of 500 objects (`cluster/lists.py`), so this is 65 KB for each. Nodes and pods have 5 to
20 KB, most of it `managedFields` and images. No single object is larger: it comes in a request of at most
3 MiB, and has 18 MiB where JSON writes each of its bytes as six.
A list of 10,000 guests of Proxmox VE has 5 MB. Parsed it was 180 MB, and our unit may use 512.

Source: k8s.io/apiserver pkg/server/config.go, MaxRequestBodyBytes (3 MiB); etcd takes half of that:
server/embed/config.go, DefaultMaxRequestBytes.
"""
MOST_PARSED_BYTES = 288 << 20
"""The largest answer of Kubernetes in memory, as `parsed_bytes` counts: anyone who may make a pod says what
is in it, and an answer of 32 MiB can take a gigabyte. A single object counts for up to 270 MB, 3 MiB of
protobuf full of ``preference: {}``, and takes half of it."""
_EMPTY_BYTES, _DICT_BYTES, _LIST_BYTES, _TEXT_BYTES, _PLACE_BYTES = 64, 232, 64, 52, 40
"""What values take besides their text; the last: a number, and its place among others.

Source: sys.getsizeof, CPython 3.11."""

_PIECE_BYTES = 1 << 16
_PLAIN = frozenset({"", "identity"})


def parsed_bytes(raw: bytes) -> int:
    """Say about how much memory JSON takes at most once it is read, without reading it.

    Args:
        raw: The JSON.
    """
    # As one text, and its parts: the widest character says how wide all of a text are.
    text_bytes = len(raw) * (2 if raw.isascii() else 8)
    takes = text_bytes + _of_marks(raw)
    if takes <= MOST_PARSED_BYTES:
        return takes
    # Brackets inside texts do not count: a text full of them makes a pod no larger.
    return text_bytes + sum(map(_of_marks, _without_texts(raw)))


def _of_marks(raw: bytes) -> int:
    empty = raw.count(b"{}")
    return (
        empty * _EMPTY_BYTES
        + (raw.count(b"{") - empty) * _DICT_BYTES
        + raw.count(b"[") * _LIST_BYTES
        + raw.count(b'"') * _TEXT_BYTES // 2
        + raw.count(b",") * _PLACE_BYTES
    )


def _without_texts(raw: bytes) -> Iterator[bytes]:
    """Yield JSON piece by piece, its texts empty."""
    plain, within = raw.replace(b"\\\\", b"").replace(b'\\"', b""), 0
    for at in range(0, len(plain), _PIECE_BYTES):
        parts = plain[at : at + _PIECE_BYTES].split(b'"')
        yield b'"'.join(b"" if (index + within) % 2 else part for index, part in enumerate(parts))
        within = (within + len(parts) - 1) % 2


class Unbounded(Exception):
    """An answer that is not read any further: too large, or compressed although nobody asked for that."""


class Bounds:
    """How much more may come, and until when. Those of a stream are renewed with every part of it.

    Args:
        limit_s: Seconds for an answer, or for one part of a stream, as a whole; None: no limit.
        limit_bytes: So many bytes of it, headers included.
    """

    def __init__(self, limit_s: float | None, limit_bytes: int = LARGEST_BYTES) -> None:
        self._limit_s = math.inf if limit_s is None else limit_s
        self.limit_bytes = limit_bytes
        self.renew()

    def renew(self) -> None:
        """Begin again: time and size count for what comes from now on."""
        self.until_s = monotonic() + self._limit_s
        self.left_bytes = self.limit_bytes

    def left_s(self) -> float:
        """Return how many seconds are left.

        Raises:
            TimeoutError: none.
        """
        left_s = self.until_s - monotonic()
        if left_s <= 0:
            raise TimeoutError("the answer did not end in time")
        return left_s


class _Metered(io.RawIOBase):
    """The bytes of one answer, until there are too many, or the time is over.

    Args:
        raw: Of the socket.
        sock: Whose timeout is set to what is left of the time.
        bounds: Of the answer.
    """

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, bounds: Bounds) -> None:
        self._raw, self._sock, self._bounds = raw, sock, bounds

    def readable(self) -> bool:
        """Whether it can be read: that is all it can."""
        return True

    def readinto(self, into: Any) -> int | None:
        """Read what has come, as `io.RawIOBase.readinto`.

        Raises:
            TimeoutError: the answer as a whole took too long.
            Unbounded: it is too large.
        """
        bounds = self._bounds
        if bounds.until_s < math.inf:
            self._sock.settimeout(bounds.left_s())
        count = self._raw.readinto(into)
        bounds.left_bytes -= count or 0
        if bounds.left_bytes < 0:
            most = bounds.limit_bytes
            said = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most >> 10} KiB"
            raise Unbounded(f"the answer has more than {said}, and was not read any further")
        return count

    def close(self) -> None:
        """Give the socket back."""
        self._raw.close()
        super().close()


def bounded_lines(sock: socket.socket, bounds: Bounds) -> io.BufferedReader:
    """Return what comes from a socket, for protocols of lines.

    Args:
        sock: Connected. Its timeout is changed with each read.
        bounds: Of all that is read.
    """
    return io.BufferedReader(_Metered(sock.makefile("rb", buffering=0), sock, bounds))


class _Response(HTTPResponse):
    bounds: Bounds | None = None
    """Of a stream; None: the socket's timeout, in seconds, counts for each answer as a whole."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        bounds = self.bounds or Bounds(sock.gettimeout())
        self.fp = io.BufferedReader(_Metered(self.fp.detach(), sock, bounds))


class _PlainAnswers(HTTPConnectionPool):
    def urlopen(self, *args: Any, **kwargs: Any) -> Any:
        """Send a request, and return its answer, of which only the head was read.

        Raises:
            Unbounded: it is compressed.
        """
        response = super().urlopen(*args, **{**kwargs, "preload_content": False, "decode_content": False})
        packed = response.headers.get("Content-Encoding", "")
        if packed.strip().lower() not in _PLAIN:
            response.close()
            raise Unbounded(f"the answer is compressed ({packed!r}), which nobody asked for")
        return response


class _WholeAnswers(_PlainAnswers):
    def urlopen(self, *args: Any, **kwargs: Any) -> Any:
        """Send a request, and return its answer with the whole body already read."""
        response = super().urlopen(*args, **kwargs)
        with closing(response):  # a connection whose answer came whole has gone back to the pool by then
            try:
                # In pieces: room for an announced length would be made before any byte of it came.
                body = b"".join(iter(lambda: response.read1(_PIECE_BYTES), b""))
            except ReadTimeoutError as error:
                raise ReadTimeoutError(self, None, "the answer did not end in time") from error
        return urllib3.HTTPResponse(
            io.BytesIO(body),
            response.headers,
            response.status,
            response.version,
            reason=response.reason,
            decode_content=False,
            retries=response.retries,  # by these the pools see that they must not follow redirects
        )


def bound_answers(pools: urllib3.PoolManager) -> None:
    """Have every answer of these pools come whole, and within bounds.

    Args:
        pools: Before their first request. What else was made of their kinds of connections stays.
    """
    _make(pools, _WholeAnswers, _Response)


def bound_stream(pools: urllib3.PoolManager, bounds: Bounds) -> None:
    """Have the one answer of these pools come piece by piece, each within bounds that its reader renews.

    Args:
        pools: As in `bound_answers`.
        bounds: Of its head, and of what comes until they are renewed.
    """
    _make(pools, _PlainAnswers, type(_Response.__name__, (_Response,), {"bounds": bounds}))


def _make(pools: urllib3.PoolManager, answers: type[_PlainAnswers], response: type[_Response]) -> None:
    pools.pool_classes_by_scheme = {
        scheme: _bounded(kind, answers, response) for scheme, kind in pools.pool_classes_by_scheme.items()
    }


def _bounded(kind: Any, answers: type[_PlainAnswers], response: type[_Response]) -> Any:
    """Make a kind of pool from another one, which may lead through a proxy, or have a TLS of its own."""
    connection = type(kind.ConnectionCls.__name__, (kind.ConnectionCls,), {"response_class": response})
    return type(kind.__name__, (answers, kind), {"ConnectionCls": connection})
