"""Which processes are believed to be kubelets: a name proves nothing."""

import os
from pathlib import Path

import pytest

from fencer.guest import kubelets
from fencer.guest.system import Ran
from tests.guest.machine import MOUNTS, Machine

CONTAINER = MOUNTS.replace("22 1 ", "907 611 ").replace("24 22 ", "909 907 ")
"""The same mounts in another namespace: their ids are others."""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.active = []
    return machine


def _found(machine: Machine) -> list[tuple[int, str, str]]:
    processes = kubelets.running(machine.root, machine.run).processes
    return [(it.pid, it.unit, it.option("config")) for it in processes]


@pytest.mark.parametrize(
    ("unit", "words", "config"),
    [
        ("kubelet.service", ["/usr/bin/kubelet", "--config=/a"], "/a"),
        ("kubelet.service", ["kubelet", "--config", "/b", "--v=2"], "/b"),
        ("kubelet.service", ["kubelet", "--config"], ""),
        ("k3s-lab.service", ["/usr/local/bin/k3s server"], ""),
        ("k3s-agent.service", ["/usr/local/bin/k3s", "agent", "--config=/k3s"], ""),
    ],
)
def test_the_main_process_of_a_kubelets_unit_is_believed(
    machine: Machine, unit: str, words: list[str], config: str
) -> None:
    machine.kubelet(unit, *words)
    assert _found(machine) == [(812, unit, config)]


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        ("rke2-agent.service", ["/usr/local/bin/rke2", "agent"]),
        ("k0sworker.service", ["/usr/local/bin/k0s", "worker"]),
    ],
)
def test_so_is_the_kubelet_that_it_started(machine: Machine, unit: str, words: list[str]) -> None:
    """Wherever that has its control group: k0s' kubelet moves to containerd's."""
    machine.kubelet(unit, *words)
    machine.process(900, ["/bin/kubelet", "--config=/a"], PPid="812")
    assert _found(machine) == [(900, unit, "/a")]


UNBELIEVED: dict[str, dict[str, str]] = {
    "another user's": {"Uid": "65534 65534 65534 65534"},
    "another user's, with root's rights": {"Uid": "65534 0 0 0"},
    "root's, as another user": {"Uid": "0 65534 65534 65534"},
    "root's of a container": {"NSpid": "PID 7", "mounts": CONTAINER},
    "of another process namespace": {"NSpid": "PID 7"},
    "of another mount namespace": {"mounts": CONTAINER},
    "without mounts": {"mounts": ""},
}


@pytest.mark.parametrize("told", UNBELIEVED.values(), ids=UNBELIEVED)
@pytest.mark.parametrize("child", [False, True], ids=["main process", "child"])
def test_who_is_not_root_beside_process_1_is_not(machine: Machine, told: dict[str, str], child: bool) -> None:
    """Its number may be another's by now; and a path means nothing where other files are mounted."""
    machine.kubelet("kubelet.service", "/usr/bin/wrapper" if child else "/usr/bin/kubelet", "--config=/a")
    pid, parent = (900, "812") if child else (812, "1")
    machine.process(pid, ["kubelet", "--config=/a"], PPid=parent)
    assert _found(machine) == [(pid, "kubelet.service", "/a")]
    machine.process(
        pid,
        ["kubelet", "--config=/a"],
        PPid=parent,
        **{k: v.replace("PID", str(pid)) for k, v in told.items()},
    )
    assert _found(machine) == []


def test_who_only_calls_itself_kubelet_is_not(machine: Machine) -> None:
    """Though it is root's, beside process 1: systemd knows nothing of it."""
    machine.process(900, ["kubelet", "--config=/a"])
    assert _found(machine) == []
    machine.kubelet("k0sworker.service", "/usr/local/bin/k0s", "worker")
    machine.process(901, ["/bin/containerd-shim"], PPid="812")
    machine.process(902, ["kubelet", "--config=/a"], PPid="901")
    assert _found(machine) == []


@pytest.mark.parametrize(
    "words", [["bash"], ["k3s", "kubectl", "get"], ["vim", "kubelet"], ["kubelet-exporter"], []]
)
def test_nor_is_a_main_process_of_another_name(machine: Machine, words: list[str]) -> None:
    machine.kubelet("kubelet.service", *words)
    assert _found(machine) == []


def test_a_unit_that_does_not_run_has_none(machine: Machine) -> None:
    machine.kubelet("kubelet.service", "/usr/bin/kubelet")
    machine.active = []
    assert _found(machine) == []


def test_a_unit_of_another_name_is_not_asked_for(machine: Machine) -> None:
    machine.kubelet("web.service", "/usr/bin/kubelet", "--config=/a")
    assert _found(machine) == []


def test_without_process_1_nothing_is_believed(machine: Machine) -> None:
    """Nobody can tell then what it sees."""
    machine.kubelet("kubelet.service", "/usr/bin/kubelet")
    machine.write("proc/1/mountinfo", "")
    machine.process(812, ["/usr/bin/kubelet"], mounts="")
    assert _found(machine) == []


def test_units_that_are_being_stopped_still_count(machine: Machine) -> None:
    """The drain runs in a shutdown."""
    states = {"k0sworker.service": "inactive", "kubelet.service": "deactivating", "k3s.service": "failed"}
    told = [f"Id={unit}\nMainPID=0\nActiveState={state}\n" for unit, state in states.items()]
    assert kubelets.running(machine.root, lambda _: Ran(0, "\n".join(told))).units == ("kubelet.service",)


