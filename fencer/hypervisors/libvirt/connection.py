"""Connections to libvirt: opened so that silence is noticed, and closed without waiting for anybody.

Any call to the other side may hang as long as libvirtd does, `open` without any limit.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from fencer.errors import ConfigError, HypervisorError
from fencer.hypervisors.libvirt.errors import NO_SUPPORT, translate
from fencer.hypervisors.libvirt.settings import LibvirtSettings

_log = logging.getLogger(__name__)

_LOOP_PAUSE_S = 1.0
_LOOP_WAKES_S = 0.5
_ENDS_WITHIN_S = 2.0
"""libvirt's event loop: a pause after errors, how often it looks whether it may end, how long it may take."""
_EVENTS, _CLOSE = "libvirt-events", "libvirt-close"


class _EventLoop:
    """libvirt's own event loop, one per process: events, keepalive and close callbacks need it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started = False
        self._over = threading.Event()

    def ensure(self, libvirt: Any) -> None:
        """Start it, unless it runs. It has to be there before the first connection is opened."""
        with self._lock:
            if self._started:
                return
            libvirt.registerErrorHandler(_keep_quiet, None)
            libvirt.virEventRegisterDefaultImpl()
            # Now and then it has to look whether it is over; nothing else would wake it.
            libvirt.virEventAddTimeout(round(_LOOP_WAKES_S * 1000), _only_wake, None)
            threading.Thread(target=self._run, args=(libvirt,), name=_EVENTS, daemon=True).start()
            atexit.register(self._end)
            self._started = True

    def _run(self, libvirt: Any) -> None:
        while not self._over.is_set():
            try:
                libvirt.virEventRunDefaultImpl()
            except libvirt.libvirtError:
                _log.exception("libvirt's event loop stumbled")
                self._over.wait(_LOOP_PAUSE_S)

    def _end(self) -> None:
        """Keep all threads out of libvirt's code when the interpreter ends: a callback then crashes.

        Connections are closed first, while their events still run. One that hangs is left alone.
        """
        until_s = time.monotonic() + _ENDS_WITHIN_S
        for name in (_CLOSE, _EVENTS):
            if name == _EVENTS:
                self._over.set()
            for thread in threading.enumerate():
                if thread.name == name:
                    with suppress(KeyboardInterrupt):  # a second Ctrl-C, of a person who sees nothing happen
                        thread.join(max(0.0, until_s - time.monotonic()))


_EVENT_LOOP = _EventLoop()


class Connector:
    """Opens connections to one endpoint, and translates what libvirt raises there.

    Args:
        settings: Of the endpoint.

    Raises:
        ConfigError: The binding is missing.
    """

    def __init__(self, settings: LibvirtSettings) -> None:
        self.settings = settings
        self.libvirt = _load_binding(settings.name)
        self._uri = without_questions(settings.uri)

    def open(self, *, read_only: bool) -> Any:
        """Open a connection that breaks when the other side falls silent. May hang for ever itself.

        Raises:
            HypervisorUnreachable, HypervisorDenied, HypervisorProtocol.
        """
        _EVENT_LOOP.ensure(self.libvirt)
        with self.translated("cannot connect", opening=True):
            connection = (self.libvirt.openReadOnly if read_only else self.libvirt.open)(self._uri)
        try:
            with self.translated("cannot watch over the connection", opening=True):
                self._keep_alive(connection)
        except HypervisorError:
            self.retire(connection)
            raise
        return connection

    def retire(self, connection: Any, *goodbyes: Callable[[], object]) -> None:
        """Close a connection in a new thread, after unsubscribing. Never blocks, never raises."""
        steps = (*goodbyes, connection.close)
        threading.Thread(target=self._close, args=(steps,), name=_CLOSE, daemon=True).start()

    @contextmanager
    def translated(self, doing: str, *, guest: str = "", opening: bool = False) -> Iterator[None]:
        """Turn libvirt's errors within into fencer's; the arguments are those of `translate`."""
        try:
            yield
        except self.libvirt.libvirtError as error:
            where = self.settings.name, self.settings.uri
            raise translate(error, doing, *where, guest=guest, opening=opening) from error

    def _keep_alive(self, connection: Any) -> None:
        try:
            connection.setKeepAlive(self.settings.keepalive_s, self.settings.keepalive_count)
        except self.libvirt.libvirtError as error:
            if error.get_error_code() != NO_SUPPORT:  # a driver without a daemon has no connection to lose
                raise

    def _close(self, steps: tuple[Callable[[], object], ...]) -> None:
        for step in steps:
            try:
                step()
            except self.libvirt.libvirtError as error:  # broken already: nothing is left to close
                _log.debug("endpoint=%s closing: %s", self.settings.name, error)


def without_questions(uri: str) -> str:
    """Keep ssh from asking for a password or a host key on the terminal, where an agent would wait for ever.

    Source: libvirt, docs/uri.rst, parameter ``no_tty``.
    """
    scheme, _, rest = uri.partition("://")
    if not scheme.endswith("+ssh") or "no_tty=" in rest:
        return uri
    return f"{uri}{'&' if '?' in rest else '?'}no_tty=1"


def _load_binding(endpoint: str) -> Any:
    """Import libvirt's binding. It is an extra, because installing it takes a compiler.

    Raises:
        ConfigError: It is not there; the message says how to get it.
    """
    try:
        import libvirt  # noqa: PLC0415 - only those who configure a libvirt endpoint need it
    except ImportError as missing:
        raise ConfigError(
            f"endpoint {endpoint} needs libvirt's Python binding, which cannot be loaded ({missing}). "
            f"{how_to_get()}"
        ) from missing
    return libvirt


def how_to_get(module: str = __file__) -> str:
    """Say how the binding is installed for the fencer that this is.

    Args:
        module: A file of it. Debian's package takes Debian's binding.
    """
    if module.startswith("/usr/lib/fencer/"):
        return "Install it: `apt install python3-libvirt`"
    return (
        "Install fencer with its extra, in its checkout: `uv tool install '.[libvirt]'`, "
        "`pipx install --force '.[libvirt]'`, or `pip install '.[libvirt]'` in the environment that "
        "fencer has. It is compiled on the spot; Debian and Ubuntu need "
        "`apt-get install gcc pkg-config python3-dev libvirt-dev` before"
    )


def _only_wake(_timer: int, _opaque: object) -> None:
    """Do nothing: the loop is awake now."""


def _keep_quiet(_context: object, _error: object) -> None:
    """Stand in for libvirt's printing on stderr: every error is raised anyway."""
