"""One private libvirtd for all tests of the libvirt adapter that need real guests."""

from collections.abc import Iterator

import pytest

from tests.support.guests import GuestHost, leave_out_early, libvirt_binding, running_guest_host


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave out what cannot run here, in few lines."""
    leave_out_early(session.items)


@pytest.fixture(scope="session")
def guest_host() -> Iterator[GuestHost]:
    """A libvirtd without guests; a test that takes it away gives it back."""
    libvirt_binding()
    with running_guest_host() as host:
        yield host
