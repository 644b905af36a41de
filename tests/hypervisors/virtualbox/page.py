"""Makes the tables of docs/virtualbox.md: of each situation what was answered, and what is read from it.

The adapter itself reads, process by process: a program in VBoxManage's place answers what was recorded.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

from fencer.core.model import Evidence, GuestRef, PowerState
from fencer.errors import GuestNotFound, HypervisorDenied, HypervisorError, HypervisorUnreachable
from fencer.hypervisors.virtualbox.client import VirtualBoxHypervisor
from fencer.hypervisors.virtualbox.settings import VirtualBoxSettings
from tests.hypervisors.virtualbox.rows import GROUPS, ORDERS, Situation
from tests.support.vbox import REPLAY

RECORDINGS: Final = Path(__file__).parents[1] / "recordings" / "virtualbox-7.2.22.jsonl"
HEADER: Final = (
    "| situation | what VirtualBox and its host say | fencer reads | so |",
    "| --- | --- | --- | --- |",
)

_NAME: Final = "k8s-2"
_MACHINE: Final = re.compile(r'^(\w+)="(.*)"$', re.MULTILINE)
_OPENED: Final = re.compile(r"Log opened (\S+?)Z$", re.MULTILINE)
_CHANGED: Final = re.compile(r"Machine state changed to '(\w+)'$", re.MULTILINE)
_RESULT: Final = re.compile(r"[Cc]ode (\w+) \((0x[0-9a-fA-F]+)\)")
_PATIENT_S, _IMPATIENT_S = 60.0, 0.5
_MEANS: Final[dict[type[HypervisorError], str]] = {
    GuestNotFound: "it is not there",
    HypervisorUnreachable: "no answer",
    HypervisorDenied: "a refusal",
    HypervisorError: "an error",
}
"""What is made of an error; of any other kind, what is made of the last."""


def recorded() -> dict[str, dict[str, Any]]:
    """Return all recordings by their names."""
    lines = RECORDINGS.read_text(encoding="utf-8").splitlines()
    return {recording["name"]: recording for recording in map(json.loads, lines)}


def situations(folder: Path) -> str:
    """Make the tables of all situations, group by group.

    Args:
        folder: Where the recording that answers is put.
    """
    recordings, lines = recorded(), list[str]()
    for group, rows in GROUPS.items():
        lines += [f"### {group}", "", *HEADER]
        for row in rows:
            said = raw(recordings[row.recordings[-1]])
            lines.append(f"| {row.words} | {said} | {reads(row, recordings, folder)} | {row.so} |")
        lines.append("")
    return "\n".join(lines)


def orders() -> str:
    """Make the table of what VirtualBox answers to orders."""
    recordings = recorded()
    lines = ["| order | VirtualBox' answer |", "| --- | --- |"]
    for words, name in ORDERS:
        [answer] = recordings[name]["answers"]
        lines.append(f"| {words} | exit code {answer['code']}{_first_words(answer)} |")
    return "\n".join(lines)


def reads(row: Situation, recordings: dict[str, dict[str, Any]], folder: Path) -> str:
    """Have a fresh adapter read a row's recordings one after the other; say what it makes of the last."""
    chosen = [recordings[name] for name in row.recordings]
    if row.rebooted:
        chosen[-1] = _booted_since(chosen[-1])
    hangs = any(answer["code"] is None for answer in chosen[-1]["answers"])
    now, each_s = folder / "now.json", _IMPATIENT_S if hangs else _PATIENT_S
    settings = VirtualBoxSettings(
        "box",
        (sys.executable, "-IS", str(REPLAY), str(now), "VBoxManage"),
        look_s=2 * each_s,
        read_s=each_s,
        again_s=each_s,
    )
    moment = [0.0]
    hypervisor = VirtualBoxHypervisor(settings, lambda: moment[0])
    said = ""
    for recording in chosen:
        now.write_text(json.dumps(recording), encoding="utf-8")
        moment[0] = recording["at"]
        uuid = recording["uuid"]
        try:
            said = _told(hypervisor.read(GuestRef("box", uuid, uuid, _NAME)))
        except HypervisorError as error:
            said = next(words for kind, words in _MEANS.items() if isinstance(error, kind))
    hypervisor.close()
    return said


def raw(recording: dict[str, Any]) -> str:
    """Show what matters of a recording: state, log, processes; or the error instead."""
    shown = _answer(recording, "--machinereadable")
    if shown["code"] is None:
        return f"no answer for {shown['seconds']:.0f} s, {_processes(recording)}"
    if shown["code"]:
        return f"{_result(shown)}, {_processes(recording)}"
    values = dict(_MACHINE.findall(shown["stdout"]))
    return f"`{values['VMState']}`, {_log(recording, values['VMStateChangeTime'])}, {_processes(recording)}"


def _booted_since(recording: dict[str, Any]) -> dict[str, Any]:
    booted = {"stdout": f"btime {recording['at'] + 60:.0f}\n"}
    answers = recording["answers"]
    return {**recording, "answers": [it | (booted if it["words"][0] == "cat" else {}) for it in answers]}


def _answer(recording: dict[str, Any], last_word: str) -> dict[str, Any]:
    answers: list[dict[str, Any]] = recording["answers"]
    return next(answer for answer in answers if last_word in answer["words"])


def _log(recording: dict[str, Any], changed: str) -> str:
    log = _answer(recording, "--log")["stdout"]
    opened = _OPENED.search(log)
    if opened is None:
        return "no log"
    age = "younger" if opened[1] > changed.removesuffix("Z") else "older"
    return f"its log is {age} and ends `{_CHANGED.findall(log)[-1]}`"


def _processes(recording: dict[str, Any]) -> str:
    listed = [line for line in _answer(recording, "ps")["stdout"].splitlines() if "VBoxHeadless" in line]
    if not listed:
        return "no process"
    return (
        "its process" if any(recording["uuid"] in line for line in listed) else "a process that names no UUID"
    )


def _result(answer: dict[str, Any]) -> str:
    found = _RESULT.search(answer["stderr"])
    return f"`{found[1]} ({found[2]})`" if found else f"exit code {answer['code']}"


def _first_words(answer: dict[str, Any]) -> str:
    lines = answer["stderr"].replace(answer["words"][1], "UUID").splitlines()
    return f": `{lines[0].removeprefix('VBoxManage: error: ')}`" if lines and answer["code"] else ""


def _told(evidence: Evidence) -> str:
    if evidence.power_state is PowerState.UNKNOWN:
        return "unknown"
    return f"{evidence.power_state.value}{'' if evidence.settled else ', not settled'}"
