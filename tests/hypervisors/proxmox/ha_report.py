"""What fencer makes of recorded HA incidents: ``uv run python -m tests.hypervisors.proxmox.ha_report``.

Reads the traces in `FENCER_HA_TRACES`; see `tests.hypervisors.proxmox.ha_watch` for how they are watched.
Ground truth is when a host really lost its power, as the trace's log has it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from fencer.core.model import Proof
from tests.hypervisors.proxmox.ha_trace import Trace
from tests.hypervisors.proxmox.ha_watch import FOLDER, NAMES, Account, play

DONE_S = 300
"""So long after a host's boot, HA has made up its mind on the guests there."""


@dataclass
class Report:
    """All traces, added up. Times in seconds.

    Attributes:
        traces: How many there are.
        premature: Guests called off before they were: must be 0.
        recovered: From the host's loss of power to HA's proof, for each guest that HA took off a dead host.
        fenced: The same to the fence, of those that HA could not start elsewhere meanwhile.
        stopped: From the end of a guest that HA was asked to stop, or lost, to its proof by its own host.
        refused: Guests of dead hosts whose end was not taken as proven, each with why.
        unexplained: Those of them for which no good reason is known.
    """

    traces: int = 0
    premature: int = 0
    recovered: list[int] = field(default_factory=list)
    fenced: list[int] = field(default_factory=list)
    stopped: list[int] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    unexplained: list[str] = field(default_factory=list)

    def add(self, name: str, trace: Trace, account: Account) -> None:
        """Add one trace."""
        self.traces += 1
        self.premature += len(account.premature)
        lost = {(sid, host) for sid, host in trace.alive_when_lost}
        self.recovered += [after_s for guest, after_s in account.recovered.items() if guest in lost]
        for one in account.confirmed:
            if one.after_s is not None:
                (self.fenced if one.proof is Proof.HA_RECOVERY else self.stopped).append(one.after_s)
        for sid, words in account.refused.items():
            why = _good_reason(trace, account, sid, words)
            self.refused[f"{name} {sid}"] = why or words
            if why is None:
                self.unexplained.append(f"{name} {sid}: {words}")

    def lines(self) -> list[str]:
        """Write it as the table that docs/concepts.md has."""
        rows = [
            ("HA recovered the guest: its old run counts as over", self.recovered),
            ("… and could not start it elsewhere: the node is fenced", self.fenced),
            ("the guest ended on a host that is there: proven by that host", self.stopped),
        ]
        head = [
            f"{self.traces} traces; called off before they were: {self.premature} guests",
            "| what happened | guests | seconds until proven: least | median | most |",
            "| --- | --- | --- | --- | --- |",
        ]
        return [*head, *(_row(*row) for row in rows), f"| refused | {len(self.refused)} | – | – | – |"]


def report(names: Sequence[str] = NAMES) -> Report:
    """Watch every trace, and add up."""
    told = Report()
    for name in names:
        told.add(name, *play(name))
    return told


def _row(what: str, seconds: list[int]) -> str:
    if not seconds:
        return f"| {what} | 0 | – | – | – |"
    return f"| {what} | {len(seconds)} | {min(seconds)} | {median(seconds):g} | {max(seconds)} |"


def _good_reason(trace: Trace, account: Account, sid: str, words: str) -> str | None:
    """Return why no proof was right; None: there is no reason known, and somebody should look."""
    if trace.disarmed:
        return "HA was disarmed: no watchdog has reset the host"
    if "running" in words:
        return "it was started again before HA fenced its host"
    missed = {(it, host) for it, host in trace.recovered if it == sid} - account.recovered.keys()
    if missed:
        return None
    host = trace.hosts[trace.guests[sid].conf]
    if not host.there or not trace.quorate:
        return "HA has not recovered it, and its host was not back at the end"
    if trace.now_s - host.booted_s < DONE_S:
        return "its host had just come back at the end"
    return None


def _told(found: Report) -> Iterator[str]:
    yield from found.lines()
    yield ""
    for guest, why in found.refused.items():
        yield f"refused: {guest}: {why}"
    for guest in found.unexplained:
        yield f"UNEXPLAINED: {guest}"


def main() -> int:
    """Print the report. Exit code 1: a guest was called off too early, or nobody knows why it was not."""
    if not NAMES:
        print(f"no traces of HA's simulator in {FOLDER}: name a folder in FENCER_HA_TRACES", file=sys.stderr)  # noqa: T201 - this is a command
        return 1
    found = report()
    for line in _told(found):
        print(line)  # noqa: T201 - this is a command
    return 1 if found.premature or found.unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
