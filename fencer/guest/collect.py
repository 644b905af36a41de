"""Collects from a running machine what `check` judges. Only reads."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from fencer.guest import itself, kubelets, logind_files, orders, servers
from fencer.guest.connect import connect, servers_of
from fencer.guest.errors import GuestError, Unreachable, Unusable
from fencer.guest.facts import (
    DRAIN_UNIT,
    PROGRAM,
    UNCORDON_UNIT,
    Connection,
    Facts,
    Kubelet,
    Lock,
    Logind,
    Order,
    Program,
    Route,
    Unit,
)
from fencer.guest.files import doubted
from fencer.guest.hibernation import ways_to_hibernate
from fencer.guest.kubelet_config import kubelet_config
from fencer.guest.node import ASK_WITHIN_S
from fencer.guest.routes import routes
from fencer.guest.spans import seconds
from fencer.guest.system import Run, boot_id, read_text

_LOGIND = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
_AGENTS = (
    "qemu-guest-agent.service",
    "qemu-ga.service",
    "vboxadd-service.service",
    "virtualbox-guest-utils.service",
)
_PROPERTIES = (
    "LoadState,ActiveState,UnitFileState,After,Requires,BindsTo,PartOf,TimeoutStopUSec,Environment,ExecStop"
)
_TIMEOUT = re.compile(r"(?:DRAIN_TIMEOUT=|--timeout[ =])([0-9]+)")
_LINE = 256
"""How many bytes of a first line count. Source: execve(2)."""
_WORD = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"|(\S+)')
"""As busctl writes. (`shlex` takes half a minute for a reason of 1 MB, and any user may give one.)"""
_LOCK_FIELDS = 6
"""What, who, why, mode, uid, pid. Source: org.freedesktop.login1(5), ListInhibitors: a(ssssuu)."""


def collect(root: Path, run: Run, file: str | None = None, node: str | None = None) -> Facts:
    """Look at the machine.

    Args:
        root: Of the file system.
        run: Runs commands.
        file: A kubeconfig; None: the kubelet's own.
        node: The Node's name; None: found.
    """
    drain = _unit(run, DRAIN_UNIT)
    return Facts(
        systemd=systemd_version(run),
        drain=drain,
        uncordon=_unit(run, UNCORDON_UNIT),
        logind=_logind(root, run),
        kubelet=_kubelet(root, run),
        connection=_connection(root, run, file, node),
        order=_order(root, run, drain, file) if drain.loaded else Order(),
        program=_program(root, run) if drain.loaded else Program(),
        button="Power Button" in read_text(root / "proc/bus/input/devices"),
        agent=next((unit for unit in _AGENTS if _is_active(run, unit)), ""),
        hibernates=ways_to_hibernate(root, run),
    )


def systemd_version(run: Run) -> int:
    """Return systemd's version; 0: there is none."""
    found = re.match(r"systemd (\d{1,6})", run(["systemctl", "--version"]).text)
    return int(found.group(1)) if found else 0


def _is_active(run: Run, unit: str) -> bool:
    return run(["systemctl", "is-active", unit]).text.strip() == "active"


def _unit(run: Run, name: str) -> Unit:
    lines = run(["systemctl", "show", name, f"--property={_PROPERTIES}"]).text.splitlines()
    said = dict(line.split("=", 1) for line in lines if "=" in line)
    command = said.get("ExecStop", "")
    # `${DRAIN_TIMEOUT}` on the command line means the environment's value; the last word counts.
    timeouts = _TIMEOUT.findall(command) or _TIMEOUT.findall(said.get("Environment", ""))
    return Unit(
        name=name,
        loaded=said.get("LoadState") == "loaded",
        enabled=said.get("UnitFileState") in ("enabled", "enabled-runtime", "static"),
        active=said.get("ActiveState") == "active",
        after=tuple(said.get("After", "").split()),
        tied_to=tuple(
            unit for key in ("Requires", "BindsTo", "PartOf") for unit in said.get(key, "").split()
        ),
        stop_timeout_s=seconds(said.get("TimeoutStopUSec", "")),
        drain_timeout_s=seconds(timeouts[-1]) if timeouts else None,
    )


def _program(root: Path, run: Run) -> Program:
    """Run the units' program: the Python in its first line may be gone, or older now."""
    python = read_text(root / PROGRAM.lstrip("/"), _LINE).partition("\n")[0].lstrip("#!").strip()
    doubt = doubted(root, root / python.lstrip("/")) if python else ""
    if doubt:
        return Program(python, trouble=doubt)
    ran = run([PROGRAM, "--version"])
    trouble = "" if ran.code == 0 else ran.error or f"exit code {ran.code}"
    return Program(python, ran.text.strip(), trouble)


