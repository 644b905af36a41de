"""Report C as a table: what a machine is like, what is wrong with it, and what happens to its pods."""

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from fencer.guest import report
from fencer.guest.collect import collect
from fencer.guest.facts import (
    DRAIN_UNIT,
    UNCORDON_UNIT,
    Connection,
    Facts,
    Kubelet,
    Lock,
    Logind,
    Route,
    Setting,
    Unit,
)
from fencer.guest.hibernation import TARGETS
from fencer.guest.judge import Level, judge
from fencer.guest.listen import held
from fencer.guest.system import Ran
from fencer.guest.ways import Outcome, ways
from tests.controlplane.certificates import Authority
from tests.guest.machine import BOOT, MOUNTS, Machine
from tests.guest.serving import send, serving

LB = "var/lib/rancher/k3s/agent/etc/k3s-agent-load-balancer.json"
LOCK = Lock("kubelet", "shutdown", "delay")
UPGRADES = "/usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf"
GOOD = Facts(
    systemd=252,
    drain=Unit(DRAIN_UNIT, True, True, True, ("k3s.service", "network.target"), (), 150, 120),
    uncordon=Unit(UNCORDON_UNIT, True, True, True),
    logind=Logind(True, (), 5, (), "poweroff"),
    kubelet=Kubelet("k3s.service"),
    connection=Connection("k8s-1", "https://127.0.0.1:6444", "/k"),
    button=True,
    agent="qemu-guest-agent.service",
)
NO_DRAIN = replace(GOOD, drain=Unit(DRAIN_UNIT))
GRACEFUL = replace(
    NO_DRAIN,
    logind=replace(GOOD.logind, locks=(LOCK,), delay_s=60),
    kubelet=replace(GOOD.kubelet, grace_s=60, critical_s=20),
)
# systemctl, shutdown now, shutdown +1, ACPI, agent; what is hard is always cut
ALL_DRAINED = ("drained",) * 5
ALL_UNTOLD = ("untold",) * 5
BY_KUBELET = ("ended-by-kubelet",) * 5
OTHERS = ("systemctl kexec", "systemctl soft-reboot", "systemctl rescue")


def _with(base: Facts, **parts: dict[str, object]) -> Facts:
    """Change fields of the parts of a machine."""
    return replace(base, **{name: replace(getattr(base, name), **changes) for name, changes in parts.items()})


@pytest.mark.parametrize(
    ("facts", "outcomes"),
    [
        (GOOD, ALL_DRAINED),
        (replace(GOOD, logind=Logind()), ("drained", "drained", "drained", "ignored", "drained")),
        (replace(GOOD, systemd=219), ALL_DRAINED),
        (NO_DRAIN, ALL_UNTOLD),
        (_with(GOOD, drain={"active": False}), ALL_UNTOLD),
        (_with(GOOD, drain={"after": ("kubelet.service",)}), ALL_UNTOLD),
        (_with(GOOD, connection={"trouble": "no"}), ALL_UNTOLD),
        (_with(GOOD, program={"trouble": "no Python"}), ALL_UNTOLD),
        (_with(GOOD, order={"routes": (Route(("s",), "wg0", ("wg-quick@wg0.service",)),)}), ALL_UNTOLD),
        (_with(GOOD, order={"routes": (Route(("s",), "eth0"),)}), ALL_DRAINED),
        (GRACEFUL, BY_KUBELET),
        (replace(GRACEFUL, systemd=250), ("ended-by-kubelet", "untold", *("ended-by-kubelet",) * 3)),
        (replace(GRACEFUL, systemd=239), ("ended-by-kubelet", "untold", *("ended-by-kubelet",) * 3)),
        (replace(GRACEFUL, systemd=254), BY_KUBELET),
        (replace(GRACEFUL, systemd=219), ALL_UNTOLD),
        (replace(GRACEFUL, systemd=208), ALL_UNTOLD),
        (replace(GRACEFUL, drain=GOOD.drain, systemd=219), ALL_DRAINED),
        (_with(GRACEFUL, logind={"locks": (Lock("other", "shutdown", "delay"),)}), ALL_UNTOLD),
        (_with(GRACEFUL, logind={"locks": (Lock("kubelet", "sleep", "delay"),)}), ALL_UNTOLD),
        (_with(GRACEFUL, logind={"locks": (replace(LOCK, uid=1000),)}), ALL_UNTOLD),
        (replace(GRACEFUL, drain=GOOD.drain), BY_KUBELET),
        (
            replace(GRACEFUL, drain=GOOD.drain, systemd=247),
            ("ended-by-kubelet", "drained", *("ended-by-kubelet",) * 3),
        ),
        (replace(GOOD, button=False), (*("drained",) * 3, "ignored", "drained")),
        (_with(GOOD, logind={"power_key": "ignore"}), (*("drained",) * 3, "ignored", "drained")),
        (_with(GOOD, logind={"power_key": "suspend"}), (*("drained",) * 3, "ignored", "drained")),
        (replace(GOOD, agent=""), (*("drained",) * 4, "ignored")),
        (Facts(), ("untold", "untold", "untold", "ignored", "ignored")),
    ],
)
def test_what_each_way_of_stopping_does(facts: Facts, outcomes: tuple[str, ...]) -> None:
    """The lock comes before the units; what asks logind for the shutdown depends on systemd's version."""
    found = [way.outcome.value for way in ways(facts) if not way.how.startswith(OTHERS)]
    assert tuple(found) == (*outcomes, "cut", "cut", "cut")


