"""A whole drain, and what becomes of its cordon: against a server that has one node, and controllers."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from fencer.evicting.lots import Filters
from fencer.guest.api import Api
from fencer.guest.drain import Plan, drain
from fencer.guest.errors import DONE, REFUSED, UNREACHABLE
from fencer.guest.kubeconfig import Access
from fencer.guest.node import NodeClient
from fencer.guest.notes import CORDON, Cordon, read_cordon
from fencer.guest.system import boot_id
from fencer.guest.uncordon import uncordon
from tests.controlplane.certificates import Authority, kubeconfig
from tests.guest.serving import send, serving

BOOT, START, LATER_START = "b-1", "7000000", "9000000"
BY_HAND = "k8s-1 stays cordoned: `kubectl uncordon k8s-1` undoes that"
EVERYTHING = [{"operator": "Exists"}]
Json = dict[str, Any]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


class Cluster:
    """An API server, and controllers that make pods again on the very node they were evicted from.

    Attributes:
        pods: On the node, by name.
        evicted: The names of those that were, one by one.
        patches: By whom the node was changed, one by one.
        refuse: What every eviction is answered with, if not that it is done.
        again: Gives each evicted pod's successor.
        lost: So many answers to patches get lost; they are done all the same.
        away: Every answer is that the server has none.
        away_after_patch: From the first change on.
        date: What its answers say of the time; empty: nothing.
    """

    def __init__(self, *pods: Json, again: Callable[[Json], Json | None] = lambda _: None) -> None:
        self.pods = {pod["metadata"]["name"]: pod for pod in pods}
        self.evicted: list[str] = []
        self.patches: list[str] = []
        self.refuse: tuple[int, Json] | None = None
        self.again = again
        self.lost = 0
        self.away = self.away_after_patch = False
        self.date = ""
        self.node: Json = {
            "metadata": {"name": "k8s-1", "uid": "n", "resourceVersion": "1", "annotations": {}},
            "spec": {},
            "status": {"nodeInfo": {"bootID": BOOT}, "volumesInUse": []},
        }

    def cordoned(self, by: str, note: Json | None = None) -> "Cluster":
        """Have had it cordoned by somebody."""
        self.change({"annotations": {CORDON: json.dumps(note)} if note else {}}, {"unschedulable": True}, by)
        self.patches.clear()
        return self

    @property
    def unschedulable(self) -> bool:
        """It is cordoned."""
        return bool(self.node["spec"].get("unschedulable"))

    @property
    def note(self) -> Cordon:
        """What stands on the node about its cordon."""
        note = read_cordon(self.node["metadata"]["annotations"].get(CORDON))
        assert isinstance(note, Cordon)
        return note

    def __call__(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer a request."""
        url = urlsplit(handler.path)
        body = json.loads(handler.rfile.read(int(handler.headers.get("Content-Length") or 0)) or "{}")
        status, answer = 200, self.node
        if self.away:
            status, answer = 503, {"message": "etcd is away"}
        elif handler.command == "PATCH":
            assert body["metadata"]["resourceVersion"] == self.node["metadata"]["resourceVersion"]
            manager = parse_qs(url.query)["fieldManager"][0]
            self.change(body["metadata"], body["spec"], manager)
            self.lost, status = max(self.lost - 1, 0), 503 if self.lost or self.away_after_patch else 200
            self.away = self.away_after_patch
        elif handler.command == "POST":
            status, answer = self.refuse or self.evict(url.path.split("/")[-2])
        elif url.path == "/api/v1/pods":
            answer = {"items": list(self.pods.values())}
        send(handler, status, json.dumps(answer).encode(), Date=self.date)

    def change(self, meta: Json, spec: Json, manager: str) -> None:
        """Change the node; a field that gets another value is its setter's from then on."""
        self.patches.append(manager)
        mine = self.node["metadata"]
        mine["resourceVersion"] = str(int(mine["resourceVersion"]) + 1)
        changed = {**mine["annotations"], **meta["annotations"]}
        mine["annotations"] = {key: value for key, value in changed.items() if value is not None}
        if "unschedulable" in spec and spec["unschedulable"] != self.node["spec"].get("unschedulable"):
            self.node["spec"] = {key: value for key, value in spec.items() if value is not None}
            fields = {"f:spec": {"f:unschedulable": {}}}
            mine["managedFields"] = [{"manager": manager, "fieldsV1": fields}] if self.node["spec"] else []

    def evict(self, name: str) -> tuple[int, Json]:
        """End a pod, and have its controller make another."""
        self.evicted.append(name)
        successor = self.again(self.pods.pop(name))
        if successor:
            self.pods[successor["metadata"]["name"]] = successor
        return 201, {"status": "Success"}


