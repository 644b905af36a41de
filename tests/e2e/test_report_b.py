"""Report B on real parts: a node's guest ends, fencer proves it, and the pods run on elsewhere.

libvirt stands in for VirtualBox, tiny guests for the nodes; everything else is what a user has: etcd, API
server, controllers, scheduler, an account with the rights of the manifest, and ``fencer watch`` as a process.
"""

import json
import re
import socket
from collections.abc import Callable, Iterator
from typing import Any
from urllib.request import urlopen

import pytest

from tests.e2e.lab import OUT_OF_SERVICE, UNREACHABLE, WORKERS, Lab
from tests.e2e.mailbox import Mailbox, running_mailbox
from tests.e2e.operator import Operator
from tests.e2e.workloads import AGENT, BATCH, DATABASE, DATABASE_PODS
from tests.support import wait_until
from tests.support.bad_receivers import bad_receivers
from tests.support.guest import Guest

OWN_TAINT = ("example.org/lent-out", "PreferNoSchedule")
SHUT_OFF = 5
FENCED = ("fence/proven_off", "TaintNode")
CLEARED = ("fenced/clearing_pods", "ClearPods")
OVER = ("fenced/pods_cleared",)
RETURN_STORY = ["unfence/booted_anew", "UntaintNode", "recovering/settling", "Uncordon"]


@pytest.fixture(scope="module")
def mailbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mailbox]:
    """Somebody who is told."""
    with running_mailbox(tmp_path_factory.mktemp("mailbox")) as box:
        yield box


