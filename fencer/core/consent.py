"""Whether fencer may act: who asked it not to, what the configuration admits, and how much at a time."""

from __future__ import annotations

from dataclasses import replace

from fencer.core import brake, pause
from fencer.core.deeds import deed
from fencer.core.maintenance import window_for
from fencer.core.model import (
    Alarm,
    FenceMark,
    Intent,
    Observation,
    Reason,
    Unreadable,
    Verdict,
    Via,
)
from fencer.core.policy import Mode, Policy
from fencer.core.requests import RESERVATIONS
from fencer.core.rung import Answer, EndOfLadder, Objection, Passed, Subject
from fencer.core.text import age
from fencer.core.times import Moment, age_between

HANDED_OVER = "nvsentinel.nvidia.com/external-remediation"
"""A taint: this node was handed over to somebody, and is nobody else's meanwhile.

Source: github.com/NVIDIA/NVSentinel, its page on external remediation.
"""

LONGEST_REST = 5
"""A guest that cannot be stopped is tried again after twice as long each time, up to this many doublings of
the window. Otherwise such guests would take the turns of those that can be stopped."""


def wanted(observation: Observation) -> Answer:
    """Nobody asked fencer to keep its hands off, and what it wrote on the Node can be read."""
    node = observation.node
    if observation.fleet.paused_why is not None:
        why = observation.fleet.paused_why or "no reason given"
        return Objection(
            Verdict.REFUSE,
            Reason.FENCING_PAUSED,
            f"fencing is paused for the whole cluster: {why}",
            "its end, or annotation fencer.dev/pause taken off the namespace kube-system",
        )
    if node.excluded:
        return Objection(
            Verdict.REFUSE,
            Reason.NODE_EXCLUDED,
            f"the node carries {node.excluded_by}",
            "that taken off",
        )
    paused_why = pause.told(node.pause_note, observation.earliest_utc, observation.latest_utc)
    if paused_why is not None:
        return Objection(
            Verdict.REFUSE,
            Reason.NODE_PAUSED,
            f"fencing is paused for this node: {paused_why}",
            "its end, or annotation fencer.dev/pause taken off the node",
        )
    return _readable(observation)


def held(observation: Observation, policy: Policy) -> Answer:
    """Ask what holds fencer back from a node as a whole, and from what: see `fencer.core.holds`.

    That is a pause, an exclusion, notes that cannot be read; and where `watch` asks, a maintenance window of
    the configuration. What a person types is not kept by a window: it is for what fencer begins by itself.
    """
    answer = wanted(observation)
    if isinstance(answer, Objection) or observation.intent is not Intent.WATCH:
        return answer
    now = Moment(observation.earliest_utc, observation.latest_utc)
    window = window_for(observation.node.name, policy.maintenance, now)
    if window is None:
        return answer
    return Objection(
        Verdict.REFUSE,
        Reason.MAINTENANCE,
        str(window),
        "its end, or the same done by hand",
    )


def _readable(observation: Observation) -> Answer:
    """What fencer has written on the Node can be read, and was written by fencer."""
    node = observation.node
    if isinstance(node.mark, Unreadable):
        return Objection(
            Verdict.REFUSE,
            Reason.MARK_UNREADABLE,
            f"annotation fencer.dev/mark cannot be read: {node.mark.text}",
            "the fencer version that wrote it, or a person who takes the annotation off",
        )
    adopted = observation.word.adopt_why is not None
    if isinstance(node.mark, FenceMark) and node.fenced and not node.mark.signed and not adopted:
        return _unsigned(observation, node.mark)
    if isinstance(node.doubts, Unreadable):
        return Objection(
            Verdict.REFUSE,
            Reason.DOUBTS_UNREADABLE,
            f"annotation fencer.dev/doubts cannot be read: {node.doubts.text}",
            "the fencer version that wrote it, or a person who takes the annotation off",
        )
    if adopted and isinstance(node.mark, FenceMark) and not node.mark.signed:
        return Passed(f"its mark is adopted, by the operator's word: {observation.word.adopt_why}")
    return Passed("neither paused nor excluded")


def _unsigned(observation: Observation, mark: FenceMark) -> Objection:
    name = observation.node.name
    ago = age_between(mark.fenced_at_utc, observation.utc)
    unsigned = "is not signed: a kubelet could have written it"
    seen = f"the mark of {mark.by} from {ago} ago {unsigned}"
    needs = (
        f"its guest started by hand; and, once it has booted, if it was fencer that fenced it, "
        f"`fencer unfence {name} --adopt WHY`"
    )
    if observation.intent is not Intent.WATCH:  # waiting would change nothing
        return Objection(Verdict.REFUSE, Reason.MARK_UNSIGNED, seen, needs)
    alarm = Alarm(f"the mark of {mark.by} {unsigned}. The way out: {needs}")  # one text, and so one alarm
    return Objection(Verdict.FENCED, Reason.MARK_UNSIGNED, seen, needs, actions=(alarm,))