def _pod(name: str, by: str = "web", created: str | None = None, **spec: Any) -> Json:
    owner = {"controller": True, "kind": "ReplicaSet", "name": by}
    meta = {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [owner]}
    meta |= {"creationTimestamp": created} if created else {}
    return {"metadata": meta, "spec": {"volumes": [{"persistentVolumeClaim": {"claimName": name}}], **spec}}


@contextmanager
def _node(authority: Authority, cluster: Cluster) -> Iterator[NodeClient]:
    with serving(authority, cluster) as port:
        access = Access("test", "127.0.0.1", port, authority=authority.ca_file.read_text())
        yield NodeClient(Api(access), "k8s-1", BOOT)


def _plan(*, shutdown: bool = True, timeout_s: float = 20) -> Plan:
    return Plan(BOOT, Filters(), timeout_s=timeout_s, start=START, shutdown=shutdown)


# -- it ends ----------------------------------------------------------------------------------------------


def test_a_drain_ends_where_each_pod_comes_back_because_it_tolerates_the_cordon(
    authority: Authority,
) -> None:
    """26 evictions in 25 s, and then failure: so it went where whoever was there was taken as work."""
    start = [_pod(f"web-{number}", tolerations=EVERYTHING) for number in range(3)]
    cluster = Cluster(*start, again=lambda pod: _pod(f"{pod['metadata']['name']}x", tolerations=EVERYTHING))
    cluster.node["status"]["volumesInUse"] = ["a", "b", "c"]
    said: list[str] = []
    with _node(authority, cluster) as client:
        assert drain(client, _plan(), said.append) == DONE, said
    assert sorted(cluster.evicted) == ["web-0", "web-1", "web-2"]
    told = [line for line in said if line.startswith("comes back: ")]
    assert sorted(told) == [f"comes back: shop/web-{number}x tolerates the cordon" for number in range(3)]
    assert re.fullmatch(r"drained in \d+ s: 3 pods gone; 3 come back", said[-1])
    assert not [line for line in said if "volumes" in line], "volumes of those that are left stay in use"


def test_a_drain_ends_where_pods_are_bound_past_the_cordon(authority: Authority) -> None:
    cluster = Cluster(_pod("a"), _pod("b"), again=lambda pod: _pod(f"{pod['metadata']['name']}x"))
    said: list[str] = []
    with _node(authority, cluster) as client:
        assert drain(client, _plan(), said.append) == DONE, said
    assert sorted(cluster.evicted) == ["a", "ax", "b", "bx"]
    assert "comes back: shop/axx is bound here past the cordon" in said
    assert re.fullmatch(r"drained in \d+ s: 4 pods gone; 2 come back", said[-1])


def test_who_comes_later_and_may_be_elsewhere_is_evicted(authority: Authority) -> None:
    """Bound by a scheduler that had not seen the cordon yet."""
    cluster = Cluster(_pod("a"), again=lambda pod: _pod("b") if pod["metadata"]["name"] == "a" else None)
    said: list[str] = []
    with _node(authority, cluster) as client:
        assert drain(client, _plan(), said.append) == DONE, said
    assert cluster.evicted == ["a", "b"]
    assert said[-1].endswith("2 pods gone")


DATE = "Fri, 20 Nov 2026 10:00:00 GMT"


