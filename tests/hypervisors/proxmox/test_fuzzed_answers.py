"""Answers nobody has ever seen: they are read, or refused as ours, and never make a guest off that is not."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencer.core.model import PowerState
from fencer.errors import HypervisorError, HypervisorProtocol
from fencer.hypervisors.proxmox.ha import HaState, fold
from fencer.hypervisors.proxmox.ha_read import read_armed, read_ha
from fencer.hypervisors.proxmox.look import look_around
from fencer.hypervisors.proxmox.memory import Memory
from fencer.hypervisors.proxmox.parse import (
    Config,
    Row,
    Status,
    read_config,
    read_listing,
    read_log,
    read_members,
    read_processes,
    read_rights,
    read_status,
    read_task_end,
    read_tasks,
    read_upid,
    read_uptime,
)
from fencer.hypervisors.proxmox.proof import Prover
from fencer.hypervisors.proxmox.rights import compare
from fencer.hypervisors.proxmox.server import read_answer
from fencer.hypervisors.proxmox.states import read_power, read_row
from fencer.hypervisors.proxmox.sweep import Sweeper
from tests.hypervisors.proxmox.replay import ReplayApi
from tests.hypervisors.proxmox.test_proof_steps import GUEST, MEMBERS, RUNNING, SETTINGS, STOPPED, UUID, row
from tests.support.amounts import examples

OFF = {PowerState.STOPPED, PowerState.SAVED, PowerState.ABSENT}

WORDS = st.sampled_from(
    [
        *(
            "running",
            "stopped",
            "paused",
            "unknown",
            "prelaunch",
            "postmigrate",
            "suspended",
            "migrate",
            "backup",
        ),
        *(
            "qemu",
            "lxc",
            "node",
            "cluster",
            "started",
            "recovery",
            "fence",
            "active",
            "OK",
            "1",
            "0",
            "",
            "pve3",
        ),
        "UPID:pve3:000003E7:0009B15B:6B009AFD:qmstop:201:root@pam:",
    ]
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 10**12), st.floats(allow_nan=False), WORDS, st.text(max_size=8)
)
KEYS = st.sampled_from(
    [
        *(
            "type",
            "vmid",
            "node",
            "status",
            "qmpstatus",
            "pid",
            "uptime",
            "lock",
            "template",
            "ha",
            "managed",
        ),
        *(
            "state",
            "name",
            "online",
            "quorate",
            "smbios1",
            "vmstate",
            "upid",
            "starttime",
            "endtime",
            "t",
            "id",
        ),
        *(
            "manager_status",
            "service_status",
            "node_status",
            "lrm_status",
            "quorum",
            "results",
            "vm:201",
            "sid",
        ),
        *(
            "mode",
            "timestamp",
            "exit_code",
            "running",
            "disarm",
            "armed-state",
            "/vms",
            "VM.Audit",
            "exitstatus",
        ),
    ]
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=6)),
    max_leaves=25,
)
PARSERS = [
    read_listing,
    read_status,
    read_config,
    read_members,
    read_processes,
    read_tasks,
    read_task_end,
    read_upid,
    read_uptime,
    read_log,
    lambda data: compare(read_rights(data)),
    lambda data: fold(HaState(), read_ha(data), 1.0),
    read_armed,
]


@given(JSON)
@settings(max_examples=examples(200))
def test_parsers_read_or_refuse(data):
    for parser in PARSERS:
        with suppress(HypervisorProtocol):
            parser(data)


@given(JSON)
def test_what_stands_on_the_wire_is_read_or_refused(data):
    body = json.dumps(data).encode()
    for status in (200, 400, 401, 403, 500, 595):
        with suppress(HypervisorError):
            read_answer(status, "?", body, ("cluster", "status"), "home", "fencer@pve!agent")


@given(
    status=st.one_of(WORDS, st.text(max_size=9)),
    qmpstatus=st.one_of(WORDS, st.text(max_size=9)),
    lock=st.one_of(st.none(), WORDS, st.text(max_size=9)),
    pid=st.one_of(st.none(), st.integers(1, 9999)),
    saved=st.booleans(),
    template=st.booleans(),
)
@settings(max_examples=examples(200))
def test_only_the_one_pair_of_words_is_off(status, qmpstatus, lock, pid, saved, template):
    config = Config(UUID, lock=lock, saved=saved, template=template)
    reading = read_power(Status(status, qmpstatus, pid), config)
    if reading.power_state in OFF:
        assert (status, qmpstatus, pid, template) == ("stopped", "stopped", None, False)
        assert (reading.power_state is PowerState.SAVED) == (saved or lock == "suspended")
    assert reading.raw.isprintable()


@given(status=st.one_of(WORDS, st.text(max_size=9)), lock=st.one_of(st.none(), WORDS), online=st.booleans())
def test_a_row_is_off_only_by_its_word(status, lock, online):
    reading = read_row(Row(201, "qemu", "pve3", status, lock=lock), host_online=online)
    if reading.power_state in OFF:
        assert (status, online) == ("stopped", True)


@given(odd=JSON, spoilt=st.integers(0, 6))
def test_a_proof_with_one_odd_answer_is_none_or_true(odd, spoilt):
    """Whichever answer is replaced: a guest with a process is never off; only our errors come out."""
    answers = {
        "cluster/status": MEMBERS,
        "cluster/resources": [row()],
        "nodes/pve3/qemu/201/status/current": RUNNING,
        "nodes/pve3/qemu/201/config": {"smbios1": f"uuid={UUID}"},
        "nodes/pve2/tasks": [],
        "nodes/pve3/tasks": [],
        "nodes/pve3/qemu": [{"vmid": 201, **RUNNING}],
    }
    spoilt_path = list(answers)[spoilt]
    answers = _Lenient(answers | {spoilt_path: odd})
    prover = Prover(SETTINGS, Memory(attended=frozenset({201})))
    with suppress(HypervisorError):
        evidence = prover.prove(look_around(answers, SETTINGS, 100.0), GUEST)
        said_stopped = (
            spoilt_path.endswith("current") and isinstance(odd, dict) and odd.get("status") == "stopped"
        )
        assert evidence.power_state not in OFF or said_stopped
    with suppress(HypervisorError):
        for evidence in Sweeper(prover).sweep(look_around(answers, SETTINGS, 102.0)):
            assert (
                not evidence.conclusive or evidence.power_state not in OFF or spoilt_path.endswith("current")
            )


class _Lenient(ReplayApi):
    """Answers what was not prepared as the API does: not implemented."""

    def get(self, *path, **params):
        try:
            return super().get(*path, **params)
        except AssertionError as error:
            raise HypervisorProtocol("501 not implemented") from error


@pytest.mark.parametrize("vmid", ["", "abc", "-1", "1e3", "\u0661", "9" * 30, "201/../202", " 201"])
def test_a_guest_of_a_strange_number_is_asked_for_nowhere(vmid):
    answers = _Lenient({"cluster/status": MEMBERS, "cluster/resources": [row()], "stopped": STOPPED})
    strange = type(GUEST)("home", vmid, UUID, "x")
    with pytest.raises(HypervisorError):
        Prover(SETTINGS, Memory()).prove(look_around(answers, SETTINGS, 1.0), strange)
    assert not [it for it in answers.asked if it.startswith("nodes/")]
