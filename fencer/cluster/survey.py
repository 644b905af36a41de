"""What only a plan reads: budgets, services, claims, volumes, and every pod and node with its room."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from fencer.cluster import parse, survey_parse
from fencer.cluster.client import Connection
from fencer.cluster.fields import required
from fencer.cluster.lists import PAGE, Lists
from fencer.cluster.requests import NODES, PODS, Request, get
from fencer.cluster.rights import BUDGETS, PLAN_RIGHTS, Right
from fencer.cluster.settings import ClusterSettings
from fencer.errors import ClusterDenied, ClusterProtocol
from fencer.ports.inventory import Budget, Inventory, Listing

T = TypeVar("T")


class KubernetesSurveyor:
    """Implements the port `fencer.ports.Surveyor`; its contract stands there.

    Args:
        settings: Where the API is and who we are there.
        sleep: Pauses between two tries of a read, in seconds.
        page: How many objects of a list are asked for at a time.

    Raises:
        ConfigError: the settings or the kubeconfig cannot be used.
    """

    def __init__(
        self, settings: ClusterSettings, *, sleep: Callable[[float], object] = time.sleep, page: int = PAGE
    ) -> None:
        self._lists = Lists(Connection(settings, sleep), page)

    def survey(self) -> Inventory:
        """See `Surveyor.survey`. Nodes and pods must come: the agent may list them too."""
        _, services, claims, volumes = PLAN_RIGHTS
        return Inventory(
            nodes=self._list("NodeList", get(NODES), survey_parse.node),
            pods=self._list("PodList", get(PODS), survey_parse.pod),
            budgets=self.budgets(),
            services=_selecting(
                self._look(
                    services,
                    "ServiceList",
                    get("/api/v1/services"),
                    survey_parse.service,
                )
            ),
            claims=self._look(
                claims,
                "PersistentVolumeClaimList",
                get("/api/v1/persistentvolumeclaims"),
                survey_parse.claim,
            ),
            volumes=self._look(
                volumes,
                "PersistentVolumeList",
                get("/api/v1/persistentvolumes"),
                survey_parse.volume,
            ),
        )

    def budgets(self) -> Listing[Budget]:
        """See `Surveyor.budgets`."""
        return self._look(
            BUDGETS,
            "PodDisruptionBudgetList",
            get("/apis/policy/v1/poddisruptionbudgets"),
            survey_parse.budget,
        )

    def labelled(self, selector: str) -> frozenset[str]:
        """See `Surveyor.labelled`."""
        request = get(NODES, labelSelector=selector)
        return frozenset(
            self._lists.read(
                "list nodes", "NodeList", request, lambda item, _: required(item, "metadata", "name")
            )
        )

    def _look(self, right: Right, kind: str, request: Request, read: Callable[[Any], T]) -> Listing[T]:
        """List objects that a plan can do without: if they cannot be had, it says so."""
        try:
            return self._list(kind, request, read)
        except ClusterDenied:
            return Listing(why_not=f"forbidden: {right}", denied=True)
        except ClusterProtocol as error:
            return Listing(why_not=str(error))

    def _list(self, kind: str, request: Request, read: Callable[[Any], T]) -> Listing[T]:
        """List objects; one that cannot be read is set aside and named, and hides no other."""
        found = self._lists.read(
            f"list {kind.removesuffix('List').lower()}s",
            kind,
            request,
            lambda item, _utc: parse.set_aside(read, item),
        )
        return Listing(
            tuple(item for item in found if not isinstance(item, str)),
            tuple(item for item in found if isinstance(item, str)),
        )


def _selecting(look: Listing[T | None]) -> Listing[T]:
    """Leave out the services that select nothing."""
    return Listing(
        tuple(item for item in look.items if item is not None), look.unread, look.why_not, look.denied
    )
