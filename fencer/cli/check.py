"""``fencer check``: is everything there that fencer needs, before it is armed."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import click

from fencer.cli.account import account_findings
from fencer.cli.admissions import power_findings
from fencer.cli.confinement import admission_finding
from fencer.cli.exposure import secret_findings, transport_findings
from fencer.cli.findings import (
    Finding,
    Level,
    cluster_finding,
    guests_finding,
    known_nodes,
    node_findings,
    volume_rights_findings,
)
from fencer.cli.options import config_option, output_option
from fencer.cli.output import emit
from fencer.cli.provable import provable_findings
from fencer.cli.render import BAD, DOUBTFUL, FAINT, GOOD, Cell, clean, complain, say, table
from fencer.cli.stops import stop_findings, unread_finding
from fencer.cli.trials import Answer, Said, binding_findings, guest_of, witness_findings
from fencer.cli.wire import Quiet, Wiring, log_plainly
from fencer.config.settings import Config, Endpoint, LibvirtEndpoint
from fencer.core.model import Evidence, GuestRef
from fencer.core.policy import Mode
from fencer.core.text import count
from fencer.errors import ClusterDenied, ClusterError, ClusterUnreachable, ConfigError, FencerError
from fencer.hypervisors.libvirt.ssh import is_from_beyond, way_of
from fencer.ports import Asker, Clock, Cluster, ClusterInfo, EndpointInfo, Hypervisor, StopSettings
from fencer.runtime.onlooker import Onlooker
from fencer.runtime.reconcile import Pass
from fencer.runtime.world import API, World

_SILENCE = re.compile("no answer within|calls hang there|keepalive timeout")
COLOURS = {Level.OK: GOOD, Level.NOTE: FAINT, Level.WARN: DOUBTFUL, Level.FAIL: BAD}


@dataclass(slots=True)
class Inspection:
    """Asks everything that the configuration names, and goes on where something does not answer."""

    wiring: Wiring
    path: Path
    config: Config
    clock: Clock
    asker: Asker
    cluster: Cluster | None = None
    info: ClusterInfo | None = None
    hypervisors: dict[str, Hypervisor] = field(default_factory=dict)
    answering: set[str] = field(default_factory=set)
    infos: dict[str, EndpointInfo] = field(default_factory=dict)
    seen: Pass | ClusterError | None = None

    def findings(self) -> Iterator[Finding]:
        """Look, row by row."""
        yield Finding("config", str(self.path), Level.OK, f"mode {self.config.policy.mode.value}")
        yield from secret_findings(self.wiring, self.config)
        yield from transport_findings(self.config)
        yield from self._journal()
        yield from self._cluster()
        if self.info is not None:
            yield from account_findings(self.wiring, self.config, self.asker, self.info)
        answers = self._describe()
        self._look()
        yield from self._endpoints(answers)
        yield from self._nodes()

    def close(self) -> None:
        """Give connections back."""
        for hypervisor in self.hypervisors.values():
            hypervisor.close()

    def _journal(self) -> Iterator[Finding]:
        file = self.config.journal
        if file is None:
            return
        if os.access(file if file.exists() else file.parent, os.W_OK):
            yield Finding("journal", str(file))
        else:
            tries = (f"install -d -m 0750 {shlex.quote(str(file.parent))}   (owned by fencer's user)",)
            yield Finding("journal", str(file), Level.FAIL, "cannot be written", tries)

    def _cluster(self) -> Iterator[Finding]:
        kubeconfig, deadline_s = self.config.kubernetes.kubeconfig, self.config.policy.call_deadline_s
        try:
            cluster = self.wiring.cluster(self.config)
            info = self.asker.ask(API, cluster.identity, deadline_s)
            missing = self.asker.ask(API, cluster.missing_rights, 3 * deadline_s)
            lesser = self.asker.ask(API, cluster.missing_volume_rights, deadline_s)
        except FencerError as error:
            command = f"kubectl --kubeconfig {shlex.quote(str(kubeconfig))} get nodes"
            # It takes what we refuse, and is refused by whoever refuses us: our own words say what helps.
            tries = () if isinstance(error, ConfigError | ClusterDenied) else (command,)
            yield Finding("kubernetes", str(kubeconfig), Level.FAIL, str(error), tries)
            return
        self.cluster, self.info = cluster, info
        yield cluster_finding(info, missing)
        yield from volume_rights_findings(lesser, info)

    def _describe(self) -> Mapping[str, EndpointInfo | FencerError]:
        """Ask each endpoint who it is."""
        unbuilt: dict[str, FencerError] = {}
        for endpoint in self.config.endpoints:
            try:
                self.hypervisors[endpoint.name] = self.wiring.hypervisor(endpoint, self.clock)
            except FencerError as error:
                unbuilt[endpoint.name] = error
        calls = {name: port.describe for name, port in self.hypervisors.items()}
        answers = {**self.asker.ask_all(calls, self.config.policy.call_deadline_s), **unbuilt}
        self.infos = {name: info for name, info in answers.items() if isinstance(info, EndpointInfo)}
        self.answering = {name for name, info in self.infos.items() if not info.problems}
        return answers

    def _look(self) -> None:
        """Look at all nodes once. An endpoint that tells only who it is counts as silent."""
        if self.cluster is None:
            return
        world = World(self.cluster, self.hypervisors, self.asker, self.clock, Quiet())
        try:
            self.seen = Onlooker(world, self.config.policy, self.config.rules).look()
        except ClusterError as error:
            self.seen = error
            return
        self.answering -= self.seen.scene.errors.keys()

    def _endpoints(self, answers: Mapping[str, EndpointInfo | FencerError]) -> Iterator[Finding]:
        unheard = self.seen.scene.errors if isinstance(self.seen, Pass) else {}
        for endpoint in self.config.endpoints:
            yield _endpoint(endpoint, answers[endpoint.name], unheard.get(endpoint.name, ""))
        yield from unread_finding({name: info.kind for name, info in self.infos.items()})

    def _nodes(self) -> Iterator[Finding]:
        seen = self.seen
        if seen is None:
            return
        if not isinstance(seen, Pass):
            again = ("the same again: it answered a moment ago",)
            tries = again if isinstance(seen, ClusterUnreachable) else ()
            yield Finding("nodes", "", Level.FAIL, str(seen), tries)
            return
        if self.info is not None and seen.scene.nodes:
            yield admission_finding(self.wiring, self.config, self.asker, self.info, min(seen.scene.nodes))
        known = known_nodes(seen)
        yield guests_finding(self.config, self.answering, seen)
        tried = [one for one in known if guest_of(one).endpoint in self.answering]
        if tried:
            yield from binding_findings(tried, self._read)
            yield from stop_findings(tried, self._stop_settings)
        if known:
            yield from witness_findings(self.config, known, self._ask_witnesses())
        yield from provable_findings(self.config, {guest_of(one).key for one in known}, seen)
        yield from power_findings(self.config, known, seen, self.infos)
        since = timedelta(seconds=self.clock.now_s() - seen.scene.now_s)  # the API server told its time then
        yield from node_findings(self.config, seen, self.wiring.wall() - since)

    def _read(self, guest: GuestRef) -> Evidence:
        """Read one guest live.

        Raises:
            HypervisorError: as the port.
        """
        port = self.hypervisors[guest.endpoint]
        return self.asker.ask(guest.endpoint, lambda: port.read(guest), self.config.policy.call_deadline_s)

    def _stop_settings(self, guest: GuestRef) -> StopSettings | None:
        """Read what is set for stops of one guest.

        Raises:
            HypervisorError: as the port.
        """
        port, deadline_s = self.hypervisors[guest.endpoint], self.config.policy.call_deadline_s
        return self.asker.ask(guest.endpoint, lambda: port.stop_settings(guest), deadline_s)

    def _ask_witnesses(self) -> Said:
        """Ask every power witness, by endpoint and host, each on a worker of its own."""
        said: dict[str, Answer] = {}
        calls: dict[str, Callable[[], bool | None]] = {}
        for name, written in self.config.power_witnesses.items():
            try:
                calls[name] = self.wiring.witness(written).is_off
            except FencerError as error:
                said[name] = error
        return {**said, **self.asker.ask_all(calls, self.config.policy.call_deadline_s, patient=True)}


@click.command(
    short_help="Is everything there that fencer needs?",
    epilog="\b\nExamples:\n  fencer check\n  fencer check -c ./fencer.yaml -o json",
)
@config_option
@output_option("table", "json", "yaml")
@click.pass_obj
def check(wiring: Wiring, path: Path, form: str) -> None:
    """Check everything that fencer needs before it is armed: configuration, rights, hypervisors, who is who.

    It changes nothing. 0: ready, 1: something fails, 2: the configuration itself is wrong.
    """
    try:
        config = wiring.load(path)
    except ConfigError as error:
        why = "see below" if form == "table" else "; ".join(str(error).splitlines())
        wrong = Finding(
            "config", str(path), Level.FAIL, why, (f"mend it, then: fencer config check -c {path}",)
        )
        _show(path, [wrong], None, form)
        complain(str(error))
        raise click.exceptions.Exit(error.exit_code) from error
    log_plainly()
    clock = wiring.clock()
    asker = wiring.asker(clock, config.policy.call_deadline_s)
    inspection = Inspection(wiring, path, config, clock, asker)
    try:
        findings = list(inspection.findings())
    finally:
        inspection.close()
    _show(path, findings, config.policy.mode, form)
    if any(finding.level is Level.FAIL for finding in findings):
        raise click.exceptions.Exit(1)


def _endpoint(endpoint: Endpoint, answer: EndpointInfo | FencerError, unheard: str) -> Finding:
    """Judge an endpoint.

    Args:
        endpoint: As it is configured.
        answer: How it describes itself.
        unheard: Why it did not tell how its guests are; empty: it did.
    """
    if isinstance(answer, FencerError):
        tries = () if isinstance(answer, ConfigError) else _tries(endpoint, str(answer))
        return Finding(endpoint.name, endpoint.where, Level.FAIL, str(answer), tries)
    about = f"{answer.kind}: {answer.version}"
    remarks = list(answer.remarks)
    if not endpoint.power.nobody and answer.can_power is False:
        way = ": `fencer setup proxmox --power` prints the lines" if answer.kind == "proxmox" else ""
        remarks.append(f"The configuration admits power actions, but we have no right to them here{way}.")
    problems = (*answer.problems, *([f"Its guests were not told: {unheard}"] if unheard else []))
    points = (*problems, *remarks)
    if not points:
        return Finding(endpoint.name, about, Level.OK, answer.detail)
    level = Level.FAIL if problems else Level.WARN
    tries = _tries(endpoint, unheard) if unheard else ()
    return Finding(endpoint.name, about, level, answer.detail, tries, points)


def _tries(endpoint: Endpoint, error: str) -> tuple[str, ...]:
    """Name what the endpoint's own words do not: an ssh that asks or does not get in, a daemon that hangs."""
    if not isinstance(endpoint, LibvirtEndpoint):
        return ()
    way, tries = way_of(endpoint.uri), list[str]()
    if way is not None and not is_from_beyond(error):
        tries.append(f"{way.command}   (as fencer's user; it must not ask anything)")
    of_session = endpoint.uri.partition("?")[0].endswith("/session")  # no unit's, but its user's
    if _SILENCE.search(error) and not of_session:
        place = "on this host" if way is None else "there"
        tries.append(
            f"systemctl restart libvirtd   (or virtqemud; {place}, if it hangs: guests run on meanwhile)"
        )
    return tuple(tries)


