"""A host's power as ClusterLabs' fence agents read it: their action `status`, and never another one.

Only agents that read a real power state, and that call nothing off but what is: most fall through to "off" on
any answer they do not know, the SNMP agents for PDUs among them. Each outlet is asked alone, because an agent
that is asked for several calls them off as soon as none reads on.

Source: ClusterLabs/fence-agents, lib/fencing.py.py (fence_action prints ``Status: OFF`` and exits 2; options
come as lines on stdin where there are no arguments), agents/{ipmilan,redfish,raritan,apc_snmp}.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fencer.errors import ConfigError, HypervisorDenied, HypervisorUnreachable

MACHINES = frozenset({"fence_ipmilan", "fence_redfish"})
OUTLETS = frozenset({"fence_raritan"})
"""Agents that read the machine itself; agents that read outlets, of which all have to be named."""

_OURS = frozenset({"action", "password", "passwd", "plug", "port", "missing_as_off", "password_script"})
"""Options that nobody else may set: they could turn a question into an act, or a mistake into "off"."""

_KEY = re.compile(r"[a-z][a-z0-9_]*")
_STATUS = re.compile(r"^Status: (\S+)$", re.MULTILINE)
_OFF, _ON = ("OFF", 2), ("ON", 0)
"""The word, and the exit code that has to go with it."""

_REAP_S = 1.0


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
    options: Mapping[str, str] = field(repr=False)
    outlets: tuple[str, ...] = ()
    password_file: Path | None = None
    deadline_s: float = 20.0

    def __post_init__(self) -> None:
        """Refuse what could be read wrongly.

        Raises:
            ConfigError: with what is wrong.
        """
        name = Path(self.agent).name
        if name not in MACHINES | OUTLETS:
            known = ", ".join(sorted(MACHINES | OUTLETS))
            raise ConfigError(f"{self.host}: {name}: not among those whose “off” is believed: {known}")
        if (name in OUTLETS) != bool(self.outlets):
            need = "name every outlet of the host" if name in OUTLETS else "reads no outlets: name none"
            raise ConfigError(f"{self.host}: {name}: {need}")
        if name == "fence_redfish" and "systems_uri" not in self.options:
            raise ConfigError(
                f"{self.host}: {name}: systems_uri must say which machine: it takes any otherwise"
            )
        for key, value in self.options.items():
            if not _KEY.fullmatch(key) or key in _OURS or not value.isprintable():
                raise ConfigError(f"{self.host}: {name}: option {key!r} cannot be set here")
        if any(not outlet.isprintable() or not outlet or "," in outlet for outlet in self.outlets):
            raise ConfigError(f"{self.host}: {name}: one name for each outlet")


def reading(said: str, code: int) -> bool | None:
    """Tell what an agent's answer means.

    Args:
        said: Its stdout.
        code: Its exit code.

    Returns:
        True: off. False: on. None: anything else, such as S3, S4, an error, or word and code that disagree.
    """
    words = _STATUS.findall(said)
    if len(words) != 1:
        return None
    return {_OFF: True, _ON: False}.get((words[0], code))


class FenceAgentWitness:
    """A `HostPower` over one agent.

    Args:
        settings: Which host, and how.
    """

    def __init__(self, settings: FenceAgentSettings) -> None:
        self._settings = settings

    @property
    def host(self) -> str:
        """See `HostPower.host`."""
        return self._settings.host

    def is_off(self) -> bool | None:
        """See `HostPower.is_off`: True when each outlet reads off, False when each reads on, None otherwise.

        Raises:
            HypervisorUnreachable: the agent is not there, or did not end in time.
            HypervisorDenied: it, or the password's file, may not be used.
        """
        outlets = self._settings.outlets or (None,)
        share_s = self._settings.deadline_s / len(outlets)
        seen = {self._ask(outlet, share_s) for outlet in outlets}
        return seen.pop() if len(seen) == 1 else None

    def _ask(self, outlet: str | None, deadline_s: float) -> bool | None:
        question = self._question(outlet)
        try:
            # A session of its own, so that the agent ends together with what it started.
            process = subprocess.Popen(  # noqa: S603 - one word, from the configuration
                [self._settings.agent],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            kind = HypervisorDenied if isinstance(error, PermissionError) else HypervisorUnreachable
            raise kind(f"{self.host}: cannot run {self._settings.agent}: {error.strerror}") from error
        try:
            said, _ = process.communicate(question, timeout=deadline_s)
        except subprocess.TimeoutExpired as error:
            text = f"{self.host}: {self._settings.agent} did not answer within {deadline_s:.1f} s"
            raise HypervisorUnreachable(text) from error
        finally:
            _end(process)
        return reading(said, process.returncode)

    def _question(self, outlet: str | None) -> str:
        lines = {**self._settings.options, "action": "status"}
        if outlet is not None:
            lines["plug"] = outlet
        if self._settings.password_file is not None:
            lines["password"] = self._password(self._settings.password_file)
        return "".join(f"{key}={value}\n" for key, value in lines.items())

    def _password(self, file: Path) -> str:
        try:
            text = file.read_text(encoding="utf-8").rstrip("\n")
        except (OSError, ValueError) as error:
            raise HypervisorDenied(f"{self.host}: {file}: no password can be read there") from error
        if not text or not text.isprintable():
            raise HypervisorDenied(f"{self.host}: {file}: must hold the password, one line, and nothing else")
        return text


def _end(process: subprocess.Popen[str]) -> None:
    """End the group of an agent that was not reaped yet: afterwards somebody else may have its number."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_S)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
