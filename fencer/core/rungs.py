"""The rungs that several ladders share: consent, identity, evidence, power, brake."""

from __future__ import annotations

from fencer.core.history import contradicted, renewals_in_run
from fencer.core.identity import resolve
from fencer.core.ladder import Objection, Passed
from fencer.core.model import (
    Binding,
    Intent,
    Observation,
    PowerState,
    Proof,
    Reason,
    Unreadable,
    Verdict,
    Via,
)
from fencer.core.pods import bound_to_node, clearable
from fencer.core.policy import Mode, PausedGuest, Policy

OFF = frozenset({PowerState.STOPPED, PowerState.ABSENT})


def counts_as_off(state: PowerState, policy: Policy) -> bool:
    """Whether a guest in this state counts as gone: off, or paused where the operator trusts pauses."""
    return state in OFF or (state is PowerState.PAUSED and policy.paused_guest is PausedGuest.TRUST)


def age(seconds: float) -> str:
    """Write a duration as people read it: ``8 s``, ``2m14s``, ``3h05m``."""
    whole = round(seconds)
    if whole < 60:  # noqa: PLR2004
        return f"{round(seconds, 1):g} s" if seconds < 10 else f"{whole} s"  # noqa: PLR2004
    if whole < 3600:  # noqa: PLR2004
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def wanted(observation: Observation, _policy: Policy) -> Passed | Objection:
    """Nobody asked fencer to keep its hands off."""
    if observation.fleet.paused_why is not None:
        why = observation.fleet.paused_why or "no reason given"
        return Objection(
            Verdict.REFUSE,
            Reason.FENCING_PAUSED,
            f"fencing is paused for the whole cluster: {why}",
            "annotation fencer.dev/pause taken off the namespace kube-system",
        )
    if observation.node.excluded:
        return Objection(
            Verdict.REFUSE,
            Reason.NODE_EXCLUDED,
            "the node carries the annotation fencer.dev/exclude",
            "that annotation taken off",
        )
    if isinstance(observation.node.mark, Unreadable):
        return Objection(
            Verdict.REFUSE,
            Reason.MARK_UNREADABLE,
            f"annotation fencer.dev/mark cannot be read: {observation.node.mark.text}",
            "the fencer that wrote it, or a person who takes the annotation off",
        )
    return Passed("neither paused nor excluded")


def bound(observation: Observation, _policy: Policy) -> Passed | Objection:
    """Exactly one guest is this node."""
    answer = resolve(observation)
    if answer.reason is not None:
        needs = "one guest with that UUID, or the node in the configuration's `nodes:`"
        return Objection(Verdict.REFUSE, answer.reason, answer.seen, needs)
    return Passed(answer.seen)


def proven(observation: Observation, _policy: Policy) -> Passed | Objection:
    """The binding was proven before: by hand, equality of UUIDs is enough."""
    answer = resolve(observation)
    if answer.proven:
        return Passed(
            "seen running while the node's lease advanced" if _is_bound(observation) else "by the map"
        )
    if observation.intent is not Intent.WATCH:
        return Passed("by hand: equal UUIDs are enough")
    return Objection(
        Verdict.REFUSE,
        Reason.BINDING_UNPROVEN,
        "never seen running while the node's lease advanced",
        "one look at the node alive, the node in the configuration's `nodes:`, or a fence by hand",
    )


def known(observation: Observation, policy: Policy) -> Passed | Objection:
    """There is a reading of the guest, and it is fresh."""
    evidence = observation.evidence
    if evidence is None:
        seen = observation.evidence_error or "no reading of the guest"
        return Objection(Verdict.REFUSE, Reason.EVIDENCE_MISSING, seen, "an answer of the hypervisor")
    old_s = observation.now_s - evidence.observed_at_s
    limit = f"limit {policy.evidence_max_age_s:g} s"
    if old_s > policy.evidence_max_age_s:
        return Objection(Verdict.REFUSE, Reason.EVIDENCE_STALE, f"read {age(old_s)} ago", limit)
    return Passed(f"read {age(old_s)} ago", limit)


