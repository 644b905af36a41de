"""Spans of time, and logind's files."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.guest import logind_files, spans
from fencer.guest.facts import Setting


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
