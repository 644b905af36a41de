"""The tests' own guests: they must end with the tests, whatever ends those."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import wait_until
from tests.support.guests import Power, running_guest_host

pytestmark = pytest.mark.libvirt

# Everything is frozen, the most stubborn way to be left behind, when the process kills itself.
KILLED = """
import os, signal
from tests.support.guests import GuestHost
host = GuestHost().__enter__()
guest = host.define()
guest.start()
print(host.folder, host.daemon_pid, guest.pid, flush=True)
guest.freeze()
host.freeze_libvirtd()
os.kill(os.getpid(), signal.SIGKILL)
"""


# `guest_host` is asked for everywhere, because it leaves a test out where there is nothing to run.


def ended(pid):
    return not Path(f"/proc/{pid}").exists()


def test_nothing_survives_a_test_process_that_is_killed(guest_host):
    root = Path(__file__).parents[2]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=root, stdout=subprocess.PIPE, text=True, check=False
    )
    folder, *pids = killed.stdout.split()
    assert len(pids) == 2
    wait_until(lambda: all(map(ended, pids)), "end of libvirtd and QEMU")
    wait_until(lambda: not Path(folder).exists(), "end of their folder")


def test_leaving_the_host_ends_its_guests(guest_host):
    with running_guest_host() as host:
        machine = host.define()
        machine.start()
        pid, folder = machine.pid, host.folder
    assert ended(pid)
    assert not folder.exists()


def test_beats_and_boots_tell_what_the_guest_does(guest_host):
    """The end-to-end tests let kubelets live by them."""
    machine = guest_host.define()
    machine.start()
    assert machine.boots == 1
    machine.pause()
    beats = machine.beats
    machine.resume()
    machine.wait_for_beat(beats)
    machine.save()
    machine.start()
    assert machine.boots == 1
    machine.reset()
    wait_until(lambda: machine.boots == 2, "second boot")
    machine.destroy()
    machine.start()
    assert machine.boots == 3
    machine.remove()


def test_a_guest_is_saved_while_its_memory_is_on_disk_whatever_libvirt_says(guest_host):
    """By it the end-to-end tests call a guest a hazard that could still write a volume of another one."""
    machine = guest_host.define()
    machine.start()
    assert not machine.saved
    machine.save()
    assert machine.saved
    guest_host.kill_libvirtd()
    guest_host.start_libvirtd()
    assert (machine.power(), machine.saved) == (Power(5, 0), True)
    machine.start()
    machine.save()
    machine.discard_saved()
    assert (machine.power(), machine.saved) == (Power(5, 5), False)
    machine.start()
    machine.save_to_file()
    assert machine.saved
    machine.restore_from_file()
    machine.destroy()
    assert not machine.saved
    machine.remove()