def test_all_that_were_on_their_way_are_evicted(authority: Authority) -> None:
    """Of a controller that had none here at first: bound already, or with a volume that is waited for."""
    others = iter(["web-1", "web-2", "web-3"])

    def again(pod: Json) -> Json | None:
        late = pod["metadata"]["name"].startswith("web")
        return None if late else _pod(next(others), "web", "2026-11-20T09:50:00Z")

    cluster, said = Cluster(*(_pod(name, "db") for name in "abc"), again=again), list[str]()
    cluster.date = DATE
    with _node(authority, cluster) as client:
        assert drain(client, _plan(), said.append) == DONE, said
    assert sorted(cluster.evicted) == ["a", "b", "c", "web-1", "web-2", "web-3"]
    assert said[-1].endswith(": 6 pods gone")


@pytest.mark.parametrize(("second", "evicted"), [("05", 4), ("11", 1)], ids=["lagging", "past it"])
def test_a_drain_ends_whatever_controllers_are_called(
    authority: Authority, second: str, evicted: int
) -> None:
    """Whoever may make pods may name the node in them, and a controller of any name: Jobs of a task each."""

    def again(pod: Json) -> Json:
        number = int(pod["metadata"]["name"]) + 1
        return _pod(f"{number}", f"job-{number}", f"2026-11-20T10:00:{second if number < 4 else 11}Z")

    cluster, said = Cluster(_pod("0", "job-0"), again=again), list[str]()
    cluster.date = DATE
    with _node(authority, cluster) as client:
        assert drain(client, _plan(timeout_s=60), said.append) == DONE, said
    assert cluster.evicted == [f"{number}" for number in range(evicted)]
    assert f"comes back: shop/{evicted} is bound here past the cordon" in said
    assert said[-1].endswith(f"{'1 pod' if evicted == 1 else f'{evicted} pods'} gone; 1 comes back")


# -- whose cordon it is -----------------------------------------------------------------------------------

NEVER = (403, {"message": "no"})
OUTSIDE = {"schema": 1, "by": "drain", "bootID": "b-0", "since": "2026-11-20T10:00:00Z"}
"""As the agent's own drain notes it."""


def test_who_drains_by_hand_and_fails_is_told_what_stays(authority: Authority) -> None:
    cluster, said = Cluster(_pod("a")), list[str]()
    cluster.refuse = NEVER
    with _node(authority, cluster) as client:
        assert drain(client, _plan(shutdown=False), said.append) == REFUSED
    assert re.fullmatch(rf"gave up after \d+ s: 0 pods gone, 1 still here; {re.escape(BY_HAND)}", said[-1])
    assert cluster.unschedulable


def test_a_machine_that_goes_down_is_told_nothing_of_the_kind(authority: Authority) -> None:
    cluster, said = Cluster(_pod("a")), list[str]()
    cluster.refuse = NEVER
    with _node(authority, cluster) as client:
        assert drain(client, _plan(), said.append) == REFUSED
    assert said[-1].endswith("1 still here")


@pytest.mark.parametrize("by", ["kubectl-cordon", "fencer"])
@pytest.mark.parametrize("shutdown", [True, False])
def test_a_cordon_of_somebody_else_is_nothing_that_is_taken_back(
    authority: Authority, by: str, shutdown: bool
) -> None:
    """Neither changed by the drain, nor offered to be lifted, nor lifted after boot."""
    cluster, said = Cluster(_pod("a")).cordoned(by, OUTSIDE), list[str]()
    cluster.refuse = NEVER
    whose = "fencer" if by == "fencer" else "somebody else"
    with _node(authority, cluster) as client:
        assert drain(client, _plan(shutdown=shutdown), said.append) == REFUSED
        assert said[0] == f"k8s-1 is cordoned already, by {whose}: that stays as it is"
        assert said[-1].endswith("1 still here")
        assert uncordon(client, BOOT, 0.1, said.append, start=LATER_START, going_down=lambda: False) == DONE
    assert said[-1] == f"k8s-1 left as it is: cordoned by {by}, not by the drain in this guest"
    assert (cluster.patches, cluster.unschedulable) == ([], True)


UNREADABLE = [{"schema": 9}, {"schema": 1, "by": "drain", "bootID": 5, "since": "x"}]
"""Notes of a newer fencer, and of whoever may write to the node."""


