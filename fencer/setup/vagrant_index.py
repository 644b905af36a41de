"""Which Vagrant projects a user has, by Vagrant's own index: `vagrant` itself would take seconds to tell.

What cannot be read counts as absent: all of this only spares a person some typing.

Source: Vagrant, lib/vagrant/machine_index.rb (the file's form), lib/vagrant/environment.rb (its place).
Kubespray, Vagrantfile: by kubeconfig_localhost its inventory's artifacts have an administrator's kubeconfig.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fencer.errors import ConfigError
from fencer.setup.vagrant import PROVIDER, machines_of

_INDEX = "data/machine-index/index"
_ADMINS = "inventory/*/artifacts/admin.conf"


@dataclass(frozen=True, slots=True)
class Project:
    """A project with machines in VirtualBox.

    Attributes:
        folder: With the Vagrantfile.
        records: Vagrant's own folder, mostly ``.vagrant`` in it.
    """

    folder: Path
    records: Path


def projects(environment: Mapping[str, str], home: Path) -> tuple[Project, ...]:
    """Return a user's projects, in the index's order.

    Args:
        environment: Of this process.
        home: The user's.
    """
    try:
        index = Path(environment.get("VAGRANT_HOME") or home / ".vagrant.d") / _INDEX
        if not index.is_file():  # a pipe would never end
            return ()
        machines = json.loads(index.read_text("utf-8"))["machines"]
        found = [
            Project(Path(one["vagrantfile_path"]), Path(one["local_data_path"]))
            for one in machines.values()
            if one["provider"] == PROVIDER and "\0" not in one["vagrantfile_path"] + one["local_data_path"]
        ]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ()
    return tuple(dict.fromkeys(found))


def names(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the UUID in VirtualBox's registry → Vagrant's name, of a user's machines.

    A name in two projects says nothing of either machine: a node of one lab could claim that of the other.

    Args:
        environment: Of this process.
        home: The user's.
    """
    found: dict[str, str] = {}
    for project in projects(environment, home):
        try:
            found |= {machine.uuid: machine.name for machine in machines_of(project.records)}
        except ConfigError:  # it is long gone: the index keeps it
            continue
    often = Counter(found.values())
    return {uuid: name for uuid, name in found.items() if often[name] == 1}


def kubeconfigs(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Find an administrator's kubeconfigs that Kubespray left in a user's projects; arguments as `names`."""
    for project in projects(environment, home):
        yield from sorted(project.folder.glob(_ADMINS))
