"""A real Debian guest drains itself with its kubelet's rights as it goes down, beside a real `fencer watch`.

systemd, logind and the ACPI power button under libvirt; kube-apiserver with the Node authorizer and
NodeRestriction, over user-mode networking. One guest for all tests: each finds it up and uncordoned, and may
leave it in any state.
"""

import json
import re
from collections.abc import Iterator
from itertools import accumulate

import pytest

from tests.controlplane.binaries import API_SERVER
from tests.e2e.cluster import DrainCluster
from tests.e2e.debian_node import CORDON, NODE, SPARE, DebianNode, wait_for
from tests.e2e.operator import ACCOUNT, Operator
from tests.support import wait_until

pytestmark = pytest.mark.timeout(1500)

KUBELET = f"system:node:{NODE}"
GIVES_UP_AFTER_S = 45
"""What is left of its 120 s to a drain that can only wait for its end; beside six lanes 25 were too few."""
LAST = 600
"""Characters of a console that a failed test shows: what came last, as that is what it is about."""
POLICY = {
    "poll_s": 1.0,
    "evidence_max_age_s": 10.0,
    "lease_period_s": 2.0,
    "require_not_ready": False,
    "lease_silent_s": 10.0,
    "confirm_s": 2.0,
    "settle_s": 3.0,
}
"""The quick recipe, for kubelets that renew every two seconds."""
ORDERLY, RESCUES, HARD = 7, 1, 3
"""Rows of the table of `check`: ways to stop the machine in order, to stop its kubelet, and to cut it off."""


