"""A host's power as ClusterLabs' fence agents read it: their action `status`, and never another one.

Only agents that read a real power state, and that say off only for off: most fall through to "off" on any
unknown answer, such as the SNMP agents for PDUs. Each outlet is asked alone, because an agent that is asked
for several says off as soon as none reads on.

Source: ClusterLabs/fence-agents, lib/fencing.py.py (fence_action prints ``Status: OFF`` and exits 2; options
come as lines on stdin where there are no arguments), agents/{ipmilan,redfish,raritan,apc_snmp}.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from fencer.errors import HypervisorDenied, HypervisorUnreachable
from fencer.hosts.settings import FenceAgentSettings, require_usable

_STATUS = re.compile(r"^Status: (\S+)$", re.MULTILINE)
_OFF, _ON = ("OFF", 2), ("ON", 0)
"""The word, and the exit code that has to go with it."""

_REAP_S = 1.0
"""Wait this long for a killed process, then leave it."""


def reading(said: str, code: int) -> bool | None:
    """Return the meaning of an agent's answer.

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

    Raises:
        ConfigError: it could be read wrongly.
    """

    def __init__(self, settings: FenceAgentSettings) -> None:
        require_usable(settings)
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
    """End the group of an agent that was not reaped yet: afterwards its number may be used again."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_S)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