@pytest.mark.parametrize(
    ("facts", "kexec", "soft"),
    [
        (GOOD, "drained", None),
        (replace(GOOD, systemd=254), "drained", "drained"),
        (replace(GRACEFUL, systemd=257), "ended-by-kubelet", "ended-by-kubelet"),
        (replace(GRACEFUL, systemd=247), "untold", None),
        (replace(NO_DRAIN, systemd=257), "untold", "untold"),
    ],
)
def test_what_reboots_without_the_firmware(facts: Facts, kexec: str, soft: str | None) -> None:
    """Both stop all units, and ask logind before; a soft reboot is there since 254."""
    found = {way.how: way.outcome.value for way in ways(facts)}
    assert (found["systemctl kexec"], found.get("systemctl soft-reboot")) == (kexec, soft)


def test_a_rescue_is_no_shutdown() -> None:
    """What the unit runs at its stop sees that the machine does not go down."""
    (rescue,) = [way for way in ways(replace(GOOD, systemd=257)) if "rescue" in way.how]
    assert (rescue.outcome.value, "`fencer-guest drain --now`" in rescue.text) == ("untold", True)


def test_that_the_drain_comes_too_late_is_said() -> None:
    assert "the drain comes too late" in ways(replace(GRACEFUL, drain=GOOD.drain))[0].text
    assert "too late" not in ways(GRACEFUL)[0].text


