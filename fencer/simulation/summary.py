"""How a story ended, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass

from fencer.core.wire import wire


@wire("node fenced refused_reason pods_moved seconds_to_fence seconds_to_recover seconds_to_unfence")
@dataclass(frozen=True, slots=True)
class IncidentSummary:
    """One incident of a story, in seconds from its beginning; None: it did not come to that.

    Attributes:
        refused_reason: Why fencer refused for the longest time: to fence, or to lift its fence.
    """

    node: str
    fenced: bool
    refused_reason: str | None
    pods_moved: int
    seconds_to_fence: float | None
    seconds_to_recover: float | None
    seconds_to_unfence: float | None


@wire("words done text")
@dataclass(frozen=True, slots=True)
class CommandSummary:
    """What became of a command that somebody typed.

    Attributes:
        words: What was typed after ``fencer``.
        done: It did what it was asked for; otherwise it refused, or failed.
        text: What it said in the end.
    """

    words: str
    done: bool
    text: str

    @property
    def looks(self) -> bool:
        """It changes nothing."""
        return self.words.startswith("plan")

    @property
    def answer(self) -> str:
        """What became of it, in a few words."""
        if self.done:
            return self.text.partition("; ")[0]
        return f"{self.words.split()[0]} {'refused' if self.text.startswith('refused') else 'failed'}"


@wire(
    "scenario alone seed fenced refused_reason pods_moved pods_stuck pods_down evicts_nobody "
    "foreign_taint seconds_to_fence seconds_to_recover double_writers resumable_hazards breaches "
    "as_expected duration_s incidents commands most_down"
)
@dataclass(frozen=True, slots=True)
class Summary:
    """How a story ended.

    Attributes:
        scenario: Its name.
        alone: Played without fencer.
        seed: Same seed, same story.
        fenced: Pods were cleared from a node (see `incidents` for which).
        refused_reason: Why fencer refused for the longest time, at the first incident that tells: to lift a
            fence of its own, or to fence.
        pods_moved: Replacements that got Ready on other nodes.
        pods_stuck: Pods that read Terminating at the end.
        pods_down: Others that are not Ready at the end.
        evicts_nobody: So many nodes are silent at the end that Kubernetes replaces no pods.
        foreign_taint: Somebody else than fencer tainted a node.
        seconds_to_fence: From the slowest incident's beginning to fencer's taint.
        seconds_to_recover: From the slowest incident's beginning until every pod was Ready again.
        double_writers: Volumes that two running guests had mounted, each time that it came to that.
        resumable_hazards: The same for a running guest and one that could be resumed.
        breaches: Steps that gave something away, or cut somebody off, who lived.
        as_expected: It ended as the scenario expects of fencer. None: played without.
        incidents: One by one.
        commands: What people typed, in the order in which it ended.
        most_down: How many pods were not Ready at a time; None: nobody planned anything.
    """

    scenario: str
    alone: bool
    seed: int
    fenced: bool
    refused_reason: str | None
    pods_moved: int
    pods_stuck: int
    pods_down: int
    evicts_nobody: bool
    foreign_taint: bool
    seconds_to_fence: float | None
    seconds_to_recover: float | None
    double_writers: int
    resumable_hazards: int
    breaches: int
    as_expected: bool | None
    duration_s: float
    incidents: tuple[IncidentSummary, ...]
    commands: tuple[CommandSummary, ...] = ()
    most_down: int | None = None

    @property
    def answers(self) -> str:
        """Say what became of the commands that change something."""
        return ", ".join(one.answer for one in self.commands if one.text and not one.looks)

    def sentence(self) -> str:
        """Return the last line of the story."""
        recovered_s = self.seconds_to_recover
        ready = (
            "not all pods Ready again" if recovered_s is None else f"all pods Ready after {recovered_s:.0f} s"
        )
        what = ready
        if self.fenced:
            refused = {
                "lifting" if one.fenced else one.node: one.refused_reason
                for one in self.incidents
                if one.refused_reason is not None
            }
            kept = "".join(f"; {who} refused: {why}" for who, why in refused.items())
            what = f"fenced in {self.seconds_to_fence:.0f} s, {ready}{kept}"
        elif self.refused_reason is not None:
            what = f"refused: {self.refused_reason}"
        elif self.answers:
            what = f"{self.answers} · at most {self.most_down} not Ready at a time"
        stuck = f" · pods stuck {self.pods_stuck}" if self.pods_stuck else ""
        return f"{what} · pods moved {self.pods_moved}{stuck} · double writers {self.double_writers}"