@pytest.fixture(scope="module")
def site() -> str:
    """Where fencer shows what it sees."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture(scope="module", autouse=True)
def fencer(operator: Operator, mailbox: Mailbox, site: str) -> Iterator[None]:
    """One ``fencer watch`` for all of them, by the careful recipe: it outlives every incident.

    It tells of each, also to five who take no message well.
    """
    with bad_receivers() as urls:
        bad = [{"name": name, "type": "ntfy", "server": url, "topic": "t"} for name, url in urls.items()]
        config = operator.configure(web=site, receivers=[*bad, mailbox.receiver])
        with operator.watching(config):
            yield


@pytest.fixture(autouse=True)
def truth(lab: Lab) -> Iterator[None]:
    """Whatever the test looks at: no volume has two writers, and every guest runs in the end."""
    lab.mend()  # no more than that: fencer itself lifts the fence that a failed try has left
    for name in WORKERS:
        lab.drop_taint(name, OWN_TAINT[0])
    yield
    assert not lab.fault()
    assert lab.ledger.writes_count


@pytest.mark.smoke
def test_a_paused_node_and_then_another(lab: Lab, operator: Operator, mailbox: Mailbox, site: str) -> None:
    """The report, word for word: k8s-2 is paused, then k8s-3. First the power is cut, then it is fenced."""
    lab.spread_out()
    for name in ("k8s-2", "k8s-3"):
        began, told = len(operator.journal(name)), len(mailbox.told(name))
        lose(lab, operator, name, Guest.pause)
        story = operator.story(name)[began:]
        assert told_of_a_fence(story, "stop_first/guest_paused", "StopGuest"), story
        mailbox.wait_for(name, "open", after=told)
        assert f'fencer_node_fenced{{node="{name}"}} 1.0' in served(site, "/metrics")
        assert f"{name} is fenced" in served(site, "/")
        assert served(site, "/readyz")
        come_back(lab, operator, name)
        mailbox.wait_for(name, "over", after=told)
        assert [state for state, _ in mailbox.told(name)[told:]].count("open") == 1
        look_back(operator, name)


def served(site: str, path: str) -> str:
    """Return what fencer shows there."""
    with urlopen(f"http://{site}{path}", timeout=10) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(Guest.destroy, id="virsh-destroy"),
        pytest.param(Guest.kill, id="kill-9-of-qemu"),
        pytest.param(Guest.power_off_inside, id="shut-down-from-inside"),
    ],
)
@pytest.mark.smoke
def test_a_node_whose_guest_ends(lab: Lab, operator: Operator, end: Callable[[Guest], None]) -> None:
    """However it ends: off is off. fencer powers nothing, neither off nor on."""
    name = lab.busiest()
    began = len(operator.journal(name))
    lose(lab, operator, name, end)
    story = operator.story(name)[began:]
    assert told_of_a_fence(story), story
    assert "StopGuest" not in story
    come_back(lab, operator, name)


@pytest.mark.smoke
def test_a_guest_that_only_reboots_is_left_alone(lab: Lab, operator: Operator) -> None:
    """Quicker than the silence that is waited for: its pods start again in place, its volumes stay."""
    name = lab.busiest()
    lab.wait_settled()
    writes, boot_id = len(operator.writes()), lab.nodes[name].boot_id()
    lab.nodes[name].guest.reset()
    wait_until(lambda: lab.nodes[name].boot_id() != boot_id, "new boot")
    reported = lab.nodes[name].boot_id()
    wait_until(lambda: lab.node(name)["status"]["nodeInfo"]["bootID"] == reported, "report of the new boot")
    lab.wait_whole()

    def binding() -> dict[str, Any]:
        read: dict[str, Any] = json.loads(lab.annotations(name)["fencer.dev/binding"])
        return read

    wait_until(lambda: reported in json.dumps(binding()), "the new boot among those that were seen")
    done = succeeded(operator.writes()[writes:])
    assert len(done) == 1, done


def look_back(operator: Operator, name: str) -> None:
    """Understand what has happened from what `history` and `replay` say, while the agent goes on."""
    wait_until(lambda: operator.story(name)[-1:] == ["healthy/node_healthy"], f"the end of {name}'s incident")
    config = ("-c", str(operator.config_file))
    line = operator.run("history", "--node", name, *config).stdout.splitlines()[-1]
    says = rf"\d\d:\d\d {name} paused → fenced in .*, \d+ pods? cleared, .*, lifted \d\d:\d\d \((\S+)\)"
    found = re.search(says, line)
    assert found, line
    told = " ".join(operator.run("history", found[1], *config).stdout.split())
    assert told.index("did stopped lab/") < told.index("did tainted ") < told.index("taint taken off")
    again = operator.run("replay", found[1], *config)
    assert again.returncode == 0, again.stdout
    assert operator.run("journal", "verify", *config).returncode == 0


def lose(lab: Lab, operator: Operator, name: str, end: Callable[[Guest], None]) -> None:
    """End a node's guest; see it fenced and its pods Ready elsewhere, with everything in its place."""
    lab.fresh_job()
    lab.wait_whole()
    lab.wait_job()
    lab.wait_settled()
    guest, before, began = lab.nodes[name].guest, lab.look(), len(operator.journal(name))
    lost = [pod["metadata"]["uid"] for pod in before.on(name)]
    volumes = before.attached_to(name)
    assert len(before.ready(DATABASE)) == DATABASE_PODS
    assert volumes, f"{name} runs nothing that matters"
    lab.add_taint(name, *OWN_TAINT)
    writes = len(operator.writes())

    end(guest)
    wait_until(lambda: lab.is_fenced(name), f"fence of {name}")
    power = guest.power()
    assert power is not None
    assert power.state == SHUT_OFF, f"{name} was fenced while its guest was {power}"
    assert {OWN_TAINT} <= lab.taints(name)

    lab.wait_elsewhere(name)
    wait_until(lambda: "fenced/pods_cleared" in operator.story(name)[began:], f"end of the fence of {name}")
    after = lab.look()
    assert not after.attached_to(name)
    assert volumes <= set.union(*(after.attached_to(other) for other in WORKERS if other != name))
    left = [pod for pod in after.on(name) if not only_its_controller_can_end(pod)]
    assert not left, f"old pods on {name}: {[pod['metadata']['name'] for pod in left]}"
    taints = {OWN_TAINT, *UNREACHABLE, (OUT_OF_SERVICE, "NoExecute")}
    wait_until(lambda: lab.taints(name) == taints, f"the taints {taints} of {name}")
    check_mark(lab, name)
    check_writes(operator.writes()[writes:], name, lost)


