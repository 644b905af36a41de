"""What GET says of tasks: those of a host, those of the cluster, one and its log.

Source: pve-manager's PVE/API2/Tasks.pm; how a running task reads in a list was not recorded.
"""

from __future__ import annotations

from tests.support.pve.api.call import Call, Json
from tests.support.pve.refused import bad_parameter
from tests.support.pve.tasks import Task

_TOLD_PER_HOST = 25
_SOURCES = {"archive": (False,), "active": (True,), "all": (True, False)}
"""Whether a task runs that is told."""


def tasks(call: Call) -> Json:
    """``GET /nodes/{node}/tasks``: what ended, newest first; with ``source`` also what runs."""
    call.require_one_of("source", *_SOURCES)
    kinds = _SOURCES[call.params.get("source", "archive")]
    since, until = call.number("since", 0), call.number("until", 1 << 40)
    found = [
        _archived(task)
        for task in reversed(call.pve.tasks.all)
        if task.host is call.host
        and (task.exitstatus is None) in kinds
        and _sees(call, task)
        and call.params.get("vmid", task.guest) == task.guest
        and call.params.get("typefilter", task.kind) == task.kind
        and call.params.get("userfilter", "") in task.user
        and not (call.flag("errors") and task.exitstatus == "OK")
        and since <= task.started_at <= until
    ]
    start = call.number("start", 0)
    return found[start : start + call.number("limit", 50)]


def _archived(task: Task) -> Json:
    if task.exitstatus is None:
        return {**task.row(), "status": "RUNNING"}
    return {**task.row(), "endtime": task.ended_at, "status": task.exitstatus}


def cluster_tasks(call: Call) -> Json:
    """``GET /cluster/tasks``: the newest of every host that this one hears."""
    rows = []
    for host in call.pve.hosts.values():
        if host.name in call.host.members:
            mine = [task for task in call.pve.tasks.all if task.host is host and _sees(call, task)]
            rows += [
                task.row() if task.exitstatus is None else _archived(task) for task in mine[-_TOLD_PER_HOST:]
            ]
    return sorted(rows, key=lambda row: -row["starttime"])


def task_status(call: Call) -> Json:
    """``GET /nodes/{node}/tasks/{upid}/status``."""
    task = _task(call)
    ended = {} if task.exitstatus is None else {"exitstatus": task.exitstatus}
    return {**task.row(), "status": "stopped" if ended else "running", **ended}


def task_log(call: Call) -> Json:
    """``GET /nodes/{node}/tasks/{upid}/log``."""
    start, lines = call.number("start", 0), list(enumerate(_task(call).log or ["no content"], 1))
    return [{"n": n, "t": text} for n, text in lines[start : start + call.number("limit", 50)]]


def _task(call: Call) -> Task:
    upid = call.names["upid"]
    if not upid.startswith("UPID:"):
        bad_parameter("upid", "unable to parse worker upid")
    task = call.pve.tasks.find(upid)
    if task is None or task.host is not call.host:
        bad_parameter("upid", "no such task")
    if not _sees(call, task):
        call.require(f"/nodes/{call.host.name}", "Sys.Audit")
    return task


def _sees(call: Call, task: Task) -> bool:
    return task.user == call.token.id or call.may(f"/nodes/{task.host.name}", "Sys.Audit")