@pytest.mark.parametrize(
    ("facts", "wrong", "says", "change"),
    [
        (GOOD, set(), "off, as it should be", ""),
        (GRACEFUL, set(), "on: the kubelet holds its lock, 1 min in all", "fencer-guest install"),
        (Facts(), {("systemd", "FAIL")}, "there is none", ""),
        (NO_DRAIN, {("drain unit", "FAIL")}, "not installed", "fencer-guest install"),
        (
            _with(GOOD, drain={"active": False}),
            {("drain unit", "FAIL")},
            "not active",
            "systemctl enable --now fencer-guest-drain.service",
        ),
        (_with(GOOD, drain={"enabled": False}), {("drain unit", "FAIL")}, "not enabled", "systemctl enable"),
        (_with(GOOD, drain={"after": ()}), {("order", "FAIL")}, "may be stopped before", "After=k3s.service"),
        (_with(GOOD, drain={"tied_to": ("k3s.service",)}), {("order", "FAIL")}, "every restart", "drop-in"),
        (_with(GOOD, drain={"stop_timeout_s": 120.0}), {("time", "FAIL")}, "after 2 min", "--timeout 120"),
        (
            _with(GOOD, drain={"stop_timeout_s": 132.0}),
            {("time", "FAIL")},
            "after 2 min 12 s",
            "--timeout 120",
        ),
        (_with(GOOD, drain={"stop_timeout_s": None}), {("time", "warn")}, "could not be read", "install"),
        (_with(GOOD, uncordon={"enabled": False}), {("uncordon unit", "FAIL")}, "stays cordoned", "install"),
        (
            _with(GOOD, kubelet={"unit": ""}),
            {("kubelet", "FAIL")},
            "none runs here",
            "k0sworker",
        ),
        (
            _with(GOOD, connection={"trouble": "no way"}),
            {("api", "FAIL")},
            "no way",
            "nothing can be drained",
        ),
        (
            _with(GOOD, connection={"alone": True}),
            {("api", "warn")},
            "no other is listed: if it stops first, nothing is drained",
            "graceful node shutdown",
        ),
        (
            _with(GOOD, connection={"alone": True, "unread": "/lb.json: line 1"}),
            {("api", "warn")},
            "who else may be asked is not known: /lb.json: line 1",
            "",
        ),
        (
            _with(GOOD, connection={"lost": "https://127.0.0.1:6443", "others": ("https://10.0.0.2:6443",)}),
            {("api", "warn")},
            "the server that the kubeconfig names does not answer: https://127.0.0.1:6443",
            "",
        ),
        (
            _with(GOOD, connection={"useless": ("https://10.0.0.2:6443: Connection refused",)}),
            {("api", "warn")},
            "listed, but of no help: https://10.0.0.2:6443: Connection refused",
            "",
        ),
        (
            _with(GOOD, connection={"trouble": "no way", "unread": "/lb.json: line 1"}),
            {("api", "FAIL"), ("api", "warn")},
            "who else may be asked is not known: /lb.json: line 1",
            "",
        ),
        (
            _with(GOOD, kubelet={"trouble": "/c: line 3: more of YAML than is read here"}),
            {("graceful node shutdown", "warn")},
            "line 3",
            "",
        ),
        (
            replace(GRACEFUL, drain=GOOD.drain),
            {("graceful node shutdown", "warn")},
            "the kubelet ends all pods first",
            "shutdownGracePeriod: 0s",
        ),
        (
            _with(GRACEFUL, kubelet={"critical_s": 61.0}),
            {("graceful node shutdown", "FAIL")},
            "longer than the whole",
            "shorter",
        ),
        (
            _with(GOOD, kubelet={"grace_s": 30.0}),  # a longer delay would switch it on, beside the drain
            {("graceful node shutdown", "warn")},
            "holds no lock",
            "shutdownGracePeriod: 0s",
        ),
        (
            _with(NO_DRAIN, kubelet={"grace_s": 30.0}, logind={"delay_s": 60.0}),
            {("drain unit", "FAIL"), ("graceful node shutdown", "FAIL")},
            "holds no lock",
            "systemctl restart k3s.service",
        ),
        (
            _with(NO_DRAIN, kubelet={"grace_s": 60.0}),
            {("drain unit", "FAIL"), ("graceful node shutdown", "FAIL")},
            "logind grants 5 s by default",
            "InhibitDelayMaxSec=60 in /etc/systemd/logind.conf.d/zz-kubelet.conf",
        ),
        (
            _with(
                NO_DRAIN,
                kubelet={"grace_s": 60.0},
                logind={
                    "delay_s": 30.0,
                    "delay_set": (
                        Setting("/etc/systemd/logind.conf.d/99-kubelet.conf", "60"),
                        Setting(UPGRADES, "30"),
                    ),
                },
            ),
            {("drain unit", "FAIL"), ("graceful node shutdown", "FAIL")},
            f"logind grants 30 s, set in {UPGRADES}",
            "ln -s /dev/null /etc/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf",
        ),
        (
            _with(NO_DRAIN, kubelet={"grace_s": 60.0}, logind={"running": False}),
            {("drain unit", "FAIL"), ("graceful node shutdown", "FAIL"), ("logind", "warn")},
            "no logind runs",
            "libpam-systemd",
        ),
        (
            _with(
                GRACEFUL, logind={"delay_s": 30.0, "delay_set": (Setting("/etc/systemd/logind.conf", "30"),)}
            ),
            {("logind", "FAIL")},
            "wants 1 min, logind waits 30 s, set in /etc/systemd/logind.conf",
            "zz-kubelet.conf",
        ),
        (
            _with(GOOD, logind={"delay_set": (Setting("/etc/systemd/logind.conf.d/99-kubelet.conf", "60"),)}),
            {("logind", "warn")},
            "says InhibitDelayMaxSec=60, in force is 5 s",
            "HUP",
        ),
        (
            _with(GOOD, logind={"locks": (Lock("apt", "shutdown:sleep", "block"),)}),
            {("logind", "warn")},
            "apt blocks shutdowns",
            "systemd-inhibit --list",
        ),
        (replace(GOOD, button=False), {("power button", "warn")}, "not heard", "evdev"),
    ],
)
def test_what_is_wrong_and_what_to_change(
    facts: Facts, wrong: set[tuple[str, str]], says: str, change: str
) -> None:
    assert {
        (it.subject, it.level.value) for it in judge(facts) if it.level in (Level.WARN, Level.FAIL)
    } == wrong
    found = judge(facts)
    assert any(says in it.text for it in found)
    assert any(change in it.change for it in found)