@pytest.mark.parametrize("answer", ["", "Id=kubelet.service", "\n\n", "MainPID=x\nActiveState=active", "="])
def test_an_answer_that_tells_nothing_names_nobody(machine: Machine, answer: str) -> None:
    assert kubelets.running(machine.root, lambda _: Ran(1, answer)) == kubelets.Running((), ())


# -- who is not believed, and why -------------------------------------------------------------------------

WHY = {
    "another user's": "its user is 65534;",
    "another user's, with root's rights": "its user is 0/65534;",
    "root's, as another user": "its user is 0/65534;",
    "root's of a container": "it has a pid namespace of its own;",
    "of another process namespace": "it has a pid namespace of its own;",
    "of another mount namespace": "it has a mount namespace of its own; its unit has to do without Priv",
    "without mounts": "its mounts are not told, or those of process 1",
}


def _doubts(machine: Machine) -> list[str]:
    return [it.doubt for it in kubelets.running(machine.root, machine.run).doubted]


@pytest.mark.parametrize("name", UNBELIEVED)
def test_of_a_known_unit_it_is_said_why(machine: Machine, name: str) -> None:
    """Once for all of a unit, whatever process it shows."""
    for unit, words in (("kubelet.service", ["/usr/bin/wrapper"]), ("k3s-lab.service", ["k3s", "agent"])):
        machine.active, machine.main = [], {}
        machine.kubelet(unit, *words)
        told = {key: value.replace("PID", "812") for key, value in UNBELIEVED[name].items()}
        machine.process(812, words, **told)
        (doubt,) = _doubts(machine)
        assert kubelets.running(machine.root, machine.run).of_processes == (unit,)
        assert doubt.startswith(f"{unit} runs as process 812, which is not believed: {WHY[name]}")
        assert _found(machine) == []


def test_who_is_no_units_main_process_is_not_shown(machine: Machine) -> None:
    """However many call themselves so, of root's or not."""
    for pid in range(900, 920):
        machine.process(pid, ["kubelet", "--config=/a"], Uid="65534 65534 65534 65534")
    assert kubelets.running(machine.root, machine.run) == kubelets.Running((), ())


def test_who_has_ended_since_is_not_doubted(machine: Machine) -> None:
    machine.kubelet("kubelet.service", "kubelet")
    for name in ("status", "mountinfo", "cmdline"):
        (machine.root / "proc/812" / name).unlink()
    assert _doubts(machine) == []


def test_of_many_children_one_is_shown(machine: Machine) -> None:
    machine.kubelet("rke2-agent.service", "/usr/local/bin/rke2", "agent")
    for pid in range(900, 920):
        machine.process(pid, ["kubelet", "--config=/a"], PPid="812", mounts=CONTAINER)
    assert len(_doubts(machine)) == 1


def test_what_only_has_such_a_name_is_not_missed(machine: Machine) -> None:
    """An exporter of another user's, whose unit is called after the kubelet's."""
    machine.kubelet("kubelet-exporter.service", "/usr/bin/kubelet-exporter")
    machine.process(812, ["/usr/bin/kubelet-exporter"], Uid="65534 65534 65534 65534", mounts=CONTAINER)
    assert _doubts(machine) == []


def test_the_words_of_who_is_not_believed_are_not_shown(machine: Machine) -> None:
    machine.kubelet("kubelet.service", "kubelet")
    machine.process(812, ["\x1b[2J/kubelet", "--config=\n all is well"], mounts=CONTAINER)
    assert all(doubt.isprintable() and "well" not in doubt for doubt in _doubts(machine))
    assert len(_doubts(machine)) == 1


ENDLESS = 1 << 40
"""What a process's own command line may pretend to: `prctl(PR_SET_MM_MAP)` needs no right."""


@pytest.mark.parametrize("parent", ["1", "812"], ids=["any process", "a child of the unit's"])
def test_nobody_makes_us_read_without_end(machine: Machine, parent: str) -> None:
    """Neither of its command line nor of its status, which grows with its groups."""
    machine.kubelet("k0sworker.service", "/usr/local/bin/k0s", "worker")
    machine.process(900, ["kubelet", "--config=/a"], PPid="812")
    machine.process(901, ["kubelet", "--config=/b"], PPid=parent, Uid="65534 65534 65534 65534")
    machine.process(902, ["kubelet", "--config=/c"], PPid=parent, Uid="65534 65534 65534 65534")
    os.truncate(machine.root / "proc/901/cmdline", ENDLESS)
    os.truncate(machine.root / "proc/902/status", ENDLESS)
    assert _found(machine) == [(900, "k0sworker.service", "/a")]


def test_of_a_kubelets_command_line_enough_is_read(machine: Machine) -> None:
    machine.kubelet(
        "kubelet.service", "/usr/bin/kubelet", *(f"--v={word}" for word in range(1000)), "--config=/a"
    )
    os.truncate(machine.root / "proc/812/cmdline", ENDLESS)
    assert _found(machine) == [(812, "kubelet.service", "/a")]


def test_a_machine_may_have_many_mounts(machine: Machine) -> None:
    """As many as the kernel lets a namespace have, where pods have volumes without number."""
    row = "{} 22 0:99 / /var/lib/kubelet/pods/x/volumes/kubernetes.io~empty-dir/{} rw - tmpfs tmpfs rw\n"
    many = MOUNTS + "".join(row.format(number, number) for number in range(30, 100_000))
    machine.write("proc/1/mountinfo", many)
    machine.kubelet("kubelet.service", "/usr/bin/kubelet", "--config=/a")
    machine.process(812, ["kubelet", "--config=/a"], mounts=many)
    assert _found(machine) == [(812, "kubelet.service", "/a")]
