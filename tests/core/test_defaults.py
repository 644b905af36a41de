"""What is taken for granted where nobody says otherwise: nothing that would allow more."""

from fencer.core.done import GuestStopped, Happened, Tainted
from fencer.core.election import LeaseRecord
from fencer.core.model import Fleet, Left, PowerState, Proof
from fencer.core.policy import SEEMS_KILLED_S, SIGKILL_AFTER_S
from fencer.ports.inventory import Inventory, Listing, Machine
from tests.core.build import ARMED, GUEST, POD, evidence, node


def test_what_happened_went_well_and_an_order_was_sent():
    """An order that was not sent gives the power window back: nobody gets that by saying nothing."""
    assert Happened("tainted").ok
    assert not Happened("tainted").changed
    assert not Happened("tainted").unanswered
    assert Tainted(PowerState.STOPPED, Proof.POWER, None, 0, 0).ok
    assert GuestStopped(GUEST, PowerState.STOPPED, "shut off", ok=True).sent


def test_a_lease_that_nobody_held_yet_has_changed_no_hands():
    assert LeaseRecord("fencer-lab-1").transitions == 0


def test_a_guest_is_kept_by_its_hypervisor_and_was_never_started_by_fencer():
    assert not evidence().fleeting
    assert Left("run-1").starts == 0


def test_a_pod_has_kubernetes_own_grace_period_and_loses_nothing():
    """Source: kubernetes pkg/apis/core/v1/defaults.go, DefaultTerminationGracePeriodSeconds: 30."""
    assert POD.grace_s == 30.0
    assert not POD.local_data


def test_a_plan_for_which_nothing_was_looked_at_knows_no_node_and_was_denied_nothing():
    assert Inventory().nodes == Listing()
    assert not Listing().denied


def test_a_machine_of_which_nothing_is_known_has_room_for_nothing():
    machine = Machine(node())
    assert (machine.cpu_m, machine.memory_b, machine.pod_slots) == (0, 0, 0)


def test_between_two_looks_at_the_guest_four_rounds_of_pods_are_cleared():
    assert ARMED.clear_batch == 4 * ARMED.clear_parallel


def test_a_power_off_that_took_nearly_as_long_as_sigkill_counts_as_killed():
    """The hypervisor's clock and fencer's measure it; one that a guest obeys takes a second or two."""
    assert 0.8 * SIGKILL_AFTER_S <= SEEMS_KILLED_S < SIGKILL_AFTER_S


def test_a_fleet_that_was_not_summed_up_has_no_host():
    assert Fleet(nodes=3).hosts == 0


def test_a_power_off_is_waited_for_until_sigkill_and_not_much_longer():
    assert 12.0 < ARMED.stop_deadline_s <= 15.0
