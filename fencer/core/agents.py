"""Which armed agents are there: each writes itself on the Lease that all agents of a cluster share.

So whoever looks can say that nobody fences, although a configuration says ``armed``; and that two agents go
by different rules. Nothing is decided by it: an agent that is not written there fences all the same.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fencer.core.policy import Mode, Policy
from fencer.core.text import printable
from fencer.core.times import MOST_APART_S, parse_utc, seconds_between
from fencer.core.wire import dump_by_keys

AGENT = "fencer.dev/agent-"
"""Begins the key of each record; the agent's instance follows."""
SCHEMA = 1

WRITE_S = 10.0
"""Between two times that an agent writes itself."""
THERE_S = 30.0
"""From its last pass on an agent counts as there for so long: two of its records may be missing."""
KEPT_S = 600.0
"""A record this old is taken off by whoever writes: its agent ended without taking it off."""
MOST_AGENTS, LONGEST = 64, 2048
"""So many records, of so many bytes: half of what an object may have of annotations.

Source: k8s.io/apimachinery pkg/api/validation objectmeta.go, TotalAnnotationSizeLimitB: 262,144."""

_INSTANCE = re.compile(r"[0-9a-z]{1,32}")
_HASH_LENGTH = 8
_WORD_LENGTH = 253
_MOST_NAMES = 256


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """An armed agent, as it writes itself.

    Attributes:
        by: What it calls itself in marks: ``fencer@pve2``.
        instance: Its process, by chance: small letters and digits.
        version: Of fencer.
        mode: What it may do by itself.
        policy: `policy_hash` of its rules.
        passed_utc: When its last pass looked at the cluster, by the API server's clock.
        holds: The hypervisors whose Leases it holds, as its configuration calls them.
        knows: All hypervisors that its configuration has.
        loops: Nodes whose VMs it sees in a crash loop: a command that looks once cannot see that.
    """

    by: str
    instance: str
    version: str
    mode: Mode
    policy: str
    passed_utc: str
    holds: tuple[str, ...] = ()
    knows: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()

    def passed_ago_s(self, utc: str) -> float:
        """Return how long ago its last pass was.

        Args:
            utc: The API server's clock.
        """
        return seconds_between(self.passed_utc, utc)

    def is_there(self, utc: str) -> bool:
        """Whether it made a pass a moment ago.

        Args:
            utc: The API server's clock.
        """
        return -MOST_APART_S <= self.passed_ago_s(utc) <= THERE_S


@dataclass(frozen=True, slots=True)
class Agents:
    """What is written about agents.

    Attributes:
        agents: Those that can be read; the one that made a pass last is the first.
        unreadable: What cannot be read, each with why; printable.
    """

    agents: tuple[AgentRecord, ...] = ()
    unreadable: tuple[str, ...] = ()

    def there(self, utc: str) -> tuple[AgentRecord, ...]:
        """Return the agents that made a pass a moment ago.

        Args:
            utc: The API server's clock.
        """
        return tuple(agent for agent in self.agents if agent.is_there(utc))

    def sees_loop(self, node: str, utc: str) -> str:
        """Return which agent sees a node's VM in a crash loop (M6); empty: none that is there.

        Args:
            node: Its name.
            utc: The API server's clock.
        """
        return next((agent.by for agent in self.there(utc) if node in agent.loops), "")


