"""A drain before a stop, in the simulated world: whose node, for how long, and what becomes of its cordon."""

from dataclasses import replace

import pytest

from fencer.contract.deadlines import IN_TIME
from fencer.core.cordon import HOOK
from fencer.core.model import Cordon
from fencer.core.policy import Mode, Policy
from fencer.planned.hook import Request, drain_for
from fencer.ports import EndpointInfo
from fencer.reporting.events import EventReporter
from fencer.reporting.planned import PlannedEvents
from fencer.runtime.reconcile import Agent
from fencer.simulation.faults import What
from fencer.simulation.objects import ApiBudget
from fencer.wording.events import HOOK_DRAIN
from tests.cli.lab import Lab

NAME = "k8s-2"


@pytest.fixture
def lab():
    """A lab in which an agent has bound all nodes."""
    lab = Lab()
    lab.passes(30, watched=True)
    return lab


def pods(lab):
    return [str(pod) for pod in lab.simulation.api.pods_on(NAME) if not pod.daemon]


def guest(lab):
    (found,) = [seen.guest for seen in lab.simulation.hypervisors["lab"].sweep() if seen.guest.name == NAME]
    return found


def incarnation(lab):
    return lab.simulation.hypervisors["lab"].read(guest(lab)).incarnation


def drain(lab, budget_s=120.0, limit_s=60.0, **asked):
    reporter = EventReporter(lab.simulation.cluster, lab.simulation.asker)
    told = PlannedEvents(reporter, HOOK_DRAIN, "fencer@pve1")
    world = replace(lab._world(), evictor=lab.simulation.cluster, reporter=told)
    about = guest(lab)
    request = replace(Request(about.id, about.host, budget_s), **asked)
    policy = Policy(mode=Mode.ARMED)
    return drain_for(world, Agent(world, policy, lab.rules), request, limit_s, told.drained)


def events(lab):
    return [event[1:] for event in lab.simulation.cluster.events if event[0] == NAME]


def cordon(lab):
    return lab.simulation.cluster.fact(NAME).node.cordon


def test_the_node_of_the_guest_is_drained_and_cordoned_for_the_stop(lab):
    assert pods(lab)
    assert drain(lab).startswith(f"{NAME} drained, ")
    assert not pods(lab)
    found = cordon(lab)
    assert isinstance(found, Cordon)
    assert found.by == "hook"


def test_it_is_two_events_on_the_node_and_a_warning_if_it_fails(lab):
    begun = ("FencerDrainBegun", "cordoned for a stop in Proxmox by fencer@pve1", False)
    drain(lab)
    assert events(lab) == [begun, ("FencerDrained", "drained; it stays cordoned", False)]
    stuck = Lab()
    stuck.passes(30, watched=True)
    stuck.budget("StatefulSet/db", 8)
    drain(stuck, limit_s=10.0)
    first, (reason, text, loud) = events(stuck)
    assert (first, reason, loud) == (begun, "FencerDrainFailed", True)
    assert text.startswith("not drained: after 10 s, demo/db-")


@pytest.mark.parametrize("asked", [{"guest": "999"}, {"host": "pve9"}], ids=["another guest", "another host"])
def test_a_guest_that_is_no_node_there_is_left(lab, asked):
    before = pods(lab)
    assert drain(lab, **asked).startswith("not drained: no node is that guest on ")
    assert (pods(lab), cordon(lab)) == (before, None)


class Barn:
    """Another cluster, whose guest has the number of this one's, on a host that is called as its host is."""

    endpoint = "barn"

    def __init__(self, port, reading):
        self.trouble = port.trouble
        uuid = "99999999-0000-4000-8000-000000000001"
        self._reading = replace(reading, guest=replace(reading.guest, endpoint="barn", uuid=uuid))

    def sweep(self):
        return [self._reading]

    def attend(self, guests):
        """Whose end is told at once anyway."""

    def describe(self):
        return EndpointInfo("barn", "1", "", None, identity="barn")


