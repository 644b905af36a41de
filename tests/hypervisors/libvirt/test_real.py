"""The libvirt adapter over real QEMU guests: what the contract does not ask, and everything that can hang."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from fencer.contract.deadlines import order
from fencer.core.model import Doubt, Doubted, GuestRef, PowerState
from fencer.errors import GuestNotFound, HypervisorError, HypervisorProtocol, HypervisorUnreachable
from fencer.hypervisors.libvirt.client import LibvirtHypervisor
from fencer.hypervisors.libvirt.connection import Connector
from fencer.hypervisors.libvirt.link import LinkKeeper
from fencer.hypervisors.libvirt.settings import LibvirtSettings
from tests.support import wait_until

pytestmark = pytest.mark.libvirt

PATIENCE_S = 30.0
"""How long a call may take before it counts as hanging: far more than any needs, SIGKILL of QEMU included."""
HANGS_S = 1.0
"""How long to watch a call that is to hang, before going on with what it must not disturb."""

CLOSE_UNDER_CALLS = """
import sys
from threading import Barrier, Thread
from fencer.errors import HypervisorUnreachable
from fencer.hypervisors.libvirt.client import LibvirtHypervisor
from fencer.hypervisors.libvirt.settings import LibvirtSettings

def sweep_on(hypervisor, all_there):
    hypervisor.sweep()
    all_there.wait()
    try:
        while True:
            hypervisor.sweep()
    except HypervisorUnreachable:
        pass

for _ in range(40):
    hypervisor = LibvirtHypervisor(LibvirtSettings("lab", sys.argv[1]))
    all_there = Barrier(5)
    threads = [Thread(target=sweep_on, args=(hypervisor, all_there)) for _ in range(4)]
    for thread in threads:
        thread.start()
    all_there.wait()
    hypervisor.close()
    for thread in threads:
        thread.join()
print("closed")
"""

HANG_TOGETHER = """
import os, sys
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from signal import SIGCONT
from fencer.errors import HypervisorUnreachable
from fencer.hypervisors.libvirt.client import LibvirtHypervisor
from fencer.hypervisors.libvirt.settings import LibvirtSettings
from tests.support.processes import freeze

uri, daemon = sys.argv[1], int(sys.argv[2])
hypervisor = LibvirtHypervisor(LibvirtSettings("lab", uri))
hypervisor.sweep()
freeze(daemon)
with ThreadPoolExecutor() as executor:
    calls = [executor.submit(hypervisor.sweep) for _ in range(3)]
    ended, _ = wait(calls, return_when=FIRST_COMPLETED)
    os.kill(daemon, SIGCONT)
assert {type(call.exception()) for call in ended} == {HypervisorUnreachable}
hypervisor.close()
print("lives")
"""

LEFT_AT_EXIT = """
import atexit, sys, threading
atexit.register(lambda: print([it.name for it in threading.enumerate() if "libvirt" in it.name]))
from fencer.hypervisors.libvirt.client import LibvirtHypervisor
from fencer.hypervisors.libvirt.settings import LibvirtSettings
hypervisor = LibvirtHypervisor(LibvirtSettings("lab", sys.argv[1]))
hypervisor.sweep()
hypervisor.close()
"""


@pytest.fixture
def hypervisor(guest_host):
    hypervisor = LibvirtHypervisor(LibvirtSettings("lab", guest_host.uri))
    yield hypervisor
    hypervisor.close()


@pytest.fixture(autouse=True)
def libvirtd_answers(guest_host):
    """Whatever a test did to libvirtd, the next one finds it well."""
    yield
    guest_host.restore_libvirtd()


@pytest.fixture
def machine(guest_host, libvirtd_answers):
    """A guest that runs."""
    machine = guest_host.define()
    machine.start()
    yield machine
    machine.remove()


@pytest.fixture
def guest(machine):
    return ref(machine)


@pytest.fixture
def threads():
    """Runs calls that may hang; `result` with a timeout tells whether they do."""
    executor = ThreadPoolExecutor(max_workers=8)
    yield executor
    executor.shutdown(wait=False)


@contextmanager
def frozen_libvirtd(host):
    host.freeze_libvirtd()
    try:
        yield
    finally:
        host.restore_libvirtd()


def its_own(readings, guest):
    return next(reading for reading in readings if reading.guest.uuid == guest.uuid)


def ref(machine):
    return GuestRef("lab", machine.uuid, machine.uuid, machine.name)


def reads(hypervisor, guest, state):
    """Wait until a guest reads so, and return that reading.

    One that is gone is not found until the event of its end has come, maybe after the virsh that ended it.
    """

    def reading():
        try:
            evidence = hypervisor.read(guest)
        except GuestNotFound:
            return None
        return evidence if evidence.power_state is state else None

    return wait_until(reading, f"{guest} read as {state}")


# -- what a guest does ------------------------------------------------------------------------------------


def test_a_reboot_inside_is_the_same_run(hypervisor, machine, guest):
    before = hypervisor.read(guest)
    boots = machine.boots
    machine.reset_inside()
    wait_until(lambda: machine.boots > boots, "boot of the guest")
    after = hypervisor.read(guest)
    assert after.power_state is PowerState.RUNNING
    assert after.incarnation == before.incarnation


def test_a_guest_that_hangs_reads_running(hypervisor, machine, guest):
    """No hypervisor can know better: whether its node is alive is the node's to say."""
    machine.hang_inside()
    machine.press_power_button()
    assert hypervisor.read(guest).power_state is PowerState.RUNNING


