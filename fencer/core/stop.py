"""When a guest that could go on writing is kept from it: stopped, or its saved memory thrown away.

The fence itself follows from what is read afterwards.
"""

from __future__ import annotations

from fencer.core.doubt import WORDS, in_the_way
from fencer.core.history import chance_s
from fencer.core.model import DiscardSaved, Doubted, Intent, PowerState, Reason, StopGuest, Verdict
from fencer.core.policy import Policy
from fencer.core.proof import DOUBTED
from fencer.core.rung import Answer, Ending, Objection, Passed, Subject
from fencer.core.shutdown import same_run
from fencer.core.text import age
from fencer.core.times import age_between


def paused_long(subject: Subject, policy: Policy) -> Answer:
    """The pause is no snapshot, save or stall. By hand, it need not last that long.

    And it began after the node was last heard: between two readings of a pause it may have run for a moment.
    A VM that has powered itself off counts while nothing keeps its process on purpose, as a backup does.
    """
    run, silent_s, evidence = subject.history.run, subject.node.lease_age_s, subject.evidence
    limit_s = policy.paused_for_s if subject.seen.intent is Intent.WATCH else policy.confirm_s
    lasted_s = 0.0
    if run is not None and run.power_state is evidence.power_state:
        lasted_s = run.lasted_s if evidence.powered_off else max(0.0, run.last_s - run.since_s)
    lasted_s = lasted_s if silent_s is None else min(lasted_s, silent_s)
    raw, needs = evidence.raw, f"limit {limit_s:g} s, then it is stopped"
    if lasted_s < limit_s:
        reason = Reason.NOT_HELD if evidence.powered_off else Reason.PAUSE_TOO_SHORT
        needs = f"{evidence.stuck}; or {needs}" if evidence.stuck else needs
        return Objection(Verdict.WAIT, reason, f"{raw} for {age(lasted_s)}", needs, limit_s - lasted_s)
    return Passed(f"{raw} for {age(lasted_s)}", needs)


def not_in_vain(subject: Subject, _policy: Policy) -> Answer:
    """Its end would be believed. No guest is stopped for a fence that would then be refused."""
    doubt = in_the_way(subject.node, subject.evidence, subject.history)
    if doubt is None:
        return Passed("its end would be believed")
    back = "its kubelet alive" if doubt.kind is Doubted.HIBERNATED else "the guest seen running there"
    noted = f"{WORDS[doubt.kind]} (noted by {doubt.by} {age_between(doubt.since_utc, subject.seen.utc)} ago)"
    return Objection(
        Verdict.REFUSE,
        DOUBTED[doubt.kind][0],
        f"{subject.evidence.raw}; {noted}: its end would not be believed",
        f"{back} again; or ended by hand, and then --confirm-guest-off WHY",
    )


def saved(subject: Subject, policy: Policy) -> Answer:
    """The guest's memory was on disk for long enough."""
    run = subject.history.run
    held_s = run.last_s - run.since_s if run is not None and run.power_state is PowerState.SAVED else 0.0
    needs = f"limit {policy.confirm_s:g} s, then its saved memory is thrown away"
    raw = subject.evidence.raw
    if run is None or run.readings < 2 or held_s < policy.confirm_s:  # noqa: PLR2004 - once more than once
        left_s = max(policy.poll_s, policy.confirm_s - held_s)
        return Objection(Verdict.WAIT, Reason.NOT_HELD, f"{raw} for {age(held_s)}", needs, left_s)
    return Passed(f"{raw} for {age(held_s)}", needs)


def unresponsive(subject: Subject, policy: Policy) -> Answer:
    """The guest has run unheard for long. By hand, the operator knows.

    And it has run for a while in which it could have been heard: a host that was cut off, for example, keeps
    both its hypervisor from answering and its kubelet from renewing.
    """
    raw = subject.evidence.raw
    if subject.seen.intent is Intent.FENCE:
        same = same_run(subject, policy)  # S12
        return same if isinstance(same, Objection) else Passed(f"{raw}; to be stopped, by hand")
    silent_s = subject.node.lease_age_s or 0.0
    needs = f"limit {policy.unresponsive_after_s:g} s, then it is stopped"
    if silent_s < policy.unresponsive_after_s:
        left_s = policy.unresponsive_after_s - silent_s
        seen = f"{raw}; silent for {age(silent_s)}"
        return Objection(Verdict.WAIT, Reason.GUEST_UNRESPONSIVE, seen, needs, left_s)
    run, chance = subject.history.run, chance_s(policy)
    there_s = run.last_s - run.since_s if run is not None and run.power_state is PowerState.RUNNING else 0.0
    if there_s < chance:
        seen = f"{raw}; silent for {age(silent_s)}, and read running for {age(there_s)} of that"
        needs = f"{chance:g} s in which it runs, and its kubelet could be heard"
        return Objection(Verdict.WAIT, Reason.GUEST_UNRESPONSIVE, seen, needs, chance - there_s)
    return Passed(f"{raw}; silent for {age(silent_s)}", needs)


def nobody_elses(subject: Subject, _policy: Policy) -> Answer:
    """No other node that may be alive reports this guest as its own: it may be that one's guest that runs."""
    if subject.seen.claimed_by:
        names = ", ".join(subject.seen.claimed_by)
        return Objection(
            Verdict.REFUSE,
            Reason.GUEST_AMBIGUOUS,
            f"{names} may be alive, and says that it is {subject.guest}, too",
            f"{subject.node.name} deleted, if that was its name before; or the right UUID reported",
        )
    return Passed("no other node says that it is this guest")


def no_stall(subject: Subject, _policy: Policy) -> Answer:
    """If storage errors pause many guests, the storage is at fault, not the guest."""
    evidence = subject.evidence
    if evidence.io_error and evidence.guest.endpoint in subject.seen.fleet.stalled:
        return Objection(
            Verdict.REFUSE,
            Reason.STORAGE_STALL,
            f"storage errors paused several guests of {evidence.guest.endpoint}",
            "storage that works again; ten minutes later this pause is judged by itself",
        )
    return Passed("no storage stall")


def stop(subject: Subject, policy: Policy) -> Ending:
    """Cut its power: it could go on writing."""
    paused = Reason.GUEST_POWERED_OFF if subject.evidence.powered_off else Reason.GUEST_PAUSED
    reason = Reason.GUEST_UNRESPONSIVE if subject.power_state is PowerState.RUNNING else paused
    order = StopGuest(subject.guest, subject.evidence.incarnation)
    return Ending(Verdict.STOP_FIRST, reason, (order,), policy.poll_s)


def discard(subject: Subject, policy: Policy) -> Ending:
    """Throw its saved memory away: it could go on writing."""
    order = DiscardSaved(subject.guest, subject.evidence.incarnation)
    return Ending(Verdict.DISCARD_FIRST, Reason.GUEST_SAVED, (order,), policy.poll_s)
