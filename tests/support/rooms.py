"""How much of each room the tests run: a plugin that tells after a run with `--cov`.

Only what runs in the tests' own processes counts: `fencer` as a process of its own is beside it.
"""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path

import coverage
import pytest

_FENCER = Path(__file__).parents[2] / "fencer"
_LITTLE = 0.85


class Rooms:
    """Reads what pytest-cov has gathered."""

    def __init__(self) -> None:
        self._shares: dict[str, float] = {}

    @pytest.hookimpl(trylast=True)  # after pytest-cov has put together what the workers gathered
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Count."""
        if hasattr(session.config, "workeroutput"):
            return
        gathered = coverage.Coverage()
        gathered.load()
        self._shares = {room: _share(gathered, files) for room, files in rooms().items()}

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line for each room of which anything was run, the least tested first."""
        terminalreporter.section(f"lines run, by room; LITTLE: under {_LITTLE:.0%}")
        for room, share in sorted(filter(itemgetter(1), self._shares.items()), key=itemgetter(1)):
            terminalreporter.write_line(f"{room:<12} {share:>6.1%}{'  LITTLE' * (share < _LITTLE)}")


def rooms() -> dict[str, list[Path]]:
    """Return the files of each room: of a folder of fencer, or a module that lies beside them."""
    files = sorted(_FENCER.rglob("*.py"))
    names = dict.fromkeys(file.relative_to(_FENCER).parts[0] for file in files)
    return {
        Path(name).stem: [file for file in files if file.relative_to(_FENCER).parts[0] == name]
        for name in names
        if name != "__init__.py"
    }


def _share(gathered: coverage.Coverage, files: list[Path]) -> float:
    lines_count = missing_count = 0
    for file in files:
        _, lines, _, missing, _ = gathered.analysis2(str(file))
        lines_count += len(lines)
        missing_count += len(missing)
    return 1 - missing_count / max(lines_count, 1)


def pytest_configure(config: pytest.Config) -> None:
    """Look only where coverage is gathered."""
    if getattr(config.option, "cov_source", None):
        config.pluginmanager.register(Rooms(), "fencer-rooms")
