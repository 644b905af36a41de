"""A real Kubernetes control plane on loopback: etcd, API server, controller manager and scheduler.

It is a cluster without kubelets: nodes are whatever the tests create and keep alive. Rights are as in a real
cluster (Node and RBAC authorizers, NodeRestriction, client certificates, one service account per controller).
"""

import json
import shutil
import signal
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tests.controlplane.binaries import (
    API_SERVER,
    COMPONENTS,
    CONTROLLER_MANAGER,
    ETCD,
    SCHEDULER,
    Binaries,
    MissingBinariesError,
    find_or_build,
)
from tests.controlplane.certificates import Authority, KeyPair, kubeconfig
from tests.controlplane.flags import LOOPBACK, Setup, Timing, audit_policy, flags_of
from tests.controlplane.process import Process, Starter, answers, hold_ports
from tests.support import missing_real_part, wait_until
from tests.support.processes import freeze, thaw

__all__ = ["ControlPlane", "ControlPlaneError", "Response", "Timing", "running_control_plane"]

ADMINS = ("system:masters",)
_ANSWER_WITHIN_S = 30.0
_LOG_TAIL_LINES = 20
_LOOPBACK_FROM_QEMU = "10.0.2.2"  # as a guest on QEMU's user-mode network reaches it
_NAMES = (LOOPBACK, "localhost", "kubernetes.default.svc", _LOOPBACK_FROM_QEMU)
_CLIENTS = (CONTROLLER_MANAGER, SCHEDULER)
_HEALTH_PATHS = {
    ETCD: "/health",
    API_SERVER: "/readyz",
    CONTROLLER_MANAGER: "/healthz",
    SCHEDULER: "/healthz",
}


class ControlPlaneError(Exception):
    """A component ended or did not become healthy; the message has the tail of its log."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer of the API server: HTTP status and the JSON object (`{"text": …}` for plain text)."""

    status: int
    body: dict[str, Any]


