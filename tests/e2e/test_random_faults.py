"""Random faults on real parts: a node or two fail, something else fails with them, and all comes back.

What no other test thought of. Ten to thirty seconds each, so the gate has few; as many as one likes:
``FENCER_FAULT_SEEDS=1-200 ./dev test tests/e2e/test_random_faults.py -v``. A seed makes the same faults
again; what becomes of them depends on the machine, too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import pytest

from tests.controlplane.binaries import API_SERVER, CONTROLLER_MANAGER
from tests.e2e.kubelet import LabNode
from tests.e2e.lab import WORKERS, Lab, stays
from tests.e2e.operator import Operator
from tests.support import wait_until
from tests.support.amounts import seeds
from tests.support.guests import GuestError

pytestmark = pytest.mark.usefixtures("sound")


def delete(node: LabNode) -> None:
    """``virsh undefine`` while it runs, then ``virsh destroy``."""
    node.guest.undefine()
    node.guest.destroy()


@contextmanager
def between(begin: Callable[[], None], end: Callable[[], None]) -> Iterator[None]:
    """Begin something, and see that it ends."""
    begin()
    try:
        yield
    finally:
        end()


BY_LIBVIRT: Mapping[str, Callable[[LabNode], None]] = {
    "is paused": lambda node: node.guest.pause(),
    "is destroyed": lambda node: node.guest.destroy(),
    "is saved": lambda node: node.guest.save(),
    "is reset": lambda node: node.guest.reset(),
    "is deleted": delete,
}
BY_ITSELF: Mapping[str, Callable[[LabNode], None]] = {
    "loses its QEMU": lambda node: node.guest.kill(),
    "powers itself off": lambda node: node.guest.power_off_inside(),
    "reboots": lambda node: node.guest.reset_inside(),
    "has a frozen QEMU": lambda node: node.guest.freeze(),
    "is cut off": LabNode.nic_off,
    "has its kubelet stopped": LabNode.stop_kubelet,
}
TROUBLES: Mapping[str, Callable[[Lab], AbstractContextManager[None]]] = {
    "nothing else": lambda _lab: nullcontext(),
    "libvirtd hangs": lambda lab: between(lab.host.freeze_libvirtd, lab.host.thaw_libvirtd),
    "libvirtd dies": lambda lab: between(lab.host.kill_libvirtd, lab.host.start_libvirtd),
    "the API server dies": lambda lab: between(
        partial(lab.cluster.stop_component, API_SERVER), partial(lab.cluster.start_component, API_SERVER)
    ),
    "the controllers hang": lambda lab: between(
        partial(lab.cluster.freeze_component, CONTROLLER_MANAGER),
        partial(lab.cluster.thaw_component, CONTROLLER_MANAGER),
    ),
}

POLICIES: Sequence[Mapping[str, Any]] = [
    {},
    {"call_deadline_s": 5.0},
    {"unresponsive_guest": "stop", "unresponsive_after_s": 60.0},
]


@dataclass(frozen=True, slots=True)
class Incident:
    """What goes wrong.

    Attributes:
        victims: What happens to which nodes, in this order.
        trouble: What else fails meanwhile, of `TROUBLES`.
        trouble_first: Whether it does so before the nodes.
        lasts_s: How long everything stays as it is then.
        agent_dies: Whether fencer is killed at the end of that, before anything is mended.
        policy: What its configuration has beside the lab's usual policy.
    """

    victims: tuple[tuple[str, str], ...]
    trouble: str
    trouble_first: bool
    lasts_s: float
    agent_dies: bool
    policy: Mapping[str, Any]

    @classmethod
    def by_chance(cls, chance: Random) -> "Incident":
        """Draw one."""
        trouble, trouble_first = chance.choice([*TROUBLES, "nothing else"]), chance.random() < 0.5
        libvirt_works = not (trouble_first and "libvirtd" in trouble)
        faults = [*BY_ITSELF, *(BY_LIBVIRT if libvirt_works else ())]
        nodes = chance.sample(WORKERS, chance.choice([1, 1, 1, 2]))
        return cls(
            victims=tuple((node, chance.choice(faults)) for node in nodes),
            trouble=trouble,
            trouble_first=trouble_first,
            lasts_s=chance.choice([0.3, 1, 2, 4, 6, 8, 10, 12, 15]),
            agent_dies=chance.random() < 0.25,
            policy=chance.choice(POLICIES),
        )

    def __str__(self) -> str:
        """Tell it."""
        happens = [f"{node} {fault}" for node, fault in self.victims]
        happens.insert(0 if self.trouble_first else len(happens), self.trouble)
        ends = ", and fencer dies" * self.agent_dies
        return f"{', '.join(happens)}, for {self.lasts_s:g} s{ends}; policy {dict(self.policy)}"


@pytest.mark.parametrize("seed", seeds("FENCER_FAULT_SEEDS", "1-4"))
def test_everything_comes_back_and_no_volume_has_two_writers(
    lab: Lab, operator: Operator, afterwards: ExitStack, seed: int
) -> None:
    """Whatever fails; and once all is mended, no fence and no cordon is left."""
    incident = Incident.by_chance(Random(seed))  # noqa: S311 - no secret
    print(incident)  # noqa: T201 - pytest shows it with a failure
    afterwards.callback(heal, lab)
    config = operator.configure(**incident.policy)
    with operator.watching(config) as agent:
        lab.wait_settled()
        suffer(lab, incident)
        if incident.agent_dies:
            agent.kill()
    with operator.watching(config):
        heal(lab)
        wait_until(lambda: lab.fault() or all(map(lab.is_ready, lab.nodes)), "Ready nodes")
        for name in lab.nodes:
            wait_until(partial(is_as_before, lab, name), f"end of fence and cordon of {name}")
        lab.wait_settled()
        lab.wait_whole()


def suffer(lab: Lab, incident: Incident) -> None:
    """Make it happen, and watch that no volume gets a second writer while it lasts."""
    faults = {**BY_LIBVIRT, **BY_ITSELF}
    with ExitStack() as trouble:
        if incident.trouble_first:
            trouble.enter_context(TROUBLES[incident.trouble](lab))
        for name, fault in incident.victims:
            faults[fault](lab.nodes[name])
        if not incident.trouble_first:
            trouble.enter_context(TROUBLES[incident.trouble](lab))
        stays(lambda: not lab.fault(), "one writer a volume", for_s=incident.lasts_s)


def is_as_before(lab: Lab, name: str) -> bool:
    """Whether nothing that fencer did to a node is left."""
    return not lab.is_fenced(name) and not lab.is_cordoned(name)


def heal(lab: Lab) -> None:
    """Bring every node back, whatever was done to it."""
    for name in lab.nodes:
        wait_until(partial(is_healed, lab, name), f"mended {name}")


def is_healed(lab: Lab, name: str) -> bool:
    """Bring a node back; False: fencer was about to power its guest off, which is started next time."""
    node, guest = lab.nodes[name], lab.nodes[name].guest
    node.nic_on()
    node.start_kubelet()
    guest.thaw()
    try:
        guest.resume_if_paused()
        lab.bring_back(name)
    except GuestError:
        return False
    return guest.pid is not None
