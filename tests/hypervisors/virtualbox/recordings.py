"""What a real VBoxManage answered, command by command: `FENCER_VBOX_RECORDINGS`, or beside the project."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BESIDE = Path(__file__).parents[4] / "shared" / "data" / "virtualbox"
FOLDER = Path(os.environ.get("FENCER_VBOX_RECORDINGS") or BESIDE)
MISSING = f"no recordings of VBoxManage in {FOLDER}: name their folder in FENCER_VBOX_RECORDINGS"
_ANSWERED = re.compile(r"rc=(\d+)(?: time=\S+)?")


@dataclass(frozen=True)
class Recorded:
    """One command and its answer."""

    words: str
    code: int
    stdout: str
    stderr: str


def recorded() -> Iterator[Recorded]:
    """Yield every command that was recorded with its exit code, in the order of the files."""
    yield from _commands(recorded_text().split("\n"))


def recorded_text() -> str:
    """Return all files as one text; decoded as the adapter does, for not all of it need be UTF-8."""
    files = sorted(FOLDER.glob("*.txt"))
    return "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)


def _commands(lines: list[str]) -> Iterator[Recorded]:
    for number, line in enumerate(lines):
        answered = _ANSWERED.fullmatch(line)
        if answered is None:
            continue
        before = lines[number - 1] if number else ""
        words = before.removeprefix("$ VBoxManage ") if before.startswith("$ VBoxManage ") else ""
        said: dict[str, list[str]] = {"out": [], "err": []}
        for following in lines[number + 1 :]:
            stream, bar, text = following.partition("|")
            if not bar or stream not in said:
                break
            said[stream].append(text.removeprefix(" "))
        stdout, stderr = ("".join(f"{text}\n" for text in said[stream]) for stream in ("out", "err"))
        yield Recorded(words, int(answered[1]), stdout, stderr)
