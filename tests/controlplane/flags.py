"""How each component is started: as kubeadm would, but on loopback, alone, with nothing synced to disk."""

import json
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.binaries import API_SERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER
from tests.controlplane.certificates import KeyPair

LOOPBACK = "127.0.0.1"
COUNTED = ("counted-a", "counted-b")
"""Users of whom reads are recorded as well."""
_OFF_WITHOUT_A_CLOUD = (
    "cloud-node-lifecycle-controller",
    "node-ipam-controller",
    "node-route-controller",
    "service-lb-controller",
)


@dataclass(frozen=True, slots=True)
class Timing:
    """How patient the cluster is with a silent node, in seconds; the defaults are Kubernetes' own.

    Attributes:
        node_monitor_grace_s: Without a sign of life for this long, a node's Ready becomes Unknown.
        node_monitor_period_s: Between two looks of the node lifecycle controller.
        unreachable_toleration_s: Pods stay this long on a node whose Ready is Unknown.
        not_ready_toleration_s: Pods stay this long on a node whose Ready is False.
    """

    node_monitor_grace_s: float = 50
    node_monitor_period_s: float = 5
    unreachable_toleration_s: int = 300
    not_ready_toleration_s: int = 300


@dataclass(frozen=True, slots=True)
class Setup:
    """All that the command lines refer to.

    Attributes:
        ports: The loopback port of each component; etcd also has `etcd-peer`.
        kubeconfigs: Of the controller manager and the scheduler.
    """

    ports: dict[str, int]
    etcd_folder: Path
    ca_file: Path
    serving: KeyPair
    service_account_key: Path
    kubeconfigs: dict[str, Path]
    audit_policy: Path
    audit_file: Path
    timing: Timing

    def url(self, component: str) -> str:
        """Return where a component listens."""
        scheme = "https" if component in (API_SERVER, CONTROLLER_MANAGER, SCHEDULER) else "http"
        return f"{scheme}://{LOOPBACK}:{self.ports[component]}"


def flags_of(component: str, setup: Setup) -> list[str]:
    """Return the flags that a component of `COMPONENTS` is started with."""
    build = {
        ETCD: _etcd,
        API_SERVER: _api_server,
        CONTROLLER_MANAGER: _controller_manager,
        SCHEDULER: _scheduler,
    }
    return build[component](setup)


def _etcd(setup: Setup) -> list[str]:
    client, peer = setup.url(ETCD), setup.url("etcd-peer")
    return [
        "--name=default",
        f"--data-dir={setup.etcd_folder}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",  # a killed process loses nothing by it, and nobody pulls the plug of a test
        "--log-level=warn",
    ]


def _api_server(setup: Setup) -> list[str]:
    return [
        f"--etcd-servers={setup.url(ETCD)}",
        *_serving(API_SERVER, setup),
        f"--advertise-address={LOOPBACK}",
        "--endpoint-reconciler-type=none",  # refuses to publish a loopback address, again and again
        f"--client-ca-file={setup.ca_file}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={setup.service_account_key}",
        f"--service-account-signing-key-file={setup.service_account_key}",
        f"--default-unreachable-toleration-seconds={setup.timing.unreachable_toleration_s}",
        f"--default-not-ready-toleration-seconds={setup.timing.not_ready_toleration_s}",
        f"--audit-policy-file={setup.audit_policy}",
        f"--audit-log-path={setup.audit_file}",
    ]


def _controller_manager(setup: Setup) -> list[str]:
    return [
        *_client(CONTROLLER_MANAGER, setup),
        f"--service-account-private-key-file={setup.service_account_key}",
        f"--root-ca-file={setup.ca_file}",
        "--use-service-account-credentials",  # so that the audit log names the controller
        "--controllers=" + ",".join(["*", *(f"-{name}" for name in _OFF_WITHOUT_A_CLOUD)]),
        f"--node-monitor-grace-period={setup.timing.node_monitor_grace_s}s",
        f"--node-monitor-period={setup.timing.node_monitor_period_s}s",
    ]


def _scheduler(setup: Setup) -> list[str]:
    return _client(SCHEDULER, setup)


def _client(component: str, setup: Setup) -> list[str]:
    kubeconfig = f"--kubeconfig={setup.kubeconfigs[component]}"
    return [*_serving(component, setup), kubeconfig, "--leader-elect=false"]


def _serving(component: str, setup: Setup) -> list[str]:
    return [
        f"--bind-address={LOOPBACK}",
        f"--secure-port={setup.ports[component]}",
        f"--tls-cert-file={setup.serving.cert_file}",
        f"--tls-private-key-file={setup.serving.key_file}",
    ]


def audit_policy() -> str:
    """Return the policy: writes, and all of `COUNTED`; what was written too, where a fence touches it."""
    counted = {"level": "Metadata", "users": list(COUNTED)}
    reads = {"level": "None", "verbs": ["get", "list", "watch"]}
    heartbeats = {
        "level": "None",
        "namespaces": ["kube-node-lease"],
        "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}],
    }
    kubelets = {"level": "Metadata", "userGroups": ["system:nodes"]}
    fencing = {
        "level": "Request",
        "resources": [
            {"group": "", "resources": ["nodes", "nodes/status", "pods", "pods/status", "pods/eviction"]},
            {"group": "storage.k8s.io", "resources": ["volumeattachments"]},
        ],
    }
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [counted, reads, heartbeats, kubelets, fencing, {"level": "Metadata"}],
    }
    return json.dumps(policy)
