"""What a drain needs until it is over, and stops beside it unless it is ordered after that."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fencer.guest import build, orders
from fencer.guest.collect import collect
from fencer.guest.errors import Unusable
from fencer.guest.facts import DRAIN_UNIT, UNCORDON_UNIT, Route
from fencer.guest.install import install, uninstall
from fencer.guest.judge import judge
from fencer.guest.system import Ran
from tests.guest.machine import Machine

SERVER, URL = "10.0.0.10", "https://10.0.0.10:6443"
WG = "wg-quick@wg0.service"
VPN = "openvpn-client@lab.service"
DROP_IN = orders.DROP_IN.lstrip("/")
SHIPPED = orders.names(build.units()[DRAIN_UNIT])


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.after = " ".join(SHIPPED)
    _kubeconfig(machine, URL)
    return machine


def _kubeconfig(machine: Machine, server: str) -> None:
    content = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    machine.write("var/lib/rancher/k3s/agent/kubelet.kubeconfig", json.dumps(content))


def _eth0(machine: Machine) -> None:
    machine.ways[SERVER] = "eth0"
    machine.interface("eth0", device="")


def _wireguard(machine: Machine) -> None:
    """As `wg-quick up` makes it, by its unit."""
    machine.ways[SERVER] = "wg0"
    machine.interface("wg0", type="65534", uevent="DEVTYPE=wireguard\nINTERFACE=wg0\nIFINDEX=7")
    machine.active.append(WG)


def _tun(machine: Machine, cgroup: str = f"0::/system.slice/system-openvpn\\x2dclient.slice/{VPN}\n") -> None:
    machine.ways[SERVER] = "tun0"
    machine.interface("tun0", type="65534", tun_flags="0x1001")
    machine.tun("tun0", 700, cgroup)
    machine.active.append(VPN)


def _tun_of_el7(machine: Machine) -> None:
    _tun(machine, f"4:memory:/\n1:name=systemd:/system.slice/system-openvpn.slice/{VPN}\n")


def _tap_below_a_bridge(machine: Machine) -> None:
    _tun(machine)
    machine.ways[SERVER] = "br0"
    machine.interface("br0", lower_tun0="", uevent="DEVTYPE=bridge")


def _stand_in(machine: Machine) -> None:
    """Another unit than anybody knows, named like the interface."""
    machine.ways[SERVER] = "dummy0"
    machine.interface("dummy0")
    machine.active.append("way@dummy0.service")


def _named(machine: Machine) -> list[tuple[str, str]]:
    """Return what `check` says of networks."""
    found = judge(collect(machine.root, machine.run, node="k8s-1"))
    return [(it.level.value, it.text) for it in found if it.subject == "network"]


def _changes(machine: Machine) -> list[str]:
    """Return what `check` advises about networks."""
    found = judge(collect(machine.root, machine.run, node="k8s-1"))
    return [it.change for it in found if it.subject == "network"]


def _install(machine: Machine, *after: str) -> list[str]:
    said: list[str] = []
    run = _Installing(machine)
    assert install(b"program", build.units(), machine.root, run, said.append, after=after) == 0
    return said


class _Installing:
    """The machine as the root of a live system; systemd reads the drop-in when it is told to."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def __call__(self, command: Sequence[str]) -> Ran:
        words = list(command)
        if words[:2] in (["systemctl", it] for it in ("daemon-reload", "enable", "start", "restart")):
            self._machine.after = " ".join([*SHIPPED, *orders.named(self._machine.root)])
            return Ran(0)
        return self._machine.run(words)


@pytest.mark.parametrize(
    ("prepare", "unit"),
    [
        (_wireguard, WG),
        (_tun, VPN),
        (_tun_of_el7, VPN),
        (_tap_below_a_bridge, VPN),
        (_stand_in, "way@dummy0.service"),
    ],
    ids=lambda it: getattr(it, "__name__", ""),
)
def test_the_unit_behind_the_way_is_found_and_named_by_install(
    machine: Machine, prepare: Callable[[Machine], None], unit: str
) -> None:
    """`check` fails before, because it may be stopped beside the drain; and not after."""
    prepare(machine)
    interface = machine.ways[SERVER]
    late = f"{interface} carries the way to {URL}, and {unit} brings it up, which may be stopped before"
    assert [(level, text.startswith(late)) for level, text in _named(machine)] == [("FAIL", True)]
    _install(machine)
    assert (machine.root / DROP_IN).read_text() == f"[Unit]\nAfter={unit}\n"
    good = f"{interface} carries the way to {URL}; the drain comes before the stop of {unit}"
    assert _named(machine) == [("ok", good)]


