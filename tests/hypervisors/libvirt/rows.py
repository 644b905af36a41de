"""The situations of docs/libvirt.md: which recording shows each, and how it is made of a real guest.

What libvirt answers is in the recordings, what is made of it in the adapter; only the words are here.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tests.support import wait_until
from tests.support.guest import Guest
from tests.support.guests import GuestHost


class Stage(Protocol):
    """Where a situation is made, and an agent watches.

    Attributes:
        machine: The guest. It runs.
        host: It was defined there.
        elsewhere: Another host, to migrate to.
    """

    machine: Guest
    host: GuestHost
    elsewhere: GuestHost

    def look(self) -> None:
        """Have the agent look at the guest; after all is done it looks once more by itself."""

    def watch_elsewhere(self) -> None:
        """Have the agent watch the other host instead, from now on."""

    def discard(self) -> None:
        """Have fencer discard the saved memory."""

    def restart_libvirtd(self) -> None:
        """Kill libvirtd, and start it."""

    def restart_agent(self) -> None:
        """Have the agent forget all that it has seen, but for what stands on the Node."""


@dataclass(frozen=True, slots=True)
class Situation:
    """One row.

    Attributes:
        words: What happened.
        recording: Its name among the recordings.
        make: Makes it of a guest that runs. None: it takes what the tests' guests have not, and was only
            recorded.
    """

    words: str
    recording: str
    make: Callable[[Stage], None] | None = None


def nothing(_stage: Stage) -> None:
    """Leave it as it is."""


def of_guest(*deeds: Callable[[Guest], None]) -> Callable[[Stage], None]:
    """Do something to the guest alone."""

    def make(stage: Stage) -> None:
        for deed in deeds:
            deed(stage.machine)

    return make


def reboots(stage: Stage) -> None:
    boots = stage.machine.boots
    stage.machine.reset_inside()
    wait_until(lambda: stage.machine.boots > boots, "boot of the guest")


def restored(stage: Stage) -> None:
    stage.machine.save()
    stage.machine.start()


def restored_and_resumed(stage: Stage) -> None:
    restored(stage)
    stage.look()
    stage.machine.pause()
    stage.machine.resume()


def hibernated_and_started(stage: Stage) -> None:
    stage.machine.hibernate_inside()
    stage.look()
    stage.machine.start()


def hibernated_and_destroyed(stage: Stage) -> None:
    stage.machine.hibernate_inside()
    wait_until(stage.machine.is_off, "end of the guest")
    stage.machine.start()
    stage.machine.destroy()


def undefined_and_hibernated(stage: Stage) -> None:
    stage.machine.undefine()
    stage.machine.hibernate_inside()
    wait_until(lambda: stage.machine.power() is None, "end of the guest")


def reverted(stage: Stage) -> None:
    stage.machine.take_snapshot("early")
    stage.machine.revert_to_snapshot("early")


def migrated_here(stage: Stage) -> None:
    stage.watch_elsewhere()
    stage.machine.migrate(stage.elsewhere)


def libvirtd_restarted(stage: Stage) -> None:
    stage.look()
    stage.restart_libvirtd()


def started_paused(stage: Stage) -> None:
    stage.machine.destroy()
    stage.machine.start(paused=True)


def stopped_by_monitor(stage: Stage) -> None:
    stage.host.virsh("qemu-monitor-command", stage.machine.uuid, "--hmp", "stop")


def reverted_paused(stage: Stage) -> None:
    stage.machine.take_snapshot("early")
    stage.host.virsh("snapshot-revert", stage.machine.uuid, "early", "--paused")


def restored_paused(stage: Stage) -> None:
    stage.machine.save_to_file()
    stage.machine.restore_from_file(paused=True)


def ended_by_sigterm(stage: Stage) -> None:
    pid = stage.machine.pid
    assert pid is not None
    os.kill(pid, signal.SIGTERM)


def start_failed(stage: Stage) -> None:
    stage.machine.destroy()
    disk = stage.host.folder / f"{stage.machine.name}.qcow2"
    disk.rename(f"{disk}.away")
    stage.host.virsh("start", stage.machine.uuid, check=False)


def redefined(stage: Stage) -> None:
    description = stage.host.virsh("dumpxml", "--inactive", stage.machine.uuid)
    stage.machine.destroy()
    stage.machine.undefine()
    stage.host.add(stage.machine, description)


def reverted_to_off(stage: Stage) -> None:
    stage.machine.destroy()
    stage.machine.take_snapshot("off")
    stage.machine.start()
    stage.machine.revert_to_snapshot("off")


def saved_while_paused(stage: Stage) -> None:
    stage.machine.pause()
    stage.machine.save()


def forgotten(*deeds: Callable[[Guest], None]) -> Callable[[Stage], None]:
    """Do something to the guest, have an agent look, and restart libvirtd."""

    def make(stage: Stage) -> None:
        of_guest(*deeds)(stage)
        stage.look()
        stage.restart_libvirtd()

    return make


def discarded_by_fencer(stage: Stage) -> None:
    stage.machine.save()
    stage.look()
    stage.discard()


def discarded_by_a_person(stage: Stage) -> None:
    stage.machine.save()
    stage.look()
    stage.machine.discard_saved()


def discarded_and_agent_restarted(stage: Stage) -> None:
    discarded_by_fencer(stage)
    stage.look()
    stage.restart_agent()


def discarded_and_both_restarted(stage: Stage) -> None:
    discarded_and_agent_restarted(stage)
    stage.look()
    stage.restart_libvirtd()


def beside_its_image(stage: Stage) -> None:
    stage.machine.save()
    stage.look()
    stage.machine.start_beside_its_image()


def beside_its_image_and_saved(stage: Stage) -> None:
    beside_its_image(stage)
    stage.look()
    stage.machine.save_to_file()


def restore_failed(stage: Stage) -> None:
    stage.machine.save_to_file()
    stage.look()
    stage.machine.fail_to_restore()


def migrated_away(stage: Stage) -> None:
    stage.machine.migrate(stage.elsewhere)


def migrated_away_and_forgotten(stage: Stage) -> None:
    migrated_away(stage)
    stage.look()
    stage.restart_libvirtd()


def migrated_away_and_undefined(stage: Stage) -> None:
    migrated_away(stage)
    stage.look()
    stage.machine.undefine()


def return_failed(stage: Stage) -> None:
    migrated_away(stage)
    stage.look()
    stage.machine.fail_to_return(stage.elsewhere)


def return_failed_and_agent_restarted(stage: Stage) -> None:
    return_failed(stage)
    stage.look()
    stage.restart_agent()


def return_failed_undefined(stage: Stage) -> None:
    migrated_away_and_undefined(stage)
    stage.machine.fail_to_return(stage.elsewhere)


def undefined_unseen(stage: Stage) -> None:
    stage.machine.destroy()
    stage.machine.undefine()
    stage.restart_agent()


def undefined_in_its_run(stage: Stage) -> None:
    stage.machine.undefine()
    stage.look()
    stage.machine.destroy()


def saved_and_undefined(stage: Stage) -> None:
    stage.machine.save()
    stage.look()
    stage.machine.undefine()


def killed_meanwhile(stage: Stage) -> None:
    stage.host.kill_libvirtd()
    stage.machine.kill()
    stage.restart_libvirtd()


GROUPS: dict[str, tuple[Situation, ...]] = {
    "It runs": (
        Situation("it was started", "started", nothing),
        Situation("it reboots, or is reset", "rebooted", reboots),
        Situation("it hangs inside", "hung", of_guest(Guest.hang_inside)),
        Situation("QEMU is stopped by a signal (SIGSTOP)", "frozen", of_guest(Guest.freeze)),
        Situation("`virsh suspend`, then `virsh resume`", "resumed", of_guest(Guest.pause, Guest.resume)),
        Situation("`virsh managedsave`, then `virsh start`", "restored", restored),
        Situation("… then `virsh suspend`, `virsh resume`", "restored-resumed", restored_and_resumed),
        Situation("it hibernated (S4), then `virsh start`", "hibernated-started", hibernated_and_started),
        Situation("`virsh snapshot-revert` to a snapshot with memory", "reverted", reverted),
        Situation("it came here by a live migration", "migrated-here", migrated_here),
        Situation("`virsh undefine` while it runs", "undefined-running", of_guest(Guest.undefine)),
        Situation("it panicked, with `on_crash` set to `restart`", "panicked-restart"),
        Situation("it was asleep (S3), and was woken up", "woken"),
        Situation("libvirtd was restarted", "restarted", libvirtd_restarted),
    ),
    "It is paused": (
        Situation("`virsh suspend`", "suspended", of_guest(Guest.pause)),
        Situation("… and libvirtd was restarted", "suspended-restarted", forgotten(Guest.pause)),
        Situation("`virsh start --paused`", "started-paused", started_paused),
        Situation("QEMU's monitor was told `stop`", "monitor-stop", stopped_by_monitor),
        Situation("its disk is full or fails (`error_policy='stop'`)", "io-error"),
        Situation("it panicked, with `on_crash` set to `preserve`", "panicked-preserve"),
        Situation("it sleeps (S3)", "asleep"),
        Situation("`virsh snapshot-revert --paused`", "reverted-paused", reverted_paused),
        Situation("`virsh restore --paused`", "restored-paused", restored_paused),
    ),
    "It is off": (
        Situation("it is shutting down, for 0.2 s to 2 s", "stopping"),
        Situation("it powered itself off", "powered-off", of_guest(Guest.power_off_inside)),
        Situation("`virsh shutdown`", "shut-down", of_guest(Guest.press_power_button)),
        Situation("QEMU was ended by SIGTERM", "terminated", ended_by_sigterm),
        Situation("`virsh destroy`", "destroyed", of_guest(Guest.destroy)),
        Situation("QEMU was killed (SIGKILL), or died", "killed", of_guest(Guest.kill)),
        Situation("… while libvirtd was away", "killed-meanwhile", killed_meanwhile),
        Situation("it panicked, with `on_crash` set to `destroy`", "panicked-destroy"),
        Situation("its start failed", "start-failed", start_failed),
        Situation("it was defined, and not started since", "defined", redefined),
        Situation("`virsh snapshot-revert` to a snapshot of it off", "reverted-to-off", reverted_to_off),
        Situation(
            "it was destroyed, and libvirtd restarted", "destroyed-restarted", forgotten(Guest.destroy)
        ),
    ),
    "Its memory is on disk": (
        Situation("`virsh managedsave`", "managed", of_guest(Guest.save)),
        Situation("`virsh managedsave` of a paused one", "managed-paused", saved_while_paused),
        Situation("… and libvirtd was restarted", "managed-restarted", forgotten(Guest.save)),
        Situation("`virsh managedsave`, discarded by fencer", "discarded", discarded_by_fencer),
        Situation("… and the agent was restarted", "discarded-agent", discarded_and_agent_restarted),
        Situation("… and libvirtd, too", "discarded-both", discarded_and_both_restarted),
        Situation("`virsh managedsave-remove` by a person", "removed", discarded_by_a_person),
        Situation("`virsh managedsave`, then `virsh create` of its XML", "beside-image", beside_its_image),
        Situation("… then `virsh save FILE`", "beside-image-saved", beside_its_image_and_saved),
        Situation("`virsh save FILE`", "saved-file", of_guest(Guest.save_to_file)),
        Situation("… and libvirtd was restarted", "saved-file-restarted", forgotten(Guest.save_to_file)),
        Situation(
            "`virsh save FILE`, then a `virsh restore FILE` that failed", "restore-failed", restore_failed
        ),
        Situation("it hibernated (S4)", "hibernated", of_guest(Guest.hibernate_inside)),
        Situation("… and libvirtd was restarted", "hibernated-restarted", forgotten(Guest.hibernate_inside)),
        Situation(
            "it hibernated, and was started and destroyed before the agent looked",
            "hibernated-destroyed",
            hibernated_and_destroyed,
        ),
    ),
    "It went elsewhere, or is gone": (
        Situation("a live migration took it away", "migrated-away", migrated_away),
        Situation("… and libvirtd was restarted", "migrated-restarted", migrated_away_and_forgotten),
        Situation("… and it was undefined here", "migrated-undefined", migrated_away_and_undefined),
        Situation("a migration back failed: it runs on there", "return-failed", return_failed),
        Situation("… and the agent was restarted", "return-failed-agent", return_failed_and_agent_restarted),
        Situation("… of one that was undefined here", "return-failed-undefined", return_failed_undefined),
        Situation(
            "`virsh undefine` of one that was seen off", "undefined", of_guest(Guest.destroy, Guest.undefine)
        ),
        Situation("`virsh undefine` while it ran, then its end", "undefined-end", undefined_in_its_run),
        Situation("`virsh undefine` before the agent looked", "undefined-unseen", undefined_unseen),
        Situation("`virsh undefine --managed-save` of a saved one", "undefined-saved", saved_and_undefined),
        Situation(
            "`virsh undefine` while it ran, then it hibernated",
            "undefined-hibernated",
            undefined_and_hibernated,
        ),
    ),
    "Silences and refusals": (
        Situation("libvirtd is not there", "silent"),
        Situation("libvirtd has ended since fencer connected", "ended"),
        Situation("libvirtd hangs, for 7 s", "hanging"),
        Situation("QEMU's monitor hangs, and holds up an order for 30 s", "held"),
        Situation("an order to one that has ended just then", "not-running"),
        Situation("an order without the right to it", "read-only"),
        Situation("a start without its disk", "no-disk"),
    ),
}
