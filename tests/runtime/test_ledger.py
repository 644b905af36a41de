"""What agents share, over Leases in memory: each write fails, or is tried again, where another was faster."""

from dataclasses import replace

import pytest

from fencer.core.election import CLUSTER_LEASE
from fencer.core.ledger import BRAKE, POWER, PowerOrder, read_ledger
from fencer.core.model import Intent, StopGuest
from fencer.core.times import Moment
from fencer.errors import ClusterConflict, ClusterDenied, ClusterProtocol, ClusterUnreachable
from fencer.runtime.ledger import SharedLedger
from fencer.simulation.faults import What
from tests.runtime.stagehand import AT_ONCE, Stagehand

YES = lambda *_: True  # noqa: E731 - said so often


@pytest.fixture
def stage():
    return Stagehand(AT_ONCE)


def ledger(stage):
    return SharedLedger(stage.world, stage.agent.shared.api)


def utc(stage):
    return stage.simulation.clock.utc()


def now(stage):
    return Moment.of(utc(stage), 0.0)


def written(stage):
    return read_ledger(stage.simulation.leases.read_lease(CLUSTER_LEASE))


def order(stage, by="fencer@a"):
    return PowerOrder(utc(stage), by, "lab/k8s-2")


class TestSlots:
    def test_a_slot_is_there_before_anything_is_done(self, stage):
        ledger(stage).reserve(("uid", "host/pve1"), now(stage), YES)
        assert set(written(stage).slots) == {"uid", "host/pve1"}

    def test_two_agents_that_write_at_once_both_have_theirs(self, stage):
        one, other = ledger(stage), ledger(stage)
        for each in (one, other):
            each.look(now(stage))
        one.reserve(("a",), now(stage), YES)
        other.reserve(("b",), now(stage), YES)
        assert set(written(stage).slots) == {"a", "b"}

    def test_whoever_comes_too_late_is_told_what_is_there_by_then(self, stage):
        one, other, seen = ledger(stage), ledger(stage), []
        other.look(now(stage))
        one.reserve(("a",), now(stage), YES)

        def fits(_slot, ledger):
            seen.append(set(ledger.slots))
            return not ledger.slots

        with pytest.raises(ClusterConflict, match="other agents have used up what max_fenced allows"):
            other.reserve(("b",), now(stage), fits)
        assert seen == [set(), {"a"}]

    def test_one_write_serves_those_that_come_next_as_far_as_it_goes(self, stage):
        mine = ledger(stage)
        mine.reserve(("a",), now(stage), lambda _, ledger: len(ledger.slots) < 2, ("b", "c"))
        assert set(written(stage).slots) == {"a", "b"}
        version = stage.simulation.leases.read_lease(CLUSTER_LEASE).version
        mine.reserve(("b",), now(stage), lambda *_: False)
        assert stage.simulation.leases.read_lease(CLUSTER_LEASE).version == version


class TestTheWindow:
    def test_an_order_is_noted_before_it_is_given_and_can_be_taken_back(self, stage):
        mine, first, second = ledger(stage), order(stage), order(stage, "fencer@b")
        assert mine.take_window(first, now(stage), YES) is None
        assert mine.take_window(second, now(stage), YES) == first
        mine.give_back_window(second, first, now(stage))
        assert written(stage).power == first

    def test_an_order_since_is_not_taken_back(self, stage):
        one, other, first = ledger(stage), ledger(stage), order(stage)
        one.take_window(first, now(stage), YES)
        other.take_window(order(stage, "fencer@b"), now(stage), YES)
        with pytest.raises(ClusterConflict, match="another agent has stopped a guest since"):
            one.give_back_window(first, None, now(stage))
        assert written(stage).power.by == "fencer@b"

    def test_another_agents_order_is_seen_by_its_time(self, stage):
        ledger(stage).take_window(order(stage), now(stage), YES)
        stage.simulation.clock.advance(20.0)
        mine = ledger(stage)
        mine.look(now(stage))
        assert mine.power_age_s(now(stage)) == pytest.approx(20.0, abs=1.0)

    def test_an_order_that_this_agent_has_known_for_a_minute_is_as_old_whatever_clocks_show(self, stage):
        """Else the window would last ten minutes longer where the API server's clock is so far ahead."""
        mine, ahead = ledger(stage), Moment.of(utc(stage), 600.0)
        mine.take_window(PowerOrder(ahead.latest_utc, "fencer@a", "lab/k8s-2"), ahead, YES)
        stage.simulation.clock.advance(60.0)
        assert mine.power_age_s(now(stage)) == pytest.approx(60.0)
        other = ledger(stage)
        other.look(now(stage))
        assert other.power_age_s(now(stage)) == 0.0
        assert SharedLedger(stage.world, stage.agent.shared.api).power_age_s(now(stage)) is None

    def test_an_order_that_was_noted_since_has_an_age_of_its_own(self, stage):
        mine, other = ledger(stage), ledger(stage)
        mine.take_window(order(stage), now(stage), YES)
        stage.simulation.clock.advance(60.0)
        other.take_window(order(stage, "fencer@b"), now(stage), YES)
        mine.look(now(stage))
        assert mine.power_age_s(now(stage)) == pytest.approx(0.0)