def test_everything_wrong_names_a_change() -> None:
    """A finding that leaves its reader alone is none."""
    facts = replace(Facts(), systemd=252)
    assert all(it.change for it in judge(facts) if it.level is Level.FAIL)


# -- collecting -------------------------------------------------------------------------------------------


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def _collected(machine: Machine) -> Facts:
    return collect(machine.root, machine.run)


def test_a_reason_of_any_length_hides_no_lock_and_forges_none(machine: Machine) -> None:
    """Any user may hold a lock, and name any reason; busctl escapes quotes in it."""
    reason = r"\" \"shutdown\" \"kubelet\" \\" + "x" * 900_000
    told = f'a(ssssuu) 2 "sleep" "a b" "{reason}" "delay" 1000 77 "shutdown" "kubelet" "" "delay" 0 812\n'
    facts = collect(
        machine.root, lambda words: Ran(0, told) if "ListInhibitors" in words else machine.run(words)
    )
    assert facts.logind.locks == (Lock("a b", "sleep", "delay", 1000), LOCK)


def test_locks_that_could_not_be_heard_are_not_none(machine: Machine) -> None:
    """One reason alone may be longer than what is heard of a command, and the kubelet's lock be behind it."""
    trouble = "busctl: more than 1 MiB of output"

    def run(words: Sequence[str]) -> Ran:
        return Ran(None, error=trouble) if "ListInhibitors" in words else machine.run(words)

    facts = collect(machine.root, run)
    (found,) = [it for it in judge(facts) if it.subject == "graceful node shutdown"]
    assert (found.level, found.text) == (
        Level.WARN,
        f"whether the kubelet holds its lock is not known: {trouble}",
    )
    assert held(run) == f"locks on shutdown: not known ({trouble})"


def test_a_machine_that_can_hibernate_is_told_how_it_cannot(machine: Machine) -> None:
    machine.may_hibernate()
    assert _told(machine, "hibernation") == [
        ("warn", "it can hibernate: its hypervisor calls it off, and a start continues with its old memory")
    ]
    (change,) = [it.change for it in judge(_collected(machine)) if it.subject == "hibernation"]
    assert change == "systemctl mask hibernate.target hybrid-sleep.target suspend-then-hibernate.target"
    machine.masked = [*TARGETS[:2]]
    assert _collected(machine).hibernates == TARGETS[2:]
    machine.masked = [*TARGETS]
    assert not _told(machine, "hibernation")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("sys/power/state", "freeze mem\n"),
        ("sys/power/disk", "[disabled]\n"),
        ("sys/power/resume", "0:0\n"),
        ("proc/cmdline", "root=/dev/vda1 resume=/dev/vda5 noresume\n"),
        ("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n"),
        ("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n/dev/zram0\tpartition\t1\t0\t100\n"),
    ],
)
def test_one_that_cannot_is_told_nothing(machine: Machine, file: str, text: str) -> None:
    machine.may_hibernate()
    machine.write(file, text)
    assert not _collected(machine).hibernates


def test_where_its_kernel_finds_the_image_may_be_told_by_the_command_line_or_the_firmware(
    machine: Machine,
) -> None:
    machine.may_hibernate()
    machine.write("sys/power/resume", "0:0\n")
    machine.write("proc/cmdline", "root=/dev/vda1 resume=/dev/vda5\n")
    assert _collected(machine).hibernates
    machine.write("proc/cmdline", "root=/dev/vda1\n")
    assert not _collected(machine).hibernates
    machine.folder(machine.root / "sys/firmware/efi")
    assert _collected(machine).hibernates


def test_a_debian_guest_with_k3s_as_it_told_itself(machine: Machine) -> None:
    machine.locks = [("sleep", "NetworkManager", "delay"), ("shutdown", "kubelet", "delay")]
    facts = _collected(machine)
    assert facts.systemd == 252
    assert facts.drain == Unit(
        DRAIN_UNIT,
        loaded=True,
        enabled=True,
        active=True,
        after=("k3s.service", "kubelet.service", "network.target"),
        tied_to=("system.slice", "sysinit.target"),
        stop_timeout_s=150,
        drain_timeout_s=120,
    )
    assert facts.logind.locks == (Lock("NetworkManager", "sleep", "delay"), LOCK)
    assert (facts.logind.delay_s, facts.logind.power_key) == (5, "poweroff")
    assert (facts.kubelet.unit, facts.button, facts.agent) == (
        "k3s.service",
        True,
        "qemu-guest-agent.service",
    )