def unreserved(subject: Subject, policy: Policy) -> Answer:
    """Nobody else works on this node, unless they have asked fencer for it. By hand, a person knows."""
    call, node = subject.seen.call, subject.node
    if subject.seen.intent is not Intent.WATCH:
        return Passed("by hand")
    answer = not_given_up(subject, policy)
    if isinstance(answer, Objection):
        return answer
    taint = next((taint for taint in node.taints if taint.key == HANDED_OVER), None)
    if taint is not None:
        return Objection(
            Verdict.REFUSE,
            Reason.HANDED_OVER,
            f"the node carries the taint {taint.key}={taint.value}",
            "that taint taken off by its owner, or the same done by hand",
        )
    if call.strategy is not None:
        return Passed(f"asked for by {call.by}")
    if call.reserved_by:
        return Objection(
            Verdict.REFUSE,
            Reason.NODE_RESERVED,
            f"{call.reserved_by} holds lease {RESERVATIONS}/node-{node.name}",
            "a FencerRemediation for the node, that Lease's end, or the same done by hand",
        )
    return Passed("nobody else works on it")


def not_given_up(subject: Subject, _policy: Policy) -> Answer:
    """Whoever asked for this still waits for it: otherwise they may be at another remedy.

    They are while they hold medik8s' Lease for the node. After that nobody works on it, and fencer acts as
    ever.
    """
    call, node = subject.seen.call, subject.node
    elsewhere = call.given_up and call.reserved_by and call.strategy is None
    if subject.seen.intent is not Intent.WATCH or not elsewhere:
        return Passed("nobody has given it up")
    return Objection(
        Verdict.FENCED if node.fenced else Verdict.REFUSE,
        Reason.GIVEN_UP,
        f"{call.given_up} was given up; {call.reserved_by} holds lease {RESERVATIONS}/node-{node.name}",
        "that Lease's end, or the same done by hand",
    )


def notes_first(subject: Subject, policy: Policy) -> Answer:
    """All that this agent saw is on the Nodes; and other agents had time to write what they saw.

    Only then may anything be given away: what nobody can read yet may say that a guest's memory is elsewhere.
    """
    answer = _noted(subject.seen, policy)
    if isinstance(answer, Objection) and subject.seen.node.fenced:
        return replace(answer, verdict=Verdict.FENCED)
    return answer


def _noted(seen: Observation, policy: Policy) -> Answer:
    """Return what `notes_first` answers of a node that is not fenced."""
    if seen.unwritten:
        told = f"not written on the Node yet, although it was seen: {', '.join(seen.unwritten)}"
        needs = "that written, which is tried again in every pass"
        return Objection(Verdict.WAIT, Reason.NOTES_FIRST, told, needs, policy.poll_s)
    if seen.unread and seen.intent is Intent.WATCH:
        needs = "that file mended; or moved away, if no VM was saved or moved since this agent last ran"
        # No time brings it: refused.
        return Objection(Verdict.REFUSE, Reason.NOTES_FIRST, seen.unread, needs, policy.poll_s)
    others_s = policy.poll_s + policy.confirm_s
    left_s = others_s - seen.answering_s
    if seen.intent is Intent.WATCH and left_s > 0:
        told = f"the API server has been answering again for {age(seen.answering_s)}"
        needs = f"{others_s:g} s, in which other agents write down what they saw meanwhile"
        return Objection(Verdict.WAIT, Reason.NOTES_FIRST, told, needs, left_s)
    return Passed("all that was seen is written down")


