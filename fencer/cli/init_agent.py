"""The end of ``fencer init``: files for the agent's own user, the check, the service, and how it is armed."""

from __future__ import annotations

import grp
import os
import pwd
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from fencer.cli.asked import Person
from fencer.cli.check import checked
from fencer.cli.options import DEFAULT_CONFIG
from fencer.cli.render import clean, complain, say, say_file
from fencer.cli.wire import Wiring
from fencer.errors import ConfigError
from fencer.preflight.agent import unit_of
from fencer.setup import systemd
from fencer.setup.machine import run
from fencer.setup.program import own_program, refuse_unreachable
from fencer.setup.surroundings import caller

LIBVIRT = "libvirt"
"""The group that may use libvirt's socket. Source: Debian's libvirt-daemon-system."""
SYSTEMD = Path("/run/systemd/system")
"""Is there where systemd is the init. Source: sd_booted(3)."""


def make_service(person: Person, path: Path) -> Iterator[str]:
    """Make the units, their user and folders, where no package brought them; yield what is left to do.

    Args:
        person: Is asked.
        path: The configuration: only agents of ``/etc/fencer`` are services.
    """
    if unit_of(path) is None or not SYSTEMD.is_dir() or systemd.is_there():
        return
    command = "fencer setup systemd --install"
    if os.geteuid() != 0 or not person.agrees("Make it a service, with a user of its own?"):
        yield f"{command}   makes it a service (as root)"
        return
    try:
        program = own_program()
        refuse_unreachable(program)
    except ConfigError as error:
        yield str(error)
        return
    for line in systemd.install(program):
        say(line)


def give_to_fencer(files: Sequence[Path], *, libvirt: bool) -> Iterator[str]:
    """Let the user that the service runs as read the files, and use libvirt; yield what was done.

    Where root sets it up and there is that user: else whoever types runs the agent, too.

    Raises:
        ConfigError: it could not be done.
    """
    account = service_user()
    if account is None:
        return
    for file in files:
        if _is_ours_to_give(file) and file.stat().st_uid != account.pw_uid:
            try:
                os.chown(file, account.pw_uid, account.pw_gid, follow_symlinks=False)
            except OSError as error:
                raise ConfigError(f"{file}: cannot be given to {systemd.USER}: {error.strerror}") from error
            yield f"{file}: is {systemd.USER}'s now"
    if libvirt and not _is_member(account):
        run("usermod", "-aG", LIBVIRT, systemd.USER)
        yield f"{systemd.USER}: is in the group {LIBVIRT} now"


def _is_ours_to_give(file: Path) -> bool:
    """Whether it is a file in a folder that only root writes: elsewhere another may take its name."""
    folder = file.parent.stat()
    return file.is_file() and not file.is_symlink() and folder.st_uid == 0 and not folder.st_mode & 0o022


def service_user() -> pwd.struct_passwd | None:
    """Return the user that the service runs as, if we may give it something."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(systemd.USER)
    except KeyError:
        return None


def _is_member(account: pwd.struct_passwd) -> bool:
    try:
        group = grp.getgrnam(LIBVIRT)
    except KeyError:  # libvirt is open to others, or is none of Debian's
        return True
    return account.pw_name in group.gr_mem or account.pw_gid == group.gr_gid


def run_check(wiring: Wiring, path: Path) -> bool:
    """Run `fencer check`, as the user that the service runs as; return whether all is well."""
    say()
    if service_user() is None:
        return checked(wiring, path, "table")
    words = ["runuser", "-u", systemd.USER, "--", str(own_program()), "check", *_named(path)]
    say(f"$ {shlex.join(words)}")
    # In a session of its own, and without the terminal: root's shell would read what another user puts there.
    done = subprocess.run(  # noqa: S603 - our own program
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
        errors="replace",
        check=False,
    )
    say_file(done.stdout)
    return done.returncode == 0


def start(person: Person, path: Path, *, fits: bool, armed: bool) -> Iterator[str]:
    """Start the service, if there is one and all is well; yield what else is left to do."""
    unit = unit_of(path)
    if unit is None:
        yield f"fencer watch{''.join(f' {one}' for one in _named(path))}   runs the agent"
        return
    if not systemd.is_there():
        if not SYSTEMD.is_dir():  # else it is named already
            yield f"fencer watch{''.join(f' {one}' for one in _named(path))}   runs the agent"
        return
    if not fits or not SYSTEMD.is_dir() or os.geteuid() != 0:
        yield f"systemctl enable --now {unit}   starts it, once `fencer check` finds nothing that fails"
        return
    if _runs(unit):
        return
    asked = f"Start {unit} now, and with this machine?"
    # What fences is started by somebody who says so.
    agreed = (
        person.confirms(f"{asked} It is armed, and fences")
        if armed
        else person.agrees(f"{asked} It observes, and changes nothing.")
    )
    if not agreed:
        yield f"systemctl enable --now {unit}   starts it"
        return
    done = subprocess.run(["systemctl", "enable", "--now", unit], check=False)  # noqa: S603, S607 - root's own PATH
    if done.returncode:
        complain(f"{unit} did not start: journalctl -u {unit}")
        yield f"systemctl start {unit}   once that is mended"
    else:
        say(f"{unit}: started; `fencer status` shows what it sees, `journalctl -fu {unit}` what it says")


def arming(path: Path) -> str:
    """Return the command that arms an agent, for whoever types, who may be root by sudo alone."""
    unit, sudo = unit_of(path), "sudo " if caller() else ""
    then = f" && {sudo}systemctl reload {unit}" if unit else ""
    return f"{sudo}sed -i 's/^mode: observe/mode: armed/' {shlex.quote(str(path))}{then}"


def _runs(unit: str) -> bool:
    done = subprocess.run(["systemctl", "is-active", "--quiet", unit], check=False)  # noqa: S603, S607 - root's own PATH
    return done.returncode == 0


def _named(path: Path) -> tuple[str, ...]:
    return () if path == DEFAULT_CONFIG else ("-c", clean(path))
