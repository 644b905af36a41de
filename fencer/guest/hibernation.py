"""Whether this machine can hibernate: write its memory to swap, and power itself off.

A hypervisor reports such a VM as off, and its next start continues with the memory from before.

Source: kernel, Documentation/admin-guide/pm/sleep-states.rst and kernel/power/hibernate.c
(`/sys/power/state`, `disk`, `resume`; `noresume`); systemd-hibernate-resume-generator(8), for the EFI
variable in place of resume=.
"""

from __future__ import annotations

from pathlib import Path

from fencer.guest.system import Run, read_text

TARGETS = ("hibernate.target", "hybrid-sleep.target", "suspend-then-hibernate.target")
"""Units of systemd that write such an image."""
_NO_IMAGE = "/dev/zram"
"""Swap inside memory, which ends with it."""


def ways_to_hibernate(root: Path, run: Run) -> tuple[str, ...]:
    """Return those of `TARGETS` that work here; none: this machine cannot hibernate, or not come back.

    Args:
        root: Of the file system.
        run: Runs commands.
    """
    if not (_kernel_can(root) and _has_swap(root) and _comes_back(root)):
        return ()
    return tuple(unit for unit in TARGETS if _is_loaded(run, unit))


def _kernel_can(root: Path) -> bool:
    power = root / "sys/power"
    return "disk" in read_text(power / "state").split() and "[disabled]" not in read_text(power / "disk")


def _has_swap(root: Path) -> bool:
    used = read_text(root / "proc/swaps").splitlines()[1:]
    return any(line.strip() and not line.startswith(_NO_IMAGE) for line in used)


def _comes_back(root: Path) -> bool:
    words = read_text(root / "proc/cmdline").split()
    named = any(word.startswith("resume=") for word in words)
    found = read_text(root / "sys/power/resume").strip() not in ("", "0:0")
    return "noresume" not in words and (named or found or (root / "sys/firmware/efi").is_dir())


def _is_loaded(run: Run, unit: str) -> bool:
    return run(["systemctl", "show", unit, "--property=LoadState"]).text.strip() == "LoadState=loaded"