def test_a_deaf_guest_survives_shutdown_and_not_stop(hypervisor, guest_host):
    deaf = guest_host.define(deaf=True)
    deaf.start()
    guest = ref(deaf)
    order(hypervisor.shutdown, guest)
    wait_until(lambda: "P" in deaf.said, "sight of the power button")
    assert hypervisor.read(guest).power_state is PowerState.RUNNING
    order(hypervisor.stop, guest)
    assert hypervisor.read(guest).power_state is PowerState.STOPPED
    deaf.remove()


def test_a_start_that_fails_is_refused_and_leaves_it_stopped(hypervisor, guest_host, machine, guest):
    machine.destroy()
    (guest_host.folder / f"{machine.name}.qcow2").unlink()
    with pytest.raises(HypervisorProtocol, match=machine.name):
        order(hypervisor.start, guest)
    evidence = hypervisor.read(guest)
    assert evidence.power_state is PowerState.STOPPED
    assert "failed" in evidence.raw


# -- old memory -------------------------------------------------------------------------------------------


def test_a_restored_guest_stays_without_cold_start_over_pause_and_resume(hypervisor, machine, guest):
    """After the resume libvirt itself only says "unpaused"."""
    hypervisor.sweep()
    machine.save()
    machine.start()
    machine.pause()
    machine.resume()
    evidence = reads(hypervisor, guest, PowerState.RUNNING)
    assert "unpaused" in evidence.raw
    assert evidence.cold_start is False


@pytest.mark.parametrize("off", [True, False], ids=["while off", "while it runs"])
def test_a_guest_reverted_to_a_snapshot_runs_without_cold_start(hypervisor, machine, guest, off):
    machine.take_snapshot("early")
    if off:
        machine.destroy()
    before = hypervisor.read(guest)
    assert before.cold_start is not False
    machine.revert_to_snapshot("early")
    after = reads(hypervisor, guest, PowerState.RUNNING)
    assert after.cold_start is False
    assert after.incarnation != before.incarnation


def test_a_saved_guest_is_saved_until_its_image_is_gone_even_after_a_restart_of_libvirtd(
    hypervisor, guest_host, machine, guest
):
    """After the restart libvirt itself only says "shut off, unknown"."""
    machine.save()
    guest_host.kill_libvirtd()
    guest_host.start_libvirtd()
    evidence = hypervisor.read(guest)
    assert "reason 0 unknown" in evidence.raw
    assert evidence.power_state is PowerState.SAVED
    assert {told.power_state for told in hypervisor.sweep() if told.guest.uuid == guest.uuid} == {
        PowerState.SAVED
    }
    machine.discard_saved()
    assert hypervisor.read(guest).power_state is PowerState.STOPPED


