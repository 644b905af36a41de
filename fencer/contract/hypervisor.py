"""What every implementation of the port `Hypervisor` must do, whether it is real or a world in memory.

A test module runs the contract by subclassing `HypervisorContract`, and where the hypervisor can do it also
`SavingContract` and `LosableContract`, and giving them two fixtures. (For an adapter of others ``pytest
--adapter=NAME`` does all that: see `fencer.contract.lab`.) ::

    class TestSimulatedHypervisor(HypervisorContract, SavingContract, LosableContract):
        @pytest.fixture
        def hypervisor(self, ...): ...      # the implementation, of the type fencer.ports.Hypervisor, fresh
        @pytest.fixture
        def backstage(self, ...): ...       # a Backstage of the same endpoint

The backstage may live longer than one test: guests are never used twice, and a test looks only at its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from fencer.contract.backstage import (
    NOBODY,
    Backstage,
    Ending,
    LosableBackstage,
    Order,
    SavingBackstage,
    eventually_reads,
    every_change,
    every_end,
    every_power_action,
    swept,
)
from fencer.contract.deadlines import IN_TIME, TOO_LATE, order
from fencer.contract.needs import needs
from fencer.core.model import GuestRef, PowerState, Proof
from fencer.errors import GuestChanged, GuestNotFound, HypervisorError, HypervisorUnreachable
from fencer.ports import Hypervisor


class HypervisorContract:
    """What all must do. Subclasses give the fixtures `hypervisor` and `backstage`."""

    @pytest.fixture
    def guest(self, backstage: Backstage) -> GuestRef:
        """A guest of this test alone. It runs."""
        return backstage.make_guest()

    # -- readings -----------------------------------------------------------------------------------------

    def test_a_running_guest_reads_running(self, hypervisor: Hypervisor, guest: GuestRef) -> None:
        evidence = hypervisor.read(guest)
        assert evidence.power_state is PowerState.RUNNING
        assert evidence.conclusive
        assert evidence.settled
        assert evidence.cold_start is not False
        assert evidence.incarnation
        assert evidence.raw
        assert evidence.source

    def test_evidence_says_whom_it_is_about(self, hypervisor: Hypervisor, guest: GuestRef) -> None:
        found = hypervisor.read(guest).guest
        assert found.endpoint == hypervisor.endpoint
        assert found.key == guest.key
        assert found.name == guest.name
        assert found.uuid == found.uuid.lower()

    def test_evidence_names_its_witness_whatever_the_endpoint_is_called(
        self, hypervisor: Hypervisor, guest: GuestRef
    ) -> None:
        read = hypervisor.read(guest)
        assert read.witness
        assert read.witness != hypervisor.endpoint
        assert [told.witness for told in swept(hypervisor, guest)] == [read.witness]

    def test_evidence_is_dated_by_the_beginning_of_its_call(
        self, hypervisor: Hypervisor, backstage: Backstage, guest: GuestRef
    ) -> None:
        before_s = backstage.now_s()
        first = hypervisor.read(guest).observed_at_s
        between_s = backstage.now_s()
        second = hypervisor.read(guest).observed_at_s
        assert before_s <= first <= between_s <= second <= backstage.now_s()

    @every_change
    def test_a_sweep_tells_each_guest_once_and_the_same_as_a_reading(
        self, hypervisor: Hypervisor, backstage: Backstage, guest: GuestRef, change: Ending
    ) -> None:
        hypervisor.sweep()  # What is kept of it must not be told again.
        change(backstage, guest)
        read = hypervisor.read(guest)
        (told,) = swept(hypervisor, guest)
        said = (told.guest, told.power_state, told.settled, told.incarnation, told.cold_start)
        assert said == (read.guest, read.power_state, read.settled, read.incarnation, read.cold_start)

    def test_guests_are_told_apart(
        self, hypervisor: Hypervisor, backstage: Backstage, guest: GuestRef
    ) -> None:
        other = backstage.make_guest()
        runs = {one.uuid: hypervisor.read(one).incarnation for one in (guest, other)}
        order(hypervisor.stop, guest, runs[guest.uuid])
        eventually_reads(hypervisor, backstage, guest, PowerState.STOPPED)
        for told in (hypervisor.read(other), *swept(hypervisor, other)):
            assert (told.guest.key, told.power_state) == (other.key, PowerState.RUNNING)
            assert told.incarnation == runs[other.uuid]

    @needs("pause")
    def test_a_paused_guest_is_paused_in_the_same_incarnation(
        self, hypervisor: Hypervisor, backstage: Backstage, guest: GuestRef
    ) -> None:
        running = hypervisor.read(guest)
        backstage.pause(guest)
        paused = eventually_reads(hypervisor, backstage, guest, PowerState.PAUSED)
        assert paused.settled
        assert paused.incarnation == running.incarnation
        assert not paused.io_error
        backstage.resume(guest)
        resumed = eventually_reads(hypervisor, backstage, guest, PowerState.RUNNING)
        assert resumed.incarnation == running.incarnation

    @every_end
    def test_a_guest_whose_run_ended_reads_stopped(
        self, hypervisor: Hypervisor, backstage: Backstage, guest: GuestRef, end: Ending
    ) -> None:
        end(backstage, guest)
        stopped = eventually_reads(hypervisor, backstage, guest, PowerState.STOPPED)
        assert stopped.conclusive
        assert stopped.settled
        assert stopped.proof is Proof.POWER

    def test_a_guest_that_stays_off_keeps_its_incarnation(
        self, hypervisor: Hypervisor, backstage: Backstage, guest: GuestRef
    ) -> None:
        backstage.destroy(guest)
        first = eventually_reads(hypervisor, backstage, guest, PowerState.STOPPED)
        assert hypervisor.read(guest).incarnation == first.incarnation
        (told,) = swept(hypervisor, guest)
        assert told.incarnation == first.incarnation

    def test_a_start_between_two_off_readings_changes_the_incarnation(
        self, hypervisor: Hypervisor, backstage: Backstage, guest: GuestRef
    ) -> None:
        backstage.destroy(guest)
        first = eventually_reads(hypervisor, backstage, guest, PowerState.STOPPED)
        backstage.start(guest)
        backstage.destroy(guest)
        backstage.eventually(
            lambda: hypervisor.read(guest).incarnation != first.incarnation, "other incarnation of the guest"
        )
        assert hypervisor.read(guest).power_state is PowerState.STOPPED

    def test_each_run_has_its_own_incarnation(
        self, hypervisor: Hypervisor, backstage: Backstage, guest: GuestRef
    ) -> None:
        first = hypervisor.read(guest)
        backstage.destroy(guest)
        backstage.start(guest)
        assert (
            eventually_reads(hypervisor, backstage, guest, PowerState.RUNNING).incarnation
            != first.incarnation
        )

    # -- who is not there ---------------------------------------------------------------------------------

    def test_a_guest_that_was_never_there_is_not_found(self, hypervisor: Hypervisor, guest: GuestRef) -> None:
        stranger = replace(guest, uuid=NOBODY, id=NOBODY, name="nobody")
        with pytest.raises(GuestNotFound, match=NOBODY):
            hypervisor.read(stranger)
        assert swept(hypervisor, stranger) == []

    @every_power_action
    def test_a_guest_that_is_not_there_cannot_be_powered(
        self, hypervisor: Hypervisor, guest: GuestRef, act: Order
    ) -> None:
        stranger = replace(guest, uuid=NOBODY, id=NOBODY, name="nobody")
        with pytest.raises(GuestNotFound):
            act(hypervisor, stranger)

    @needs("records")
    def test_a_guest_removed_after_its_end_was_read_is_absent_on_record(
        self, hypervisor: Hypervisor, backstage: Backstage, guest: GuestRef
    ) -> None:
        backstage.destroy(guest)
        stopped = eventually_reads(hypervisor, backstage, guest, PowerState.STOPPED)
        backstage.remove(guest)
        absent = eventually_reads(hypervisor, backstage, guest, PowerState.ABSENT)
        assert absent.end_recorded
        assert absent.conclusive
        assert absent.settled
        assert absent.incarnation == stopped.incarnation
        assert swept(hypervisor, guest) == []

    # -- power --------------------------------------------------------------------------------------------

    def test_stop_cuts_the_power_and_start_boots(
        self, hypervisor: Hypervisor, backstage: Backstage, guest: GuestRef
    ) -> None:
        order(hypervisor.stop, guest, hypervisor.read(guest).incarnation)
        stopped = eventually_reads(hypervisor, backstage, guest, PowerState.STOPPED)
        order(hypervisor.start, guest, stopped.incarnation)
        assert eventually_reads(hypervisor, backstage, guest, PowerState.RUNNING).cold_start is not False
        backstage.wait_until_up(guest)

    @needs("pause")
    def test_stop_works_on_a_paused_guest(
        self, hypervisor: Hypervisor, backstage: Backstage, guest: GuestRef
    ) -> None:
        backstage.pause(guest)
        paused = eventually_reads(hypervisor, backstage, guest, PowerState.PAUSED)
        order(hypervisor.stop, guest, paused.incarnation)
        eventually_reads(hypervisor, backstage, guest, PowerState.STOPPED)

    def test_a_guest_that_others_start_after_our_stop_reads_running(
        self, hypervisor: Hypervisor, backstage: Backstage, guest: GuestRef
    ) -> None:
        """What was ordered here says nothing of what is."""
        order(hypervisor.stop, guest)
        ended = eventually_reads(hypervisor, backstage, guest, PowerState.STOPPED)
        backstage.start(guest)
        again = eventually_reads(hypervisor, backstage, guest, PowerState.RUNNING)
        assert again.incarnation != ended.incarnation

    def test_start_of_a_running_guest_leaves_it_in_its_run(
        self, hypervisor: Hypervisor, guest: GuestRef
    ) -> None:
        before = hypervisor.read(guest)
        with suppress(HypervisorError):
            order(hypervisor.start, guest)
        after = hypervisor.read(guest)
        assert (after.power_state, after.incarnation) == (PowerState.RUNNING, before.incarnation)

    def test_stop_of_a_stopped_guest_leaves_it_stopped(
        self, hypervisor: Hypervisor, backstage: Backstage, guest: GuestRef
    ) -> None:
        backstage.destroy(guest)
        eventually_reads(hypervisor, backstage, guest, PowerState.STOPPED)
        try:
            order(hypervisor.stop, guest)
        except HypervisorError as error:
            assert guest.name in str(error)  # noqa: PT017 - it may raise, and then it says about whom
        assert hypervisor.read(guest).power_state is PowerState.STOPPED

    @needs("power_off_inside")
    def test_a_guest_that_obeys_shuts_down(
        self, hypervisor: Hypervisor, backstage: Backstage, guest: GuestRef
    ) -> None:
        order(hypervisor.shutdown, guest)
        eventually_reads(hypervisor, backstage, guest, PowerState.STOPPED)

    # -- orders that come late ------------------------------------------------------------------------------

    @every_power_action
    def test_an_order_that_was_given_up_is_not_carried_out(
        self, hypervisor: Hypervisor, guest: GuestRef, act: Order
    ) -> None:
        before = hypervisor.read(guest)
        with pytest.raises(HypervisorUnreachable, match="too late"):
            act(hypervisor, guest, before.incarnation, TOO_LATE)
        after = hypervisor.read(guest)
        assert (after.power_state, after.incarnation) == (PowerState.RUNNING, before.incarnation)

    @every_power_action
    def test_an_order_for_an_earlier_run_does_not_reach_the_present_one(
        self, hypervisor: Hypervisor, backstage: Backstage, guest: GuestRef, act: Order
    ) -> None:
        """Somebody has restarted the guest since: it is sound, and what was judged is over."""
        earlier = hypervisor.read(guest).incarnation
        backstage.destroy(guest)
        backstage.start(guest)
        now = eventually_reads(hypervisor, backstage, guest, PowerState.RUNNING)
        with pytest.raises(GuestChanged, match="was meant"):
            act(hypervisor, guest, earlier, IN_TIME)
        after = hypervisor.read(guest)
        assert (after.power_state, after.incarnation) == (PowerState.RUNNING, now.incarnation)

    def test_a_start_for_an_earlier_end_is_not_carried_out(
        self, hypervisor: Hypervisor, backstage: Backstage, guest: GuestRef
    ) -> None:
        backstage.destroy(guest)
        earlier = eventually_reads(hypervisor, backstage, guest, PowerState.STOPPED).incarnation
        backstage.start(guest)
        backstage.destroy(guest)

        def is_known_to_have_ended_again() -> bool:
            now = hypervisor.read(guest)
            return now.power_state is PowerState.STOPPED and now.incarnation != earlier

        # Where events tell of the start, they may follow the state by a moment.
        backstage.eventually(is_known_to_have_ended_again, f"another end of {guest}")
        with pytest.raises(GuestChanged):
            hypervisor.start(guest, earlier, IN_TIME)
        assert hypervisor.read(guest).power_state is PowerState.STOPPED

    # -- the endpoint -------------------------------------------------------------------------------------

    def test_it_says_who_it_is(self, hypervisor: Hypervisor) -> None:
        info = hypervisor.describe()
        assert info.kind
        assert info.version
        assert info.detail
        assert info.can_power is True
        assert info.problems == ()

    def test_its_identity_is_the_same_every_time_and_no_configurations_name(
        self, hypervisor: Hypervisor
    ) -> None:
        identity = hypervisor.describe().identity
        assert identity is not None
        assert identity != hypervisor.endpoint
        assert hypervisor.describe().identity == identity

    def test_what_is_set_for_its_stops_is_a_time_with_its_source_or_nothing(
        self, hypervisor: Hypervisor, guest: GuestRef
    ) -> None:
        settings = hypervisor.stop_settings(guest)
        assert settings is None or (settings.shutdown_s > 0 and settings.set_by)

    @needs("events")
    def test_subscribers_are_woken_when_a_guest_ends(
        self, hypervisor: Hypervisor, backstage: Backstage, guest: GuestRef
    ) -> None:
        wakes: list[str] = []
        hypervisor.subscribe(lambda: wakes.append("first"))
        hypervisor.subscribe(lambda: wakes.append("second"))
        hypervisor.read(guest)
        backstage.destroy(guest)
        backstage.eventually(lambda: {"first", "second"} <= set(wakes), "wake of both subscribers")

    @pytest.mark.parametrize("known", [True, False])
    def test_a_hooks_nudge_does_no_harm(self, hypervisor: Hypervisor, guest: GuestRef, known: bool) -> None:
        hypervisor.nudge(guest.id if known else "no such guest\0")
        assert hypervisor.read(guest).power_state is PowerState.RUNNING

    def test_to_be_told_which_guests_are_nodes_does_no_harm(
        self, hypervisor: Hypervisor, guest: GuestRef
    ) -> None:
        strangers = (replace(guest, endpoint="elsewhere"), replace(guest, id="no such guest\0"))
        hypervisor.attend({guest, *strangers})
        assert [told.power_state for told in swept(hypervisor, guest)] == [PowerState.RUNNING]
        hypervisor.attend(())
        assert [told.power_state for told in swept(hypervisor, guest)] == [PowerState.RUNNING]

    def test_it_can_be_closed_twice(self, hypervisor: Hypervisor, guest: GuestRef) -> None:
        hypervisor.read(guest)
        hypervisor.close()
        hypervisor.close()


class SavingContract:
    """For hypervisors that can stop a guest with its memory on disk."""

    @needs("save")
    def test_a_saved_guest_is_not_stopped(self, hypervisor: Hypervisor, backstage: SavingBackstage) -> None:
        guest = backstage.make_guest()
        backstage.save(guest)
        assert eventually_reads(hypervisor, backstage, guest, PowerState.SAVED).settled

    @needs("save")
    def test_a_restored_guest_has_no_cold_start(
        self, hypervisor: Hypervisor, backstage: SavingBackstage
    ) -> None:
        guest = backstage.make_guest()
        before = hypervisor.read(guest)
        backstage.save(guest)
        backstage.start(guest)
        restored = eventually_reads(hypervisor, backstage, guest, PowerState.RUNNING)
        assert restored.cold_start is False
        assert restored.incarnation != before.incarnation


class LosableContract:
    """For endpoints that can be cut off."""

    @pytest.fixture
    def cut_guest(self, hypervisor: Hypervisor, backstage: LosableBackstage) -> Iterator[GuestRef]:
        """A running guest that was read once, behind an endpoint that was then cut off."""
        guest = backstage.make_guest()
        hypervisor.read(guest)
        backstage.cut()
        yield guest
        backstage.mend()

    @needs("cut")
    def test_nothing_is_known_of_an_endpoint_that_is_cut_off(
        self, hypervisor: Hypervisor, cut_guest: GuestRef
    ) -> None:
        with pytest.raises(HypervisorUnreachable, match=hypervisor.endpoint):
            hypervisor.read(cut_guest)
        with pytest.raises(HypervisorUnreachable, match=hypervisor.endpoint):
            hypervisor.sweep()

    @needs("cut")
    @every_power_action
    def test_nothing_can_be_powered_there(
        self, hypervisor: Hypervisor, cut_guest: GuestRef, act: Order
    ) -> None:
        with pytest.raises(HypervisorUnreachable, match=hypervisor.endpoint):
            act(hypervisor, cut_guest)

    @needs("cut")
    def test_it_answers_again_when_it_is_back(
        self, hypervisor: Hypervisor, backstage: LosableBackstage, cut_guest: GuestRef
    ) -> None:
        with pytest.raises(HypervisorUnreachable):
            hypervisor.sweep()
        backstage.mend()
        assert hypervisor.read(cut_guest).power_state is PowerState.RUNNING
        assert len(swept(hypervisor, cut_guest)) == 1

    @needs("cut")
    def test_it_is_the_same_host_and_the_same_witness_when_it_is_back(
        self, hypervisor: Hypervisor, backstage: LosableBackstage
    ) -> None:
        """Else no guest that ended meanwhile is off where it ran, and no doubt of its word stands."""
        before = hypervisor.read(guest := backstage.make_guest())
        backstage.cut()
        with pytest.raises(HypervisorUnreachable):
            hypervisor.sweep()
        backstage.mend()
        after = hypervisor.read(guest)
        assert after.guest.shares_host(before.guest)
        assert (after.witness, after.guest.host) == (before.witness, before.guest.host)
