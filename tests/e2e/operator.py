"""fencer as its user has it: an account of its own, a configuration file, and the commands."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from fencer.errors import ClusterConflict
from fencer.journal.reading import entries
from fencer.journal.rows import Kind, text_of
from tests.e2e.gate import Gate, through
from tests.e2e.rest import RestClient
from tests.support import LateError, wait_until
from tests.support.controlplane import ControlPlane
from tests.support.guests import GuestHost

ACCOUNT = "system:serviceaccount:fencer:fencer"
_COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": (
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    ),
}
_MARKS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_WATCHING = 'text="watching '
_COMMAND_WITHIN_S = 300.0
_ENDS_WITHIN_S = 60.0

SPEED = 4.0
"""So much faster runs fencer's clock than ours, and so much quicker are kubelets and control plane."""

DEFAULT_POLICY: Mapping[str, Any] = {"settle_s": 30.0 / SPEED}
"""What users have, by that clock. `settle_s` goes by the API server's, which nobody hurries."""


TELLING = frozenset({Kind.DECISION, Kind.ACTION, Kind.NOTICE})
"""Rows of the journal that tell a story."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the journal."""

    facts: dict[str, Any]

    @property
    def kind(self) -> str:
        """``decision``, ``action`` or ``notice``."""
        return str(self.facts["kind"])

    @property
    def what(self) -> str:
        """Verdict and reason of a decision, the name of an action, nothing for a notice."""
        if self.kind == "decision":
            return f"{self.facts['verdict']}/{self.facts['reason']}"
        return str(self.facts.get("action", ""))

    def __str__(self) -> str:
        """One line for people."""
        node = self.facts.get("node", "")
        return f"{self.facts['at']} {self.kind} {node} {self.what}: {self.facts['text']}"


class Watch:
    """A running ``fencer watch``.

    Args:
        process: It.
        log_file: What it says.
    """

    def __init__(self, process: subprocess.Popen[bytes], log_file: Path) -> None:
        self.process = process
        self._log_file = log_file

    @property
    def log(self) -> str:
        """All that it has said so far."""
        return self._log_file.read_text()

    def kill(self) -> None:
        """Kill it with SIGKILL, in the midst of whatever it does."""
        self.process.kill()
        self.process.wait(_ENDS_WITHIN_S)

    def end(self) -> None:
        """End it as systemd would, and make sure that it takes that well; it does not outlive this."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(_ENDS_WITHIN_S)
        finally:
            self.kill()


class Surroundings(Protocol):
    """What an operator needs of a lab.

    Attributes:
        cluster: The control plane.
        client: The administrator's.
        host: Of the guests.
    """

    cluster: ControlPlane
    client: RestClient
    host: GuestHost

    @property
    def nodes(self) -> Mapping[str, Any]:
        """Nodes by name, each with its `guest`."""
        ...

    def annotations(self, name: str) -> dict[str, str]:
        """Return a Node's annotations."""
        ...


