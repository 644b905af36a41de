"""What is asked of adapters of others besides: what fencer's own show by tests of their own.

Nobody of fencer has read them, so the contract looks at the guests itself (`Lab.lives`), hands them a clock
that tells when it was asked, and connects a second agent.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

import pytest

from fencer.contract.backstage import NOBODY, Ending, eventually_reads, every_end, swept
from fencer.contract.deadlines import order
from fencer.contract.lab import Lab
from fencer.contract.needs import needs
from fencer.core.model import Evidence, GuestRef, PowerState
from fencer.errors import (
    ConfigError,
    GuestNotFound,
    HypervisorError,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.hypervisors.adapters import AdapterSettings, unguarded
from fencer.hypervisors.guarded import Guarded
from fencer.ports import Hypervisor

NO_SUCH_SETTING = "no_such_setting"
AT_ONCE = 4
"""How many threads ask: a call that hangs is left behind, and the next one goes to another thread."""
ROUNDS = 16
"""How often they ask at once, so that mixed-up answers show."""
RUNS = 3
"""What tells two runs apart by turns calls the third one as the first."""
OTHERWISE = "lab-otherwise"
"""What somebody else calls the endpoint."""

Asking: TypeAlias = Callable[[Hypervisor, GuestRef], list[Evidence]]


def _read(hypervisor: Hypervisor, guest: GuestRef) -> list[Evidence]:
    return [hypervisor.read(guest)]


by_each_way = pytest.mark.parametrize("ask", [_read, swept], ids=["read", "sweep"])


class Bench:
    """Connects an adapter to a lab, as fencer would, and closes what it connected.

    Args:
        name: The adapter's.
        lab: The lab.
    """

    def __init__(self, name: str, lab: Lab) -> None:
        self._name, self._lab = name, lab
        self._connected: list[Hypervisor] = []

    def connect(
        self,
        now_s: Callable[[], float] | None = None,
        more: Mapping[str, object] = MappingProxyType({}),
        endpoint: str | None = None,
    ) -> Hypervisor:
        """Connect one more agent.

        Args:
            now_s: Its clock; None: the lab's.
            more: Settings besides those of the lab.
            endpoint: What it calls the endpoint; None: as the lab.
        """
        settings = AdapterSettings(
            endpoint or self._lab.endpoint,
            {**self._lab.settings, **more},
            self._lab.secret_files,
            now_s=now_s or self._lab.now_s,
        )
        hypervisor = unguarded(self._name, settings)
        self._connected.append(hypervisor)
        return hypervisor

    def close(self) -> None:
        """Close all that was connected."""
        for hypervisor in self._connected:
            hypervisor.close()


class OthersContract:
    """Beside `HypervisorContract`. Subclasses give `hypervisor`, `lab` and `bench`."""

    # -- the truth ----------------------------------------------------------------------------------------

    def test_the_lab_sees_a_running_guest_live(self, lab: Lab, guest: GuestRef) -> None:
        """Else the tests of the truth show nothing."""
        assert lab.lives(guest)

    @every_end
    def test_whoever_reads_off_does_not_live(
        self, hypervisor: Hypervisor, lab: Lab, guest: GuestRef, end: Ending
    ) -> None:
        end(lab, guest)
        eventually_reads(hypervisor, lab, guest, PowerState.STOPPED)
        assert not lab.lives(guest)

    def test_whoever_reads_off_after_a_stop_does_not_live(
        self, hypervisor: Hypervisor, lab: Lab, guest: GuestRef
    ) -> None:
        order(hypervisor.stop, guest)
        eventually_reads(hypervisor, lab, guest, PowerState.STOPPED)
        assert not lab.lives(guest)

    @needs("pause")
    def test_whoever_reads_off_after_a_stop_of_a_pause_does_not_live(
        self, hypervisor: Hypervisor, lab: Lab, guest: GuestRef
    ) -> None:
        """A paused guest obeys nobody: a stop that only asks leaves it there, with its memory."""
        lab.pause(guest)
        assert lab.lives(guest)
        order(hypervisor.stop, guest)
        eventually_reads(hypervisor, lab, guest, PowerState.STOPPED)
        assert not lab.lives(guest)

    @needs("pause")
    def test_a_guest_that_cannot_obey_is_not_off(
        self, bench: Bench, hypervisor: Hypervisor, lab: Lab, guest: GuestRef
    ) -> None:
        """Whatever is answered to a request to shut down is no consent; and a request is no cut."""
        lab.pause(guest)
        run = eventually_reads(hypervisor, lab, guest, PowerState.PAUSED).incarnation
        with suppress(HypervisorError):
            order(hypervisor.shutdown, guest)
        for reader in (hypervisor, bench.connect()):
            after = reader.read(guest)
            assert (after.power_state, after.incarnation) == (PowerState.PAUSED, run)
        assert lab.lives(guest)

    @needs("hold")
    def test_a_guest_that_outlives_its_stop_is_not_off(
        self, bench: Bench, hypervisor: Hypervisor, lab: Lab, guest: GuestRef
    ) -> None:
        """That an order was sent, or answered with success, says nothing: its process may hang."""
        run = hypervisor.read(guest).incarnation
        lab.hold(guest)
        try:
            with suppress(HypervisorError):
                order(hypervisor.stop, guest, run)
            for reader in (hypervisor, bench.connect()):
                assert _OFF.isdisjoint(_states(reader, guest)), f"{guest} lives, and reads off"
            assert lab.lives(guest), "else the lab did not hold it, and nothing was shown"
        finally:
            lab.release(guest)
        eventually_reads(hypervisor, lab, guest, PowerState.STOPPED)
        assert not lab.lives(guest)

    @by_each_way
    def test_an_end_is_not_told_any_more_once_the_guest_was_started(
        self, hypervisor: Hypervisor, lab: Lab, guest: GuestRef, ask: Asking
    ) -> None:
        """Nobody waits here: an end that is kept for a moment, and dated afresh, is a living guest's."""
        lab.destroy(guest)
        lab.eventually(
            lambda: (
                {one.power_state for way in (_read, swept) for one in way(hypervisor, guest)}
                == {PowerState.STOPPED}
            ),
            f"{guest} told as off both ways",
        )
        lab.start(guest)
        assert lab.lives(guest)
        assert _OFF.isdisjoint(told.power_state for told in ask(hypervisor, guest))

    # -- who is who ---------------------------------------------------------------------------------------

    @pytest.mark.parametrize("kept", ["id", "name"])
    def test_a_guest_with_another_uuid_is_another_guest(
        self, hypervisor: Hypervisor, guest: GuestRef, kept: str
    ) -> None:
        """Ids and names are used again: the guest that was meant is not found, and must not be powered."""
        as_before = {kept: getattr(guest, kept)}
        stranger = replace(guest, **{"uuid": NOBODY, "id": NOBODY, "name": "nobody", **as_before})
        with pytest.raises(GuestNotFound):
            hypervisor.read(stranger)
        with pytest.raises(GuestNotFound):
            order(hypervisor.stop, stranger)
        assert hypervisor.read(guest).power_state is PowerState.RUNNING

    @pytest.mark.parametrize("uuid", ["same", "other"])
    @pytest.mark.parametrize("altered", ["shorter", "longer"])
    def test_a_guest_of_a_similar_id_is_another_guest(
        self, hypervisor: Hypervisor, guest: GuestRef, altered: str, uuid: str
    ) -> None:
        """What is found by the beginning of its id is somebody else: 10 and 101, web and web2."""
        similar = {"shorter": guest.id[:-1], "longer": f"{guest.id}0"}[altered]
        stranger = replace(guest, id=similar, uuid={"same": guest.uuid, "other": NOBODY}[uuid])
        with pytest.raises(GuestNotFound):
            hypervisor.read(stranger)
        with pytest.raises(GuestNotFound):
            order(hypervisor.stop, stranger)
        assert hypervisor.read(guest).power_state is PowerState.RUNNING

    def test_no_two_of_its_runs_are_called_alike(
        self, hypervisor: Hypervisor, lab: Lab, guest: GuestRef
    ) -> None:
        running, ended = [hypervisor.read(guest).incarnation], []
        for _ in range(RUNS - 1):
            lab.destroy(guest)
            ended.append(eventually_reads(hypervisor, lab, guest, PowerState.STOPPED).incarnation)
            lab.start(guest)
            running.append(eventually_reads(hypervisor, lab, guest, PowerState.RUNNING).incarnation)
        lab.destroy(guest)
        ended.append(eventually_reads(hypervisor, lab, guest, PowerState.STOPPED).incarnation)
        assert (len(set(running)), len(set(ended))) == (RUNS, RUNS)

    # -- several agents, and the next one -------------------------------------------------------------------

    def test_every_agent_calls_the_run_and_the_witness_alike(
        self, bench: Bench, hypervisor: Hypervisor, guest: GuestRef
    ) -> None:
        """What one agent writes on a Node, another has to recognize; and so has this one after a restart."""
        first, second = hypervisor.read(guest), bench.connect().read(guest)
        assert second.incarnation == first.incarnation
        assert second.witness == first.witness
        assert second.guest == first.guest

    def test_the_witness_and_the_host_are_the_same_whatever_the_endpoint_is_called(
        self, bench: Bench, hypervisor: Hypervisor, guest: GuestRef
    ) -> None:
        """What they are called by is the hypervisor's own: two names of one endpoint are one witness."""
        first = hypervisor.read(guest)
        second = bench.connect(endpoint=OTHERWISE).read(replace(guest, endpoint=OTHERWISE))
        assert second.guest == replace(first.guest, endpoint=OTHERWISE)
        assert second.witness == first.witness

    def test_two_agents_are_told_the_same_identity_whatever_they_call_it(
        self, bench: Bench, hypervisor: Hypervisor
    ) -> None:
        """By it agents agree who gives it orders, and which guest a node is."""
        assert bench.connect(endpoint=OTHERWISE).describe().identity == hypervisor.describe().identity

    def test_an_agent_that_comes_later_reads_off_as_well(
        self, bench: Bench, hypervisor: Hypervisor, lab: Lab, guest: GuestRef
    ) -> None:
        lab.destroy(guest)
        before = eventually_reads(hypervisor, lab, guest, PowerState.STOPPED)
        later = bench.connect().read(guest)
        assert (later.power_state, later.settled, later.conclusive) == (PowerState.STOPPED, True, True)
        assert later.incarnation == before.incarnation

    # -- one guest that cannot be read ----------------------------------------------------------------------

    @needs("spoil")
    def test_a_guest_that_cannot_be_read_is_unknown_and_hides_no_other(
        self, hypervisor: Hypervisor, lab: Lab, guest: GuestRef
    ) -> None:
        other = lab.make_guest()
        hypervisor.sweep()
        lab.spoil(guest)
        assert [told.power_state for told in swept(hypervisor, guest)] == [PowerState.UNKNOWN]
        assert [told.power_state for told in swept(hypervisor, other)] == [PowerState.RUNNING]
        try:
            state = hypervisor.read(guest).power_state
        except GuestNotFound:
            raise
        except HypervisorError:
            return
        assert state is PowerState.UNKNOWN

    # -- how it answers -----------------------------------------------------------------------------------

    def test_evidence_bears_the_first_time_that_was_asked_for(self, bench: Bench, guest: GuestRef) -> None:
        """The clock ticks with each look at it, so that evidence dated at the end of its call shows."""
        ticks = itertools.count(1000)
        hypervisor = bench.connect(now_s=lambda: float(next(ticks)))
        before_s = next(ticks)
        assert hypervisor.read(guest).observed_at_s == before_s + 1
        before_s = next(ticks)
        assert [told.observed_at_s for told in swept(hypervisor, guest)] == [before_s + 1]

    def test_fencers_guard_takes_every_answer(
        self, hypervisor: Hypervisor, lab: Lab, guest: GuestRef
    ) -> None:
        """What cannot be is UNKNOWN to fencer, so that such guests were never fenced."""
        guarded = Guarded(lab.endpoint, hypervisor, lab.now_s)

        def answers() -> list[tuple[object, ...]]:
            return [_essence(one) for one in (guarded.read(guest), *swept(guarded, guest))]

        assert guarded.describe() == hypervisor.describe()
        assert answers() == [_essence(one) for one in (hypervisor.read(guest), *swept(hypervisor, guest))]
        lab.destroy(guest)
        eventually_reads(guarded, lab, guest, PowerState.STOPPED)
        assert [essence[1] for essence in answers()] == [PowerState.STOPPED] * 2
        assert guarded.stop_settings(guest) == hypervisor.stop_settings(guest)

    def test_it_can_be_asked_from_several_threads(self, hypervisor: Hypervisor, guest: GuestRef) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            readings = list(pool.map(lambda _: hypervisor.read(guest), range(AT_ONCE * 4)))
            sweeps = list(pool.map(lambda _: swept(hypervisor, guest), range(AT_ONCE * 4)))
        assert {one.power_state for one in readings} == {PowerState.RUNNING}
        assert {one.power_state for (one,) in sweeps} == {PowerState.RUNNING}

    def test_each_thread_is_answered_about_the_guest_that_it_asked_for(
        self, hypervisor: Hypervisor, lab: Lab, guest: GuestRef
    ) -> None:
        other = lab.make_guest()
        lab.destroy(other)
        eventually_reads(hypervisor, lab, other, PowerState.STOPPED)
        at_once = threading.Barrier(AT_ONCE)

        def ask(thread: int) -> list[Evidence]:
            at_once.wait(lab.patience_s)
            return [hypervisor.read((guest, other)[thread % 2]) for _ in range(ROUNDS)]

        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(ask, range(AT_ONCE)))
        told = [{(one.guest.key, one.power_state) for one in answer} for answer in answers]
        right = [{(guest.key, PowerState.RUNNING)}, {(other.key, PowerState.STOPPED)}]
        assert told == right * (AT_ONCE // 2)

    def test_it_refuses_a_setting_that_it_does_not_know(self, bench: Bench) -> None:
        """A key with a typing error in it would else mean nothing, in silence."""
        with pytest.raises(ConfigError, match=NO_SUCH_SETTING):
            bench.connect(more={NO_SUCH_SETTING: True})

    def test_it_can_be_subscribed_to_and_nudged_before_it_was_ever_asked(self, bench: Bench) -> None:
        """Whether it tells of anything is its own affair; all have to return."""
        hypervisor = bench.connect()
        hypervisor.subscribe(lambda: None)
        hypervisor.nudge("anybody")
        hypervisor.attend(())


_OFF = frozenset({PowerState.STOPPED, PowerState.ABSENT})


def _states(hypervisor: Hypervisor, guest: GuestRef) -> set[PowerState]:
    """Return what is told of a guest both ways; an error tells nothing."""
    told = set()
    for ask in (_read, swept):
        with suppress(HypervisorUnreachable, HypervisorProtocol):
            told |= {one.power_state for one in ask(hypervisor, guest)}
    return told


def _essence(evidence: Evidence) -> tuple[object, ...]:
    """Return what two readings of an unchanged guest have in common."""
    return (
        evidence.guest,
        evidence.power_state,
        evidence.settled,
        evidence.incarnation,
        evidence.conclusive,
        evidence.witness,
    )
