"""Before fencer's rights are taken away: refuse while a fence or cordon is left.

Without fencer's rights, key and token, a node that is fenced stays fenced for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click

from fencer.cli.options import why_option
from fencer.cli.render import clean, complain, say
from fencer.cli.wire import Wiring
from fencer.cluster.settings import ClusterSettings
from fencer.config.settings import Config
from fencer.core.model import NodeView
from fencer.core.policy import Policy
from fencer.core.standing import Standing, kept, standing
from fencer.core.text import count
from fencer.errors import ClusterDenied, ClusterProtocol, FencerError
from fencer.ports import ClusterInfo, Nodes
from fencer.runtime.world import API

nothing_stands_option = why_option(
    "--nothing-stands",
    "With --remove: your word that none of fencer's fences or cordons is left in a cluster that cannot be "
    "asked, perhaps because it is gone. Not accepted if one is seen.",
)


def refuse_what_stands(
    wiring: Wiring,
    load: Callable[[], Config],
    word: str | None,
    which: Callable[[Iterable[NodeView], str], Sequence[Standing]] = standing,
    *,
    requests: bool = False,
) -> str:
    """Look at the cluster, and go no further if something that fencer set is left there.

    Args:
        wiring: Builds the way there.
        load: Returns the configuration that leads there.
        word: A person's word that nothing is left, for a cluster that cannot be asked.
        which: What matters, of the nodes, at the API server's time.
        requests: Requests of other controllers that wait for fencer matter as well.

    Returns:
        What was seen, in a sentence.

    Raises:
        click.exceptions.Exit: something is left, and was named; or that is not known, and there is no word.
    """
    try:
        config = load()
        info, nodes = _seen(wiring, config)
        waiting = _waiting(wiring, config) if requests else ()
    except FencerError as error:
        if word is None:
            # Refused may mean that an earlier run has taken fencer's account back already.
            gone = (
                "Its account may be gone already: `fencer setup kubernetes --remove --kubeconfig ADMINS` "
                "looks as an administrator. If nothing is left"
                if isinstance(error, ClusterDenied)
                else "If the cluster is gone"
            )
            complain(
                f"{error}\nit is not known whether one of fencer's fences or cordons is left there, so "
                f"nothing was done. {gone}: --nothing-stands WHY"
            )
            raise click.exceptions.Exit(error.exit_code) from error
        return f"the cluster could not be asked; your word that nothing is left: {clean(word)}"
    where = f"{clean(info.server)}, as {clean(info.user)}"
    found = (*which(nodes.views, nodes.utc), *waiting)
    if found:
        _name(where, found)
        raise click.exceptions.Exit(1)
    return f"{where}: {count(len(nodes.views), 'node')}, and nothing that fencer set is left there"


def kubeconfig_only(config: Path, context: str | None, server: str | None) -> Config:
    """Return a configuration that leads to a cluster, and to nothing else."""
    kubernetes = ClusterSettings(config, context, (server,) if server else (), borrowed=True)
    return Config(Policy(), kubernetes, ())


def _seen(wiring: Wiring, config: Config) -> tuple[ClusterInfo, Nodes]:
    """Ask which cluster it is, and for all nodes.

    Raises:
        ClusterProtocol: a node cannot be read, so that what is left on it is not known.
        FencerError: the cluster does not answer.
    """
    deadline_s = config.policy.call_deadline_s
    asker = wiring.asker(wiring.clock(), deadline_s)
    cluster = wiring.cluster(config)
    info = asker.ask(API, cluster.identity, deadline_s)
    nodes = asker.ask(API, cluster.list_nodes, deadline_s)
    if nodes.malformed:
        raise ClusterProtocol(f"{info.server}: cannot be read: {'; '.join(nodes.malformed)}")
    return info, nodes


def _waiting(wiring: Wiring, config: Config) -> Sequence[Standing]:
    """Return the requests that fencer keeps; errors as in `_seen`."""
    deadline_s = config.policy.call_deadline_s
    asker = wiring.asker(wiring.clock(), deadline_s)
    asked = asker.ask(API, wiring.requests(config).asked, deadline_s)
    if asked is None:
        return ()
    if asked.malformed:
        raise ClusterProtocol(f"cannot be read: {'; '.join(asked.malformed)}")
    return kept(asked.requests)


def _name(where: str, found: Sequence[Standing]) -> None:
    complain(f"{where}: something that fencer set is still there, so nothing was done")
    width = max(len(one.node) for one in found)
    for one in found:
        say(f"  {clean(one.node):{width}}  {clean(one.text)}", err=True)
        for line in one.ends:
            say(f"  {'':{width}}  ends it: {clean(line)}", err=True)
