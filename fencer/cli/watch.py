"""``fencer watch``: the agent. Judges every node again and again, and acts where it is armed."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path

import click

from fencer.cli.at_home import HomeWatch
from fencer.cli.electing import elected
from fencer.cli.notifying import notified
from fencer.cli.options import config_option
from fencer.cli.recording import Recording, recording
from fencer.cli.serving import Served, served
from fencer.cli.signalled import Stop, until_signalled
from fencer.cli.wire import Parts, Wiring, connected
from fencer.config.settings import Config, PreStop
from fencer.core.model import Reason
from fencer.core.policy import Mode, Policy
from fencer.errors import ClusterError, HypervisorUnreachable
from fencer.planned.hook import HookDrains, Request, drain_for
from fencer.ports import ClusterInfo, Reporter, Viewer
from fencer.preflight.cluster import WITHOUT
from fencer.preflight.collect import look_at_secrets
from fencer.preflight.remediation import OPTION, UNANSWERED
from fencer.preflight.rights import granting
from fencer.preflight.transport import ANYBODY, without_key
from fencer.reporting.events import EventReporter
from fencer.reporting.log import set_up
from fencer.reporting.planned import PlannedEvents
from fencer.reporting.several import SeveralReporters
from fencer.reporting.story import LogReporter
from fencer.runtime.footprint import trim
from fencer.runtime.hookserver import HookServer
from fencer.runtime.outages import Outages
from fencer.runtime.reconcile import Agent
from fencer.runtime.reminder import CredentialReminder
from fencer.runtime.shown import Shown
from fencer.runtime.systemd import notify
from fencer.runtime.watch import watch as watch_world
from fencer.runtime.world import API
from fencer.wording.conditions import tally_text
from fencer.wording.events import HOOK_DRAIN
from fencer.wording.outages import without_answer

log = logging.getLogger(__name__)

SLOW_S = 2.0
"""How long a pass waits for a slow endpoint; the next pass takes its answer."""

ENDING_S = 10.0
"""How long what is being done to nodes may still take once fencer is told to stop."""


@click.command(
    short_help="Run the agent: watch all nodes, fence dead ones.",
    epilog="\b\nExamples:\n  fencer watch --config /etc/fencer/config.yaml\n  fencer watch --once --dry-run",
)
@config_option
@click.option("--once", is_flag=True, help="One pass over all nodes, and all that it begins; then exit.")
@click.option("--dry-run", is_flag=True, help="Observe and report only, whatever `mode` says; write nothing.")
@click.option(
    "--log-format",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="text: for people, with fields in systemd's journal, key=value in a file; json: JSON lines.",
)
@click.option("--quiet", is_flag=True, help="Say only what a person should look at.")
@click.option("--verbose", is_flag=True, help="Also say each step on the way.")
@click.option(
    "--hooks",
    type=click.Path(path_type=Path),
    default=None,
    show_default="$RUNTIME_DIRECTORY/fencer.sock where systemd sets that",
    help="Listen on this socket for nudges from hookscripts.",
)
@click.pass_obj
def watch(
    wiring: Wiring,
    path: Path,
    hooks: Path | None,
    log_format: str,
    *,
    once: bool,
    dry_run: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Watch all nodes, and fence those whose guest is proven off.

    With `mode: observe` it only says what it would do. It writes to stderr: a line for what happens to a
    node, and for what fencer does. SIGTERM and SIGINT end it; what it is doing gets 10 s. Without a terminal,
    SIGHUP has it read its configuration again; if that is wrong, the one from before stays in force.
    """
    if quiet and verbose:
        raise click.UsageError("--quiet and --verbose exclude each other")
    level = logging.WARNING if quiet else logging.DEBUG if verbose else logging.INFO
    set_up(sys.stderr, as_json=log_format == "json", level=level)
    hooks = hooks or default_hooks()
    by = f"fencer@{wiring.host()}"
    # A person's SIGHUP says that the terminal is gone, and a service's that there is something to read.
    reads_again = None if once or wiring.has_terminal() else partial(_usable, wiring, path)
    with (
        connected(wiring, path, patience_s=SLOW_S) as parts,
        recording(wiring, parts, by, act=not dry_run) as kept,
        ExitStack() as shown,
    ):
        policy = replace(parts.policy, mode=Mode.OBSERVE) if dry_run else parts.policy
        _name_what_is_open(wiring, parts.config)
        kept.begins(policy)
        page = Served() if once else shown.enter_context(served(wiring, parts, policy))
        reporter = SeveralReporters(*_reporters(parts, policy.mode, kept.journal), *page.reporters)
        part = shown.enter_context(elected(wiring, parts, policy, by, reporter))
        told = () if once or dry_run else shown.enter_context(notified(wiring, parts, part.election))
        state = None if dry_run else wiring.state_store(parts.config, parts.cluster)
        world = replace(parts.world(reporter, kept.journal, part.election), state=state)
        agent = Agent(world, policy, parts.rules, by)
        at_home = HomeWatch(
            wiring.home(),
            parts.config.kubernetes.servers,
            lambda text: world.reporter.said(text, warning=True),
        )
        outages = Outages(world, policy.poll_s)
        viewer = Shown(*page.viewers, *told, *part.viewers, at_home)
        with (
            until_signalled(parts.clock, reads_again) as stop,
            hooks_heard(hooks, parts, part.hear),
            drains_offered(hooks, wiring, parts, policy, kept),
        ):
            notify("READY=1")
            if not _ready(parts, agent, policy.mode, stop, outages, viewer, once=once):
                raise click.exceptions.Exit(1)
            trim()
            if stop.is_set() and not stop.renews:
                log.info("told to stop before any node was looked at: stopped")
            elif once:
                _look_once(agent)
            else:
                remind = CredentialReminder(
                    lambda: agent.shared.api(lambda: wiring.account(parts.config).credentials()),
                    parts.clock.now_s,
                    wiring.wall,
                    lambda text: world.reporter.said(text, warning=True),
                    page.holds,
                )
                kept.says(f"{by} begins to watch", warning=False)
                watch_world(
                    agent, world, policy.poll_s, stop.is_set, remind.look, outages, viewer, page.alive
                )
                agent.finish(ENDING_S)
                _say_why_it_ends(kept, by, stop)
        if not stop.renews:
            notify("STOPPING=1")
    if stop.renews:
        wiring.begin_again()


