"""A real Debian guest (systemd 257) drains itself where its network, or how it stops, is not the usual.

WireGuard by Debian's own `wg-quick@`, and a TUN device that a process holds: each carries the only way to
the API server. Soft-reboots, shutdowns that are called off, and programs that cannot run. One guest for all
tests: each finds it up and uncordoned.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.cluster import DrainCluster
from tests.e2e.debian_node import NODE, PROGRAM, SPARE, DebianNode, wait_for
from tests.support import wait_until

pytestmark = pytest.mark.timeout(900)

KUBELET = f"system:node:{NODE}"
DROP_IN = "/etc/systemd/system/fencer-guest-drain.service.d/order.conf"
VPN = "office-vpn.service"
"""A name that nobody could know."""


@pytest.fixture
def outside(node: DebianNode) -> Iterator[DebianNode]:
    """The node without its network card: only a VPN leads to the API server."""
    node.guest.run("outside")
    yield node
    if node.guest.on:  # else the card is back with the next boot
        back = "ip -n outside link set eth0 netns 1; ip netns delete outside"
        node.guest.run(f"systemctl stop {VPN} wg-quick@wg0; {back}", check=False)
        wait_for(lambda: " dev eth0 " in node.guest.run("ip route get 10.0.2.2", check=False).text, "network")


def test_install_finds_the_unit_of_the_process_that_carries_the_way_to_the_api_server(
    outside: DebianNode,
) -> None:
    run = outside.guest.run
    run(f"systemd-run --unit={VPN} --property=Type=notify tun_vpn && /opt/fencer-guest install")
    carries = f"tun0 carries the way to {server(outside)}"
    assert levels(outside.check()) == [("ok", f"{carries}; the drain comes before the stop of {VPN}")]
    run(f"sed -i s/{VPN}// {DROP_IN} && systemctl daemon-reload")
    late = f"{carries}, and {VPN} brings it up, which may be stopped before the drain is over"
    told = outside.check()
    assert levels(told) == [("FAIL", late)]
    assert "drained" not in {way["outcome"] for way in told["ways"]}


def levels(told: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what `check` finds of the ways to API servers."""
    return [(it["level"], it["text"]) for it in told["findings"] if it["subject"] == "network"]


def server(node: DebianNode) -> str:
    """Return the API server's address as the guest has it."""
    return node.cluster.url.replace("127.0.0.1", "10.0.2.2")


def test_a_vpn_that_leads_to_the_api_server_goes_down_after_the_drain(
    outside: DebianNode, pods: DrainCluster
) -> None:
    """WireGuard goes down by a unit that nothing orders beside ours, unless `install` does."""
    outside.guest.run("wireguard && /opt/fencer-guest install")
    ((level, text),) = levels(outside.check()) or [("", "")]
    pods.deploy("web", 2, on=NODE, keep_off=[SPARE])
    shown = outside.go_off(outside.guest.press_power_button)
    assert "2 pods gone" in shown, shown
    wait_until(lambda: len(pods.pods(SPARE, running=True)) == 2, "moved pods")
    assert (level, "wg-quick@wg0.service" in text) == ("ok", True), text


def test_a_soft_reboot_is_drained_first_and_the_node_takes_pods_again(
    installed: DebianNode, pods: DrainCluster
) -> None:
    """The kernel's boot id stays, by which a cordon of an earlier boot is known otherwise."""
    pods.deploy("web", 2, on=NODE, keep_off=[SPARE])
    ways = {way["how"]: way["outcome"] for way in installed.check()["ways"]}
    since, boot = len(installed.cluster.audit_events()), installed.reported_boot
    installed.guest.soft_reboot()
    assert len(pods.evictions(NODE)) == 2
    installed.wait_uncordoned()
    assert installed.reported_boot == boot
    assert [user for user, _ in installed.node_writes(since)].count(KUBELET) == 2, "one cordon, one uncordon"
    assert ways["systemctl soft-reboot"] == "drained"


def test_what_is_installed_runs_by_the_python_that_installed_it(installed: DebianNode) -> None:
    """Another `python3` may come first in PATH later, and be too old, as EL8's."""
    run, other = installed.guest.run, "/usr/local/bin/python3"
    run(f"printf '#!/bin/sh\\nexit 9\\n' > {other} && chmod 755 {other}")
    try:
        run("fencer-guest --help && systemctl restart fencer-guest-drain")
        installed.wait_said("this machine is not going down; nothing is drained")
    finally:
        run(f"rm {other}")


def test_a_drain_that_cannot_begin_is_seen_before_and_leaves_a_failed_unit(installed: DebianNode) -> None:
    run = installed.guest.run
    run(f"cp {PROGRAM} /run/whole && sed -i '1s,.*,#!/usr/bin/python3.0,' {PROGRAM}")
    try:
        told = json.loads(run("python3 /opt/fencer-guest check -o json", check=False).text)
        fails = [it["text"] for it in told["findings"] if it["level"] == "FAIL"]
        run("systemctl stop fencer-guest-drain")
        assert run("systemctl is-failed fencer-guest-drain", check=False).text == "failed\n"
        assert any("python3.0" in text for text in fails), fails
    finally:
        run(f"cp /run/whole {PROGRAM} && systemctl start fencer-guest-drain")


def test_a_shutdown_that_is_called_off_leaves_no_cordon(installed: DebianNode, pods: DrainCluster) -> None:
    """Its drain waits for a budget meanwhile; who calls it off is a unit that the shutdown does not stop."""
    pods.deploy("stuck", 1, on=NODE, keep_off=[SPARE])
    pods.budget("never", "stuck", minAvailable=1)
    run = installed.guest.run
    heard = "journalctl --boot --output cat --follow --no-tail -u fencer-guest-drain | grep -q 'waiting for'"
    then = "systemctl cancel; systemctl --no-block start multi-user.target; echo called off > /dev/console"
    run(f'systemd-run --unit=second-thoughts --property=DefaultDependencies=no sh -c "{heard} && {then}"')
    shown = len(installed.guest.said)
    installed.guest.press_power_button()
    wait_for(lambda: "called off" in installed.guest.said[shown:], "end of the shutdown")
    assert installed.cordoned
    pods.control_plane.request(
        "DELETE", f"/apis/policy/v1/namespaces/{pods.namespace}/poddisruptionbudgets/never"
    )
    installed.wait_uncordoned()
    assert installed.guest.on
