"""What `fencer init` is about to do, and the configuration that it writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from fencer.cli.approve import vm_rows
from fencer.cli.asked import Person
from fencer.cli.init_kubernetes import Admin
from fencer.cli.init_nodes import THESE, Matched, approved_as_typed, guests_of_nodes
from fencer.cli.init_wish import Chosen, beside
from fencer.cli.render import clean, say
from fencer.cli.wire import Wiring
from fencer.config.settings import Config
from fencer.errors import HypervisorUnreachable
from fencer.preflight.agent import unit_of
from fencer.setup.configs import write_new
from fencer.setup.files import require_writable
from fencer.setup.starting_config import Start, written


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be set up.

    Attributes:
        path: The configuration.
        hypervisor: As it was found.
        admin: Leads into the cluster.
        own: fencer's own kubeconfig.
        new: The configuration is to be written.
    """

    path: Path
    hypervisor: Chosen
    admin: Admin
    own: Path
    new: bool

    @property
    def files(self) -> tuple[Path, ...]:
        """Return what is written beside the configuration."""
        return (self.own, *self.hypervisor.files)

    @property
    def start(self) -> Start:
        """Return what a new configuration begins with."""
        servers, unit = self.admin.servers[1:], unit_of(self.path)
        return Start(self.own, servers, self.hypervisor.name, self.hypervisor.keys, unit=unit)


def own_file(path: Path, config: Config | None) -> Path:
    """Return where fencer's own kubeconfig is, or is to be."""
    return config.kubernetes.kubeconfig if config else beside(path, "kubeconfig")


def refuse_what_would_fail(wiring: Wiring, plan: Plan) -> None:
    """Say before anything is made what a configuration would refuse, and where nothing can be written.

    Raises:
        ConfigError: there is something.
    """
    if plan.new:
        with _draft(plan.path, written(plan.start)) as draft:
            wiring.load(draft)
    for folder in dict.fromkeys(file.parent for file in (plan.path, *plan.files)):
        require_writable(folder)


def configured(wiring: Wiring, person: Person, plan: Plan) -> Matched:
    """Look at nodes and guests, and write the configuration with what was found.

    Raises:
        HypervisorUnreachable: the guests that fencer may power are not known.
    """
    with _draft(plan.path, written(plan.start)) as draft:
        matched = guests_of_nodes(wiring, draft, plan.hypervisor.names)
    hypervisor = plan.hypervisor
    if matched.silent and hypervisor.powers and not (hypervisor.pool or hypervisor.remarks):
        raise HypervisorUnreachable(
            f"{'; '.join(matched.silent.values())}. Its guests are not known, so no configuration is "
            "written. What was made stays: run the same again once it answers"
        )
    if hypervisor.powers:
        by_pool = hypervisor.pool is not None
        matched = replace(matched, powered=frozenset(matched.single)) if by_pool else _asked(person, matched)
    uuids = {
        guest.uuid: f"{node}: {guest.name}"
        for node, guest in matched.single.items()
        if node in matched.powered
    }
    text = written(replace(plan.start, **hypervisor.power(uuids)))
    with _draft(plan.path, text) as draft:
        wiring.load(draft)  # what others have named is in it
    write_new(plan.path, text)
    say(f"{clean(plan.path)}: written")
    return matched


def _asked(person: Person, matched: Matched) -> Matched:
    """Ask over which VMs fencer is to have power: a node chooses its name and the UUID it reports (C3)."""
    agreed = approved_as_typed(person, matched.single)
    alike = {node: vm for node, vm in matched.guests.items() if node not in agreed}
    if alike and person.answers:
        for line in vm_rows(alike):
            say(line)
    if alike and person.confirms(THESE):
        agreed |= set(alike)
    for node, guest in matched.claimed.items():
        claim = f"{node} reports that it is the VM {guest.name} (UUID {guest.uuid})"
        if node not in agreed and person.confirms(f"{claim}. May fencer stop and start it?"):
            agreed.add(node)
    return replace(matched, powered=frozenset(agreed))


@contextmanager
def _draft(path: Path, text: str) -> Iterator[Path]:
    with TemporaryDirectory(prefix="fencer-") as folder:
        draft = Path(folder) / path.name
        draft.write_text(text, encoding="utf-8")
        yield draft
