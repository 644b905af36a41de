"""After boot, or a cancelled shutdown, takes off the cordon of the drain in this guest; nothing else."""

from __future__ import annotations

import time
from typing import Callable

from fencer.guest.drain import Say
from fencer.guest.errors import DONE, REFUSED, UNREACHABLE, GuestError, Overtaken, Unreachable
from fencer.guest.node import MANAGER, NodeClient
from fencer.guest.rules import Step, after_boot, cordon_is_ours, cordon_unrecorded

TIMEOUT_S = 1800.0
"""A fence is lifted within minutes after boot, or fencer raises its alarm after 15."""
LOOK_EVERY_S = 2.0
SETTLE_S = 30.0
"""After a fence is gone, controllers act on old caches for a while, so the node takes no new pods yet. The
same as the agent's own settling time."""


def uncordon(
    client: NodeClient,
    boot_id: str,
    timeout_s: float,
    say: Say,
    settle_s: float = SETTLE_S,
    *,
    start: str = "",
    going_down: Callable[[], bool | None] = lambda: None,
) -> int:
    """Uncordon the node if this guest's drain cordoned it; return the exit code.

    Args:
        client: The node.
        boot_id: This boot's id.
        timeout_s: How long to wait for the kubelet, for a fence to be lifted, or for the API server.
        say: Called with what happens, and what it waits for.
        settle_s: How long to wait after a fence is lifted.
        start: When this system was started, from `system.started`; empty: not known.
        going_down: Says whether this machine is going down; None: not known.
    """
    deadline_s = time.monotonic() + timeout_s
    look = _Look(client, boot_id, start, going_down, say, settle_s)
    told = ""
    while True:
        try:
            code, waiting_for = REFUSED, look.once()
        except (Unreachable, Overtaken) as error:
            code, waiting_for = UNREACHABLE, str(error)
        except GuestError as error:
            say(f"{client.name} left as it is: {error}")
            return error.code
        if not waiting_for:
            return DONE
        if time.monotonic() + LOOK_EVERY_S > deadline_s:
            by_hand = f"`kubectl uncordon {client.name}`"
            say(f"{client.name} left as it is after {timeout_s:g} s: {waiting_for}; by hand: {by_hand}")
            return code
        if waiting_for != told:
            told = waiting_for
            say(f"{client.name}: waiting: {waiting_for}")
        time.sleep(LOOK_EVERY_S)


def standing(client: NodeClient) -> str:
    """Name the cordon of this guest's drain, and what ends it; empty: there is none.

    Raises:
        GuestError: that is not known.
    """
    node, name = client.read(), client.name
    ours = cordon_is_ours(node, MANAGER) or cordon_unrecorded(node)
    return f"{name} is cordoned by the drain in this guest: `kubectl uncordon {name}` ends it" if ours else ""


class _Look:
    """Looks at the node, and remembers when it was last seen fenced."""

    def __init__(
        self,
        client: NodeClient,
        boot_id: str,
        start: str,
        going_down: Callable[[], bool | None],
        say: Say,
        settle_s: float,
    ) -> None:
        self._client = client
        self._boot_id = boot_id
        self._start = start
        self._going_down = going_down
        self._say = say
        self._settle_s = settle_s
        self._fenced_s: float | None = None

    def once(self) -> str:
        """Look, and do what has to be done; return what to wait for, or nothing when all is done.

        Raises:
            GuestError: it could not be done.
        """
        node = self._client.read()
        step, text = after_boot(node, self._boot_id, MANAGER, self._start)
        if step is Step.WAIT:
            self._fenced_s = time.monotonic() if node.fenced else self._fenced_s
            return text
        if step is Step.UNLESS_DOWN:
            down = self._going_down()
            if down is not False:
                return "this machine is going down" if down else "systemd does not tell whether it goes down"
        if step in (Step.UNCORDON, Step.UNLESS_DOWN):
            if self._fenced_s is not None and time.monotonic() < self._fenced_s + self._settle_s:
                return f"the fence is lifted, and controllers get {self._settle_s:g} s to notice"
            self._client.uncordon(node)
            self._say(f"{node.name} uncordoned: {text}")
            return ""
        if step is Step.FORGET:
            self._client.forget(node)
        self._say(f"{node.name} left as it is: {text}")
        return ""
