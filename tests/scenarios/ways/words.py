"""What many rows share: the words of ways, situations, and how fencer is set."""

from __future__ import annotations

from dataclasses import replace

from fencer.core.model import Intent, Reason
from fencer.core.policy import PausedGuest
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from fencer.simulation.scenario import ARMED
from tests.scenarios.ways.case import Way, way
from tests.scenarios.ways.ends import shows
from tests.scenarios.ways.steps import happens, types, until

SHUTDOWN, START = Intent.SHUTDOWN, Intent.START
DEAD = happens(What.POWER_OFF)
STARTED = happens(What.START)
LEFT = (happens(What.QMEVENTD_DEAD, to="lab1"), happens(What.SHUTDOWN))
"""A VM has powered itself off, and nothing ends its process."""
ENDS_IT = "`qm stop k8s-2` on lab1"
ITS_END = ("Its VM has powered itself off: `qm stop k8s-2` on lab1 ends what is left of its process",)
NOTHING = "nothing needs to change"
SURE = "Be sure: two writers destroy a volume"
CONFIG = "/etc/fencer/config.yaml"
HOSTS = Shape(hosts=("lab1", "lab2", "lab3"))
WATCHED = replace(HOSTS, watched=True)
FIVE = Shape(nodes=("k8s-1", "k8s-2", "k8s-3", "k8s-4", "k8s-5"))
SECONDS = replace(ARMED, require_not_ready=False, lease_silent_s=0.0)
SILENCE = replace(ARMED, require_not_ready=False, lease_silent_s=20.0)
TRUSTING = replace(ARMED, paused_guest=PausedGuest.TRUST)
NOBODYS = "11111111-2222-4333-8444-555555555555"
NAMED = "`fencer fence k8s-2 --guest lab/k8s-2`"
WORD = "if you know that the guest is off and stays off: `fencer fence k8s-2 --confirm-guest-off WHY`"
WHY = "--confirm-guest-off WHY"
GIVEN = types("fence", "k8s-2", "--confirm-guest-off", "WHY")
MAP = (
    "the node in the configuration's `nodes:`",
    f"`nodes: {{k8s-2: ENDPOINT/GUEST}}` in {CONFIG}",
    "an entry in `nodes:`",
)
OFF = (DEAD, until(Reason.PODS_CLEARED))


def checked(*, code: int, shown: str) -> Way:
    """`fencer check` tells what is wrong."""
    told = "`fencer check` looks at every connection"
    return way(told, do=[types("check", code=code)], to=shows(shown))