def test_a_number_and_a_host_that_two_clusters_have_name_no_guest(lab):
    """The other one may be none of the nodes: then this one's would be drained for its stop."""
    before, machines = pods(lab), lab.simulation.hypervisors
    machines["barn"] = Barn(machines["lab"], machines["lab"].read(guest(lab)))
    assert drain(lab) == (
        f"not drained: barn and lab each have a guest {guest(lab).id} on {guest(lab).host}, and hooks do not "
        "tell which of them is meant"
    )
    assert (pods(lab), cordon(lab)) == (before, None)


def test_a_node_that_was_never_seen_with_its_guest_is_left():
    """Whoever starts a guest with a copied UUID must not have a node drained."""
    lab = Lab()
    assert drain(lab).startswith("not drained: no node is ")


def test_a_node_that_fencer_shall_keep_its_hands_off_is_left(lab):
    node = lab.simulation.api.nodes[NAME]
    node.annotations["fencer.dev/exclude"] = "true"
    lab.simulation.api.changed(node)
    before = pods(lab)
    assert drain(lab) == f"{NAME} not drained: the node carries the annotation fencer.dev/exclude"
    assert (pods(lab), cordon(lab)) == (before, None)


def test_a_node_that_is_silent_holds_no_stop_up(lab):
    """It may be fencer itself that stops the guest, in order to fence it."""
    lab.breaks(What.NIC_OFF, NAME)
    lab.passes(60)
    before = pods(lab)
    assert drain(lab).startswith(f"{NAME} not drained: it is not Ready")
    assert (pods(lab), cordon(lab)) == (before, None)


@pytest.mark.parametrize(("budget_s", "limit_s"), [(20.0, 60.0), (120.0, 20.0)], ids=["hook's", "agent's"])
def test_a_budget_that_never_allows_it_ends_with_the_shorter_patience(lab, budget_s, limit_s):
    lab.simulation.api.budgets.append(ApiBudget("demo", "db", "StatefulSet/db", 8))
    began_s = lab.simulation.clock.now_s()
    told = drain(lab, budget_s, limit_s)
    assert told.startswith(f"{NAME} not drained: ")
    assert "20 s" in told
    assert lab.simulation.clock.now_s() - began_s < 30
    assert pods(lab)
    assert isinstance(cordon(lab), Cordon), "its guest is stopped all the same"


def test_when_it_has_booted_again_the_agent_takes_the_cordon_off(lab):
    drain(lab)
    machine = lab.simulation.hypervisors["lab"]
    machine.stop(guest(lab), incarnation(lab), IN_TIME)
    lab.passes(20, watched=True)
    machine.start(guest(lab), incarnation(lab), IN_TIME)
    lab.passes(120, watched=True)
    assert not lab.simulation.api.nodes[NAME].unschedulable
    assert cordon(lab) is None


def test_of_two_agents_that_are_asked_at_once_one_drains(lab):
    """The second reads the node before the first one's cordon, and writes after it: the version tells it."""
    first, second = [], []
    cluster, write = lab.simulation.cluster, lab.simulation.cluster.cordon

    def crossed(*args, **options):
        cluster.cordon = write
        first.append(drain(lab))
        return write(*args, **options)

    cluster.cordon = crossed
    second.append(drain(lab))
    assert first[0].startswith(f"{NAME} drained, ")
    assert second[0].startswith(f"{NAME} not drained: a drain for another hook, run ")


def test_a_hook_that_comes_after_that_time_is_obeyed(lab):
    drain(lab)
    lab.simulation.clock.advance(61.0)
    assert drain(lab).startswith(f"{NAME} drained, ")


@pytest.mark.parametrize(
    ("since_s", "own_s", "waits"),
    [(59.0, 0.0, True), (61.0, 0.0, False), (61.0, -5.0, True), (-600.0, 0.0, True), (-602.0, 0.0, False)],
)
def test_a_drain_for_another_hook_may_go_on_by_the_slower_clock(lab, since_s, own_s, waits):
    """Its cordon may have been written by a clock that is ahead (docs/design.md, E26)."""
    clock, cluster = lab.simulation.clock, lab.simulation.cluster
    clock.advance(700.0)
    node = cluster.fact(NAME).node
    cluster.cordon(node, Cordon(HOOK, node.boot_id, clock.utc_in(-since_s), "another"))
    world = lab._world
    lab._world = lambda: replace(world(), utc=lambda: clock.utc_in(own_s))
    assert ("a drain for another hook, run another, began" in drain(lab)) is waits
