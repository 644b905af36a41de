"""A node's guest that has lost its process is read live by the next sweep, and that is all that follows."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from functools import partial

import pytest

from fencer.core.model import GuestRef, PodView, PowerState
from fencer.core.policy import Mode, Policy
from fencer.errors import HypervisorDenied, HypervisorProtocol
from fencer.hypervisors.proxmox.errors import HostSilent, NotThere, ServerUnfit
from fencer.hypervisors.proxmox.look import Look
from fencer.hypervisors.proxmox.memory import SILENT_S, Memory
from fencer.hypervisors.proxmox.parse import Listing, Members, Row, Status
from fencer.hypervisors.proxmox.processes import ended_or_replaced
from fencer.hypervisors.proxmox.proof import Prover
from fencer.hypervisors.proxmox.sweep import RELEARN_S, Sweeper
from tests.hypervisors.proxmox.conftest import Home, serve
from tests.hypervisors.proxmox.finality import final
from tests.hypervisors.proxmox.nodes import Watch
from tests.hypervisors.proxmox.replay import ReplayApi
from tests.hypervisors.proxmox.test_sweeps import READ
from tests.support.pve import Daemon, Pmxcfs, PveCluster

NOW_S, PID = 1000.0, 352
SAME = {"vmid": 101, "status": "running", "pid": PID, "uptime": 99}


def list_of(host: str) -> str:
    return f"GET /nodes/{host}/qemu"


def attend(home: Home, *confs) -> None:
    home.hypervisor.attend([home.ref(conf) for conf in confs])


# -- what a list of processes says --------------------------------------------------------------------------


class Scene:
    """Guest 101, a node, last read running on pve1 as process `PID`; and what pve1 says of it now."""

    def __init__(self, **answers) -> None:
        self.memory = Memory(attended=frozenset({101}))
        self.memory.runs(101, "pve1", Status("running", "running", pid=PID, uptime_s=99), NOW_S - 2)
        self.api = ReplayApi({f"nodes/{host}/qemu": answer for host, answer in answers.items()})
        self.row = Row(101, "qemu", "pve1", "running", uptime_s=91)
        members = Members("lab", True, {"pve1": True, "pve2": True}, "pve1")
        self.look = Look(self.api, members, Listing({101: self.row}, {}), NOW_S, None)

    def ended(self, *rows: Row, look: Look | None = None) -> list[int]:
        return list(ended_or_replaced(look or self.look, self.memory, rows or (self.row,)))


@pytest.mark.parametrize(
    ("said", "ended"),
    [
        pytest.param([SAME], False, id="the same process"),
        pytest.param([{**SAME, "status": "stopped", "pid": None}], True, id="none any more"),
        pytest.param([{"vmid": 101, "status": "stopped"}], True, id="none, by a row without that key"),
        pytest.param([{**SAME, "pid": 353}], True, id="another process"),
        pytest.param([{**SAME, "vmid": "101", "pid": "352"}], False, id="numbers as texts"),
        pytest.param([{**SAME, "vmid": "101", "pid": "353"}], True, id="another one, as a text"),
        pytest.param([], False, id="not listed"),
        pytest.param([{**SAME, "vmid": 102, "pid": 9}], False, id="another guest's row"),
        pytest.param([{**SAME, "pid": None}], False, id="running, without a process"),
        pytest.param([{**SAME, "status": "stopped"}], False, id="stopped, with a process"),
        pytest.param([{**SAME, "status": "paused", "pid": 353}], False, id="a word that lists do not use"),
        pytest.param([{**SAME, "status": None, "pid": 353}], False, id="no word"),
        pytest.param([{**SAME, "status": ["stopped"], "pid": None}], False, id="a list for a word"),
        pytest.param([{**SAME, "vmid": True, "pid": 353}], False, id="a number that is none"),
        pytest.param([None, 7, "101", [], {}], False, id="rows that are none"),
        pytest.param([None, {"vmid": 101, "status": "stopped"}], True, id="one of them is one"),
        pytest.param({"101": "stopped"}, False, id="no list"),
        pytest.param(None, False, id="nothing"),
        pytest.param("stopped", False, id="a word"),
        pytest.param(NotThere("a guest left amid the list"), False, id="500: a configuration that is gone"),
        pytest.param(HypervisorDenied("403"), False, id="refused"),
        pytest.param(HypervisorProtocol("no JSON"), False, id="no JSON"),
        pytest.param(ServerUnfit("connection reset"), False, id="the asked server is gone"),
        pytest.param(HostSilent("595", "pve1"), False, id="the host is silent"),
    ],
)
def test_only_another_process_or_none_is_news(said, ended):
    scene = Scene(pve1=said)
    assert scene.ended() == [101] * ended
    again = replace(scene.look, began_s=NOW_S + 2)
    scene.api.answers["nodes/pve1/qemu"] = [{"vmid": 101, "status": "stopped"}]
    assert scene.ended(look=again) == [101] * (not isinstance(said, HostSilent))


def test_a_silent_host_is_left_alone_for_a_while():
    scene = Scene(pve1=HostSilent("595", "pve1"))
    for later_s in (0, 10, 20, 29, SILENT_S, SILENT_S + 2):
        scene.ended(look=replace(scene.look, began_s=NOW_S + later_s))
    assert scene.api.asked == ["nodes/pve1/qemu"] * 2


def of_no_node(scene: Scene) -> None:
    scene.memory.attended = frozenset({102})


def off(scene: Scene) -> None:
    scene.memory.is_off(101, PowerState.STOPPED, "off", NOW_S)


def never_read(scene: Scene) -> None:
    scene.memory.guests.clear()


def offline(scene: Scene) -> None:
    scene.look = replace(scene.look, members=replace(scene.look.members, online={"pve1": False}))


def unheard_of(scene: Scene) -> None:
    """The host has another name now."""
    scene.look = replace(scene.look, members=replace(scene.look.members, online={"pve9": True}))


@pytest.mark.parametrize("change", [of_no_node, off, never_read, offline, unheard_of])
def test_nobody_is_asked_about_a_guest(change):
    scene = Scene()  # which has no answer to anything
    change(scene)
    assert scene.ended() == []
    assert scene.api.asked == []


@pytest.mark.parametrize("process", [PID, 353, None])
def test_whoever_is_on_another_host_now_is_read_there(process):
    status = "stopped" if process is None else "running"
    scene = Scene(pve2=[{"vmid": 101, "status": status, "pid": process}])
    assert scene.ended(replace(scene.row, host="pve2")) == [101]


def test_but_not_before_it_is_listed_there():
    scene = Scene(pve2=[])
    assert scene.ended(replace(scene.row, host="pve2")) == []


def test_a_host_that_hangs_delays_no_other_and_its_late_answer_counts_for_nothing():
    hangs, came = threading.Event(), threading.Event()

    def late():
        hangs.wait()
        came.set()
        return [{"vmid": 102, "status": "stopped"}]

    scene = Scene(pve1=[{"vmid": 101, "status": "stopped"}], pve2=late)
    scene.memory.attended = frozenset({101, 102})
    scene.memory.runs(102, "pve2", Status("running", "running", pid=7), NOW_S - 2)
    rows = (scene.row, replace(scene.row, vmid=102, host="pve2"))
    try:
        assert scene.ended(*rows) == [101]
    finally:
        hangs.set()
    assert came.wait(10)
    assert scene.ended(*rows, look=replace(scene.look, began_s=NOW_S + 2)) == [101]
    assert scene.api.asked.count("nodes/pve2/qemu") == 1


# -- sweeps -------------------------------------------------------------------------------------------------


def test_one_call_more_for_each_host_that_runs_nodes(home):
    nodes = [home.guest(f"k8s-{number}", host=f"pve{number % 2 + 1}") for number in range(20)]
    for number in range(10):
        home.guest(f"other-{number}", host="pve3")
    home.watch(30)
    attend(home, *nodes)
    home.watch(4)
    home.asked()
    for _ in range(50):
        home.pve.clock.advance(2)
        swept = home.hypervisor.sweep()
        assert all(it.conclusive and it.power_state is PowerState.RUNNING for it in swept)
        asked = home.asked()
        assert (asked[:3], sorted(asked[3:])) == (READ, [list_of("pve1"), list_of("pve2")])
        assert all("full" not in it.params for it in home.api.requests)


def test_nodes_at_rest_cost_none(home):
    conf = home.guest(running=False)
    attend(home, conf)
    home.watch(30)
    home.asked()
    home.watch(4)
    assert home.asked() == [*READ, *READ]


def test_nor_do_nodes_of_another_endpoint(home):
    conf = home.guest()
    home.hypervisor.attend([replace(home.ref(conf), endpoint="away"), replace(home.ref(conf), id="k8s-1")])
    home.watch(30)
    home.asked()
    home.watch(2)
    assert home.asked() == READ


def test_who_is_no_node_any_more_costs_none_either(home):
    conf = home.guest()
    attend(home, conf)
    home.watch(30)
    home.asked()
    home.hypervisor.attend(())
    home.watch(2)
    assert home.asked() == READ


def seconds_until_read(home: Home, conf, end) -> float:
    """Sweep every 2 s, as an agent does by default, until a guest reads off live."""
    home.watch(30)
    end(conf.vmid)
    for after_s in range(1, 41, 2):
        home.pve.clock.advance(1 if after_s == 1 else 2)
        told = home.told(conf)
        if told.power_state is PowerState.STOPPED and told.conclusive:
            return after_s
    raise AssertionError("never")


@pytest.mark.parametrize("round_s", range(10))
def test_whoever_is_killed_is_read_off_by_the_next_sweep(home, round_s):
    """Whenever in the round of its host's pvestatd; nobody who is no node is, in most of it."""
    node, other = home.guest(), home.guest("other")
    attend(home, node)
    home.pve.clock.advance(round_s)
    assert seconds_until_read(home, node, home.pve.crash) == 1
    assert seconds_until_read(home, other, home.pve.crash) <= 11


