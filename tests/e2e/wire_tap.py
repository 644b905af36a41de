"""A unix socket that leads to another one, until it is cut: one agent alone loses its hypervisor."""

import contextlib
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class WireTap:
    """Made by `running_tap`.

    Args:
        to: The real socket.
    """

    def __init__(self, to: Path) -> None:
        self._to = to
        self._folder = Path(tempfile.mkdtemp(prefix="tap-"))  # a socket's path has room for 107 characters
        self.path = self._folder / "sock"
        self._open: set[socket.socket] = set()
        self._is_cut = False
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(self.path))
        self._server.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def cut(self) -> None:
        """Hang up on everybody, and on whoever comes."""
        self._is_cut = True
        for one in tuple(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Lead there again."""
        self._is_cut = False

    def close(self) -> None:
        """End it."""
        self.cut()
        self._server.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # it was closed
            while True:
                near, _ = self._server.accept()
                if self._is_cut:
                    near.close()
                    continue
                far = socket.socket(socket.AF_UNIX)
                try:
                    far.connect(str(self._to))
                except OSError:
                    near.close()
                    continue
                self._open |= {near, far}
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                target.sendall(piece)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._open -= {source, target}


@contextmanager
def running_tap(to: Path) -> Iterator[WireTap]:
    """Run one before a socket."""
    tap = WireTap(to)
    try:
        yield tap
    finally:
        tap.close()
