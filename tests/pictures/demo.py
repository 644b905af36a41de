"""A recording of ``fencer demo``: the real command in a terminal, played in half a minute."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from tests.pictures.terminal import Look, Played, Run, lines, picture, python, typed

COMMAND = ("fencer", "demo")
CODE = "import sys; sys.argv[:] = ['fencer', 'demo', '--instant']; from fencer.cli.main import main; main()"
TITLE = "fencer demo"
ABOUT = (
    "A recording of the command fencer demo: a paused VM, and eight database replicas with a volume each. "
    "With Kubernetes alone, three pods stay stuck for ever. With fencer, the guest is stopped, proven off, "
    "and fenced; every pod is Ready elsewhere about a minute later, and no volume ever has two writers."
)
LONGEST_S = 32.0
"""The whole story."""
SHORTEST_S, RATE = 0.25, 40.0
"""Between two lines; and how many seconds of the story pass in one."""
READ_S = 2.5
"""Before the first event of a chapter, and at most between two lines."""

_CLOCK = re.compile(r"(\d+):(\d\d)")


@cache
def recorded() -> list[list[Run]]:
    """Run it, and return its lines, the prompt before them."""
    prompt = [Run(0, "$", Look("muted", bold=False)), Run(2, " ".join(COMMAND), Look("ink", bold=True))]
    return [prompt, *lines(typed(python(CODE), {"FENCER_DEMO_CALLED_AS": "fencer demo"}))]


def waits_s(told: Sequence[Sequence[Run]]) -> list[float]:
    """Return how long to wait before each line: as the story's clock has it, faster, and never for long."""
    waits: list[float] = []
    clock_s = 0.0
    for number, runs in enumerate(told):
        now_s = _time_s(runs)
        if number == 1:
            waits.append(1.0)  # the command is typed
        elif now_s is None:
            heads = _heads(runs) and not _heads(told[number - 1])
            waits.append(READ_S if heads and number else 0.0)
            clock_s = 0.0 if heads else clock_s
        else:
            waits.append(min(READ_S, max(SHORTEST_S, (now_s - clock_s) / RATE)))
            clock_s = now_s
    scale = min(1.0, LONGEST_S / sum(waits))
    return [round(one * scale, 2) for one in waits]


def _heads(runs: Sequence[Run]) -> bool:
    """Whether a line is bold, and at the left."""
    return bool(runs) and runs[0].look.bold and runs[0].column == 0


def _time_s(runs: Sequence[Run]) -> float | None:
    """Return the time that a line begins with; None: it has none."""
    found = _CLOCK.fullmatch(runs[0].text) if runs else None
    return int(found[1]) * 60 + int(found[2]) if found else None


def draw(*, still: bool = False) -> str:
    """Return the picture that plays it; `still`: the whole story at once."""
    told = recorded()
    return picture(Played(TITLE, ABOUT, told, waits_s(told)), still=still)