def test_the_unit_of_a_name_that_is_known_needs_no_drop_in(machine: Machine) -> None:
    _tun(machine, "0::/system.slice/tailscaled.service\n")
    machine.active.append("tailscaled.service")
    assert _named(machine)[0][0] == "ok"
    _install(machine)
    assert not (machine.root / DROP_IN).exists()


@pytest.mark.parametrize(
    ("cgroup", "network"),
    [
        ("0::/kubepods.slice/kubepods-besteffort.slice/cri-containerd-1.scope/vpn.service\n", ""),
        ("0::/kubepods/besteffort/pod1/vpn.service\n", ""),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/vpn.service\n", ""),
        ("0::/machine.slice/machine-qemu.scope\n", ""),
        (f"0::/system.slice/{VPN}\n", "net:[4026532000]"),
        ("", ""),
    ],
    ids=["a pod's", "a pod's by cgroupfs", "a user's", "a machine's", "of another network", "gone"],
)
def test_who_holds_a_device_of_that_name_elsewhere_is_not_believed(
    machine: Machine, cgroup: str, network: str
) -> None:
    """Any user may make one in a namespace; and systemd stops no pods with its units."""
    _tun(machine)
    machine.write("proc/700/cgroup", cgroup)
    if network:
        (machine.root / "proc/700/ns/net").unlink()
        (machine.root / "proc/700/ns/net").symlink_to(network)
    ((level, text),) = _named(machine)
    assert (level, "the unit that brings it up was not found" in text) == ("warn", True)


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    ("cgroup", "network"),
    [
        ("0::/kubepods.slice/cri-containerd-1.scope\n", "net:[4026531840]"),
        (f"0::/system.slice/{VPN}\n", "net:[4026532000]"),
    ],
    ids=["a pod's", "of another network"],
)
def test_no_descriptors_are_read_of_who_cannot_be_it(machine: Machine, cgroup: str, network: str) -> None:
    """A container may have a million of them, and many processes; one of these would never be read."""
    _tun(machine)
    machine.tun("tun0", 600, cgroup, network)
    endless = machine.root / "proc/600/fdinfo/7"
    endless.unlink()
    os.mkfifo(endless)
    ((level, text),) = _named(machine)
    assert (level, VPN in text) == ("FAIL", True)


def test_what_is_named_like_a_network_card_does_not_bring_it_up(machine: Machine) -> None:
    """Its driver does, and a manager; what shapes or watches its traffic may even come after our drain."""
    _eth0(machine)
    machine.active.append("qos@eth0.service")
    (route,) = collect(machine.root, machine.run, node="k8s-1").order.routes
    assert route.units == ()
    _install(machine)
    assert not (machine.root / DROP_IN).exists()


def test_a_unit_named_by_hand_is_kept_and_quietens_the_warning(machine: Machine) -> None:
    _tun(machine)
    machine.write("proc/700/cgroup", "0::/\n")
    _install(machine, "my-vpn.service")
    _install(machine, "my-san.service")
    _install(machine)
    assert (machine.root / DROP_IN).read_text() == "[Unit]\nAfter=my-san.service my-vpn.service\n"
    ((level, text),) = _named(machine)
    assert (level, text.endswith("the drain comes before the stop of my-san.service, my-vpn.service")) == (
        "ok",
        True,
    )
    said: list[str] = []
    uninstall(machine.root, _Installing(machine), said.append, lambda: "")
    assert not (machine.root / DROP_IN).parent.exists()


def test_an_image_is_told_by_hand(tmp_path: Path) -> None:
    install(b"program", build.units(), tmp_path, None, len, after=[WG])
    install(b"program", build.units(), tmp_path, None, len)
    assert (tmp_path / DROP_IN).read_text() == f"[Unit]\nAfter={WG}\n"


