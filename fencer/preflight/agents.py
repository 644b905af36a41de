"""Judges which armed agents are there, as they write themselves on the cluster's Lease."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from fencer.core.agents import THERE_S, policy_hash
from fencer.core.policy import Mode, Policy
from fencer.core.text import age, count
from fencer.preflight.agent import unit_of
from fencer.preflight.facts import LeaseFacts
from fencer.preflight.finding import Finding, Level
from fencer.wording.agents import nobody_is_there, oddities, who_is_there

UNWRITTEN = (
    f"an agent answers on this machine, but none has written of a pass in the last {age(THERE_S)}: it has "
    "just begun, observes only, hangs, or is of an older version"
)
OTHER_RULES = "they go by other rules than this configuration: `fencer` reads it when it starts"


def judge(path: Path, policy: Policy, lease: LeaseFacts, *, answers: bool | None) -> Iterator[Finding]:
    """Say whether an armed agent is there, on whatever machine, and whether all of them are alike.

    Args:
        path: Of the configuration.
        policy: Its rules.
        lease: What there is of the cluster's Lease; of one that cannot be read nothing is said here.
        answers: An agent answers on this machine; None: it cannot be asked.
    """
    if lease.agents is None:
        return
    there = lease.agents.there(lease.utc)
    about = f"{count(len(there), 'armed agent')} there"
    if not there:
        yield from _nobody(path, policy, lease, about, answers=answers)
        return
    yield Finding("agents", about, Level.OK, who_is_there(there, lease.utc))
    odd = tuple(oddities(lease.agents, lease.utc))
    rules = {agent.policy for agent in there}
    if odd:
        level = Level.FAIL if len(rules) > 1 else Level.WARN
        again = "the same configuration and version for all of them; then `systemctl restart fencer` there"
        yield Finding("agents", "alike", level, "agents should be alike", (again,), odd)
    elif rules != {policy_hash(policy)} and policy.mode is Mode.ARMED:
        yield Finding("agents", "rules", Level.WARN, OTHER_RULES, (f"systemctl restart {_unit(path)}",))


def _nobody(
    path: Path, policy: Policy, lease: LeaseFacts, about: str, *, answers: bool | None
) -> Iterator[Finding]:
    if policy.mode is not Mode.ARMED or lease.agents is None:
        return
    if answers:
        yield Finding("agents", about, Level.WARN, UNWRITTEN, (f"systemctl status {_unit(path)}",))
        return
    told = nobody_is_there(lease.agents, lease.utc, policy.mode)
    yield Finding("agents", about, Level.FAIL, told, (f"systemctl start {_unit(path)}",))


def _unit(path: Path) -> str:
    return shlex.quote(unit_of(path) or "fencer")