def test_a_guest_whose_managed_image_is_discarded_is_off(hypervisor, machine, guest):
    """Libvirt itself goes on saying "saved" until it restarts: `saved_guest: discard` led to no fence."""
    machine.save()
    saved = reads(hypervisor, guest, PowerState.SAVED)
    order(hypervisor.discard, guest, saved.incarnation)
    discarded = hypervisor.read(guest)
    assert "reason 5 saved" in discarded.raw
    assert (discarded.power_state, discarded.incarnation) == (PowerState.STOPPED, saved.incarnation)
    assert [it.power_state for it in hypervisor.sweep() if it.guest.uuid == guest.uuid] == [
        PowerState.STOPPED
    ]
    boots = machine.boots
    machine.start()
    assert machine.boots == boots + 1


def test_a_guest_saved_to_a_file_cannot_be_discarded_and_says_why(hypervisor, machine, guest):
    machine.save_to_file()
    saved = reads(hypervisor, guest, PowerState.UNKNOWN)
    assert "virsh restore FILE" in saved.raw
    with pytest.raises(HypervisorProtocol, match=f"{machine.name}.*no managed save image.*virsh save FILE"):
        order(hypervisor.discard, guest, saved.incarnation)
    assert hypervisor.read(guest).power_state is PowerState.UNKNOWN
    machine.restore_from_file()
    restored = reads(hypervisor, guest, PowerState.RUNNING)
    assert restored.cold_start is False


def test_a_guest_restored_paused_from_its_image_ends_as_any_other(hypervisor, machine, guest):
    machine.save()
    noted = reads(hypervisor, guest, PowerState.SAVED)
    machine.start(paused=True)
    paused = reads(hypervisor, guest, PowerState.PAUSED)
    assert Doubt(Doubted.SAVED, noted.guest, noted.witness, by="agent", since_utc="").lifted_by(paused)
    order(hypervisor.stop, guest, paused.incarnation)
    reads(hypervisor, guest, PowerState.STOPPED)


def test_one_restored_paused_from_a_file_does_not(hypervisor, machine, guest):
    """The file is still there, and its disk unchanged: another restore goes on from it."""
    machine.save_to_file()
    noted = reads(hypervisor, guest, PowerState.UNKNOWN)
    machine.restore_from_file(paused=True)
    paused = reads(hypervisor, guest, PowerState.PAUSED)
    assert not Doubt(Doubted.FILED, noted.guest, noted.witness, by="agent", since_utc="").lifted_by(paused)
    machine.destroy()
    assert reads(hypervisor, guest, PowerState.UNKNOWN).filed


def test_a_guest_that_hibernated_is_not_off(hypervisor, machine, guest):
    """Its kernel would continue from its disk; libvirt only says that it powered itself off."""
    ran = reads(hypervisor, guest, PowerState.RUNNING)
    machine.hibernate_inside()
    off = reads(hypervisor, guest, PowerState.UNKNOWN)
    assert (off.hibernated, off.settled, off.incarnation != ran.incarnation) == (True, False, True)
    assert "shut off (state 5, reason 1 shutdown), after it hibernated" in off.raw
    noted = Doubt(Doubted.HIBERNATED, off.guest, off.witness, by="agent", since_utc="")
    machine.start()
    back = reads(hypervisor, guest, PowerState.RUNNING)
    assert noted.lifted_by(back)
    assert (back.cold_start, back.hibernated) == (None, True)
    wait_until(lambda: not hypervisor.read(guest).hibernated, "enough readings of its run")
    machine.destroy()
    reads(hypervisor, guest, PowerState.STOPPED)


def test_nor_if_it_is_started_and_destroyed_before_anything_reads_it(hypervisor, machine, guest):
    """Its kernel may not have come up: it would still continue from its disk."""
    reads(hypervisor, guest, PowerState.RUNNING)
    machine.hibernate_inside()
    wait_until(machine.is_off, "end of the guest")
    machine.start()
    machine.destroy()
    assert reads(hypervisor, guest, PowerState.UNKNOWN).hibernated


def test_one_that_libvirt_forgets_is_not_off_either(hypervisor, machine, guest):
    reads(hypervisor, guest, PowerState.RUNNING)
    machine.undefine()
    machine.hibernate_inside()
    gone = reads(hypervisor, guest, PowerState.UNKNOWN)
    assert (gone.hibernated, gone.end_recorded) == (True, False)


