"""Every path that is answered, and by what; with the daemon, the right and the parameters it asks for.

Source: the schema of the API, as the API viewer shows it; `tests/test_schema.py` holds it against this table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from tests.support.pve.api import agent, cluster, guests, ha, power, tasks
from tests.support.pve.api.call import Call, Json


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path.

    Attributes:
        path: With placeholders, as the API viewer writes it.
        protected: pveproxy cannot do it by itself: pvedaemon must.
        right: Path and privileges, one of which the caller needs; None: any caller.
        params: Parameters that it knows besides those of the path.
    """

    method: str
    path: str
    handler: Callable[[Call], Json]
    protected: bool = False
    right: tuple[str, tuple[str, ...]] | None = None
    params: tuple[str, ...] = ()

    def match(self, method: str, path: str) -> dict[str, str] | None:
        """Return what the placeholders stand for, if this is what was asked."""
        found = _pattern(self.path).fullmatch(path) if method == self.method else None
        return found.groupdict() if found else None


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", path))


_AUDIT_ALL = ("/", ("Sys.Audit",))
_AUDIT_VM = ("/vms/{vmid}", ("VM.Audit",))
_POWER = ("/vms/{vmid}", ("VM.PowerMgmt",))
AGENT = ("/vms/{vmid}", ("VM.GuestAgent.Audit", "VM.GuestAgent.Unrestricted"))
_VM, _TASK = "/nodes/{node}/qemu/{vmid}", "/nodes/{node}/tasks/{upid}"
_PART = ("start", "limit")
_TASK_FILTERS = ("vmid", "typefilter", "userfilter", "errors", "source", "since", "until", *_PART)


def _power(verb: str, handler: Callable[[Call], Json], *params: str) -> Route:
    return Route("POST", f"{_VM}/status/{verb}", handler, protected=True, right=_POWER, params=params)


ROUTES = (
    Route("GET", "/version", cluster.version),
    Route("GET", "/access/permissions", cluster.permissions, params=("path",)),
    Route("GET", "/cluster/status", cluster.cluster_status, protected=True, right=_AUDIT_ALL),
    Route("GET", "/cluster/config/qdevice", cluster.quorum_device, right=_AUDIT_ALL),
    Route("GET", "/cluster/resources", cluster.resources, params=("type",)),
    Route("GET", "/cluster/nextid", cluster.nextid, params=("vmid",)),
    Route("GET", "/cluster/tasks", tasks.cluster_tasks),
    Route("GET", "/cluster/ha/status/current", ha.current, right=_AUDIT_ALL),
    Route("GET", "/cluster/ha/status/manager_status", ha.manager_status, right=_AUDIT_ALL),
    Route("GET", "/cluster/ha/resources", ha.resources, right=_AUDIT_ALL),
    Route("GET", "/cluster/ha/resources/{sid}", ha.resource, right=_AUDIT_ALL),
    Route("GET", "/nodes", cluster.nodes),
    Route("GET", "/nodes/{node}/status", cluster.node_status, right=("/nodes/{node}", ("Sys.Audit",))),
    Route("GET", "/nodes/{node}/certificates/info", cluster.certificates),
    Route("GET", "/nodes/{node}/qemu", guests.guests, protected=True, params=("full",)),
    Route("GET", f"{_VM}/config", guests.config, right=_AUDIT_VM, params=("current", "snapshot")),
    Route("GET", f"{_VM}/status/current", guests.status_current, protected=True, right=_AUDIT_VM),
    _power("start", power.start, "timeout", "skiplock", "migratedfrom"),
    _power("stop", power.stop, "timeout", "overrule-shutdown", *power.ROOT_ONLY),
    _power("shutdown", power.shutdown, "timeout", "forceStop", "skiplock", "keepActive"),
    _power("reboot", power.reboot, "timeout"),
    _power("reset", power.reset, "skiplock"),
    _power("suspend", power.suspend, "todisk", "statestorage", "skiplock"),
    _power("resume", power.resume, "nocheck", "skiplock"),
    Route("POST", f"{_VM}/agent/ping", agent.ping, True, AGENT),
    Route("GET", f"{_VM}/agent/info", agent.info, True, AGENT),
    Route("GET", f"{_VM}/agent/get-host-name", agent.host_name, True, AGENT),
    Route("GET", f"{_VM}/agent/get-osinfo", agent.os_info, True, AGENT),
    Route("GET", f"{_VM}/agent/network-get-interfaces", agent.interfaces, True, AGENT),
    Route("GET", "/nodes/{node}/tasks", tasks.tasks, params=_TASK_FILTERS),
    Route("GET", f"{_TASK}/status", tasks.task_status, protected=True),
    Route("GET", f"{_TASK}/log", tasks.task_log, protected=True, params=_PART),
)
