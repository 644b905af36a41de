"""The licences of what fencer installs with itself, as the packages' own metadata tells them."""

from __future__ import annotations

from importlib import metadata

ALLOWED = frozenset(
    {
        *("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "PSF-2.0"),
        # Weak copyleft, of packages that are used as they are: certifi's list of CAs, libvirt's own binding.
        *("MPL-2.0", "LGPL-2.1-or-later"),
        "ZPL-2.1",  # waitress: permissive, like BSD, without the right to Zope's name; approved by the OSI
    }
)
"""SPDX identifiers. A new one is a decision: read it, then write it here."""

_WORDS = {"Apache 2.0": "Apache-2.0", "LGPLv2+": "LGPL-2.1-or-later", "ZPL 2.1": "ZPL-2.1"}
"""What packages call them that do not use SPDX' names.

Source: libvirt-python's COPYING.LESSER is version 2.1, and its sources say "or later".
"""
_NOT_EVERYWHERE = {
    "libvirt-python": "LGPL-2.1-or-later",  # it has to be compiled
    "apprise": "BSD-2-Clause",  # an extra that no test needs installed
    "markdown": "BSD-3-Clause",  # apprise takes it along
    "colorama": "BSD-3-Clause",  # pytest takes it on Windows alone
}
"""Not installed everywhere, each with its licence. Source: their own LICENSE files."""

_UNTOLD = {"jinja2": "BSD-3-Clause"}
"""Installed, but their metadata only name a family of licences. Source: their own LICENSE files."""


def licence(package: str) -> str | None:
    """Return a package's licence as an SPDX expression; None: it tells none, and is not known here either.

    Args:
        package: As the lock calls it.
    """
    try:
        told = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        return _NOT_EVERYWHERE.get(package)
    text = (told.get("License-Expression") or told.get("License") or "").strip()
    return _WORDS.get(text, text) or _UNTOLD.get(package)


def allowed(expression: str | None) -> bool:
    """Whether all licences of an expression are allowed; of alternatives (``OR``) one is enough."""
    if expression is None:
        return False
    ways = expression.replace("(", " ").replace(")", " ").split(" OR ")
    return any(all(part.strip() in ALLOWED for part in way.split(" AND ")) for way in ways)