def test_one_that_hibernates_while_nothing_is_subscribed_reads_off(hypervisor, guest_host, machine, guest):
    """docs/safety.md names it: libvirt keeps no record of that event."""
    reads(hypervisor, guest, PowerState.RUNNING)
    hypervisor.close()
    machine.hibernate_inside()
    wait_until(lambda: machine.pid is None, "end of the guest")
    later = LibvirtHypervisor(LibvirtSettings("lab", guest_host.uri))
    assert reads(later, guest, PowerState.STOPPED).hibernated is False
    later.close()


def test_a_guest_that_libvirt_would_forget_is_fleeting(hypervisor, machine, guest):
    assert not reads(hypervisor, guest, PowerState.RUNNING).fleeting
    machine.undefine()
    assert reads(hypervisor, guest, PowerState.RUNNING).fleeting


def read_meanwhile(threads, look, work):
    """Read on and on while something is done; return all that was read."""
    done = threads.submit(work)
    readings = []
    while not done.done():
        readings.append(look())
    done.result()
    return readings


@pytest.mark.parametrize("call", ["read", "sweep"])
def test_a_guest_is_never_read_as_saved_to_a_file_while_its_image_is_made(
    hypervisor, machine, guest, threads, call
):
    """Image and state are two questions; what was noted then kept it from ever being discarded."""
    look = {"read": lambda: hypervisor.read(guest), "sweep": lambda: its_own(hypervisor.sweep(), guest)}[call]
    for _ in range(8):  # every other one was read so
        assert not [seen for seen in read_meanwhile(threads, look, machine.save) if seen.filed]
        reads(hypervisor, guest, PowerState.SAVED)
        machine.start()


def test_a_start_from_an_image_that_is_read_amid_it_uses_it_up(hypervisor, machine, guest, threads):
    """It was stopped as any paused guest, and then refused for good."""
    machine.save()
    reads(hypervisor, guest, PowerState.SAVED)
    seen = read_meanwhile(threads, lambda: hypervisor.read(guest), lambda: machine.start(paused=True))
    assert PowerState.STOPPING in {it.power_state for it in seen}
    assert not reads(hypervisor, guest, PowerState.PAUSED).filed
    machine.destroy()
    reads(hypervisor, guest, PowerState.STOPPED)


def test_one_restored_from_a_file_that_was_not_read_saved_is_told(hypervisor, machine, guest):
    """It was stopped as any paused guest, and then refused: its memory is in the file still."""
    hypervisor.read(guest)
    machine.save_to_file()
    machine.restore_from_file(paused=True)
    assert reads(hypervisor, guest, PowerState.PAUSED).filed
    machine.destroy()
    assert reads(hypervisor, guest, PowerState.UNKNOWN).filed


def test_an_image_seen_before_says_nothing_of_a_file_that_was_saved_since(hypervisor, machine, guest):
    machine.save()
    reads(hypervisor, guest, PowerState.SAVED)
    machine.start()
    machine.save_to_file()
    saved = reads(hypervisor, guest, PowerState.UNKNOWN)
    assert "virsh save FILE" in saved.raw


def test_an_image_that_lay_beside_a_run_is_not_discarded(hypervisor, machine, guest):
    """The run's memory is in the file; the image is of the run before, and says nothing of this one's end."""
    machine.save()
    reads(hypervisor, guest, PowerState.SAVED)
    machine.start_beside_its_image()
    reads(hypervisor, guest, PowerState.RUNNING)
    machine.save_to_file()
    saved = reads(hypervisor, guest, PowerState.UNKNOWN)
    assert saved.filed
    with pytest.raises(HypervisorProtocol, match=f"{machine.name}.*lay there while it ran.*virsh save FILE"):
        order(hypervisor.discard, guest, saved.incarnation)
    machine.discard_saved()
    assert hypervisor.read(guest).filed


