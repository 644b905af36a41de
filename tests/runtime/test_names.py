"""Names of hypervisors on Nodes: asked once, written with every guest, and believed by identity."""

import json
from dataclasses import replace

import pytest

from fencer.core import annotations as keys
from fencer.core.model import Binding, Doubt, Doubted, FenceMark, Intent, Note, PowerState, Reason, Word
from fencer.core.policy import SavedGuest
from fencer.errors import HypervisorProtocol
from fencer.runtime.names import ASK_AGAIN_S
from fencer.runtime.reconcile import Agent
from fencer.runtime.world import World
from fencer.simulation.cluster import KEY
from fencer.simulation.datacenter import DoubleWriter
from fencer.simulation.faults import What
from tests.runtime.stagehand import ARMED, Notebook, Stagehand, Traced

LAB = "simulation:lab"


class Site:
    """The same guests on another hypervisor, like those replicated for a disaster: k8s-2 is off there.

    Attributes:
        identity: What it says who it is; an error: it raises.
        sweeps: It lists its guests.
    """

    def __init__(self, port, identity, state=PowerState.STOPPED):
        self._port, self.identity, self._state = port, identity, state
        self.sweeps = True

    def __getattr__(self, name):
        return getattr(self._port, name)

    def describe(self):
        if isinstance(self.identity, Exception):
            raise self.identity
        return replace(self._port.describe(), identity=self.identity)

    def sweep(self):
        if not self.sweeps:
            raise HypervisorProtocol("lab: no list today")
        return [self._said(told) for told in self._port.sweep()]

    def read(self, guest):
        return self._said(self._port.read(guest))

    def _said(self, told):
        state = self._state if told.guest.name == "k8s-2" and self._state else told.power_state
        return replace(told, power_state=state, witness=f"of {self.identity}")


def text(stage, key=keys.BINDING, name="k8s-2"):
    return json.loads(stage.simulation.api.nodes[name].annotations[key])


def on_site(stage, site, policy=ARMED):
    """An agent that has that instead of the hypervisor, by the same name; without memory."""
    simulation = stage.simulation
    stage.notes = Notebook()
    world = World(
        cluster=Traced(simulation.cluster, stage.calls, stage.before),
        hypervisors={"lab": Traced(site, stage.calls, stage.before)},
        asker=simulation.asker,
        clock=simulation.clock,
        reporter=stage.notes,
        leases=simulation.leases,
    )
    stage.agent = Agent(world, policy, simulation.rules())
    return stage.agent


def forget_identities(stage):
    """Let all bindings be as an older fencer wrote them."""
    for node in stage.simulation.api.nodes.values():
        seal = keys.Seal(KEY, node.uid)
        told = keys.read_binding(node.annotations[keys.BINDING], seal)
        older = replace(told, guest=replace(told.guest, hypervisor=""))
        node.annotations[keys.BINDING] = keys.write_binding(older, seal)
        stage.simulation.api.changed(node)


def test_a_hypervisor_is_asked_once_who_it_is_however_many_passes_follow(stage):
    stage.happen(What.POWER_OFF)
    stage.run(120)
    assert stage.calls.count("sweep") > 30
    assert stage.calls.count("describe") == 1


def test_bindings_and_marks_are_written_with_the_hypervisors_identity(stage):
    assert text(stage)["guest"]["hypervisor"] == LAB
    stage.happen(What.POWER_OFF)
    stage.run(120)
    assert text(stage, keys.MARK)["guest"]["hypervisor"] == LAB


def test_so_are_doubts(stage):
    stage.happen(What.SAVE)
    stage.run(30)
    assert text(stage, keys.DOUBTS)["doubts"][0]["guest"]["hypervisor"] == LAB


def test_what_an_older_fencer_wrote_goes_by_the_endpoints_name_and_costs_no_question(stage):
    forget_identities(stage)
    stage.happen(What.POWER_OFF)
    stage.calls.clear()
    stage.new_agent()
    stage.run(20)
    assert "describe" not in stage.calls
    stage.run(70)
    assert "hypervisor" not in text(stage)["guest"]
    assert stage.node().fenced


