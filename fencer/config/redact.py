"""A configuration that may be shown to others: what is not known to be harmless is left out.

`FILE` is the list of what is shown, and in which form. A key that is not in it, or a value of another form,
is left out, also in a file that is wrong. So a secret in the wrong place stays here, and so does a new key
until somebody decides about it (a test asks).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias, get_type_hints

from fencer.config.settings import PreStop
from fencer.core.maintenance import WEEKDAYS
from fencer.core.policy import Mode, Policy
from fencer.wording.occasions import Occasion

LEFT_OUT = "(left out)"
"""Stands for a value."""
OTHERS = "(other keys)"
"""Stands for keys that are no plain words."""

_WORD = re.compile(r"[a-z]{1,16}(?:[_-][a-z]{1,16}){0,3}")
_FILE = re.compile(r"(?:/[a-z0-9._@-]{1,80}){2,12}")
"""Small letters, and not directly under the root: base64 may begin with a slash, too."""

Form: TypeAlias = Callable[[Any, "Redacted"], Any]
"""Returns the value as it may be shown, and notes what that lacks."""


@dataclass(slots=True)
class Redacted:
    """A document without what is left out of it.

    Attributes:
        root: It: dict, list, str, int, float, bool, None.
        shown: The texts in it, as they were written.
        lost: The texts that are not: they must appear nowhere else either.
        files: The files with secrets that it names. They are not read here.
    """

    root: Any = None
    shown: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Each:
    """A mapping whose keys the file invents, such as nodes.

    Attributes:
        name: The form of its keys.
        value: What is shown of each value.
    """

    name: re.Pattern[str]
    value: Any


def redact(root: Any) -> Redacted:
    """Return what may be shown of a parsed configuration, right or wrong.

    Args:
        root: As `fencer.config.document.Document.root` has it, or with defaults.
    """
    redacted = Redacted()
    redacted.root = _shown(root, FILE, redacted)
    return redacted


def _shown(value: Any, what: Any, redacted: Redacted) -> Any:
    if value is None:
        return None
    match what, value:
        case dict(), dict():
            known = {name: _shown(one, what[name], redacted) for name, one in value.items() if name in what}
            return known | _others({name: one for name, one in value.items() if name not in what}, redacted)
        case Each(), dict():
            fit = {name: one for name, one in value.items() if what.name.fullmatch(name)}
            redacted.shown.update(fit)
            known = {name: _shown(one, what.value, redacted) for name, one in fit.items()}
            return known | _others({name: one for name, one in value.items() if name not in fit}, redacted)
        case list(), list():
            return [_shown(one, what[0], redacted) for one in value]
        case ((dict() | Each() | list()), _):
            return _nothing(value, redacted)
    return what(value, redacted)


def _others(unknown: dict[str, Any], redacted: Redacted) -> dict[str, str]:
    """Name the keys that are not in the list, without their values."""
    left_out = _nothing(unknown, redacted)
    return {name if _WORD.fullmatch(name) else OTHERS: left_out for name in unknown}


def _leaves(value: Any) -> Iterator[str]:
    """Yield each text and number in a value, with keys that are no plain words."""
    if isinstance(value, dict):
        yield from (name for name in value if not _WORD.fullmatch(name))
        for one in value.values():
            yield from _leaves(one)
    elif isinstance(value, list):
        for one in value:
            yield from _leaves(one)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


# -- Forms -------------------------------------------------------------------------------------------------


def _nothing(value: Any, redacted: Redacted) -> str:
    redacted.lost.update(_leaves(value))
    return LEFT_OUT


def _number(value: Any, redacted: Redacted) -> Any:
    """Show numbers, and true and false."""
    return value if isinstance(value, int | float) else _nothing(value, redacted)


def _text(pattern: str) -> Form:
    form = re.compile(pattern)

    def show(value: Any, redacted: Redacted) -> Any:
        if not isinstance(value, str) or not form.fullmatch(value):
            return _nothing(value, redacted)
        redacted.shown.add(value)
        return value

    return show


def _word_of(kind: type[Enum]) -> Form:
    return _text("|".join(re.escape(member.value) for member in kind))


def _secret_file(value: Any, redacted: Redacted) -> Any:
    _note_files(value, redacted)
    return _PATH(value, redacted)


def _secret_files(value: Any, redacted: Redacted) -> Any:
    _note_files(value, redacted)
    redacted.lost.update(path for path in _leaves(value) if not _FILE.fullmatch(path))
    return LEFT_OUT


def _note_files(value: Any, redacted: Redacted) -> None:
    redacted.files.update(path for path in _leaves(value) if path.startswith("/"))


_LOGIN = re.compile(r"[a-z_][a-z0-9_-]{0,15}")
_URI = re.compile(
    r"(?P<scheme>(?:qemu|test)(?:\+[a-z0-9]{1,8})?://)(?:(?P<user>[^/?#]*)@)?"
    r"(?P<host>(?:[A-Za-z0-9.-]{1,253}|\[[0-9a-fA-F:.]+\])?(?::[0-9]{1,5})?(?:/[a-z0-9._-]{0,40})*)"
    r"(?:\?(?P<query>.*))?"
)


def _uri(value: Any, redacted: Redacted) -> Any:
    """Show a URI without a password and without the values of its parameters."""
    found = _URI.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return _nothing(value, redacted)
    user, query = found["user"], found["query"]
    shown = found["scheme"]
    if user is not None:
        plain = _LOGIN.fullmatch(user)
        redacted.lost.update(() if plain else re.split(":", user, maxsplit=1))
        shown += f"{user if plain else LEFT_OUT}@"
    shown += found["host"]
    if query:
        values = (part.partition("=")[2] or part for part in re.split("[&;]", query))
        redacted.lost.update(one for one in values if not _FILE.fullmatch(one))
        shown += f"?{LEFT_OUT}"
    return shown


_PATH = _text(_FILE.pattern)
_NAME = _text(r"[a-z0-9][a-z0-9_-]{0,62}")
_HOST = _text(r"[A-Za-z0-9][A-Za-z0-9.-]{0,62}")
_SERVER = _text(r"https://(?:[A-Za-z0-9.-]{1,253}|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?/?")
_WEB_SERVER = _text(
    r"(?:https?://(?:[A-Za-z0-9.-]{1,253}|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?/?|[A-Za-z0-9.-]{1,253}:[0-9]{1,5})"
)
"""Without a path, which may be what is secret; or HOST:PORT."""
_CLOCK = _text("[0-2][0-9]:[0-5][0-9]")
_LISTEN = _text(r"(?:[0-9.]{7,15}|localhost|\[[0-9a-fA-F:.]{2,45}\]):[0-9]{1,5}")
_GROUP = _text(r"[A-Za-z0-9_][A-Za-z0-9_+./-]{0,80}")
_GUEST = _text(r"[a-z0-9-]{1,63}/[A-Za-z0-9_.:() -]{1,100}")
_UUID = _text(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NODE = re.compile(r"[a-z0-9][a-z0-9.-]{0,252}")
_COMMAND = _text(
    r"(?:/usr/(?:local/)?(?:s?bin|lib/virtualbox)/)?(?:ssh|sudo|sshpass|VBoxManage)"
    r"|-[A-Za-z]|StrictHostKeyChecking=(?:yes|no|ask|accept-new|off)"
)
"""Words of a command that say how it runs, and not as whom."""

_POWER = {"mapped": _number, "uuids": [_UUID], "tag": _GROUP, "pool": _GROUP}
_HOST_POWER = {
    "host": _HOST,
    "agent": _text("fence_(?:ipmilan|redfish|raritan)"),
    "path": _PATH,
    "options": {
        "ip": _HOST,
        "ipaddr": _HOST,
        "ipport": _text("[0-9]{1,5}"),
        "lanplus": _text("[01]|true|false"),
        "ssl": _text("[01]|true|false"),
        "ssl_secure": _text("[01]|true|false"),
        "ssl_insecure": _text("[01]|true|false"),
        "systems_uri": _text(r"/redfish/v1/Systems/[A-Za-z0-9._-]{0,40}/?"),
        "cipher": _text("[0-9]{1,2}"),
        "privlvl": _text("callback|user|operator|administrator"),
    },
    "outlets": [_text("[A-Za-z]{0,3}[0-9]{1,4}")],
    "password_file": _secret_file,
    "never_sleeps": _number,
}
_HYPERVISOR = {
    "name": _NAME,
    "type": _NAME,
    "uri": _uri,
    "unauthenticated": _number,
    "command": [_COMMAND],
    "servers": [_SERVER],
    "cluster": _HOST,
    "quorum_device": _number,
    "token_id": _text(r"[A-Za-z0-9._-]{1,60}@[A-Za-z0-9.-]{1,32}![A-Za-z0-9._-]{1,60}"),
    "token_file": _secret_file,
    "ca_file": _PATH,
    "fingerprints": [_text(r"(?:[0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2}")],
    "settings": _nothing,
    "secret_files": _secret_files,
    "one_host": _number,
    "power": _POWER,
    "host_power": [_HOST_POWER],
}
_RECEIVER = {
    "name": _NAME,
    "type": _NAME,
    "on": [_word_of(Occasion)],
    "server": _WEB_SERVER,
    "servers": [_WEB_SERVER],
    "topic": _nothing,
    "token_file": _secret_file,
    "url_file": _secret_file,
    "urls_file": _secret_file,
    "ca_file": _PATH,
    "unauthenticated": _number,
    "to": _nothing,
    "sender": _nothing,
}
FILE: dict[str, Any] = {
    "mode": _word_of(Mode),
    "kubernetes": {
        "kubeconfig": _secret_file,
        "context": _nothing,
        "servers": [_SERVER],
        "unauthenticated": _number,
    },
    "hypervisors": [_HYPERVISOR],
    "nodes": Each(_NODE, _GUEST),
    "policy": {
        name: _word_of(kind) if isinstance(kind, type) and issubclass(kind, Enum) else _number
        for name, kind in get_type_hints(Policy).items()
        if name not in {"mode", "maintenance"}
    },
    "maintenance": [
        {
            "days": [_text(f"{'|'.join(WEEKDAYS)}|[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}")],
            "from": _CLOCK,
            "to": _CLOCK,
            "zone": _text(r"[A-Z][A-Za-z]{1,14}(?:/[A-Z][A-Za-z_-]{1,20}){0,2}"),
            "nodes": [_text(r"[a-z0-9*?][a-z0-9.*?-]{0,62}")],
            "why": _nothing,
        }
    ],
    "hook": {"pre_stop": _word_of(PreStop), "budget_s": _number},
    "journal": {"enabled": _number, "file": _PATH, "keep_days": _number, "max_mb": _number},
    "state_file": _PATH,
    "notify": {
        "receivers": [_RECEIVER],
        "source": _NAME,
        "remind_s": _number,
        "page_url": _WEB_SERVER,
        "told_file": _PATH,
    },
    "web": {"enabled": _number, "listen": _LISTEN, "names": [_HOST]},
}
"""Every key that fencer knows, and what is shown of it."""
