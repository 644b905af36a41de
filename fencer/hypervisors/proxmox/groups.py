"""A guest's groups in Proxmox: its tags, and its pool with those above it. Pure.

Source: pve-common, PVE/ParseUtils.pm split_list and PVE/JSONSchema.pm pve-tag; pve-access-control,
PVE/AccessControl.pm verify_poolname and roles (rights on a pool hold for those below it); pve-manager,
PVE/API2/Cluster.pm (a row without Pool.Audit on the guest's pool does not name the pool).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, Final

from fencer.hypervisors.proxmox.rights import Rights

_TAG: Final = "tag:"
_POOL: Final = "pool:"
_AUDIT: Final = "Pool.Audit"
_BETWEEN_TAGS = re.compile(r"[,;\s\0]+")


def read_groups(tags: Any, pool: Any) -> frozenset[str]:
    """Return a row's tags and pools as texts like ``tag:fencer`` and ``pool:k8s``; odd values are none.

    A guest in the pool ``k8s/lab`` is in ``k8s`` as well, as it is for Proxmox' own rights. Case counts:
    where it does not for Proxmox (the default), all tags are written in lower case anyway.

    Args:
        tags: As in the configuration: with ``;`` between them, or what older versions let people write.
        pool: The one pool that the guest is in.
    """
    named = (f"{_TAG}{tag}" for tag in _BETWEEN_TAGS.split(tags) if tag) if isinstance(tags, str) else ()
    above = (f"{_POOL}{path}" for path in _paths(pool)) if isinstance(pool, str) and pool else ()
    return frozenset((*named, *above))


def hidden_pools(rights: Rights, groups: Iterable[str]) -> tuple[str, ...]:
    """Return those pools among groups whose guests cannot be told, for want of Pool.Audit.

    Args:
        rights: Of the token, as `access/permissions` has them: a path that is not there inherits.
        groups: As `read_groups` names them.
    """
    pools = [group.removeprefix(_POOL) for group in sorted(groups) if group.startswith(_POOL)]
    return tuple(pool for pool in pools if not _audits(rights, pool))


def _paths(pool: str) -> Iterator[str]:
    return accumulate(pool.split("/"), "{}/{}".format)


def _audits(rights: Rights, pool: str) -> bool:
    """Whether the token has Pool.Audit on a pool: its own path decides, or the nearest above it."""
    path = f"/pool/{pool}"
    above = ["/", *accumulate(path.strip("/").split("/"), "{}/{}".format, initial="")][::-1]
    nearest = next((place for place in above if place in rights), "")
    granted = rights.get(nearest, {})
    return _AUDIT in granted if nearest == path else granted.get(_AUDIT, False)
