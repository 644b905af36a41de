"""`history`, `replay` and `journal`, on journals of whole incidents."""

import json
import re
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from functools import cache

import pytest

from fencer.cli.wire import Wiring
from fencer.core.maintenance import Window
from fencer.core.policy import Mode, Policy
from fencer.journal.reading import entries
from fencer.journal.rows import Kind
from fencer.journal.store import Store
from fencer.reporting.several import SeveralReporters
from fencer.runtime.reconcile import Agent
from fencer.simulation.faults import What
from tests.cli.lab import Lab
from tests.journal.build import row
from tests.journal.direct import direct_reporter


def told(tmp_path, policy=None):
    """A lab whose agent has seen k8s-2 paused, stopped and fenced it, and taken it back."""
    lab = Lab(policy)
    lab.journal = tmp_path / "journal.db"
    lab.passes(60, watched=True)
    lab.breaks(What.PAUSE, "k8s-2")
    lab.passes(120, watched=True)
    lab.breaks(What.START, "k8s-2")
    lab.passes(140, watched=True)
    return lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Only to be looked at."""
    return told(tmp_path_factory.mktemp("history"))


@cache
def never():
    return Lab()


def test_an_incident_is_a_line_with_all_that_matters(lab):
    result = lab.run("history")
    assert result.exit_code == 0
    assert re.fullmatch(
        r"Thursday, 2026-01-01, times in UTC\n"
        r"  00:01 k8s-2 paused → fenced in 1m0\ds, 4 pods cleared, 3 volumes, lifted 00:0\d "
        r"\([0-9a-f]{8}\)\n",
        result.output,
    )


def test_one_incident_is_told_step_by_step_with_the_proof_before_what_cannot_be_taken_back(lab):
    output = lab.run("history", "last").output
    steps = [line.split("  ")[1:4] for line in output.splitlines() if re.match(r"  \d\d:", line)]
    assert steps
    order = (
        "did    stopped lab/k8s-2",
        "did    tainted",
        "4 of 4 pods cleared",
        "taint taken off",
        "uncordoned",
    )
    found = [output.index(one.replace("did    ", "")) for one in order]
    assert found == sorted(found)
    taint = output.index("did   tainted")
    assert "held: read off" in output[output.index("to be fenced") : taint]
    assert "meant" not in output  # all of it was done


def test_an_incident_is_found_by_the_beginning_of_its_id(lab):
    [found] = json.loads(lab.run("history", "-o", "json").output)
    assert lab.run("history", found["id"][:3]).output == lab.run("history", found["id"]).output


def test_for_programs_times_are_utc_and_rows_complete(lab):
    [found] = json.loads(lab.run("history", "-o", "json").output)
    assert (found["node"], found["cause"], found["over"], found["volumes"]) == ("k8s-2", "paused", True, 3)
    assert found["began_at"].endswith("Z")
    assert len(found["pods"]) == 4
    one = json.loads(lab.run("history", "last", "-o", "json").output)
    assert [line["number"] for line in one["rows"]] == sorted(line["number"] for line in one["rows"])
    assert {"decision", "intent", "action"} == {line["kind"] for line in one["rows"]}
    assert lab.run("history", "-o", "yaml").output.startswith("- id: ")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("--node", "k8s-2"), True),
        (("--node", "k8s-3"), False),
        (("--since", "1h"), True),
        (("--since", "10s"), False),
        (("--since", "2026-01-01"), True),
        (("--since", "2026-01-02"), False),
    ],
)
def test_only_what_is_asked_for_is_shown(lab, words, shown):
    result = lab.run("history", *words)
    assert result.exit_code == 0
    assert ("k8s-2" in result.output) is shown
    assert shown or "nothing has happened" in result.output


@pytest.mark.parametrize("since", ["yesterday", "7", "7y", "", "-3d", "1e400d", "2026-13-01"])
def test_a_time_that_is_none_is_refused(lab, since):
    result = lab.run("history", "--since", since)
    assert result.exit_code == 2
    assert "is no time: a span such as 12h, 7d or 2w" in result.output


def test_an_incident_that_is_not_there_names_the_newest(lab):
    result = lab.run("history", "ffffffff")
    assert result.exit_code == 2
    assert re.search(r"ffffffff: no such incident in .*The newest: [0-9a-f]{8} \(k8s-2\)", result.output)


def test_without_a_journal_it_says_where_it_would_be(tmp_path):
    lab = Lab()
    lab.journal = tmp_path / "none.db"
    for words in (("history",), ("history", "last"), ("replay", "last"), ("journal", "verify")):
        result = lab.run(*words)
        assert result.exit_code == 1
        assert f"{tmp_path}/none.db: no journal yet. `fencer watch` begins one" in result.output


def test_where_none_is_kept_it_says_so():
    result = never().run("history")
    assert result.exit_code == 2
    assert "no journal is kept: journal.enabled is false" in result.output


def test_an_empty_journal_has_no_incident(tmp_path):
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    Store(lab.journal, "5e55105a", "fencer").close()
    assert lab.run("history").output == "nothing has happened, as far as the journal goes back.\n"
    assert "There is none yet" in lab.run("history", "last").output
    assert "0 rows" in lab.run("journal", "verify").output


def test_an_agent_that_ended_in_the_middle_is_told(tmp_path):
    lab = told(tmp_path)
    kept = list(entries(lab.journal))
    cut = next(
        n for n, one in enumerate(kept) if one.kind is Kind.INTENT and one.body["action"] == "TaintNode"
    )
    lab.journal = tmp_path / "killed.db"
    store = Store(lab.journal, "5e55105a", "fencer@pve1")
    for one in kept[: cut + 1]:
        again = row(
            seconds=one.at_s - 1000.0, kind=one.kind, node=one.node, uid=one.uid, incident=one.incident
        )
        object.__setattr__(again, "body", lambda body=one.body: body)
        store.append([again])
    store.append([row("lab: lost", seconds=2000.0)])
    store.close()
    output = lab.run("history", "last").output
    assert "meant" in output
    assert "TaintNode: what came of it is not known: whoever did it has ended" in output


def test_what_a_person_said_is_there_to_read(tmp_path):
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    lab.passes(60, watched=True)
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(50)
    assert lab.run("fence", "k8s-2", "--yes", "--over-brake", "the rack is gone").exit_code == 0
    assert "stopped → fenced by admin@desk in " in lab.run("history").output
    one = lab.run("history", "last").output
    assert "admin@desk (by hand): fencer fence k8s-2 --over-brake 'the rack is gone'" in one
    assert re.search(r"ended +done", one)
    assert re.search(r"did +tainted .* \(by admin@desk\)", one)  # the agent beside it does things, too
    [found] = json.loads(lab.run("history", "-o", "json").output)
    assert found["commands"][0]["why"] == {"over-brake": "the rack is gone"}


def test_what_an_agent_and_a_command_both_saw_is_told_once(tmp_path):
    journal = tmp_path / "journal.db"
    about = {"node": "k8s-2", "uid": "u2", "incident": "inc-1", "kind": Kind.DECISION}
    for session, who in (("5e55105a", "fencer@pve1"), ("c0ffee00", "root@pve1 (by hand)")):
        store = Store(journal, session, who)
        store.append([row("sees the same", **about)])
        store.close()
    lab = Lab()
    lab.journal = journal
    assert lab.run("history", "inc-1").output.partition("\n\n")[2].count("sees the same") == 1


def test_a_refused_command_is_told_with_its_code(tmp_path):
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    lab.passes(60, watched=True)
    lab.breaks(What.POWER_OFF, "k8s-2")
    assert lab.run("fence", "k8s-2", "--yes", "--timeout", "1").exit_code == 1
    assert "admin@desk: fence k8s-2 --timeout 1 → ended with code 1" in lab.run("history").output


# -- alarms ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def alarmed(tmp_path_factory):
    """A lab whose agent has fenced k8s-2, whose old memory came back then; and k8s-3 runs an earlier boot."""
    lab = Lab()
    lab.journal = tmp_path_factory.mktemp("alarms") / "journal.db"
    lab.passes(60, watched=True)
    for node in ("k8s-2", "k8s-3"):
        lab.breaks(What.SNAPSHOT, node)
    lab.breaks(What.REBOOT, "k8s-3")
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(150, watched=True)
    for node in ("k8s-2", "k8s-3"):
        lab.breaks(What.REVERT, node)
    lab.passes(60, watched=True)
    return lab


def shown(lab, node):
    """The one incident of a node in which there was an alarm, for programs."""
    found = json.loads(lab.run("history", "--node", node, "-o", "json").output)
    [one] = [one for one in found if one["alarms"]]
    return one


def test_an_alarm_is_shown_with_what_it_rests_on(alarmed):
    output = alarmed.run("history", shown(alarmed, "k8s-2")["id"]).output
    lines = output.splitlines()
    [place] = [number for number, line in enumerate(lines) if "  ALARM  " in line]
    assert "came back with its old memory" in lines[place]
    assert re.match(r" +[✗!] \S.*: running .*; needs: ", lines[place + 1])


def test_and_so_for_programs(alarmed):
    one = shown(alarmed, "k8s-2")
    [alarm] = one["alarms"]
    assert "came back with its old memory" in alarm["text"]
    assert len(alarm["checks"]) == 1
    rows = json.loads(alarmed.run("history", one["id"], "-o", "json").output)["rows"]
    raised = [row for row in rows if row["body"].get("action") == "Alarm"]
    assert [row["at"] for row in raised] == [alarm["at"]]


def test_the_line_of_a_fence_counts_its_alarms(alarmed):
    assert re.search(r"k8s-2 .*, 1 ALARM from \d\d:\d\d, still fenced", alarmed.run("history").output)


def test_a_node_that_is_healthy_but_for_an_alarm_is_found(alarmed):
    """By its verdict and reason nothing is news of it."""
    one = shown(alarmed, "k8s-3")
    assert (one["over"], one["fenced_at"]) == (False, None)
    assert "alarm: it runs an earlier boot again" in alarmed.run("history").output
    output = alarmed.run("history", one["id"]).output
    assert re.search(r"  ALARM  it runs an earlier boot again.*\n +! earlier boot: .*; needs: ", output)


def test_where_an_alarm_ends_is_shown_although_the_decision_reads_alike(tmp_path):
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    store = Store(lab.journal, "5e55105a", "fencer@pve1")
    healthy = {"intent": "watch", "verdict": "healthy", "reason": "node_healthy", "text": "healthy"}
    raised = {"action": "Alarm", "ok": True, "text": "it runs an earlier boot again"}
    for seconds, kind, body in (
        (0.0, Kind.DECISION, {**healthy, "actions": ["Alarm"]}),
        (0.1, Kind.ACTION, raised),
        (90.0, Kind.DECISION, {**healthy, "actions": []}),
    ):
        one = row(seconds=seconds, kind=kind, node="k8s-3", uid="uid-3", incident="5a5ca47e")
        store.append([replace(one, body=lambda body=body: body)])
    store.close()
    steps = re.findall(r"(seen|ALARM) +(.*)", lab.run("history", "5a5").output)
    assert steps == [("seen", "healthy"), ("ALARM", "it runs an earlier boot again"), ("seen", "healthy")]


@pytest.mark.parametrize("node", ["k8s-2", "k8s-3"])
def test_the_decision_that_raised_an_alarm_is_made_again(alarmed, node):
    result = alarmed.run("replay", shown(alarmed, node)["id"], "-o", "json")
    assert result.exit_code == 0, result.output
    made = json.loads(result.output)["decisions"]
    assert [one["same"] for one in made if "Alarm" in one["then"]["actions"]] == [True]


@pytest.mark.parametrize(("node", "raised"), [("k8s-2", True), ("k8s-2", False), ("k8s-3", True)])
def test_an_alarm_that_is_missing_now_or_new_is_another_decision(alarmed, tmp_path, node, raised):
    """A fencer that raised none then; and one that raised a second one."""
    name = shown(alarmed, node)["id"]
    lab = Lab()
    lab.journal = tmp_path / "other.db"
    store = Store(lab.journal, "5e55105a", "fencer@pve1")
    for one in entries(alarmed.journal):
        body = dict(one.body)
        if "Alarm" in body.get("actions", ()):
            body["actions"] = ["Alarm"] * 2 if raised else []
        again = row(kind=one.kind, node=one.node, uid=one.uid, incident=one.incident, seen=one.seen)
        object.__setattr__(again, "body", lambda body=body: body)
        store.append([again])
    store.close()
    result = lab.run("replay", name)
    assert result.exit_code == 1
    assert result.output.count("ANOTHER") == 1
    assert re.search(r"now .*Alarm\)", result.output)


def test_unfence_by_hand_raises_the_alarm_and_its_decision_is_kept(alarmed):
    result = alarmed.run("unfence", "k8s-2", "--yes", "--timeout", "20")
    assert result.exit_code == 1
    rows = list(entries(alarmed.journal))
    by_hand = [one for one in rows if one.session != rows[0].session and one.kind is Kind.DECISION]
    assert any("Alarm" in one.body["actions"] and one.seen is not None for one in by_hand)
    assert len(shown(alarmed, "k8s-2")["alarms"]) == 2


# -- replay ------------------------------------------------------------------------------------------------


def test_by_the_same_rules_everything_is_the_same(lab):
    result = lab.run("replay", "last")
    assert result.output.startswith("Thursday, 2026-01-01, times in UTC\n")
    assert result.exit_code == 0
    assert "ANOTHER" not in result.output
    assert re.search(
        r"\d+ decisions of [0-9a-f]{8} by the rules of fencer [\d.]+: all the same\.", result.output
    )


def test_a_verdict_that_would_be_another_one_today_is_told_with_both(tmp_path):
    lab = told(tmp_path)
    other = tmp_path / "other.db"
    store = Store(other, "5e55105a", "fencer@pve1")
    for one in entries(lab.journal):
        body = dict(one.body)
        if body.get("reason") == "proven_off":
            body.update(
                verdict="wait", reason="not_held", actions=[], text="of a fencer that was more careful"
            )
        again = row(kind=one.kind, node=one.node, uid=one.uid, incident=one.incident, seen=one.seen)
        object.__setattr__(again, "body", lambda body=body: body)
        store.append([again])
    store.close()
    lab.journal = other
    result = lab.run("replay", "last")
    assert result.exit_code == 1
    assert "then waiting (not_held; nothing to do): of a fencer that was more careful" in result.output
    assert "now to be fenced (proven_off; TaintNode): its guest is proven off" in result.output
    assert "1 is another one." in result.output
    data = json.loads(lab.run("replay", "last", "-o", "json").output)
    assert [one["now"]["verdict"] for one in data["decisions"] if not one["same"]] == ["to_be_fenced"]


def test_decisions_that_cannot_be_made_again_are_told(tmp_path):
    lab = told(tmp_path)
    bare = tmp_path / "bare.db"
    store = Store(bare, "5e55105a", "fencer@pve1")
    for number, one in enumerate(entries(lab.journal)):
        if one.kind is Kind.SESSION:
            continue
        seen = None if number % 2 else one.seen
        again = row(kind=one.kind, node=one.node, uid=one.uid, incident=one.incident, seen=seen)
        object.__setattr__(again, "body", lambda body=one.body: body)
        store.append([again])
    store.close()
    lab.journal = bare
    result = lab.run("replay", "last")
    assert result.exit_code == 1
    assert "the policy of that time is not kept any more" in result.output
    assert "what was known is kept with another row" in result.output
    assert "cannot be made again" in result.output


def test_an_agent_that_only_observed_is_made_again_by_its_own_policy(tmp_path):
    lab = told(tmp_path, Policy(mode=Mode.OBSERVE))
    assert "would" in lab.run("history", "last").output
    result = lab.run("replay", "last")
    assert result.exit_code == 0, result.output


# -- the journal itself ------------------------------------------------------------------------------------


def test_a_journal_is_verified_and_its_digest_can_be_asked_for_later(lab):
    result = lab.run("journal", "verify")
    assert result.exit_code == 0
    assert "each as it was written" in result.output
    digest = re.search(r"digest: ([0-9a-f]{64})", result.output)[1]
    assert lab.run("journal", "verify", "--digest", digest).exit_code == 0
    other = lab.run("journal", "verify", "--digest", "0" * 64)
    assert other.exit_code == 1
    assert "no row has the digest" in other.output
    assert "rows were cut off" in " ".join(other.output.split())
    assert lab.run("journal", "verify", "--digest", f" {digest.upper()}\n").exit_code == 0


@pytest.mark.parametrize("digest", ["", "5a5ca47e", "5a5ca47e…", "g" * 64, "0" * 65])
def test_what_is_no_digest_is_no_alarm(lab, digest):
    result = lab.run("journal", "verify", "--digest", digest)
    assert result.exit_code == 2
    assert "as `fencer journal verify` prints" in result.output


def test_a_journal_is_written_out_for_other_programs(lab):
    lines = [json.loads(line) for line in lab.run("journal", "export").output.splitlines()]
    assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))
    assert not any("seen" in line for line in lines)
    whole = [json.loads(line) for line in lab.run("journal", "export", "--observations").output.splitlines()]
    assert {line["seen"]["node"]["name"] for line in whole if "seen" in line} == {"k8s-1", "k8s-2", "k8s-3"}


def test_many_incidents_are_not_all_shown_at_once(tmp_path):
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    store = Store(lab.journal, "5e55105a", "fencer@pve1")
    for number in range(45):
        facts = {"seconds": number * 60.0, "node": "k8s-2", "uid": "u", "incident": f"{number:08x}"}
        for verdict, reason in (("refuse", "guest_running"), ("healthy", "node_healthy")):
            one = row(kind=Kind.DECISION, **facts)
            object.__setattr__(
                one, "body", lambda v=verdict, r=reason: {"verdict": v, "reason": r, "text": "x"}
            )
            store.append([one])
    store.close()
    assert len(json.loads(lab.run("history", "-o", "json").output)) == 45  # a program is shown all
    few, every = lab.run("history").output, lab.run("history", "--all").output
    assert few.splitlines()[0] == "5 older incidents; --all shows them"
    assert (few.count("k8s-2"), every.count("k8s-2")) == (40, 45)


def lifted_days_later(tmp_path):
    """A lab whose journal has a fence that stood for three days, until one in local time after midnight."""
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    store = Store(lab.journal, "5e55105a", "fencer@pve1")
    for day, action in ((0, "TaintNode"), (3, "UntaintNode")):
        facts = {"seconds": timedelta(days=day, hours=day).total_seconds(), "node": "k8s-2", "uid": "u"}
        one = row(kind=Kind.ACTION, incident="5a5ca47e", **facts)
        object.__setattr__(one, "body", lambda a=action: {"action": a, "ok": True, "text": a, "done": {}})
        store.append([one])
    store.close()
    return lab


def test_a_fence_that_was_lifted_on_another_day_says_on_which(tmp_path):
    lab = lifted_days_later(tmp_path)
    for words in (("history",), ("history", "last"), ("report", "--last", "--md")):
        assert "lifted 2026-11-29 05:14" in lab.run(*words).output


def test_programs_are_told_the_same_in_every_zone(tmp_path):
    lab = lifted_days_later(tmp_path)
    here = lab.wall
    told = [lab.run("history", *words, "-o", "json").output for words in ((), ("last",))]
    lab.wall = lambda: here().astimezone(timezone(timedelta(hours=5, minutes=45)))
    assert "times in UTC+05:45" in lab.run("history").output
    assert [lab.run("history", *words, "-o", "json").output for words in ((), ("last",))] == told


def test_times_of_last_summer_are_told_as_they_were(monkeypatch):
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    try:
        zone = Wiring().looking_back().tzinfo
        summer = datetime(2026, 7, 20, 4, tzinfo=UTC).astimezone(zone)
        twice = [datetime(2026, 10, 25, hour, 30, tzinfo=UTC).astimezone(zone) for hour in (0, 1)]
        assert f"{summer:%H:%M %Z %z}" == "06:00 CEST +0200"
        assert [f"{one:%H:%M %Z}" for one in twice] == ["02:30 CEST", "02:30 CET"]
        assert [one.astimezone(UTC).hour for one in twice] == [0, 1]
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("words", [("--node", "k8s-3"), ("--since", "7d")])
def test_one_incident_is_not_chosen_from(lab, words):
    result = lab.run("history", "last", *words)
    assert result.exit_code == 2
    assert "leave INCIDENT out" in result.output


def test_days_are_told_apart(tmp_path):
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    store = Store(lab.journal, "5e55105a", "fencer@pve1")
    for day in range(2):
        seconds = timedelta(days=day).total_seconds()
        one = row(kind=Kind.ACTION, seconds=seconds, node="k8s-2", uid="u", incident="5a5ca47e")
        object.__setattr__(one, "body", lambda: {"action": "Uncordon", "ok": True, "text": "uncordoned"})
        store.append([one])
    store.close()
    assert "2026-11-27 02:14:00  +24h00m" in lab.run("history", "last").output


def test_a_journal_is_read_without_a_configuration(lab):
    for words in (("history",), ("history", "last"), ("replay", "last"), ("journal", "verify")):
        here = lab.run(*words)
        alone = Lab().run(*words, "--journal", str(lab.journal), "-c", "/nowhere/config.yaml")
        assert (alone.exit_code, alone.output) == (here.exit_code, here.output)
    assert Lab().run("history", "--journal", "/nowhere/j.db").exit_code == 1


def test_a_row_that_cannot_be_read_hides_no_other(tmp_path):
    lab = told(tmp_path)
    with closing(sqlite3.connect(lab.journal)) as database, database:
        database.execute("UPDATE rows SET kind = 'of a newer fencer' WHERE number = 12")
        database.execute("UPDATE rows SET body = 'no JSON' WHERE number = 13")
    result = lab.run("history")
    assert result.exit_code == 0
    assert "k8s-2 paused → fenced" in result.output
    assert "row 12 cannot be read" in result.output
    assert "2 rows are left out. `fencer journal verify` says more" in result.output
    assert lab.run("journal", "verify").exit_code == 1


def test_a_word_that_was_given_in_vain_is_kept(tmp_path):
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    refused = lab.run("fence", "k8s-2", "--yes", "--confirm-guest-off", "it burnt")
    assert refused.exit_code == 1
    assert (
        "admin@desk: fence k8s-2 --confirm-guest-off 'it burnt' → ended with code 1"
        in lab.run("history").output
    )


def test_a_dry_run_keeps_no_word(tmp_path):
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    lab.run("fence", "k8s-2", "--dry-run", "--confirm-guest-off", "it burnt")
    assert not lab.journal.exists()


def pauses_all(lab):
    lab.simulation.api.paused_why = "storage work"


def pauses_the_node(lab):
    lab.run("pause", "k8s-2", "--why", "storage work")


def opens_a_window(lab):
    lab.policy = replace(lab.policy, maintenance=(Window("00:00", "24:00", "UTC", why="storage work"),))


@pytest.mark.parametrize("pauses", [pauses_all, pauses_the_node, opens_a_window])
def test_a_node_that_falls_while_fencing_is_paused_is_an_incident(tmp_path, pauses):
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    pauses(lab)
    lab.breaks(What.POWER_OFF, "k8s-2", in_s=40)
    lab.breaks(What.START, "k8s-2", in_s=200)
    lab.passes(340, watched=True)
    [line] = lab.run("history").output.splitlines()[1:]
    why = "fencing is paused|a maintenance window is open"
    assert re.search(rf"k8s-2 stopped → refused: ({why}).*, Ready again 00:0\d ", line)
    steps = lab.run("history", "last").output
    assert "seen  not Ready, and refused: " in steps
    assert "seen  Ready; refused: " in steps


class Agents:
    """Two agents, each with a journal of its own."""

    def __init__(self, folder):
        self.lab = Lab()
        self.journals = {name: folder / f"{name}.db" for name in ("pve1", "pve2")}
        self.agents = {name: self.begin(name) for name in self.journals}

    def begin(self, name):
        world, by = self.lab._world(), f"fencer@{name}"
        keeps = direct_reporter(self.journals[name], world.asker, world.clock.now_s, self.lab.wall, by)
        world = replace(world, reporter=SeveralReporters(world.reporter, keeps), recorder=keeps)
        return Agent(world, self.lab.policy, self.lab.rules, by=by)

    def passes(self, seconds, first):
        """Let both look; what is to be done does whoever looks first."""
        clock = self.lab.simulation.clock
        until_s = clock.now_s() + seconds
        order = sorted(self.agents, key=lambda name: name != first)
        while clock.now_s() < until_s:
            clock.wait(min(self.agents[name].tick().recheck_s for name in order))

    def lines(self):
        """What each of them says of k8s-2."""
        told = (self.lab.run("history", "--journal", str(file)).output for file in self.journals.values())
        return [re.sub(r"\d+", "N", one.splitlines()[1].partition("k8s-2 ")[2]) for one in told]


def test_each_agent_tells_the_fence_that_one_has_set_and_another_one_lifted(tmp_path):
    two = Agents(tmp_path)
    two.passes(60, first="pve2")
    two.lab.breaks(What.PAUSE, "k8s-2")
    two.passes(120, first="pve2")
    by_one, by_two = two.lines()
    assert by_one.startswith("paused → fenced by fencer@pveN, still fenced (")
    assert by_two.startswith("paused → fenced in NmNs, N pods cleared, N volumes, still fenced (")
    two.lab.breaks(What.START, "k8s-2")
    two.passes(140, first="pve1")
    by_one, by_two = two.lines()
    assert by_one.startswith("paused → fenced by fencer@pveN, lifted N:N (")
    assert by_two.startswith("paused → fenced in NmNs, N pods cleared, N volumes, healthy again N:N (")
