"""How much of each room the tests run: a plugin that tells after a run with `--cov`, and holds core to all.

Only what runs in the tests' own processes counts: `fencer` as a process of its own is beside it.
"""

from __future__ import annotations

import io
from operator import itemgetter
from pathlib import Path

import coverage
import pytest

_FENCER = Path(__file__).parents[2] / "fencer"
_ALL_OF = "core"
"""The room that holds every rule: each line and each branch of it is run, or a run of everything fails."""
_QUICK = "not (e2e or libvirt or slow)"
"""What `./dev quick` asks for; that runs all of it, too, and counting costs it the least."""
_LITTLE = 0.85


class Rooms:
    """Reads what pytest-cov has gathered."""

    def __init__(self) -> None:
        self._shares: dict[str, float] = {}
        self._missing = ""

    @pytest.hookimpl(trylast=True)  # after pytest-cov has put together what the workers gathered
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Count, and fail a run of everything in which a rule was not run."""
        if hasattr(session.config, "workeroutput"):
            return
        gathered = coverage.Coverage()
        gathered.load()
        self._shares = {room: _share(gathered, files) for room, files in rooms().items()}
        told = io.StringIO()
        percent = gathered.report(
            include=f"{_FENCER}/{_ALL_OF}/*", show_missing=True, skip_covered=True, file=told
        )
        if _everything(session.config) and percent < 100:
            self._missing = told.getvalue()
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line for each room of which anything was run, the least tested first."""
        terminalreporter.section(f"lines run, by room; LITTLE: under {_LITTLE:.0%}")
        for room, share in sorted(filter(itemgetter(1), self._shares.items()), key=itemgetter(1)):
            terminalreporter.write_line(f"{room:<12} {share:>6.1%}{'  LITTLE' * (share < _LITTLE)}")
        if self._missing:
            terminalreporter.write_line(f"FAILED: not all of fencer/{_ALL_OF} was run:\n{self._missing}")


def _everything(config: pytest.Config) -> bool:
    """Whether no part was asked for, in whatever way, but the quick tests."""
    marked = config.option.markexpr not in ("", _QUICK)
    part = config.option.keyword or marked or getattr(config.option, "lf", False)
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not part


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