@pytest.mark.parametrize("agent", ["the same agent", "another agent"])
def test_a_file_that_libvirtd_has_forgotten_is_still_doubted_by_the_nodes_note(
    hypervisor, guest_host, machine, guest, agent
):
    """What core keeps on the Node has to fit what is read after libvirtd, and maybe the agent, restarted."""
    machine.save_to_file()
    saved = reads(hypervisor, guest, PowerState.UNKNOWN)
    noted = Doubt(Doubted.FILED, saved.guest, saved.witness, by="agent", since_utc="2026-01-01T00:00:00Z")
    guest_host.kill_libvirtd()
    guest_host.start_libvirtd()
    if agent == "another agent":
        hypervisor.close()
        hypervisor = LibvirtHypervisor(LibvirtSettings("lab", guest_host.uri))
    forgotten = reads(hypervisor, guest, PowerState.STOPPED)
    assert "reason 0 unknown" in forgotten.raw
    assert noted.means(forgotten)
    machine.restore_from_file()
    assert noted.lifted_by(reads(hypervisor, guest, PowerState.RUNNING))
    hypervisor.close()


# -- guests that are gone ---------------------------------------------------------------------------------


def test_a_guest_undefined_while_it_runs_runs_on_and_is_absent_on_record_at_its_end(
    hypervisor, machine, guest
):
    machine.undefine()
    assert hypervisor.read(guest).power_state is PowerState.RUNNING
    machine.destroy()
    absent = reads(hypervisor, guest, PowerState.ABSENT)
    assert absent.end_recorded
    assert "destroyed" in absent.raw


def test_a_guest_whose_qemu_is_killed_after_it_was_undefined_is_absent_on_record(hypervisor, machine, guest):
    hypervisor.sweep()
    machine.undefine()
    machine.kill()
    wait_until(lambda: machine.power() is None, "end of the domain")
    assert reads(hypervisor, guest, PowerState.ABSENT).end_recorded


def test_an_end_that_nobody_watched_is_not_on_record(hypervisor, machine, guest):
    """The endpoint is asked for the first time when the guest is gone already."""
    machine.destroy()
    machine.undefine()
    with pytest.raises(GuestNotFound, match=machine.uuid):
        hypervisor.read(guest)


def test_a_record_does_not_outlive_its_subscription(hypervisor, guest_host, machine, guest):
    """While the connection was down the guest may have been started and moved away."""
    machine.destroy()
    before = reads(hypervisor, guest, PowerState.STOPPED)
    guest_host.kill_libvirtd()
    guest_host.start_libvirtd()
    assert reads(hypervisor, guest, PowerState.STOPPED).incarnation != before.incarnation
    guest_host.kill_libvirtd()
    guest_host.start_libvirtd()
    machine.undefine()
    with pytest.raises(GuestNotFound):
        hypervisor.read(guest)


def test_a_saved_guest_that_is_deleted_has_no_end_on_record(hypervisor, machine, guest):
    hypervisor.sweep()
    machine.save()
    reads(hypervisor, guest, PowerState.SAVED)
    machine.undefine()
    with pytest.raises(GuestNotFound):
        hypervisor.read(guest)


# -- libvirtd goes away -----------------------------------------------------------------------------------


def test_running_guests_keep_their_incarnation_over_a_restart_of_libvirtd(
    hypervisor, guest_host, machine, guest
):
    before = hypervisor.read(guest)
    guest_host.kill_libvirtd()
    with pytest.raises(HypervisorUnreachable):
        hypervisor.read(guest)
    guest_host.start_libvirtd()
    after = hypervisor.read(guest)
    assert (after.power_state, after.incarnation) == (PowerState.RUNNING, before.incarnation)


def test_the_loss_of_the_connection_wakes(hypervisor, guest_host, guest):
    woken = threading.Event()
    hypervisor.subscribe(woken.set)
    hypervisor.sweep()
    guest_host.kill_libvirtd()
    assert woken.wait(PATIENCE_S)
    guest_host.start_libvirtd()


def test_lost_connections_are_given_back(hypervisor, guest_host, guest):
    def restart_and_read():
        guest_host.kill_libvirtd()
        guest_host.start_libvirtd()
        hypervisor.read(guest)
        hypervisor.describe()  # opens one with full rights besides

    restart_and_read()
    before_count = open_files_count()
    for _ in range(3):
        restart_and_read()
    wait_until(lambda: open_files_count() <= before_count, f"return to {before_count} open files")


