"""What each verdict is called, everywhere: in status, log, explain, report, notifications, metrics and JSON.

The journal keeps the verdict itself (``refuse``), so that old rows stay readable whatever it is called here.
"""

from __future__ import annotations

from dataclasses import dataclass

from fencer.core.model import Judged, Reason, Verdict


@dataclass(frozen=True, slots=True)
class VerdictWords:
    """The words for one verdict.

    Attributes:
        key: The word that JSON, logged facts and labels of metrics have. It never changes.
        adjective: What the node is, in one or a few words.
        verb: Completes "fencer …": what fencer does about it.
        meaning: Both in a sentence, for the documentation.
    """

    key: str
    adjective: str
    verb: str
    meaning: str


VERDICT_WORDS: dict[Verdict, VerdictWords] = {
    Verdict.HEALTHY: VerdictWords(
        "healthy", "healthy", "watches", "The node is alive: there is nothing to do now."
    ),
    Verdict.WAIT: VerdictWords(
        "waiting", "waiting", "waits", "Something is wrong, and fencer can't decide yet: it looks again soon."
    ),
    Verdict.REFUSE: VerdictWords(
        "refused",
        "refused",
        "refuses",
        "fencer does not act: the reason says why, and what would change that.",
    ),
    Verdict.STOP_FIRST: VerdictWords(
        "to_be_stopped",
        "to be stopped",
        "stops the VM",
        "fencer cuts the VM's power, and judges the node again.",
    ),
    Verdict.DISCARD_FIRST: VerdictWords(
        "memory_to_be_discarded",
        "memory to be discarded",
        "discards the saved memory",
        "fencer discards the VM's saved memory, and judges the node again.",
    ),
    Verdict.FENCE: VerdictWords(
        "to_be_fenced", "to be fenced", "fences", "The proof is complete: fencer fences the node."
    ),
    Verdict.FENCED: VerdictWords(
        "fenced",
        "fenced",
        "keeps the fence",
        "The node carries fencer's taint: its pods and volumes are cleared.",
    ),
    Verdict.RECOVERING: VerdictWords(
        "recovering",
        "recovering",
        "waits for recovery",
        "The VM runs again: fencer waits until lifting the fence is safe.",
    ),
    Verdict.UNFENCE: VerdictWords(
        "to_be_unfenced", "to be unfenced", "lifts the fence", "fencer lifts the fence."
    ),
    Verdict.ASK: VerdictWords(
        "to_be_shut_down",
        "to be shut down",
        "shuts it down",
        "A planned stop: fencer asks the VM to shut down.",
    ),
    Verdict.OFF: VerdictWords(
        "shut_down", "shut down", "leaves it off", "The VM was shut down on purpose and is off."
    ),
    Verdict.START: VerdictWords("to_be_started", "to be started", "starts it", "fencer starts the VM."),
}

OF_REASON: dict[Reason, str] = {
    Reason.OLD_MEMORY: "in alarm",
    Reason.OBSERVE_MODE: "only observed",
    Reason.NOTHING_TO_CLEAR: "nothing to clear",
}
"""Reasons that say more than their verdict: people read this word in place of its adjective."""


def shown_verdict(judged: Judged) -> Verdict:
    """Return the verdict to show for a node: *wait* where only a running agent knows the answer."""
    verdict = judged.decision.verdict
    waits = judged.untold and not judged.stands and verdict is Verdict.REFUSE
    return Verdict.WAIT if waits else verdict


def adjective_of(verdict: Verdict, reason: Reason | None = None) -> str:
    """Return what a node with this verdict is; a reason that says more has a word of its own."""
    return (OF_REASON.get(reason) if reason is not None else None) or VERDICT_WORDS[verdict].adjective


def recorded_adjective(verdict: str, reason: str = "") -> str:
    """Return the same for a decision in the journal; the verdict of a newer fencer is returned as it is."""
    if verdict not in set(Verdict):
        return verdict
    return adjective_of(Verdict(verdict), Reason(reason) if reason in set(Reason) else None)


def recorded_key(verdict: str) -> str:
    """Return the same as JSON has it."""
    return key_of(Verdict(verdict)) if verdict in set(Verdict) else verdict


def key_of(verdict: Verdict) -> str:
    """Return a verdict as JSON, logged facts and labels of metrics have it."""
    return VERDICT_WORDS[verdict].key


def table() -> str:
    """Return all verdicts as a Markdown table, for the documentation."""
    rows = (
        f"| {words.adjective} | `{words.key}` | fencer {words.verb} | {words.meaning} | `{verdict.value}` |"
        for verdict, words in VERDICT_WORDS.items()
    )
    head = (
        "| word | in JSON, metrics and facts of the log | fencer … | meaning | in the journal |",
        "| --- | --- | --- | --- | --- |",
    )
    return "\n".join((*head, *rows, ""))
