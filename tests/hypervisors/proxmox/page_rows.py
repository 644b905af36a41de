"""The situations of docs/proxmox.md: which recording shows each, and what follows from it.

What the API answered and what is made of it is read from the recording; only the words around it are here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Situation:
    """One row.

    Attributes:
        words: What happened.
        recording: Its file, without ``.json``.
        so: What fencer does for it.
        at_s: In a series: the first answer from then on.
        vmid: In a series of rows: of which guest.
        ha: In a series: what HA's manager says, instead of the row.
    """

    words: str
    recording: str
    so: str
    at_s: float = 0.0
    vmid: int = 0
    ha: bool = False


_CUT_OFF = "refused: the node may only be cut off"
_STOPPED_FIRST = "stopped first, or refused: a resume would write on"
_LOCKED = "not fenced; a stop by a token fails with `VM is locked`"
_WAITS = "waits for what is on its way"
_SO_FAR = "refused (`host_silent`) until HA is done"
_NEXT = "asks the next of `servers:`"
_NOTHING = "nothing is known of its guests, and nothing is done to their nodes"

GROUPS: dict[str, tuple[Situation, ...]] = {
    "A guest on its own host": (
        Situation("it runs", "01-status-current-running", _CUT_OFF),
        Situation("it was asked to shut down, and has not yet", "02-status-during-shutdown", _CUT_OFF),
        Situation("kvm is stopped by a signal (SIGSTOP)", "02-sigstop-status-0", _CUT_OFF),
        Situation("it is off", "01-status-current-stopped", "fenced, if the rest of the proof holds"),
        Situation(
            "kvm was killed, and qmeventd is dead: no hook has told",
            "04-noqmeventd-crash-status",
            "fenced, if the rest of the proof holds",
        ),
        Situation("`qm reboot`, before it", "02-reboot-series", _CUT_OFF),
        Situation(
            "`qm reboot`, for 1.6 s amid it", "02-reboot-series", "waits: the reboot is on record", 0.2
        ),
        Situation("paused by `qm suspend`", "02-status-paused", _STOPPED_FIRST),
        Situation(
            "paused by an error of its storage",
            "09-io-error-status",
            "stopped first, unless storage errors pause several guests",
        ),
        Situation("paused by an error of its processor", "09-internal-error-status", _STOPPED_FIRST),
        Situation("reset while it was paused", "09-io-error-after-reset-status", _WAITS),
        Situation("a template", "02-template-status", "refused by name"),
    ),
    "Locks": (
        Situation("runs, with a backup's lock", "02-lock-backup-running", _LOCKED),
        Situation(
            "off, with a backup's lock",
            "02-lock-backup-stopped",
            "fenced, unless a backup is at work, and it was not read off before",
        ),
        Situation("runs, with a clone's lock", "02-lock-clone-running", _LOCKED),
        Situation("runs, with a restore's lock", "02-lock-create-running", _LOCKED),
        Situation("runs, with a migration's lock", "02-lock-migrate-running", _LOCKED),
        Situation(
            "off, with a migration's lock",
            "02-lock-migrate-stopped",
            "not fenced, for however long: it may run elsewhere",
        ),
        Situation("runs, with a rollback's lock", "02-lock-rollback-running", _LOCKED),
        Situation("runs, with a snapshot's lock", "02-lock-snapshot-running", _LOCKED),
        Situation(
            "off, with a snapshot's lock",
            "02-lock-snapshot-stopped",
            "waits; names `qm unlock` after ten minutes without a task",
        ),
        Situation("runs, with the lock of a hibernated one", "02-lock-suspended-running", _LOCKED),
        Situation(
            "off, with the lock of a hibernated one",
            "02-lock-suspended-stopped",
            "refused: its memory would come back",
        ),
    ),
    "What the cluster repeats": (
        Situation(
            "5 s after kvm was killed",
            "02-kill9-resources",
            "read live at once if it is a node, else as soon as this changes",
            5.0,
        ),
        Situation("8 s after kvm was killed", "02-kill9-resources", "read live at once", 7.5),
        Situation(
            "it was started by HA 5 s ago, and runs",
            "08-dead-node-pve3",
            "only a live reading proves it off",
            148.8,
            206,
        ),
        Situation(
            "its configuration was moved by hand; kvm runs on the old host",
            "05-ghost-resources-series",
            "only a live reading where it ran proves it off",
            33.0,
            100,
        ),
    ),
    "Refusals and silences": (
        Situation("no token", "01-version-noauth", "says how a token is to be typed"),
        Situation("a wrong secret", "03-bad-token-secret", "says how a token is to be typed"),
        Situation("an expired token", "03-expired-token", "asks whether it is expired"),
        Situation("a token without VM.Audit", "03-nonepvetk-status-100", "names the right that is missing"),
        Situation(
            "a token without Sys.Audit", "03-nonepvetk-cluster-status", "names the right that is missing"
        ),
        Situation(
            "a guest that is not there: moved, destroyed, or on its way",
            "01-status-missing-vmid",
            "looks where it is now; that alone is never an end",
        ),
        Situation("pvedaemon of the guest's host is dead", "07-pvedaemon-dead-status", _NOTHING),
        Situation(
            "… and its configuration is asked for, which pveproxy reads",
            "07-pvedaemon-dead-config",
            "still refused: a configuration is no process",
        ),
        Situation("pvedaemon of the guest's host hangs", "07-pvedaemon-frozen-status", _NOTHING),
        Situation(
            "an order for it then", "07-pvedaemon-frozen-stop", "unknown whether it was taken: reads again"
        ),
        Situation("pveproxy of the guest's host is dead", "07-pveproxy-dead-status", _NOTHING),
        Situation("pveproxy of the guest's host hangs", "07-pveproxy-frozen-status", _NOTHING),
        Situation("the host swallows packets", "07-drop-config", _NOTHING),
        Situation("the cluster file system is stopped", "07-pmxcfs-stopped1-status", _NEXT),
        Situation("the cluster file system hangs", "07-pmxcfs-frozen-cluster-status", _NEXT),
        Situation("`/etc/pve` is unmounted", "13-etcpve-unmounted-resources", _NEXT),
    ),
    "The cluster": (
        Situation("two of three hosts are there", "07-base-cluster-status", "believes what it says"),
        Situation("quorum is lost, on the host that is left", "10-noquorum-cluster-status", _NEXT),
        Situation(
            "… of a guest that runs there", "10-noquorum-own-status", "nothing of this server is believed"
        ),
        Situation(
            "… of a guest that was stopped there",
            "10-noquorum-status-after-stop",
            "refused: nothing of this server is believed",
        ),
        Situation("… of a guest on a dead host", "10-noquorum-dead-status", _NOTHING),
        Situation("on the smaller side of a partition", "10-minority-cluster-status", _NEXT),
        Situation("a host that is in no cluster, asked as a member", "01-cluster-status-standalone", _NEXT),
        Situation("a host of which only the folder is left", "05-ghost-status", _NOTHING),
        Situation("… whose name has an address that nobody has", "05-ghost-status-unreachable", _NOTHING),
        Situation("a host died a moment ago", "07-dead-0s-status", _NOTHING),
        Situation(
            "… and corosync counts it out, after 8 s",
            "08-dead-node-pve3",
            "refused (`host_silent`), without a power witness or HA",
            8.0,
            201,
        ),
        Situation(
            "… after 293 s",
            "08-dead-node-pve3",
            "refused (`host_silent`), without a power witness or HA",
            293.0,
            201,
        ),
        Situation("… and it is back", "10-back-201-status", "fenced, if the rest of the proof holds"),
        Situation(
            "its configuration was moved by hand, and it runs on behind a partition",
            "10-partition-moved-status-pve2",
            "refused (`host_changed`): it ran elsewhere, and no record explains the move",
        ),
        Situation("… asked where it runs", "10-partition-moved-status-pve3", _CUT_OFF),
        Situation(
            "… and the partition is healed",
            "10-partition-healed-status-pve2",
            "refused (`host_changed`): it ran elsewhere, and no record explains the move",
        ),
        Situation(
            "… asked where it still runs",
            "10-partition-healed-status-pve3",
            "refused: it is looked for where it is now",
        ),
    ),
    "High availability": (
        Situation("under HA, it runs", "08-ha-status-current-vm", _CUT_OFF),
        Situation("its host died 64 s ago", "08-dead-node-pve3", _SO_FAR, 63.8, 206, ha=True),
        Situation("HA is fencing its host, after 69 s", "08-dead-node-pve3", _SO_FAR, 69.0, 206, ha=True),
        Situation(
            "HA has taken it off its host, after 139 s",
            "08-dead-node-pve3",
            "its old run is over; where it is off now, its node is fenced",
            139.0,
            206,
            ha=True,
        ),
    ),
}