def test_others_wait_for_the_statistics_of_their_host(home):
    other = home.guest("other")
    assert seconds_until_read(home, other, home.pve.crash) > 1


def test_the_reading_is_the_provers_own(home):
    conf = home.guest()
    attend(home, conf)
    home.watch(30)
    home.pve.crash(conf.vmid)
    told = home.told(conf)
    assert told.source == "status/current, config, tasks, cluster/resources"
    assert told == replace(home.read(conf), observed_at_s=told.observed_at_s)


@pytest.mark.parametrize(
    ("lock", "said"),
    [("migrate", "unsettled"), ("snapshot", "unsettled"), ("suspended", "saved"), ("backup", "settled")],
)
def test_a_lock_keeps_its_meaning(home, lock, said):
    """What has lost its process, and may come back with its memory, is not final."""
    conf = home.guest()
    attend(home, conf)
    home.watch(30)
    home.pve.set_lock(conf.vmid, lock)
    home.pve.crash(conf.vmid)
    told = home.told(conf)
    if said == "saved":
        assert told.power_state is PowerState.SAVED
    else:
        assert (told.power_state, told.settled) == (PowerState.STOPPED, said == "settled")


def test_whoever_was_killed_and_started_again_between_two_sweeps_is_read_as_another_run(home):
    """The cache has not even noticed that it was gone."""
    conf = home.guest()
    attend(home, conf)
    home.watch(30)
    before = home.told(conf).incarnation
    home.pve.crash(conf.vmid)
    assert home.pve.qm.start(conf.vmid).finish() == "OK"
    told = home.told(conf)
    assert (told.power_state, told.conclusive) == (PowerState.RUNNING, True)
    assert told.incarnation != before


