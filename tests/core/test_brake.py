"""What counts against the brake: each node, a host that died once, and what others are about to do."""

from dataclasses import replace

import pytest

from fencer.core.brake import count, dead_hosts, fits, place, slots_for, too_many_hosts, used, with_slots
from fencer.core.decide import decide
from fencer.core.model import Binding, FenceMark, Fleet, GuestRef, PowerState, Proof, Reason, TaintNode
from tests.core.build import ARMED, GUEST, MARK, OTHER, TAINT, node, observation

NOW = MARK.fenced_at_utc
FLEET = Fleet(nodes=10, young_fences=2, tainted=frozenset({"a", "b"}))
NODE = replace(node(), uid="x")
HERE = replace(GUEST, host="pve1")
OFF = replace(observation().evidence, guest=HERE)
BY_HOST = replace(OFF, proof=Proof.HA_RECOVERY)


def on(host, name="k8s-9", endpoint="home"):
    return GuestRef(endpoint, name, f"uuid-{name}", name, host)


def fenced_node(name, host, proof=Proof.HA_RECOVERY):
    """A node whose guest ran on a host, fenced by that proof."""
    guest = on(host, name)
    mark = FenceMark("i", NOW, "boot", guest, "fencer", proof)
    return replace(
        node(),
        name=name,
        uid=name,
        mark=mark,
        taints=(replace(TAINT, time_added=NOW),),
        binding=Binding(guest, ()),
    )


def summed(*nodes):
    return count(nodes, NOW, (), Fleet(nodes=len(nodes)))


class TestSlots:
    """Nodes that some agent is about to fence count like those that are fenced."""

    def test_a_slot_of_a_fence_that_is_seen_is_not_counted_twice(self):
        assert used(with_slots(FLEET, {"a", "b", "c"}), NODE, OFF) == 3

    def test_every_node_with_the_taint_is_seen_and_no_other(self):
        assert summed(fenced_node("a", "pve1"), NODE).tainted == {"a"}

    def test_a_nodes_own_slot_is_not_held_against_it(self):
        assert used(with_slots(FLEET, {"c", "x"}), NODE, OFF) == 3

    @pytest.mark.parametrize(("slots", "may"), [((), True), (("c", "d"), True), (("c", "d", "e"), False)])
    def test_one_more_fits_below_the_brake(self, slots, may):
        assert fits(FLEET, ARMED, NODE, OFF, slots) is may

    def test_a_proof_about_a_guest_needs_one_slot_and_one_about_its_host_two(self):
        assert slots_for(NODE, OFF) == ("x",)
        assert slots_for(NODE, BY_HOST) == ("x", "host/lab/pve1")

    def test_a_hosts_slot_is_no_nodes(self):
        fleet = with_slots(FLEET, {"host/lab/pve1", "c"})
        assert (fleet.reserved, dead_hosts(fleet)) == ({"c"}, {("lab", "pve1")})


