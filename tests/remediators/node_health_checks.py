"""The real NodeHealthCheck controller, beside a control plane of the tests.

It has its own service account's rights, from its own manifests. What a remediator's labelled ClusterRole adds
to them the controller manager aggregates; where none runs, `aggregate` does.
"""

import shutil
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.controlplane.certificates import Authority
from tests.controlplane.flags import LOOPBACK
from tests.controlplane.process import Process, Starter, answers, hold_ports
from tests.remediators.upstream import (
    MissingUpstreamError,
    find_or_build,
    node_health_check_definitions,
    node_health_check_rules,
)
from tests.support import wait_until
from tests.support.backstage import ApiBackstage
from tests.support.caches import cache_folder, locked
from tests.support.controlplane import ControlPlane

Json = dict[str, Any]
NAMESPACE = "nhc"  # short: the account is the name in a certificate, of 64 letters at most
CHECKS = "/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
# Its manifests call the account so; source: internal/controller/rbac/aggregation.go, saName.
_ACCOUNT = "node-healthcheck-controller-manager"
_WEBHOOK_PORT = 9443  # has no flag
_LOG_TAIL_LINES = 20


def install_definitions(control_plane: ControlPlane, definitions: Sequence[Json]) -> None:
    """Create CustomResourceDefinitions that are not there; return when all are served."""
    for definition in definitions:
        name = definition["metadata"]["name"]
        if control_plane.request("GET", f"{_DEFINITIONS}/{name}").status == 404:
            ApiBackstage(control_plane).send("POST", _DEFINITIONS, definition)
    for definition in definitions:
        path = f"{_DEFINITIONS}/{definition['metadata']['name']}"

        def established(path: str = path) -> bool:
            conditions = control_plane.request("GET", path).body.get("status", {}).get("conditions") or []
            return any(it["type"] == "Established" and it["status"] == "True" for it in conditions)

        wait_until(established, f"served {path}")