def not_renewed(observation: Observation, policy: Policy) -> Passed | Objection:
    """No sign of life came after the guest was first read off."""
    run = observation.history.run
    if run is None or not counts_as_off(run.power_state, policy):
        renewals = 0  # it was not read off yet, but from afar
    else:
        renewals = renewals_in_run(observation.history, observation.node)
    endpoint = observation.evidence.guest.endpoint if observation.evidence else ""
    if (
        contradicted(observation.history, observation.node)
        or endpoint in observation.fleet.contradicted_endpoints
    ):
        return Objection(
            Verdict.REFUSE,
            Reason.WITNESS_CONTRADICTED,
            f"the node's lease was renewed {renewals} times while {endpoint} called guests off",
            "60 s of silence while off: until then this hypervisor's word is not believed",
        )
    if renewals:
        return Objection(
            Verdict.REFUSE,
            Reason.LEASE_RENEWED,
            "the node's lease was renewed after the guest was first read off",
            "60 s of silence while off: a kubelet lives",
        )
    return Passed("no renewal since the first off reading")


def in_place(observation: Observation, _policy: Policy) -> Passed | Objection:
    """The guest is off where it was last seen running."""
    evidence, binding = observation.evidence, observation.node.binding
    now = evidence.guest.host if evidence else None
    ran = binding.guest.host if isinstance(binding, Binding) else None
    if evidence is not None and ran and now and ran != now:
        if ran in evidence.moved_from:
            return Passed(f"on {now}, moved there from {ran}: {evidence.raw}")
        return Objection(
            Verdict.REFUSE,
            Reason.HOST_CHANGED,
            f"last seen running on {ran}, read off on {now}",
            f"the guest seen running again, or an explained move: it may still run on {ran}",
        )
    return Passed(f"on {now}, where it ran" if now else "its endpoint is one host")


def settled(observation: Observation, policy: Policy) -> Passed | Objection:
    """No lock, task or job is in the way."""
    evidence = observation.evidence
    if evidence is not None and evidence.settled:
        return Passed("no lock or task in the way")
    raw = evidence.raw if evidence else "nothing"
    return Objection(
        Verdict.WAIT, Reason.GUEST_UNSETTLED, raw, "the lock or task to end", recheck_s=policy.poll_s
    )


def looked_closely(observation: Observation, _policy: Policy) -> Passed | Objection:
    """Node, lease, guest, pods and attachments were read live, just now, for this node alone."""
    evidence = observation.evidence
    if observation.close and evidence is not None and evidence.conclusive:
        return Passed(f"guest, node, lease, pods and volumes read live: {evidence.raw}")
    return Objection(
        Verdict.WAIT,
        Reason.CLOSER_LOOK,
        "seen from afar only",
        "a live reading of guest and node",
        recheck_s=0.0,
    )


def held(observation: Observation, policy: Policy) -> Passed | Objection:
    """The guest was read off, again and again, for long enough, in the same incarnation."""
    run, evidence = observation.history.run, observation.evidence
    if evidence is not None and evidence.proof is Proof.OPERATOR:
        return Passed("by the operator's word")
    paused = evidence is not None and evidence.power_state is PowerState.PAUSED
    limit_s = policy.paused_for_s if paused else policy.confirm_s
    if _may_have_been_killed(observation):
        limit_s = max(limit_s, policy.killed_hold_s)
    needs = f"two readings at least, {limit_s:g} s apart"
    if run is None or not counts_as_off(run.power_state, policy):
        return Objection(Verdict.WAIT, Reason.NOT_HELD, "no off reading yet", needs, policy.poll_s)
    held_s = run.last_s - run.since_s
    seen = "read off once" if run.readings == 1 else f"read off {run.readings} times over {age(held_s)}"
    if run.readings < 2 or held_s < limit_s:  # noqa: PLR2004 - once more than once
        return Objection(Verdict.WAIT, Reason.NOT_HELD, seen, needs, max(0.0, limit_s - held_s))
    return Passed(seen, needs)


def _may_have_been_killed(observation: Observation) -> bool:
    """A stop that somebody claimed for this incident, and nobody here remembers, may have needed SIGKILL."""
    claim, incident = observation.node.claim, observation.incident
    if observation.killed is None:
        return bool(incident) and claim.startswith(incident)
    return observation.killed


def needed(observation: Observation, _policy: Policy) -> Passed | Objection:
    """There is something to clear: more than a drain leaves behind."""
    pods, attachments = clearable(observation.pods or ()), observation.attachments or ()
    if not attachments and all(bound_to_node(pod) for pod in pods):
        seen = "no pod to clear and no volume attached" if not pods else "only pods of DaemonSets, no volume"
        return Objection(Verdict.REFUSE, Reason.NOTHING_TO_CLEAR, seen, "nothing")
    return Passed(f"{len(pods)} pods to clear, {len(attachments)} volumes attached")


