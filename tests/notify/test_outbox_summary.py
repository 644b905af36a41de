"""One message made of many."""

from datetime import timedelta

from fencer.notify.summary import AT_ONCE, portions, summary
from fencer.wording.occasions import Occasion
from tests.notify.boxes import BEGAN, message, over


def test_what_matters_most_comes_first_and_the_rest_is_counted():
    many = [message(f"k8s-{number}") for number in range(1, 41)]
    many += [over("k8s-50"), message("k8s-60", occasion=Occasion.REFUSED)]
    many += [message("k8s-70", occasion=Occasion.ALARM), message("home", occasion=Occasion.BLIND)]
    one = summary(many)
    assert one.title == "44 incidents: 1 alarm, 1 blind, 1 refused, 40 fenced, 1 back"
    assert one.text.split("\n") == [
        "alarm: k8s-70",
        "blind: home",
        "refused: k8s-60",
        "fenced: k8s-1, k8s-2, k8s-3, k8s-4, k8s-5, k8s-6, k8s-7, k8s-8 and 32 more",
        "back: k8s-50",
        "`fencer status` tells more of each.",
    ]
    assert (one.occasion, one.over, one.loud) == (Occasion.ALARM, False, True)
    assert (one.began, one.at) == (BEGAN, BEGAN + timedelta(seconds=2))


def test_it_is_over_if_all_are_and_another_message_if_others_are_in_it():
    ended = [over(f"k8s-{number}") for number in range(6)]
    assert summary(ended).over
    assert summary(ended).told_as is Occasion.BACK
    assert summary(ended).key != summary([*ended, over("k8s-9")]).key
    assert len(summary(ended).key) <= 64


def test_it_counts_what_was_not_kept():
    two = [message("a"), message("b")]
    assert summary(two, 201).title == "2 incidents: 2 fenced, and 201 more that were not kept"
    assert summary(two, 1201).title.endswith(", and 1,201 more that were not kept")
    assert summary(two, 1).title.endswith(", and 1 more that was not kept")


def test_an_alarm_is_in_none_with_anything_else_and_comes_first():
    many = [message(f"k8s-{number}") for number in range(40)]
    alarms = [message(f"bad-{number}", occasion=Occasion.ALARM) for number in range(AT_ONCE + 1)]
    found = portions([*many, *alarms[:2]])
    assert [[one.about for one in part] for part in found[:2]] == [["bad-0"], ["bad-1"]]
    assert [len(part) for part in found] == [1, 1, 40]
    assert [len(part) for part in portions([*many, *alarms])] == [AT_ONCE + 1, 40]


def test_a_few_are_told_one_by_one_what_matters_most_first():
    quiet = message("quiet", occasion=Occasion.REFUSED, loud=False)
    few = [over("back"), quiet, message("fenced"), message("blind", occasion=Occasion.BLIND)]
    assert [one.about for [one] in portions(few)] == ["blind", "fenced", "back", "quiet"]


def test_a_name_that_could_drive_a_terminal_does_not():
    assert "\x1b" not in summary([message("a\x1b[2J"), message("b")]).text
