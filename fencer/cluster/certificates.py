"""When a certificate ends: the only field that people need. Pure.

It is read and not verified: it is our own, and only the API server may judge it. Python's standard library
has no public reader for a certificate that no connection was made with.

Source: RFC 5280, 4.1 (order of the fields) and 4.1.2.5 (both forms of a time); X.690, 8.1 and 10.1 (DER).
"""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime

LARGEST_BYTES = 64 * 1024
"""The largest file: a chain of several certificates has a few KiB. The rest of a larger file is not read."""

_FIRST = re.compile(rb"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")
_SEQUENCE, _VERSION, _UTC_TIME, _GENERALIZED_TIME = 0x30, 0xA0, 0x17, 0x18
_MANY, _SIZE = 0x80, 0x7F  # the length has several bytes; how many
_LONGEST_SIZE = 3  # bytes of a length: enough for 16 MiB
_DIGITS = re.compile(r"\d{14}Z", re.ASCII)
_PIVOT = "50"  # two digits of a year: 50 is 1950, 49 is 2049


def end_of(pem: bytes) -> datetime | None:
    """Read when a certificate expires; None: this is no certificate.

    Args:
        pem: As in a file. Of several, the first one counts; the others are its CAs'.
    """
    found = _FIRST.search(pem[:LARGEST_BYTES])
    if found is None:
        return None
    try:
        return _not_after(base64.b64decode(found[1]))
    except (ValueError, IndexError):
        return None


def _not_after(der: bytes) -> datetime:
    rest = _content(_content(der, _SEQUENCE)[0], _SEQUENCE)[0]
    if rest[0] == _VERSION:  # left out by version 1
        rest = _take(rest)[2]
    for _ in ("serialNumber", "signature", "issuer"):
        rest = _take(rest)[2]
    validity = _content(rest, _SEQUENCE)[0]
    tag, value, _ = _take(_take(validity)[2])
    text = value.decode("ascii")
    if tag == _UTC_TIME:
        text = f"{'19' if text[:2] >= _PIVOT else '20'}{text}"
    elif tag != _GENERALIZED_TIME:
        raise ValueError(f"no time: {tag}")
    if not _DIGITS.fullmatch(text):
        raise ValueError(f"no time: {text!r}")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _content(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """Return what is in the first element, which must be of a kind, and what comes after it."""
    seen, content, rest = _take(data)
    if seen != tag:
        raise ValueError(f"expected {tag}, not {seen}")
    return content, rest


def _take(data: bytes) -> tuple[int, bytes, bytes]:
    """Return the first element's tag, what is in it, and what comes after it."""
    tag, length, begin = data[0], data[1], 2
    if length & _MANY:
        size = length & _SIZE
        if not 0 < size <= _LONGEST_SIZE:
            raise ValueError(f"no length: {size} bytes")
        begin += size
        length = int.from_bytes(data[2:begin], "big")
    end = begin + length
    if end > len(data):
        raise ValueError("cut off")
    return tag, data[begin:end], data[end:]