def _show(path: Path, findings: list[Finding], mode: Mode | None, form: str) -> None:
    verdict = _verdict(findings, mode, path)
    if form != "table":
        rows = [
            {
                "what": one.what,
                "about": one.about,
                "level": one.level.lower(),
                "note": one.note,
                "points": list(one.points),
                "try": list(one.tries),
            }
            for one in findings
        ]
        emit({"ready": not _failed(findings), "verdict": verdict, "findings": rows}, form)
        return
    rows_shown: list[list[Cell | str]] = []
    for one in findings:
        level = Cell(one.level.value, COLOURS[one.level])
        rows_shown.append([clean(one.what), clean(one.about), level, clean(one.note)])
        rows_shown.extend(["", "", "", clean(text)] for text in one.points)
        rows_shown.extend(["", "", "", f"try: {clean(text)}"] for text in one.tries)
    for line in table(rows_shown):
        say(line)
    say(click.style(verdict, bold=True))


def _failed(findings: list[Finding]) -> list[str]:
    return [one.what for one in findings if one.level is Level.FAIL]


def _verdict(findings: list[Finding], mode: Mode | None, path: Path) -> str:
    failed = _failed(findings)
    warnings = sum(one.level is Level.WARN for one in findings)
    counts = f"{count(len(failed), 'failure')}, {count(warnings, 'warning')}."
    if failed:
        ready = f"Not ready to be armed: {', '.join(dict.fromkeys(failed))}."
    elif mode is Mode.ARMED:
        ready = "Ready, and armed: `fencer watch` acts."
    else:
        ready = f"Ready to be armed: `mode: armed` in {path}."
    return f"{counts} {clean(ready)}"
