"""Whether the agent is at work, and whether it would notice a death: for probes, in plain text."""

from __future__ import annotations

from dataclasses import dataclass

from fencer.core.text import age, listing, printable
from fencer.web.answer import stale_after_s
from fencer.web.snapshot import Snapshot

STILL_S = 120.0
"""Without a sign of life for so long an agent hangs. Source: WatchdogSec in systemd/fencer.service."""


@dataclass(frozen=True, slots=True)
class Health:
    """An answer to a probe.

    Attributes:
        ok: All is well.
        lines: Why not; or that it is.
    """

    ok: bool
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The lines, as they are sent."""
        return "".join(f"{line}\n" for line in self.lines)


def alive(shown: Snapshot) -> Health:
    """Say whether the agent makes passes, or tries to.

    Args:
        shown: What is shown.
    """
    if shown.alive_age_s >= STILL_S:
        return Health(False, (f"no sign of life from the agent for {age(shown.alive_age_s)}",))  # noqa: FBT003 - ill
    return Health(True, ("ok",))  # noqa: FBT003 - well


def ready(shown: Snapshot) -> Health:
    """Say whether the agent sees nodes and guests, and may act.

    It is alive, its last pass went well, an endpoint answers, and no hypervisor's Lease is missing or denied.

    Args:
        shown: What is shown.
    """
    lines = [] if (health := alive(shown)).ok else list(health.lines)
    if not shown.tried:
        lines.append("no pass over the nodes has ended yet")
    elif shown.failing:
        lines.append(f"{shown.api}: {_plain(shown.failing, shown.api)}; nothing is fenced until it answers")
    else:
        if shown.pass_age_s is not None and shown.pass_age_s > stale_after_s(shown.policy):
            lines.append(f"the newest pass ended {age(shown.pass_age_s)} ago")
        others = [one for one in shown.endpoints if one.name != shown.api]
        if others and not any(one.up for one in others):
            lines += [f"{one.name}: {_plain(one.error, one.name)}" for one in others[:8]]
            lines.append(f"no hypervisor answers: {listing([one.name for one in others])}")
        lines += [
            f"{printable(name)}: {printable(why)}; no power order is given there"
            for name, why in shown.unfilled.items()
        ]
    if lines:
        return Health(False, tuple(lines))  # noqa: FBT003 - ill
    return Health(True, (f"ok, {shown.mode.value}",))  # noqa: FBT003 - well


def _plain(why: str, name: str) -> str:
    return printable(why.removeprefix(f"{name}: ")) or "was not asked yet"
