"""What only a plan reads: budgets, services, claims, volumes, and every pod and node with its room."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from fencer.cluster import parse, survey_parse
from fencer.cluster.client import Connection, Pick
from fencer.cluster.lists import PAGE, Lists
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
            nodes=self._list("NodeList", lambda apis: apis.core.list_node, survey_parse.node),
            pods=self._list("PodList", lambda apis: apis.core.list_pod_for_all_namespaces, survey_parse.pod),
            budgets=self.budgets(),
            services=_selecting(
                self._look(
                    services,
                    "ServiceList",
                    lambda apis: apis.core.list_service_for_all_namespaces,
                    survey_parse.service,
                )
            ),
            claims=self._look(
                claims,
                "PersistentVolumeClaimList",
                lambda apis: apis.core.list_persistent_volume_claim_for_all_namespaces,
                survey_parse.claim,
            ),
            volumes=self._look(
                volumes,
                "PersistentVolumeList",
                lambda apis: apis.core.list_persistent_volume,
                survey_parse.volume,
            ),
        )

    def budgets(self) -> Listing[Budget]:
        """See `Surveyor.budgets`."""
        return self._look(
            BUDGETS,
            "PodDisruptionBudgetList",
            lambda apis: apis.policy.list_pod_disruption_budget_for_all_namespaces,
            survey_parse.budget,
        )

    def _look(self, right: Right, kind: str, pick: Pick, read: Callable[[Any], T]) -> Listing[T]:
        """List objects that a plan can do without: if they cannot be had, it says so."""
        try:
            return self._list(kind, pick, read)
        except ClusterDenied:
            return Listing(why_not=f"forbidden: {right}", denied=True)
        except ClusterProtocol as error:
            return Listing(why_not=str(error))

    def _list(self, kind: str, pick: Pick, read: Callable[[Any], T]) -> Listing[T]:
        """List objects; one that cannot be read is set aside and named, and hides no other."""
        found = self._lists.read(
            f"list {kind.removesuffix('List').lower()}s",
            kind,
            pick,
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
