"""The stand-in keeps to the API's own schema: paths, parameters, rights, daemons, and what it returns.

The schema is no part of the project; without it this leaves out its tests and says so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.pve import PveCluster, PveServers
from tests.support.pve.api.routes import ROUTES, Route
from tests.support.pve.recordings import api_schema
from tests.support.pve.tests.client import Client

FILE = api_schema()
SCHEMA: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
SCHEMA |= {
    # Not among the endpoints there. Source: pve-cluster, PVE/API2/ClusterConfig.pm.
    "GET /cluster/config/qdevice": {
        "parameters": {},
        "permissions": {"check": ["perm", "/", ["Sys.Audit"]]},
        "returns": {"type": "object"},
    },
    # Nor this one. Source: pve-manager, PVE/API2/Certificates.pm, "info".
    "GET /nodes/{node}/certificates/info": {
        "parameters": {"properties": {"node": {}}},
        "proxyto": "node",
        "permissions": {"user": "all"},
        "returns": {"type": "array", "items": {"type": "object"}},
    },
}
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "array": (list,),
}
REALLY = {"GET /cluster/nextid": "string"}
"""Where the recorded answers contradict the schema, they are right."""
MAY_BE_NULL = {"ssl_fingerprint"}

pytestmark = pytest.mark.skipif(not FILE.exists(), reason=f"no schema of the API in {FILE}")
every_route = pytest.mark.parametrize("route", ROUTES, ids=lambda it: f"{it.method} {it.path}")


def entry(route: Route) -> dict[str, Any]:
    """Return what the schema says of a route."""
    found: dict[str, Any] = SCHEMA[f"{route.method} {route.path}"]
    return found


def faults(value: Any, schema: dict[str, Any], where: str) -> list[str]:
    """Return where a value is not what the schema says."""
    kind = schema.get("type")
    if kind == "boolean":
        return [] if value in {0, 1} else [f"{where}: {value!r} is no boolean"]
    if kind in TYPES and (not isinstance(value, TYPES[kind]) or isinstance(value, bool)):
        return [f"{where}: {value!r} is no {kind}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r} is none of {schema['enum']}")
    properties = schema.get("properties", {})
    for key, inner in properties.items():
        if key in value:
            null = value[key] is None and key in MAY_BE_NULL
            found += [] if null else faults(value[key], inner, f"{where}.{key}")
        elif not inner.get("optional"):
            found.append(f"{where}: lacks {key}")
    for number, item in enumerate(value if kind == "array" else ()):
        found += faults(item, schema.get("items", {}), f"{where}[{number}]")
    return found


@every_route
def test_a_route_is_one_of_the_real_ones(route: Route) -> None:
    known = entry(route)
    assert bool(known.get("protected")) == route.protected
    assert (known.get("proxyto") == "node") == ("{node}" in route.path)


@every_route
def test_a_route_takes_no_parameter_that_the_real_one_does_not(route: Route) -> None:
    assert set(route.params) <= entry(route)["parameters"].get("properties", {}).keys()


@every_route
def test_a_route_asks_for_the_same_rights(route: Route) -> None:
    check = entry(route).get("permissions", {}).get("check")
    if check is None:
        assert route.right is None
    else:
        assert route.right is not None
        assert (route.right[0], list(route.right[1])) == (check[1], check[2])


def troubled_cluster() -> PveCluster:
    """Return a cluster in which there is something of everything."""
    pve = PveCluster()
    pve.access.grant(pve.token, "/", {"Sys.Audit", "VM.Audit", "VM.PowerMgmt", "VM.GuestAgent.Audit"})
    pve.add_guest("plain", "pve1", vmid=101, tags=("k8s", "fencer"), pool="blue", agent=True)
    pve.add_guest("paused", "pve1", vmid=102)
    pve.set_qmp(102, "paused")
    pve.add_guest("locked", "pve1", vmid=103, running=False, lock="backup", onboot=True)
    pve.add_guest(
        "template", "pve1", vmid=104, running=False, template=True, hookscript="local:snippets/hook"
    )
    pve.add_guest("managed", "pve3", vmid=105, ha="started")
    pve.add_guest("container", "pve1", vmid=106, kind="lxc")
    pve.qm.hibernate(pve.add_guest("saved", "pve1", vmid=107).vmid).finish()
    pve.qm.stop(102)
    pve.qm.migrate(101, "pve2", by_hand=True)
    pve.host_dies("pve3")
    pve.clock.advance(90)
    return pve


@pytest.mark.parametrize("standalone", [False, True], ids=["cluster", "standalone"])
def test_everything_it_returns_is_valid(standalone: bool, tmp_path: Path) -> None:
    pve = troubled_cluster()
    if standalone:
        pve = PveCluster(None, ("pve1",))
        pve.add_guest("plain", vmid=101)
    upid = pve.qm.shutdown(101, timeout_s=5).upid if standalone else pve.tasks.all[0].upid
    seen: list[str] = []
    with PveServers(pve, tmp_path) as api, Client(api) as client:
        for route in ROUTES:
            known, name = entry(route), f"{route.method} {route.path}"
            for vmid in (101, 103, 104, 107) if "{vmid}" in route.path else (101,):
                path = route.path.format(node="pve1", vmid=vmid, upid=upid, sid="vm:105")
                answer = client(route.method, path, "")
                if answer.status == 200:
                    seen.append(name)
                    returns = {**known["returns"], "type": REALLY.get(name, known["returns"].get("type"))}
                    assert faults(answer.data, returns, name) == []
    needs_cluster_only = {"GET /cluster/ha/resources/{sid}"}
    assert len(set(seen)) >= len(ROUTES) - len(needs_cluster_only) - 6