@pytest.fixture(scope="module")
def operator(debian_node: DebianNode, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    """fencer, installed outside; nothing of it runs yet."""
    return Operator(debian_node, tmp_path_factory.mktemp("fencer"), POLICY, speed=1.0)


def test_check_is_right_about_this_node_and_uninstall_leaves_nothing(node: DebianNode) -> None:
    node.guest.run("/opt/fencer-guest install")
    text = node.guest.run("fencer-guest check").text
    assert text.startswith(f"node {NODE}, systemd ")
    assert text.count("drained: evicted first, within 2 min") == ORDERLY
    assert text.count("cut: nothing inside is asked any more") == HARD
    assert "0 wrong, 0 to look at." in text

    # A kubelet with graceful node shutdown holds such a lock, and then it comes before the drain.
    lock = "--what=shutdown --who=kubelet --mode=delay sleep infinity"
    node.guest.run(f"systemd-run --unit=lock systemd-inhibit {lock}")
    wait_for(lambda: "kubelet" in node.guest.run("systemd-inhibit --list").text, "lock")
    told = json.loads(node.guest.run("fencer-guest check -o json").text)
    by_kubelet = ["ended-by-kubelet"] * ORDERLY
    assert [way["outcome"] for way in told["ways"]] == by_kubelet + ["untold"] * RESCUES + ["cut"] * HARD
    levels = {one["subject"]: one["level"] for one in told["findings"]}
    assert {name for name, level in levels.items() if level != "ok"} == {"graceful node shutdown"}
    node.guest.run("systemctl stop lock; fencer-guest uninstall")
    assert node.guest.run("find /etc /usr/local /run/systemd -name '*fencer-guest*'").text == ""
    assert "0 unit files" in node.guest.run("systemctl list-unit-files 'fencer*'", check=False).text


def test_a_restart_of_k3s_or_of_the_unit_drains_nothing(installed: DebianNode, pods: DrainCluster) -> None:
    pods.deploy("web", 2, on=NODE, keep_off=[SPARE])
    installed.guest.run("systemctl restart k3s && systemctl restart fencer-guest-drain")
    installed.wait_said("this machine is not going down; nothing is drained")
    assert installed.guest.run("systemctl is-active fencer-guest-drain").text == "active\n"
    assert len(pods.pods(NODE, running=True)) == 2
    assert not pods.evictions(NODE)
    assert not installed.cordoned


def test_a_disk_that_cannot_be_written_keeps_no_drain_from_beginning(installed: DebianNode) -> None:
    """A sandbox that needs a folder there would: systemd gives up with status 226, and nothing is drained."""
    commands = (
        *("mount -o remount,ro /", "systemctl stop fencer-guest-drain", "mount -o remount,rw /"),
        *("systemctl show fencer-guest-drain -p ExecStop", "systemctl start fencer-guest-drain"),
    )
    assert "status=1 " in installed.guest.run(" && ".join(commands)).text, "not going down: nothing to drain"


def test_who_calls_itself_kubelet_in_a_real_node_is_not_heard(installed: DebianNode) -> None:
    """Its kubeconfig names another server, where nobody answers here."""
    kubeconfig = "/var/lib/rancher/k3s/agent/kubelet.kubeconfig"
    command = 'exec -a kubelet python3 -c "import time; time.sleep(600)" --kubeconfig=/tmp/evil.conf'
    installed.guest.run(
        f"sed 's,server:.*,server: https://10.0.2.2:1,' {kubeconfig} > /tmp/evil.conf && "
        f"systemd-run --unit=impostor --uid=nobody bash -c '{command}'"
    )
    told = json.loads(installed.guest.run("fencer-guest check -o json", check=False).text)
    installed.guest.run("systemctl stop impostor; rm /tmp/evil.conf")
    (api,) = (one for one in told["findings"] if one["subject"] == "api")
    assert (api["level"], f"(by {kubeconfig})" in api["text"]) == ("ok", True)


def test_drained_by_the_power_button_nothing_is_left_to_fence(
    installed: DebianNode, pods: DrainCluster, operator: Operator
) -> None:
    """All pods move as their budget allows, its own unit uncordons, and the agent leaves it all alone."""
    pods.daemon_set("logs")
    pods.deploy("web", 3, on=NODE, keep_off=[SPARE], tests_volume="vol-1")
    pods.budget("web", "web", maxUnavailable=1)
    wait_for(lambda: installed.read()["status"].get("volumesInUse"), "volume in use")
    config = operator.configure()
    with operator.watching(config):
        began, since = len(operator.journal(NODE)), len(installed.cluster.audit_events())
        shown = installed.go_off(installed.guest.press_power_button)
        assert re.search(r"drained in \d+ s: 3 pods gone", shown), shown[-LAST:]
        wait_until(lambda: len(pods.pods(SPARE, "web", running=True)) == 3, "moved pods")
        assert max(accumulate(disruptions(pods))) == 1
        assert not installed.read()["status"].get("volumesInUse")
        assert json.loads(installed.annotations(NODE)[CORDON])["by"] == "drain"

        def reason() -> str:
            told = json.loads(operator.run("explain", NODE, "-c", str(config), "-o", "json").stdout)
            return str(told["reason"])

        wait_for(lambda: reason() == "planned_stop", "planned stop")
        assert not set(operator.story(NODE)[began:]) - {"BindNode"}, "the agent says nothing about it"
        installed.start()
        installed.wait_uncordoned()
        writers = [user for user, _ in installed.node_writes(since)]
        assert writers.count(KUBELET) == 2, "one cordon, one uncordon"
        assert not [body for user, body in installed.node_writes(since) if user == ACCOUNT and "spec" in body]


def disruptions(pods: DrainCluster) -> Iterator[int]:
    """Yield 1 for every eviction that was accepted, and -1 for every replacement that became Ready."""
    for event in pods.control_plane.audit_events():
        about = event["objectRef"]
        if about.get("namespace") != pods.namespace or event["responseStatus"]["code"] >= 300:
            continue
        if about.get("subresource") == "eviction":
            yield 1
        elif about.get("subresource") == "status" and event["user"]["username"] == f"system:node:{SPARE}":
            yield -1 if about["name"].startswith("web") else 0


def test_killed_hard_it_is_fenced_and_the_agent_alone_uncordons(
    installed: DebianNode, pods: DrainCluster, operator: Operator
) -> None:
    pods.deploy("web", 2, on=NODE, keep_off=[SPARE])
    with operator.watching(operator.configure()):
        since = len(installed.cluster.audit_events())
        installed.guest.destroy()
        wait_for(lambda: installed.fenced, "fence")
        wait_for(lambda: len(pods.pods(SPARE, running=True)) == 2, "moved pods")

        installed.start()
        wait_for(lambda: not installed.fenced, "end of the fence")
        installed.wait_uncordoned()
        writes = installed.node_writes(since)
        assert KUBELET not in [user for user, _ in writes]
        touched = [
            body["spec"]["unschedulable"] for _, body in writes if "unschedulable" in body.get("spec", {})
        ]
        assert touched == [True, None]


def test_what_a_budget_holds_back_is_fenced_and_its_own_unit_uncordons_after(
    installed: DebianNode, pods: DrainCluster, operator: Operator
) -> None:
    """The drain ends in its time; the guest's unit waits for the fence to be lifted, and uncordons once."""
    pods.deploy("free", 1, on=NODE, keep_off=[SPARE])
    pods.deploy("stuck", 1, on=NODE, keep_off=[SPARE])
    pods.budget("never", "stuck", minAvailable=1)
    installed.limit_drain(GIVES_UP_AFTER_S)
    config = operator.configure()
    with operator.watching(config):
        since = len(installed.cluster.audit_events())
        shown = installed.go_off(installed.guest.press_power_button)
        assert re.search(r"gave up after \d+ s: 1 pod gone, 1 still here", shown), shown[-LAST:]
        assert re.search(rf"still here: {pods.namespace}/stuck-\S+ .*never", shown), shown[-LAST:]
        wait_for(lambda: installed.fenced, "fence")
        wait_for(lambda: len(pods.pods(SPARE, running=True)) == 2, "moved pods")
    # Without an agent the fence stands for as long as we like.
    installed.start()
    installed.wait_said("waiting: fenced: ")
    assert installed.cordoned
    with operator.watching(config):
        wait_for(lambda: not installed.fenced, "end of the fence")
        installed.wait_said("the fence is lifted, and controllers get 30 s to notice")
        installed.wait_uncordoned()
    touched = [
        (user, body.get("spec", {}).get("unschedulable", "by the kubelet"))
        for user, body in installed.node_writes(since)
        if user == KUBELET or "unschedulable" in body.get("spec", {})
    ]
    assert touched == [(KUBELET, "by the kubelet")] * 2, "the drain's cordon and its uncordon, and no other"


def test_the_cordon_of_an_admin_survives_drain_and_boot(installed: DebianNode, pods: DrainCluster) -> None:
    pods.deploy("web", 1, on=NODE, keep_off=[SPARE])
    pods.cordon(NODE)
    shown = installed.go_off(installed.guest.ask_agent_to_shut_down)
    assert f"{NODE} is cordoned already, by somebody else: that stays as it is" in shown
    wait_until(lambda: len(pods.pods(SPARE, running=True)) == 1, "moved pod")
    installed.start()
    installed.wait_said("left as it is: cordoned by somebody else")
    assert installed.cordoned


def test_an_api_that_does_not_answer_delays_the_shutdown_by_the_probe_only(
    installed: DebianNode, pods: DrainCluster, operator: Operator
) -> None:
    """What could not be drained is the fence's: as soon as the API server is back."""
    pods.deploy("web", 1, on=NODE, keep_off=[SPARE])
    with operator.watching(operator.configure()):
        installed.cluster.freeze_component(API_SERVER)
        try:
            shown = installed.go_off(installed.guest.press_power_button)
        finally:
            installed.cluster.thaw_component(API_SERVER)
        assert "not drained: no answer from the API server within 10 s" in shown
        wait_for(lambda: installed.fenced, "fence")
        wait_for(lambda: len(pods.pods(SPARE, running=True)) == 1, "moved pod")
