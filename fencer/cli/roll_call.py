"""Whether anybody is there who fences: what agents have written, for ``fencer status``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from fencer.cli.render import BAD, DOUBTFUL, GOOD, clean, paragraph
from fencer.cli.wire import Parts
from fencer.core.agents import AgentRecord, Agents, differing, read_agents
from fencer.core.crash_loop import SEEN_BY, with_loop
from fencer.core.election import CLUSTER_LEASE
from fencer.core.model import Judged, PowerState
from fencer.core.policy import Mode
from fencer.core.starts import LOOP_S, STAYS_OFF_S
from fencer.core.text import age, printable
from fencer.core.times import apart_s, earlier, parse_utc
from fencer.errors import ClusterDenied, ClusterNotFound, FencerError, JournalError
from fencer.runtime.world import API
from fencer.wording.agents import LEASES_MEND, nobody_is_there, oddities, who_is_there

if TYPE_CHECKING:
    from fencer.journal.loops import SeenLoop


@dataclass(frozen=True, slots=True)
class RollCall:
    """Who is there.

    Attributes:
        mode: What the configuration says.
        agents: What is written about agents.
        utc: The API server's clock when that was read.
        unknown: Why it is not known who is there; empty: it is.
        loops: UID of a node → the crash loop that the agent on this machine saw, if it only observes.
    """

    mode: Mode
    agents: Agents = Agents()  # noqa: RUF009 - it is frozen
    utc: str = ""
    unknown: str = ""
    loops: Mapping[str, SeenLoop] = field(default_factory=dict)

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
        """Return a judged node with the alarm of a crash loop, if an agent saw one: one look cannot (M6)."""
        node = judged.observation.node
        by = self.agents.sees_loop(node.name, self.utc)
        seen = SEEN_BY.format(by=printable(by)) if by else self._own_loop(judged)
        return replace(judged, decision=with_loop(judged.decision, node, seen)) if seen else judged

    def _own_loop(self, judged: Judged) -> str:
        """Return what this machine's journal shows of a node's crash loop; empty: nothing that goes on."""
        loop, reading = self.loops.get(judged.observation.node.uid), judged.observation.evidence
        runs = reading is not None and reading.power_state is PowerState.RUNNING
        if loop is None or loop.ago_s >= (LOOP_S if runs else STAYS_OFF_S):
            return ""
        return f"{printable(loop.seen)}, as {printable(loop.by)} saw {age(max(0.0, loop.ago_s))} ago"

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
    """Read who is there, and what the agent on this machine saw."""
    return replace(_agents(parts), loops=_own_loops(parts))


def _own_loops(parts: Parts) -> Mapping[str, SeenLoop]:
    """Read the journal of an agent that only observes: it writes no record in the cluster (M6)."""
    journal = parts.config.journal
    if parts.policy.mode is not Mode.OBSERVE or journal is None or parts.utc is None:
        return {}
    from fencer.journal.loops import newest_loops  # noqa: PLC0415 - SQLite; not everybody observes

    try:
        return newest_loops(journal.file, parse_utc(parts.utc()))
    except JournalError:  # there is none yet, or this user may not read it
        return {}


def _agents(parts: Parts) -> RollCall:
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
