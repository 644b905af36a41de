"""Values that a shell completes: nodes, hosts, scenarios, incidents.

Whoever presses TAB wants a word, or nothing: nothing is said where the configuration is not right, nobody
answers, or this user may not look. Names that a shell could take for something else are no values.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import click
from click.shell_completion import CompletionItem

from fencer.errors import FencerError

if TYPE_CHECKING:
    from fencer.cli.wire import Wiring
    from fencer.config.settings import Config, Endpoint

T = TypeVar("T")

ASKED_BY = "_FENCER_COMPLETE"
"""Set by the shells' functions, in config/completions/."""
PATIENCE_S = 2.0
"""For whoever is asked; after that a person has typed the name."""
INCIDENTS = 20
"""The newest ones."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")


def is_asked() -> bool:
    """Whether a shell asks for values, and not a person for an answer."""
    return os.environ.get(ASKED_BY, "").endswith("_complete")


def answer(command: Callable[[], object]) -> None:
    """Answer a shell: the values on stdout, and no word on stderr, whatever happens.

    Args:
        command: The whole command line, which answers shells by itself.
    """
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdin, sys.stderr):  # a credential plugin must not ask, either
        if stream is not None:
            os.dup2(silence, stream.fileno())
    try:
        command()
    except Exception:  # noqa: BLE001 - a traceback in the middle of the line that is typed helps nobody
        sys.exit(0)


def nodes(context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Return the nodes that may be meant, without those that are typed already."""
    typed = context.params.get(param.name or "") or ()
    names = _values(_nodes, context)
    return _items(sorted(set(names) - set(typed if isinstance(typed, tuple) else ())), incomplete)


def endpoints(context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Return the endpoints of the configuration."""
    return _items(_values(_endpoints, context), incomplete)


def hosts(context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Return the hosts with guests; with their endpoint where two have the same name, or one begins so."""
    return _items(_values(_hosts, context), incomplete)


def incidents(context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Return the newest incidents, newest first, each with its node and day."""
    from fencer.cli.looking_back import journal_of  # noqa: PLC0415 - SQLite and pydantic
    from fencer.journal.reading import newest_incidents  # noqa: PLC0415 - as above

    def newest(wiring: Wiring, context: click.Context) -> Iterable[tuple[str, str]]:
        file = journal_of(wiring, context.params["path"], context.params.get("journal"))
        return [(one, f"{node}, {at[:10]}") for one, node, at in newest_incidents(file, INCIDENTS)]

    return [
        CompletionItem(one, help=told)
        for one, told in _values(newest, context)
        if one.startswith(incomplete) and _PLAIN.fullmatch(one) and told.isprintable()
    ]


def scenarios(_context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Return the stories of `fencer demo`."""
    from fencer.simulation.scenarios import SCENARIOS  # noqa: PLC0415 - all stories

    return [
        CompletionItem(name, help=" ".join(story.title.split()))
        for name, story in SCENARIOS.items()
        if name.startswith(incomplete)
    ]


def examples(_context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Return the configurations that come with fencer."""
    from fencer.setup import configs  # noqa: PLC0415 - reads files

    try:
        names = [name for name in configs.names() if name.startswith(incomplete)]
        return [CompletionItem(name, help=configs.about(name)) for name in names]
    except FencerError:
        return []


def _endpoints(wiring: Wiring, context: click.Context) -> Iterable[str]:
    return [endpoint.name for endpoint in _config(wiring, context).endpoints]


def _nodes(wiring: Wiring, context: click.Context) -> Iterable[str]:
    from fencer.runtime.world import API  # noqa: PLC0415 - parts that work

    config = _config(wiring, context)
    asker = wiring.asker(wiring.clock(), PATIENCE_S)
    # All in one call: a kubeconfig's plugin may take its time, too.
    found = asker.ask(API, lambda: wiring.cluster(config).list_nodes(), PATIENCE_S)
    return [view.name for view in found.views]


def _hosts(wiring: Wiring, context: click.Context) -> Iterable[str]:
    config = _config(wiring, context)
    clock = wiring.clock()
    calls = {one.name: partial(_sweep, wiring, one) for one in config.endpoints if _is_near(one)}
    swept = wiring.asker(clock, PATIENCE_S).ask_all(calls, PATIENCE_S)
    places = {name: () if isinstance(told, FencerError) else told for name, told in sorted(swept.items())}
    every = [host for found in places.values() for host in found]
    return sorted({host for host in every if every.count(host) == 1}) + [
        f"{name}/{host}" for name, found in places.items() for host in found
    ]


def _sweep(wiring: Wiring, endpoint: Endpoint) -> tuple[str, ...]:
    hypervisor = wiring.hypervisor(endpoint, wiring.clock())
    try:
        return tuple(sorted({seen.guest.host for seen in hypervisor.sweep() if seen.guest.host}))
    finally:
        hypervisor.close()


def _is_near(endpoint: Endpoint) -> bool:
    """Whether asking it is one call: no program is started for it, which could ask for a password."""
    from fencer.config.settings import LibvirtEndpoint, ProxmoxEndpoint  # noqa: PLC0415 - only where it runs

    if isinstance(endpoint, LibvirtEndpoint):
        return "+" not in endpoint.uri.partition(":")[0]
    return isinstance(endpoint, ProxmoxEndpoint)


def _config(wiring: Wiring, context: click.Context) -> Config:
    """Return where to ask: where the command itself would."""
    params = context.params
    if "kubeconfig" in params:  # a person's own, of `pause` and `resume`
        from fencer.cli.pause import usable  # noqa: PLC0415 - it imports this
        from fencer.cli.removal import kubeconfig_only  # noqa: PLC0415 - as above

        return kubeconfig_only(usable(params["kubeconfig"]), params["context"], None)
    return wiring.load(params["path"])


def _values(ask: Callable[[Wiring, click.Context], Iterable[T]], context: click.Context) -> Sequence[T]:
    """Return what a question's answer is; nothing where there is none."""
    from fencer.cli.wire import Wiring  # noqa: PLC0415 - it imports nearly everything

    wiring = context.find_object(Wiring) or Wiring()
    try:
        return tuple(ask(wiring, context))
    except FencerError:
        return ()


def _items(names: Sequence[str], incomplete: str) -> list[CompletionItem[str]]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)]
