"""The kinds of text that the configuration accepts, each with a check that says what is accepted."""

import re
import uuid
from pathlib import Path
from typing import Annotated, Any, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator

from fencer.config.document import quoted
from fencer.core.identity import MEANINGLESS
from fencer.hypervisors.proxmox.settings import wrong_token_id

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NODE = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_VMID = re.compile(r"[1-9][0-9]*")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_URI = re.compile(r"[a-z][a-z0-9]*(\+[a-z0-9]+)?://\S*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_+.-]*")
_POOL = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+){0,2}")
_OPTION = re.compile(r"[a-z][a-z0-9_]*")
OURS = {
    "action": "fencer only ever asks for the status",
    "password": "write it into a file, and name that in password_file",
    "passwd": "write it into a file, and name that in password_file",
    "password_script": "fencer runs no shell; use password_file",
    "passwd_script": "fencer runs no shell; use password_file",
    "plug": "name the outlets in outlets",
    "port": "name the outlets in outlets",
    "missing_as_off": "an outlet that is not found is not off",
}
"""Options of fence agents that only fencer sets, with the reason."""
_PASSWORD = re.compile(r"(?<=//)([^/?#@:]*):[^/?#]*@")


def _path(text: str) -> str:
    if not Path(text).is_absolute() or not text.isprintable():
        raise ValueError(f"must be a path that begins with /, not {quoted(text)}")
    return text


def _secret_file(value: Any) -> Any:
    """Take the path of a file with a secret. What else is written is not shown: people write the secret."""
    if value is None:
        raise ValueError("must be the path of a file, which begins with /, and is empty")
    if not isinstance(value, str) or not Path(value).is_absolute() or not value.isprintable():
        home = ' ("~" is not read as your home)' if isinstance(value, str) and value.startswith("~/") else ""
        raise ValueError(
            f"must be the path of a file, which begins with /{home}. "
            "What is written there is not shown here: it may be the secret itself"
        )
    return value


def is_endpoint_name(text: str) -> bool:
    """Whether this may be a hypervisor's name."""
    return _NAME.fullmatch(text) is not None


def _name(text: str) -> str:
    if not is_endpoint_name(text):
        raise ValueError(
            f"must be of lower-case letters, digits and inner dashes, like home-1, not {quoted(text)}"
        )
    return text


def _server(text: str, port: int = 6443) -> str:
    like = f"https://10.0.0.11:{port} or https://[fd00::11]:{port}"
    if "@" in text:  # not shown: what stands before it may be a password
        raise ValueError(f"must not carry a user or password, but be like {like}")
    if not _is_server(text):
        raise ValueError(f"must be like {like}, not {quoted(text)}")
    return text


def _proxmox_server(text: str) -> str:
    return _server(text, 8006)