def braked(observation: Observation, policy: Policy) -> Passed | Objection:
    """Not too many nodes at once, and not all of them."""
    fleet, why = observation.fleet, observation.word.over_brake_why
    limit = policy.brake_at(fleet.nodes)
    seen = f"{fleet.young_fences} of {limit} used"
    if why is not None:
        return Passed(f"{seen}; overridden: {why}")
    if fleet.silent >= fleet.nodes:
        return Objection(
            Verdict.REFUSE,
            Reason.ALL_NODES_SILENT,
            f"all {fleet.nodes} nodes are silent: the path to the API is the suspect",
            "one node that is heard, or --over-brake WHY",
        )
    if fleet.young_fences >= limit:
        return Objection(
            Verdict.REFUSE, Reason.BRAKE, seen, "an older fence lifted or an hour old, or --over-brake WHY"
        )
    return Passed(seen)


def armed(observation: Observation, policy: Policy) -> Passed | Objection:
    """What `watch` starts needs ``mode: armed``; what a person types does not."""
    if observation.intent is Intent.WATCH and policy.mode is not Mode.ARMED:
        return Objection(
            Verdict.REFUSE, Reason.OBSERVE_MODE, "mode: observe", "mode: armed, or the same by hand"
        )
    return Passed("armed" if observation.intent is Intent.WATCH else "by hand")


def may_power(observation: Observation, _policy: Policy) -> Passed | Objection:
    """The configuration admits power actions on this guest, and the binding was seen, not only written."""
    candidate = resolve(observation).candidate
    if candidate is None or not candidate.power_admitted:
        return Objection(
            Verdict.REFUSE,
            Reason.NO_POWER_RIGHTS,
            "the configuration admits no power action on this guest",
            "its UUID in the endpoint's `power:`, or somebody who stops it by hand",
        )
    if observation.intent is Intent.WATCH and candidate.via is Via.MAP and not _is_bound(observation):
        return Objection(
            Verdict.REFUSE,
            Reason.BINDING_UNPROVEN,
            "the map names the guest, but it was never seen running while the node's lease advanced",
            "one look at the node alive: a power action needs more than the map",
        )
    return Passed("admitted by the configuration")


def no_stall(observation: Observation, _policy: Policy) -> Passed | Objection:
    """A pause by a storage error of many guests is the storage, not the guest."""
    evidence = observation.evidence
    if evidence is not None and evidence.io_error and evidence.guest.endpoint in observation.fleet.stalled:
        return Objection(
            Verdict.REFUSE,
            Reason.STORAGE_STALL,
            f"storage errors paused several guests of {evidence.guest.endpoint}",
            "storage that works again: ten minutes later it counts for itself",
        )
    return Passed("no storage stall")


def in_window(observation: Observation, policy: Policy) -> Passed | Objection:
    """At most one power-off at a time."""
    last_s = observation.fleet.last_stop_age_s
    needs = f"one power-off per {policy.power_window_s:g} s"
    if last_s is not None and last_s < policy.power_window_s and observation.word.over_brake_why is None:
        left_s = policy.power_window_s - last_s
        return Objection(Verdict.WAIT, Reason.POWER_WINDOW, f"another {age(last_s)} ago", needs, left_s)
    return Passed("none lately" if last_s is None else f"last {age(last_s)} ago", needs)


def quorate_without(observation: Observation, _policy: Policy) -> Passed | Objection:
    """A control-plane node's guest is stopped only if etcd keeps its quorum without it."""
    node = observation.node
    if not node.control_plane:
        return Passed("no control-plane node")
    if node.name in observation.fleet.quorum_without:
        return Passed("etcd keeps its quorum without it")
    return Objection(
        Verdict.REFUSE,
        Reason.QUORUM_AT_RISK,
        "a control-plane node, and etcd might lose its quorum",
        "more healthy control-plane nodes, or somebody who stops it by hand",
    )


def _is_bound(observation: Observation) -> bool:
    """The guest was seen alive with its node: by this agent, or by one that wrote it on the Node."""
    binding, history = observation.node.binding, observation.history
    keys = [candidate.guest.key for candidate in observation.candidates[:1]]
    written = isinstance(binding, Binding) and binding.guest.key in keys
    return written or (history.proven and history.guest in keys)
