"""Which incidents there are after a pass: what each node, and whoever does not answer, is a case of. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

from fencer.core.crash_loop import in_crash_loop
from fencer.core.model import FenceMark, Judged, Reason, Verdict
from fencer.core.text import natural
from fencer.ports.runtime import Sight
from fencer.wording import notices
from fencer.wording.conditions import Condition, condition
from fencer.wording.distrust import distrusted_endpoints
from fencer.wording.events import needs_a_person
from fencer.wording.nodes import blind, silent_endpoints
from fencer.wording.occasions import Occasion

API = "kubernetes"
"""What the API server is called."""

OPENS_S: dict[Occasion, float] = {
    Occasion.FENCED: 0.0,
    Occasion.ALARM: 0.0,
    Occasion.REFUSED: 10.0,
    Occasion.BLIND: 60.0,
}
"""So long it has to stand before anybody is told: a hypervisor that is restarted is no news."""

CLEARING_S = 20.0
"""The same of a fence that is not complete: mostly it is by then, and one message is enough."""

FAILING_S = 60.0
"""The same of what is due and fails: it is tried again."""

_INCIDENT = re.compile(r"[a-z0-9]{1,16}")

Subject: TypeAlias = tuple[str, str]
"""``node`` or ``endpoint``, and the name."""


@dataclass(frozen=True, slots=True)
class Case:
    """Something that people are told of while it stands.

    Attributes:
        occasion: What it is.
        done: All has been done about it that fencer does by itself.
        about: The node, or who does not answer.
        title: One line.
        text: More of it.
        reason: The decision's; empty: there is none.
        guest: The node's guest; empty: not known.
        opens_s: So long it has to stand before anybody is told.
        for_s: So long it stands already, as far as is known.
    """

    occasion: Occasion
    about: str
    title: str
    text: str
    reason: str = ""
    guest: str = ""
    done: bool = False
    opens_s: float = 0.0
    for_s: float = 0.0

    @property
    def subject(self) -> Subject:
        """Whom it is about: a node may have the name of an endpoint."""
        return ("endpoint" if self.occasion is Occasion.BLIND else "node"), self.about


@dataclass(frozen=True, slots=True)
class Look:
    """What there is, by one look.

    Attributes:
        cases: By the incident's id.
        unclear: Who is no case, but is not well either: an incident about them is not over.
        known: All whom there are; None: nobody could look.
        whole: Nobody is missing in that for any other reason than that they are gone.
        excluded: Nodes that a person has excluded from fencing.
        tainted: Nodes that are out of service: no fence is lifted, although somebody took its mark off.
    """

    cases: Mapping[str, Case]
    unclear: frozenset[Subject] = frozenset()
    known: frozenset[Subject] | None = None
    whole: bool = True
    excluded: frozenset[str] = frozenset()
    tainted: frozenset[str] = frozenset()


def look_at(seen: Sight, path: str) -> Look:
    """Return what there is after a pass.

    Args:
        seen: The pass.
        path: Where the configuration is, for what people may type.
    """
    cases: dict[str, Case] = {}
    unclear: set[Subject] = set()
    excluded, tainted = set[str](), set[str]()
    for name, judged in seen.judged.items():
        node, case = judged.observation.node, of_node(judged, path)
        if case is not None:
            cases[incident_of(judged)] = case
        elif judged.decision.reason is Reason.NODE_EXCLUDED:
            excluded.add(name)
        elif node.ready is not True:
            unclear.add(("node", name))
        if node.out_of_service is not None:
            tainted.add(name)
    for endpoint, why in seen.errors.items():
        hit = [name for name, judged in seen.judged.items() if endpoint in _endpoints(judged)]
        cases[ident("silent", endpoint)] = of_silence(endpoint, why, sorted(hit, key=natural))
    cases |= _unseen(seen) | _distrusted(seen)
    if seen.malformed:
        title, text = notices.unreadable(seen.malformed)
        cases[ident("unread", API)] = Case(Occasion.BLIND, API, title, text, opens_s=OPENS_S[Occasion.BLIND])
    endpoints = (("endpoint", name) for name in (*seen.endpoints, API))
    nodes = (("node", name) for name in seen.judged)
    known = frozenset({*endpoints, *nodes})
    whole = not seen.malformed
    return Look(cases, frozenset(unclear), known, whole, frozenset(excluded), frozenset(tainted))


def without_api(why: str) -> Look:
    """Return what there is if the API server does not answer: of nodes nobody knows anything."""
    return Look({ident("silent", API): of_silence(API, why)})


def of_node(judged: Judged, path: str) -> Case | None:
    """Return what a node is a case of; None: of nothing that people are told of."""
    node, decision, what = judged.observation.node, judged.decision, condition(judged)
    loops = in_crash_loop(decision)  # told once: what comes and goes with each boot is no news
    opens_s, done = 0.0, decision.reason is Reason.PODS_CLEARED and not loops
    if what is Condition.ALARM:
        occasion, (title, text) = Occasion.ALARM, notices.alarm(judged, path)
    elif what is Condition.FENCED:
        if isinstance(node.mark, FenceMark) and node.mark.incident.endswith("-shutdown"):
            return None  # a person has shut it down, and knows
        occasion, (title, text) = Occasion.FENCED, notices.fenced(judged)
        opens_s = 0.0 if done else CLEARING_S
    elif node.ready is True or decision.reason is Reason.NODE_EXCLUDED:
        return None
    elif needs_a_person(decision):
        occasion, (title, text) = Occasion.REFUSED, notices.refused(judged, path)
    elif judged.failed and decision.verdict in DUE:
        occasion, (title, text) = Occasion.REFUSED, notices.failed(judged)
        opens_s = FAILING_S
    else:
        return None
    guest = notices.guest_name(judged)
    reason = "" if loops else decision.reason.value
    opens_s = max(opens_s, OPENS_S[occasion])
    for_s = max(node.not_ready_s or 0.0, node.lease_age_s or 0.0)
    return Case(occasion, node.name, title, text, reason, guest, done, opens_s, for_s)


DUE = frozenset({Verdict.FENCE, Verdict.STOP_FIRST, Verdict.DISCARD_FIRST})
"""Something is to be done now."""


def _endpoints(judged: Judged) -> set[str]:
    return {candidate.guest.endpoint for candidate in judged.observation.candidates}


def of_silence(name: str, why: str, nodes: Sequence[str] = ()) -> Case:
    """Return the case of somebody who does not answer, with the nodes whose guests are there."""
    title, text = notices.silent(name, why.removeprefix(f"{name}: "), nodes, api=name == API)
    return Case(Occasion.BLIND, name, title, text, opens_s=OPENS_S[Occasion.BLIND])


def _unseen(seen: Sight) -> dict[str, Case]:
    """Return the cases of guests that cannot be read although their endpoint answers, one an endpoint."""
    whys: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for name, judged in seen.judged.items():
        why = blind(judged)
        if why is None or silent_endpoints(judged.observation) or not judged.observation.candidates:
            continue
        whys[judged.observation.candidates[0].guest.endpoint][name] = why
    cases = {}
    for endpoint, nodes in whys.items():
        title, text = notices.unseen(endpoint, nodes, next(iter(nodes.values())))
        opens_s, reason = OPENS_S[Occasion.BLIND], Reason.BLIND.value
        case = Case(Occasion.BLIND, endpoint, title, text, reason, opens_s=opens_s)
        cases[ident("unseen", endpoint)] = case
    return cases


def _distrusted(seen: Sight) -> dict[str, Case]:
    """Return a case for each endpoint that is distrusted for all its VMs."""
    cases = {}
    for endpoint, why in distrusted_endpoints(one.observation for one in seen.judged.values()).items():
        hit = [name for name, judged in seen.judged.items() if endpoint in _endpoints(judged)]
        title, text = notices.distrusted(endpoint, why, sorted(hit, key=natural))
        opens_s, reason = OPENS_S[Occasion.BLIND], Reason.WITNESS_CONTRADICTED.value
        cases[ident("distrusted", endpoint)] = Case(
            Occasion.BLIND, endpoint, title, text, reason, opens_s=opens_s
        )
    return cases


def incident_of(judged: Judged) -> str:
    """Return the id of a node's incident: as it is on the Node, where it is fit for that, and the node's own.

    A kubelet may choose its boot, and so seek the id of another node's incident; its Node's UID it may not.
    """
    node, incident = judged.observation.node, judged.observation.incident
    whose = ident("node", node.uid)
    return f"{incident if _INCIDENT.fullmatch(incident) else whose}-{whose}"


def ident(kind: str, name: str) -> str:
    """Return an id of letters and digits for what has a name of any kind."""
    return sha256(f"{kind}/{name}".encode()).hexdigest()[:8]
