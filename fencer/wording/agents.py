"""Whether anybody is there who fences, in a line for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fencer.core.agents import AgentRecord, Agents, differing
from fencer.core.policy import Mode
from fencer.core.text import age, listing, printable

NOBODY = "NO AGENT RUNS: nobody fences"
UNARMED = "NO AGENT IS ARMED: nobody fences"
NOT_COUNTED = "one that observes is not counted"
"""It writes nothing into the cluster, so nobody else knows of it."""
LEASES_MEND = "`fencer setup kubernetes --config CONFIG | kubectl apply -f -` mends that"
_UNLED = "gives no power orders yet (`fencer check` says why, if that lasts)"
_OURS = "fencer@"


def nobody_is_there(agents: Agents, utc: str, mode: Mode) -> str:
    """Say that no armed agent is there, and which one was.

    Args:
        agents: What is written about agents; none of them is there.
        utc: The API server's clock.
        mode: What the configuration says.
    """
    known = [agent for agent in agents.agents if agent.passed_ago_s(utc) >= 0]
    was = f"; {_last(known[0], utc)}" if known else ""
    return f"{UNARMED}{was}; {NOT_COUNTED}" if mode is Mode.OBSERVE else f"{NOBODY}{was}"


def who_is_there(there: Sequence[AgentRecord], utc: str) -> str:
    """Say which armed agents are there: who gives orders first, and where, if several do.

    Args:
        there: Those that made a pass a moment ago; one at least.
        utc: The API server's clock.
    """
    holders = [agent for agent in there if agent.holds]
    others = [agent for agent in there if not agent.holds]
    first, rest = (holders, others) if holders else (others[:1], others[1:])
    words = [_at_work(agent, utc, where=len(holders) > 1) for agent in first]
    noun = "agent" if len(words) == 1 else "agents"
    unled = "" if holders else f", {_UNLED}"
    standby = listing([agent.by.removeprefix(_OURS) for agent in rest], 4)
    return f"{noun} {' · '.join(words)}{unled}{f' · standby {standby}' if rest else ''}"


def _at_work(agent: AgentRecord, utc: str, *, where: bool) -> str:
    places = f" ({listing(agent.holds, 4)})" if where else ""
    return f"{printable(agent.by)}{places} {agent.mode.value}, last pass {_ago(agent, utc)} ago"


def _last(agent: AgentRecord, utc: str) -> str:
    return f"{printable(agent.by)} made its last pass {_ago(agent, utc)} ago"


def _ago(agent: AgentRecord, utc: str) -> str:
    return age(max(0.0, round(agent.passed_ago_s(utc))))


def oddities(agents: Agents, utc: str) -> Iterator[str]:
    """Say in which way the agents that are there differ, and what cannot be read of them."""
    yield from differing(agents.there(utc))
    yield from agents.unreadable
