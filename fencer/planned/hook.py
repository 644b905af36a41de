"""A drain that a hookscript asks for before Proxmox stops a guest: one connection each, with limits.

The hook waits for an answer, or for the end of the connection: so a dead agent blocks nothing. Its request
proves nothing: a node is cordoned, and pods are evicted within their budgets, nothing more.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fencer.core.consent import wanted
from fencer.core.cordon import HOOK
from fencer.core.identity import subject_of
from fencer.core.model import GuestRef, NodeView
from fencer.core.rung import Objection
from fencer.core.text import printable
from fencer.errors import ConfigError, FencerError
from fencer.evicting.lots import Filters
from fencer.planned.drain import DrainOptions, NodeDrain
from fencer.runtime.memory import Scene
from fencer.runtime.reconcile import Agent
from fencer.runtime.world import World

log = logging.getLogger(__name__)

AT_ONCE = 32
"""More at a time are sent away at once, as without an agent: that many guests end only with their host."""
LONGEST = 256
"""Bytes of a request."""
REQUEST_S = 5.0
"""How long the hook may take to send its request."""
AGAIN_S = 1.0
"""How long to wait after a connection that could not be accepted: no descriptor may be free for a while."""

_CREDENTIALS = struct.Struct("3i")
_WORDS = 4


@dataclass(frozen=True, slots=True)
class Request:
    """What a hook asked for: ``pre-stop VMID HOST BUDGET``.

    Attributes:
        guest: The guest's number.
        host: The hook's host, where the guest runs.
        budget_s: For how long the hook waits.
    """

    guest: str
    host: str
    budget_s: float

    def means(self, guest: GuestRef) -> bool:
        """Whether this may be the guest; in two clusters, numbers and hosts may have the same names."""
        return (guest.id, guest.host) == (self.guest, self.host)


def read_request(text: str) -> Request | None:
    """Read a request; None: it is none."""
    words = text.split()
    if len(words) != _WORDS or words[0] != "pre-stop" or not words[1].isdigit():
        return None
    try:
        budget_s = float(words[3])
    except ValueError:
        return None
    return Request(words[1], words[2], budget_s) if 0 < budget_s < float("inf") else None


class HookDrains:
    """Answers hooks of root and of the agent's own user.

    Args:
        path: The socket; its folder must exist. One left by a dead agent is replaced.
        drain: Drains for a request, and returns the result as text; called in its own thread.

    Raises:
        ConfigError: the socket cannot be made there.
    """

    def __init__(self, path: Path, drain: Callable[[Request], str]) -> None:
        self._path = path
        self._drain = drain
        self._free = threading.Semaphore(AT_ONCE)
        self._closing = threading.Event()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            path.unlink(missing_ok=True)
            self._socket.bind(str(path))
            path.chmod(0o600)
            self._socket.listen(AT_ONCE)
        except OSError as error:
            self._socket.close()
            raise ConfigError(f"{path}: no socket for hooks can be made here: {error}") from error
        self._thread = threading.Thread(target=self._serve, name="fencer-hook-drains", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening; running drains end with the process, and their hooks with them."""
        self._closing.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._path.unlink(missing_ok=True)

    def _serve(self) -> None:
        with self._socket:  # in any case: a hook that finds no listener does not wait
            failed = ""
            while not self._closing.is_set():
                try:
                    hook, _ = self._socket.accept()
                except OSError as error:
                    if not self._closing.is_set() and str(error) != failed:
                        log.warning(
                            "hooks that wait for a drain get none: %s; trying again until that ends", error
                        )
                    failed = str(error)
                    self._closing.wait(AGAIN_S)
                    continue
                failed = ""
                self._take(hook)

    def _take(self, hook: socket.socket) -> None:
        """Answer a hook in a new thread, or send it away."""
        if not self._free.acquire(blocking=False):
            log.warning("more than %d hooks wait for a drain: one was sent away", AT_ONCE)
            hook.close()
            return
        try:
            threading.Thread(target=self._answer, args=(hook,), name="fencer-hook-drain", daemon=True).start()
        except RuntimeError as error:  # the system gives no more threads
            log.warning("a hook that asked for a drain was sent away: %s", error)
            hook.close()
            self._free.release()

    def _answer(self, hook: socket.socket) -> None:
        try:
            with hook:
                hook.settimeout(REQUEST_S)
                _, uid, _ = _CREDENTIALS.unpack(
                    hook.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
                )
                request = read_request(hook.recv(LONGEST).decode(errors="replace"))
                if uid not in {0, os.getuid()} or request is None:
                    log.warning("a drain request from user %s was ignored", uid)
                    return
                said = self._drain(request)
                log.info("hook=%s", printable(f"pre-stop {request.guest}: {said}"))
                hook.sendall(b"done\n")
        except OSError as error:
            log.info("hook=pre-stop a hook did not wait: %s", error)
        except FencerError as error:
            log.warning("hook=pre-stop not drained: %s", error)
        finally:
            self._free.release()


def drain_for(
    world: World,
    agent: Agent,
    request: Request,
    limit_s: float,
    ended: Callable[[NodeView, str], object] = lambda _node, _failed: None,
) -> str:
    """Drain the node of the guest that is about to be stopped; return what became of it, for the log.

    Args:
        world: The ports, with an evictor; for this drain alone.
        agent: On that world.
        request: The hook's request.
        limit_s: The configuration's own limit.
        ended: Called once a drain has ended, with why it failed; empty: it did not.
    """
    try:
        scene = agent.observer.look()
        if whose := _of_several(scene, request):
            return f"not drained: {whose}, and hooks do not tell which of them is meant"
        names = []
        for name, node in scene.nodes.items():
            observation = agent.observer.observation(scene, node)
            seen = observation.evidence
            here = seen is not None and request.means(seen.guest)
            subject = subject_of(observation)
            if here and subject is not None and subject.proven:
                unwanted = wanted(observation)
                if isinstance(unwanted, Objection):
                    return f"{name} not drained: {unwanted.seen}"
                names.append(name)
        if len(names) != 1:
            return f"not drained: {' and '.join(sorted(names)) or 'no node'} is that guest on {request.host}"
        if scene.nodes[names[0]].ready is not True:
            return f"{names[0]} not drained: it is not Ready, and nothing on it would end in time"
        options = DrainOptions(
            Filters(spare=True), None, min(request.budget_s, limit_s), keep_cordon=True, by=HOOK
        )
        drain = NodeDrain(world, agent, names[0], options, _tell)
    except FencerError as error:
        return f"not drained: {error}"
    failed = _see_through(world, drain)
    ended(scene.nodes[drain.name], failed)
    return f"{drain.name} " + (f"not drained: {failed}" if failed else f"drained, {drain.progress()}")


def _see_through(world: World, drain: NodeDrain) -> str:
    """Drain to the end; return why it failed, or nothing."""
    try:
        pause_s = drain.advance()
        while not drain.over:
            world.clock.wait(pause_s)
            pause_s = drain.advance()
    except FencerError as error:
        return str(error)
    return drain.failed


def _of_several(scene: Scene, request: Request) -> str:
    """Say which endpoints have such a guest, if there is more than one."""
    guests = (reading.guest for reading in scene.evidence.values())
    endpoints = {guest.endpoint for guest in guests if request.means(guest)}
    if len(endpoints) <= 1:
        return ""
    return f"{' and '.join(sorted(endpoints))} each have a guest {request.guest} on {request.host}"


def _tell(node: str, what: str, details: str) -> None:
    log.info("node=%s drain=%s %s", printable(node), printable(what), printable(details))