def test_nobody_runs_because_of_a_list(home):
    """A guest that was read paused goes on to read paused, though its host lists it as running."""
    conf = home.guest()
    attend(home, conf)
    home.watch(30)
    home.pve.set_qmp(conf.vmid, "paused")
    assert home.read(conf).power_state is PowerState.PAUSED
    for _ in range(20):
        home.pve.clock.advance(2)
        told = home.told(conf)
        assert not (told.conclusive and told.power_state is PowerState.RUNNING)


def test_a_frozen_process_is_there(home):
    """It is listed without asking QEMU: a sweep does not wait 3 s for each."""
    conf = home.guest()
    attend(home, conf)
    home.watch(30)
    home.pve.freeze(conf.vmid)
    home.asked()
    home.watch(2)
    assert home.asked() == [*READ, list_of("pve1")]


@pytest.mark.parametrize("breaks_off", [False, True])
def test_a_migration_ends_nobody(home, breaks_off):
    conf = home.guest()
    attend(home, conf)
    home.watch(30)
    task = home.pve.qm.migrate(conf.vmid, "pve2", by_hand=True)
    for _ in range(3 if breaks_off else 50):
        if task.step() is None:
            break
        home.pve.clock.advance(1)
        assert home.told(conf).power_state is not PowerState.STOPPED
    if breaks_off:
        task.abort()
    home.pve.clock.advance(2)
    home.hypervisor.sweep()
    home.asked()
    home.watch(2)
    assert home.asked() == [*READ, list_of("pve1" if breaks_off else "pve2")]
    home.pve.crash(conf.vmid)
    assert home.told(conf).power_state is PowerState.STOPPED