def braked(subject: Subject, policy: Policy) -> Answer:
    """Not too many nodes at once, and not all of them."""
    fleet, why = subject.seen.fleet, subject.seen.word.over_brake_why
    limit, used = policy.brake_at(fleet.nodes), brake.used(fleet, subject.node, subject.evidence)
    seen = f"{used} of {limit} used"
    if why is not None:
        return Passed(f"{seen}; overridden: {why}")
    if fleet.silent >= fleet.nodes:
        return Objection(
            Verdict.REFUSE,
            Reason.ALL_NODES_SILENT,
            f"all {fleet.nodes} nodes are silent: the path to the API is suspect",
            "one node that is heard, or --over-brake WHY",
        )
    if used >= limit:
        half = ", half of the nodes" if policy.max_fenced is None else ""
        seen = f"{used} of {fleet.nodes} nodes within an hour; max_fenced allows {limit}{half}"
        needs = "an older fence lifted or an hour old, a higher `max_fenced`, or --over-brake WHY"
        return Objection(Verdict.REFUSE, Reason.BRAKE, seen, needs)
    if brake.too_many_hosts(fleet, policy, subject.node, subject.evidence):
        most = policy.brake_at_hosts(fleet.hosts)
        half = ", half of the hosts" if policy.max_fenced_hosts is None else ""
        dead = len(brake.dead_hosts(fleet))
        seen = f"{dead} of {fleet.hosts} hosts within an hour; max_fenced_hosts allows {most}{half}"
        needs = "an older fence lifted or an hour old, a higher `max_fenced_hosts`, or --over-brake WHY"
        return Objection(Verdict.REFUSE, Reason.BRAKE, seen, needs)
    return Passed(seen)


def armed(ending: EndOfLadder, subject: Subject, policy: Policy) -> Answer:
    """What `watch` starts needs ``mode: armed``; what a person types does not.

    Asked last, so that an agent that only observes says what it would do now.

    Args:
        ending: Of the ladder that is climbed.
        subject: Who.
        policy: For the mode.
    """
    if subject.seen.intent is not Intent.WATCH:
        return Passed("by hand")
    if policy.mode is Mode.ARMED:
        return Passed("armed")
    actions = ending(subject, policy).actions
    would = deed(subject.seen, actions, " now")
    if not would:
        return Passed("mode: observe, and there is nothing to do")
    needs = "the same done by hand, or `mode: armed`"
    return Objection(Verdict.REFUSE, Reason.OBSERVE_MODE, f"would {would}", needs)


def may_power(subject: Subject, _policy: Policy) -> Answer:
    """The configuration admits power actions on this guest, and the binding was seen, not only written."""
    waits = subject.candidate.unapproved
    if waits:
        return Objection(
            Verdict.REFUSE,
            Reason.POWER_UNAPPROVED,
            f"{', '.join(waits)} admits {subject.guest} once a person has approved it as this node's VM",
            f"that VM approved: `fencer approve {subject.node.name}`",
        )
    if not subject.candidate.power_admitted:
        return Objection(
            Verdict.REFUSE,
            Reason.NO_POWER_RIGHTS,
            "the configuration admits no power action on this guest",
            "the guest in the endpoint's `power:`, or the guest stopped by hand",
        )
    mapped = subject.candidate.via is Via.MAP
    if subject.seen.intent is Intent.WATCH and mapped and not subject.seen_alive:
        return Objection(
            Verdict.REFUSE,
            Reason.BINDING_UNPROVEN,
            "the map names the guest, but it was never seen running while the node's lease advanced",
            "the node seen alive once: a power action needs more than the map",
        )
    return Passed(f"admitted by the configuration: {', '.join(subject.candidate.admitted_by)}")


def in_window(subject: Subject, policy: Policy) -> Answer:
    """At most one power-off at a time; a guest that could not be stopped goes behind the others."""
    last_s, failed = subject.seen.fleet.last_stop_age_s, subject.seen.stop_failed
    if failed is not None:
        rest_s = policy.power_window_s * 2 ** min(failed.times, LONGEST_REST) - failed.ago_s
        if rest_s > 0:
            seen = f"tried {age(failed.ago_s)} ago, and again in {age(rest_s)}: {failed.why}"
            by_hand = "started or restored" if failed.discard else "stopped by hand"
            reason = Reason.DISCARD_FAILED if failed.discard else Reason.STOP_FAILED
            return Objection(Verdict.WAIT, reason, seen, f"the cause mended, or the guest {by_hand}", rest_s)
    needs = f"one power-off per {policy.power_window_s:g} s"
    if last_s is not None and last_s < policy.power_window_s and subject.seen.word.over_brake_why is None:
        left_s = policy.power_window_s - last_s
        return Objection(Verdict.WAIT, Reason.POWER_WINDOW, f"another {age(last_s)} ago", needs, left_s)
    return Passed("none lately" if last_s is None else f"last {age(last_s)} ago", needs)


def quorate_without(subject: Subject, _policy: Policy) -> Answer:
    """A control-plane node's guest is stopped only if etcd keeps its quorum without it."""
    node = subject.node
    if not node.control_plane:
        return Passed("no control-plane node")
    if node.name in subject.seen.fleet.quorum_without:
        return Passed("etcd keeps its quorum without it")
    return Objection(
        Verdict.REFUSE,
        Reason.QUORUM_AT_RISK,
        "a control-plane node, and etcd might lose its quorum",
        "more healthy control-plane nodes, or the guest stopped by hand",
    )
