"""The example adapter with one mistake each, and the test of the contract that has to find it.

Each is a mistake that somebody could make who writes an adapter; most have been made, by fence agents or by
drafts of fencer's own. `tests/contract/test_contract_finds.py` installs each as an adapter of its own.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

from fencer_cells import CellHypervisor, cell
from fencer_cells.lab import CellLab

from fencer.core.model import Evidence, GuestRef, PowerState, Proof
from fencer.errors import (
    GuestNotFound,
    HypervisorError,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.hypervisors.adapters import Adapter
from fencer.ports import StopSettings

OFF, ON, PAUSED, UNKNOWN = PowerState.STOPPED, PowerState.RUNNING, PowerState.PAUSED, PowerState.UNKNOWN
CAUGHT_BY: dict[str, str] = {}
"""Mutant → the test of the contract that finds it."""


class ImpatientLab(CellLab):
    """The same lab for what would wait in vain."""

    patience_s: ClassVar[float] = 0.5


def caught_by(test: str) -> Callable[[type], type]:
    """Name the test, and make a class an adapter."""

    def named(mutant: type) -> type:
        CAUGHT_BY[mutant.__name__] = test
        mutant.ADAPTER = Adapter(connect=mutant, api=1)
        return mutant

    return named


class Misread(CellHypervisor):
    """Makes something else of each reading."""

    def says(self, evidence: Evidence) -> Any:
        return evidence

    def _look(self, guest: GuestRef, witness: str, began_s: float) -> Any:
        return self.says(super()._look(guest, witness, began_s))


# -- states -------------------------------------------------------------------------------------------------


@caught_by("test_a_guest_that_cannot_be_read_is_unknown_and_hides_no_other")
class ElseOff(Misread):
    def says(self, evidence):
        return replace(evidence, power_state=OFF) if evidence.power_state is UNKNOWN else evidence


@caught_by("test_a_paused_guest_is_paused_in_the_same_incarnation")
class PausedIsOff(Misread):
    def says(self, evidence):
        return replace(evidence, power_state=OFF) if evidence.power_state is PAUSED else evidence


@caught_by("test_a_paused_guest_is_paused_in_the_same_incarnation")
class PausedIsRunning(Misread):
    def says(self, evidence):
        return replace(evidence, power_state=ON) if evidence.power_state is PAUSED else evidence


@caught_by("test_a_paused_guest_is_paused_in_the_same_incarnation")
class EveryPauseIsAStorageError(Misread):
    def says(self, evidence):
        return replace(evidence, io_error=evidence.power_state is PAUSED)


@caught_by("test_a_running_guest_reads_running")
class StateAsText(Misread):
    def says(self, evidence):
        return replace(evidence, power_state=str(evidence.power_state))


@caught_by("test_a_running_guest_reads_running")
class NeverSettled(Misread):
    def says(self, evidence):
        return replace(evidence, settled=False)


@caught_by("test_a_running_guest_reads_running")
class NeverConclusive(Misread):
    def says(self, evidence):
        return replace(evidence, conclusive=False)


@caught_by("test_a_running_guest_reads_running")
class EveryRunWasRestored(Misread):
    def says(self, evidence):
        return replace(evidence, cold_start=False)


@caught_by("test_a_running_guest_reads_running")
class SaysNothingToPeople(Misread):
    def says(self, evidence):
        return replace(evidence, raw="")


@caught_by("test_a_guest_whose_run_ended_reads_stopped")
class ClaimsMoreProofThanItHas(Misread):
    def says(self, evidence):
        return replace(evidence, proof=Proof.HA_RECOVERY)


# -- runs ---------------------------------------------------------------------------------------------------


@caught_by("test_a_running_guest_reads_running")
class NamesNoRun(Misread):
    def says(self, evidence):
        return replace(evidence, incarnation=None)


@caught_by("test_each_run_has_its_own_incarnation")
class OneRunForEver(Misread):
    def says(self, evidence):
        return replace(evidence, incarnation="1")


@caught_by("test_no_two_of_its_runs_are_called_alike")
class NamesRunsByTurns(Misread):
    """Tells a run from the one before it, and calls the one after it as that again."""

    _runs: ClassVar[dict[Any, list[str]]] = {}

    def says(self, evidence):
        runs = self._runs.setdefault(evidence.guest.uuid, [])
        if evidence.incarnation is None:
            return evidence
        if evidence.incarnation not in runs:
            runs.append(evidence.incarnation)
        return replace(evidence, incarnation=("odd", "even")[runs.index(evidence.incarnation) % 2])


@caught_by("test_a_paused_guest_is_paused_in_the_same_incarnation")
class APauseIsAnotherRun(Misread):
    def says(self, evidence):
        return replace(evidence, incarnation=f"{evidence.incarnation} {evidence.power_state}")


@caught_by("test_a_start_between_two_off_readings_changes_the_incarnation")
class EveryEndIsTheSame(Misread):
    def says(self, evidence):
        return replace(evidence, incarnation="off") if evidence.power_state is OFF else evidence


@caught_by("test_a_guest_that_stays_off_keeps_its_incarnation")
class EveryReadingIsAnotherEnd(Misread):
    def says(self, evidence):
        return (
            replace(evidence, incarnation=str(time.monotonic_ns()))
            if evidence.power_state is OFF
            else evidence
        )


@caught_by("test_every_agent_calls_the_run_and_the_witness_alike")
class CountsRunsByItself(Misread):
    def says(self, evidence):
        return replace(evidence, incarnation=f"{id(self)} {evidence.incarnation}")


@caught_by("test_an_agent_that_comes_later_reads_off_as_well")
class KnowsOnlyWhomItSawRun(Misread):
    def __init__(self, settings):
        super().__init__(settings)
        self._seen = set()

    def says(self, evidence):
        if evidence.power_state is ON:
            self._seen.add(evidence.guest.key)
        return evidence if evidence.guest.key in self._seen else replace(evidence, power_state=UNKNOWN)


# -- who says so, of whom, and when -------------------------------------------------------------------------


@caught_by("test_evidence_names_its_witness_whatever_the_endpoint_is_called")
class NamesNoWitness(Misread):
    def says(self, evidence):
        return replace(evidence, witness="")


@caught_by("test_evidence_names_its_witness_whatever_the_endpoint_is_called")
class CallsItselfAsTheConfigurationDoes(Misread):
    def says(self, evidence):
        return replace(evidence, witness=self.endpoint)


@caught_by("test_the_witness_and_the_host_are_the_same_whatever_the_endpoint_is_called")
class CallsItselfAlmostAsTheConfigurationDoes(Misread):
    def says(self, evidence):
        return replace(evidence, witness=f"farm {self.endpoint}")


@caught_by("test_the_witness_and_the_host_are_the_same_whatever_the_endpoint_is_called")
class CallsItsHostAsTheConfigurationDoes(Misread):
    def says(self, evidence):
        return replace(evidence, guest=replace(evidence.guest, host=self.endpoint))


@caught_by("test_every_agent_calls_the_run_and_the_witness_alike")
class MakesUpItsName(Misread):
    def says(self, evidence):
        return replace(evidence, witness=f"farm {id(self)}")


@caught_by("test_evidence_says_whom_it_is_about")
class UuidInCapitals(Misread):
    def says(self, evidence):
        return replace(evidence, guest=replace(evidence.guest, uuid=evidence.guest.uuid.upper()))


@caught_by("test_evidence_says_whom_it_is_about")
class IdIsThePath(Misread):
    def says(self, evidence):
        return replace(evidence, guest=replace(evidence.guest, id=str(self._farm / evidence.guest.id)))


@caught_by("test_evidence_says_whom_it_is_about")
class EndpointOfItsOwn(Misread):
    def says(self, evidence):
        return replace(evidence, guest=replace(evidence.guest, endpoint="cells"))


@caught_by("test_evidence_is_dated_by_the_beginning_of_its_call")
class DatedByTheWall(Misread):
    def says(self, evidence):
        return replace(evidence, observed_at_s=time.time())


@caught_by("test_evidence_bears_the_first_time_that_was_asked_for")
class DatedAtTheEnd(Misread):
    def says(self, evidence):
        return replace(evidence, observed_at_s=self._now_s())


@caught_by("test_guests_are_told_apart")
class AnswersOfAnother(CellHypervisor):
    def read(self, guest):
        others = [one for one in self.sweep() if one.guest.key != guest.key]
        return replace(others[0], guest=guest) if others else super().read(guest)


@caught_by("test_a_guest_with_another_uuid_is_another_guest[name]")
class FindsByName(CellHypervisor):
    def _found(self, guest):
        return super()._found(next((one for one in self._listed()[0] if one.name == guest.name), guest))


@caught_by("test_a_guest_with_another_uuid_is_another_guest[id]")
class FindsById(CellHypervisor):
    def _found(self, guest):
        return super()._found(next((one for one in self._listed()[0] if one.id == guest.id), guest))


class FindsAsWritten(CellHypervisor):
    """Finds somebody, and says of them what was asked for: whoever it was."""

    def meant(self, listed, asked):
        raise NotImplementedError

    def _found(self, guest):
        found = next((one for one in self._listed()[0] if self.meant(one, guest)), None)
        return super()._found(found or guest)

    def read(self, guest):
        return replace(super().read(guest), guest=guest)


@caught_by("test_a_guest_of_a_similar_id_is_another_guest[shorter-other]")
class FindsByTheBeginningOfItsId(FindsAsWritten):
    def meant(self, listed, asked):
        return listed.id.startswith(asked.id) and (listed.uuid == asked.uuid or listed.id != asked.id)


@caught_by("test_a_guest_of_a_similar_id_is_another_guest[longer-same]")
class FindsWhoseIdBeginsSo(FindsAsWritten):
    def meant(self, listed, asked):
        return asked.id.startswith(listed.id) and listed.uuid == asked.uuid


# -- memory -------------------------------------------------------------------------------------------------


@caught_by("test_a_paused_guest_is_paused_in_the_same_incarnation")
class KeepsItsFirstReading(CellHypervisor):
    def __init__(self, settings):
        super().__init__(settings)
        self._first = {}

    def read(self, guest):
        return replace(self._first.setdefault(guest.key, super().read(guest)), observed_at_s=self._now_s())


@caught_by("test_a_sweep_tells_each_guest_once_and_the_same_as_a_reading[destroyed]")
class KeepsItsFirstSweep(CellHypervisor):
    _kept = None

    def sweep(self):
        if self._kept is None:
            self._kept = super().sweep()
        return self._kept


class KeepsAnEndForOneMoreAnswer(CellHypervisor):
    """Whoever was off is told so once more, dated afresh, as by a cache that is soon refreshed."""

    def __init__(self, settings):
        super().__init__(settings)
        self._kept = {}

    def again(self, told):
        kept = self._kept.pop(told.guest.key, None)
        if kept is None and told.power_state is OFF:
            self._kept[told.guest.key] = told
        return told if kept is None else replace(kept, observed_at_s=told.observed_at_s)


@caught_by("test_an_end_is_not_told_any_more_once_the_guest_was_started[read]")
class ReadsAnEndOnceMore(KeepsAnEndForOneMoreAnswer):
    def read(self, guest):
        return self.again(super().read(guest))


@caught_by("test_an_end_is_not_told_any_more_once_the_guest_was_started[sweep]")
class SweepsAnEndOnceMore(KeepsAnEndForOneMoreAnswer):
    def sweep(self):
        return [self.again(told) for told in super().sweep()]


# -- sweeps -------------------------------------------------------------------------------------------------


@caught_by("test_a_sweep_tells_each_guest_once_and_the_same_as_a_reading[destroyed]")
class SweepsWhoRuns(CellHypervisor):
    def sweep(self):
        return [one for one in super().sweep() if one.power_state is ON]


@caught_by("test_a_sweep_tells_each_guest_once_and_the_same_as_a_reading[running]")
class SweepsTwice(CellHypervisor):
    def sweep(self):
        return [*super().sweep(), *super().sweep()]


@caught_by("test_a_guest_that_cannot_be_read_is_unknown_and_hides_no_other")
class SweepFailsWithOne(CellHypervisor):
    def sweep(self):
        found = super().sweep()
        if any(one.power_state is UNKNOWN for one in found):
            raise HypervisorProtocol(f"{self.endpoint}: one cannot be read")
        return found


@caught_by("test_a_guest_that_cannot_be_read_is_unknown_and_hides_no_other")
class SweepLeavesOutWhoCannotBeRead(CellHypervisor):
    def sweep(self):
        return [one for one in super().sweep() if one.power_state is not UNKNOWN]


# -- errors -------------------------------------------------------------------------------------------------


@caught_by("test_nothing_is_known_of_an_endpoint_that_is_cut_off")
class AnEndpointThatIsCutOffHasNoGuests(CellHypervisor):
    def sweep(self):
        try:
            return super().sweep()
        except HypervisorUnreachable:
            return []


@caught_by("test_nothing_is_known_of_an_endpoint_that_is_cut_off")
class WhoCannotBeAskedForIsNotThere(CellHypervisor):
    def read(self, guest):
        try:
            return super().read(guest)
        except HypervisorUnreachable as error:
            raise GuestNotFound(f"{self.endpoint}: no such guest") from error


@caught_by("test_nothing_is_known_of_an_endpoint_that_is_cut_off")
class LetsForeignErrorsOut(CellHypervisor):
    def _listed(self):
        (self._farm / "farm").read_text()
        return super()._listed()


@caught_by("test_a_guest_that_was_never_there_is_not_found")
class WhoIsNotThereIsOff(CellHypervisor):
    def read(self, guest):
        try:
            return super().read(guest)
        except GuestNotFound:
            return Evidence(
                guest, OFF, True, "0", None, "no such cell", "lock", self._now_s(), witness="farm"
            )


@caught_by("test_a_guest_that_was_never_there_is_not_found")
class WhoIsNotThereHasEnded(WhoIsNotThereIsOff):
    def read(self, guest):
        found = super().read(guest)
        gone = found.raw == "no such cell"
        return replace(found, power_state=PowerState.ABSENT, end_recorded=True) if gone else found


@caught_by("test_nothing_is_known_of_an_endpoint_that_is_cut_off")
class NamesNoEndpointInErrors(CellHypervisor):
    def _listed(self):
        try:
            return super()._listed()
        except HypervisorUnreachable as error:
            raise HypervisorUnreachable("no farm") from error


# -- orders -------------------------------------------------------------------------------------------------


@caught_by("test_stop_works_on_a_paused_guest")
class StopOnlyAsks(CellHypervisor):
    def stop(self, guest, incarnation, not_after):
        self._signal(signal.SIGTERM, guest, incarnation, not_after)


@caught_by("test_a_guest_that_cannot_obey_is_not_off")
class ShutdownCuts(CellHypervisor):
    def shutdown(self, guest, incarnation, not_after):
        self._signal(signal.SIGKILL, guest, incarnation, not_after)


class Believes(CellHypervisor):
    """Takes an order for what became of it."""

    def __init__(self, settings):
        super().__init__(settings)
        self._off = set()

    def read(self, guest):
        found = super().read(guest)
        return replace(found, power_state=OFF) if guest.key in self._off else found


@caught_by("test_whoever_reads_off_after_a_stop_does_not_live")
class OffOnceAStopIsOrdered(Believes):
    def stop(self, guest, incarnation, not_after):
        self._look_again(guest, incarnation, not_after)
        self._off.add(guest.key)


@caught_by("test_a_guest_that_others_start_after_our_stop_reads_running")
class OffAfterAStopForEver(Believes):
    def stop(self, guest, incarnation, not_after):
        super().stop(guest, incarnation, not_after)
        self._off.add(guest.key)


@caught_by("test_a_guest_that_outlives_its_stop_is_not_off")
class TheRunThatWasStoppedIsOff(CellHypervisor):
    """Takes the answer to an order for what became of it, though of this run alone."""

    def __init__(self, settings):
        super().__init__(settings)
        self._stopped = set()

    def stop(self, guest, incarnation, not_after):
        run = self._look_again(guest, incarnation, not_after).incarnation
        super().stop(guest, incarnation, not_after)
        self._stopped.add(run)

    def read(self, guest):
        found = super().read(guest)
        return replace(found, power_state=OFF) if found.incarnation in self._stopped else found


@caught_by("test_a_guest_that_outlives_its_stop_is_not_off")
class WhoIsTracedIsOff(Misread):
    """Takes whoever is about to end for ended."""

    def stop(self, guest, incarnation, not_after):
        super().stop(guest, incarnation, not_after)
        self._await_end(cell.holder(self._farm / guest.id))

    def _await_end(self, pid):
        """On a busy machine a process that was killed comes to its end much later than to be read."""
        with suppress(OSError):
            while pid and cell.process(pid).state not in {"t", "X", "Z"}:
                os.sched_yield()

    def says(self, evidence):
        return replace(evidence, power_state=OFF) if "state t" in evidence.raw else evidence


@caught_by("test_a_guest_that_cannot_obey_is_not_off")
class OffOnceAShutdownIsAskedFor(Believes):
    def shutdown(self, guest, incarnation, not_after):
        super().shutdown(guest, incarnation, not_after)
        self._off.add(guest.key)


@caught_by("test_stop_cuts_the_power_and_start_boots")
class StartForgotten(CellHypervisor):
    def start(self, guest, incarnation, not_after):
        self._look_again(guest, incarnation, not_after)


@caught_by("test_start_of_a_running_guest_leaves_it_in_its_run")
class StartBeginsAgain(CellHypervisor):
    def start(self, guest, incarnation, not_after):
        with suppress(HypervisorError):
            self.stop(guest, incarnation, not_after)
            while cell.holder(self._farm / guest.id):
                time.sleep(0.001)
        super().start(guest, None, not_after)


@caught_by("test_an_order_that_was_given_up_is_not_carried_out[stop]")
class ObeysTooLate(CellHypervisor):
    def _look_again(self, guest, incarnation, not_after):
        with suppress(HypervisorUnreachable):
            super()._look_again(guest, incarnation, not_after)


@caught_by("test_an_order_for_an_earlier_run_does_not_reach_the_present_one[stop]")
class ObeysForAnyRun(CellHypervisor):
    def _look_again(self, guest, _incarnation, not_after):
        return super()._look_again(guest, None, not_after)


@caught_by("test_a_start_for_an_earlier_end_is_not_carried_out")
class StartsAfterAnyEnd(CellHypervisor):
    def start(self, guest, _incarnation, not_after):
        super().start(guest, None, not_after)


@caught_by("test_a_guest_that_is_not_there_cannot_be_powered[stop]")
class StopsNobodyInSilence(CellHypervisor):
    def stop(self, guest, incarnation, not_after):
        with suppress(GuestNotFound):
            super().stop(guest, incarnation, not_after)


# -- the rest -----------------------------------------------------------------------------------------------


@caught_by("test_it_refuses_a_setting_that_it_does_not_know")
class TakesAnySetting(CellHypervisor):
    def __init__(self, settings):
        super().__init__(replace(settings, settings={"farm": settings.settings["farm"]}))


@caught_by("test_it_says_who_it_is")
class HasNoVersion(CellHypervisor):
    def describe(self):
        return replace(super().describe(), version="")


@caught_by("test_its_identity_is_the_same_every_time_and_no_configurations_name")
class IsAnotherOneEachTime(CellHypervisor):
    def describe(self):
        return replace(super().describe(), identity=f"cells:{time.monotonic_ns()}")


@caught_by("test_its_identity_is_the_same_every_time_and_no_configurations_name")
class GoesByTheConfigurationsName(CellHypervisor):
    def describe(self):
        return replace(super().describe(), identity=self.endpoint)


@caught_by("test_two_agents_are_told_the_same_identity_whatever_they_call_it")
class IsAnotherOneForEachAgent(CellHypervisor):
    def describe(self):
        return replace(super().describe(), identity=f"cells:{id(self)}")


@caught_by("test_what_is_set_for_its_stops_is_a_time_with_its_source_or_nothing")
class StopsAtOnceForNobodysSake(CellHypervisor):
    def stop_settings(self, guest):
        super().stop_settings(guest)
        return StopSettings(0.0, "")


@caught_by("test_it_can_be_closed_twice")
class ClosesOnce(CellHypervisor):
    def close(self):
        del self._farm


@caught_by("test_it_can_be_subscribed_to_and_nudged_before_it_was_ever_asked")
class HasNoEvents(CellHypervisor):
    def subscribe(self, wake):
        raise NotImplementedError


@caught_by("test_a_hooks_nudge_does_no_harm")
class KnowsWhomAHookMeans(CellHypervisor):
    def nudge(self, guest):
        cell.holder(self._farm / guest)


@caught_by("test_to_be_told_which_guests_are_nodes_does_no_harm")
class KnowsAllNodes(CellHypervisor):
    def attend(self, guests):
        for guest in guests:
            self.read(guest)


@caught_by("test_it_can_be_asked_from_several_threads")
class BelongsToOneThread(CellHypervisor):
    _thread = None

    def _listed(self):
        self._thread = self._thread or threading.get_ident()
        if self._thread != threading.get_ident():
            raise RuntimeError("made in another thread")
        return super()._listed()


@caught_by("test_each_thread_is_answered_about_the_guest_that_it_asked_for")
class HasOnePlaceForItsAnswers(CellHypervisor):
    def _look(self, guest, witness, began_s):
        self._answer = super()._look(guest, witness, began_s)
        time.sleep(0.001)
        return replace(self._answer, guest=guest)


@caught_by("test_each_thread_is_answered_about_the_guest_that_it_asked_for")
class HasOnePlaceForItsQuestions(CellHypervisor):
    def read(self, guest):
        self._meant = guest
        time.sleep(0.001)
        return super().read(self._meant)


@caught_by("test_fencers_guard_takes_every_answer")
class DescribesItselfInAList(CellHypervisor):
    def describe(self):
        return replace(super().describe(), remarks=["none"])


@caught_by("test_fencers_guard_takes_every_answer")
class GroupsInAList(Misread):
    def says(self, evidence):
        return replace(evidence, groups=["tag:k8s"])
