"""QEMU and libvirtd that hang or die in the middle of a power-off: only what is read afterwards counts."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from signal import SIGTERM
from typing import Any

import pytest

from tests.e2e.lab import Lab, stays
from tests.e2e.operator import Operator
from tests.support import wait_until

pytestmark = pytest.mark.usefixtures("sound")

WATCHED_S = 3.0
"""How long a refusal must last."""


@pytest.fixture
def background() -> Iterator[ThreadPoolExecutor]:
    """Runs a command while the test does other things."""
    with ThreadPoolExecutor(1) as executor:
        yield executor


def test_a_frozen_qemu_is_fenced_once_it_is_killed_whatever_libvirtd_does_meanwhile(
    lab: Lab, operator: Operator, afterwards: ExitStack, background: ThreadPoolExecutor
) -> None:
    """It reads running, so it is refused. By hand it is stopped first; libvirtd hangs in that moment."""
    config = operator.configure()
    with operator.watching(config):
        name = lab.busiest()
        lab.wait_settled()
        guest, began, writes = lab.nodes[name].guest, len(operator.journal(name)), len(operator.writes())
        afterwards.callback(lab.bring_back, name)
        afterwards.callback(guest.thaw)
        afterwards.callback(lab.host.thaw_libvirtd)
        guest.freeze()
        wait_until(lambda: "refuse/guest_running" in operator.story(name)[began:], "refusal")
        stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
        assert len(operator.writes()) == writes

        pid = guest.pid
        command = ("fence", name, "--stop-guest", "--yes", "-c", str(config))
        fencing = background.submit(operator.run, *command)
        wait_until(lambda: is_to_end(pid), "power-off on its way")
        lab.host.freeze_libvirtd()
        stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
        assert not fencing.done()
        lab.host.thaw_libvirtd()
        wait_until(fencing.done, "end of the command")
        done = fencing.result()
        assert done.returncode == 0, done
        assert guest.pid is None
        assert lab.is_fenced(name)
        lab.wait_elsewhere(name)
        lab.see_back(name)


def test_a_power_off_during_which_libvirtd_dies_proves_nothing(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """The agent has asked for it, and libvirtd is gone: the guest may run, or be off, or end in a minute."""
    policy: dict[str, Any] = {"unresponsive_guest": "stop", "unresponsive_after_s": 60.0}
    with operator.watching(operator.configure(**policy)):
        name = lab.busiest()
        guest, began = lab.nodes[name].guest, len(operator.journal(name))
        afterwards.callback(lab.bring_back, name)
        afterwards.callback(lab.host.restore_libvirtd)
        afterwards.callback(guest.thaw)
        guest.freeze()
        pid = guest.pid
        wait_until(lambda: is_to_end(pid), "power-off on its way")
        lab.host.kill_libvirtd()
        stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
        lab.host.start_libvirtd()
        assert guest.pid == pid
        guest.thaw()  # and the SIGTERM that was waiting ends it
        wait_until(lambda: lab.is_fenced(name), f"fence of {name}")
        assert guest.pid is None
        assert "fence/proven_off" in operator.story(name)[began:]
        lab.wait_elsewhere(name)
        lab.see_back(name)


def is_to_end(pid: int | None) -> bool:
    """Whether a stopped process was told to end, and will hear it when it goes on."""
    status = Path(f"/proc/{pid}/status").read_text()
    pending = re.findall(r"^(?:SigPnd|ShdPnd):\s*([0-9a-f]+)$", status, re.MULTILINE)
    return any(int(mask, 16) >> (SIGTERM - 1) & 1 for mask in pending)
