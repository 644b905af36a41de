"""The script's copies on the hosts: lines of shell that look at one, and that put one in place. Pure.

The same line is used here and over ssh, so that people see exactly what is done.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

NAME = "fencer-hook"


@dataclass(frozen=True, slots=True)
class Script:
    """The hookscript, and its place on every host.

    Attributes:
        source: The file that came with this fencer.
        digest: Its SHA-256, in hexadecimal digits.
        folder: The storage's folder, the same on every host.
    """

    source: Path
    digest: str
    folder: Path

    @property
    def file(self) -> Path:
        """Where Proxmox looks for it."""
        return self.folder / "snippets" / NAME

    def look(self) -> str:
        """Return shell that fails, and says why, unless the same script is there and runs.

        Without arguments it does nothing and succeeds, if it may be executed and finds its Python. A
        different script is not run.
        """
        return (
            f"file={shlex.quote(str(self.file))}; "
            'test -e "$file" || { echo is not there; exit 1; }; '
            f'sha256sum < "$file" | grep -q ^{self.digest} || {{ echo is another version; exit 1; }}; '
            '"$file" || { echo cannot be executed; exit 1; }'
        )

    def put(self) -> str:
        """Return shell that puts the script from its stdin in place, if it arrived complete and runs there.

        A guest may be starting at this moment: the name never leads to half a script, or to one that cannot
        be executed (on a file system mounted noexec, or without its Python).
        """
        return (
            f"set -e; cd {shlex.quote(str(self.folder))}; mkdir -p snippets; cd snippets; "
            f'draft=$(mktemp .{NAME}.XXXXXX); trap "rm -f $draft" EXIT; cat > "$draft"; '
            f'sha256sum < "$draft" | grep -q ^{self.digest} || {{ echo did not arrive whole; exit 1; }}; '
            'chmod 0755 "$draft"; "./$draft" || { echo could not be executed there, '
            "or the Python of its first line is missing; exit 1; }; "
            f'mv -f "$draft" {NAME}'
        )

    def look_exposed(self) -> str:
        """Return shell that fails, and names the places, if users other than root can replace the script.

        Anyone who may write a folder may rename what is in it, unless it is sticky. A link's own mode means
        nothing: its owner counts, its folder, and everything on the way to its target. Modes say nothing
        about exports of a network storage, or about access lists.
        """
        return (
            r'see() { find "$1" -maxdepth 0 \( ! -type l -perm /022 ! \( -type d -perm -1000 \) '
            r'-o ! -user 0 ! -user "$(id -u)" \) 2> /dev/null; '
            'if test -L "$1" && test -e "$1"; then next=$(readlink "$1"); '
            'case $next in /*) see "$next";; *) see "$(dirname "$1")/$next";; esac; fi; '
            'test "$1" = / || see "$(dirname "$1")"; }; '
            f"found=$(see {shlex.quote(str(self.file))} | sort -u); "
            'test -z "$found" || { echo "$found"; exit 1; }'
        )

    def reach(self) -> str:
        """Return shell that fails if the storage's folder is missing."""
        return f"cd {shlex.quote(str(self.folder))}"
