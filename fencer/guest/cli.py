"""The command line of `fencer-guest`."""

from __future__ import annotations

import argparse
import faulthandler
import io
import re
import signal
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Sequence

from fencer.evicting.lots import Filters
from fencer.guest import drain, install, itself, listen, pythons, report, streams, uncordon
from fencer.guest.collect import collect
from fencer.guest.connect import connect
from fencer.guest.errors import DONE, INTERRUPTED, REFUSED, GuestError
from fencer.guest.fields import printable
from fencer.guest.judge import judge
from fencer.guest.node import NodeClient
from fencer.guest.system import Run, boot_id, going_down, run, started
from fencer.guest.ways import ways

if TYPE_CHECKING:
    _Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - it has no public name
    _Command = Callable[[argparse.Namespace], int]

_ROOT = Path("/")
_EPILOG = """Exit codes: 0 done and verified, 1 refused or not done, 2 usage or configuration, 3 no answer,
130 interrupted. It uses the kubelet's own credentials, and finds them for k3s, RKE2, kubeadm and k0s."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code.

    Args:
        arguments: Its words; None: those of this process, whose streams are guarded.
    """
    if arguments is None:
        return streams.run("fencer-guest", partial(main, sys.argv[1:]))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # an arrow must not end a drain where the console knows none
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except GuestError as error:
        _say(f"fencer-guest: {error}")
        return error.code
    except KeyboardInterrupt:
        _say("fencer-guest: interrupted; what was done until now stays done, a cordon too")
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fencer-guest",
        description="Drains this Kubernetes node when it goes down, and uncordons it after boot.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"fencer-guest {itself.version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_drain(commands)
    about = "take off the cordon that the drain before this boot set; wait for a fence to be lifted"
    command = _add(commands, "uncordon", _uncordon, about)
    _add_seconds(command, "--timeout", uncordon.TIMEOUT_S, "how long to wait")
    about = "show what happens to the pods when this machine is stopped, and what to change"
    command = _add(commands, "check", _check, about)
    command.add_argument("-o", "--output", choices=("text", "json"), default="text", help="(text)")
    command.add_argument(
        "--listen",
        action="store_true",
        help="show what logind announces and systemd queues; exit code 0: a shutdown was announced",
    )
    command.add_argument(
        "--timeout", type=_seconds, metavar="SECONDS", help="how long to listen (until Ctrl-C)"
    )
    about = "put the program and its units in place, enable and start them"
    command = _add(commands, "install", _install, about, credentials=False)
    command.add_argument(
        "--timeout", type=_whole_seconds, metavar="SECONDS", help="how long a drain may take (120)"
    )
    command.add_argument(
        "--after",
        type=_unit,
        action="append",
        default=[],
        metavar="UNIT",
        help="stop this unit only after the drain, now and in later installs; may be repeated",
    )
    _add_root(command)
    about = "stop and remove what install put in place, unless its cordon is still there; drains nothing"
    command = _add(commands, "uninstall", _uninstall, about)
    command.add_argument(
        "--nothing-stands",
        metavar="WHY",
        help="your word that no cordon of the drain is left: the API server is not asked",
    )
    _add_root(command)
    _add(commands, "version", _version, "show the version, as --version does", credentials=False)
    return parser


def _add_drain(commands: _Commands) -> None:
    command = _add(
        commands, "drain", _drain, "cordon this node and evict its pods, if the machine is going down"
    )
    command.add_argument("--now", action="store_true", help="drain although the machine is not going down")
    _add_seconds(command, "--timeout", drain.TIMEOUT_S, "how long it may take")
    _add_seconds(command, "--probe", drain.PROBE_S, "how long to wait for the API server to answer at all")
    command.add_argument(
        "--force", action="store_true", help="also evict pods without a controller; they are not recreated"
    )
    command.add_argument("--ignore-daemonsets", action="store_true", help="as in kubectl; they always stay")
    command.add_argument(
        "--delete-emptydir-data", action="store_true", help="evict pods that use an emptyDir"
    )


def _add(
    commands: _Commands, name: str, function: _Command, about: str, *, credentials: bool = True
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
    command.set_defaults(command=function)
    if credentials:
        command.add_argument("--kubeconfig", metavar="FILE", help="instead of the kubelet's own")
        command.add_argument("--node", metavar="NAME", help="instead of the name in the credentials")
    return command


def _add_seconds(command: argparse.ArgumentParser, name: str, default_s: float, about: str) -> None:
    command.add_argument(
        name, type=_seconds, default=default_s, metavar="SECONDS", help=f"{about} ({default_s:g})"
    )


def _add_root(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--root", type=_folder, default=_ROOT, metavar="DIR", help="an image's root; starts nothing"
    )


def _folder(text: str) -> Path:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text}: no such folder")
    return Path(text)


def _unit(text: str) -> str:
    name = text if "." in text else f"{text}.service"
    if not re.fullmatch(r"[\w:.\\@-]{1,255}", name, re.ASCII):
        raise argparse.ArgumentTypeError(f"must be a unit of systemd, not {text!r}")
    return name


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 86400:  # noqa: PLR2004 - a day, and no NaN
        raise argparse.ArgumentTypeError(f"must be seconds, more than 0 and less than a day, not {text!r}")
    return value


def _whole_seconds(text: str) -> int:
    value = int(_seconds(text))
    if not value:
        raise argparse.ArgumentTypeError(f"must be whole seconds, 1 at least, not {text!r}")
    return value


def _connect(options: argparse.Namespace) -> NodeClient:
    return connect(_ROOT, run, options.kubeconfig, options.node, _say)


def _drain(options: argparse.Namespace) -> int:
    # If it hangs, systemd ends it after TimeoutStopSec: then the journal tells where.
    with suppress(RuntimeError, ValueError, OSError):  # no stderr: a drain needs nobody to listen
        faulthandler.register(signal.SIGTERM, chain=True)
    began_s = time.monotonic()  # systemd's clock runs already, and commands that hang take 10 s each
    if not options.now:
        down = going_down(run)
        if not down:
            why = "is not going down" if down is False else "may not be going down: systemd gives no answer"
            _say(f"this machine {why}; nothing is drained (`fencer-guest drain --now` drains all the same)")
            return REFUSED
    client = _connect(options)
    filters = Filters(options.force, options.delete_emptydir_data)
    plan = drain.Plan(
        boot_id(),
        filters,
        options.timeout,
        options.probe,
        began_s,
        start=started(run),
        shutdown=not options.now,
    )
    code = drain.drain(client, plan, _say)
    if plan.shutdown and going_down(run) is False:
        # The cordon is there, and the drain's unit is stopped: the next shutdown would drain nothing.
        _say("the shutdown was called off: `systemctl start default.target` brings this node back")
    return code


def _uncordon(options: argparse.Namespace) -> int:
    client = _connect(options)
    return uncordon.uncordon(
        client, boot_id(), options.timeout, _say, start=started(run), going_down=partial(going_down, run)
    )


def _check(options: argparse.Namespace) -> int:
    if options.listen:
        return listen.listen(run, _say, options.timeout)
    facts = collect(_ROOT, run, options.kubeconfig, options.node)
    findings, found_ways = judge(facts), ways(facts)
    render = report.as_json if options.output == "json" else report.as_text
    _write(render(facts, findings, found_ways), but="\n")
    return REFUSED if report.failed(findings) else DONE


def _version(_options: argparse.Namespace) -> int:
    _write(f"fencer-guest {itself.version()}")
    return DONE


def _install(options: argparse.Namespace) -> int:
    python = pythons.running() if options.root == _ROOT else pythons.of_image(options.root)
    if not python:
        _say("no Python 3.8 or newer was found in the image: `python3` there has to be one")
    return install.install(
        pythons.pinned(itself.program(), python),
        itself.units(),
        options.root,
        _run_in(options.root),
        _say,
        options.timeout,
        options.after,
    )


def _run_in(root: Path) -> Run | None:
    """Return the function that runs commands; None: an image, where nothing runs."""
    return partial(run, within_s=install.SYSTEMD_WITHIN_S) if root == _ROOT else None


def _uninstall(options: argparse.Namespace) -> int:
    def stands() -> str:
        if options.root != _ROOT or options.nothing_stands:
            return ""
        try:
            return uncordon.standing(_connect(options))
        except GuestError:
            _say("nothing was removed. If no cordon can be left any more: --nothing-stands WHY")
            raise

    return install.uninstall(options.root, _run_in(options.root), _say, stands)


def _say(text: str) -> None:
    """Say something while somebody listens: at shutdown a drain outlives its listeners."""
    with suppress(streams.OutputLost):
        _write(text)


def _write(text: str, but: str = "") -> None:
    """Write an answer.

    Raises:
        OutputLost: it could not be written.
    """
    sys.stdout.write(f"{printable(text, but)}\n")
    sys.stdout.flush()
