"""This agent's part in the election of who gives each hypervisor its orders, while it runs."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from fencer import DISTRIBUTION
from fencer.cli.wire import Parts, Wiring
from fencer.core.election import Holder
from fencer.core.policy import Mode, Policy
from fencer.ports import Election, Reporter, Requests, Viewer
from fencer.runtime.answers import Answers
from fencer.runtime.election import LEARN_S, Campaigns
from fencer.runtime.nudging import Forwarding
from fencer.runtime.roll import Roll

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Source: Linux, Documentation/admin-guide/sysctl/kernel.rst."""
CLOSING_S = 3.0
"""How long the end of an agent may wait for what goes on beside the passes, and for giving Leases back."""


@dataclass(frozen=True, slots=True)
class Elected:
    """One agent of several.

    Attributes:
        election: What it is to each hypervisor; None: it takes no part.
        viewers: Are shown every pass.
        forwarding: Takes nudges for other agents; None: it takes no part.
    """

    election: Election | None = None
    viewers: tuple[Viewer, ...] = ()
    forwarding: Forwarding | None = None

    def hear(self, guest: str) -> None:
        """Take a hook's nudge, for whichever agent gives that guest's hypervisor the orders."""
        if self.forwarding is not None:
            self.forwarding.hear(guest)


@contextmanager
def elected(wiring: Wiring, parts: Parts, policy: Policy, by: str, reporter: Reporter) -> Iterator[Elected]:
    """Campaign for the Lease of each hypervisor until this ends; then give back what is held.

    Meanwhile other agents, and people, are told that this one is there, and so is whoever asks for a node.

    Args:
        wiring: Builds what asks hypervisors who they are.
        parts: The working parts.
        policy: With the mode that is in force: an agent that only observes gives no orders, campaigns for
            nothing, and writes nothing.
        by: The agent, as it calls itself.
        reporter: Is told of those who ask.
    """
    if policy.mode is not Mode.ARMED:
        yield Elected()
        return
    asker = wiring.asker(parts.clock, LEARN_S)
    me = Holder(by, _boot(), secrets.token_hex(4))
    campaigns = Campaigns(parts.leases, parts.hypervisors, asker, parts.clock, str(me), _wall)
    roll = Roll(parts.leases, by, me.instance, version(DISTRIBUTION), policy)
    forwarding = Forwarding(parts.leases, campaigns, tuple(parts.hypervisors), by)
    answers = () if parts.requests is None else (_answers(parts, parts.requests, reporter),)
    steps = (*campaigns.steps(), roll.step, forwarding.step, *(one.step for one in answers))
    beside = wiring.beside(steps)
    try:
        yield Elected(campaigns, (campaigns, roll, *answers), forwarding)
    finally:
        beside.close(CLOSING_S)
        campaigns.release()
        roll.leave()


def _answers(parts: Parts, requests: Requests, reporter: Reporter) -> Answers:
    return Answers(requests, reporter, parts.clock.now_s, lambda name: parts.cluster.fact(name).node)


def _boot() -> str:
    try:
        return BOOT_ID.read_text("ascii").strip()[:8]
    except (OSError, ValueError):  # no Linux: the instance alone tells two lives apart
        return "-"


def _wall() -> str:
    """Return the wall clock as Kubernetes' MicroTime has it: six digits."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
