"""Writes debian/copyright: fencer's licence, and of each library that the package brings its own text.

`copyright.py FOLDER LICENCE`: FOLDER is what was installed for one Python, whole; LICENCE is fencer's file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution
from pathlib import Path

from merge import FROM_DEBIAN, UNUSED, distribution

from tests.supply.licences import licence

_OWN = "fencer-agent"
_HEAD = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: fencer
Comment: The package brings its libraries, so that it is the same on each Debian. They lie in /usr/lib/fencer,
 as they were published; the texts below are theirs.
"""
_APACHE = """\
License: Apache-2.0
 On Debian systems the text of the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0.
"""
_COPYRIGHT = re.compile(
    r"^\W*(copyright\b(?: \(c\)|:)? *(?=.*(?:\d{4}|©|\(c\))).+|©.+)$", re.IGNORECASE | re.MULTILINE
)
_TEXTS = re.compile(r"(^|/)(LICEN[CS]E|COPYING|NOTICE)[\w.-]*$", re.IGNORECASE)


def paragraphs(folder: Path) -> Iterator[str]:
    """Yield what is to be said of each library in a folder, in order."""
    found = {distribution(info): Distribution.at(info) for info in folder.glob("*.dist-info")}
    for name in sorted(found):
        if name != _OWN and name not in UNUSED | FROM_DEBIAN:
            yield _paragraph(name, found[name], folder)


def _paragraph(name: str, installed: Distribution, folder: Path) -> str:
    expression = licence(name)
    if expression is None:
        raise SystemExit(f"{name}: its licence is not known: see tests/supply/licences.py")
    tops = {str(file).split("/")[0] for file in installed.files or () if not str(file).startswith("..")}
    kept = sorted(
        f"usr/lib/fencer/{top}{'/*' if (folder / top).is_dir() else ''}" for top in tops if top != "bin"
    )
    texts = "\n\n".join(
        f"{file.name}:\n\n{_known(Path(str(file.locate())).read_text(encoding='utf-8'))}"
        for file in sorted(installed.files or (), key=str)
        if ".dist-info/" in str(file) and _TEXTS.search(str(file))
    )
    if not texts:
        texts = f"As its metadata tell: {expression}. They have no text of it."
    holders = list(dict.fromkeys(match[1].strip() for match in _COPYRIGHT.finditer(texts)))
    holders = holders or [f"the authors of {name}: {installed.metadata.get('Author') or 'see its home page'}"]
    own = f"{name}-{installed.version}"
    return "\n".join(
        (
            *("Files:", *(f" {line}" for line in kept)),
            *("Copyright:", *(f" {' '.join(one.split())}" for one in holders)),
            f"License: {own}",
            f"Comment: {name} {installed.version}, by its metadata {expression}",
            "",
            f"License: {own}",
            _indented(texts),
            "",
        )
    )


def _known(text: str) -> str:
    """Name a text that is on each Debian system already."""
    whole = "Apache License" in text and "TERMS AND CONDITIONS FOR USE" in text
    return "The Apache License 2.0: /usr/share/common-licenses/Apache-2.0" if whole else text


def _indented(text: str) -> str:
    """Write a text as a field of several lines."""
    lines = (line.rstrip() for line in text.replace("\f", "\n").strip().splitlines())
    return "\n".join(f" {line}" if line else " ." for line in lines)


def main(words: Sequence[str]) -> None:
    """Write it to standard output."""
    folder, own = words
    years = "2026"
    own_paragraph = f"Files: *\nCopyright: {years} the authors of fencer\nLicense: Apache-2.0\n"
    if "Apache License" not in Path(own).read_text():
        raise SystemExit(f"{own}: is not the licence that is written here")
    sys.stdout.write("\n".join((_HEAD, own_paragraph, _APACHE, *paragraphs(Path(folder)))))


if __name__ == "__main__":
    main(sys.argv[1:])
