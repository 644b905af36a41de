"""A guest's configuration: as it is, and as it will be after the next start."""

from __future__ import annotations

import pytest

from tests.support.pve import PveCluster
from tests.support.pve.model import Conf
from tests.support.pve.tests.client import Client

OTHER = "99999999-0000-4000-8000-000000000000"


@pytest.fixture
def edited(pve: PveCluster) -> Conf:
    """A running guest whose UUID was edited meanwhile."""
    conf = pve.add_guest("k8s-1")
    conf.pending = {"smbios1": f"uuid={OTHER}"}
    return conf


def uuids(ask: Client, conf: Conf) -> tuple[str, str]:
    """Return its UUID as it will be, and as it is."""
    path = f"/nodes/pve1/qemu/{conf.vmid}/config"
    return ask.get(path)["smbios1"], ask.get(path, current=1)["smbios1"]


def test_what_was_edited_while_it_runs_is_pending(ask: Client, edited: Conf) -> None:
    assert uuids(ask, edited) == (f"uuid={OTHER}", f"uuid={edited.uuid}")


@pytest.mark.parametrize("how", ["stop", "shutdown"])
def test_a_stop_takes_it_in(pve: PveCluster, ask: Client, edited: Conf, how: str) -> None:
    getattr(pve.qm, how)(edited.vmid).finish()
    assert uuids(ask, edited) == (f"uuid={OTHER}",) * 2


def test_so_does_a_cold_start_after_a_crash(pve: PveCluster, ask: Client, edited: Conf) -> None:
    was = edited.uuid
    pve.crash(edited.vmid)
    assert uuids(ask, edited) == (f"uuid={OTHER}", f"uuid={was}")
    pve.qm.start(edited.vmid).finish()
    assert uuids(ask, edited) == (f"uuid={OTHER}",) * 2


def test_a_start_from_disk_does_not(pve: PveCluster, ask: Client, edited: Conf) -> None:
    pve.qm.hibernate(edited.vmid).finish()
    pve.qm.start(edited.vmid).finish()
    assert uuids(ask, edited) == (f"uuid={OTHER}", f"uuid={edited.uuid}")


def test_a_snapshot_has_no_current_values(pve: PveCluster, ask: Client, edited: Conf) -> None:
    pve.qm.snapshot(edited.vmid).finish()
    answer = ask("GET", f"/nodes/pve1/qemu/{edited.vmid}/config?snapshot=before&current=1")
    assert answer.status == 400
    assert answer.body["errors"].keys() == {"snapshot", "current"}
