"""Whether anybody is there who fences: what agents have written, for ``fencer status``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import click

from fencer.cli.render import BAD, DOUBTFUL, GOOD, clean, paragraph
from fencer.cli.wire import Parts
from fencer.core.agents import AgentRecord, Agents, differing, read_agents
from fencer.core.crash_loop import SEEN_BY, with_loop
from fencer.core.election import CLUSTER_LEASE
from fencer.core.model import Judged
from fencer.core.policy import Mode
from fencer.core.text import printable
from fencer.core.times import apart_s, earlier
from fencer.errors import ClusterDenied, ClusterNotFound, FencerError
from fencer.runtime.world import API
from fencer.wording.agents import LEASES_MEND, nobody_is_there, oddities, who_is_there


@dataclass(frozen=True, slots=True)
class RollCall:
    """Who is there.

    Attributes:
        mode: What the configuration says.
        agents: What is written about agents.
        utc: The API server's clock when that was read.
        unknown: Why it is not known who is there; empty: it is.
    """

    mode: Mode
    agents: Agents = Agents()  # noqa: RUF009 - it is frozen
    utc: str = ""
    unknown: str = ""

    def lines(self) -> Iterator[str]:
        """Say it for people."""
        if self.unknown:
            yield from _styled(f"whether an agent runs is not known: {clean(self.unknown)}", DOUBTFUL)
            return
        there = self.agents.there(self.utc)
        if there:
            yield from _styled(who_is_there(there, self.utc), GOOD)
        else:
            # As it is wanted, while somebody rehearses.
            colour = DOUBTFUL if self.mode is Mode.OBSERVE else BAD
            yield from _styled(nobody_is_there(self.agents, self.utc, self.mode), colour, bold=True)
        for text in oddities(self.agents, self.utc):
            yield from _styled(text, DOUBTFUL)

    def with_loop(self, judged: Judged) -> Judged:
        """Return a judged node with the alarm of a crash loop, if an agent sees one: one look cannot (M6)."""
        by = self.agents.sees_loop(judged.observation.node.name, self.utc)
        if not by:
            return judged
        seen = SEEN_BY.format(by=printable(by))
        return replace(judged, decision=with_loop(judged.decision, judged.observation.node, seen))

    def data(self) -> dict[str, Any]:
        """Return it for programs."""
        there = self.agents.there(self.utc)
        return {
            "agent_runs": None if self.unknown else bool(there),
            "agents": [self._of(agent) for agent in self.agents.agents],
            "agents_differ": list(differing(there)),
            "agents_unknown": self.unknown or None,
            "agents_unreadable": list(self.agents.unreadable),
        }

    def _of(self, agent: AgentRecord) -> dict[str, Any]:
        return {
            "by": agent.by,
            "instance": agent.instance,
            "version": agent.version,
            "mode": agent.mode.value,
            "policy": agent.policy,
            "last_pass": agent.passed_utc,
            "last_pass_ago_s": round(agent.passed_ago_s(self.utc)),
            "there": agent.is_there(self.utc),
            "holds": list(agent.holds),
            "knows": list(agent.knows),
            "loops": list(agent.loops),
        }


def call_roll(parts: Parts) -> RollCall:
    """Read who is there."""
    mode, deadline_s = parts.policy.mode, parts.policy.call_deadline_s
    try:
        record = parts.asker.ask(API, lambda: parts.leases.read_lease(CLUSTER_LEASE), deadline_s)
    except (ClusterNotFound, ClusterDenied) as error:
        return RollCall(mode, unknown=f"{error}; {LEASES_MEND}")
    except FencerError as error:
        return RollCall(mode, unknown=str(error))
    own_utc = "" if parts.utc is None else parts.utc()
    # By the slower clock: one that is ahead makes no agent seem away (E26).
    return RollCall(mode, read_agents(record.notes), earlier(record.utc, apart_s(record.utc, own_utc)))


def _styled(text: str, colour: str, *, bold: bool | None = None) -> Iterator[str]:
    return (click.style(line, fg=colour, bold=bold) for line in paragraph(text))
