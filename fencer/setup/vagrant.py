"""From a Vagrant project to the `nodes:` of the configuration: which machine each node is.

Vagrant keeps, for each machine of a project and each provider, the provider's own id in a file: for
VirtualBox the machine's UUID in the registry. A node has its machine's name, as in Kubespray's labs.

Source: Vagrant, lib/vagrant/machine.rb and environment.rb (``.vagrant/machines/NAME/PROVIDER/id``);
``vagrant global-status --machine-readable`` as printed by 2.2 to 2.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fencer.core.identity import canonical
from fencer.core.text import printable
from fencer.errors import ConfigError

PROVIDER = "virtualbox"
_STATE_FOLDER = ".vagrant"
_MAX_ID_BYTES = 128
_TEXT = re.compile(r"[a-z](?=.*[0-9-]).*")


@dataclass(frozen=True, slots=True)
class VagrantMachine:
    """A machine that Vagrant made.

    Attributes:
        name: Its name in the Vagrantfile.
        uuid: Its UUID in VirtualBox's registry, lower case.
        project: The project's folder.
    """

    name: str
    uuid: str
    project: Path


def machines_of(project: Path) -> tuple[VagrantMachine, ...]:
    """Read which VirtualBox machines a project has, in the order of their names.

    Args:
        project: The folder with the Vagrantfile, or Vagrant's own folder in it.

    Raises:
        ConfigError: it is no project, has none, or a record cannot be read.
    """
    folder = project / "machines"
    if not folder.is_dir():
        folder = project / _STATE_FOLDER / "machines"
    shown = printable(str(project))
    try:
        providers = sorted(entry for machine in folder.iterdir() for entry in machine.iterdir())
        records = [entry / "id" for entry in providers if entry.name == PROVIDER and (entry / "id").exists()]
    except FileNotFoundError as error:
        raise ConfigError(
            f"{shown}: no Vagrant project, or `vagrant up` never ran in it: no {_STATE_FOLDER}/machines. "
            "Name the folder with the Vagrantfile; where VAGRANT_DOTFILE_PATH is set, name that one"
        ) from error
    except OSError as error:
        raise ConfigError(f"{printable(str(error.filename))}: cannot be read: {error.strerror}") from error
    if not records:
        others = sorted({entry.name for entry in providers if (entry / "id").exists()} - {PROVIDER})
        seen = f"its machines are of {printable(', '.join(others))}" if others else "it has none that exist"
        raise ConfigError(f"{shown}: no VirtualBox machine: {seen}. `vagrant up` makes them")
    return tuple(VagrantMachine(record.parts[-3], _uuid(record), project) for record in records)


def machines_of_all(projects: Iterable[Path], skipped: Callable[[str], None]) -> tuple[VagrantMachine, ...]:
    """Read the machines of many projects; Vagrant's global status also names those that are long gone.

    Args:
        projects: Their folders.
        skipped: Called with the reason if a project is left out.

    Raises:
        ConfigError: none is left.
    """
    found: list[VagrantMachine] = []
    for project in projects:
        try:
            found += machines_of(project)
        except ConfigError as error:
            skipped(str(error))
    if not found:
        raise ConfigError("none of the projects has VirtualBox machines")
    return tuple(found)


def projects_in(global_status: str) -> tuple[Path, ...]:
    """Read from Vagrant's global status the folders of all projects with VirtualBox machines.

    Args:
        global_status: What ``vagrant global-status --machine-readable`` printed.

    Raises:
        ConfigError: it is something else, or there is none.
    """
    facts = list(_facts(global_status))
    if not any(kind == "metadata" for kind, _ in facts):
        raise ConfigError(
            "no output of `vagrant global-status --machine-readable`: it has no line with metadata. "
            "Vagrant before 1.9 does not print it; name the project's folder instead"
        )
    homes: dict[Path, None] = {}
    provider = ""
    for kind, value in facts:
        if kind == "provider-name":
            provider = value
        elif kind == "machine-home" and provider == PROVIDER:
            homes[Path(value)] = None
    if not homes:
        raise ConfigError("Vagrant's global status names no VirtualBox machine. Is it from this user?")
    return tuple(homes)


def nodes_section(machines: Iterable[VagrantMachine], endpoint: str) -> str:
    """Write the `nodes:` of the configuration.

    Args:
        machines: The machines.
        endpoint: The hypervisor's name in the configuration.

    Raises:
        ConfigError: a name cannot be a node's or a hypervisor's, or two machines have one name.
    """
    from fencer.config.texts import is_endpoint_name, is_node_name  # noqa: PLC0415 - pydantic is heavy

    if not is_endpoint_name(endpoint):
        raise ConfigError(
            f"{printable(endpoint)!r} cannot be a hypervisor's name: take lower-case letters, digits, dashes"
        )
    lines: dict[str, str] = {}
    homes: dict[str, Path] = {}
    for machine in machines:
        name = machine.name
        if not is_node_name(name):
            raise ConfigError(
                f"Vagrant's machine {printable(name)!r} has a name that no node can have. Write its line by "
                f"hand: `NODE: {endpoint}/{machine.uuid}`; `kubectl get nodes` lists the nodes"
            )
        if name in homes:
            raise ConfigError(
                f"two machines are called {name}: in {printable(str(homes[name]))} and in "
                f"{printable(str(machine.project))}. Name the project that is the cluster"
            )
        homes[name] = machine.project
        lines[name] = f"  {_key(name)}: {endpoint}/{machine.uuid}"
    return "\n".join(["nodes:", *lines.values(), ""])


def _key(name: str) -> str:
    """Write a node's name so that YAML reads it as text: not `on`, not `12`."""
    return name if _TEXT.fullmatch(name) else f'"{name}"'


def _uuid(record: Path) -> str:
    try:
        with record.open("rb") as file:
            text = file.read(_MAX_ID_BYTES).decode("ascii", "replace").strip()
    except OSError as error:
        raise ConfigError(f"{printable(str(record))}: cannot be read: {error.strerror}") from error
    uuid = canonical(text)
    if not uuid:
        raise ConfigError(
            f"{printable(str(record))}: {printable(text)!r} is no UUID. `VBoxManage list vms` names them"
        )
    return uuid


def _facts(global_status: str) -> Iterator[tuple[str, str]]:
    """Split the lines ``TIMESTAMP,TARGET,TYPE,DATA``. Commas in data are escaped."""
    for line in global_status.splitlines():
        parts = line.split(",", 3)
        if len(parts) == 4 and parts[0].isdigit():  # noqa: PLR2004 - as many as there are
            yield parts[2], parts[3].replace("%!(VAGRANT_COMMA)", ",")