def _is_server(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return (
            parts.scheme == "https"
            and bool(parts.hostname)
            and parts.port != 0
            and parts.path in {"", "/"}
            and not parts.query
            and not parts.fragment
            and text.isprintable()
        )
    except ValueError:
        return False


def _libvirt_uri(text: str) -> str:
    if _PASSWORD.search(text):
        raise ValueError("must not carry a password: process lists and logs would show it; use a key")
    if not _URI.fullmatch(text) or not text.isprintable():
        raise ValueError(
            f"must be a URI like qemu:///system or qemu+ssh://USER@HOST/system, not {quoted(text)}"
        )
    driver = re.split("[+:]", text, maxsplit=1)[0]
    if driver not in {"qemu", "test"}:  # the latter pretends: for trials, and reported as that
        way = "; VirtualBox has an adapter of its own, `type: virtualbox`" if driver == "vbox" else ""
        raise ValueError(
            f"must lead to QEMU, like qemu:///system, not {quoted(text)}: off from libvirt's other drivers "
            f"is no proof that fencer accepts{way}"
        )
    return text


def _word(text: str) -> str:
    if not text or not text.isprintable():
        raise ValueError(f"must be a word of a command, not {quoted(text)}")
    return text


def _uuid(text: str) -> str:
    plain = text.lower()
    if re.fullmatch(r"[0-9a-f]{32}", plain):
        plain = str(uuid.UUID(plain))
    if not _UUID.fullmatch(plain):
        raise ValueError(f"must be a UUID like 6f1c2ad0-7b1e-4d39-9a5f-3f0d6f1c2ae2, not {quoted(text)}")
    if plain in MEANINGLESS:
        raise ValueError(f"{plain} is what firmware without a UUID reports: it names no guest")
    return plain


def _token_id(text: str) -> str:
    if wrong := wrong_token_id(text):
        raise ValueError(wrong)
    return text


def _tag(text: str) -> str:
    if not _TAG.fullmatch(text):
        raise ValueError(f"{quoted(text)} cannot be a Proxmox tag: write one, like fencer")
    return text


def _pool(text: str) -> str:
    if not _POOL.fullmatch(text):
        raise ValueError(f"{quoted(text)} cannot be a Proxmox pool: write one, like k8s or k8s/lab")
    return text


def is_node_name(text: str) -> bool:
    """Whether this may be a node's name."""
    return _NODE.fullmatch(text) is not None


def _node_name(text: str) -> str:
    if not is_node_name(text):
        raise ValueError(f"{quoted(text)} cannot be a node's name; `kubectl get nodes` lists them")
    return text


def _guest(text: str) -> str:
    endpoint, _, guest = text.partition("/")
    if not endpoint or not guest or guest != guest.strip() or not text.isprintable():
        raise ValueError(f"must be HYPERVISOR/GUEST like lab/k8s-1, not {quoted(text)}")
    if guest.lower() in MEANINGLESS:
        raise ValueError(f"{guest} is what firmware without a UUID reports: it names no guest")
    return canonical_guest(text)


def canonical_guest(text: str) -> str:
    """Return ``HYPERVISOR/GUEST`` with the guest in lower case where it is a UUID."""
    endpoint, _, guest = text.partition("/")
    return f"{endpoint}/{guest.lower()}" if is_uuid(guest) else text


def is_uuid(text: str) -> bool:
    """Whether this is a UUID, as hypervisors show them."""
    return _UUID.fullmatch(text.lower()) is not None


def is_vmid(text: str) -> bool:
    """Whether this is a VM's number, as `qm list` shows it."""
    return _VMID.fullmatch(text) is not None


def _option_name(text: str) -> str:
    if not _OPTION.fullmatch(text):
        raise ValueError(f"must be an option of the agent, like lanplus, not {quoted(text)}")
    if text in OURS:
        raise ValueError(f"{text} must not be set here: {OURS[text]}")
    return text


def _option(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"must be one line, not {quoted(text)}")
    return text


def _promise(given: bool) -> bool:  # noqa: FBT001 - pydantic hands it over so
    if not given:
        raise ValueError("must be true, or the whole entry left out: a sleeping host looks like off")
    return given


AbsolutePath: TypeAlias = Annotated[str, AfterValidator(_path)]
EndpointName: TypeAlias = Annotated[str, AfterValidator(_name)]
Server: TypeAlias = Annotated[str, AfterValidator(_server)]
ProxmoxServer: TypeAlias = Annotated[str, AfterValidator(_proxmox_server)]
Word: TypeAlias = Annotated[str, AfterValidator(_word)]
LibvirtUri: TypeAlias = Annotated[str, AfterValidator(_libvirt_uri)]
Uuid: TypeAlias = Annotated[str, AfterValidator(_uuid)]
SecretFile: TypeAlias = Annotated[str, BeforeValidator(_secret_file)]
TokenId: TypeAlias = Annotated[str, AfterValidator(_token_id)]
Tag: TypeAlias = Annotated[str, AfterValidator(_tag)]
Pool: TypeAlias = Annotated[str, AfterValidator(_pool)]
NodeName: TypeAlias = Annotated[str, AfterValidator(_node_name)]
Guest: TypeAlias = Annotated[str, AfterValidator(_guest)]
OptionName: TypeAlias = Annotated[str, AfterValidator(_option_name)]
Promise: TypeAlias = Annotated[bool, AfterValidator(_promise)]
Option: TypeAlias = Annotated[str, AfterValidator(_option)]
