"""What the drain unit is ordered after: by our files, and by systemd's data of all units."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, Iterable, Set

from fencer.guest.errors import Unusable
from fencer.guest.facts import DRAIN_UNIT
from fencer.guest.system import Run, read_text

DROP_IN = f"/etc/systemd/system/{DRAIN_UNIT}.d/order.conf"
"""Names the units that ours cannot know: `install` finds them, or is told."""
_ENDS = frozenset((DRAIN_UNIT, "multi-user.target"))
"""The drain unit, and the target that wants it and so comes after it."""
After = Dict[str, Set[str]]


def names(text: str) -> list[str]:
    """Return the units that a unit's file is ordered after."""
    lines = (line.partition("=") for line in text.splitlines())
    return [unit for key, _, units in lines if key == "After" for unit in units.split()]


def named(root: Path) -> list[str]:
    """Return the units that the drop-in names."""
    return names(read_text(root / DROP_IN.lstrip("/")))


def shown(run: Run, properties: str, units: Iterable[str]) -> list[dict[str, str]]:
    """Return systemd's data of units, by names or patterns; a pattern finds only loaded ones."""
    return _blocks(run(["systemctl", "show", f"--property={properties}", "--", *units]).text)


def _blocks(told: str) -> list[dict[str, str]]:
    blocks = (block.splitlines() for block in told.split("\n\n"))
    return [dict(line.split("=", 1) for line in lines if "=" in line) for lines in blocks if lines]


def after(run: Run, units: Iterable[str]) -> After:
    """Return what units are ordered after, and what those are, and so on, up to our unit or the end.

    The way may go through units of any kind: a mount, a socket.

    Raises:
        Unusable: systemd does not tell.
    """
    found: After = {}
    asked, todo = set(_ENDS), set(units) - _ENDS
    while todo:
        ran = run(["systemctl", "show", "--property=Id,After", "--", *sorted(todo)])
        if ran.code != 0:
            raise Unusable(f"what {', '.join(sorted(todo))} are ordered after is not known: {ran.error}")
        told = {said.get("Id", ""): set(said.get("After", "").split()) for said in _blocks(ran.text)}
        found.update(told)
        asked |= todo
        todo = set().union(*told.values()) - asked
    return found


def comes_after_ours(order: After, unit: str) -> bool:
    """Whether a unit is started after the drain unit, or will be, once multi-user.target wants that.

    A cycle is no order: systemd leaves out one of the jobs. Source: systemd.unit(5), `After=`;
    src/core/transaction.c, transaction_verify_order().
    """
    seen, todo = set(), [unit]
    while todo:
        name = todo.pop()
        if name in _ENDS:
            return True
        if name not in seen:
            seen.add(name)
            todo += order.get(name, ())
    return False