def test_what_is_not_installed_is_not_there(machine: Machine) -> None:
    machine.installed, machine.active = False, []
    facts = _collected(machine)
    assert not facts.drain.loaded
    assert not facts.drain.enabled
    assert facts.kubelet == Kubelet()


def test_a_machine_without_systemd_is_told_apart(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.systemd = ""
    assert judge(_collected(machine))[0].subject == "systemd"


def test_no_logind_is_no_guess(machine: Machine) -> None:
    machine.delay_us = ""
    assert _collected(machine).logind == Logind()


KUBELET_CONFIG = (
    "kind: KubeletConfiguration\nshutdownGracePeriod: 1m0s\nshutdownGracePeriodCriticalPods: 20s\n"
)
K3S_DROP_INS = "var/lib/rancher/k3s/agent/etc/kubelet.conf.d"


def _kubeadm(machine: Machine, *options: str) -> None:
    machine.active = []
    machine.kubelet("kubelet.service", "/usr/bin/kubelet", *options)


def _k3s_argument(machine: Machine) -> None:
    machine.write("etc/rancher/k3s/config.yaml", "kubelet-arg:\n- config=/etc/k.yaml\n- v=2\n")
    machine.write("etc/k.yaml", KUBELET_CONFIG)


def _k3s_command(machine: Machine) -> None:
    machine.k3s_command = "argv[]=/usr/local/bin/k3s server --kubelet-arg=config=/etc/k.yaml ;"
    machine.write("etc/k.yaml", KUBELET_CONFIG)


def _k3s_drop_in(machine: Machine) -> None:
    machine.write(f"{K3S_DROP_INS}/00-k3s-defaults.conf", "shutdownGracePeriod: 0s\n")
    machine.write(f"{K3S_DROP_INS}/10-graceful.conf", KUBELET_CONFIG)


def _kubespray(machine: Machine) -> None:
    """Where `kubelet_shutdown_grace_period` of Kubespray goes."""
    _kubeadm(machine, "--config=/etc/kubernetes/kubelet-config.yaml")
    machine.write("etc/kubernetes/kubelet-config.yaml", KUBELET_CONFIG)


def _kubeadm_file(machine: Machine) -> None:
    _kubeadm(machine)
    machine.write("var/lib/kubelet/config.yaml", KUBELET_CONFIG)


def _kubeadm_drop_in(machine: Machine) -> None:
    _kubeadm(machine, "--config", "/a.json", "--config-dir", "/d")
    machine.write("a.json", '{"shutdownGracePeriod": "30s"}')
    machine.write("d/10.conf", KUBELET_CONFIG)


@pytest.mark.parametrize(
    "prepare",
    [_k3s_argument, _k3s_command, _k3s_drop_in, _kubespray, _kubeadm_file, _kubeadm_drop_in],
    ids=lambda it: it.__name__,
)
def test_the_grace_period_is_found(machine: Machine, prepare: Callable[[Machine], None]) -> None:
    """Wherever the installer keeps it; the last file wins, and is named."""
    prepare(machine)
    kubelet = _collected(machine).kubelet
    assert (kubelet.grace_s, kubelet.critical_s, kubelet.trouble) == (60, 20, "")
    file = {
        _k3s_argument: "/etc/k.yaml",
        _k3s_command: "/etc/k.yaml",
        _k3s_drop_in: f"/{K3S_DROP_INS}/10-graceful.conf",
        _kubespray: "/etc/kubernetes/kubelet-config.yaml",
        _kubeadm_file: "/var/lib/kubelet/config.yaml",
        _kubeadm_drop_in: "/d/10.conf",
    }[prepare]
    (text,) = [it.text for it in judge(_collected(machine)) if it.subject == "graceful node shutdown"]
    assert f"set to 1 min in {file}, but the kubelet holds no lock" in text
    machine.locks = [("shutdown", "kubelet", "delay")]
    (text,) = [it.text for it in judge(_collected(machine)) if it.subject == "graceful node shutdown"]
    assert text.startswith(f"on, set in {file}")


def test_that_it_is_off_is_told_with_who_says_so(machine: Machine) -> None:
    """It is off unless somebody sets it; some installers do."""

    def told() -> list[str]:
        return [it.text for it in judge(_collected(machine)) if it.subject == "graceful node shutdown"]

    assert told() == ["off: no file of the kubelet's sets it, and it holds no lock"]
    file = f"{K3S_DROP_INS}/00-k3s-defaults.conf"
    for text in ("shutdownGracePeriod: 0s\n", "featureGates:\n  GracefulNodeShutdown: false\n"):
        machine.write(file, text)
        assert told() == [f"off: /{file} says so, and it holds no lock"]


@pytest.mark.parametrize(
    ("text", "grace_s", "trouble"),
    [
        ("shutdownGracePeriod: 30s\nfeatureGates:\n  GracefulNodeShutdown: false\n", 0, ""),
        (
            "shutdownGracePeriodByPodPriority:\n- priority: 100\n  shutdownGracePeriodSeconds: 10\n"
            "- priority: 0\n  shutdownGracePeriodSeconds: 60\n",
            70,
            "",
        ),
        ("shutdownGracePeriod: soon\n", 0, ""),
        ("apiVersion: v1\n", 0, ""),
        ("a: &b c\n", 0, "line 1"),
        ("", 0, ""),
    ],
)
def test_what_kubelet_configurations_say(machine: Machine, text: str, grace_s: float, trouble: str) -> None:
    _kubeadm(machine)
    machine.write("var/lib/kubelet/config.yaml", text)
    kubelet = _collected(machine).kubelet
    assert kubelet.grace_s == grace_s
    assert trouble in kubelet.trouble


def _told(machine: Machine, subject: str) -> list[tuple[str, str]]:
    return [(it.level.value, it.text) for it in judge(_collected(machine)) if it.subject == subject]


@pytest.mark.parametrize(
    ("unit", "change"),
    [
        ("k3s.service", "several: `server:` in config.yaml"),
        ("rke2-server.service", "several: `server:` in config.yaml"),
        ("kubelet.service", "several: a load balancer before them"),
        ("k0scontroller.service", "several: a load balancer before them"),
        ("snap.microk8s.daemon-kubelite.service", "several: a load balancer before them"),
    ],
)
def test_whoever_has_one_way_is_advised_by_what_it_runs(unit: str, change: str) -> None:
    """Only k3s and RKE2 have a setting; workers of kubespray and MicroK8s ask a proxy on the loopback."""
    (finding,) = (
        it
        for it in judge(_with(GOOD, connection={"alone": True}, kubelet={"unit": unit}))
        if (it.subject, it.level.value) == ("api", "warn")
    )
    assert finding.change == f"one server: graceful node shutdown does more; {change}"


@pytest.mark.parametrize("unit", ["k3s-agent.service", "rke2-agent.service", "k0sworker.service"])
def test_an_agents_own_load_balancer_is_no_servers_only_way(unit: str) -> None:
    """It is on this machine, and goes on with the next server by itself; no API server runs here."""
    facts = _with(GOOD, connection={"alone": True}, kubelet={"unit": unit}, drain={"after": (unit,)})
    assert {it.level.value for it in judge(facts)} == {"ok"}


@pytest.mark.parametrize("unit", ["kubelet.service", "kubelet-lab.service"])
def test_a_kubelet_that_is_not_believed_is_not_read_as_off(machine: Machine, unit: str) -> None:
    """With PrivateTmp= in its unit it has mounts of its own, and what it names may be another file there."""
    machine.active = []
    words = ["/usr/bin/kubelet", "--config=/data/kubelet.yaml"]
    machine.write("data/kubelet.yaml", KUBELET_CONFIG)
    machine.kubelet(unit, *words)
    assert _collected(machine).kubelet.grace_s == 60
    machine.process(812, words, mounts=MOUNTS.replace("22 1 ", "907 611 "))
    ((level, text),) = _told(machine, "kubelet")
    assert level == "warn"
    assert text.startswith(f"{unit} runs as process 812, which is not believed: it has a mount namespace")
    assert _told(machine, "graceful node shutdown") == [
        ("warn", "unknown, because the kubelet is not believed")
    ]
    machine.locks = [("shutdown", "kubelet", "delay")]
    assert [level for level, _ in _told(machine, "graceful node shutdown")] == ["warn", "ok"]


def _k3s_settings(machine: Machine) -> None:
    machine.write("etc/rancher/k3s/config.yaml", "kubelet-arg:\n- config=/etc/k.yaml\n").chmod(0o664)


def _k3s_more_settings(machine: Machine) -> None:
    machine.write("etc/rancher/k3s/config.yaml.d/a.yaml", "kubelet-arg: &x [config=/etc/k.yaml]\n")


def _gone(machine: Machine) -> None:
    _kubeadm(machine, "--config=/gone.yaml")


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        (_k3s_settings, "/etc/rancher/k3s/config.yaml: others than root may change what is read here"),
        (_k3s_more_settings, "/etc/rancher/k3s/config.yaml.d/a.yaml: line 1"),
        (_gone, "/gone.yaml: No such file"),
    ],
    ids=lambda it: getattr(it, "__name__", ""),
)
def test_what_could_not_be_read_is_not_read_as_off(
    machine: Machine, prepare: Callable[[Machine], None], says: str
) -> None:
    prepare(machine)
    ((level, text),) = _told(machine, "graceful node shutdown")
    assert level == "warn"
    assert text.startswith(f"unknown, because {says}")