class TestHosts:
    def test_all_nodes_of_one_host_that_died_count_once(self):
        fleet = summed(*(fenced_node(f"n{number}", "pve1") for number in range(5)))
        assert (fleet.young_fences, fleet.young_hosts) == (1, {("home", "pve1")})

    def test_and_those_that_ended_by_themselves_each_for_itself(self):
        one, two = fenced_node("a", "pve1", Proof.POWER), fenced_node("b", "pve1", Proof.POWER)
        fleet = summed(one, two, fenced_node("c", "pve1"), fenced_node("d", "pve2", Proof.HOST_POWER))
        assert (fleet.young_fences, len(fleet.young_hosts)) == (4, 2)

    def test_one_more_of_a_host_that_counts_already_uses_nothing_up(self):
        fleet = replace(FLEET, young_hosts=frozenset({(GUEST.endpoint, "pve1")}))
        assert used(fleet, NODE, BY_HOST) == used(fleet, NODE, OFF) - 1

    def test_the_host_is_the_one_where_it_ran_last_wherever_ha_has_put_it(self):
        ran = replace(GUEST, host="dead")
        bound = replace(NODE, binding=Binding(ran, ()))
        assert place(bound, BY_HOST) == (GUEST.endpoint, "dead")

    def test_a_host_that_nobody_names_is_none(self):
        nowhere = replace(BY_HOST, guest=GUEST)
        assert place(replace(NODE, binding=None), nowhere) is None
        assert place(NODE, None) is None

    @pytest.mark.parametrize(
        ("hosts", "dead", "too_many"), [(4, 1, False), (4, 2, True), (3, 1, True), (1, 0, False)]
    )
    def test_half_of_the_hosts_may_die(self, hosts, dead, too_many):
        fleet = Fleet(
            nodes=99, hosts=hosts, young_hosts=frozenset(("home", f"d{one}") for one in range(dead))
        )
        assert too_many_hosts(fleet, ARMED, NODE, BY_HOST) is too_many
        assert not too_many_hosts(fleet, ARMED, NODE, OFF)

    def test_a_host_that_another_agent_is_about_to_count_counts(self):
        assert not fits(Fleet(nodes=99, hosts=3), ARMED, NODE, BY_HOST, {"host/lab/other"})
        assert fits(Fleet(nodes=99, hosts=3), ARMED, NODE, BY_HOST, {"host/lab/pve1"})

    def test_hosts_of_one_name_on_two_hypervisors_are_two(self):
        """Every other Proxmox cluster has a pve1."""
        fleet = Fleet(nodes=99, hosts=4, young_hosts=frozenset({("other", "pve1"), ("other", "pve2")}))
        assert too_many_hosts(fleet, ARMED, NODE, BY_HOST)
        assert not fits(Fleet(nodes=99, hosts=3), ARMED, NODE, BY_HOST, {"host/other/pve1"})

    def test_a_hypervisor_counts_by_its_identity_whatever_agents_call_it(self):
        ours = replace(HERE, hypervisor="pve:ca/1")
        node = replace(NODE, binding=Binding(ours, ()))
        assert slots_for(node, BY_HOST) == ("x", "host/pve:ca/1/pve1")
        assert dead_hosts(with_slots(FLEET, slots_for(node, BY_HOST))) == {("pve:ca/1", "pve1")}

    def test_hosts_are_those_where_nodes_are_bound(self):
        assert summed(*(fenced_node(f"n{number}", f"pve{number % 3}") for number in range(9))).hosts == 3

    def test_a_node_whose_host_is_unknown_adds_no_host(self):
        """A wrong number of hosts would move the brake, which is half of them by default."""
        nodes = (fenced_node("a", "pve1"), fenced_node("b", None), replace(NODE, binding=None))
        assert summed(*nodes).hosts == 1

    def test_a_mark_that_does_not_belong_to_the_taint_names_no_host(self):
        """The taint may be an administrator's: each such node counts for itself."""
        later = (replace(TAINT, time_added="2026-11-20T09:59:00Z"),)
        fleet = summed(*(replace(fenced_node(name, "pve1"), taints=later) for name in ("a", "b")))
        assert (fleet.young_fences, fleet.young_hosts) == (2, frozenset())

    def test_a_guest_that_runs_proves_nothing_about_its_host(self):
        assert place(NODE, replace(BY_HOST, power_state=PowerState.RUNNING)) is None

    def test_the_binding_of_another_guest_names_no_host(self):
        bound = replace(NODE, binding=Binding(OTHER, ()))
        assert place(bound, BY_HOST) == (GUEST.endpoint, "pve1")

    def test_it_is_told_how_many_hosts_died_and_what_would_change_it(self):
        dead = frozenset({("home", "a"), ("home", "b")})
        fleet = replace(observation().fleet, nodes=40, hosts=4, young_hosts=dead, young_fences=2)
        seen = replace(observation(), fleet=fleet)
        assert any(isinstance(action, TaintNode) for action in decide(seen, ARMED).actions)
        bound = replace(seen.node, binding=Binding(HERE, (seen.node.boot_id,)))
        seen = replace(seen, node=bound, evidence=replace(seen.evidence, proof=Proof.HOST_POWER))
        decision = decide(seen, ARMED)
        assert decision.reason is Reason.BRAKE
        assert decision.objection.seen == (
            "2 of 4 hosts within an hour; max_fenced_hosts allows 2, half of the hosts"
        )
        assert "a higher `max_fenced_hosts`" in decision.objection.needs
        wider = replace(ARMED, max_fenced_hosts=3)
        assert any(isinstance(action, TaintNode) for action in decide(seen, wider).actions)
