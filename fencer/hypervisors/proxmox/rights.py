"""The token's rights compared with what fencer needs: what is missing, and what is too much. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Rights = Mapping[str, Mapping[str, bool]]
"""Path → privilege → whether it holds below that path as well."""

_SYSTEM = "Sys.Audit"
_GUESTS = "VM.Audit"
_POWER = "VM.PowerMgmt"
_WANTED = frozenset({_SYSTEM, _GUESTS})
_HARMLESS = frozenset({"VM.GuestAgent.Audit", "VM.Monitor"})
"""Reading what a guest's agent says."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of the comparison.

    Attributes:
        missing: What fencer cannot do without, a sentence each. Power is not among it: see `can_power`.
        excess: Privileges that it never uses.
        can_power: Some guest may be powered.
        power_only: The numbers of the guests that may be, where not all may; None: all.
    """

    missing: tuple[str, ...]
    excess: tuple[str, ...]
    can_power: bool
    power_only: frozenset[str] | None


def compare(rights: Rights) -> Comparison:
    """Compare the token's rights with the needed and the allowed ones: power over guests is a choice.

    Args:
        rights: As `access/permissions` has them: the guests of pools are there by their numbers. Source:
            pve-access-control, PVE/RPCEnvironment.pm, get_effective_permissions.
    """
    missing = []
    if not _holds(rights, "/", _SYSTEM):
        missing.append(
            "The token lacks Sys.Audit on /: quorum, HA and tasks cannot be read, so that no guest can be "
            "proven off."
        )
    elif not _covers(rights, "/nodes", _SYSTEM):
        missing.append("The token lacks Sys.Audit on /nodes: the tasks of others cannot be seen.")
    if not any(_GUESTS in granted for granted in rights.values()):
        missing.append("The token lacks VM.Audit on /vms: it sees no guest.")
    elif not sees_all_guests(rights):
        missing.append("The token lacks VM.Audit on /vms: it misses guests, and cannot tell a deletion.")
    can_power = any(_POWER in granted for path, granted in rights.items() if _about_guests(path))
    everywhere = _holds(rights, "/vms" if "/vms" in rights else "/", _POWER)
    wanted = _WANTED | _HARMLESS | {_POWER}
    held = {privilege for granted in rights.values() for privilege in granted}
    excess = sorted(privilege for privilege in held - wanted if not privilege.endswith(".Audit"))
    return Comparison(tuple(missing), tuple(excess), can_power, None if everywhere else _powered(rights))


def _powered(rights: Rights) -> frozenset[str]:
    return frozenset(
        path.removeprefix("/vms/")
        for path in rights
        if path.startswith("/vms/") and _holds(rights, path, _POWER)
    )


def sees_all_guests(rights: Rights) -> bool:
    """Whether no guest is left out of lists without a word."""
    return _covers(rights, "/vms", _GUESTS)


def _holds(rights: Rights, path: str, privilege: str) -> bool:
    return privilege in rights.get(path, {})


def _covers(rights: Rights, path: str, privilege: str) -> bool:
    """Whether a privilege holds on a path and below it."""
    if path in rights:
        return rights[path].get(privilege, False)
    return rights.get("/", {}).get(privilege, False)


def _about_guests(path: str) -> bool:
    return path == "/" or path.startswith(("/vms", "/pool"))
