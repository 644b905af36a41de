"""How one host's power is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from fencer.errors import ConfigError

MACHINES = frozenset({"fence_ipmilan", "fence_redfish"})
OUTLETS = frozenset({"fence_raritan"})
"""Agents that read the machine itself; agents that read outlets, of which all have to be named."""

_OURS = frozenset({"action", "password", "passwd", "plug", "port", "missing_as_off", "password_script"})
"""Options that only fencer may set: they could turn a question into an action, or a mistake into "off"."""

_KEY = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class FenceAgentSettings:
    """How to read one host's power.

    Attributes:
        host: The host, as the hypervisor's endpoint names it.
        agent: Name or path of the agent.
        options: Its options, like ``{"ip": "10.0.0.5", "username": "reader", "lanplus": "1"}``.
        outlets: For a PDU: every outlet that feeds the host. Empty for agents that read the machine.
        password_file: File with the password, and nothing else; None: none is needed.
        deadline_s: For all outlets together, in seconds.
    """

    host: str
    agent: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    outlets: tuple[str, ...] = ()
    password_file: Path | None = None
    _: KW_ONLY
    deadline_s: float = 20.0


def require_usable(settings: FenceAgentSettings) -> None:
    """Refuse what could be read wrongly.

    Raises:
        ConfigError: with what is wrong.
    """
    name = Path(settings.agent).name
    if name not in MACHINES | OUTLETS:
        known = ", ".join(sorted(MACHINES | OUTLETS))
        raise ConfigError(f"{settings.host}: {name}: not among those whose “off” is believed: {known}")
    if (name in OUTLETS) != bool(settings.outlets):
        need = "name every outlet of the host" if name in OUTLETS else "reads no outlets: name none"
        raise ConfigError(f"{settings.host}: {name}: {need}")
    if name == "fence_redfish" and "systems_uri" not in settings.options:
        raise ConfigError(
            f"{settings.host}: {name}: systems_uri must say which machine: it takes any otherwise"
        )
    for key, value in settings.options.items():
        if not _KEY.fullmatch(key) or key in _OURS or not value.isprintable():
            raise ConfigError(f"{settings.host}: {name}: option {key!r} cannot be set here")
    if any(not outlet.isprintable() or not outlet or "," in outlet for outlet in settings.outlets):
        raise ConfigError(f"{settings.host}: {name}: one name for each outlet")