class NodeHealthChecks:
    """Runs the controller, and is the administrator who sets it up. Use it as a context manager.

    One at a time on a machine: the controller's webhook has a port that cannot be chosen. Nothing calls it.

    Args:
        control_plane: Where it works; its API server runs.
        folder: An empty folder for its keys and its log, which stays.

    Raises:
        MissingUpstreamError: At the start, where it cannot be had here.
    """

    def __init__(self, control_plane: ControlPlane, folder: Path) -> None:
        self._cluster, self._folder = control_plane, folder
        self._admin = ApiBackstage(control_plane)
        self._running = ExitStack()
        self.log_file = folder / "node-health-check.log"

    def __enter__(self) -> Self:
        program = find_or_build()
        self._folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as running:
            running.enter_context(locked(cache_folder("node-healthcheck") / "running", MissingUpstreamError))
            _refuse_if_taken(_WEBHOOK_PORT)
            self._install()
            starter = Starter()
            running.callback(starter.close)
            port = hold_ports(["health"], running)["health"]
            process = starter.start(self._command(program, port), self.log_file)
            running.callback(_end, process)
            wait_until(
                lambda: process.poll() is not None or answers(f"{LOOPBACK}:{port}", "/readyz", None),
                "ready NodeHealthCheck controller",
            )
            assert process.poll() is None, f"the controller ended:\n{self.log_tail()}"
            self._running = running.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._running.close()

    def log_tail(self) -> str:
        """Return the last lines that it logged."""
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:])

    def _install(self) -> None:
        install_definitions(self._cluster, node_health_check_definitions())
        self._admin.make_space(NAMESPACE)
        self._grant("node-healthcheck-manager", node_health_check_rules())

    def _grant(self, role: str, rules: Sequence[Json]) -> None:
        if self._cluster.request("GET", f"{_RBAC}/clusterroles/{role}").status == 404:
            self._admin.send("POST", f"{_RBAC}/clusterroles", {"metadata": {"name": role}, "rules": rules})
        self.aggregate(role)

    def _command(self, program: Path, port: int) -> list[str]:
        user = f"system:serviceaccount:{NAMESPACE}:{_ACCOUNT}"
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}")
        env = shutil.which("env")
        assert env is not None, "POSIX has it"
        return [
            env,
            f"DEPLOYMENT_NAMESPACE={NAMESPACE}",
            f"TMPDIR={self._webhooks_folder()}",
            str(program),
            f"--kubeconfig={self._cluster.kubeconfig(user, groups)}",
            "--leader-elect=false",
            "--metrics-bind-address=0",
            f"--health-probe-bind-address={LOOPBACK}:{port}",
        ]

    def _webhooks_folder(self) -> Path:
        """Return a folder for temporary files, in which its webhook server finds a certificate.

        Source: controller-runtime pkg/webhook/server.go, setDefaults.
        """
        pair = Authority(self._folder / "pki").server("webhook", [LOOPBACK])
        certificates = self._folder / "tmp" / "k8s-webhook-server" / "serving-certs"
        certificates.mkdir(parents=True)
        shutil.copy(pair.cert_file, certificates / "tls.crt")
        shutil.copy(pair.key_file, certificates / "tls.key")
        return self._folder / "tmp"

    # -- what its administrator does ----------------------------------------------------------------------

    def aggregate(self, role: str) -> None:
        """Give it the rights of a ClusterRole, as the label for aggregation would; twice is once."""
        if self._cluster.request("GET", f"{_RBAC}/clusterrolebindings/{role}").status == 404:
            account = {"kind": "ServiceAccount", "name": _ACCOUNT, "namespace": NAMESPACE}
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
            binding = {"metadata": {"name": role}, "roleRef": reference, "subjects": [account]}
            self._admin.send("POST", f"{_RBAC}/clusterrolebindings", binding)

    def make(
        self,
        name: str,
        labels: Mapping[str, str],
        *templates: Mapping[str, str],
        after: str = "1s",
        timeout: str = "60s",
    ) -> None:
        """Have nodes watched: the first template is used, and each other one when that before it fails.

        Args:
            name: Of the NodeHealthCheck.
            labels: Of the nodes.
            templates: References: apiVersion, kind, name, namespace.
            after: How long Ready is not True before a node is remediated.
            timeout: Of each template.
        """
        statuses = ("False", "Unknown")
        spec = {
            "selector": {"matchLabels": dict(labels)},
            "unhealthyConditions": [{"type": "Ready", "status": it, "duration": after} for it in statuses],
            "minHealthy": 0,
            "escalatingRemediations": [
                {"remediationTemplate": dict(template), "order": order, "timeout": timeout}
                for order, template in enumerate(templates)
            ],
        }
        check = {"apiVersion": "remediation.medik8s.io/v1alpha1", "kind": "NodeHealthCheck"}
        self._admin.send("POST", CHECKS, {**check, "metadata": {"name": name}, "spec": spec})

    def drop(self, name: str) -> None:
        """Delete a NodeHealthCheck."""
        self._admin.send("DELETE", f"{CHECKS}/{name}")

    def status(self, name: str) -> Json:
        """Return the status of a NodeHealthCheck."""
        return dict(self._admin.send("GET", f"{CHECKS}/{name}").get("status", {}))

    def remediations(self, name: str, node: str) -> list[Json] | None:
        """Return what a NodeHealthCheck did for a node so far; None: to it the node is healthy."""
        unhealthy = self.status(name).get("unhealthyNodes", [])
        return next((list(it.get("remediations", [])) for it in unhealthy if it["name"] == node), None)

    def lease_holder(self, node: str) -> str | None:
        """Return who holds medik8s' Lease of a node."""
        lease = self._cluster.request("GET", f"{_LEASES}/node-{node}")
        return lease.body["spec"]["holderIdentity"] if lease.status == 200 else None


def _refuse_if_taken(port: int) -> None:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("", port))
        except OSError as error:
            raise MissingUpstreamError(f"port {port} is taken ({error})") from error


def _end(process: Process) -> None:
    process.terminate()
    process.wait()