def _order(root: Path, run: Run, drain: Unit, file: str | None) -> Order:
    unnamed = sorted(set(orders.names(itself.units()[DRAIN_UNIT])) - set(drain.after))
    states = run(["systemctl", "is-active", *unnamed]).text.split() if unnamed else []
    ways = ways_to_servers(root, run, file)
    before = dict.fromkeys((*drain.after, *(unit for way in ways for unit in way.units)))
    order: orders.After = {}
    with suppress(Unusable):  # then no cycle is known
        order = orders.after(run, before)
    return Order(
        ways,
        tuple(orders.named(root)),
        tuple(unit for unit, state in zip(unnamed, states) if state == "active"),
        tuple(unit for unit in before if orders.comes_after_ours(order, unit)),
    )


def ways_to_servers(root: Path, run: Run, file: str | None = None) -> tuple[Route, ...]:
    """Return the ways to the API servers in the kubelet's kubeconfig and the installer's lists."""
    try:
        access, listed = servers_of(root, run, file)
    except GuestError:  # without credentials there is no way
        return ()
    found = {it.url: it for it in (access, *listed()[0])}
    return routes(root, run, found.values())


def _logind(root: Path, run: Run) -> Logind:
    delay = _property(run, "InhibitDelayMaxUSec")
    held, unheard = locks(run)
    return Logind(
        running=delay.isdecimal(),
        locks=held,
        delay_s=int(delay) / 1e6 if delay.isdecimal() else None,
        delay_set=logind_files.settings(root, "InhibitDelayMaxSec"),
        power_key=_property(run, "HandlePowerKey").strip('"'),
        unheard=unheard if delay.isdecimal() else "",
    )


def _property(run: Run, name: str) -> str:
    """Ask logind for a property; the answer is its type and its value."""
    answer = run(["busctl", "get-property", *_LOGIND, name])
    return (answer.text.strip().split(" ", 1)[1:] or [""])[0] if answer.code == 0 else ""


def locks(run: Run) -> tuple[tuple[Lock, ...], str]:
    """Return the inhibitor locks that logind holds, and why they are not known."""
    answer = run(["busctl", "call", *_LOGIND, "ListInhibitors"])
    said = _WORD.findall(answer.text) if answer.code == 0 else []
    words = [re.sub(r'\\(["\\])', r"\1", quoted or bare) for quoted, bare in said]
    rows = [words[at : at + _LOCK_FIELDS] for at in range(2, len(words), _LOCK_FIELDS)]
    held = tuple(
        Lock(what=what, who=who, mode=mode, uid=int(uid))
        for what, who, _, mode, uid, _ in (row for row in rows if len(row) == _LOCK_FIELDS)
        if uid.isdecimal()
    )
    return held, answer.error if answer.code is None else ""


def _kubelet(root: Path, run: Run) -> Kubelet:
    running = kubelets.running(root, run)
    found = running.processes
    unit = next(iter(running.of_processes + running.units), "")
    if running.doubted and not found:
        return Kubelet(unit, trouble="the kubelet is not believed", doubt=running.doubted[0].doubt)
    command = run(["systemctl", "show", unit, "--property=ExecStart"]).text if unit else ""
    return kubelet_config(root, unit, found, command)


def _connection(root: Path, run: Run, file: str | None, node: str | None) -> Connection:
    try:
        client = connect(root, run, file, node)
    except GuestError as error:
        return Connection(trouble=str(error))
    api, trouble, asked = client.api, "", True
    try:
        own = client.read()
        if own.boot_id != boot_id(root):
            trouble = f"node {client.name} reports another boot ({own.boot_id or 'none'}) than this machine's"
    except GuestError as error:
        # Without an answer all have been asked, and the text names each.
        trouble, asked = str(error), not isinstance(error, Unreachable)
    rest, unread = api.rest(api.access)
    answers = api.each(rest if asked else (), client.path, ASK_WITHIN_S, client.doubt)
    wrong = {access.url: text for access, _, text in answers if text}
    first = api.first.url
    return Connection(
        client.name,
        api.access.url,
        api.first.source,
        trouble,
        others=tuple(it.url for it in rest if asked and it.url not in wrong),
        unread="; ".join(unread),
        lost=wrong.pop(first, first) if api.access is not api.first else "",
        useless=tuple(wrong.values()),
        alone=all(servers.on_this_machine(it.host) for it in (api.access, *rest)),
    )
