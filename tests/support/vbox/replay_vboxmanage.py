"""Answers in the place of VBoxManage, or of its host's programs, what was recorded.

    replay_vboxmanage.py RECORDING VBoxManage showvminfo UUID --machinereadable
    replay_vboxmanage.py RECORDING ps -e …

RECORDING is a file with one recording. A command that did not answer then does not answer now.
"""

import json
import signal
import sys
from pathlib import Path

NOT_RECORDED = 97


def main(recording: str, program: str, *words: str) -> int:
    """Answer one command; return its exit code."""
    asked = list(words) if program == "VBoxManage" else [program, *words]
    answers = json.loads(Path(recording).read_text(encoding="utf-8"))["answers"]
    answer = next((answer for answer in answers if answer["words"] == asked), None)
    if answer is None:
        sys.stderr.write(f"not recorded: {' '.join(asked)}\n")
        return NOT_RECORDED
    if answer["code"] is None:
        signal.pause()
    sys.stdout.write(answer["stdout"])
    sys.stderr.write(answer["stderr"])
    return int(answer["code"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
