"""Every benchmark still runs, at a tiny size, and measures what it says. Its numbers are not looked at."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.benchmarks import (
    __main__,
    clear_pods,
    decide,
    fleet,
    heartbeats,
    hook,
    idle_agent,
    idle_scale,
    incidents,
    many_clusters,
    many_deaths,
    pass_scale,
    receivers,
    slow_api,
    soak,
    status,
    taint_latency,
)
from tests.benchmarks.bare import BareClient, Server
from tests.benchmarks.measure import Row, percentile, table
from tests.support import missing_real_part
from tests.support.backstage import NODES

TOO_LONG = {"drain", "failover", "idle_scale", "many_clusters", "many_deaths", "receivers", "soak"}
NO_BENCHMARKS = {
    *("bare", "counting_proxy", "deaths", "eventless", "fleet", "heartbeats", "lab", "measure", "plot"),
    *("switched_fencer", "talker", "test_smoke", "__main__"),
}


def test_decide_runs():
    assert [row.target for row in decide.run(decisions=20)] == ["≥ 20,000"] * 2


def test_a_pass_over_healthy_nodes_asks_for_no_single_one():
    rows = {row.what: row for row in pass_scale.run(nodes=30, guests=40, passes=14)}
    assert rows["its calls for single healthy nodes"].met


def test_incidents_run_and_are_reproducible():
    rate, same = incidents.run(incidents=2, replayed=1)
    assert "0 broke an invariant" in rate.note
    assert same.met


def test_a_slow_api_server_is_measured():
    assert [row.met for row in slow_api.run((3.0,))] == [True]


def test_the_hookscript_is_measured_beside_its_baselines():
    rows = {row.what: row for row in hook.run(rounds=2, at_once=3)}
    assert [row.target for row in rows.values()] == [*["≤ 35 ms"] * 3, *[""] * 5]
    assert "0 failed" in rows["3 hookscripts at once, until the last has ended"].note


def test_taint_latency_measures_every_death(bare_api):
    (row,) = taint_latency.run(bare_api, deaths=2)
    assert "2 of 2 deaths" in row.note


def test_clear_pods_clears_them_all(bare_api):
    (row,) = clear_pods.run(bare_api, pods=3, rounds=1)
    assert row.what.startswith("taint → last of 3 pods deleted")


def test_status_measures_the_whole_command(bare_api):
    [row] = status.run(bare_api, nodes=2, rounds=1)
    assert row.measured.endswith(" s")
    assert "times the bare import" in row.note


@pytest.mark.libvirt
def test_idle_agent_measures_a_watching_fencer(bare_api):
    if find_spec("libvirt") is None:
        missing_real_part("libvirt-python is not installed: uv sync --group real")
    share, memory = idle_agent.run(bare_api, nodes=3, seconds=1.0)
    assert "3 nodes" in share.what
    assert memory.measured.endswith("MiB")


def test_a_node_has_the_size_that_a_node_in_use_has(bare_api):
    heartbeats.make_nodes(bare_api, [0])
    try:
        answer = BareClient(Server.of(bare_api)).send_raw("GET", f"{NODES}/{fleet.node_view(0).name}")
    finally:
        heartbeats.remove_nodes(bare_api, [0])
    assert 18_500 < len(answer) < 20_500


def test_idle_scale_measures_each_size_and_counts_every_byte(bare_api):
    measured = idle_scale.run(bare_api, sizes=(2, 3), seconds=2.5)
    assert [one.nodes for one in measured] == [2, 3]
    assert all(one.received > 0 and one.sweeps_cpu > 0 for one in measured)
    assert idle_scale.growth(measured).count("\n| ") == 2
    assert idle_scale.plot(measured).count("<polyline") == 3


def test_bad_receivers_are_compared_with_none(bare_api):
    told, watched = receivers.run(bare_api, rounds=1, nodes=7, deaths=2, singles=0, settled_s=1.0)
    assert told.what == "2 nodes die at once beside five bad receivers: last pod gone"
    assert watched.what == "2 nodes die at once beside a crowd on the page: last pod gone"
    assert "; 0 pages" not in watched.note


def test_many_deaths_are_seen_and_counted_to_the_last_pod(bare_api):
    measured = many_deaths.run(bare_api, nodes=7, deaths=2, singles=1, settled_s=1.0)
    assert len(measured.many.tainted_s) == len(measured.many.gone_s) == 2
    pods = many_deaths.PODS_EACH
    assert measured.many.asked["delete pods"] == 2 * pods
    assert measured.singles[0].asked["delete pods"] == pods
    assert "2 of 7 nodes die at once: last pod gone" in table(many_deaths.rows(measured))


def test_a_day_is_played_in_which_guests_die_and_come_back():
    day = soak.play(nodes=6, poll_s=10.0, hours=1.5, incidents=3)
    assert day.fences == 3
    assert len(day.samples) == soak.PARTS + 1
    assert all(row.target for row in soak.rows(day))


def test_what_an_agent_holds_is_counted_without_its_ports():
    port, memory = ["much"] * 1_000, {}
    before, _ = soak.held([port, memory], without=[port])
    memory["more"] = list(range(1_000))
    after, _ = soak.held([port, memory], without=[port])
    assert before < 1_000
    assert after > 8_000


def test_the_program_for_all_leaves_no_benchmark_out():
    modules = {path.stem for path in Path(__file__).parent.glob("*.py")}
    assert set(__main__.ALL) == modules - TOO_LONG - NO_BENCHMARKS


def test_the_table_says_what_missed_its_target():
    rows = [Row("speed", "≥ 9", "3", met=False, note="how"), Row("size", "", "5", met=None)]
    assert table(rows).splitlines()[2:] == ["| speed | ≥ 9 | 3 | **no** | how |", "| size | – | 5 | – |  |"]


@pytest.mark.parametrize(("share", "expected"), [(0.5, 2), (0.95, 4), (1.0, 4), (0.0, 1)])
def test_a_percentile_is_one_of_the_values(share, expected):
    assert percentile([4, 1, 3, 2], share) == expected


def test_many_agents_are_measured_beside_one(bare_api):
    if find_spec("libvirt") is None:
        missing_real_part("libvirt-python is not installed: uv sync --group real")
    memory, cpu = many_clusters.run(bare_api, agents=2, nodes=3, seconds=1.0)
    assert memory.what.startswith("2 idle agents beside one")
    assert float(memory.measured.split()[0]) > float(memory.measured.split("beside ")[1].split(":")[0])
    assert "of a core" in cpu.measured