def come_back(lab: Lab, operator: Operator, name: str) -> None:
    """Start the guest; see the fence lifted by itself, and the node as it was before."""
    began, writes = len(operator.journal(name)), len(operator.writes())
    lab.nodes[name].guest.start()
    wait_until(lambda: not lab.is_fenced(name), "unfence")
    assert "fencer.dev/mark" not in lab.annotations(name)
    wait_until(lambda: not lab.is_cordoned(name), "uncordon")
    sent = [write["requestObject"] for write in succeeded(operator.writes()[writes:])]
    cordons = [it["spec"].get("unschedulable") for it in sent if "spec" in it]
    assert cordons == [True, None], "nothing may come to the node before caches have settled"
    assert lab.is_ready(name)
    lab.wait_whole()
    assert {
        "fencer.dev/mark",
        "fencer.dev/cordon",
        "node.kubernetes.io/out-of-service-applied-by",
    }.isdisjoint(lab.annotations(name))
    wait_until(lambda: lab.taints(name) == {OWN_TAINT}, "end of all taints but the administrator's")
    lab.drop_taint(name, OWN_TAINT[0])
    assert name in lab.look().ready(AGENT).values(), "the DaemonSet's pod is back"
    assert lab.job_failures() == 0, "the loss of a node is no failure of the Job's"
    wait_until(lambda: "Uncordon" in operator.story(name)[began:], "word of the uncordon")
    story = operator.story(name)[began:]
    assert in_order(RETURN_STORY, story), story
    events = {"FencerFenced", "FencerPodsCleared", "FencerUnfenced", "FencerUncordoned"}
    wait_until(lambda: events <= {it["reason"] for it in lab.events(name)}, f"events {events} of {name}")


def check_mark(lab: Lab, name: str) -> None:
    """Whoever looks at the node sees whose fence it is, and of which guest."""
    notes = lab.annotations(name)
    mark = json.loads(notes["fencer.dev/mark"])
    assert notes["node.kubernetes.io/out-of-service-applied-by"] == "fencer"
    assert mark["guest"]["uuid"] == lab.nodes[name].guest.uuid
    assert mark["bootID"] == lab.nodes[name].boot_id()


def check_writes(writes: list[dict[str, Any]], name: str, pods: list[str]) -> None:
    """Each write is to this node or to a pod that it had, and guarded; there is none to anything else."""
    assert writes
    for write in writes:
        resource, verb = write["objectRef"]["resource"], write["verb"]
        sent = write.get("requestObject", {})
        if resource == "nodes":
            assert (verb, write["objectRef"]["name"]) == ("patch", name)
            assert {"uid", "resourceVersion"} <= sent["metadata"].keys()
        elif verb == "delete":
            assert resource == "pods"
            assert sent["gracePeriodSeconds"] == 0
            assert sent["preconditions"]["uid"] in pods
            assert sent["preconditions"]["resourceVersion"]
        else:
            assert (resource, write["objectRef"].get("subresource"), verb) == ("pods", "status", "patch")
            assert sent["metadata"]["uid"] in pods
            assert sent["status"]["phase"] == "Failed"


def succeeded(writes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return those of the writes that the API server did not refuse."""
    return [write for write in writes if write["responseStatus"]["code"] < 300]


def only_its_controller_can_end(pod: dict[str, Any]) -> bool:
    """A Job's pod is held until the Job has counted it; it has failed, so nothing waits for it."""
    is_job = pod["metadata"]["labels"]["app"] == BATCH
    return is_job and pod["status"]["phase"] == "Failed" and bool(pod["metadata"].get("finalizers"))


def told_of_a_fence(story: list[str], *before: str) -> bool:
    """Whether the story is that of a fence.

    Kubernetes' own garbage collector looks once in 20 s, and acts on the taint: where that is between taint
    and fencer's first batch, nothing is left to fencer (seen once in some 60 fences).
    """
    cleared = CLEARED if "ClearPods" in story else ("fenced/releasing_volumes",)
    return in_order([*before, *FENCED, *cleared, *OVER], story)


def in_order(wanted: list[str], story: list[str]) -> bool:
    """Whether all that is wanted is in the story, in this order."""
    rest = iter(story)
    return all(one in rest for one in wanted)
