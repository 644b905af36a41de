"""One private libvirtd for all tests of the libvirt adapter that need real guests."""

from collections.abc import Iterator

import pytest

from tests.hypervisors.proxmox.ha_trace import traces
from tests.hypervisors.vbox_recordings import FOLDER
from tests.support.guests import GuestHost, leave_out_early, libvirt_binding, running_guest_host
from tests.support.pve.data import recordings


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave out what cannot run here, in few lines."""
    leave_out_early(session.items)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say that tables have no rows here: pytest itself tells of an empty table as of one test."""
    folders = (recordings(), traces(), FOLDER)
    if absent := [str(folder) for folder in folders if not folder.is_dir()]:
        terminalreporter.write_line(
            f"LEFT OUT: about 1,000 tests on recordings of real hypervisors: no {', no '.join(absent)}"
        )


@pytest.fixture(scope="session")
def guest_host() -> Iterator[GuestHost]:
    """A libvirtd without guests; a test that takes it away gives it back."""
    libvirt_binding()
    with running_guest_host() as host:
        yield host
