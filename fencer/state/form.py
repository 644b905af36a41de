"""The state file as bytes, and back: signed, and with a schema. Pure.

The first line is ``{"fencer": "state", "schema": 1, "signature": "…"}``. The second one is a `Kept` by its
wire keys. A field that an older fencer must not overlook needs a new schema.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fencer.core.kept import Kept
from fencer.core.text import printable
from fencer.wire_json import read_json, write_json

SCHEMA = 1
MAGIC = b'{"fencer": "state", "schema": '
"""How a state file starts."""
HEAD_BYTES = 200
"""So many bytes hold the first line."""
LARGEST_BYTES = 64 * 2**20
"""No state file is larger: 5,000 nodes are 7 MB."""
LARGEST_KEY_BYTES = 1000

_PURPOSE = b"fencer state file"
_SCHEMA = re.compile(re.escape(MAGIC) + rb"([1-9][0-9]{0,8})[,}]")
_HEAD = re.compile(re.escape(MAGIC) + rb'([1-9][0-9]{0,8}), "signature": "([0-9a-f]{64})"}\n')
_KEY = re.compile(rb"fencer state key 1( local)?\n([0-9a-f]{64})\n([0-9a-f]{64})\n")
_KEYS = re.compile(rb"(?:%s){1,2}" % _KEY.pattern)


class DamagedContentError(Exception):
    """It is fencer's, and cannot be trusted. The text says why."""


class ForeignContentError(Exception):
    """It is not fencer's, or a newer fencer's. The text says what it is."""


@dataclass(frozen=True, slots=True)
class Signer:
    """A key that signs state files.

    Attributes:
        key: 32 bytes.
        local: It was created on this machine, because the cluster had none yet; else it is derived from the
            cluster's.
    """

    key: bytes = field(repr=False)
    local: bool = False


def derive_signer(cluster_key: bytes) -> Signer:
    """Return the key that signs state files of a cluster. It does not give the cluster's key away."""
    return Signer(hmac.digest(cluster_key, _PURPOSE, "sha256"))


def pack(kept: Kept, signer: Signer) -> bytes:
    """Return it as the content of a state file.

    Args:
        kept: What to keep.
        signer: The key that signs.
    """
    body = write_json(kept).encode() + b"\n"
    return b'%s%d, "signature": "%s"}\n%s' % (MAGIC, SCHEMA, _signature(signer, SCHEMA, body), body)


def unpack(content: bytes, signers: Sequence[Signer]) -> tuple[Kept, Signer]:
    """Read the content of a state file.

    Args:
        content: All of it.
        signers: The keys one of which signs; none: they are missing.

    Returns:
        What it contains, and the key that signed it.

    Raises:
        DamagedContentError: it was changed, or is signed with another key.
        ForeignContentError: it is no state file, or a newer fencer's.
    """
    require_known(content)
    if len(content) > LARGEST_BYTES:
        raise DamagedContentError("is damaged: larger than any that fencer writes")
    head = _HEAD.match(content)
    if head is None:
        raise DamagedContentError("is damaged: its first line is not as fencer writes it")
    if not signers:
        raise DamagedContentError("cannot be verified: the key beside it is missing")
    body = content[head.end() :]
    signed_by = [
        signer for signer in signers if hmac.compare_digest(_signature(signer, int(head[1]), body), head[2])
    ]
    if not signed_by:
        raise DamagedContentError("has a wrong signature: it was changed, or signed with another key")
    try:
        found = read_json(Kept, body)
    except ValueError as error:
        raise DamagedContentError(f"cannot be read: {printable(str(error))}") from error
    assert isinstance(found, Kept)  # noqa: S101 - as the model says
    return found, signed_by[0]


def require_known(content: bytes) -> None:
    """Make sure that this is a state file, and that this fencer knows its schema. Its beginning is enough.

    Raises:
        DamagedContentError: it is cut off, or its first line is damaged.
        ForeignContentError: it is no state file, or a newer fencer's.
    """
    if not content.startswith(MAGIC):
        if MAGIC.startswith(content.rstrip(b"\0")):  # as some file systems leave a file after a power failure
            raise DamagedContentError("is damaged: it is cut off")
        raise ForeignContentError("is no state file of fencer's")
    schema = _SCHEMA.match(content)
    if schema is None:
        raise DamagedContentError("is damaged: its first line is not as fencer writes it")
    if int(schema[1]) > SCHEMA:
        raise ForeignContentError(
            f"was written by a newer fencer (schema {int(schema[1])}; this one reads {SCHEMA})"
        )


def pack_signers(signers: Iterable[Signer]) -> bytes:
    """Return keys as the content of their file.

    Args:
        signers: The one that signs, and before another one signs in its place, both: the newer one first.
    """
    return b"".join(map(_packed, signers))


def unpack_signers(content: bytes) -> tuple[Signer, ...]:
    """Read the file of the keys; return one or two, the newer one first.

    Raises:
        DamagedContentError: it is not as it was written.
    """
    signers = [
        Signer(bytes.fromhex(found[2].decode()), local=bool(found[1])) for found in _KEY.finditer(content)
    ]
    if not _KEYS.fullmatch(content) or pack_signers(signers) != content:
        raise DamagedContentError("is damaged")
    return tuple(signers)


def _signature(signer: Signer, schema: int, body: bytes) -> bytes:
    signature = hmac.new(signer.key, b"%s%d\n" % (MAGIC, schema), "sha256")
    signature.update(body)
    return signature.hexdigest().encode()


def _packed(signer: Signer) -> bytes:
    origin = b" local" if signer.local else b""
    checksum = hashlib.sha256(origin + signer.key).hexdigest().encode()
    return b"fencer state key 1%s\n%s\n%s\n" % (origin, signer.key.hex().encode(), checksum)
