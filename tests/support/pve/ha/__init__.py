"""The HA stack as an operator has it: what is under HA, what is asked of it, whether it is armed.

A manager (CRM) on one host and an agent (LRM) on each act in rounds of ten seconds, so that nothing is done
when it is asked for; see `crm` and `lrm`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.pve.ha.crm import Manager, Uids
from tests.support.pve.ha.lrm import Agents
from tests.support.pve.model import Host, service_id
from tests.support.pve.tasks import Steps, TaskFailed

if TYPE_CHECKING:
    from tests.support.pve.cluster import PveCluster


class Ha:
    """HA of a whole cluster.

    Attributes:
        crm: The manager.
        lrm: The agents of all hosts.
        armed_state: What the row `fencing` says, instead of what follows from the manager.
    """

    def __init__(self, pve: PveCluster) -> None:
        self.armed_state: str | None = None
        self._pve = pve
        self._uids = Uids()
        self.lrm = Agents(pve)
        self.crm = Manager(pve, self.lrm, self._uids)

    # -- an operator's hands ------------------------------------------------------------------------------

    def add(self, vmid: int, state: str = "started", **options: Any) -> None:
        """``ha-manager add``; returns when HA has settled around what the guest does now."""
        with self._pve.clock.held():
            files, conf, sid = self._pve.files, self._pve.confs[vmid], service_id(vmid)
            self.crm.begin()
            defaults = {"state": state, "max_restart": 1, "max_relocate": 1, "failback": 1}
            files.resources[sid] = {**defaults, **options}
            service: dict[str, Any] = {"node": conf.host, "state": state, "uid": self._uids.fresh()}
            if state == "started":
                service["running"] = 1
            files.manager["service_status"][sid] = service
            self.lrm.settle(conf.host, sid, service)

    def remove(self, vmid: int) -> None:
        """``ha-manager remove``."""
        with self._pve.clock.held():
            self.forget(vmid)

    def set_service(self, vmid: int, **fields: Any) -> None:
        """Set fields of a service in manager_status: ``state="error"``, say."""
        with self._pve.clock.held():
            self._pve.files.manager["service_status"][service_id(vmid)].update(fields)

    def disarm(self) -> None:
        """``ha-manager crm-command disarm-ha``: no watchdogs any more."""
        self.armed_state, self.lrm.watchdogs = "disarmed", False
        self._pve.files.manager["disarm"] = {"mode": "freeze", "state": "disarmed"}

    # -- for the others -----------------------------------------------------------------------------------

    def managed(self, vmid: int) -> bool:
        """Whether HA is in charge of a guest."""
        return service_id(vmid) in self._pve.files.resources

    def forget(self, vmid: int) -> None:
        """Strike a guest from HA's lists."""
        self._pve.files.resources.pop(service_id(vmid), None)
        self._pve.files.manager.get("service_status", {}).pop(service_id(vmid), None)

    def request_stop(self, host: Host, vmid: int, timeout_s: int) -> Steps:
        """Queue a stop: the task ends well at once, the guest runs on for some ten seconds."""
        yield 0.3
        if not self._pve.corosync.quorate(host):
            raise TaskFailed("cluster not ready - no quorum?")
        self.crm.commands.append((service_id(vmid), timeout_s))

    def request_start(self, vmid: int) -> Steps:
        """Ask for the state `started`."""
        yield 0.3
        self._pve.files.resources[service_id(vmid)]["state"] = "started"

    def begin_rounds(self) -> None:
        """Start the daemons of all hosts."""
        self.crm.begin_rounds()
        self.lrm.begin_rounds()