def test_another_hypervisor_of_the_same_name_never_speaks_for_the_node(stage):
    """The machine runs on, cut off, and the site that replicates it calls it stopped."""
    stage.happen(What.NIC_OFF)
    agent = on_site(stage, Site(stage.simulation.hypervisor, "simulation:site"))
    stage.run(200)
    assert not stage.node().out_of_service
    assert stage.reason() is Reason.BINDING_UNPROVEN
    seen = agent.shared.names.read(stage.node())
    assert seen.binding.guest.endpoint == "another lab"


def test_without_an_identity_that_would_cost_the_data(stage):
    """As it was before identities were written; and so the test above can fail."""
    forget_identities(stage)
    stage.happen(What.NIC_OFF)
    on_site(stage, Site(stage.simulation.hypervisor, "simulation:site"))
    with pytest.raises(DoubleWriter, match="written in k8s-2 and in"):
        stage.run(200)


@pytest.mark.parametrize("cannot", [None, HypervisorProtocol("lab: who am I?")], ids=["None", "an error"])
def test_one_that_answers_and_cannot_tell_is_not_believed_before_it_can(stage, cannot):
    stage.happen(What.POWER_OFF)
    site = Site(stage.simulation.hypervisor, cannot, state=None)
    on_site(stage, site)
    stage.calls.clear()
    stage.run(70)
    assert not stage.node().out_of_service
    assert 1 < stage.calls.count("describe") <= 1 + 70 / ASK_AGAIN_S, "now and then, not in every pass"
    site.identity = LAB
    stage.run(70)
    assert stage.node().fenced


@pytest.mark.parametrize("cannot", [None, HypervisorProtocol("lab: who am I?")], ids=["None", "an error"])
def test_nor_is_a_move_noted_from_where_its_guest_may_just_run(stage, cannot):
    """Once it can tell, a false one would keep the node from being fenced."""
    site = Site(stage.simulation.hypervisor, cannot, state=None)
    on_site(stage, site)
    stage.run(20)
    assert stage.node().doubts == ()
    stage.happen(What.POWER_OFF)
    site.identity = LAB
    stage.run(100)
    assert stage.node().fenced


def test_one_that_has_no_name_of_its_own_goes_by_that_of_the_configuration(stage):
    for node in stage.simulation.api.nodes.values():
        del node.annotations[keys.BINDING]
        stage.simulation.api.changed(node)
    on_site(stage, Site(stage.simulation.hypervisor, "", state=None))
    stage.run(30)
    assert "hypervisor" not in text(stage)["guest"]
    stage.happen(What.POWER_OFF)
    stage.run(100)
    assert stage.node().fenced


def test_one_that_does_not_answer_yet_keeps_its_guests_by_name(stage):
    """As an agent begins while its hypervisor is away: nobody says that there is no such guest."""
    stage.happen(What.UNREACHABLE, "lab")
    stage.happen(What.POWER_OFF)
    agent = stage.new_agent()
    stage.run(70)
    agent.pursue("k8s-2", Intent.FENCE, Word(), 20)
    assert agent.shared.names.read(stage.node()).binding.guest.endpoint == "lab"
    assert stage.reason() is Reason.EVIDENCE_MISSING
    stage.happen(What.TRUTHFUL, "lab")
    stage.run(70)
    assert stage.node().fenced


def test_a_fence_that_a_power_witness_has_proven_asks_a_silent_one_in_vain_and_keeps_its_guest(stage):
    stage.happen(What.UNREACHABLE, "lab")
    names = stage.new_agent().shared.names
    guest = stage.node().binding.guest
    mark = FenceMark("inc", "2026-11-20T10:00:00Z", "b", guest, "anna")
    assert names.mark(mark).guest.hypervisor == LAB
    assert names.mark(replace(mark, guest=replace(guest, hypervisor=""))).guest.hypervisor == ""
    assert names.read(stage.node()).binding.guest.endpoint == "lab"


@pytest.mark.parametrize("who", ["simulation:site", None, HypervisorProtocol("lab: who am I?")])
def test_nor_is_its_word_believed_about_a_single_guest_before_it_has_told(stage, who):
    """It lists nothing, but answers when it is asked for a guest."""
    stage.happen(What.NIC_OFF)
    stage.simulation.clock.advance(60)
    site = Site(stage.simulation.hypervisor, who)
    site.sweeps = False
    on_site(stage, site).pursue("k8s-2", Intent.FENCE, Word(), 90)
    assert not stage.node().out_of_service