def _usable(wiring: Wiring, path: Path) -> None:
    """Build all that a configuration asks for, and leave it again; nobody is asked.

    Raises:
        ConfigError: it is wrong, or something that it names is.
    """
    with connected(wiring, path):
        pass


def _say_why_it_ends(kept: Recording, by: str, stop: Stop) -> None:
    if stop.renews:
        kept.says(f"{by} begins again, with its configuration as it is now", warning=False)
        log.info("begins again, with the configuration as it is now")
    else:
        kept.says(f"{by} was told to stop: it watches no more", warning=True)
        log.info("told to stop: stopped")


def _look_once(agent: Agent) -> None:
    """Make one pass, and say what came of it.

    Raises:
        click.exceptions.Exit: with 3, if nobody would notice the end of some node's guest.
    """
    done = agent.tick(patience_s=inf)
    log.info("one pass: %s", tally_text(tuple(done.judged.values())))
    for name, why in done.scene.errors.items():
        log.warning("%s: %s; its nodes are not fenced", name, without_answer(why.removeprefix(f"{name}: ")))
    blind = any(item.decision.reason is Reason.BLIND for item in done.judged.values())
    if done.scene.errors or blind:
        raise click.exceptions.Exit(HypervisorUnreachable.exit_code)


def default_hooks() -> Path | None:
    """Return the socket for hooks in the folder that systemd made; None: it made none."""
    folder = os.environ.get("RUNTIME_DIRECTORY", "").split(":")[0]
    return Path(folder) / "fencer.sock" if folder else None


@contextmanager
def hooks_heard(
    path: Path | None, parts: Parts, forward: Callable[[str], object] = lambda _guest: None
) -> Iterator[None]:
    """Let every nudge from a hook on this host end the clock's wait, and have its guest read live next.

    Args:
        path: Of the socket; None: no hook is heard.
        parts: The working parts.
        forward: Takes it, too, for other agents.

    Raises:
        ConfigError: the socket cannot be made there.
    """
    if path is None:
        yield
        return

    def heard(guest: str) -> None:
        for port in parts.hypervisors.values():
            port.nudge(guest)
        parts.clock.wake()
        forward(guest)

    server = HookServer(path, heard)
    try:
        yield
    finally:
        server.close()


