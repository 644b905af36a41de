"""The status page as text: the answer first, whatever happens; nothing from elsewhere, nothing unescaped."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from fencer.core.policy import Mode, Policy
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from fencer.web.answer import TONES, Tone, answer
from fencer.web.lately import Lately
from fencer.web.page import SIGNS, page
from fencer.web.site import policy
from fencer.web.style import OLD_S, STYLE, STYLE_HASH
from fencer.web.tree import MOST_NAMES, SMALL
from fencer.wording.conditions import Condition
from tests.support.outline import Outline
from tests.web.worlds import (
    HOME,
    HOSTILE,
    LONG,
    Watched,
    api_down,
    blind,
    excluded,
    fenced,
    many,
    observed,
    old_memory,
    paused,
    sick,
    spoiled,
    spoiled_past,
    well,
)

ROW = '<th role="rowheader" scope="row">'


@pytest.fixture(scope="module")
def incidents(tmp_path_factory):
    return fenced(tmp_path_factory.mktemp("journal") / "journal.db")


def lines(world):
    return [(line.word, line.text) for line in answer(world.board.snapshot()).lines]


def test_all_is_well():
    world = well()
    assert lines(world) == [("All well", "12 nodes protected")]
    seen = Outline(world.page())
    assert "✓ All well 12 nodes protected" in seen.text
    assert "12 nodes: 12 healthy" in seen.text
    assert ("meta", "content", "15") in seen.attributes
    assert "Going on now" not in seen.text


def test_incidents_that_go_on_are_told_with_why_and_what_to_type(incidents):
    seen = Outline(incidents.page())
    assert seen.text.startswith("2 incidents \N{EN DASH} fencer")
    assert (
        "! 2 incidents fencer refuses to fence k8s-5: its guest runs; k8s-2 is fenced: its pods are cleared"
        in seen.text
    )
    running = seen.part("Going on now").partition("Where everything is")[0]
    refused, _, cleared = running.partition("k8s-2 is fenced")
    assert "Ready : unknown, 1m27s" in refused.replace("Ready unknown", "Ready : unknown")
    assert "home/k8s-5 on pve2: running" in refused
    assert "What would change this: its guest stopped" in refused
    assert "Try: fencer fence k8s-5 --stop-guest cuts its power first" in refused
    assert "✓ wanted ✓ bound ✓ silent" in refused
    assert "✗ off" in refused
    assert "1 of 1 pods cleared" in cleared
    assert "… left" in cleared
    assert ("meta", "content", "5") in seen.attributes


def test_the_last_incidents_come_from_the_journal(incidents):
    lately = Outline(incidents.page()).part("Lately")
    assert re.search(r"01 Jan 01:02 k8s-5 silent → refused: its guest runs, goes on", lately)
    assert re.search(r"k8s-2 stopped → fenced in \S+ s, 1 pod cleared, 1 volume, still fenced", lately)
    assert "Times are CET (UTC+01:00)." in lately
    assert "fencer report" in lately


def test_old_memory_is_an_alarm():
    world = old_memory()
    assert lines(world) == [("ALARM", "k8s-2 is in alarm: home/k8s-2 on pve2 came back with its old memory")]
    assert "fencer unfence k8s-2 --same-boot WHY" in Outline(world.page()).text


def test_a_hypervisor_that_does_not_answer_is_told_once_and_not_for_each_node():
    world = blind()
    assert lines(world) == [("BLIND", "home has not answered for 4m02s: its nodes are not fenced meanwhile")]
    seen = Outline(world.page())
    assert "home 12 nodes ! does not answer home: connection refused" in seen.text
    assert seen.text.count("blind: home does not answer; nobody would notice the end of its guest") == len(
        HOME.nodes
    )


def test_without_the_api_server_the_page_says_so_before_all_that_is_old():
    word, text = lines(api_down())[0]
    assert word == "BLIND"
    assert text.startswith("the API server has not answered for 4m04s: nothing is fenced until it answers")


def test_without_the_api_server_no_node_has_a_tick_and_each_says_that_it_was_before():
    rows = api_down().page().partition("<tbody")[2].split("<tr")[1:]
    signs = [re.search(r'class="sign" aria-hidden="true">(.)<', row) for row in rows]
    assert SIGNS[Tone.DOUBTFUL] in {found[1] for found in signs if found}
    assert SIGNS[Tone.GOOD] not in {found[1] for found in signs if found}
    assert all("before that: " in row for row, found in zip(rows, signs, strict=True) if found)
    assert "before that: " not in well().page()


def test_an_agent_that_only_observes_says_so_and_what_it_would_do():
    world = observed()
    assert lines(world) == [
        ("1 incident", "k8s-2 is only observed: would fence now: 1 pod to clear, 1 volume attached"),
        ("NOT ARMED", "fencer only observes, and fences nobody"),
    ]
    assert lines(Watched(HOME, Policy(mode=Mode.OBSERVE)).passes(30))[0][0] == "NOT ARMED"


def test_a_pause_is_told_with_the_words_of_who_asked_for_it():
    [(word, text)] = lines(paused())
    assert word == "PAUSED"
    assert text == (
        "fencing is paused: storage work until noon: nothing is fenced, and no fence is lifted; "
        "`fencer resume`, or `kubectl annotate namespace kube-system fencer.dev/pause-` ends that"
    )


def test_a_node_that_is_excluded_is_not_counted_as_protected():
    world = excluded()
    assert lines(world) == [("All well", "11 nodes protected, 1 excluded")]
    assert "the node is excluded from fencing" in Outline(world.page()).text


def test_before_the_first_pass_nothing_is_well():
    world = Watched(HOME)
    assert [word for word, _ in lines(world)] == ["NO PASS YET"]
    seen = Outline(world.page()).text
    assert "no pass yet" in seen
    assert "Where everything is" not in seen


def test_a_page_of_which_nobody_brings_news_never_looks_well():
    world = well().stands_still(31)
    told = answer(world.board.snapshot())
    assert told.tone is Tone.BAD
    assert [line.word for line in told.lines] == ["NO NEWS"]
    assert "All well" not in Outline(world.page()).text


def test_an_agent_that_is_set_to_pass_rarely_is_not_called_silent_between_two_passes():
    rare = Policy(mode=Mode.ARMED, poll_s=20, evidence_max_age_s=60, confirm_s=40)
    world = Watched(HOME, rare).passes(100).stands_still(50)
    assert [word for word, _ in lines(world)] == ["All well"]
    assert [word for word, _ in lines(world.stands_still(30))] == ["NO NEWS"]


@pytest.mark.parametrize("make", [fenced, old_memory, api_down, blind, paused, observed])
def test_nothing_from_outside_becomes_a_command(make):
    """What stands in our own sentences does; names and answers with backticks are put into those."""
    world, evil = make(), "`EVIL`N"
    seen = world.board.snapshot()
    spoilt = spoiled(seen, evil)
    judged = {
        f"{name}{evil}": replace(spoilt.sight.judged[f"{name}{evil}"], decision=item.decision)
        for name, item in seen.sight.judged.items()
    }
    spoilt = replace(spoilt, sight=replace(spoilt.sight, judged=judged))
    text = page(spoilt, Lately(), world.now(), path=f"/etc/{evil}")
    typed = re.findall("<code>(.*?)</code>", text)
    assert len(typed) > 4
    assert not [one for one in typed if one.startswith(("EVIL", "N"))]


def test_times_are_told_in_the_zone_of_people():
    world = well()
    seen = world.board.snapshot()
    why = "until 2026-11-26T20:00:00Z"
    text = page(replace(seen, sight=replace(seen.sight, paused_why=why)), Lately(), world.now())
    assert "until 2026-11-26 21:00:00 CET" in text
    assert why not in text


def test_a_pass_that_takes_long_is_told_while_the_agent_lives():
    world = well().stands_still(31)
    world.board.alive()
    assert [word for word, _ in lines(world)] == ["OLD"]


def test_a_cluster_without_nodes_is_not_called_well():
    seen = well().board.snapshot()
    told = answer(replace(seen, sight=replace(seen.sight, judged={})))
    assert [(line.tone, line.word) for line in told.lines] == [(Tone.DOUBTFUL, "No nodes")]


def test_nodes_that_cannot_be_read_are_named():
    seen = well().board.snapshot()
    told = answer(replace(seen, sight=replace(seen.sight, malformed=("k8s-9: no UID",))))
    assert [(line.word, line.text) for line in told.lines] == [("1 unreadable node", "k8s-9: unprotected")]


def test_a_node_without_a_guest_is_unprotected_and_is_no_incident_while_it_is_ready():
    world = Watched(Shape(nodes=("k8s-1", "k8s-2", "k8s-3"), foreign=("else",), abroad=("k8s-3",))).passes(30)
    assert lines(world) == [("1 node unprotected", "k8s-3: see why below")]
    seen = Outline(world.page())
    assert "No guest known 1 node" in seen.text
    assert "no guest matches this node" in seen.text
    assert lines(world.breaks(What.NIC_OFF, "k8s-3").passes(90))[0][0] == "1 incident"


def test_every_condition_has_a_tone_and_every_tone_a_sign():
    assert set(TONES) == set(Condition)
    assert set(SIGNS) == set(Tone)
    assert len(set(SIGNS.values())) == len(Tone)


def test_the_policy_names_the_one_style_of_the_page_and_nothing_else_is_in_it(incidents):
    text = incidents.page()
    [style] = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style == STYLE
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"sha256-{digest}" == STYLE_HASH
    assert f"style-src '{STYLE_HASH}'" in policy((STYLE_HASH,))
    seen = Outline(text)
    assert not {"script", "img", "iframe", "form", "object", "input", "button"} & set(seen.tags)
    assert {tag for tag, name, _ in seen.attributes if name == "style"} == set()
    assert {
        value
        for _, name, value in seen.attributes
        if name in {"src", "href"} and not value.startswith("data:")
    } == {
        "/metrics",
        "/healthz",
        "/readyz",
    }


def test_the_page_says_when_it_was_made_and_that_it_is_old_once_it_is(incidents):
    seen = Outline(incidents.page())
    assert f"page of {incidents.now():%H:%M:%S} CET (UTC+01:00), loaded again every 5 s" in seen.text
    assert f"OLD: this page was made at {incidents.now():%H:%M:%S}" in seen.text
    assert f"{OLD_S}s forwards" in STYLE


@pytest.mark.parametrize("name", [HOSTILE, LONG])
def test_what_others_have_named_stays_text(incidents, name):
    seen, lately = spoiled(incidents.board.snapshot(), name), spoiled_past(incidents.lately(), name)
    plain = Outline(incidents.page())
    text = page(seen, lately, incidents.now())
    spoilt = Outline(text)
    assert spoilt.tags.count("script") == 0
    assert spoilt.tags.count("img") == 0
    assert spoilt.tags.count("style") == plain.tags.count("style") == 1
    assert all(ord(character) >= ord(" ") or character == "\n" for character in text)
    assert not {"\u202e", "\u2066", "\ud800"} & set(text)
    assert text.encode()


def test_few_nodes_are_all_shown_and_many_are_folded():
    few, lots = many(SMALL, 3), many(SMALL + 1, 3)
    assert "<details>" not in page(few, Lately(), few.now)
    text = page(lots, Lately(), lots.now)
    assert text.count("<details>") == 3
    assert "17 healthy nodes" in text
    assert 'href="/all"' in text
    whole = page(lots, Lately(), lots.now, every=True)
    assert "<details>" not in whole
    assert whole.count(ROW) == SMALL + 1


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("hosts", [20, 2000])
@pytest.mark.parametrize("step", [1, 50])
def test_the_page_of_very_many_nodes_is_bounded_and_counts_what_it_leaves_out(every, hosts, step):
    seen = sick(many(4000, hosts), step)
    text = page(seen, Lately(), seen.now, every=every)
    assert len(text) < 1_000_000
    assert "for which there is no room" in text or step > 1
    rows = text.count(ROW)
    named = sum(
        len(names.split(", "))
        for names in re.findall(r"</summary>(.*?)(?:, and|</details>)", text)
        if "node-" in names
    )
    told = [
        *re.findall(r"<summary>(\d+) healthy node", text),
        *re.findall(r"(\d+) more nodes? with something", text),
        *re.findall(r"more hosts?, with (\d+) healthy", text),
        *re.findall(r"healthy nodes? and (\d+) node", text),
    ]
    assert rows + sum(map(int, told)) == 4000
    assert named <= MOST_NAMES