@pytest.mark.parametrize("note", UNREADABLE)
@pytest.mark.parametrize("shutdown", [True, False])
def test_a_note_that_cannot_be_read_and_tells_of_no_cordon_is_written_again(
    authority: Authority, note: Json, shutdown: bool
) -> None:
    """`kubectl uncordon` leaves it standing. A cordon beside it would be nobody's: it would stay for good."""
    cluster, said = Cluster(), list[str]()
    cluster.node["metadata"]["annotations"] = {CORDON: json.dumps(note)}
    with _node(authority, cluster) as client:
        assert drain(client, _plan(shutdown=shutdown), said.append) == DONE
        assert said[0] == "k8s-1 cordoned"
        assert (cluster.note.boot_id, cluster.note.shutdown) == (BOOT, shutdown)
        assert uncordon(client, BOOT, 0.1, said.append, start=LATER_START) == DONE
    assert not cluster.unschedulable


@pytest.mark.parametrize("note", UNREADABLE)
def test_a_cordon_whose_note_cannot_be_read_stays_as_it_is(authority: Authority, note: Json) -> None:
    cluster, said = Cluster().cordoned("fencer-guest", note), list[str]()
    with _node(authority, cluster) as client:
        assert drain(client, _plan(), said.append) == DONE
        assert uncordon(client, BOOT, 0.1, said.append, start=LATER_START) == DONE
    assert said[0] == "k8s-1 is cordoned already, by fencer: that stays as it is"
    assert (cluster.patches, cluster.unschedulable) == ([], True)


def test_a_cordon_without_a_record_is_named_by_its_note(authority: Authority) -> None:
    """C9: it may be fencer's own; it stays all the same."""
    cluster, said = Cluster(_pod("a")).cordoned("fencer-guest", OUTSIDE), list[str]()
    cluster.node["metadata"]["managedFields"] = []
    cluster.refuse = NEVER
    with _node(authority, cluster) as client:
        assert drain(client, _plan(shutdown=False), said.append) == REFUSED
    assert said[0] == "k8s-1 is cordoned already, by fencer, as its note says: that stays as it is"


def test_a_cordon_whose_answer_was_lost_is_known_again(authority: Authority) -> None:
    cluster, said = Cluster(_pod("a")), list[str]()
    cluster.refuse, cluster.lost = NEVER, 1
    with _node(authority, cluster) as client:
        assert drain(client, _plan(shutdown=False), said.append) == REFUSED
    assert said[0] == "k8s-1 cordoned"
    assert said[-1].endswith(BY_HAND)
    assert cluster.patches == ["fencer-guest"]


def test_who_drains_by_hand_keeps_a_cordon_that_would_come_off(authority: Authority) -> None:
    """After a boot, while `uncordon` waits for a fence to be lifted, say."""
    earlier = {**OUTSIDE, "shutdown": True}
    cluster, said = Cluster().cordoned("fencer-guest", earlier), list[str]()
    with _node(authority, cluster) as client:
        assert drain(client, _plan(shutdown=False), said.append) == DONE
        assert uncordon(client, BOOT, 0.1, said.append, start=START, going_down=lambda: False) == DONE
    assert said[-1] == "k8s-1 left as it is: cordoned by a drain in this boot"
    assert (cluster.note.boot_id, cluster.note.shutdown, cluster.unschedulable) == (BOOT, False, True)


@pytest.mark.parametrize("by", ["unfence", "hook"])
@pytest.mark.parametrize("shutdown", [True, False])
def test_a_cordon_that_the_agent_takes_off_by_itself_is_taken_over(
    authority: Authority, by: str, shutdown: bool
) -> None:
    """Else it would come off amid the drain, or after it: pods would come back to a machine that ends."""
    cluster, said = Cluster().cordoned("fencer", {**OUTSIDE, "by": by}), list[str]()
    with _node(authority, cluster) as client:
        assert drain(client, _plan(shutdown=shutdown), said.append) == DONE
        assert said[0] == "k8s-1 is cordoned already, by fencer, for a while: this drain takes it over"
        note = cluster.note
        assert (note.by, note.boot_id, note.shutdown) == ("drain", BOOT, shutdown)
        assert cluster.unschedulable
        assert uncordon(client, BOOT, 0.1, said.append, start=LATER_START) == DONE
    assert not cluster.unschedulable, "nobody else takes it off now"


