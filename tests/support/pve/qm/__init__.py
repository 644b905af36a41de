"""All that an operator can do with guests from a shell: ``qm``, ``qmrestore`` and ``vzdump``."""

from tests.support.pve.qm.backup import Backups
from tests.support.pve.qm.copies import Copies
from tests.support.pve.qm.memory import SavedMemory
from tests.support.pve.qm.migration import Migrations
from tests.support.pve.qm.power import Power


class Qm(Power, SavedMemory, Backups, Copies, Migrations):
    """Every command, over the same processes."""
