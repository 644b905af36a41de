"""Whatever comes from outside is a value, or an error of ours; never another exception, and it never hangs.

A little of it in every run of the tests; `./dev long fuzz` goes on for an hour. What was found stands as an
example before the reader's test.
"""

import json
import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencer.cluster import parse as cluster
from fencer.cluster.credentials import load_credentials
from fencer.cluster.leases import read_record
from fencer.cluster.remediation_parse import FINALIZER, answered, remediation, reservation
from fencer.cluster.settings import ClusterSettings
from fencer.cluster.watch_events import read_event
from fencer.config.document import parse
from fencer.config.load import check
from fencer.core import annotations
from fencer.core.annotations import Seal
from fencer.core.model import Binding, Cordon, Unreadable
from fencer.core.requests import Progress
from fencer.errors import ClusterError, ClusterProtocol, ConfigError, HypervisorProtocol
from fencer.guest import kubeconfig, little_yaml, logind_files
from fencer.guest.errors import GuestError
from fencer.guest.system import Ran
from fencer.hypervisors.libvirt.parse import host_uuid
from fencer.hypervisors.proxmox import ha_read
from fencer.hypervisors.proxmox import parse as proxmox
from fencer.hypervisors.virtualbox import parse as virtualbox
from fencer.planned.hook import read_request
from fencer.runtime.hookserver import HookServer
from tests.config.samples import EXAMPLES, FULL
from tests.core.build import BOOT, GUEST, MARK, doubt
from tests.fuzz.mutate import near, no_hang, raw, texts
from tests.support import wait_until

UUID = "636e0387-1e4f-486d-9c08-fa7e4c3622d2"
CONFIGS = [FULL, *(file.read_text() for file in EXAMPLES)]
KUBECONFIG = """\
apiVersion: v1
clusters:
- cluster:
    server: https://10.0.0.1:6443
    certificate-authority-data: Y2E=
  name: local
contexts:
- context: {cluster: local, user: "me"}
  name: Default
current-context: Default
kind: Config
users:
- name: me
  user:
    token: 'a.b'
"""
PLAIN_KUBECONFIG = KUBECONFIG.replace('{cluster: local, user: "me"}', "\n    cluster: local\n    user: me")
"""As `fencer-guest` reads it, which has no library for YAML."""
MACHINE = (
    f'name="k8s-1"\nUUID="{UUID}"\nhardwareuuid="{UUID}"\nVMState="running"\n'
    'VMStateChangeTime="2026-11-21T03:07:23.412000000"\nSessionName="headless"\nLogFldr="/vm/Logs"\n'
)
LIST = f'"k8s-1" {{{UUID}}}\n"k8s-2" {{{UUID}}}\n'
UPID = "UPID:pve1:0003C1A2:02E8A1B5:6740A1B2:qmstop:101:root@pam:"
PROXMOX = {
    proxmox.read_listing: [
        {"type": "qemu", "vmid": 101, "node": "pve1", "status": "running", "tags": "a;b", "id": "qemu/101"},
        {"type": "node", "node": "pve1", "uptime": 7, "status": "online", "id": "node/pve1"},
        {"type": "pool", "pool": "k8s", "id": "/pool/k8s"},
    ],
    proxmox.read_status: {
        "status": "running",
        "qmpstatus": "paused",
        "pid": "7",
        "ha": {"managed": 1, "state": "x"},
    },
    proxmox.read_processes: [
        {"vmid": 101, "status": "running", "pid": 7},
        {"vmid": 102, "status": "stopped"},
    ],
    proxmox.read_config: {
        "smbios1": f"uuid={UUID}",
        "lock": "backup",
        "vmstate": "a",
        "startup": "order=1,down=60",
    },
    proxmox.read_members: [
        {"type": "cluster", "name": "home", "quorate": 1, "nodes": 2},
        {"type": "node", "name": "pve1", "online": 1, "local": 1},
    ],
    proxmox.read_tasks: [{"upid": UPID, "status": "OK", "endtime": 1}],
    proxmox.read_task_end: {"upid": UPID, "status": "stopped", "exitstatus": "OK"},
    proxmox.read_upid: UPID,
    proxmox.read_uptime: {"uptime": 7},
    proxmox.read_device: {"guest-agent": 1},
    proxmox.read_log: [{"n": 1, "t": "TASK OK"}],
    proxmox.read_rights: {"/vms": {"VM.Audit": 1}},
    ha_read.read_ha: {
        "manager_status": {
            "master_node": "pve1",
            "node_status": {"pve1": "online"},
            "service_status": {"vm:101": {"node": "pve1", "state": "started", "uid": "x"}},
            "timestamp": 7,
        },
        "lrm_status": {"pve1": {"mode": "active", "state": "wait", "timestamp": 7, "results": {}}},
    },
    ha_read.read_quorate: {"quorum": {"node": "pve1", "quorate": "1"}},
    ha_read.read_armed: [{"id": "fencing", "armed-state": "armed"}],
}
META = {"name": "k8s-1", "uid": "u", "resourceVersion": "1", "annotations": {}, "labels": {"a": "b"}}
TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
TOLERATION = {"key": "a", "operator": "Exists", "tolerationSeconds": 5}