@pytest.mark.parametrize("by", ["unfence", "hook"])
def test_who_cordons_beside_a_passing_note_is_not_taken_over(authority: Authority, by: str) -> None:
    """`kubectl uncordon` and `kubectl cordon` leave it standing."""
    cluster, said = Cluster().cordoned("kubectl-cordon", {**OUTSIDE, "by": by}), list[str]()
    with _node(authority, cluster) as client:
        assert drain(client, _plan(), said.append) == DONE
    assert said[0] == "k8s-1 is cordoned already, by somebody else: that stays as it is"
    assert cluster.patches == []


def test_a_shutdown_takes_no_cordon_over_that_a_person_wanted(authority: Authority) -> None:
    """Else it would come off when that shutdown is called off."""
    cluster, said = Cluster(), list[str]()
    with _node(authority, cluster) as client:
        assert drain(client, _plan(shutdown=False), said.append) == DONE
        assert drain(client, _plan(shutdown=True), said.append) == DONE
        assert uncordon(client, BOOT, 0.1, said.append, start=START, going_down=lambda: False) == DONE
    assert said[-1] == "k8s-1 left as it is: cordoned by a drain in this boot"


@pytest.mark.parametrize("shutdown", [True, False])
def test_a_cordon_that_was_asked_for_and_not_answered_is_told(authority: Authority, shutdown: bool) -> None:
    """Done, its answer lost, and the API server away from then on: a person has to know where it may be."""
    cluster, said = Cluster(), list[str]()
    cluster.away_after_patch = True
    with _node(authority, cluster) as client:
        plan = replace(_plan(shutdown=shutdown), probe_s=2)
        assert drain(client, plan, said.append) == UNREACHABLE
    assert said[-1].startswith("not drained: no answer from the API server within 2 s: ")
    may = "; k8s-1 may be cordoned: `kubectl uncordon k8s-1` undoes that"
    assert said[-1].endswith(may) is not shutdown


def test_who_never_asked_for_a_cordon_says_nothing_of_one(authority: Authority) -> None:
    cluster, said = Cluster(), list[str]()
    cluster.away = True
    with _node(authority, cluster) as client:
        assert drain(client, replace(_plan(shutdown=False), probe_s=2), said.append) == UNREACHABLE
    assert "may be cordoned" not in said[-1]


def test_a_node_that_is_uncordoned_meanwhile_is_not_drained(authority: Authority) -> None:
    """By a person, or by another drain that gives its cordon back: pods come to it again."""

    def again(_: Json) -> None:
        cluster.change({"annotations": {}}, {"unschedulable": None}, "kubectl-uncordon")

    cluster, said = Cluster(_pod("a"), again=again), list[str]()
    with _node(authority, cluster) as client:
        assert drain(client, _plan(shutdown=False), said.append) == REFUSED
    assert re.fullmatch(
        r"not drained after \d+ s: 1 pod gone, and k8s-1 was uncordoned meanwhile, by somebody else", said[-1]
    )


# -- the kernel runs on -----------------------------------------------------------------------------------


def test_a_shutdown_that_is_called_off_leaves_no_cordon(authority: Authority) -> None:
    cluster, said = Cluster(), list[str]()
    with _node(authority, cluster) as client:
        assert drain(client, _plan(), said.append) == DONE
        assert uncordon(client, BOOT, 0.1, said.append, start=START, going_down=lambda: False) == DONE
    assert said[-1] == "k8s-1 uncordoned: the shutdown was called off"
    assert (cluster.unschedulable, cluster.node["metadata"]["annotations"]) == (False, {})


@pytest.mark.parametrize(
    ("down", "says"),
    [(True, "this machine is going down"), (None, "systemd does not tell whether it goes down")],
)
def test_a_shutdown_is_not_called_off_while_it_may_go_on(
    authority: Authority, down: bool | None, says: str
) -> None:
    cluster, said = Cluster(), list[str]()
    with _node(authority, cluster) as client:
        assert drain(client, _plan(), said.append) == DONE
        assert uncordon(client, BOOT, 0.1, said.append, start=START, going_down=lambda: down) == REFUSED
    assert said[-1] == f"k8s-1 left as it is after 0.1 s: {says}; by hand: `kubectl uncordon k8s-1`"
    assert cluster.unschedulable


