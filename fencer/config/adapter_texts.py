"""Checks settings for adapters of others. Nothing secret may be in them: settings are shown."""

import re
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, WithJsonSchema

from fencer.config.document import quoted

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SECRET = re.compile(
    r"(password|passwd|passphrase|secret|token|credential|(api|access|secret|private|auth)[_-]?key"
    r"|(^|[_-])(pass|pwd|auth))s?$",
    re.IGNORECASE,
)
"""The end of a name, as in settings and queries of URLs: ``db_pass``, ``apikey``, not ``bypass``."""
_PASSWORD = re.compile(r"(?<=//)([^/?#@:]*):[^/?#]*@")
_QUERY = re.compile(r"[?&;]([^=&;#\s]+)=[^&;#\s]")
_ELSEWHERE = "write it into a file, and name that in secret_files"


def _setting_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(f"must be a setting of the adapter, like server_url, not {quoted(text)}")
    return text


def is_secret_name(name: str) -> bool:
    """Whether what has this name is a secret, by its end: ``db_pass``, ``API_TOKEN``."""
    return _SECRET.search(name) is not None


def _open_setting_name(text: str) -> str:
    if is_secret_name(_setting_name(text)):
        raise ValueError(f"{text} must not be written here: {_ELSEWHERE}")
    return text


def _setting(value: Any) -> Any:
    """Accept settings that an adapter may get; it checks the rest. Never show a value: it may be secret."""
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, str | int | float):
            raise ValueError("must be text, a number, true or false, or a list of these")  # noqa: TRY004 - pydantic's
        if isinstance(one, str) and not one.isprintable():
            raise ValueError("must be one line, all of which can be seen")
        if isinstance(one, str) and _PASSWORD.search(one):
            raise ValueError(f"must not carry a password: {_ELSEWHERE}")
        if isinstance(one, str) and (name := _secret_in_query(one)):
            raise ValueError(f"must not carry a secret, as after {name}= in it: {_ELSEWHERE}")
    return value


def _secret_in_query(text: str) -> str | None:
    return next((name for name in _QUERY.findall(text) if is_secret_name(name)), None)


SettingName: TypeAlias = Annotated[str, AfterValidator(_setting_name)]
OpenSettingName: TypeAlias = Annotated[str, AfterValidator(_open_setting_name)]
Setting: TypeAlias = Annotated[
    Any,
    AfterValidator(_setting),
    WithJsonSchema({"type": ["string", "number", "boolean", "array"]}),
]