def test_whoever_ha_recovered_is_looked_for_where_it_is(home):
    conf = home.guest(host="pve3", ha="started")
    attend(home, conf)
    home.watch(30)
    home.pve.host_dies("pve3")
    home.watch(200)
    now = home.pve.confs[conf.vmid].host
    home.asked()
    home.watch(2)
    assert home.asked() == [*READ, list_of(now)]
    home.pve.crash(conf.vmid)
    assert home.told(conf).power_state is PowerState.STOPPED


def test_a_configuration_moved_by_hand_hides_a_guest_that_runs(home):
    conf = home.guest(host="pve1")
    attend(home, conf)
    home.watch(30)
    home.pve.move_conf(conf.vmid, "pve2")
    for _ in range(10):
        home.pve.clock.advance(2)
        assert not final(home.told(conf), "pve1")


def test_a_number_that_is_anothers_now_is_not_taken_for_the_node(home):
    conf = home.guest()
    attend(home, conf)
    home.watch(30)
    assert home.pve.qm.stop(conf.vmid).finish() == "OK"
    assert home.pve.qm.destroy(conf.vmid).finish() == "OK"
    other = home.guest("other", vmid=conf.vmid, running=False)
    home.watch(2)
    told = home.told(other)
    assert told.guest.uuid == other.uuid


def test_a_host_that_does_not_know_its_guests_says_nothing(home):
    """Its cluster file system looks like that of a single host without guests."""
    conf = home.guest(host="pve3")
    attend(home, conf)
    home.watch(30)
    home.pve.set_pmxcfs("pve3", Pmxcfs.ALONE)
    home.pve.crash(conf.vmid)
    home.asked()
    home.watch(2)
    assert home.asked() == [*READ, list_of("pve3")]


def test_a_host_that_died_is_not_waited_for_at_each_sweep(home):
    """Corosync counts it out after 8 s; it is asked once until then."""
    dead, well = home.guest(host="pve3"), home.guest("k8s-2", host="pve2")
    attend(home, dead, well)
    home.watch(30)
    home.pve.host_dies("pve3")
    home.asked()
    home.watch(20)
    assert home.asked().count(list_of("pve3")) == 1
    home.pve.crash(well.vmid)
    assert home.told(well).power_state is PowerState.STOPPED


@pytest.mark.slow
def test_a_host_that_hangs_keeps_nobody_else_from_being_read(tmp_path):
    """Through the proxy its list takes 30 s; the other host's guest is read in the same sweep."""
    for home in serve(PveCluster(), tmp_path):
        hung, well = home.guest(host="pve3"), home.guest("k8s-2", host="pve2")
        attend(home, hung, well)
        home.watch(30)
        home.pve.set_daemon("pve3", "pvedaemon", Daemon.FROZEN)
        home.pve.crash(well.vmid)
        home.api.delay_scale = 1.0
        home.asked()
        home.hypervisor.nudge(str(hung.vmid))
        told = {it.guest.id: it for it in home.hypervisor.sweep()}
        assert told[str(well.vmid)].power_state is PowerState.STOPPED
        home.api.delay_scale = 0.0
        asked = [it for it in home.asked() if it.startswith("GET /nodes/")]
        assert next(it for it in asked if it.endswith("/current")).startswith("GET /nodes/pve2/")


# -- nodes --------------------------------------------------------------------------------------------------