@pytest.mark.parametrize("shutdown", [True, False])
def test_after_a_soft_reboot_the_cordon_comes_off(authority: Authority, shutdown: bool) -> None:
    """Whatever is still queued then: nothing is asked about that."""
    cluster, said = Cluster(), list[str]()
    with _node(authority, cluster) as client:
        assert drain(client, _plan(shutdown=shutdown), said.append) == DONE
        assert uncordon(client, BOOT, 0.1, said.append, start=LATER_START) == DONE
    assert said[-1].startswith(
        "k8s-1 uncordoned: it was cordoned by a drain, and the system was started again"
    )
    assert not cluster.unschedulable


# -- the commands -----------------------------------------------------------------------------------------

_SYSTEMCTL = """\
#!/bin/sh
read first rest < {states}
case $1 in
is-system-running) echo "$first"; [ -z "$rest" ] || echo "$rest" > {states} ;;
show) echo ActiveEnterTimestampMonotonic=7000000 ;;
esac
"""


class Guest:
    """This machine, with a systemctl that says what it is told to.

    Args:
        folder: For its files.
        authority: Of the cluster.
        port: Where the API server is.
    """

    def __init__(self, folder: Path, authority: Authority, port: int) -> None:
        pair = authority.client("system:node:k8s-1", ["system:nodes"])
        self._kubeconfig = folder / "kubeconfig"
        url = f"https://127.0.0.1:{port}"
        self._kubeconfig.write_text(kubeconfig(url, authority.ca_file, "system:node:k8s-1", pair))
        self._states = folder / "states"
        self._path = folder / "bin"
        self._path.mkdir()
        systemctl = self._path / "systemctl"
        systemctl.write_text(_SYSTEMCTL.format(states=self._states))
        systemctl.chmod(0o755)

    def run(self, *command: str, states: str) -> list[str]:
        """Run `fencer-guest`; give what it says, line by line.

        Args:
            command: Without the program.
            states: What `is-system-running` says, one after the other.
        """
        self._states.write_text(f"{states}\n")
        program = [sys.executable, "-m", "fencer.guest", *command, "--kubeconfig", str(self._kubeconfig)]
        environment = {**os.environ, "PATH": f"{self._path}:/usr/bin:/bin"}
        done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        return done.stdout.splitlines()


@pytest.fixture
def cluster() -> Cluster:
    empty = Cluster()
    empty.node["status"]["nodeInfo"]["bootID"] = boot_id()
    return empty


@pytest.fixture
def guest(tmp_path: Path, authority: Authority, cluster: Cluster) -> Iterator[Guest]:
    with serving(authority, cluster) as port:
        yield Guest(tmp_path, authority, port)


def test_a_drain_for_a_shutdown_says_so_on_the_node(guest: Guest, cluster: Cluster) -> None:
    assert guest.run("drain", states="stopping")[-1].endswith("0 pods gone")
    assert (cluster.note.start, cluster.note.shutdown) == ("7000000", True)
    assert guest.run("uncordon", states="running")[-1] == "k8s-1 uncordoned: the shutdown was called off"


def test_a_drain_by_hand_says_so_on_the_node(guest: Guest, cluster: Cluster) -> None:
    told = guest.run("drain", "--now", "--ignore-daemonsets", states="running")[-1]
    assert told.endswith("0 pods gone; k8s-1 stays cordoned: `kubectl uncordon k8s-1` undoes that")
    assert (cluster.note.start, cluster.note.shutdown) == ("7000000", False)
    stays = "k8s-1 left as it is: cordoned by a drain in this boot"
    assert guest.run("uncordon", states="running")[-1] == stays


def test_a_shutdown_that_is_called_off_amid_the_drain_is_told(guest: Guest) -> None:
    """Then the node is cordoned, this unit is stopped, and the next shutdown would drain nothing."""
    told = guest.run("drain", states="stopping running")[-1]
    assert told.startswith("the shutdown was called off: `systemctl start default.target` ")
