"""Judges the endpoints: do they answer, and list their guests? What we may do to these: `power`."""

from __future__ import annotations

import re

from fencer.config.settings import Endpoint, LibvirtEndpoint
from fencer.errors import ConfigError, FencerError
from fencer.hypervisors.libvirt.ssh import is_from_beyond, way_of
from fencer.ports import EndpointInfo
from fencer.preflight.finding import Finding, Level

_SILENCE = re.compile("no answer within|calls hang there|keepalive timeout")


def judge(endpoint: Endpoint, answer: EndpointInfo | FencerError, unheard: str) -> Finding:
    """Judge an endpoint.

    Args:
        endpoint: As it is configured.
        answer: How it describes itself.
        unheard: Why it did not list its guests; empty: it did.
    """
    if isinstance(answer, FencerError):
        tries = () if isinstance(answer, ConfigError) else _tries(endpoint, str(answer))
        return Finding(endpoint.name, endpoint.where, Level.FAIL, str(answer), tries)
    about = f"{answer.kind}: {answer.version}"
    problems = (*answer.problems, *([f"Its guests could not be listed: {unheard}"] if unheard else []))
    points = (*problems, *answer.remarks)
    if not points:
        return Finding(endpoint.name, about, Level.OK, answer.detail)
    level = Level.FAIL if problems else Level.WARN
    tries = _tries(endpoint, unheard) if unheard else ()
    return Finding(endpoint.name, about, level, answer.detail, tries, points)


def _tries(endpoint: Endpoint, error: str) -> tuple[str, ...]:
    """Name problems that the endpoint itself does not: ssh that asks or fails, a daemon that hangs."""
    if not isinstance(endpoint, LibvirtEndpoint):
        return ()
    way, tries = way_of(endpoint.uri), list[str]()
    if way is not None and not is_from_beyond(error):
        tries.append(f"{way.command}   (as fencer's user; it must not ask anything)")
    of_session = endpoint.uri.partition("?")[0].endswith("/session")  # run by its user, not by a unit
    if _SILENCE.search(error) and not of_session:
        place = "on this host" if way is None else "there"
        tries.append(
            f"systemctl restart libvirtd   (or virtqemud; {place}, if it hangs: guests keep running "
            "meanwhile)"
        )
    return tuple(tries)