def test_an_agent_that_only_observes_reads_the_same(stage):
    stage.happen(What.POWER_OFF)
    agent = on_site(
        stage, Site(stage.simulation.hypervisor, "simulation:site"), replace(ARMED, mode="observe")
    )
    stage.run(70)
    assert agent.shared.names.read(stage.node()).binding.guest.endpoint == "another lab"


def test_a_node_reads_the_same_until_it_changes(stage):
    """What stays the same object costs no new look."""
    site = Site(stage.simulation.hypervisor, "simulation:site", state=None)
    names = on_site(stage, site).shared.names
    before = stage.node()
    names.learn([before], {"lab"})
    assert names.read(before) is names.read(before) is not before
    names.keep(())
    assert names.read(before) == names.read(replace(before))


def test_so_does_what_an_agent_that_only_observes_has_noted(stage):
    """An endpoint was renamed since. The Nodes say nothing about it."""
    names = on_site(stage, Site(stage.simulation.hypervisor, LAB)).shared.names
    bound = Binding(replace(stage.simulation.guest("k8s-2").ref, endpoint="before", hypervisor=LAB), ("b",))
    note = Note("k8s-2", "uid-2", binding=bound)
    names.learn([note], {"lab"})
    assert names.own(note).binding.guest.endpoint == "lab"


def test_what_is_not_known_here_is_written_as_it_was_read(stage):
    names = stage.agent.shared.names
    guest = replace(stage.node().binding.guest, endpoint="elsewhere", hypervisor="libvirt:4c4c")
    assert names.binding(Binding(guest, ())).guest.hypervisor == "libvirt:4c4c"
    mark = FenceMark("inc", "2026-11-20T10:00:00Z", "b", replace(guest, hypervisor=""), "anna")
    assert names.mark(mark) == mark
    assert names.doubts(()) == ()


def test_what_others_write_while_nodes_are_counted_again_is_read_in_ones_own_names(stage):
    observer = stage.agent.observer
    scene = observer.look()
    observer.counting.again(scene, "k8s-2", stage.simulation.clock.now_s())
    node = stage.simulation.api.nodes["k8s-3"]
    told = keys.read_binding(node.annotations[keys.BINDING], seal := keys.Seal(KEY, node.uid))
    bound = Binding(replace(told.guest, endpoint="pve"), (*told.boot_ids, "another boot"))
    node.annotations[keys.BINDING] = keys.write_binding(bound, seal)
    stage.simulation.api.changed(node)
    observer.counting.again(scene, "k8s-2", stage.simulation.clock.now_s())
    assert scene.nodes["k8s-3"].binding == replace(bound, guest=told.guest)


def test_doubts_that_are_left_once_saved_memory_was_thrown_away_are_read_and_written_so():
    """Others write on the Node at the same moment, so that it has to be read again."""
    stage = Stagehand(replace(ARMED, saved_guest=SavedGuest.DISCARD))
    stage.run(25)
    api, node = stage.simulation.api, stage.simulation.api.nodes["k8s-2"]
    guest, seal = stage.node().binding.guest, keys.Seal(KEY, node.uid)
    doubt = Doubt(Doubted.CONTRADICTED, guest, "", "anna", "2026-11-20T10:00:00Z")

    def others_write():
        theirs = replace(doubt, kind=Doubted.SAVED, guest=replace(guest, endpoint="pve"))
        older = replace(doubt, guest=replace(guest, hypervisor="", host="lab9"))
        node.annotations[keys.DOUBTS] = keys.write_doubts((theirs, older), seal)
        api.changed(node)

    stage.happen(What.SAVE)
    stage.before["discard"] = others_write
    for _ in range(100):
        if "discard" in stage.calls:
            break
        stage.run(1)
    (left,) = [one["guest"] for one in text(stage, keys.DOUBTS)["doubts"]]
    assert (left["endpoint"], left["hypervisor"], left["host"]) == ("lab", LAB, "lab9")
