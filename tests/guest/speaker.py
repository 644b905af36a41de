"""Says on a message bus that the machine goes down, as logind does; or as anybody could.

Source: D-Bus Specification, "Message Protocol" and "Authentication Protocol".
"""

import os
import socket
import struct

LOGIND = "org.freedesktop.login1"
PATH = "/org/freedesktop/login1"
_BUS, _BUS_PATH = "org.freedesktop.DBus", "/org/freedesktop/DBus"
_CALL, _ANSWERS, _SIGNAL = 1, (2, 3), 4
_HEAD = 16
"""Bytes of what every message begins with."""


class Speaker:
    """One that is connected to a bus.

    Args:
        address: Of the bus, `unix:path=…`.
        name: To have there; empty: none but its number.
    """

    def __init__(self, address: str, name: str = "") -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(address.partition("=")[2].partition(",")[0])
        self._serial = 0
        self._socket.sendall(b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n")
        assert self._socket.recv(1 << 12).startswith(b"OK ")
        self._socket.sendall(b"BEGIN\r\n")
        self._call("Hello")
        if name:
            self._call("RequestName", "su", _padded(_text(name), 4) + struct.pack("<I", 0))

    def announce(self, path: str = PATH, *, down: bool) -> None:
        """Announce a shutdown, or its end; return when the bus has passed that on."""
        body = struct.pack("<I", down)
        self._send(_SIGNAL, path, f"{LOGIND}.Manager", "PrepareForShutdown", "b", body)
        self._call("GetId")

    def close(self) -> None:
        """Leave the bus."""
        self._socket.close()

    def _call(self, member: str, signature: str = "", body: bytes = b"") -> None:
        self._send(_CALL, _BUS_PATH, _BUS, member, signature, body, to=_BUS)
        while self._receive() not in _ANSWERS:
            pass

    def _send(
        self, kind: int, path: str, interface: str, member: str, signature: str, body: bytes, to: str = ""
    ) -> None:
        self._serial += 1
        fields = [(1, b"o", _text(path)), (2, b"s", _text(interface)), (3, b"s", _text(member))]
        fields += [(6, b"s", _text(to))] if to else []
        fields += [(8, b"g", bytes([len(signature)]) + signature.encode() + b"\0")] if signature else []
        told = b""
        for code, form, value in fields:
            told = _padded(told, 8) + struct.pack("<BB1sx", code, 1, form) + value
        head = struct.pack("<cBBBIII", b"l", kind, 0, 1, len(body), self._serial, len(told))
        self._socket.sendall(_padded(head + told, 8) + body)

    def _receive(self) -> int:
        """Take the next message; return its kind."""
        head = self._take(_HEAD)
        body, _, fields = struct.unpack("<III", head[4:])
        self._take(-(-fields // 8) * 8 + body)
        return head[1]

    def _take(self, size: int) -> bytes:
        taken = b""
        while len(taken) < size:
            piece = self._socket.recv(size - len(taken))
            assert piece, "the bus has hung up"
            taken += piece
        return taken


def _text(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode() + b"\0"


def _padded(data: bytes, size: int) -> bytes:
    return data + bytes(-len(data) % size)
