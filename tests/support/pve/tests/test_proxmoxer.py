"""The real proxmoxer against the stand-in: what it makes of the answers is what it makes of the real ones."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
from proxmoxer import ProxmoxAPI, ResourceException

from tests.support.pve import Pmxcfs, PveCluster, PveServers


def connect(api: PveServers, secret: str | None = None, **options: Any) -> ProxmoxAPI:
    """Return proxmoxer's idea of the API of pve1."""
    user, _, name = api.pve.token.partition("!")
    return ProxmoxAPI(
        "127.0.0.1",
        port=api.port("pve1"),
        user=user,
        token_name=name,
        token_value=secret or api.pve.secret,
        **{"verify_ssl": str(api.ca_file), **options},
    )


@pytest.fixture
def proxmox(api: PveServers) -> ProxmoxAPI:
    """Connected with the cluster's token."""
    return connect(api)


def test_reading_and_powering_work(pve: PveCluster, proxmox: ProxmoxAPI) -> None:
    vmid = pve.add_guest("k8s-1").vmid
    status = proxmox.nodes("pve1").qemu(vmid).status
    assert status.current.get()["status"] == "running"
    upid = status.stop.post()
    pve.clock.advance(2)
    assert proxmox.nodes("pve1").tasks(upid).status.get()["exitstatus"] == "OK"
    assert status.current.get()["status"] == "stopped"


@pytest.mark.parametrize(
    ("ask", "status", "content", "errors"),
    [
        (
            lambda proxmox: proxmox.nodes("pve1").qemu(999).status.current.get(),
            500,
            "Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist",
            None,
        ),
        (
            lambda proxmox: proxmox.nodes("pve1").qemuu.get(),
            501,
            "Method 'GET /nodes/pve1/qemuu' not implemented",
            None,
        ),
        (
            lambda proxmox: proxmox.cluster.nextid.get(vmid=101),
            400,
            "Parameter verification failed.",
            {"vmid": "VM 101 already exists"},
        ),
    ],
    ids=["missing", "typo", "parameter"],
)
def test_a_refusal_reads_as_the_real_one(
    pve: PveCluster,
    proxmox: ProxmoxAPI,
    ask: Callable[[ProxmoxAPI], object],
    status: int,
    content: str,
    errors: dict[str, str] | None,
) -> None:
    pve.add_guest("k8s-1", vmid=101)
    with pytest.raises(ResourceException) as raised:
        ask(proxmox)
    error = raised.value
    assert (error.status_code, error.content, error.errors) == (status, content, errors)


@pytest.mark.parametrize(
    ("trouble", "status", "content"),
    [
        (lambda pve: pve.host_dies("pve3"), 595, "No route to host"),
        (lambda pve: pve.set_pmxcfs("pve3", Pmxcfs.FROZEN), 596, "Connection timed out"),
        (lambda pve: pve.access.rotate(pve.token), 401, "Authentication failed!"),
    ],
    ids=["595", "596", "401"],
)
def test_an_empty_body_leaves_its_mark_in_the_errors(
    pve: PveCluster, proxmox: ProxmoxAPI, trouble: Callable[[PveCluster], object], status: int, content: str
) -> None:
    trouble(pve)
    with pytest.raises(ResourceException) as raised:
        proxmox.nodes("pve3").qemu.get()
    error = raised.value
    assert (error.status_code, error.content, error.errors) == (status, content, {"errors": b""})


def test_a_host_that_is_gone_raises_a_foreign_error(pve: PveCluster, proxmox: ProxmoxAPI) -> None:
    pve.host_dies("pve1")
    with pytest.raises(requests.ConnectionError):
        proxmox.version.get()


def test_a_certificate_that_it_does_not_know_is_refused(api: PveServers) -> None:
    with pytest.raises(requests.exceptions.SSLError):
        connect(api, verify_ssl=True).version.get()


def test_many_clients_at_once_get_their_own_answers(pve: PveCluster, api: PveServers) -> None:
    vmids = [pve.add_guest(f"k8s-{number}").vmid for number in range(12)]

    def look(vmid: int) -> Any:
        return connect(api).nodes("pve1").qemu(vmid).status.current.get()["vmid"]

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(look, vmids)) == vmids