SECONDS = Policy(mode=Mode.ARMED, require_not_ready=False, lease_silent_s=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("after_s", [0.1, 1.0, 1.9, 3.3, 6.6, 9.9])
def test_a_node_whose_guest_is_killed_is_fenced_three_seconds_after_the_wait(home, after_s):
    """Without a hook, by the recipe that waits for no silence, whenever between two looks or statistics."""
    confs = [home.guest(f"k8s-{number}", host=f"pve{number}") for number in (1, 2, 3)]
    attend(home, *confs)
    watch = Watch(home.pve, home.hypervisor, confs, SECONDS)
    watch.nodes.placed["k8s-1"] = (PodView("shop", "web", "uid-web", "1", "Running"),)
    watch.passes(60)
    died_s = home.pve.clock.now_s() + after_s
    home.pve.clock.after(after_s, partial(home.pve.crash, confs[0].vmid))
    watch.passes(after_s + SECONDS.confirm_s + 5)
    assert watch.nodes.tainted_s.keys() == {"k8s-1"}
    assert SECONDS.confirm_s <= watch.nodes.tainted_s["k8s-1"] - died_s <= SECONDS.confirm_s + 3


# -- who waits for whom -------------------------------------------------------------------------------------


class ThreeASweep:
    """A timer by which a sweep has time for three readings."""

    def __init__(self) -> None:
        self._steps = itertools.count()

    def __call__(self) -> float:
        return float(next(self._steps))


def hurried(home: Home) -> Sweeper:
    """Return what sweeps, of an agent whose readings take a second each."""
    sweeper = home.hypervisor._sweeper
    home.hypervisor._sweeper = Sweeper(Prover(home.settings(), sweeper.memory), ThreeASweep())
    return home.hypervisor._sweeper


def ends_unsettled(home: Home, number: int):
    """A spare guest that is off for good, with a lock that keeps it from being settled: it stays urgent."""
    conf = home.guest(f"spare-{number}")
    home.watch(2)
    home.pve.set_lock(conf.vmid, "snapshot")
    home.pve.crash(conf.vmid)
    home.hypervisor.nudge(str(conf.vmid))
    return conf


@pytest.mark.slow
def test_spare_guests_that_are_off_starve_nobody(home):
    spares = [ends_unsettled(home, number) for number in range(24)]
    node = home.guest("k8s-1")
    attend(home, node, *spares)
    home.watch(60)
    hurried(home)
    home.watch(60)
    home.pve.crash(node.vmid)
    assert home.told(node).power_state is PowerState.STOPPED


def test_nor_those_that_nobody_has_read_yet(home):
    """An agent begins: 24 spare guests are to be read for the first time, and the node dies meanwhile."""
    spares = [home.guest(f"spare-{number}", running=False) for number in range(24)]
    node = home.guest("k8s-1")
    attend(home, node)
    hurried(home)
    assert home.told(node).power_state is PowerState.RUNNING
    home.pve.crash(node.vmid)
    assert home.told(node).power_state is PowerState.STOPPED
    home.watch(30)
    assert {it.guest.id for it in home.hypervisor.sweep()} >= {str(conf.vmid) for conf in spares}


def test_nor_those_whose_configurations_are_to_be_read_again(home):
    spares = [home.guest(f"spare-{number}", running=False) for number in range(24)]
    node = home.guest("k8s-1")
    attend(home, node)
    home.watch(30)
    hurried(home)
    home.pve.clock.advance(RELEARN_S)
    home.pve.crash(node.vmid)
    assert home.told(node).power_state is PowerState.STOPPED
    assert len(spares) == 24


def test_fifteen_that_die_at_once_are_all_read_within_their_turns(home):
    nodes = [home.guest(f"k8s-{number}", host=f"pve{number % 3 + 1}") for number in range(40)]
    attend(home, *nodes)
    home.watch(30)
    hurried(home)
    dead = nodes[::3][:15]
    for conf in dead:
        home.pve.crash(conf.vmid)
    for _ in range(5):
        home.pve.clock.advance(2)
        home.hypervisor.sweep()
    told = {it.guest.id: it.power_state for it in home.hypervisor.sweep()}
    assert {told[str(conf.vmid)] for conf in dead} == {PowerState.STOPPED}


def test_a_reference_of_a_node_may_be_anything_that_a_person_wrote(home):
    conf = home.guest()
    home.hypervisor.attend([GuestRef("home", "", "", "", None), GuestRef("home", "-1", "", "", None)])
    home.watch(4)
    assert home.told(conf).power_state is PowerState.RUNNING
