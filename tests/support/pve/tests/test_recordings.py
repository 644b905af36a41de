"""The stand-in answers as the real API was recorded to: status, reason, headers, keys, types, delays, tasks.

The recordings are no part of the project; without them this leaves out its tests and says so.
"""

from __future__ import annotations

import json
import os
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from tests.support.pve import PveServers
from tests.support.pve.recordings import recordings, usual_recordings
from tests.support.pve.tests.client import Client
from tests.support.pve.tests.situations import build, find

FOLDER = recordings()
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
USUAL = {path.stem for path in usual_recordings().glob("*.json")}
COUNTERPARTS = [name for name in NAMES if find(name) and not name.endswith("-series")]
AT_LEAST = 200
SAID_ALIKE = ("status", "qmpstatus", "lock", "ha", "agent", "template")
"""Of one guest these have the same values; of lists, where other guests were, only the same types."""
NOT_IN_EVERY_ROW = {"lock", "tags", "hastate", "template"}
"""Of lists these are left out of the comparison: which guests have them is a matter of the laboratory."""
FIRST_OF_MANY = {"07-pmxcfs-stopped1-cluster-status", "13-etcpve-unmounted-cluster-status"}
"""Asked first after the file system was gone, these took 10 and 20 s; all later ones 3 s."""


def load(name: str) -> dict[str, Any]:
    """Return a recording."""
    content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return content


def shape(value: Any) -> Any:
    """Return keys and types; rows of a list are told apart by their type, and otherwise put together."""
    if isinstance(value, dict):
        return {key: shape(it) for key, it in value.items()}
    if isinstance(value, list):
        rows: dict[str, Any] = {}
        for it in value:
            kind, keys = (str(it.get("type")), it) if isinstance(it, dict) else ("", {"": it})
            merge(
                rows.setdefault(kind, {}), shape({k: v for k, v in keys.items() if k not in NOT_IN_EVERY_ROW})
            )
        return rows
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return type(value).__name__


def merge(into: dict[str, Any], more: dict[str, Any]) -> None:
    """Put two shapes together."""
    for key, value in more.items():
        if isinstance(into.get(key), dict) and isinstance(value, dict):
            merge(into[key], value)
        else:
            into[key] = value


pytestmark = pytest.mark.skipif(not NAMES, reason=f"no recordings of the real API in {FOLDER}")


@pytest.mark.parametrize("name", COUNTERPARTS)
def test_it_answers_as_recorded(name: str, tmp_path: Path) -> None:
    try:
        compare_answers(name, tmp_path)
    except (AssertionError, LookupError) as difference:
        if name in USUAL:
            raise
        pytest.xfail(f"called like a usual recording, but maybe of another situation: {difference}")


def compare_answers(name: str, tmp_path: Path) -> None:
    """Ask the stand-in what the real API was asked, in the same situation, and hold both answers together."""
    recorded = load(name)
    pve = build(*find(name) or pytest.fail(name))
    asked = recorded["request"]
    token = asked["token"]
    authorization = f"PVEAPIToken={token}=secret-of-{token}" if token else ""
    with PveServers(pve, tmp_path) as api, Client(api, asked["to_node"], authorization) as client:
        path = asked["path"].removeprefix("/api2/json")
        if recorded["status"] is None:
            client.connection.timeout = 0.3
            with pytest.raises((TimeoutError, HTTPException)):
                client(asked["method"], path, asked["body"])
            return
        answer = client(asked["method"], path, asked["body"])
    assert (answer.status, answer.reason) == (recorded["status"], recorded["reason"])
    assert answer.headers.keys() == recorded["headers"].keys()
    same_headers = ("Connection", "Server", "Content-Type", "Cache-Control", "Pragma")
    assert {it: answer.headers.get(it) for it in same_headers} == {
        it: recorded["headers"].get(it) for it in same_headers
    }
    compare_bodies(path, answer.body, recorded["body"])
    compare_delays(api.requests[-1].delay_s, recorded["elapsed_s"], name)
    if "task" in recorded:
        compare_tasks(pve.tasks.find(answer.data), recorded["task"])


def compare_bodies(path: str, body: Any, recorded: Any) -> None:
    """Hold a body against the recorded one."""
    if path.endswith("/config") and recorded and recorded["data"]:
        common = body["data"].keys() & recorded["data"].keys()
        assert common >= {"name", "memory", "cores", "smbios1", "vmgenid", "digest", "boot", "ostype"}
        assert {key: shape(body["data"][key]) for key in common} == {
            key: shape(recorded["data"][key]) for key in common
        }
        return
    if "/status/" in path and path.startswith("/cluster/ha") and recorded:
        body, recorded = _without_uids(body), _without_uids(recorded)
    assert shape(body) == shape(recorded)
    if recorded is None or recorded["data"] is None:
        assert body == recorded  # a message, and what is wrong with the parameters
    elif path.endswith("/status/current") and path.startswith("/nodes"):
        assert {it: body["data"].get(it) for it in SAID_ALIKE} == {
            it: recorded["data"].get(it) for it in SAID_ALIKE
        }


def _without_uids(body: dict[str, Any]) -> dict[str, Any]:
    """Let one name stand for all: hosts, services and unique ids are keys there."""
    text = json.dumps(body)
    data = json.loads(text)["data"]
    if isinstance(data, dict):
        manager = data["manager_status"]
        manager["node_status"] = list(manager["node_status"].values())
        manager["service_status"] = list(manager.get("service_status", {}).values())
        for status in data.get("lrm_status", {}).values():
            status["results"] = list(status["results"].values())
        if "lrm_status" in data:
            data["lrm_status"] = list(data["lrm_status"].values())
    return {"data": data}


def compare_delays(delay_s: float, recorded_s: float, name: str) -> None:
    """Hold the delay that the stand-in knows of against the seconds recorded; below one they are noise."""
    if name in FIRST_OF_MANY or recorded_s < 1.0 > delay_s:
        return
    assert delay_s == pytest.approx(recorded_s, rel=0.15, abs=0.6)


def compare_tasks(task: Any, recorded: dict[str, Any]) -> None:
    """Hold the end of a task against the recorded one."""
    began_s = task.clock.now_s()
    assert task.finish() == recorded["final_status_body"]["data"]["exitstatus"]
    assert task.upid.split(":")[5] == recorded["final_status_body"]["data"]["upid"].split(":")[5]
    took_s = recorded.get("seconds_until_stopped")
    if took_s is not None:
        assert task.clock.now_s() - began_s == pytest.approx(took_s, rel=0.1, abs=1.6)


@pytest.mark.skipif("FENCER_PVE_RECORDINGS" in os.environ, reason="the table is about the usual recordings")
def test_most_recordings_have_a_counterpart() -> None:
    """Shrinking the table would make this file pass for nothing."""
    assert len(COUNTERPARTS) >= AT_LEAST
