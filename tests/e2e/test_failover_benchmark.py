"""The benchmark of `tests.benchmarks.failover` measures what it says, on the quick lab."""

import struct
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import pytest

from tests.benchmarks.deaths import Kubectl, Milestones, Recipe, Timer
from tests.benchmarks.eventless import without_events
from tests.benchmarks.failover import measure, plot, read, recipes, table, write
from tests.e2e.kubelet import LEASES
from tests.e2e.lab import Lab
from tests.e2e.operator import Operator
from tests.support import wait_until


@pytest.mark.usefixtures("sound")
def test_kubernetes_alone_leaves_the_pods_where_they_are(lab: Lab, operator: Operator) -> None:
    """The row without fencer: the node is not Ready, its pods are marked, and nothing moves."""
    alone = recipes(alone_s=24)[0]  # they are marked after ten, or later on a busy machine
    [seen] = measure(lab, operator, alone, 1, alone.key)
    assert seen.not_ready_s is not None
    assert seen.fenced_s is seen.gone_s is seen.attached_s is seen.ready_s is None
    assert seen.stuck
    assert not seen.unsafe


def wait_for_renewal(lab: Lab, name: str) -> None:
    """Wait until a node's lease was renewed just now: the next renewal is a second away.

    One that comes after its guest's end was read is a sign of life: fencer would wait a minute for another.
    """

    def renewed_at() -> str:
        return str(lab.client.get(f"{LEASES}/{name}")["spec"]["renewTime"])

    before = renewed_at()
    wait_until(lambda: renewed_at() != before, f"renewal of {name}", every_s=0.01)


@pytest.mark.usefixtures("sound")
def test_the_seconds_recipe_does_not_wait_for_kubernetes(lab: Lab, operator: Operator) -> None:
    """A fall that was seen is enough: the pods are given away while Kubernetes still calls the node Ready."""
    policy = {"require_not_ready": False, "lease_silent_s": 0}
    [seen] = measure(
        lab, operator, Recipe("seconds", "seconds", policy, before_death=wait_for_renewal), 1, "seconds"
    )
    assert seen.fenced_s is not None
    assert seen.gone_s is not None
    assert seen.attached_s is not None
    assert seen.ready_s is not None
    assert seen.fenced_s <= seen.gone_s <= seen.attached_s
    assert seen.not_ready_s is None or seen.fenced_s < seen.not_ready_s
    assert not seen.unsafe


@pytest.mark.usefixtures("sound")
def test_who_taints_by_hand_waits_for_kubernetes_all_the_same(lab: Lab, operator: Operator) -> None:
    """The pods are marked at once, and go when Kubernetes has lost its patience with the node."""
    [seen] = measure(lab, operator, Recipe("kubectl", "by hand", somebody=Kubectl), 1, "kubectl")
    assert seen.fenced_s is not None
    assert seen.not_ready_s is not None
    assert seen.gone_s is not None
    assert seen.ready_s is not None
    assert seen.fenced_s < seen.not_ready_s < seen.gone_s
    assert not seen.unsafe


class OneNode:
    """The part of a lab that a timer acts on."""

    def __init__(self) -> None:
        self.tainted: list[str] = []

    def add_taint(self, name: str, key: str, effect: str) -> None:
        self.tainted.append(f"{name} {key}:{effect}")


def test_the_timer_taints_what_was_not_ready_for_a_minute_without_a_break() -> None:
    """It is the benchmark's own, and must do what the table says of it."""
    lab = OneNode()
    timer = Timer(cast("Lab", lab))
    looks = {0.0: False, 50.0: False, 59.0: False, 62.0: True, 63.0: False, 122.0: False}
    for now_s, ready in looks.items():
        timer.look({"k8s-1": node(ready=ready)}, now_s)
    assert not lab.tainted
    timer.look({"k8s-1": node(ready=False)}, 123.0)
    assert lab.tainted == ["k8s-1 node.kubernetes.io/out-of-service:NoExecute"]


def node(*, ready: bool) -> dict[str, Any]:
    """Return as much of a Node as a timer looks at."""
    return {"spec": {}, "status": {"conditions": [{"type": "Ready", "status": str(ready)}]}}


def packet(program: int, kind: int) -> bytes:
    """Return a packet of libvirt's protocol with five bytes of content."""
    return struct.pack(">IIIII", 25, program, 1, 7, kind) + b"12345"


def test_of_what_libvirtd_says_only_events_are_left_out() -> None:
    """Replies must pass, and keepalive, or the connection would be given up."""
    remote, keepalive, reply, event = 0x20008086, 0x6B656570, 1, 2
    said = [packet(remote, reply), packet(remote, event), packet(keepalive, event), packet(remote, reply)]
    assert list(without_events(BytesIO(b"".join(said)))) == [said[0], *said[2:]]


ONE = (Recipe("one", "one", patience_s=60.0),)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        ([None], "never (looked for 60 s)"),
        ([2.04], "2.0"),
        ([3.0, 1.0, 2.0], "2.0 / 3.0"),
        ([3.0, None, 2.0], "2.0 / 3.0; never in 1"),
    ],
)
def test_what_never_came_is_said(seconds: list[float | None], told: str) -> None:
    """A run without an end must not vanish from a median."""
    runs = [Milestones(ready_s=value) for value in seconds]
    row = table({"one": runs}, ONE).splitlines()[-1]
    assert row.endswith(f"| {told} |")


def test_what_was_not_waited_for_is_no_never() -> None:
    """The quick recipes are over before Kubernetes has noticed anything."""
    row = table({"one": [Milestones(fenced_s=0.3, ready_s=5.0)]}, ONE).splitlines()[-1]
    assert row.startswith("| one | 1 | not waited for | 0.3 |")


def test_runs_that_were_saved_in_parts_are_one_row(tmp_path: Path) -> None:
    """A table may be measured on several evenings."""
    parts = [{"one": [Milestones(ready_s=value, unsafe="x")]} for value in (1.0, 2.0)]
    for number, part in enumerate(parts):
        write(tmp_path / f"{number}.json", part)
    rows, _ = read([tmp_path / "0.json", tmp_path / "1.json"])
    assert rows == {"one": [*parts[0]["one"], *parts[1]["one"]]}


def test_a_row_without_an_end_is_drawn_as_such() -> None:
    """The picture says never where the table does."""
    two = (*ONE, Recipe("two", "two"))
    drawn = plot({"one": [Milestones()], "two": [Milestones(0.1, 0.2, 0.3, 4.0, 9.0)]}, two)
    assert "never (looked for 60 s)" in drawn
    assert drawn.count("<circle") == 3 + 3  # legend, and one row's dots
