"""docs/libvirt.md holds its tables as they are made from the recordings and from the adapter.

`FENCER_WRITE_DOCS=1` writes them. Each situation that the tests' guests can be brought into is made here, and
the libvirt of this machine has to answer as is recorded.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from fencer.contract.deadlines import order
from fencer.core.model import GuestRef
from fencer.errors import GuestNotFound
from fencer.hypervisors.libvirt.client import LibvirtHypervisor
from fencer.hypervisors.libvirt.connection import Connector
from fencer.hypervisors.libvirt.settings import LibvirtSettings
from tests.hypervisors.libvirt.page import Watcher, numbers, recordings, situations
from tests.hypervisors.libvirt.rows import GROUPS
from tests.support import LateError, wait_until
from tests.support.guests import libvirt_binding, running_guest_host
from tests.support.pages import DOCS, hold

PAGE = DOCS / "libvirt.md"
ROWS = [row for rows in GROUPS.values() for row in rows]


def test_the_page_holds_the_situations_as_they_are_read():
    hold(PAGE, "situations", situations())


def test_the_page_holds_the_numbers_as_the_code_has_them():
    hold(PAGE, "numbers", numbers())


def test_each_recording_is_of_one_row():
    assert sorted(row.recording for row in ROWS) == sorted(recordings())


# -- on real guests -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def elsewhere():
    libvirt_binding()
    with running_guest_host() as host:
        yield host


class RealStage:
    """A guest, the agent that watches it, and what libvirt itself has to answer at each look.

    Args:
        host: Of the guest.
        elsewhere: Another one.
        steps: As recorded.
    """

    def __init__(self, host, elsewhere, steps) -> None:
        self.host, self.elsewhere = host, elsewhere
        self.machine = host.define()
        self.machine.start()
        self.guest = GuestRef("lab", self.machine.uuid, self.machine.uuid, self.machine.name)
        self.hypervisor = None
        self.expected = [answer(step) for step in steps if "state" in step or "error" in step]
        self._watch(host)

    def _watch(self, host) -> None:
        self.close()
        self._settings = LibvirtSettings("lab", host.uri)
        self.hypervisor = LibvirtHypervisor(self._settings)
        self.hypervisor.sweep()

    def look(self) -> None:
        expected = self.expected.pop(0)
        with suppress(LateError):
            wait_until(lambda: self._ask() == expected, f"{expected} of {self.machine.name}")
        assert self._ask() == expected
        self.read()

    def read(self):
        try:
            return self.hypervisor.read(self.guest)
        except GuestNotFound:
            return None

    def watch_elsewhere(self) -> None:
        self._watch(self.elsewhere)

    def discard(self) -> None:
        order(self.hypervisor.discard, self.guest, self.hypervisor.read(self.guest).incarnation)

    def restart_libvirtd(self) -> None:
        if self.host.daemon_lives:
            self.host.kill_libvirtd()
        self.host.start_libvirtd()

    def restart_agent(self) -> None:
        self._watch(self.host)

    def close(self) -> None:
        if self.hypervisor is not None:
            self.hypervisor.close()

    def clean_up(self) -> None:
        self.close()
        self.host.restore_libvirtd()
        self.machine.remove()
        for verb in ("destroy", "undefine"):
            self.elsewhere.virsh(verb, self.machine.uuid, check=False)

    def _ask(self):
        """Ask libvirt itself, over another connection than the adapter's."""
        connector = Connector(self._settings)
        libvirt, connection = connector.libvirt, connector.open(read_only=True)
        try:
            domain = connection.lookupByUUIDString(self.machine.uuid)
            [(_, stats)] = connection.domainListGetStats([domain], libvirt.VIR_DOMAIN_STATS_STATE)
            return stats["state.state"], stats["state.reason"], bool(domain.hasManagedSaveImage())
        except libvirt.libvirtError as error:
            return error.get_error_code(), error.get_error_domain()
        finally:
            connector.retire(connection)


def answer(step):
    """Return what libvirt answers at a look."""
    return tuple(step["error"]) if "error" in step else (step["state"], step["reason"], step["image"])


def facts(evidence):
    """Return what counts of a reading."""
    if evidence is None:
        return None
    return (
        evidence.power_state,
        evidence.settled,
        evidence.cold_start,
        evidence.away,
        evidence.filed,
        evidence.hibernated,
        evidence.io_error,
        evidence.end_recorded,
    )


@pytest.mark.libvirt
@pytest.mark.parametrize("row", [row for row in ROWS if row.make], ids=lambda row: row.recording)
def test_a_real_guest_in_that_situation_is_read_as_the_page_says(guest_host, elsewhere, row):
    steps = recordings()[row.recording]
    told = Watcher().told(steps)
    stage = RealStage(guest_host, elsewhere, steps)
    try:
        row.make(stage)
        stage.look()
        assert stage.expected == []
        # Events come by another thread than answers, maybe after them.
        wait_until(lambda: facts(stage.read()) == facts(told.evidence), f"{told.reads} of {row.recording}")
    finally:
        stage.clean_up()
