"""The README's quick starts, as a person who pastes them has them."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
PROXMOX, KVM, VAGRANT = "Proxmox VE and k3s", "KVM and kubeadm", "Vagrant and VirtualBox"
NAMES = (PROXMOX, KVM, VAGRANT)


def block(name: str, readme: str | None = None) -> str:
    """Return the one block of commands below a quick start's heading.

    Args:
        name: The heading.
        readme: The README's text; None: as it is in this checkout.

    Raises:
        AssertionError: there is no such heading, or not one block.
    """
    text = README.read_text(encoding="utf-8") if readme is None else readme
    _, found, rest = text.partition(f"\n### {name}\n")
    assert found, f"README.md has no quick start {name!r}"
    section = re.split(r"\n#+ ", rest, maxsplit=1)[0]
    blocks = re.findall(r"(?m)(?:^ {4}.*\n?)+", section)
    assert len(blocks) == 1, f"{name}: {len(blocks)} blocks, not one to paste"
    return re.sub(r"(?m)^ {4}", "", blocks[0]).strip("\n")