@pytest.mark.parametrize("manager", ["systemd-networkd", "NetworkManager", "networking"])
def test_a_tunnel_of_a_manager_of_networks_is_well_ordered(machine: Machine, manager: str) -> None:
    """They have fixed names, and keep files of what is theirs."""
    _wireguard(machine)
    machine.active.remove(WG)
    assert _named(machine)[0][0] == "warn"
    machine.write("run/systemd/netif/links/7", "ADMIN_STATE=unmanaged\n")
    machine.write("run/NetworkManager/devices/7", "[device]\nmanaged=true\n")
    machine.write("run/network/ifstate", "lo=lo\nwg01=wg01\n")
    assert _named(machine)[0][0] == "warn"
    file, text = {
        "systemd-networkd": ("run/systemd/netif/links/7", "ADMIN_STATE=configured\n"),
        "NetworkManager": ("run/NetworkManager/devices/7", "[device]\nmanaged=true\nnm-owned=true\n"),
        "networking": ("run/network/ifstate", "lo=lo\nwg0=wg0\n"),
    }[manager]
    machine.write(file, text)
    assert _named(machine) == [
        ("ok", f"wg0 carries the way to {URL}; the drain comes before the stop of {manager}.service")
    ]


def test_wireguard_that_a_service_makes_in_the_kernel(machine: Machine) -> None:
    """No process holds it, and no unit is named like it."""
    machine.ways[SERVER] = "wt0"
    machine.interface("wt0", type="65534")
    assert _named(machine)[0][0] == "warn"
    machine.active.append("netbird.service")
    assert _named(machine)[0] == (
        "ok",
        f"wt0 carries the way to {URL}; the drain comes before the stop of netbird.service",
    )


def test_a_plain_network_needs_nothing(machine: Machine) -> None:
    """What is up before the network target is, and is so stopped after the drain, need not be named."""
    _eth0(machine)
    machine.active.append("ifup@eth0.service")
    machine.before["ifup@eth0.service"] = "network.target shutdown.target"
    assert _named(machine) == [("ok", f"eth0 carries the way to {URL}")]
    _install(machine)
    assert not (machine.root / DROP_IN).exists()


def test_a_bridge_with_a_real_device_and_guests_is_a_plain_network(machine: Machine) -> None:
    _eth0(machine)
    machine.ways[SERVER] = "br0"
    machine.interface("br0", lower_eth0="", lower_tap0="")
    machine.interface("tap0", tun_flags="0x1002")
    assert _named(machine) == [("ok", f"br0 carries the way to {URL}")]


@pytest.mark.parametrize("name", ["cni0", "flannel.1", "cilium_wg0", "wireguard.cali", "flannel-wg"])
def test_the_network_of_pods_is_told_as_that(machine: Machine, name: str) -> None:
    """It is brought up from pods, or by the kubelet's own program; no other unit makes it."""
    machine.ways[SERVER] = name
    machine.interface(name, type="65534")
    ((level, text),) = _named(machine)
    assert (level, "of the pod network" in text) == ("note", True)


def test_what_is_on_this_machine_needs_no_network(machine: Machine) -> None:
    machine.ways["127.0.0.1"] = "lo"
    _kubeconfig(machine, "https://127.0.0.1:6444")
    assert _named(machine) == []


def test_the_ways_to_the_other_listed_servers_count(machine: Machine) -> None:
    """An agent of k3s asks its own load balancer, which asks those."""
    _wireguard(machine)
    machine.ways.update({"127.0.0.1": "lo", "10.0.0.11": "wg0", "10.1.0.1": "eth0"})
    machine.interface("eth0", device="")
    _kubeconfig(machine, "https://127.0.0.1:6444")
    addresses = [f"{at}:6443" for at in (SERVER, "10.0.0.11", "10.1.0.1")]
    listed = "var/lib/rancher/k3s/agent/etc/k3s-agent-load-balancer.json"
    machine.write(listed, json.dumps({"ServerAddresses": addresses}))
    facts = collect(machine.root, machine.run, node="k8s-1")
    assert facts.order.routes == (
        Route((URL, "https://10.0.0.11:6443"), "wg0", (WG,), tunnel=True),
        Route(("https://10.1.0.1:6443",), "eth0"),
    )


def test_a_way_that_is_not_known_is_told_with_why(machine: Machine) -> None:
    ((level, text),) = _named(machine)
    assert (
        level,
        text.endswith(f"`ip route get {SERVER}` does not tell: RTNETLINK answers: Network is unreachable"),
    ) == (
        "warn",
        True,
    )