def read_agents(notes: Mapping[str, str]) -> Agents:
    """Read what is written about agents; what is broken, or of a newer fencer, is named.

    Args:
        notes: The annotations of the Lease `fencer.core.election.CLUSTER_LEASE`.
    """
    agents, unreadable = [], []
    keys = sorted(key for key in notes if key.startswith(AGENT))
    if len(keys) > MOST_AGENTS:
        unreadable.append(f"{len(keys)} agents are written there; {MOST_AGENTS} of them are read")
    for key in keys[:MOST_AGENTS]:
        try:
            agents.append(_read(key, notes[key]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            unreadable.append(printable(f"{key[:100]}: {type(error).__name__}: {error}"[:300]))
    agents.sort(key=lambda agent: (parse_utc(agent.passed_utc), agent.instance), reverse=True)
    return Agents(tuple(agents), tuple(unreadable))


def written(notes: Mapping[str, str], agent: AgentRecord, utc: str) -> dict[str, str]:
    """Return the annotations with an agent's record on them, and without those of agents that are long gone.

    Args:
        notes: What the Lease has.
        agent: Who writes.
        utc: The API server's clock.
    """
    mine = AGENT + agent.instance
    kept = {key: text for key, text in notes.items() if not key.startswith(AGENT)}
    others = [key for key in sorted(notes) if key.startswith(AGENT) and key != mine]
    alive = [key for key in others if _counts(notes[key], utc)]
    return {**kept, **{key: notes[key] for key in alive[: MOST_AGENTS - 1]}, mine: _text(agent)}


def without(notes: Mapping[str, str], instance: str) -> dict[str, str]:
    """Return the annotations without an agent's record: it has ended."""
    return {key: text for key, text in notes.items() if key != AGENT + instance}


def policy_hash(policy: Policy) -> str:
    """Return what is the same for two agents exactly if they go by the same rules, whatever their mode.

    Args:
        policy: The rules.
    """
    return rules_hash(rules_text(policy))


def rules_text(policy: Policy) -> str:
    """Return the rules of a policy, without its mode, as the text that is hashed."""
    rules = {key: value for key, value in dump_by_keys(policy).items() if key != "mode"}
    return json.dumps(rules, sort_keys=True)


def rules_hash(text: str) -> str:
    """Return the hash of such a text."""
    return hmac.digest(b"fencer policy", text.encode(), "sha256").hex()[:_HASH_LENGTH]


def differing(agents: Sequence[AgentRecord]) -> tuple[str, ...]:
    """Say in which way agents differ that should be alike; empty: in none.

    Args:
        agents: Those that are there.
    """
    rules = _unlike("rules", [(agent.by, agent.policy[:4]) for agent in agents], [a.policy for a in agents])
    versions = _unlike("versions", [(a.by, a.version) for a in agents], [a.version for a in agents])
    return (*rules, *versions)


def _unlike(what: str, told: Sequence[tuple[str, str]], values: Sequence[str]) -> Iterator[str]:
    if len(set(values)) > 1:
        each = ", ".join(f"{by} {value}" for by, value in sorted(set(told)))
        yield printable(f"{what} differ: {each}")


def _counts(text: str, utc: str) -> bool:
    """Whether a record is to stay: its agent may still be there. One of a newer fencer has its time, too."""
    try:
        if len(text.encode()) > LONGEST:
            return False
        passed_utc = json.loads(text)["passed"]
        return -MOST_APART_S <= seconds_between(passed_utc, utc) < KEPT_S
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def _text(agent: AgentRecord) -> str:
    """Return a record as text; of many names as many as there is room for."""
    while len(text := _json(agent)) > LONGEST and (agent.knows or agent.holds or agent.loops):
        if agent.knows:
            agent = replace(agent, knows=agent.knows[: len(agent.knows) // 2])
        elif agent.holds:
            agent = replace(agent, holds=agent.holds[: len(agent.holds) // 2])
        else:
            agent = replace(agent, loops=agent.loops[: len(agent.loops) // 2])
    return text


def _json(agent: AgentRecord) -> str:
    loops = {"loops": list(agent.loops)} if agent.loops else {}
    data = {
        "schema": SCHEMA,
        "by": agent.by[:_WORD_LENGTH],
        "version": agent.version,
        "mode": agent.mode.value,
        "policy": agent.policy,
        "passed": agent.passed_utc,
        "holds": list(agent.holds),
        "knows": list(agent.knows),
        **loops,
    }
    return json.dumps(data, separators=(",", ":"), sort_keys=True)


def _read(key: str, text: str) -> AgentRecord:
    instance = key.removeprefix(AGENT)
    if not _INSTANCE.fullmatch(instance):
        raise ValueError("that is no instance of an agent")
    if len(text.encode(errors="surrogatepass")) > LONGEST:
        raise ValueError(f"it has {len(text):,} characters; {LONGEST:,} bytes at most are read")
    data = json.loads(text)
    if data["schema"] != SCHEMA:
        raise ValueError(f"schema {data['schema']!r} (this fencer reads {SCHEMA})")
    by, version, policy = _word(data["by"]), _word(data["version"]), _word(data["policy"])
    passed_utc = _word(data["passed"])
    if parse_utc(passed_utc) == parse_utc(""):
        raise ValueError(f"{passed_utc!r} is no time")
    names = _names(data["holds"]), _names(data["knows"]), _names(data.get("loops", []))
    return AgentRecord(by, instance, version, Mode(data["mode"]), policy, passed_utc, *names)


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, not {value!r}")
    if not value or len(value) > _WORD_LENGTH:
        raise ValueError(f"expected 1 to {_WORD_LENGTH} characters, not {len(value)}")
    return value


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > _MOST_NAMES:
        raise TypeError("expected a list of names")
    return tuple(_word(one) for one in value)
