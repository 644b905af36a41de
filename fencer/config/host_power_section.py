"""The configuration's keys for a host's power witness: which fence agent reads it, and how."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import model_validator

from fencer.config.keys import Section, key
from fencer.config.texts import AbsolutePath, Option, OptionName, Promise, SecretFile, Word
from fencer.hosts.settings import FenceAgentSettings

Agent = Literal["fence_ipmilan", "fence_redfish", "fence_raritan"]
"""Agents whose "off" can be believed; see `fencer.hosts.fence_agents`."""


class HostPowerSection(Section):
    """A witness for the power of one host. It is only ever asked, and only while that host is silent."""

    host: Annotated[
        Word, key("The host, as its hypervisor names it: `pvecm nodes`, `virsh hostname`.", example="pve1")
    ]
    agent: Annotated[
        Agent,
        key(
            "ClusterLabs' fence agent that reads it: the machine's own board (fence_ipmilan, fence_redfish), "
            "or the outlets that feed it (fence_raritan). Only these: others say off when they do not know.",
            example="fence_ipmilan",
        ),
    ]
    path: Annotated[
        AbsolutePath | None, key("Where the agent is. Absent: on PATH.", example="/usr/sbin/fence_ipmilan")
    ] = None
    options: Annotated[
        dict[OptionName, Option] | None,
        key(
            "The agent's options as in its manual page, except action, password and outlets.",
            example={"ip": "10.0.0.5", "username": "reader", "lanplus": "1"},
        ),
    ] = None
    outlets: Annotated[
        list[Word] | None,
        key(
            "For agents that switch outlets: every outlet that feeds the host. One left out may keep it "
            "running.",
            example=["3", "11"],
        ),
    ] = None
    password_file: Annotated[
        SecretFile | None,
        key(
            "File with the password and nothing else. For fencer only: mode 0600.",
            example="/etc/fencer/board-pve1",
        ),
    ] = None
    never_sleeps: Annotated[
        Promise,
        key(
            "Your word that the host neither hibernates nor suspends. To every witness that looks like off, "
            "and its guests would go on with their old memory. `systemctl mask sleep.target suspend.target "
            "hibernate.target hybrid-sleep.target` makes sure. Required.",
            example=True,
        ),
    ]

    @model_validator(mode="after")
    def _reads_the_whole_host(self) -> Self:
        if self.agent == "fence_raritan" and not self.outlets:
            raise ValueError("fence_raritan reads outlets: name every outlet of the host in outlets")
        if self.agent != "fence_raritan" and self.outlets:
            raise ValueError(f"{self.agent} reads the machine itself: there are no outlets to name")
        if self.agent == "fence_redfish" and "systems_uri" not in (self.options or {}):
            raise ValueError(
                "fence_redfish needs the option systems_uri, like /redfish/v1/Systems/1: without it, it "
                "takes any machine that the board knows"
            )
        return self

    def witness(self) -> FenceAgentSettings:
        """Return the section as settings for the rest of fencer."""
        return FenceAgentSettings(
            self.host,
            self.path or self.agent,
            dict(self.options or {}),
            tuple(self.outlets or ()),
            Path(self.password_file) if self.password_file else None,
        )