def test_many_threads_survive_restarts_of_libvirtd(hypervisor, guest_host, guest, threads):
    over = threading.Event()

    def sweep_on():
        answers = set()
        while not over.is_set():
            try:
                answers |= {told.power_state for told in hypervisor.sweep() if told.guest.uuid == guest.uuid}
            except HypervisorUnreachable as error:
                answers.add(type(error))
        return answers

    sweeping = [threads.submit(sweep_on) for _ in range(6)]
    for _ in range(4):
        guest_host.kill_libvirtd()
        guest_host.start_libvirtd()
    over.set()
    seen = set().union(*(answers.result(PATIENCE_S) for answers in sweeping))
    assert seen == {PowerState.RUNNING, HypervisorUnreachable}
    assert hypervisor.read(guest).power_state is PowerState.RUNNING


def test_stop_right_after_a_restart_of_libvirtd_kills_even_where_it_raises(
    hypervisor, guest_host, machine, guest
):
    """Libvirt may end the guest itself while it finds it again, and then call it not running."""
    guest_host.kill_libvirtd()
    guest_host.start_libvirtd()
    with suppress(HypervisorProtocol):
        order(hypervisor.stop, guest)
    assert reads(hypervisor, guest, PowerState.STOPPED).settled
    assert machine.pid is None


def test_no_connection_is_closed_under_a_call(guest_host, guest):
    """Libvirt would touch freed memory, which it tells on stderr where it does not crash."""
    command = [sys.executable, "-c", CLOSE_UNDER_CALLS, guest_host.uri]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "closed\n", "")


def test_no_thread_is_in_libvirt_any_more_when_the_interpreter_goes(guest_host, guest):
    """What calls back into it then, crashes it: seen as a SIGSEGV after `fencer watch` was told to stop."""
    command = [sys.executable, "-c", LEFT_AT_EXIT, guest_host.uri]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


# -- libvirtd hangs ---------------------------------------------------------------------------------------


def test_a_call_ends_by_keepalive_when_libvirtd_hangs(hypervisor, guest_host, guest, threads):
    hypervisor.read(guest)
    with frozen_libvirtd(guest_host):
        hanging = threads.submit(hypervisor.read, guest)
        with pytest.raises(HypervisorUnreachable, match="keepalive"):
            hanging.result(PATIENCE_S)
    assert hypervisor.read(guest).power_state is PowerState.RUNNING


def test_calls_that_hang_together_do_not_crash_when_libvirtd_goes_on(guest_host, guest):
    """Seen as a SIGSEGV of `fencer watch`: keepalive had ended one call, the others waited on."""
    command = [sys.executable, "-c", HANG_TOGETHER, guest_host.uri, str(guest_host.daemon_pid)]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    guest_host.restore_libvirtd()
    assert (done.returncode, done.stdout, done.stderr) == (0, "lives\n", "")


def test_a_call_that_hangs_is_left_behind_with_its_connection(hypervisor, guest_host):
    """The next one waits for its turn for a while, then has a connection of its own, as all after it."""
    hypervisor.sweep()
    before_count = open_files_count()
    hypervisor.close()
    keeper = LinkKeeper(Connector(LibvirtSettings("lab", guest_host.uri)))
    with keeper.link() as left:
        with keeper.link() as fresh:
            assert fresh is not left
        with keeper.link() as later:
            assert later is fresh
        assert left.connection.isAlive(), "closed under a call"
    keeper.close()
    wait_until(lambda: open_files_count() <= before_count, f"return to {before_count} open files")


def test_opening_that_hangs_neither_ends_nor_stands_in_the_way(hypervisor, guest_host, guest, threads):
    with frozen_libvirtd(guest_host):
        hanging = [threads.submit(hypervisor.read, guest) for _ in range(3)]
        with pytest.raises(TimeoutError):
            hanging[0].result(HANGS_S)
        guest_host.kill_libvirtd()
    fresh = threads.submit(hypervisor.read, guest)
    assert fresh.result(PATIENCE_S).power_state is PowerState.RUNNING
    for late in hanging:
        assert isinstance(late.exception(PATIENCE_S), HypervisorUnreachable | None)


