"""A hypervisor whose adapter another package brings, in the main job: its guests die, and their pods move.

All but the hypervisor is real: control plane, ``fencer watch`` as a process with the package beside it, its
account's rights. The guests are the example's cells.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import cast

import pytest

from fencer.core.model import GuestRef
from tests.e2e.farm import Farm, FarmOperator, running_farm
from tests.e2e.lab import Lab, Speed, stays
from tests.support import LateError, wait_until
from tests.support.adapters import install_example, on_path
from tests.support.controlplane import Timing, running_control_plane
from tests.support.guests import GuestHost

IMPATIENT = Timing(
    node_monitor_grace_s=12, node_monitor_period_s=1, unreachable_toleration_s=5, not_ready_toleration_s=5
)
FENCE = ["fence/proven_off", "TaintNode", "fenced/pods_cleared"]
RETURN = ["unfence/booted_anew", "UntaintNode", "recovering/settling", "Uncordon"]
WATCHED_S = 4.0


class Watched:
    """A lab on a farm, and fencer beside it."""

    def __init__(self, lab: Lab, farm: Farm, operator: FarmOperator) -> None:
        self.lab, self.farm, self.operator = lab, farm, operator

    def ref(self, name: str) -> GuestRef:
        return self.farm.cells[name].ref

    def wait_for(self, name: str, what: list[str], began: int) -> None:
        """Wait until all this was decided and done about a node, in this order."""

        def told() -> bool:
            story = iter(self.operator.story(name)[began:])
            return all(one in story for one in what)

        try:
            wait_until(told, f"{what} of {name}")
        except LateError as late:
            raise LateError("\n".join([str(late), *map(str, self.operator.journal(name)[-20:])])) from late

    def lose(self, name: str, end: Callable[[GuestRef], None], what: list[str]) -> None:
        """End a node's cell; see it fenced as is told, and its pods Ready elsewhere."""
        self.lab.wait_whole()
        began = len(self.operator.story(name))
        end(self.ref(name))
        self.wait_for(name, what, began)
        assert self.lab.is_fenced(name)
        assert not self.farm.lab.lives(self.ref(name))
        self.lab.wait_elsewhere(name)

    def come_back(self, name: str) -> None:
        """Start the cell; see the fence lifted by itself."""
        began = len(self.operator.story(name))
        self.farm.cells[name].start()
        self.wait_for(name, RETURN, began)
        assert not self.lab.is_fenced(name)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("farm")
    installed = install_example(folder / "site")
    flags = {"kube-controller-manager": ["--node-eviction-rate=10"]}
    with ExitStack() as end:
        end.enter_context(on_path(*installed))
        from fencer_cells.lab import CellLab  # noqa: PLC0415 - it is installed for this test alone

        cluster = end.enter_context(running_control_plane(folder / "cluster", timing=IMPATIENT, flags=flags))
        farm = end.enter_context(running_farm(CellLab(folder), folder))
        lab = Lab(cluster, cast("GuestHost", farm), Speed())
        end.callback(lab.stop)
        lab.start()
        (folder / "fencer").mkdir()
        operator = FarmOperator(farm, installed, lab, folder / "fencer")
        with operator.watching(operator.configure()):
            yield Watched(lab, farm, operator)
        assert not lab.fault(), "no volume had two writers"
        assert lab.ledger.writes_count


def test_check_finds_everything_in_its_place(watched: Watched) -> None:
    done = watched.operator.run("check", "-c", str(watched.operator.configure()))
    assert done.returncode == 0, done.stdout
    assert "cells: " in done.stdout


def test_a_guest_that_is_killed(watched: Watched) -> None:
    watched.lab.spread_out()
    watched.lose("k8s-2", watched.farm.lab.destroy, FENCE)
    watched.come_back("k8s-2")


def test_a_guest_that_is_paused_is_stopped_first(watched: Watched) -> None:
    watched.lose("k8s-3", watched.farm.lab.pause, ["stop_first/guest_paused", "StopGuest", *FENCE])
    watched.come_back("k8s-3")


def test_a_farm_that_is_not_there_fences_nothing(watched: Watched) -> None:
    """The disk is gone from fencer's sight, and the network card is off: all the signs of a death."""
    name = "k8s-1"
    node, began = watched.lab.nodes[name], len(watched.operator.story(name))
    node.nic_off()
    watched.farm.lab.cut()
    try:
        watched.wait_for(name, ["refuse/evidence_missing"], began)
        stays(lambda: not watched.lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
    finally:
        watched.farm.lab.mend()
        node.nic_on()
    wait_until(lambda: watched.lab.is_ready(name), f"Ready {name}")
    watched.lab.wait_whole()
