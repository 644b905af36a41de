"""A way to libvirtd on which no event comes through, for what fencer does by its polls alone.

fencer has no setting that switches events off. So a socket stands between it and libvirtd that leaves them
out of what libvirtd says; calls and replies pass as they are.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer
from typing import BinaryIO

_LENGTH = struct.Struct(">I")
_HEADER = struct.Struct(">IIII")
_REMOTE, _MESSAGE = 0x20008086, 2
"""Program and type of an event. Keepalive, another program, has the same type.

Source: libvirt, src/remote/remote_protocol.x (REMOTE_PROGRAM) and src/rpc/virnetprotocol.x: each packet
begins with its length, program, version, procedure and type, all of them 4 bytes.
"""
_MUCH = 1 << 16


def without_events(said: BinaryIO) -> Iterator[bytes]:
    """Yield libvirtd's packets, except events, until it ends the connection."""
    while len(length := said.read(_LENGTH.size)) == _LENGTH.size:
        packet = length + said.read(_LENGTH.unpack(length)[0] - _LENGTH.size)
        program, _, _, kind = _HEADER.unpack_from(packet, _LENGTH.size)
        if (program, kind) != (_REMOTE, _MESSAGE):
            yield packet


class _Door(ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, path: Path, behind: Path) -> None:
        self.behind = behind
        super().__init__(str(path), _Passage)


class _Passage(StreamRequestHandler):
    server: _Door

    def handle(self) -> None:
        """Carry what is said both ways until one side ends."""
        with socket.socket(socket.AF_UNIX) as libvirtd, suppress(OSError):
            libvirtd.connect(str(self.server.behind))
            asking = threading.Thread(target=self._ask, args=(libvirtd,), daemon=True)
            asking.start()
            with libvirtd.makefile("rb") as said:
                for packet in without_events(said):
                    self.connection.sendall(packet)
            self.connection.shutdown(socket.SHUT_RDWR)

    def _ask(self, libvirtd: socket.socket) -> None:
        with suppress(OSError):
            while asked := self.connection.recv(_MUCH):
                libvirtd.sendall(asked)
            libvirtd.shutdown(socket.SHUT_RDWR)


@contextmanager
def eventless(path: Path, behind: Path) -> Iterator[str]:
    """Listen on a socket; yield the URI of that way.

    Args:
        path: Of the new socket; short, as all paths of sockets.
        behind: libvirtd's own socket.
    """
    with _Door(path, behind) as door:
        serving = threading.Thread(target=door.serve_forever, name="eventless", daemon=True)
        serving.start()
        try:
            yield f"qemu:///session?socket={path}"
        finally:
            door.shutdown()
            path.unlink()