class ControlPlane:
    """Starts the four components, hands out identities, and can take components away and bring them back.

    Use it as a context manager, or call `start` and `stop`. All methods may be called from any thread.

    Args:
        folder: An empty folder for keys, data and logs. Logs and the audit file stay when all is over.
        binaries: What to run (`find_or_build`).
        timing: The cluster's patience with silent nodes.
        flags: More flags per component, after ours, so that they win.

    Raises:
        ControlPlaneError: Only from the methods that start something.
    """

    def __init__(
        self,
        folder: Path,
        binaries: Binaries,
        *,
        timing: Timing | None = None,
        flags: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.folder = folder
        self.audit_file = folder / "audit.log"
        self._binaries = binaries
        self._flags = {name: list(more) for name, more in (flags or {}).items()}
        self._processes: dict[str, Process] = {}
        self._starter = Starter()
        self._identities_lock = threading.Lock()
        self._identities: dict[tuple[str, ...], KeyPair] = {}
        self._authority = Authority(folder / "pki")
        self.ca_file = self._authority.ca_file
        self._ports_held = ExitStack()
        ports = hold_ports([*COMPONENTS, "etcd-peer"], self._ports_held)
        self.url = f"https://{LOOPBACK}:{ports[API_SERVER]}"
        self._setup = self._prepare(ports, timing or Timing())

    def _prepare(self, ports: dict[str, int], timing: Timing) -> Setup:
        policy = self.folder / "audit-policy.json"
        policy.write_text(audit_policy())
        return Setup(
            ports=ports,
            etcd_folder=self.folder / "etcd",
            ca_file=self.ca_file,
            serving=self._authority.server("serving", _NAMES),
            service_account_key=self._authority.signing_key("service-account"),
            kubeconfigs={name: self.kubeconfig(f"system:{name}", []) for name in _CLIENTS},
            audit_policy=policy,
            audit_file=self.audit_file,
            timing=timing,
        )

    # -- life ---------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start all components; return when pods could be created and would be scheduled."""
        with ExitStack() as undo:
            undo.callback(self.stop)
            self.start_component(ETCD)
            self.start_component(API_SERVER)
            for name in _CLIENTS:
                self._spawn(name)
            for name in _CLIENTS:
                self._wait_healthy(name)
            # Pods are refused until the controllers have made their namespace's service account.
            path = "/api/v1/namespaces/default/serviceaccounts/default"
            wait_until(lambda: self.request("GET", path).status == 200, f"answer to {path}")
            undo.pop_all()

    def stop(self) -> None:
        """Kill everything and remove etcd's data (64 MB and more); a second call does nothing."""
        for name in reversed(COMPONENTS):
            self.stop_component(name)
        self._starter.close()
        self._ports_held.close()
        shutil.rmtree(self._setup.etcd_folder, ignore_errors=True)

    # -- faults -------------------------------------------------------------------------------------------

    def start_component(self, name: str) -> None:
        """Start one of `COMPONENTS` (on its old port and data); return when it is healthy."""
        self._spawn(name)
        self._wait_healthy(name)

    def stop_component(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """End a component and wait until it is gone; nothing happens when it does not run."""
        process = self._processes.pop(name, None)
        if process is not None:
            process.send_signal(how)
            process.wait()

    def restart_component(self, name: str, flags: Sequence[str] | None = None) -> None:
        """Stop and start a component; `flags`, when given, replace the additional ones it was made with."""
        self.stop_component(name)
        if flags is not None:
            self._flags[name] = list(flags)
        self.start_component(name)

    def revive(self) -> None:
        """Start again which of the API's clients has ended by itself, as a kubelet does with static pods.

        kube-scheduler exits when the API contradicts its memory, as it may after the API server's restart.
        """
        for name in _CLIENTS:
            if name in self._processes and self._ended(name):
                self.restart_component(name)

    def freeze_component(self, name: str) -> None:
        """Make a component hang: connections are accepted by the kernel and nothing answers."""
        freeze(self._processes[name].pid)

    def thaw_component(self, name: str) -> None:
        """Let a frozen component go on."""
        thaw(self._processes[name].pid)

    def pid(self, name: str) -> int:
        """Return the process id of a running component."""
        return self._processes[name].pid

    def log_tail(self, name: str) -> str:
        """Return the last lines that a component logged."""
        lines = self._log_file(name).read_text(errors="replace").splitlines()
        return "\n".join(lines[-_LOG_TAIL_LINES:])

    def _log_file(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _spawn(self, name: str) -> None:
        if name in self._processes:
            raise ControlPlaneError(f"{name} runs already")
        command = [*self._binaries.command(name), *flags_of(name, self._setup), *self._flags.get(name, [])]
        self._processes[name] = self._starter.start(command, self._log_file(name))

    def _wait_healthy(self, name: str) -> None:
        url = urlsplit(self._setup.url(name))
        tls = self._tls("admin", ADMINS) if url.scheme == "https" else None
        try:
            wait_until(
                lambda: self._ended(name) or answers(url.netloc, _HEALTH_PATHS[name], tls),
                f"healthy {name}",
            )
        except AssertionError as late:
            raise ControlPlaneError(f"{late}\n{self.log_tail(name)}") from late
        if self._ended(name):
            code = self._processes[name].returncode
            raise ControlPlaneError(f"{name} ended with code {code}:\n{self.log_tail(name)}")

    def _ended(self, name: str) -> bool:
        return self._processes[name].poll() is not None

    # -- clients ------------------------------------------------------------------------------------------

    def client_certificate(self, user: str = "admin", groups: Sequence[str] = ADMINS) -> KeyPair:
        """Return the certificate and key of a user in groups, made at the first asking."""
        identity = (user, *groups)
        with self._identities_lock:
            if identity not in self._identities:
                self._identities[identity] = self._authority.client(user, groups)
            return self._identities[identity]

    def kubeconfig(self, user: str = "admin", groups: Sequence[str] = ADMINS) -> Path:
        """Return a kubeconfig file for a user; a kubelet is `system:node:NAME` in group `system:nodes`."""
        pair = self.client_certificate(user, groups)
        path = pair.cert_file.with_suffix(".kubeconfig")
        with self._identities_lock:
            if not path.exists():  # written once: somebody may be reading it
                path.write_text(kubeconfig(self.url, self.ca_file, user, pair))
        return path

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        user: str = "admin",
        groups: Sequence[str] = ADMINS,
        content_type: str = "application/json",
        timeout_s: float = _ANSWER_WITHIN_S,
    ) -> Response:
        """Ask the API server one thing, for the tests' own looks and set-up.

        Args:
            method: An HTTP method.
            path: With its query, from `/api` on.
            body: The JSON object to send.
            user: Who asks.
            groups: The groups of who asks.
            content_type: For a PATCH: `application/merge-patch+json` or another patch type.
            timeout_s: Seconds of silence after which to give up.

        Raises:
            OSError: The API server does not answer (TimeoutError: in time).
        """
        tls = self._tls(user, groups)
        connection = HTTPSConnection(urlsplit(self.url).netloc, timeout=timeout_s, context=tls)
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(
                method, path, sent, {"Content-Type": content_type, "Accept": "application/json"}
            )
            answer = connection.getresponse()
            content = answer.read().decode()
        finally:
            connection.close()
        is_json = answer.headers.get_content_type() == "application/json"
        return Response(answer.status, json.loads(content) if is_json else {"text": content})

    def _tls(self, user: str, groups: Sequence[str]) -> ssl.SSLContext:
        pair = self.client_certificate(user, groups)
        context = ssl.create_default_context(cafile=str(self.ca_file))
        context.load_cert_chain(pair.cert_file, pair.key_file)
        return context

    # -- audit --------------------------------------------------------------------------------------------

    def audit_events(self) -> list[dict[str, Any]]:
        """Return all writes so far, oldest first; one may be missing for some milliseconds after its answer.

        Each is an `audit.k8s.io/v1` Event, with `requestObject` for nodes, pods and volumeattachments unless
        a kubelet wrote. Reads and node leases are not recorded.
        """
        with self.audit_file.open("rb") as lines:  # bytes: the last line may end within a letter
            return [json.loads(line) for line in lines if line.endswith(b"\n")]


@contextmanager
def running_control_plane(
    folder: Path,
    *,
    timing: Timing | None = None,
    flags: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[ControlPlane]:
    """Run a control plane for a fixture, or leave its tests out with the reason (see `missing_real_part`)."""
    try:
        binaries = find_or_build()
    except MissingBinariesError as missing:
        missing_real_part(str(missing))
    with ControlPlane(folder, binaries, timing=timing, flags=flags) as control_plane:
        yield control_plane
