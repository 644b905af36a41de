"""The page of the stand-in names what it answers and what it can play, and nothing else."""

from __future__ import annotations

import json
import os
import re
from operator import attrgetter
from pathlib import Path

import pytest

from tests.support.pve import PveCluster
from tests.support.pve.api.access import Access
from tests.support.pve.api.routes import ROUTES
from tests.support.pve.ha import Ha
from tests.support.pve.qm import Qm
from tests.support.pve.recordings import recordings
from tests.support.pve.tests.situations import find

PAGE = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
ANSWERS = dict(re.findall(r"^\| `((?:GET|POST) [^`]+)` \| ([^|]+) \|", PAGE, re.MULTILINE))
FAULTS = set(re.findall(r"`(pve(?:\.\w+)+)`", PAGE))
NO_FAULTS = {
    *("pve.confs", "pve.files_of", "pve.kvms", "pve.memory_of", "pve.release", "pve.runs", "pve.uptime_s"),
    *("pve.add_guest", "pve.admit", "pve.qm.launch", "pve.qm.fresh_memory", "pve.qm.end"),
    *("pve.ha.begin_rounds", "pve.ha.forget", "pve.ha.managed"),
    *("pve.ha.request_start", "pve.ha.request_stop"),
    *("pve.access.add_token", "pve.access.permissions", "pve.access.recognise"),
}
"""What looks, makes guests, or serves other parts of the stand-in."""


def test_it_names_every_path_and_no_other() -> None:
    assert list(ANSWERS) == [f"{route.method} {route.path}" for route in ROUTES]


@pytest.mark.skipif(
    "FENCER_PVE_RECORDINGS" in os.environ or not recordings().is_dir(), reason="not the usual recordings"
)
def test_it_names_the_recordings_of_each_path() -> None:
    recorded: dict[str, set[str]] = {name: set() for name in ANSWERS}
    for file in recordings().glob("*.json"):
        asked = json.loads(file.read_text(encoding="utf-8")).get("request")
        if asked is None or not find(file.stem):
            continue
        path = asked["path"].removeprefix("/api2/json").partition("?")[0]
        for route in ROUTES:
            if route.match(asked["method"], path) is not None:
                recorded[f"{route.method} {route.path}"].add(file.stem[:2])
                break
    assert {name: " ".join(sorted(groups)) or "–" for name, groups in recorded.items()} == ANSWERS


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_what_it_names_is_there(name: str) -> None:
    attrgetter(name.removeprefix("pve."))(PveCluster())


def test_it_names_every_fault() -> None:
    parts = {"pve": PveCluster, "pve.qm": Qm, "pve.ha": Ha, "pve.access": Access}
    known = {f"{part}.{it}" for part, kind in parts.items() for it in dir(kind) if not it.startswith("_")}
    assert sorted(known - FAULTS - NO_FAULTS) == []
