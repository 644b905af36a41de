"""The section of a hypervisor whose adapter another package brings."""

from pathlib import Path
from typing import Annotated

from pydantic import WithJsonSchema

from fencer.config.adapter_texts import OpenSettingName, Setting, SettingName
from fencer.config.host_power_section import HostPowerSection
from fencer.config.keys import OWN_TYPES, Section, key
from fencer.config.power_section import PowerSection
from fencer.config.settings import AdapterEndpoint
from fencer.config.texts import EndpointName, SecretFile, Word

OtherType = Annotated[Word, WithJsonSchema({"type": "string", "not": {"enum": list(OWN_TYPES)}})]
"""Not one of fencer's own types: otherwise an editor could not tell which section is meant."""


class AdapterSection(Section):
    """A hypervisor that is not one of fencer's own types; install its adapter beside fencer."""

    name: Annotated[EndpointName, key("What fencer calls it in all messages; unique.", example="farm")]
    type: Annotated[
        OtherType, key("What the adapter's package calls it; see docs/adapters.md.", example="cells")
    ]
    settings: Annotated[
        dict[OpenSettingName, Setting] | None,
        key(
            "What the adapter wants to know, as its own documentation has it: text, numbers, true or false, "
            "and lists of them. Nothing secret: that goes into secret_files.",
            example={"farm": "/srv/farm"},
        ),
    ] = None
    secret_files: Annotated[
        dict[SettingName, SecretFile] | None,
        key(
            "Files with credentials, by the names that the adapter gives them. For fencer only: mode 0600.",
            example={"token": "/etc/fencer/farm-token"},
        ),
    ] = None
    one_host: Annotated[
        bool,
        key(
            "It is one host, and silent together with it: then host_power may speak for it. Not true of a "
            "cluster.",
            example=True,
        ),
    ] = False
    power: Annotated[
        PowerSection | None,
        key("Which guests fencer may power off or on. Absent: none.", example={"mapped": True}),
    ] = None
    host_power: Annotated[
        list[HostPowerSection] | None,
        key(
            "Who reads the power of its hosts when they are silent, one witness per host. Absent: nobody.",
            example=[
                {
                    "host": "farm1",
                    "agent": "fence_ipmilan",
                    "options": {"ip": "10.0.0.6"},
                    "never_sleeps": True,
                }
            ],
        ),
    ] = None

    def endpoint(self) -> AdapterEndpoint:
        """Return the section as settings for the rest of fencer."""
        return AdapterEndpoint(
            self.name,
            self.type,
            dict(self.settings or {}),
            {name: Path(path) for name, path in (self.secret_files or {}).items()},
            (self.power or PowerSection()).admission(),
            tuple(section.witness() for section in self.host_power or ()),
            self.one_host,
        )
