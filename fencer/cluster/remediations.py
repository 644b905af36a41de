"""The port `Requests` over a Kubernetes API server: FencerRemediations, read and answered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from typing import Any

from fencer.cluster import parse
from fencer.cluster.answers import NoSuchPath
from fencer.cluster.client import Connection
from fencer.cluster.fields import sequence, text
from fencer.cluster.lists import PAGE, Lists
from fencer.cluster.machines import Machines
from fencer.cluster.names import refuse_odd_names
from fencer.cluster.remediation_parse import (
    FINALIZER,
    Remediation,
    adopted,
    answered,
    finalizers,
    released,
    remediation,
    require,
    reservation,
    with_problem,
)
from fencer.cluster.requests import LEASES, REMEDIATION, REMEDIATIONS, REMEDIATIONS_GROUP, get, merge
from fencer.cluster.rights import REMEDIATION_RIGHTS, granted
from fencer.cluster.settings import ClusterSettings
from fencer.core.requests import RESERVATIONS, Asked, Progress, Request
from fencer.core.times import apart_s, earlier, write_utc
from fencer.errors import ClusterConflict, ClusterDenied

KIND = "FencerRemediation"
UNKNOWN_S = 30.0
"""A cluster that does not know the kind is asked again after this: somebody may have installed it since."""


class KubernetesRequests:
    """Implements the port `fencer.ports.Requests`; its contract stands there.

    Args:
        settings: Where the API is and who we are there.
        sleep: Pauses between two tries of a read, in seconds.
        now_s: The own clock, in seconds.
        page: How many objects of a list are asked for at a time.
        own_utc: This machine's clock, RFC 3339.

    Raises:
        ConfigError: the settings or the kubeconfig cannot be used.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        *,
        sleep: Callable[[float], object] = time.sleep,
        now_s: Callable[[], float] = time.monotonic,
        page: int = PAGE,
        own_utc: Callable[[], str] = lambda: write_utc(datetime.now(UTC)),
    ) -> None:
        self._api = Connection(settings, sleep)
        self._lists = Lists(self._api, page)
        self._machines = Machines(self._api, now_s)
        self._now_s, self._own_utc = now_s, own_utc
        self._known = False
        self._again_s = -inf
        """When a kind that was not known is asked for again, on the own clock."""

    # -- reads --------------------------------------------------------------------------------------------

    def asked(self) -> Asked | None:
        """See `Requests.asked`."""
        if not self._is_known():
            return None
        try:
            found = self._lists.read(
                "list fencerremediations",
                f"{KIND}List",
                get(REMEDIATIONS),
                lambda item, _utc: parse.set_aside(remediation, item),
            )
        except NoSuchPath:  # its definition was deleted
            self._forget()
            return None
        sound = [one for one in found if not isinstance(one, str)]
        self._machines.begin({one.request.uid for one in sound})
        reservations, unread = self._reservations()
        malformed = (*(one for one in found if isinstance(one, str)), *unread)
        return Asked(tuple(self._resolved(sound)), reservations, malformed)

    def missing_rights(self) -> list[str]:
        """See `Requests.missing_rights`."""
        if not self._is_known():
            return []
        return [str(right) for right in REMEDIATION_RIGHTS if not granted(self._api, right)]

    def _is_known(self) -> bool:
        """Whether the cluster knows the kind; a yes is remembered, and a no for a while."""
        if self._known:
            return True
        if self._now_s() < self._again_s:
            return False
        try:
            answer = self._api.read("get the kinds of remediation.fencer.dev", get(REMEDIATIONS_GROUP))
            kinds = answer.read(lambda body: [text(one, "kind") for one in sequence(body, "resources")])
            self._known = KIND in kinds
        except NoSuchPath:
            self._known = False
        if not self._known:
            self._forget()
        return self._known

    def _forget(self) -> None:
        self._known, self._again_s = False, self._now_s() + UNKNOWN_S

    def _resolved(self, found: Iterable[Remediation]) -> Iterable[Request]:
        """Fill in the nodes that only a Machine names."""
        for one in found:
            if one.machine is None:
                yield one.request
                continue
            its = self._machines.node_of(one.request, one.machine)
            request = replace(one.request, node=its.node)
            yield with_problem(request, its.problem, waits=its.waits) if its.problem else request

    def _reservations(self) -> tuple[Mapping[str, str], list[str]]:
        """Read on which nodes medik8s' controllers work, and which Leases cannot be read.

        Where that may not be read, nobody counts as working, and people are told.
        """

        def held(item: Any, utc: str) -> tuple[str, str] | str | None:
            # By the slower clock: one that is ahead ends no reservation early (E26).
            now_utc = earlier(utc, apart_s(utc, self._own_utc()))

            def lease(data: Any) -> tuple[str, str] | None:
                return reservation(data, now_utc)

            return parse.set_aside(lease, item)

        try:
            what = f"list leases of {RESERVATIONS}"
            found = self._lists.read(what, "LeaseList", get(LEASES, RESERVATIONS), held)
        except ClusterDenied as error:
            return {}, [f"who else works on nodes cannot be read, so nobody counts: {error}"]
        unread = [one for one in found if isinstance(one, str)]
        return dict(one for one in found if isinstance(one, tuple)), unread

    # -- guarded writes -----------------------------------------------------------------------------------

    def adopt(self, request: Request) -> None:
        """See `Requests.adopt`. A request that is being deleted takes no finalizer any more."""
        live = self._live(request)
        if FINALIZER in finalizers(live):
            return
        if request.deleting:
            raise ClusterConflict(f"{request} is being deleted: look again")
        self._patch("adopt", request, adopted(live))

    def answer(self, request: Request, progress: Progress, utc: str) -> None:
        """See `Requests.answer`."""
        self._patch("answer", request, answered(self._live(request), progress, utc), "/status")

    def release(self, request: Request) -> None:
        """See `Requests.release`."""
        live = self._live(request)
        if FINALIZER in finalizers(live):
            self._patch("release", request, released(live))

    def _live(self, request: Request) -> dict[str, Any]:
        """Read a request again, for what a patch has to leave in its lists.

        Raises:
            ClusterConflict: it is not as it was any more.
        """
        refuse_odd_names(request.namespace, request.name)
        what = f"get fencerremediation {request.namespace}/{request.name}"
        answer = self._api.read(what, get(REMEDIATION, request.namespace, request.name))
        answer.read(lambda body: require(KIND, request.namespace, request.name, body))
        seen = answer.required("metadata", "uid"), answer.required("metadata", "resourceVersion")
        if seen != (request.uid, request.version):
            raise ClusterConflict(f"{answer.place}: it has changed: look again")
        return answer.body

    def _patch(self, what: str, request: Request, body: Mapping[str, Any], part: str = "") -> None:
        path = f"{REMEDIATION}{part}"
        self._api.write(
            f"{what} fencerremediation {request.namespace}/{request.name}",
            merge(path, request.namespace, request.name, body=body),
        )