def our_lease(data):
    return read_record(data, "fencer-cluster", "2026-11-21T03:07:23Z")


def request(data):
    answered(data, Progress(None, "Waits"), "2026-11-21T03:07:23Z")
    return remediation(data)


def others_lease(data):
    return reservation(data, "2026-11-21T03:07:23Z")


KUBERNETES = {
    cluster.node_with(b"key"): {
        "metadata": {**META, "annotations": {annotations.MARK: "{}", annotations.BINDING: "{}"}},
        "spec": {"taints": [TAINT], "unschedulable": True},
        "status": {
            "nodeInfo": {"systemUUID": UUID, "bootID": UUID},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T03:07:23Z"}],
            "volumesAttached": [{"name": "a", "devicePath": "b"}],
        },
    },
    cluster.lease: {
        "metadata": META,
        "spec": {"renewTime": "2026-11-21T03:07:23.000000Z", "holderIdentity": "a"},
    },
    cluster.pod: {
        "metadata": {
            **META,
            "namespace": "a",
            "ownerReferences": [{"kind": "DaemonSet", "name": "a", "controller": True}],
        },
        "spec": {"nodeName": "k8s-1", "tolerations": [TOLERATION], "volumes": [{"name": "v"}]},
        "status": {"phase": "Running"},
    },
    cluster.attachment: {
        "metadata": META,
        "spec": {"nodeName": "a", "source": {"persistentVolumeName": "p"}},
    },
    our_lease: {
        "kind": "Lease",
        "metadata": {**META, "name": "fencer-cluster", "namespace": "fencer"},
        "spec": {
            "holderIdentity": "fencer@a/1/2",
            "leaseTransitions": 1,
            "renewTime": "2026-11-21T03:07:23.000000Z",
        },
    },
    request: {
        "metadata": {
            **META,
            "namespace": "medik8s",
            "generation": 1,
            "finalizers": [FINALIZER],
            "annotations": {"remediation.medik8s.io/node-name": "k8s-1"},
            "ownerReferences": [
                {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "m", "uid": "u"}
            ],
        },
        "spec": {"strategy": "stop"},
        "status": {
            "conditions": [
                {"type": "Processing", "status": "True", "lastTransitionTime": "2026-11-21T03:07:23Z"},
                {"type": "Succeeded", "status": "Unknown", "reason": "Waits", "message": "it waits"},
            ]
        },
    },
    others_lease: {
        "metadata": {**META, "name": "node-k8s-1"},
        "spec": {
            "holderIdentity": "NodeHealthCheck-workers",
            "leaseDurationSeconds": 600,
            "renewTime": "2026-11-21T03:07:23.000000Z",
        },
    },
}
READERS = ("node", "lease", "pod", "attachment", "our lease", "request", "medik8s' lease")
SEAL = Seal(b"key", "uid")
NOTES = {
    annotations.BINDING: annotations.write_binding(Binding(GUEST, (BOOT,)), SEAL),
    annotations.MARK: annotations.write_mark(replace(MARK, pods=3, incarnation="a run"), SEAL),
    annotations.DOUBTS: annotations.write_doubts((doubt(),), SEAL),
    annotations.APPROVED: annotations.write_approval(GUEST.uuid, "anna", "2026-11-20T10:00:00Z", SEAL),
    annotations.CORDON: annotations.write_cordon(Cordon("drain", BOOT, "2026-11-20T10:00:00Z")),
}
READ_NOTE = {
    annotations.BINDING: annotations.read_binding,
    annotations.MARK: annotations.read_mark,
    annotations.DOUBTS: annotations.read_doubts,
    annotations.APPROVED: annotations.read_approval,
    annotations.CORDON: lambda text, _: annotations.read_cordon(text),
}
LOGIND = "[Login]\nInhibitDelayMaxSec=60\nHandlePowerKey=poweroff\n# a\n"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "file"


again = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


class TestWhatItBeginsWithIsRight:
    """Else hardly more than the first check of a reader is tried."""

    @pytest.mark.parametrize("read", PROXMOX, ids=lambda read: read.__name__)
    def test_of_proxmox(self, read):
        read(PROXMOX[read])

    @pytest.mark.parametrize("read", KUBERNETES, ids=READERS)
    def test_of_kubernetes(self, read):
        read(KUBERNETES[read])

    @pytest.mark.parametrize("annotation", NOTES)
    def test_of_notes(self, annotation):
        assert not isinstance(READ_NOTE[annotation](NOTES[annotation], SEAL), Unreadable)

    @pytest.mark.parametrize("text", [KUBECONFIG, PLAIN_KUBECONFIG], ids=["flow", "plain"])
    def test_of_kubeconfigs(self, file, text):
        from kubernetes.client import Configuration  # noqa: PLC0415 - heavy

        file.write_text(text)
        load_credentials(ClusterSettings(kubeconfig=file), Configuration())

    def test_of_a_kubelets_kubeconfig(self, file):
        file.write_text(PLAIN_KUBECONFIG)
        assert kubeconfig.read(file, lambda _: Ran(1, "no kubectl"))

    @pytest.mark.parametrize("text", CONFIGS)
    def test_of_configurations(self, text):
        check(parse(text.encode(), "f.yaml"))


@given(data=raw(CONFIGS))
def test_a_configuration(data):
    with no_hang(), suppress(ConfigError):
        check(parse(data, "f.yaml"))


@again
@given(data=raw([KUBECONFIG, PLAIN_KUBECONFIG]))
def test_a_kubeconfig(file, data):
    from kubernetes.client import Configuration  # noqa: PLC0415 - heavy

    file.write_bytes(data)
    with no_hang(), suppress(ConfigError):
        load_credentials(ClusterSettings(kubeconfig=file), Configuration())


@again
@given(data=raw([PLAIN_KUBECONFIG]))
def test_a_kubelets_kubeconfig(file, data):
    file.write_bytes(data)
    with no_hang(), suppress(GuestError):
        kubeconfig.read(file, lambda _: Ran(1, "no kubectl"))


@given(text=texts([MACHINE, LIST, "7.2.22r175245\n"]))
def test_what_vboxmanage_prints(text):
    for read in (
        virtualbox.parse_version,
        virtualbox.parse_list,
        virtualbox.parse_log_head,
        virtualbox.moment,
        lambda text: virtualbox.parse_machine(text, UUID),
    ):
        with no_hang(), suppress(virtualbox.Malformed):
            read(text)


@pytest.mark.parametrize("read", PROXMOX, ids=lambda read: read.__name__)
@given(data=st.data())
def test_what_proxmox_answers(read, data):
    answer = data.draw(near([PROXMOX[read]]))
    with no_hang(), suppress(HypervisorProtocol):
        read(answer)