@contextmanager
def drains_offered(
    path: Path | None, wiring: Wiring, parts: Parts, policy: Policy, kept: Recording
) -> Iterator[None]:
    """Drain nodes for waiting hookscripts, in parallel to the passes, if the configuration says so.

    Raises:
        ConfigError: the socket cannot be made there.
    """
    hook = parts.config.hook
    if path is None or hook.pre_stop is not PreStop.DRAIN or policy.mode is not Mode.ARMED:
        yield
        return

    def drain(request: Request) -> str:
        clock = wiring.clock()  # its own clock, and everything with one: the watch goes on meanwhile
        own = replace(parts, clock=clock, asker=wiring.asker(clock, SLOW_S))
        by = f"fencer@{wiring.host()}"
        events = PlannedEvents(EventReporter(own.cluster, own.asker), HOOK_DRAIN, by)
        journal = kept.beside(own)
        reporter = SeveralReporters(*_records(own, journal), events)
        world = replace(own.world(reporter, journal), evictor=wiring.evictor(parts.config))
        agent = Agent(world, policy, parts.rules, by)
        return drain_for(world, agent, request, hook.budget_s, events.drained)

    server = HookDrains(path.with_suffix(".drain"), drain)
    try:
        yield
    finally:
        server.close()


def _reporters(parts: Parts, mode: Mode, journal: Reporter | None) -> Iterator[Reporter]:
    yield from _records(parts, journal)
    if mode is Mode.ARMED:
        yield EventReporter(parts.cluster, parts.asker)


def _records(parts: Parts, journal: Reporter | None) -> Iterator[Reporter]:
    """Give what keeps everything."""
    yield LogReporter(logging.getLogger("fencer.agent"), parts.clock.now_s)
    if journal is not None:
        yield journal


def _name_what_is_open(wiring: Wiring, config: Config) -> None:
    """Warn of files with credentials that others can read, and of ways on which anybody may answer.

    The agent still goes on: it was armed knowingly, and a changed file mode must not leave the cluster
    unguarded. `fencer check` fails for both.
    """
    for name, why in config.unauthenticated.items():
        log.warning("%s: %s: %s; %s", name, why, ANYBODY, without_key(name))
    for path_findings in look_at_secrets(wiring, config).values():
        for found in path_findings:
            log.warning("credentials: %s; %s", found.text, found.fix)


def _ready(
    parts: Parts,
    agent: Agent,
    mode: Mode,
    stop: Stop,
    outages: Outages,
    viewer: Viewer,
    *,
    once: bool,
) -> bool:
    """Prove who we are and what we may do; try again until the cluster answers, or we are told to stop.

    Returns:
        False: rights are missing, and the agent is armed.

    Raises:
        ClusterError: the cluster does not answer, and only one pass was asked for.
    """
    while not stop.is_set():
        try:
            has_rights = _has_rights(parts, agent, mode)
        except ClusterError as error:
            if once:
                raise
            outages.look({API: str(error)}, {API})
            viewer.failed(str(error))
            notify("WATCHDOG=1")
            agent.learn_only()
            parts.clock.wait(parts.policy.poll_s)
        else:
            outages.look({}, {API})
            return has_rights
    return True


def _has_rights(parts: Parts, agent: Agent, mode: Mode) -> bool:
    identity = agent.shared.api(parts.cluster.identity)
    missing = agent.shared.api(parts.cluster.missing_rights)
    log.info(
        "watching %s (%s) as %s; mode %s; hypervisors: %s",
        identity.server,
        identity.version,
        identity.user,
        mode.value,
        ", ".join(parts.hypervisors),
    )
    _name_lesser_rights(parts, agent, identity)
    if not missing:
        return True
    grants = granting(identity.user, version=identity.version)
    text = f"rights are missing: {', '.join(missing)}; `{grants}` grants them"
    if mode is Mode.ARMED:
        log.error("not armed: %s", text)
        return False
    log.warning("%s", text)
    return True


def _name_lesser_rights(parts: Parts, agent: Agent, identity: ClusterInfo) -> None:
    """Warn of missing rights that an agent can do without: it may have been upgraded before its rights."""
    missing = agent.shared.api(parts.cluster.missing_lesser_rights)
    grants = granting(identity.user, version=identity.version)
    for right in missing:
        if right == "watch nodes":
            continue  # whoever watches them says so, also if the right is taken away later
        log.warning("may not %s: %s; `%s` grants it", right, WITHOUT[right], grants)
    if parts.requests is not None:
        for right in agent.shared.api(parts.requests.missing_rights):
            grants = granting(identity.user, OPTION, version=identity.version)
            log.warning("may not %s: %s; `%s` grants it", right, UNANSWERED, grants)
