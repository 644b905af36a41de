"""Which tests run beside which: a plugin that deals them out to the workers of pytest-xdist.

A lane is a row of end-to-end files that one worker runs one after the other, with a control plane and a
libvirtd of its own. They mostly wait, so lanes run beside each other, and beside all other tests. Whoever is
done with a lane goes on with the rest, a file at a time.

Without a path, those end-to-end tests and slow ones are left out that are not marked `smoke`: they took most
of the gate's time, and are one in twenty of its tests. `./dev long e2e slow` runs them.

A worker that turns to the rest makes room for the lanes: what is kept waiting there is real.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

_TESTS = Path(__file__).parents[1]
_ROOT = _TESTS.parent
_END_TO_END = _TESTS / "e2e"
_POLITE = 4
"""By so much nicer than the lanes, see nice(1)."""

LANES: Sequence[Sequence[str]] = (
    (
        "test_drain",
        "test_random_faults",
        "test_hung_hypervisor",
        "test_plan",
        "test_lab",
        "test_other_adapter",
        "test_several_agents",
    ),
    (
        "test_guest_drain",
        "test_guest_stops",
        "test_guest_api",
        "test_drain_beside_kubectl",
        "test_drain_benchmark",
    ),
    ("test_proxmox", "test_virtualbox"),
    ("test_report_b", "test_other_hands", "test_by_hand", "test_liveness", "test_failover_benchmark"),
    (
        "test_guests_that_vanish",
        "test_refusals",
        "test_interruptions",
        "test_nothing_forgotten",
        "test_seen_from_outside",
        "test_controlplane",
        "test_remediation",
        "test_init",
    ),
)
"""Files of `tests/e2e`, the longest lane first: the order in which they are dealt out.

Seconds of each in a whole run on two cores, reckoned from its files: 1140, 890, 900, 770, 950. The two files
with a Debian guest are one lane: its processor is emulated and goes first, so that two at a time would starve
the other lanes. Those on `guest_cluster` are one lane, too: it runs once.
"""

_ON_THE_BARE_API = frozenset(
    f"tests/{name}.py"
    for name in (
        "benchmarks/test_smoke",
        "cli/test_init",
        "docs/test_commands_typed",
        "cluster/test_account",
        "cluster/test_admission_policy",
        "cluster/test_confined",
        "cluster/test_eviction",
        "cluster/test_key",
        "deploy/test_dry_run",
        "cluster/test_real_api",
        "cluster/test_real_pause",
        "cluster/test_remediations_absent",
        "cluster/test_remediations_real",
        "cluster/test_survey",
        "cluster/test_try_watch",
        "cluster/test_watch_real",
        "contract/test_agents_real",
        "contract/test_cluster_real",
        "contract/test_kubelet_real",
        "contract/test_leases_real",
        "contract/test_requests_real",
        "contract/test_surveyor",
        "remediators/test_cluster_api",
        "remediators/test_node_health_checks",
        "setup/test_setup_kubernetes",
    )
)
"""Of the rest, what goes to one worker, which begins with it: so that one such server runs, and not six."""

_LONGEST = frozenset({"tests/scenarios/test_incidents_by_seed.py", "tests/setup/test_setup_hook.py"})
"""Of the rest, what one worker alone would still be busy with after all others, if its turn came late."""

_LANE_OF = {f"tests/e2e/{name}.py": index for index, lane in enumerate(LANES) for name in lane}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Say how many workers there are; none for a single file: it is over before they would have begun.

    `-n auto`: one for each lane asked for, and one for the rest. `-n logical`, or no lane: two a processor.
    """
    paths = _asked_for(config)
    if (len(paths) == 1 and paths[0].is_file()) or not all(path.exists() for path in paths):
        return 0  # a path that is not there is named by pytest itself, by a worker it is not
    asked_for = {
        lane for file, lane in _LANE_OF.items() if any((_ROOT / file).is_relative_to(path) for path in paths)
    }
    if not asked_for or config.option.numprocesses == "logical":
        return 2 * (os.cpu_count() or 1)  # half of it is waiting
    return len(asked_for) + any(not path.is_relative_to(_END_TO_END) for path in paths)


class Lanes(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist publishes no types
    """Gives a worker a whole lane at a time, and then a file at a time."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Take away a worker that ended, and name the test with which it died. Others get its rest.

        That test has failed, and is not among the rest: the next worker would die with it, and the one after
        that, which for a test that hangs takes hours.
        """
        work: dict[str, dict[str, bool]] = self.assigned_work[node]
        crashed = next((test for unit in work.values() for test, done in unit.items() if not done), None)
        if crashed is None:
            super().remove_node(node)
            return None
        del self.assigned_work[node]
        self.workqueue.update({scope: left for scope, unit in work.items() if (left := _left(unit, crashed))})
        for scope in work.keys() & self.workqueue.keys():
            self.workqueue.move_to_end(scope, last=False)  # it was under way: it takes longest
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file in _ON_THE_BARE_API:
            return "bare API"
        return f"lane {_LANE_OF[file]}" if file in _LANE_OF else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes:
    """Deal out by lanes."""
    config.option.loadscopereorder = False  # in our order, and not by the number of tests
    return Lanes(config, log)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say which tests are left out, and what runs them."""
    if _chosen(config):
        return None
    return "left out: end-to-end and slow tests that are not marked smoke; ./dev long e2e slow runs them all"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out most of what takes long unless it was asked for, and begin with the end-to-end tests.

    They take longest, and what is dealt out last should be short.

    Raises:
        pytest.UsageError: A file would begin an API server wherever it falls.
    """
    for item in items:
        if "bare_api" in getattr(item, "fixturenames", ()) and _file(item) not in _ON_THE_BARE_API:
            raise pytest.UsageError(f"{_file(item)} uses bare_api: add it to _ON_THE_BARE_API in {__file__}")
    if not _chosen(config):
        config.hook.pytest_deselected(items=[item for item in items if not _in_the_gate(item)])
        items[:] = [item for item in items if _in_the_gate(item)]
    items.sort(key=_turn)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Let a worker that has turned to the rest come after the lanes."""
    turned = "PYTEST_XDIST_WORKER" in os.environ and _file(item) not in _LANE_OF
    if turned and os.getpriority(os.PRIO_PROCESS, 0) < _POLITE:  # back is a way for root only
        os.setpriority(os.PRIO_PROCESS, 0, _POLITE)
    return (yield)


def _chosen(config: pytest.Config) -> bool:
    """Return whether the command says which tests to run, by a path or an option."""
    options = config.option
    return bool(options.keyword or options.markexpr or getattr(options, "lf", False)) or any(
        _TESTS in path.parents for path in _asked_for(config)
    )


def _in_the_gate(item: pytest.Item) -> bool:
    takes_long = _file(item) in _LANE_OF or item.get_closest_marker("slow") is not None
    return not takes_long or item.get_closest_marker("smoke") is not None


def _asked_for(config: pytest.Config) -> list[Path]:
    """Return the files and folders on the command line, or the folder that it is called in."""
    return [Path(config.invocation_params.dir, asked.partition("::")[0]).resolve() for asked in config.args]


def _left(unit: dict[str, bool], crashed: str) -> dict[str, bool]:
    """Return the tests of a unit of work that are still to be run."""
    return {test: done for test, done in unit.items() if not done and test != crashed}


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _turn(item: pytest.Item) -> int:
    """Return when a test is dealt out: with its lane; then what is on the bare API, the longest, the rest."""
    file = _file(item)
    rest = 0 if file in _ON_THE_BARE_API else 1 if file in _LONGEST else 2
    return _LANE_OF.get(file, len(LANES) + rest)