def test_before_the_node_has_joined_install_says_what_is_left_to_do(machine: Machine) -> None:
    (machine.root / "var/lib/rancher/k3s/agent/kubelet.kubeconfig").unlink()
    assert any("the way to the API server is not known yet" in line for line in _install(machine))


@pytest.mark.parametrize("unit", ["rbdmap.service", "blk-availability.service", "tailscaled.service"])
def test_what_runs_and_an_older_unit_does_not_name_is_wrong(machine: Machine, unit: str) -> None:
    """As the unit in place was written by an older program, or by hand."""
    _eth0(machine)
    machine.active.append(unit)
    assert unit not in str(_orders(machine))
    machine.after = " ".join(it for it in SHIPPED if it != unit)
    assert _orders(machine) == [
        ("FAIL", f"running, and may be stopped before the drain is over: {unit}"),
        ("ok", "the drain comes before the stop of k3s.service"),
    ]


def _orders(machine: Machine) -> list[tuple[str, str]]:
    found = judge(collect(machine.root, machine.run, node="k8s-1"))
    return sorted((it.level.value, it.text) for it in found if it.subject == "order")


@pytest.mark.parametrize(
    "chain",
    [
        {WG: "multi-user.target"},
        {WG: "a.service", "a.service": DRAIN_UNIT},
        {WG: "-.mount mnt-keys.mount", "mnt-keys.mount": "b.socket", "b.socket": "multi-user.target"},
    ],
    ids=["at once", "by a service", "by a mount and a socket"],
)
def test_a_unit_that_comes_after_ours_is_not_named(machine: Machine, chain: dict[str, str]) -> None:
    """Or systemd would leave out one of them, at boot."""
    _wireguard(machine)
    machine.orders.update({**chain, "multi-user.target": DRAIN_UNIT, "k3s.service": "network.target"})
    said = _install(machine)
    assert not (machine.root / DROP_IN).exists()
    assert any(line.startswith(f"not named: {WG} is itself started after") for line in said)
    assert _changes(machine) == [
        f"{WG} must not itself be started after {DRAIN_UNIT}, or after multi-user.target; then fencer-guest "
        "install again"
    ]
    with pytest.raises(Unusable, match=WG):
        _install(machine, WG)


def test_a_unit_whose_order_could_not_be_looked_at_is_not_named(machine: Machine) -> None:
    """It may come after ours: systemd would leave out the drain, at every boot, and nobody would know."""
    _wireguard(machine)
    run, said = _Installing(machine), list[str]()

    def silent(command: Sequence[str]) -> Ran:
        asked = any("Id,After" in word for word in command)
        return Ran(None, error="systemctl: did not end within 10 s") if asked else run(command)

    with pytest.raises(Unusable, match=f"what .*{WG}.* ordered after is not known: systemctl: did not end"):
        install(b"program", build.units(), machine.root, silent, said.append)
    assert said == [], "nothing was written"


def test_an_order_that_goes_round_is_told(machine: Machine) -> None:
    _eth0(machine)
    machine.orders["tailscaled.service"] = "multi-user.target"
    (level, text), _ = _orders(machine)
    assert (level, text.startswith("it waits for tailscaled.service, and that waits for it")) == (
        "FAIL",
        True,
    )


def test_the_shipped_unit_names_whatever_has_a_fixed_name() -> None:
    vpns = {"tailscaled.service", "openvpn.service", "wg-quick.target", "zerotier-one.service"}
    volumes = {"rbdmap.service", "blk-availability.service", "iscsi.service", "open-iscsi.service"}
    assert vpns | volumes <= set(SHIPPED)
    assert UNCORDON_UNIT not in SHIPPED
    assert "multi-user.target" not in SHIPPED


def test_a_name_that_nobody_has_is_told(machine: Machine) -> None:
    _kubeconfig(machine, "https://nosuch.invalid:6443")
    ((level, text),) = _named(machine)
    assert (level, "how https://nosuch.invalid:6443 is reached is not known: " in text) == (
        "warn",
        True,
    )
    assert "Errno" not in text


def test_without_ip_it_says_so(machine: Machine) -> None:
    """It comes with iproute2, which some images leave out."""
    machine.missing = ["ip"]
    ((level, text),) = _named(machine)
    assert (level, "ip: No such file or directory" in text) == ("warn", True)
