"""The sections that say which guests fencer may power off or on."""

from dataclasses import replace
from typing import Annotated

from fencer.config.keys import Section, key
from fencer.config.texts import Pool, Tag, Uuid
from fencer.core.identity import Admission


class PowerSection(Section):
    """Which guests of this hypervisor fencer may power off or on. Absent: none."""

    mapped: Annotated[
        bool, key("The guests of this hypervisor that `nodes` names, at the file's end.", example=True)
    ] = False
    uuids: Annotated[
        list[Uuid] | None,
        key(
            "The guests with these UUIDs: what `virsh domuuid GUEST` prints, or VBoxManage as hardwareuuid.",
            example=["6f1c2ad0-7b1e-4d39-9a5f-3f0d6f1c2ae2"],
        ),
    ] = None

    def admission(self) -> Admission:
        """Return the section as settings for the rest of fencer."""
        return Admission(self.mapped, frozenset(self.uuids or ()))


class ProxmoxPowerSection(PowerSection):
    """The same for guests of Proxmox, which knows groups of guests."""

    tag: Annotated[
        Tag | None,
        key(
            "The VMs with this tag, each once you have approved it for its node (`fencer approve`). Upper "
            "and lower case differ. Anyone who may change a VM's options may tag it, unless the tag is among "
            "the datacenter's registered ones.",
            example="fencer",
        ),
    ] = None
    pool: Annotated[
        Pool | None,
        key(
            "The VMs in this pool, and in those below it, each once you have approved it for its node "
            "(`fencer approve`). The token needs Pool.Audit on it.",
            example="k8s",
        ),
    ] = None

    def admission(self) -> Admission:
        """Return the section as settings for the rest of fencer."""
        written = {"tag": self.tag, "pool": self.pool}
        groups = frozenset(f"{kind}:{name}" for kind, name in written.items() if name is not None)
        return replace(super().admission(), groups=groups)