def test_of_a_configuration_nobody_is_told_to_name_a_kubeconfig(machine: Machine) -> None:
    """That would change nothing here; what does is said."""
    _kubeadm(machine, "--config=/data/kubelet.yaml")
    machine.write("data/kubelet.yaml", KUBELET_CONFIG)
    (machine.root / "data").chmod(0o775)
    ((_, text),) = _told(machine, "graceful node shutdown")
    assert text.endswith(f"if all is right there: chmod go-w {machine.root}/data")


def test_a_configuration_that_others_may_write_tells_nothing(machine: Machine) -> None:
    """It is read as root; and it is the kubelet's no more than it is theirs."""
    _kubeadm_file(machine)
    (machine.root / "var/lib/kubelet").chmod(0o777)
    kubelet = _collected(machine).kubelet
    assert kubelet.grace_s == 0
    assert "var/lib/kubelet has owner" in kubelet.trouble


# -- telling ----------------------------------------------------------------------------------------------


def test_the_table_fits_a_terminal() -> None:
    facts = replace(GRACEFUL, drain=GOOD.drain)
    lines = report.as_text(facts, judge(facts), ways(facts)).splitlines()
    assert max(len(line) for line in lines) <= report.WIDTH
    assert lines[-1] == "0 wrong, 1 to look at."


