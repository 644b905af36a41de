"""From this machine to its own Node: the kubelet's kubeconfig, and the name that it has there."""

from __future__ import annotations

import re
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Callable

from fencer.guest import kubeconfig, kubelets, servers
from fencer.guest.api import Answer, Api, Others
from fencer.guest.errors import Unreachable, Unusable
from fencer.guest.fields import mapping
from fencer.guest.node import ASK_WITHIN_S, NodeClient
from fencer.guest.places import PLACES
from fencer.guest.system import Run, boot_id

_WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
_USER = re.compile(r"system:node:([a-z0-9.-]+)")


def connect(
    root: Path,
    run: Run,
    file: str | None = None,
    node: str | None = None,
    say: Callable[[str], object] = len,
) -> NodeClient:
    """Prepare to talk to the API server about this machine's Node.

    Args:
        root: Of the file system.
        run: Runs commands.
        file: A kubeconfig; None: the kubelet's own is looked for.
        node: The Node's name; None: the one in the client certificate, otherwise the one that the API server
            sees.
        say: Called when another API server is asked.

    Raises:
        Unusable: no credentials, or none that tell the node's name.
        Unreachable: the API servers had to be asked for the name, and none told it.
    """
    access, listed = servers_of(root, run, file)
    api = Api(access, listed, say)
    name = node or kubeconfig.node_name(access.certificate) or _seen_by(api)
    if name is None:
        why = "its user is no kubelet (system:node:NAME), so name the node: --node NAME"
        raise Unusable(f"{access.source}: {why}")
    return NodeClient(api, name, boot_id(root))


def servers_of(root: Path, run: Run, file: str | None = None) -> tuple[kubeconfig.Access, Others]:
    """Return the kubeconfig's API server, and a function that finds others; nobody is asked.

    Raises:
        Unusable: no credentials.
    """
    if file is None:
        path = kubeconfig.find(root, kubelets.running(root, run))
        access = kubeconfig.read(path, run, root)
    else:
        path = Path(file)
        access = kubeconfig.read(path, run)
    return access, _others(root, run, path, access)


def _others(root: Path, run: Run, path: Path, access: kubeconfig.Access) -> Others:
    """Prepare to look at lists that belong to a kubeconfig; they are read when they are needed."""
    place = next((it for it in PLACES if root / it.kubeconfig.lstrip("/") == path), None)
    if place is None:
        return lambda: ([], [])

    @lru_cache(maxsize=None)
    def command() -> str:
        show = ["systemctl", "show", *place.units, "--property=ExecStart,Environment,EnvironmentFiles"]
        return run(show).text if place.settings else ""

    return lambda: servers.others(root, place, access, command())


def _seen_by(api: Api) -> str | None:
    """Ask the API server who we are; if it is gone, all others: the first answer counts."""
    troubles = []
    for gone in (False, True):
        asked = api.rest(api.first)[0] if gone else [api.first]
        for access, answer, trouble in api.each(asked, _WHO_AM_I, ASK_WITHIN_S, _lasts, _REVIEW):
            user = mapping(mapping(answer.body.get("status")).get("userInfo")).get("username")
            matched = _USER.fullmatch(str(user))
            if not trouble and (matched or access is api.first):
                return matched and matched.group(1)
            troubles.append(trouble or f"{access.url}: {answer.message}")
    raise Unreachable("; ".join(troubles))


def _lasts(answer: Answer) -> str:
    return answer.message if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR else ""
