"""Judges all facts, in the order in which people read them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from fencer.config.settings import PreStop
from fencer.core.model import NodeView
from fencer.core.policy import Mode
from fencer.preflight import (
    adapters,
    admission,
    agent,
    agents,
    bindings,
    cluster,
    credentials,
    endpoints,
    files,
    guest_stops,
    guests,
    hibernation,
    home,
    host_power,
    identities,
    leases,
    nodes,
    notifications,
    power,
    remediation,
    transport,
    web,
)
from fencer.preflight.facts import ClusterFacts, Facts, JournalFacts, NodeFacts
from fencer.preflight.finding import Finding


def judge(facts: Facts) -> Iterator[Finding]:
    """Judge everything; what could not be asked is not judged."""
    config = facts.config
    yield Finding("config", str(facts.path), note=f"mode {config.policy.mode.value}")
    yield from files.judge_secrets(config, facts.secrets)
    yield from transport.judge(config)
    yield files.judge_journal(config.journal, facts.journal or JournalFacts())
    yield from files.judge_state(config.state_file, facts.state)
    yield from notifications.judge(config, facts.receivers)
    yield agent.judge(
        config.policy.mode,
        facts.path,
        answers=facts.agent_answers,
        older=facts.agent_older,
        elsewhere=any(one.agents is not None and one.agents.there(one.utc) for one in facts.leases[:1]),
    )
    yield web.judge(config.web, facts.web_trouble, answers=facts.agent_answers)
    if isinstance(facts.cluster, ClusterFacts):
        yield from cluster.judge(facts.cluster, hook_drains=config.hook.pre_stop is PreStop.DRAIN)
        yield from remediation.judge(
            facts.cluster.info, facts.cluster.remediation, armed=config.policy.mode is Mode.ARMED
        )
        yield from credentials.judge(facts.cluster.credentials, facts.cluster.wall)
    else:
        yield cluster.judge_silence(facts.cluster, config.kubernetes.kubeconfig)
    yield home.judge(facts.home, _servers(facts), _seen(facts))
    yield from _endpoints(facts)
    if isinstance(facts.cluster, ClusterFacts) and facts.leases:
        yield leases.judge(facts.path, facts.cluster.info, facts.leases)
        yield from agents.judge(facts.path, config.policy, facts.leases[0], answers=facts.agent_answers)
    if isinstance(facts.nodes, NodeFacts):
        yield from _nodes(facts, facts.nodes)
    elif facts.nodes is not None:
        yield nodes.judge_silence(facts.nodes)


def _servers(facts: Facts) -> tuple[str, ...]:
    """Return the URLs of the fenced cluster's API servers, as far as they are known."""
    told = (facts.cluster.info.server,) if isinstance(facts.cluster, ClusterFacts) else ()
    return (*told, *facts.config.kubernetes.servers)


def _seen(facts: Facts) -> Collection[NodeView] | None:
    """Return the nodes; None: they could not be looked at."""
    return facts.nodes.scene.nodes.values() if isinstance(facts.nodes, NodeFacts) else None


def _endpoints(facts: Facts) -> Iterator[Finding]:
    unheard = facts.nodes.scene.errors if isinstance(facts.nodes, NodeFacts) else {}
    for endpoint in facts.config.endpoints:
        yield endpoints.judge(endpoint, facts.endpoints[endpoint.name], unheard.get(endpoint.name, ""))
    yield from identities.judge(facts.config.policy.mode, facts.described)
    yield from guest_stops.judge_unread({name: info.kind for name, info in facts.described.items()})


def _nodes(facts: Facts, seen: NodeFacts) -> Iterator[Finding]:
    config, scene = facts.config, seen.scene
    if scene.nodes and isinstance(facts.cluster, ClusterFacts):
        yield from cluster.judge_watch(seen.unwatched)
        yield admission.judge(facts.cluster.info, seen.confined)
    silent = [endpoint.name for endpoint in config.endpoints if endpoint.name not in seen.answering]
    yield guests.judge(seen.observations, silent)
    if seen.reachable:
        yield from bindings.judge(seen.reachable, seen.readings)
        yield from guest_stops.judge(seen.reachable, seen.stop_settings)
        yield from hibernation.judge(seen.reachable, facts.described)
    yield from bindings.judge_names(scene.nodes.values(), {one.name for one in config.endpoints})
    yield from host_power.judge(config.power_witnesses, seen)
    yield from adapters.judge(config.endpoints, seen)
    yield from power.judge(config, seen, facts.described)
    yield from nodes.judge(config.policy, seen)
    yield from cluster.judge_speed(seen.call_took_s)
    yield cluster.judge_clock(scene.utc, seen.wall, seen.call_took_s)
