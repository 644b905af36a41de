"""Rows to be written, and rows as they are kept."""

from datetime import UTC, datetime, timedelta

from fencer.journal.rows import Entry, Kind, Row, text_of
from tests.core.build import observation

BEGAN = datetime(2026, 11, 26, 2, 14, tzinfo=UTC)


def row(text="lab: lost", *, seconds=0.0, kind=Kind.NOTICE, **facts):
    """A row that says a text, so long after it began."""
    at = text_of(BEGAN + timedelta(seconds=seconds))
    return Row(at, 1000.0 + seconds, kind, lambda: {"text": text}, **facts)


def decided(text="its guest is proven off", **facts):
    """A row of a decision, with all that was known."""
    about = {"node": "k8s-2", "uid": "u2", "incident": "inc-1", "seen": observation()}
    return row(text, kind=Kind.DECISION, **about, **facts)


class Told:
    """Makes entries, one after the other, as an agent would write them."""

    def __init__(self, session="5e55105a", by="fencer@pve1"):
        self.session, self.by = session, by
        self.entries: list[Entry] = []

    def tell(self, kind, seconds, *, node="", uid="", incident="", by=None, session=None, **body):
        at = BEGAN + timedelta(seconds=seconds)
        number = len(self.entries) + 1
        self.entries.append(
            Entry(
                *(number, at, 1000.0 + seconds, session or self.session, by or self.by, kind),
                *(node, uid, incident, body),
            )
        )
        return self

    def seen(self, seconds, verdict, reason, *, node="k8s-2", **more):
        facts = {"uid": f"uid-{node}", "incident": "5a5ca47e", "text": reason.replace("_", " "), **more}
        return self.tell(Kind.DECISION, seconds, node=node, verdict=verdict, reason=reason, **facts)

    def did(self, seconds, action, *, node="k8s-2", ok=True, **more):
        facts = {"uid": f"uid-{node}", "incident": "5a5ca47e", "text": action, **more}
        return self.tell(Kind.ACTION, seconds, node=node, action=action, ok=ok, **facts)

    def meant(self, seconds, action, *, node="k8s-2", **more):
        facts = {"uid": f"uid-{node}", "incident": "5a5ca47e", **more}
        return self.tell(Kind.INTENT, seconds, node=node, action=action, **facts)

    def asked(self, seconds, words, *, nodes=("k8s-2",), session="c0ffee00", by="root@pve1 (by hand)"):
        body = {"words": words, "nodes": list(nodes), "why": {}}
        return self.tell(Kind.COMMAND, seconds, session=session, by=by, **body)

    def ended(self, seconds, code=0, *, session="c0ffee00", by="root@pve1 (by hand)"):
        return self.tell(Kind.ENDED, seconds, session=session, by=by, code=code)