class TestWhereThereIsNone:
    def test_an_agent_counts_for_itself_and_stops_nobody(self, stage):
        """Somebody may have deleted it a moment after another agent has stopped a guest."""
        stage.simulation.leases.remove(CLUSTER_LEASE)
        mine = ledger(stage)
        mine.reserve(("a",), now(stage), lambda *_: False)
        with pytest.raises(ClusterProtocol, match=r"no lease fencer-cluster .*`fencer setup kubernetes -c`"):
            mine.take_window(order(stage), now(stage), YES)
        assert (mine.slots(now(stage)), mine.power_age_s(now(stage))) == (frozenset(), None)

    def test_a_person_may_go_on(self, stage):
        stage.simulation.leases.remove(CLUSTER_LEASE)
        assert ledger(stage).take_window(order(stage), now(stage), lambda *_: False, by_hand=True) is None

    @pytest.mark.parametrize("kind", [ClusterProtocol, ClusterDenied])
    def test_one_that_cannot_be_written_keeps_nobody_from_being_fenced(self, stage, kind, caplog):
        """Somebody has filled it, or taken the right away: the API server refuses each write."""

        class Full:
            def __init__(self, leases):
                self.read_lease = leases.read_lease

            def write_lease(self, _record):
                raise kind("422: metadata.annotations: Too long")

        world = replace(stage.world, leases=Full(stage.simulation.leases))
        mine = SharedLedger(world, stage.agent.shared.api)
        mine.reserve(("a",), now(stage), YES)
        assert "the brake is not shared with other agents: 422" in caplog.text
        with pytest.raises(kind):
            mine.take_window(order(stage), now(stage), YES)

    def test_an_api_that_is_silent_keeps_everybody_from_acting(self, stage):
        stage.simulation.api.down_why = "no API server answers"
        with pytest.raises(ClusterUnreachable):
            ledger(stage).reserve(("a",), now(stage), YES)

    @pytest.mark.parametrize("key", [POWER, BRAKE])
    def test_one_that_cannot_be_read_keeps_guests_from_being_stopped_and_nodes_from_nothing(self, stage, key):
        stage.simulation.leases.annotate(CLUSTER_LEASE, key, '{"schema": 99}')
        mine = ledger(stage)
        mine.reserve(("a",), now(stage), YES)
        with pytest.raises(ClusterProtocol, match=f"annotation {key} of lease {CLUSTER_LEASE}"):
            mine.take_window(order(stage), now(stage), YES)

    def test_a_node_is_fenced_though_what_is_shared_cannot_be_read(self, stage):
        stage.run(30)
        stage.simulation.leases.annotate(CLUSTER_LEASE, BRAKE, "rubbish")
        stage.happen(What.CRASH)
        stage.run(30)
        assert stage.node().fenced


def test_a_stop_that_another_agent_has_forestalled_is_not_begun(stage):
    stage.run(30)
    stage.happen(What.PAUSE)
    scene = stage.agent.observer.look()
    afar = stage.agent.observer.observation(scene, scene.nodes["k8s-2"])
    seen = replace(stage.agent.observer.closer(scene, afar), incident="i", intent=Intent.WATCH)
    ledger(stage).take_window(order(stage, "fencer@b"), now(stage), YES)
    action = StopGuest(seen.candidates[0].guest, seen.evidence.incarnation)
    done = stage.agent.executor.carry_out(seen, action)
    assert (done.ok, str(done)) == (
        False,
        "changed meanwhile, looking again: another agent has just stopped a guest",
    )
    assert "stop" not in stage.calls