@pytest.mark.parametrize("read", KUBERNETES, ids=READERS)
@given(data=st.data())
def test_what_kubernetes_answers(read, data):
    answer = data.draw(near([KUBERNETES[read]]))
    with no_hang(), suppress(ClusterProtocol):
        read(answer)


@given(
    event=near(
        [{"type": "MODIFIED", "object": next(iter(KUBERNETES.values()))}, {"type": "ERROR", "object": {}}]
    )
)
def test_what_a_watch_tells(event):
    with no_hang(), suppress(ClusterError):
        if isinstance(event, dict):
            assert read_event(event, "here").version


@given(
    capabilities=texts(["<capabilities><host><uuid>a</uuid></host></capabilities>"]),
    sysinfo=texts(["<sysinfo/>"]),
)
def test_what_libvirt_says_of_its_host(capabilities, sysinfo):
    with no_hang():
        assert host_uuid(capabilities, sysinfo) is None or host_uuid(capabilities, sysinfo)


@pytest.mark.parametrize("annotation", NOTES)
@given(data=st.data())
def test_notes_on_nodes(annotation, data):
    """Also such as bear the right signature: another version of fencer may have written them."""
    content = data.draw(near([json.loads(NOTES[annotation])]))
    if isinstance(content, dict) and "sig" in content and data.draw(st.booleans()):
        unsigned = {key: value for key, value in content.items() if key != "sig"}
        with suppress(ValueError):
            content = {**unsigned, "sig": SEAL.sign(annotation, unsigned)}
    text = data.draw(texts([NOTES[annotation]])) if data.draw(st.booleans()) else json.dumps(content)
    with no_hang():
        READ_NOTE[annotation](text, SEAL)


@given(text=texts(["pre-stop 101 pve1 60", "post-stop 101"]))
def test_a_hook_that_asks_for_a_drain(text):
    with no_hang():
        read_request(text)


@pytest.fixture(scope="module")
def nudged(tmp_path_factory):
    """A server for nudges, how to send it one, and whom it has heard of."""
    path, heard = tmp_path_factory.mktemp("hooks") / "a.sock", []
    server = HookServer(path, heard.append, again_s=())
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hook:
        hook.connect(str(path))
        yield hook.send, heard
    server.close()


@given(data=raw(["post-stop 101"]))
def test_a_nudge(nudged, data):
    """Whatever came before it, a good one is heard."""
    send, heard = nudged
    heard.clear()
    send(data)
    send(b"post-stop 4711")
    wait_until(lambda: "4711" in heard, "nudge", every_s=0.001)


@given(text=texts([PLAIN_KUBECONFIG, "a: 'b' #c\nd:\n- e\n-  f: g\n   h: {}\n- - i\n  - j\n"]))
def test_yaml_inside_a_node_is_read_as_pyyaml_reads_it(text):
    with no_hang():
        try:
            found = little_yaml.read(text)
        except little_yaml.YamlError:
            return
        expected = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - makes text, lists and dicts only
        assert found == ("" if expected is None else expected)


@given(text=texts([KUBECONFIG, '{"shutdownGracePeriod": "30s"}', "shutdownGracePeriod: 30s\n"]))
def test_a_kubelets_configuration(text):
    with no_hang(), suppress(ValueError):
        little_yaml.document(text)


@again
@given(data=raw([LOGIND]))
def test_logind_files(tmp_path, data):
    folder = tmp_path / "etc/systemd/logind.conf.d"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.conf").write_bytes(data)
    with no_hang():
        assert all(
            isinstance(setting.value, str)
            for setting in logind_files.settings(Path(tmp_path), "InhibitDelayMaxSec")
        )


@given(text=texts(["-----BEGIN CERTIFICATE-----\nMAMGA1UEAwwBYQ==\n-----END CERTIFICATE-----\n"]))
def test_a_kubelets_certificate(text):
    with no_hang():
        kubeconfig.node_name(text)
