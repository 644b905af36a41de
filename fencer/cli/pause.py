"""``fencer pause`` and ``fencer resume``: keep every agent's hands off, cluster-wide or for one node.

Both write an annotation that all agents read before each act, with a person's own kubeconfig: fencer's
account may not, so that nobody who has stolen its token can keep nodes from being fenced.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from fencer.cli import completing
from fencer.cli.options import READ_LATER, Decorator, config_option, output_option
from fencer.cli.output import emit
from fencer.cli.render import clean, complain, paragraph, say
from fencer.cli.wire import Wiring, is_missing, require_file
from fencer.cluster.settings import ClusterSettings
from fencer.core import pause as rules
from fencer.core.annotations import PAUSE
from fencer.core.pause import LONGEST_S, PauseNote
from fencer.core.times import apart_s, earlier, in_zone, later, parse_utc, write_utc
from fencer.errors import ClusterConflict, ClusterDenied, ClusterNotFound, ConfigError, FencerError
from fencer.ports import Paused, Pauser

TRIES = 5
CLOCKS_DIFFER_S = 5.0
"""A smaller difference between two clocks is not worth a line."""
"""A kubelet writes on its Node at any time: then it is read again."""
_UNITS_S = {"m": 60, "h": 3600, "d": 86400}
_PART = re.compile(r"([0-9]+)([mhd])")
USUAL = Path("~/.kube/config")
LONGEST_WORD = 12
"""Characters: no week takes more to write."""


class Span(click.ParamType[int]):
    """How long a pause lasts, in seconds: ``30m``, ``2h``, ``1d``, ``1h30m``. A bare number is no time."""

    name = "time"

    def convert(self, value: str | int, param: click.Parameter | None, context: click.Context | None) -> int:
        """Read what was typed; see `click.ParamType.convert`."""
        if not isinstance(value, str):
            return value
        parts = _PART.findall(value)
        if (
            not parts
            or "".join(number + unit for number, unit in parts) != value
            or len(value) > LONGEST_WORD
        ):
            self.fail(f"{value!r} is no time: 30m, 2h, 1d, 1h30m", param, context)
        seconds = sum(int(number) * _UNITS_S[unit] for number, unit in parts)
        if not 0 < seconds <= LONGEST_S:
            self.fail(
                f"{value!r}: more than nothing, at most 7d; without --for a pause has no end",
                param,
                context,
            )
        return seconds


def _way_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for whose kubeconfig is used, and the form of the answer."""
    options: tuple[Decorator, ...] = (
        click.option(
            "--kubeconfig",
            type=READ_LATER,
            envvar="KUBECONFIG",
            show_envvar=True,
            show_default="~/.kube/config, as for kubectl",
            metavar="FILE",
            help="Your own kubeconfig: fencer's account may not write a pause.",
        ),
        click.option(
            "--context", metavar="NAME", help="Which of its contexts; without this, its current one."
        ),
        output_option("text", "json", "yaml"),
        config_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Target:
    """What is paused, and by which way.

    Attributes:
        pauser: The way, with the person's credentials.
        node: The node; None: the whole cluster.
        kubectl: How the person types kubectl for the same cluster.
    """

    pauser: Pauser
    node: str | None
    kubectl: str

    @property
    def about(self) -> str:
        """The target, for people."""
        return "the whole cluster" if self.node is None else clean(self.node)

    @property
    def resume(self) -> str:
        """What ends its pause."""
        return "fencer resume" if self.node is None else f"fencer resume {clean(self.node)}"

    def change(self, text: Callable[[Paused], str | None]) -> tuple[Paused, str | None]:
        """Write what a text is to be; where it is that already, nothing. Guarded: nobody is overwritten.

        Args:
            text: Returns the new text, of what is there; None: none.

        Returns:
            What was there before, and what is there now.

        Raises:
            ClusterDenied: the account may not; says what does the same with kubectl.
            ClusterError: it was refused otherwise, or nobody answers.
        """
        for attempt in range(TRIES):
            before = self.pauser.read(self.node)
            wanted = text(before)
            if wanted == before.text:
                return before, wanted
            try:
                self.pauser.write(before, wanted)
            except ClusterConflict:
                if attempt + 1 == TRIES:
                    raise
                continue
            except ClusterDenied as error:
                raise ClusterDenied(f"{error}\n{self._by_hand(wanted)}") from error
            return before, wanted
        raise AssertionError  # pragma: no cover - the last attempt returns or raises

    def _by_hand(self, text: str | None) -> str:
        object_ = "namespace kube-system" if self.node is None else f"node {shlex.quote(clean(self.node))}"
        value = f"{PAUSE}-" if text is None else f"--overwrite {shlex.quote(f'{PAUSE}={text}')}"
        return (
            "that account may not write it: take a person's kubeconfig (--kubeconfig, --context). The same "
            f"by hand, for who may: {self.kubectl} annotate {object_} {value}"
        )


@click.command(
    short_help="Keep fencer's hands off, for a while or until resumed.",
    epilog="\b\nExamples:\n  fencer pause --for 2h --why 'storage work'\n"
    "  fencer pause k8s-2 --why 'moving its disks'\n  fencer resume",
)
@click.argument("node", required=False, shell_complete=completing.nodes)
@click.option(
    "--for",
    "span_s",
    type=Span(),
    metavar="TIME",
    help="How long: 30m, 2h, 1d, 1h30m; at most 7d. Without this it has no end, until somebody resumes.",
)
@click.option("--why", required=True, metavar="TEXT", help="Why: everybody who looks is told.")
@_way_options
@click.pass_context
def pause(
    ctx: click.Context,
    *,
    node: str | None,
    span_s: int | None,
    why: str,
    kubeconfig: Path | None,
    context: str | None,
    form: str,
    path: Path,
) -> None:
    """Pause all fencing, or that of one NODE, for every agent and for commands typed by hand.

    Nothing is fenced, no guest is powered off or on, and no fence is lifted. Agents go on looking. The
    time is the API server's. Whoever pauses again replaces the pause.
    """
    wiring: Wiring = ctx.obj
    if not why.strip():
        raise click.BadParameter("say why, in a few words: everybody who looks is told", param_hint="--why")
    target = _target(ctx, wiring, node, kubeconfig, context, path)

    before, written = target.change(
        lambda before: pause_text(before, why, span_s, wiring.wall(), wiring.person())
    )
    now = rules.read(written) or PauseNote(why)
    replaced = rules.standing(before.text, before.utc) if written != before.text else None
    if form != "text":
        emit(_data(target, now, changed=written != before.text), form)
        return
    zone = wiring.wall().tzinfo
    already = "" if written != before.text else "already "
    end = f"until {now.until_utc} ({_span(span_s)})" if span_s is not None else "without an end"
    ahead_s = apart_s(before.utc, write_utc(wiring.wall()))
    say(in_zone(f"fencing of {target.about} is {already}paused {end}: {clean(now.why)}", zone))
    if replaced is not None:
        say(in_zone(f"it replaces the pause before: {replaced}", zone))
    if span_s is not None and abs(ahead_s) >= CLOCKS_DIFFER_S:
        for line in paragraph(
            f"this machine's clock and the API server's are {abs(ahead_s):.0f} s apart, so the pause might "
            "last longer by that, and by ten minutes at most"
        ):
            say(line)
    ends = f"`{target.resume}` ends it" + (" before that" if span_s is not None else ": nothing else does")
    waits = "Power orders, fences and lifts of fences all wait, by every agent and by hand"
    for line in paragraph(f"{waits}; {ends}. Asked: {clean(target.pauser.server)}"):
        say(line)


def pause_text(before: Paused, why: str, span_s: int | None, wall: datetime, by: str) -> str:
    """Return what a pause writes on its object; the same again writes nothing new.

    Args:
        before: What is there.
        why: Why, as it was typed.
        span_s: How long it lasts, in seconds; None: without an end.
        wall: The time on the machine where it is typed.
        by: Who types it.
    """
    there = rules.standing(before.text, before.utc)
    if span_s is None and there is not None and (there.why, there.until_utc) == (why.strip(), ""):
        return before.text or ""
    # By the faster clock: it never ends before the time that was asked for has passed (E26).
    latest_utc = later(before.utc, apart_s(before.utc, write_utc(wall)))
    until = "" if span_s is None else _later(latest_utc, span_s)
    return rules.write(PauseNote(why.strip(), until, by, before.utc))


@click.command(
    short_help="End a pause.",
    epilog="\b\nExamples:\n  fencer resume\n  fencer resume k8s-2",
)
@click.argument("node", required=False, shell_complete=completing.nodes)
@_way_options
@click.pass_context
def resume(
    ctx: click.Context,
    *,
    node: str | None,
    kubeconfig: Path | None,
    context: str | None,
    form: str,
    path: Path,
) -> None:
    """End the pause of the whole cluster, or that of one NODE. Where there is none, nothing is done.

    Each pause is ended for itself: that of the cluster leaves those of single nodes, and the other way round.
    """
    wiring: Wiring = ctx.obj
    target = _target(ctx, wiring, node, kubeconfig, context, path)
    before, _ = target.change(lambda _: None)
    was = rules.read(before.text)
    whole = None if node is None else target.pauser.read(None)
    still = None if whole is None else rules.told(whole.text, whole.utc)
    if form != "text":
        emit(_data(target, None, changed=before.text is not None), form)
        return
    zone = wiring.wall().tzinfo
    if was is None:
        say(f"fencing of {target.about} is not paused: nothing to end")
    elif was.over(earlier(before.utc, apart_s(before.utc, write_utc(wiring.wall())))):
        say(in_zone(f"fencing of {target.about}: its pause was over already, and is taken off: {was}", zone))
    else:
        say(in_zone(f"fencing of {target.about} goes on; its pause is ended: {was}", zone))
    if still is not None:
        say(in_zone(f"but fencing of the whole cluster is paused: {still}; `fencer resume` ends that", zone))


def _target(
    ctx: click.Context,
    wiring: Wiring,
    node: str | None,
    kubeconfig: Path | None,
    context: str | None,
    path: Path,
) -> Target:
    """Find the way, and make sure that it leads to the cluster that the configuration is about.

    Raises:
        ConfigError: it leads to another cluster; or there is no kubeconfig, or no such node.
        ClusterError: nobody answers there.
    """
    file = usable(kubeconfig)
    try:
        pauser = wiring.pauser(ClusterSettings(file, context, borrowed=True))
        uid = pauser.cluster_uid()
    except ConfigError as error:
        if not is_missing(file):
            raise
        raise ConfigError(
            f"{file}: no such file. Name your own kubeconfig with --kubeconfig or KUBECONFIG"
        ) from error
    if ctx.get_parameter_source("path") is not ParameterSource.DEFAULT:
        require_file(path)
    if not is_missing(path):
        _require_same(wiring, path, uid, pauser.server)
    words = [
        "kubectl",
        *(("--kubeconfig", str(file)) if kubeconfig else ()),
        *(("--context", context) if context else ()),
    ]
    target = Target(pauser, node, shlex.join(words))
    try:
        pauser.read(node)
    except ClusterNotFound as error:  # a wrong argument, as for all other commands
        raise ConfigError(f"{clean(node)}: no such node ({error})") from error
    return target


def usable(kubeconfig: Path | None) -> Path:
    """Return the kubeconfig that kubectl would use, if it is one.

    Raises:
        ConfigError: it would merge several: which one is meant has to be said.
    """
    if kubeconfig is None:
        return USUAL.expanduser()
    files = [one for one in str(kubeconfig).split(":") if one]
    if len(files) > 1 and is_missing(kubeconfig):
        raise ConfigError(
            f"KUBECONFIG names {len(files)} files: name the one that is meant with --kubeconfig"
        )
    return Path(files[0]) if len(files) == 1 else kubeconfig


def _require_same(wiring: Wiring, path: Path, uid: str, server: str) -> None:
    """Refuse another cluster than the configuration's; where that cannot be asked, say so and go on.

    A person may pause who may not read fencer's credentials.

    Raises:
        ConfigError: it is another cluster.
    """
    try:
        info = wiring.cluster(wiring.load(path)).identity()
    except FencerError as error:
        complain(
            f"not compared with the cluster that {path} is about, so make sure that {server} is it: {error}"
        )
        return
    if info.uid != uid:
        raise ConfigError(
            f"{server} is another cluster than that of {path}, {info.server}: their kube-system have "
            "different UIDs. Take its kubeconfig (--kubeconfig, --context), or its configuration (--config)"
        )


def _later(utc: str, span_s: int) -> str:
    """Return the time so many seconds after another, as the API server writes times."""
    return write_utc(parse_utc(utc) + timedelta(seconds=span_s))


def _span(seconds: int) -> str:
    """Return a time as it is typed: ``1h30m``."""
    days, rest = divmod(seconds, _UNITS_S["d"])
    hours, rest = divmod(rest, _UNITS_S["h"])
    parts = ((days, "d"), (hours, "h"), (rest // _UNITS_S["m"], "m"))
    return "".join(f"{number}{unit}" for number, unit in parts if number)


def _data(target: Target, now: PauseNote | None, *, changed: bool) -> dict[str, Any]:
    """Return what is so now, for programs."""
    return {
        "node": target.node,
        "paused": now is not None,
        "why": now and now.why,
        "until": (now and now.until_utc) or None,
        "by": (now and now.by) or None,
        "since": (now and now.since_utc) or None,
        "changed": changed,
        "server": target.pauser.server,
    }
