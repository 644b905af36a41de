"""A stand-in Proxmox VE: a small cluster in memory, and HTTPS servers that answer for its hosts.

`cluster` is the truth and the hands that change it, `clock` the only thing that makes time pass. `power`,
`chores`, `copies` and `migration` are what ``qm`` does, `steps` and `tasks` how; `ha` and `stats` are the
daemons that act by themselves. `api` decides who answers what, `replies`, `task_replies`, `ha_replies` and
`commands` say it, `server` and `wire` bring it over real sockets. `hooks` runs hookscripts, as processes.

Not here: tickets (tokens only), changes of configurations by the API, power of containers, storage, and the
file system's caches of two seconds. A request for anything of that is answered with 501, as for a typo.
"""

from tests.support.pve.clock import Clock
from tests.support.pve.cluster import PveCluster
from tests.support.pve.https.server import PveServers
from tests.support.pve.model import Daemon, Pmxcfs
from tests.support.pve.refused import Refused
from tests.support.pve.tasks import Task

__all__ = ["Clock", "Daemon", "Pmxcfs", "PveCluster", "PveServers", "Refused", "Task"]