def test_programs_get_all_of_it() -> None:
    said = json.loads(report.as_json(NO_DRAIN, judge(NO_DRAIN), ways(NO_DRAIN)))
    assert (said["schema"], said["node"], said["ok"]) == (1, "k8s-1", False)
    assert {way["outcome"] for way in said["ways"]} <= {outcome.value for outcome in Outcome}
    assert any(it["level"] == "FAIL" and it["change"] == "fencer-guest install" for it in said["findings"])


# -- other API servers ------------------------------------------------------------------------------------


@dataclass
class Start:
    """Starts API servers that know k8s-1, or say no; gives where each is."""

    authority: Authority
    _ending: ExitStack

    def __call__(self, status: int = 200, boot: str = BOOT) -> str:
        body = {
            "metadata": {"name": "k8s-1"},
            "status": {"nodeInfo": {"bootID": boot}},
            "message": "so it is",
        }
        names = ("127.0.0.1", "kubernetes")
        answer = partial(send, status=status, body=json.dumps(body).encode())
        return f"https://127.0.0.1:{self._ending.enter_context(serving(self.authority, answer, names))}"


@pytest.fixture
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    with ExitStack() as ending:
        yield Start(Authority(tmp_path_factory.mktemp("pki")), ending)


@pytest.fixture
def closed() -> Iterator[str]:
    """A server that is gone: its port is bound, so that nobody else takes it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"https://127.0.0.1:{bound.getsockname()[1]}"


def _k3s(machine: Machine, start: Start, server: str) -> str:
    """Lay out a k3s node whose kubeconfig names a server."""
    pair = start.authority.client("system:node:k8s-1", ["system:nodes"])
    content = {
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": "ca"}}],
        "users": [{"name": "u", "user": {"client-certificate": "crt", "client-key": "key"}}],
    }
    agent = "var/lib/rancher/k3s/agent"
    for name, path in (("ca", start.authority.ca_file), ("crt", pair.cert_file), ("key", pair.key_file)):
        machine.write(f"{agent}/{name}", path.read_text())
    machine.write(f"{agent}/kubelet.kubeconfig", json.dumps(content))
    return server


@pytest.fixture
def own_server(machine: Machine, start: Start) -> str:
    """A k3s server that answers on the loopback; where it is."""
    return _k3s(machine, start, start())


def test_a_servers_only_way_is_its_own_api_server(machine: Machine, own_server: str) -> None:
    machine.k3s_command = "argv[]=/usr/local/bin/k3s server --cluster-init ;"
    (_, ok), (level, text) = _told(machine, "api")
    assert ok.startswith(f"{own_server} answers k8s-1 (by ")
    assert (level, "it is on this machine, and no other is listed" in text) == ("warn", True)


def test_itself_by_another_address_is_no_other(machine: Machine, own_server: str) -> None:
    port = own_server.rpartition(":")[2]
    machine.k3s_command = f"argv[]=/usr/local/bin/k3s server --server https://localhost:{port} ;"
    assert [level for level, _ in _told(machine, "api")] == ["ok", "warn"]


def test_other_servers_are_told_in_their_order(machine: Machine, start: Start, own_server: str) -> None:
    one, other = start(), start()
    machine.k3s_command = f"argv[]=/usr/local/bin/k3s server --server {one} ;"
    machine.write("etc/rancher/k3s/config.yaml", f"server: {other}\n")
    (level, text), _ = _told(machine, "api")
    assert (level, text.startswith(f"{own_server} answers")) == ("ok", True)
    assert text.endswith(f"; if it does not: {one}, {other}")


def test_who_would_not_help_is_not_promised(
    machine: Machine, start: Start, own_server: str, closed: str
) -> None:
    """Each is asked; at night there is nobody to see that none of them works."""
    down, clone, good = start(503), start(boot="another"), start()
    names = [server.removeprefix("https://") for server in (down, clone, closed, good)]
    machine.write(LB, json.dumps({"ServerAddresses": names}))
    (level, text), *rest = _told(machine, "api")
    assert (level, text.endswith(f"; if it does not: {good}")) == ("ok", True)
    assert sorted(rest[:-1]) == sorted(
        ("warn", f"listed, but of no help: {server}: {why}")
        for server, why in (
            (down, "it does not know node k8s-1 (so it is)"),
            (clone, "its node k8s-1 runs another boot (another) than this machine"),
            (closed, "Connection refused"),
        )
    )


def test_with_its_own_server_gone_it_tells_of_the_others(machine: Machine, start: Start, closed: str) -> None:
    """Who was asked, what is wrong with each, and which list was not believed."""
    _k3s(machine, start, closed)
    down = start(503)
    machine.write(LB, json.dumps({"ServerAddresses": [down.removeprefix("https://")]}))
    machine.write("etc/rancher/k3s/config.yaml", "server: https://10.0.0.3:6443\n").chmod(0o666)
    (level, text), (second, unread) = _told(machine, "api")
    assert level == "FAIL"
    assert text.startswith(f"{closed}: Connection refused; also asked: {down}: it does not know node k8s-1")
    assert "; not believed: /etc/rancher/k3s/config.yaml: others than root may change" in text
    assert (second, "/etc/rancher/k3s/config.yaml: others than root" in unread) == ("warn", True)


def test_a_server_that_is_gone_is_told_with_why(machine: Machine, start: Start, closed: str) -> None:
    _k3s(machine, start, closed)
    other = start()
    machine.write(LB, json.dumps({"ServerAddresses": [other.removeprefix("https://")]}))
    (level, text), (_, lost), *_ = _told(machine, "api")
    assert (level, text.startswith(f"{other} answers k8s-1"), "if it does not" in text) == (
        "ok",
        True,
        False,
    )
    assert lost == f"the server that the kubeconfig names does not answer: {closed}: Connection refused"


def test_a_list_that_is_not_believed_is_told_with_what_would_change_that(
    machine: Machine, own_server: str
) -> None:
    machine.write("etc/rancher/k3s/config.yaml", "server: https://10.0.0.3:6443\n").chmod(0o666)
    _, (level, text) = _told(machine, "api")
    assert level == "warn"
    assert "/etc/rancher/k3s/config.yaml: others than root may change" in text
    assert "chmod go-w" in text