class Operator:
    """Installs fencer beside a lab, and uses it.

    Args:
        lab: The cluster with its guests.
        folder: For configuration, kubeconfig, journals and logs.
        policy: What the section `policy` of each configuration begins with.
        speed: Of fencer's clock; 1: as users have it.

    Attributes:
        program: What is run as ``fencer``.
    """

    program: tuple[str, ...] = (str(Path(sys.executable).with_name("fencer")),)

    def __init__(
        self,
        lab: Surroundings,
        folder: Path,
        policy: Mapping[str, Any] = DEFAULT_POLICY,
        *,
        speed: float = SPEED,
    ) -> None:
        self.lab = lab
        if speed != 1.0:
            self.hurry_by(speed)
        self._policy = policy
        self._folder = folder
        self._watches_count = 0
        self._journal: list[Entry] = []
        self._read = 0
        """Number of the newest row that was read of it."""
        self._marks_count = 0
        self._kubeconfig = folder / "kubeconfig"
        self._made: set[tuple[str, str, str]] = set()
        """Kind, namespace and name of what was applied."""
        self._all_leased = False
        self._grant()

    def hurry_by(self, speed: float) -> None:
        """Run every fencer that is started from now on by a clock so much faster."""
        program = Path(__file__).with_name("hurried_fencer.py")
        self.program = (sys.executable, "-P", str(program), f"{speed:g}")

    def configure(
        self,
        mode: str = "armed",
        *,
        power: bool = True,
        gate: Gate | None = None,
        web: str | None = None,
        further: Mapping[str, Mapping[str, Any]] | None = None,
        receivers: Sequence[Mapping[str, Any]] = (),
        **policy: Any,
    ) -> Path:
        """Write the configuration file.

        Args:
            mode: ``armed`` or ``observe``.
            power: Whether fencer may power the workers' guests off.
            gate: Through which it has to go to the API server; None: straight there.
            web: Where it listens; None: nowhere, as many agents run at the same time.
            further: More libvirt endpoints: name → what else the configuration says of it.
            receivers: Who is told, as the configuration says it.
            policy: What is to differ from the lab's usual policy.
        """
        endpoint = self.endpoint()
        more = [{"name": name, "type": "libvirt", **rest} for name, rest in (further or {}).items()]
        kubeconfig = self._kubeconfig if gate is None else through(gate, self._kubeconfig)
        if power:
            endpoint["power"] = {"uuids": [node.guest.uuid for node in self.lab.nodes.values()]}
        content = {
            "mode": mode,
            "kubernetes": {"kubeconfig": str(kubeconfig), "unauthenticated": gate is not None},
            "hypervisors": [endpoint, *more],
            "policy": {**self._policy, **policy},
            "journal": {"file": str(self.journal_file)},
            "web": {"enabled": False} if web is None else {"listen": web},
            "notify": {"receivers": list(map(dict, receivers))},
        }
        path = self.config_file
        path.write_text(yaml.safe_dump(content))
        return path

    def endpoint(self) -> dict[str, Any]:
        """Return what the configuration says of the hypervisor, except `power`."""
        return {"name": "lab", "type": "libvirt", "uri": self.lab.host.uri}

    @property
    def config_file(self) -> Path:
        """Where its newest configuration is."""
        return self._folder / "config.yaml"

    @property
    def journal_file(self) -> Path:
        """Where fencer keeps its journal."""
        return self._folder / "journal.db"

    def journal(self, node: str | None = None) -> list[Entry]:
        """Return what the journal says was decided, done and told, of one node or of all."""
        if not self.journal_file.exists():
            return []
        for row in entries(self.journal_file, "number > ?", [str(self._read)]):
            self._read = row.number
            if row.kind in TELLING:
                facts = {"at": text_of(row.at), "kind": row.kind.value, "node": row.node, **row.body}
                self._journal.append(Entry(facts))
        return [entry for entry in self._journal if node is None or entry.facts["node"] == node]

    def story(self, node: str | None = None) -> list[str]:
        """Return what fencer decided and did, in order: `Entry.what` of each entry that is no notice."""
        return [entry.what for entry in self.journal(node) if entry.what]

    @contextmanager
    def watching(
        self, config: Path, *options: str, until: Callable[[Watch], bool] | None = None
    ) -> Iterator[Watch]:
        """Run ``fencer watch``, without a terminal, as systemd does; it must end well unless killed.

        Args:
            config: Its configuration.
            options: Of the command.
            until: What it has come to when this begins; None: it has bound every node.
        """
        self.lease_out(config)
        self._watches_count += 1
        log_file = self._folder / f"watch-{self._watches_count}.log"
        with log_file.open("w") as log:
            process = subprocess.Popen(
                [*self.program, "watch", "--config", str(config), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_environment(),
                start_new_session=True,  # with a terminal it would take SIGHUP for the end of that
            )
        watch = Watch(process, log_file)
        begun = until or self._has_bound_all
        try:
            wait_until(
                lambda: process.poll() is not None or begun(watch),
                f"bindings; see {log_file}" if until is None else f"begin; see {log_file}",
            )
            assert process.poll() is None, f"it ended at once:\n{watch.log}"
            yield watch
        except LateError as late:
            if process.poll() not in {None, -signal.SIGKILL}:  # not late: it never comes
                # None: the gate would try a test once more with anything late among the causes.
                raise AssertionError(f"{late}; it ended with {process.returncode}:\n{watch.log}") from None
            raise LateError(f"{late}; the agent said last: {watch.log.splitlines()[-1:]}") from late
        finally:
            watch.end()
        assert process.returncode in {0, -signal.SIGKILL}, f"it ended with {process.returncode}:\n{watch.log}"

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one command, and return what it said; it stands in ``commands.log`` too."""
        done = subprocess.run(
            [*self.program, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=_environment(),
            timeout=_COMMAND_WITHIN_S,
            check=False,
        )
        with (self._folder / "commands.log").open("a") as log:
            log.write(
                f"$ fencer {' '.join(words)}\n{done.stdout}{done.stderr}(exit code {done.returncode})\n\n"
            )
        return done

    def writes(self, *, events: bool = False) -> list[dict[str, Any]]:
        """Return what fencer has written into the cluster so far, but for Leases, from the audit log.

        What was written is seen before it is logged. So the log is read when it has a later question of ours.

        Args:
            events: With the Events it left.
        """
        self._marks_count += 1
        mark = f"{_MARKS}?fieldManager=mark-{self._marks_count}-end"
        self.lab.client.post(mark, {})
        wait_until(lambda: mark.encode() in self.lab.cluster.audit_file.read_bytes(), f"audit of {mark}")
        return [
            entry
            for entry in self.lab.cluster.audit_events()
            if entry["user"]["username"] == ACCOUNT
            and (events or entry["objectRef"]["resource"] != "events")
            and entry["objectRef"]["resource"] != "leases"
            and not entry["objectRef"]["resource"].startswith("selfsubject")
        ]

    def _has_bound_all(self, watch: Watch) -> bool:
        return _WATCHING in watch.log and all(
            "fencer.dev/binding" in self.lab.annotations(name) for name in self.lab.nodes
        )

    def _grant(self) -> None:
        """Make fencer's account as docs/install.md says, and narrow it by the admission policy."""
        self._apply(self.run("setup", "kubernetes", "--drain", "--attachments").stdout)
        admins, own = str(self.lab.cluster.kubeconfig()), str(self._kubeconfig)
        words = ("setup", "kubernetes", "--kubeconfig", admins, "--output", own, "--replace")

        def made() -> bool:  # rights are granted a moment after their roles were made
            done = self.run(*words)
            assert done.returncode == 0 or "apply the manifest" in done.stderr, done
            return done.returncode == 0

        wait_until(made, "kubeconfig with all rights")

    def grant_more(self, *options: str) -> list[dict[str, Any]]:
        """Make what the manifest has besides, with these options; return it."""
        printed = self.run("setup", "kubernetes", *options)
        assert printed.returncode == 0, printed
        return self._apply(printed.stdout)

    def take_back(self, parts: Sequence[Mapping[str, Any]]) -> None:
        """Delete what was made."""
        for part in reversed(parts):
            name, namespace = part["metadata"]["name"], part["metadata"].get("namespace", "")
            self._made.discard((part["kind"], namespace, name))
            self.lab.client.delete(f"{_COLLECTIONS[part['kind']].format(namespace=namespace)}/{name}", {})

    def lease_out(self, config: Path) -> None:
        """Make the Leases of the hypervisors in a configuration, as docs/install.md says.

        Those that do not answer are left out; they are asked again with the next agent.
        """
        if not self._all_leased:
            printed = self.run("setup", "kubernetes", "--drain", "--attachments", "-c", str(config))
            assert printed.returncode == 0, printed
            self._apply(printed.stdout)
            self._all_leased = not printed.stderr

    def _apply(self, manifest: str) -> list[dict[str, Any]]:
        """Make what is not there yet; return that."""
        made = []
        for part in yaml.safe_load_all(manifest):
            namespace = part["metadata"].get("namespace", "")
            key = (part["kind"], namespace, part["metadata"]["name"])
            if key not in self._made:
                with suppress(ClusterConflict):  # `fencer init` of an earlier test has made it
                    self.lab.client.post(_COLLECTIONS[part["kind"]].format(namespace=namespace), part)
                    made.append(part)
                self._made.add(key)
        return made


def _environment() -> dict[str, str]:
    """Return our environment without what would change how fencer speaks, and with its unit's."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("FENCER_")}
    return {**own, "PYTHONFAULTHANDLER": "1"}
