"""What each verdict is called, everywhere: in status, log, explain, report, notifications, metrics and JSON.

The journal keeps the verdict itself (``refuse``), so that old rows stay readable whatever it is called here.
"""

from __future__ import annotations

from dataclasses import dataclass

from fencer.core.model import Judged, Verdict


@dataclass(frozen=True, slots=True)
class VerdictWords:
    """The words for one verdict.

    Attributes:
        adjective: Completes "NODE is …": what the node is.
        verb: Completes "fencer …": what fencer does about it.
        meaning: Both in a sentence, for the documentation.
    """

    adjective: str
    verb: str
    meaning: str

    @property
    def key(self) -> str:
        """The adjective as JSON, logged facts and labels of metrics have it: ``to_be_fenced``."""
        return self.adjective.replace(" ", "_")


VERDICT_WORDS: dict[Verdict, VerdictWords] = {
    Verdict.HEALTHY: VerdictWords("healthy", "watches", "The kubelet renews its lease: nothing to do."),
    Verdict.WAIT: VerdictWords(
        "waiting", "waits", "Something is wrong, and only time is missing: fencer looks again soon."
    ),
    Verdict.REFUSE: VerdictWords(
        "refused",
        "refuses",
        "Something is wrong, and fencer does not act: the reason says why, and what would change that.",
    ),
    Verdict.STOP_FIRST: VerdictWords(
        "to be stopped", "stops the VM first", "fencer cuts the VM's power, and then fences the node."
    ),
    Verdict.DISCARD_FIRST: VerdictWords(
        "memory to be discarded",
        "discards the saved memory first",
        "fencer discards the VM's saved memory, and then fences the node.",
    ),
    Verdict.FENCE: VerdictWords("to be fenced", "fences", "The proof is complete: fencer fences the node."),
    Verdict.FENCED: VerdictWords(
        "fenced",
        "keeps the fence",
        "The node carries fencer's taint: its pods are cleared, and its volumes released.",
    ),
    Verdict.RECOVERING: VerdictWords(
        "recovering", "waits for recovery", "The VM runs again: fencer waits until lifting the fence is safe."
    ),
    Verdict.UNFENCE: VerdictWords("to be unfenced", "lifts the fence", "fencer lifts the fence."),
    Verdict.ASK: VerdictWords(
        "to be shut down", "shuts it down", "A planned stop: fencer asks the VM to shut down."
    ),
    Verdict.OFF: VerdictWords("shut down", "leaves it off", "The VM was shut down on purpose and is off."),
    Verdict.START: VerdictWords("to be started", "starts it", "fencer starts the VM."),
}


def shown_verdict(judged: Judged) -> Verdict:
    """Return the verdict to show for a node: *wait* where only a running agent knows the answer."""
    verdict = judged.decision.verdict
    return Verdict.WAIT if judged.untold and verdict is Verdict.REFUSE else verdict


def adjective_of(verdict: Verdict) -> str:
    """Return what a node with this verdict is."""
    return VERDICT_WORDS[verdict].adjective


def recorded_adjective(verdict: str) -> str:
    """Return the same for a verdict as the journal has it; that of a newer fencer is returned as it is."""
    return adjective_of(Verdict(verdict)) if verdict in set(Verdict) else verdict


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
        "| the node is | in JSON, metrics and facts of the log | fencer … | meaning | in the journal |",
        "| --- | --- | --- | --- | --- |",
    )
    return "\n".join((*head, *rows, ""))