def test_openings_that_come_back_late_share_one_connection(hypervisor, guest_host, guest, threads):
    hypervisor.read(guest)
    before_count = open_files_count()
    hypervisor.close()
    late = LibvirtHypervisor(LibvirtSettings("lab", guest_host.uri))
    with frozen_libvirtd(guest_host):
        hanging = [threads.submit(late.read, guest) for _ in range(4)]
        with pytest.raises(TimeoutError):
            hanging[0].result(HANGS_S)
    for answer in hanging:
        try:
            assert answer.result(PATIENCE_S).power_state is PowerState.RUNNING
        except HypervisorUnreachable:
            continue
    assert late.read(guest).power_state is PowerState.RUNNING
    wait_until(lambda: open_files_count() <= before_count, f"return to {before_count} open files")
    late.close()


def test_an_opening_that_comes_back_after_closing_is_given_back(hypervisor, guest_host, guest, threads):
    hypervisor.read(guest)
    with_one_count = open_files_count()
    hypervisor.close()
    late = LibvirtHypervisor(LibvirtSettings("lab", guest_host.uri))
    with frozen_libvirtd(guest_host):
        hanging = threads.submit(late.read, guest)
        with pytest.raises(TimeoutError):
            hanging.result(HANGS_S)
        late.close()
    with pytest.raises(HypervisorUnreachable):
        hanging.result(PATIENCE_S)
    # Fewer than with a connection, not as few as before any: the first one opens some for the whole process.
    wait_until(lambda: open_files_count() < with_one_count, f"fewer than {with_one_count} open files")


def test_closing_does_not_wait_for_a_call_that_hangs(hypervisor, guest_host, guest, threads):
    hypervisor.read(guest)
    with frozen_libvirtd(guest_host):
        hanging = threads.submit(hypervisor.read, guest)
        with pytest.raises(TimeoutError):
            hanging.result(HANGS_S)
        threads.submit(hypervisor.close).result(HANGS_S)
        assert not hanging.done()
        with pytest.raises(HypervisorUnreachable):
            hanging.result(PATIENCE_S)


# -- QEMU hangs -------------------------------------------------------------------------------------------


def test_a_frozen_qemu_holds_up_no_reading(hypervisor, guest_host, machine, guest, threads):
    """Not even while another client's call hangs on its monitor."""
    machine.freeze()
    stuck = threads.submit(ask_qemu, guest_host, machine)
    with pytest.raises(TimeoutError):
        stuck.result(HANGS_S)
    read = threads.submit(hypervisor.read, guest).result(PATIENCE_S)
    swept = threads.submit(hypervisor.sweep).result(PATIENCE_S)
    assert not stuck.done()
    assert read.power_state is PowerState.RUNNING
    assert PowerState.RUNNING in {told.power_state for told in swept if told.guest.uuid == guest.uuid}
    machine.thaw()
    stuck.result(PATIENCE_S)


def test_stop_kills_a_frozen_qemu(hypervisor, machine, guest, threads):
    pid = machine.pid
    machine.freeze()
    threads.submit(order, hypervisor.stop, guest).result(PATIENCE_S)
    assert hypervisor.read(guest).power_state is PowerState.STOPPED
    assert not os.path.exists(f"/proc/{pid}")  # noqa: PTH110 - a process, not a file


def test_stop_may_raise_and_have_killed_all_the_same(hypervisor, guest_host, machine, guest, threads):
    """While another call hangs on the monitor, libvirt kills and then says "domain is not running"."""
    machine.freeze()
    stuck = threads.submit(ask_qemu, guest_host, machine)
    with pytest.raises(TimeoutError):
        stuck.result(HANGS_S)
    error = threads.submit(order, hypervisor.stop, guest).exception(PATIENCE_S)
    assert isinstance(error, HypervisorError | None)
    assert reads(hypervisor, guest, PowerState.STOPPED).settled
    assert machine.pid is None


def ask_qemu(host, machine):
    """Have libvirtd ask QEMU's monitor something."""
    return host.virsh("qemu-monitor-command", machine.uuid, "--hmp", "info status", check=False)


def open_files_count():
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are enough
