"""Which of logind's configuration files sets something, in the order in which systemd reads them.

The main file comes first, then all drop-ins of all folders together, sorted by file name alone; if two have
the same name, the one in the earlier folder hides the other. So `/etc/…/99-kubelet.conf` loses against
`/usr/lib/…/unattended-upgrades-logind-maxdelay.conf`: folders do not count, names do.

Source: logind.conf(5); kubernetes#102818 (Ubuntu's and Debian's unattended-upgrades against the kubelet).
"""

from __future__ import annotations

from pathlib import Path

from fencer.guest.facts import Setting
from fencer.guest.system import read_text

_FOLDERS = ("etc/systemd", "run/systemd", "usr/local/lib/systemd", "usr/lib/systemd", "lib/systemd")


def settings(root: Path, key: str) -> tuple[Setting, ...]:
    """Return all settings of a key in section `[Login]`; the last one wins."""
    files = [path for path in _everywhere(root, "logind.conf") if path.exists()][:1]
    drop_ins: dict[str, Path] = {}
    for folder in _everywhere(root, "logind.conf.d"):
        for path in folder.glob("*.conf"):
            drop_ins.setdefault(path.name, path)
    files += [drop_ins[name] for name in sorted(drop_ins)]
    return tuple(
        Setting(f"/{path.relative_to(root)}", value)
        for path in files
        for value in _values(read_text(path), key)
    )


def _everywhere(root: Path, name: str) -> list[Path]:
    return [root / folder / name for folder in _FOLDERS]


def _values(text: str, key: str) -> list[str]:
    section, found = "", []
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif section == "Login" and not line.startswith(("#", ";")) and "=" in line:
            name, value = (part.strip() for part in line.split("=", 1))
            found += [value] if name == key else []
    return found
