"""Spans of time, kubelets among the processes, and logind's files."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.guest import kubelets, logind_files, spans
from fencer.guest.facts import Setting
from fencer.guest.places import UNITS
from fencer.guest.system import Ran


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("text", "span_s"),
    [
        ("30", 30),
        ("5s", 5),
        ("1min 30s", 90),
        ("2min30s", 150),
        ("1m30s", 90),
        ("0s", 0),
        ("1h0m0s", 3600),
        ("1.5h", 5400),
        ("500ms", 0.5),
        ("infinity", float("inf")),
        ("", None),
        ("soon", None),
        ("-5s", None),
        ("5 lightyears", None),
    ],
)
def test_spans_of_systemd_and_of_go(text: str, span_s: float | None) -> None:
    assert spans.seconds(text) == span_s


@given(st.text(max_size=30))
def test_no_text_makes_spans_stumble(text: str) -> None:
    found = spans.seconds(text)
    assert found is None or found >= 0


@pytest.mark.parametrize(
    ("span_s", "text"),
    [(30, "30 s"), (150, "2 min 30 s"), (120, "2 min"), (float("inf"), "without end"), (None, "unknown")],
)
def test_spans_for_people(span_s: float | None, text: str) -> None:
    assert spans.told(span_s) == text


@pytest.mark.parametrize(
    ("words", "cgroup", "unit", "config"),
    [
        (["/usr/bin/kubelet", "--config=/a"], "0::/system.slice/kubelet.service", "kubelet.service", "/a"),
        (
            ["kubelet", "--config", "/b", "--v=2"],
            "0::/kube.slice/rke2-agent.service",
            "rke2-agent.service",
            "/b",
        ),
        (["/usr/local/bin/k3s server"], "0::/system.slice/k3s-lab.service", "k3s-lab.service", ""),
        (
            ["/usr/local/bin/k3s", "agent", "--config=/k3s"],
            "0::/system.slice/k3s-agent.service",
            "k3s-agent.service",
            "",
        ),
        (["kubelet"], "3:cpu:/x\n1:name=systemd:/system.slice/kubelet.service", "kubelet.service", ""),
        (["/var/lib/k0s/bin/kubelet"], "0::/system.slice/containerd.service", "", ""),
        (["kubelet"], "", "", ""),
    ],
)
def test_a_kubelet_is_seen(tmp_path: Path, words: list[str], cgroup: str, unit: str, config: str) -> None:
    _write(tmp_path / "proc/812/cmdline", "\0".join(words) + "\0")
    _write(tmp_path / "proc/812/cgroup", cgroup)
    (found,) = kubelets.processes(tmp_path)
    assert (found.pid, found.unit, found.option("config")) == (812, unit, config)


@pytest.mark.parametrize(
    "words", [["bash"], ["k3s", "kubectl", "get"], ["vim", "kubelet"], ["kubelet-exporter"], []]
)
def test_what_is_no_kubelet_is_none(tmp_path: Path, words: list[str]) -> None:
    _write(tmp_path / "proc/812/cmdline", "\0".join(words))
    assert kubelets.processes(tmp_path) == []


def test_units_that_are_being_stopped_still_count() -> None:
    """The drain runs in a shutdown."""
    states = dict.fromkeys(UNITS, "inactive") | {UNITS[0]: "deactivating", UNITS[2]: "failed"}
    assert kubelets.active_units(lambda _: Ran(3, "\n".join(states.values()))) == [UNITS[0]]
    assert kubelets.active_units(lambda _: Ran(None)) == []


UPGRADES = "usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf"


def _delay(folder: Path) -> list[Setting]:
    return list(logind_files.settings(folder, "InhibitDelayMaxSec"))


def test_ubuntus_drop_in_comes_after_the_kubelets(tmp_path: Path) -> None:
    """Names are sorted, folders are not: kubernetes#102818."""
    _write(tmp_path / "etc/systemd/logind.conf", "[Login]\n#InhibitDelayMaxSec=5\nInhibitDelayMaxSec=10\n")
    _write(tmp_path / "etc/systemd/logind.conf.d/99-kubelet.conf", "[Login]\nInhibitDelayMaxSec=45\n")
    _write(tmp_path / UPGRADES, "[Login]\n# delay\nInhibitDelayMaxSec=30\n")
    assert [setting.value for setting in _delay(tmp_path)] == ["10", "45", "30"]
    assert _delay(tmp_path)[-1].file == f"/{UPGRADES}"


def test_the_same_name_in_etc_hides_it(tmp_path: Path) -> None:
    """Also as a link to /dev/null, which is how one masks it."""
    _write(tmp_path / "etc/systemd/logind.conf.d/99-kubelet.conf", "[Login]\nInhibitDelayMaxSec=45\n")
    _write(tmp_path / UPGRADES, "[Login]\nInhibitDelayMaxSec=30\n")
    (tmp_path / "etc/systemd/logind.conf.d" / Path(UPGRADES).name).symlink_to("/dev/null")
    assert [setting.value for setting in _delay(tmp_path)] == ["45"]


def test_only_the_section_login_counts(tmp_path: Path) -> None:
    _write(
        tmp_path / "usr/lib/systemd/logind.conf",
        "InhibitDelayMaxSec=1\n[Other]\nInhibitDelayMaxSec=2\n[Login]\n; x\n",
    )
    assert _delay(tmp_path) == []
