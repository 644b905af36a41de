"""A stand-in Proxmox VE: a small cluster in memory, and HTTPS servers that answer for its hosts.

README.md says what it answers, how badly it can behave, and how it is held to the real one.
"""

from tests.support.pve.clock import Clock
from tests.support.pve.cluster import PveCluster
from tests.support.pve.https.server import PveServers
from tests.support.pve.model import Daemon, Pmxcfs
from tests.support.pve.refused import Refused
from tests.support.pve.tasks import Task

__all__ = ["Clock", "Daemon", "Pmxcfs", "PveCluster", "PveServers", "Refused", "Task"]
