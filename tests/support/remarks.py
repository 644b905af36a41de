"""What the last lines of a run say besides: what was late, and what was left out. A plugin.

Not in the conftest.py of the tests that it is about: with workers, only those look into such files.
"""

from __future__ import annotations

import pytest

from tests.hypervisors.proxmox.ha_trace import traces
from tests.hypervisors.virtualbox.recordings import FOLDER
from tests.support.pve.recordings import recordings


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was late at the first try (the second time it is a fault), and which tables are empty."""
    for report in terminalreporter.stats.get("rerun", ()):
        why = getattr(getattr(report.longrepr, "reprcrash", None), "message", report.longrepr)
        terminalreporter.write_line(f"LATE {report.nodeid}: {why}")
    if absent := [str(folder) for folder in (recordings(), traces(), FOLDER) if not folder.is_dir()]:
        terminalreporter.write_line(
            f"LEFT OUT: about 1,000 tests on recordings of real hypervisors: no {', no '.join(absent)}"
        )
