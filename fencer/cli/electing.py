"""This agent's part in the election of who gives each hypervisor its orders, while it runs."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from fencer.cli.wire import Parts, Wiring
from fencer.core.election import Holder
from fencer.core.policy import Mode
from fencer.runtime.election import LEARN_S, Campaigns

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Source: Linux, Documentation/admin-guide/sysctl/kernel.rst."""
CLOSING_S = 3.0
"""How long the end of an agent may wait for what goes on beside the passes, and for giving Leases back."""


@contextmanager
def elected(wiring: Wiring, parts: Parts, mode: Mode, by: str) -> Iterator[Campaigns | None]:
    """Campaign for the Lease of each hypervisor until this ends; then give back what is held.

    Args:
        wiring: Builds what asks hypervisors who they are.
        parts: The working parts.
        mode: An agent that only observes gives no orders, and campaigns for nothing: it gives None.
        by: The agent, as it calls itself.
    """
    if mode is not Mode.ARMED:
        yield None
        return
    asker = wiring.asker(parts.clock, LEARN_S)
    me = str(Holder(by, _boot(), secrets.token_hex(4)))
    campaigns = Campaigns(parts.leases, parts.hypervisors, asker, parts.clock, me, _wall)
    beside = wiring.beside(campaigns.steps())
    try:
        yield campaigns
    finally:
        beside.close(CLOSING_S)
        campaigns.release()


def _boot() -> str:
    try:
        return BOOT_ID.read_text("ascii").strip()[:8]
    except (OSError, ValueError):  # no Linux: the instance alone tells two lives apart
        return "-"


def _wall() -> str:
    """Return the wall clock as Kubernetes' MicroTime has it: six digits."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
